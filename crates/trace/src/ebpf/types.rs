//! What the kernel's own description of its types tells about functions and tracepoints.

use libbpf_rs::btf::types::{Func, FuncProto, Ptr, Typedef};
use libbpf_rs::btf::{Btf, ReferencesType};

/// The types of the kernel that runs; none where it does not describe them.
#[derive(Debug)]
pub(crate) struct Types {
    btf: Option<Btf<'static>>,
}

impl Types {
    pub(crate) fn of_kernel() -> Types {
        Types {
            btf: Btf::from_vmlinux().ok(),
        }
    }

    /// Whether there is a function that has not been inlined everywhere.
    pub(crate) fn function(&self, name: &str) -> bool {
        self.btf
            .as_ref()
            .is_some_and(|btf| btf.type_by_name::<Func<'_>>(name).is_some())
    }

    /// How many arguments a tracepoint has, if there is one.
    pub(crate) fn tracepoint(&self, name: &str) -> Option<usize> {
        let btf = self.btf.as_ref()?;
        let named = btf.type_by_name::<Typedef<'_>>(&format!("btf_trace_{name}"))?;
        let pointer = Ptr::try_from(named.referenced_type()).ok()?;
        let prototype = FuncProto::try_from(pointer.referenced_type()).ok()?;
        // The first is the tracepoint's own.
        prototype.len().checked_sub(1)
    }
}
