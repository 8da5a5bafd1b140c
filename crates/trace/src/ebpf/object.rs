//! Loads the programs into the kernel and attaches them.

use super::layout::{KernelSettings, LATENCY_BUCKETS, SEEK_BUCKETS, SIZE_BUCKETS};
use crate::error::{PROGRAMS as ALL_PROGRAMS, TraceError};
use crate::probes::{AttachPoint, Attachment};
use dyno_record::cpus::members_of_list;
use libbpf_rs::{
    Link, MapCore, MapHandle, MapMut, Object, ObjectBuilder, OpenObject, ProgramMut,
    TracepointCategory,
};
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};

/// Aligns the compiled programs, because libelf reads numbers in place.
#[repr(align(16))]
struct Aligned<T: ?Sized>(T);

static PROGRAMS: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/tracer.bpf.o")));

/// Opens the object with all programs, none of them selected.
pub(super) fn open() -> Result<OpenObject, TraceError> {
    // Errors already contain the output that libbpf would print.
    libbpf_rs::set_print(None);
    let mut open = ObjectBuilder::default()
        .name("dyno_tracer")
        .and_then(|builder| builder.open_memory(&PROGRAMS.0))
        .map_err(|error| refused(ALL_PROGRAMS, &error))?;
    for mut program in open.progs_mut() {
        program.set_autoload(false);
    }
    Ok(open)
}

/// Selects programs by name.
pub(super) fn choose(open: &mut OpenObject, names: &[&str]) {
    for mut program in open.progs_mut() {
        let wanted = names.iter().any(|name| program.name() == *name);
        program.set_autoload(wanted);
    }
}

/// Applies settings that must be known before loading.
pub(super) fn set(
    open: &mut OpenObject,
    settings: &KernelSettings,
    ring_bytes: u32,
) -> Result<(), TraceError> {
    let bytes = settings.to_bytes();
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        match name.as_str() {
            "events" => map
                .set_max_entries(ring_bytes)
                .map_err(|error| refused("the buffer of events", &error))?,
            "totals" if settings.aggregated => map
                .set_max_entries(total_entries())
                .map_err(|error| refused("the table of totals", &error))?,
            // Programs use the ends of calls only for totals.
            "ends" if !settings.aggregated => {
                map.set_max_entries(1).map_err(|error| refused("the table of ends", &error))?
            }
            _ if name.ends_with(".rodata") => match map.initial_value_mut() {
                Some(value) if value.len() == bytes.len() => value.copy_from_slice(&bytes),
                _ => {
                    let what = "the settings of the programs";
                    return Err(TraceError::refused(what, "unexpected size"));
                }
            },
            _ => {}
        }
    }
    Ok(())
}

/// Maximum number of counted files and operations: the memory is allocated in advance on every CPU.
fn total_entries() -> u32 {
    const BUDGET_BYTES: usize = 64 << 20;
    let bytes = 8 * (5 + LATENCY_BUCKETS + SIZE_BUCKETS + 2 * SEEK_BUCKETS);
    let cpus = libbpf_rs::num_possible_cpus().unwrap_or(1).max(1);
    (BUDGET_BYTES / bytes / cpus).clamp(512, 2048) as u32
}

pub(super) fn load(open: OpenObject) -> Result<Object, TraceError> {
    open.load().map_err(|error| refused(ALL_PROGRAMS, &error))
}

/// A map of a loaded object.
pub(super) fn map(object: &mut Object, name: &str) -> Result<MapHandle, TraceError> {
    let found: Option<MapMut> = object.maps_mut().find(|map| map.name() == name);
    let missing = || TraceError::refused(format!("the table `{name}`"), "not found");
    let map = found.ok_or_else(missing)?;
    MapHandle::try_from(&map).map_err(|error| refused("a table", &error))
}

/// Attaches a program: one link, or one per CPU.
pub(super) fn attach(object: &Object, attachment: &Attachment) -> Result<Vec<Link>, TraceError> {
    let name = attachment.program;
    let missing = || TraceError::refused(format!("the program `{name}`"), "not found");
    let program = object.progs_mut().find(|program| program.name() == name).ok_or_else(missing)?;
    let link = match &attachment.point {
        AttachPoint::Section => program.attach(),
        AttachPoint::Entry(function) => program.attach_kprobe(false, function),
        AttachPoint::Return(function) => program.attach_kprobe(true, function),
        AttachPoint::Point(category, name) => {
            program.attach_tracepoint(TracepointCategory::Custom((*category).to_owned()), name)
        }
        AttachPoint::MajorFault => return attach_to_faults(&program),
    };
    let link = link.map_err(|error| refused(&format!("the hook of `{name}`"), &error))?;
    Ok(vec![link])
}

fn attach_to_faults(program: &ProgramMut<'_>) -> Result<Vec<Link>, TraceError> {
    let mut links = Vec::new();
    for cpu in online_cpus() {
        let event = major_faults_of(cpu)
            .map_err(|error| TraceError::refused("the event of major page faults", error))?;
        // The link closes the event.
        let link = program
            .attach_perf_event(event.into_raw_fd())
            .map_err(|error| refused("the hook of major page faults", &error))?;
        links.push(link);
    }
    Ok(links)
}

/// The first version of `struct perf_event_attr`, which every kernel accepts.
#[repr(C)]
#[derive(Default)]
struct PerfEvent {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
}

/// Opens an event that counts the ends of major faults of all processes on a CPU.
fn major_faults_of(cpu: u64) -> std::io::Result<OwnedFd> {
    const SOFTWARE: u32 = 1;
    const MAJOR_FAULTS: u64 = 6;
    const CLOSE_ON_EXEC: libc::c_ulong = 8;
    let event = PerfEvent {
        kind: SOFTWARE,
        size: size_of::<PerfEvent>() as u32,
        config: MAJOR_FAULTS,
        sample_period: 1,
        ..PerfEvent::default()
    };
    // SAFETY: the pointer is to a structure of the size that it contains, which outlives the call.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &event as *const PerfEvent,
            -1 as libc::pid_t,
            cpu as libc::c_int,
            -1 as libc::c_int,
            CLOSE_ON_EXEC,
        )
    };
    match i32::try_from(descriptor) {
        // SAFETY: the kernel has just opened it, and nothing else owns it.
        Ok(descriptor) if descriptor >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(std::io::Error::last_os_error()),
    }
}

fn online_cpus() -> Vec<u64> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    members_of_list(text.trim()).unwrap_or_default()
}

pub(super) fn refused(what: &str, error: &libbpf_rs::Error) -> TraceError {
    TraceError::Refused {
        what: what.to_owned(),
        reason: format!("{error:#}").replace('\n', " ").trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_contains_exactly_the_attached_programs() {
        use crate::probes::*;
        use crate::targets::HookTarget;
        let open = open().unwrap();
        let known: Vec<String> =
            open.progs().map(|program| program.name().to_string_lossy().into_owned()).collect();
        let mut used: Vec<&str> = Vec::new();
        used.extend(process::PROGRAMS);
        used.extend(block::PROGRAMS);
        used.extend(syscalls::PROGRAMS);
        used.extend(faults::attachments().iter().map(|attachment| attachment.program));
        for arguments in [3, 7] {
            used.extend(io_uring::programs(arguments).unwrap());
        }
        for &target in HookTarget::ALL {
            used.extend(
                vfs_fentry::programs(target).into_iter().flat_map(|(_, programs)| programs),
            );
            used.extend(vfs_kprobe::attachments(target).iter().map(|each| each.program));
            used.extend(syscall_points::attachments(target).iter().map(|each| each.program));
        }
        for program in &used {
            assert!(known.iter().any(|name| name == program), "{program}");
        }
        for name in &known {
            assert!(used.contains(&name.as_str()), "{name} is never attached");
        }
    }

    #[test]
    fn kernel_accepts_breakpoint_programs_without_breakpoints() {
        use crate::kernel::{Kernel, LiveKernel};
        if let Err(refusal) = LiveKernel::new().admits() {
            dyno_testkit::skip_tracing(&format!("this machine cannot trace: {refusal}"));
            return;
        }
        let mut open = open().unwrap();
        let programs: Vec<String> = open
            .progs()
            .map(|program| program.name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with("kprobe_"))
            .collect();
        assert_eq!(programs.len(), 7);
        let names: Vec<&str> = programs.iter().map(String::as_str).collect();
        choose(&mut open, &names);
        load(open).unwrap();
    }
}
