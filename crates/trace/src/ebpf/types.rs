//! Functions and tracepoints in the kernel's type information.

use libbpf_rs::btf::types::{Func, FuncProto, Ptr, Typedef};
use libbpf_rs::btf::{Btf, ReferencesType};

/// Types of the running kernel; empty if it does not publish them.
#[derive(Debug)]
pub(crate) struct Types {
    btf: Option<Btf<'static>>,
}

impl Types {
    pub(crate) fn of_kernel() -> Types {
        Types { btf: Btf::from_vmlinux().ok() }
    }

    /// Whether a function exists that has not been inlined everywhere.
    pub(crate) fn function(&self, name: &str) -> bool {
        self.btf.as_ref().is_some_and(|btf| btf.type_by_name::<Func<'_>>(name).is_some())
    }

    /// Number of arguments of a tracepoint, if it exists.
    pub(crate) fn tracepoint(&self, name: &str) -> Option<usize> {
        let btf = self.btf.as_ref()?;
        let named = btf.type_by_name::<Typedef<'_>>(&format!("btf_trace_{name}"))?;
        let pointer = Ptr::try_from(named.referenced_type()).ok()?;
        let prototype = FuncProto::try_from(pointer.referenced_type()).ok()?;
        // The first argument is the tracepoint's own.
        prototype.len().checked_sub(1)
    }
}
