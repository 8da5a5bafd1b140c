//! Tests whether a kind of hook works by trying it: kernels refuse hooks for undocumented reasons.

use super::object;
use crate::error::TraceError;
use crate::probes::{AttachPoint, Attachment};

/// Whether a trampoline can be attached.
pub(crate) fn fentry() -> Result<(), String> {
    attempt("fentry_read", AttachPoint::Section)
}

/// Whether a breakpoint can be attached.
pub(crate) fn kprobe() -> Result<(), String> {
    attempt("kprobe_read", AttachPoint::Entry("vfs_read"))
}

fn attempt(program: &'static str, point: AttachPoint) -> Result<(), String> {
    let attach = || {
        let mut open = object::open()?;
        object::choose(&mut open, &[program]);
        let loaded = object::load(open)?;
        object::attach(&loaded, &Attachment { program, point }).map(drop)
    };
    attach().map_err(|error| match error {
        TraceError::Refused { reason, .. } => reason,
        other => other.to_string(),
    })
}
