//! Programs and constants for a choice of hooks.

use super::layout::{self, KernelSettings, SYSCALLS};
use super::object;
use crate::error::TraceError;
use crate::hooks::Choice;
use crate::probes::{AttachPoint, Attachment, syscalls};
use crate::settings::Settings;
use crate::targets::HookMethod;
use dyno_record::io_trace::document::TraceMode;
use dyno_record::io_trace::event::Operation;
use libbpf_rs::Object;

/// Every program once, and system calls by only one kind of tracepoints.
pub(super) fn attachments_of(choice: &Choice) -> Vec<Attachment> {
    let pair = choice.hooks.iter().any(|hook| hook.method == Some(HookMethod::SyscallPair));
    let mut attachments: Vec<Attachment> = Vec::new();
    for attachment in choice.hooks.iter().flat_map(|hook| &hook.attachments) {
        let twice = pair && matches!(attachment.point, AttachPoint::Point(..));
        if !twice && !attachments.contains(attachment) {
            attachments.push(attachment.clone());
        }
    }
    attachments
}

/// Loads the attached programs.
pub(super) fn load(
    settings: &Settings,
    choice: &Choice,
    attachments: &[Attachment],
) -> Result<Object, TraceError> {
    let programs: Vec<&str> = attachments.iter().map(|each| each.program).collect();
    let mut open = object::open()?;
    object::choose(&mut open, &programs);
    object::set(&mut open, &kernel_settings(settings, choice), settings.ring_bytes)?;
    object::load(open)
}

fn kernel_settings(settings: &Settings, choice: &Choice) -> KernelSettings {
    // `TS_COMPAT` of x86; other architectures mark such calls elsewhere.
    const COMPAT_BIT: u32 = if cfg!(target_arch = "x86_64") { 2 } else { 0 };
    let filter = &settings.filter;
    let operations = Operation::ALL.iter().filter(|&&operation| filter.has(operation));
    let page_bytes = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok().flatten();
    KernelSettings {
        syscalls: syscall_codes(settings, choice),
        smallest_bytes: filter.smallest_bytes,
        wake_bytes: u64::from(settings.ring_bytes / 4),
        aggregated: settings.mode == TraceMode::Aggregated,
        operations: operations.fold(0, |bits, &operation| bits | 1 << operation as u32),
        first_verdict: if filter.files.is_empty() { layout::ALLOWED } else { layout::PENDING },
        page_shift: page_bytes.map_or(12, |bytes| bytes.trailing_zeros()),
        compat_bit: COMPAT_BIT,
    }
}

fn syscall_codes(settings: &Settings, choice: &Choice) -> [u8; SYSCALLS] {
    let mut codes = [0; SYSCALLS];
    let by_syscall = choice.hooks.iter().filter(|hook| hook.method > Some(HookMethod::Kprobe));
    for call in by_syscall.flat_map(|hook| syscalls::for_target(hook.target)) {
        let wanted = call.operation().is_none_or(|operation| settings.filter.has(operation));
        let code = usize::try_from(call.number).ok().and_then(|number| codes.get_mut(number));
        if let Some(code) = code.filter(|_| wanted) {
            *code = call.code;
        }
    }
    codes
}
