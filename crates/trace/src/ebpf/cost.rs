//! Cost of the programs, measured by the kernel.

use dyno_record::io_trace::document::{ProgramCost, TraceCost};
use libbpf_rs::Object;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The kernel measures while this is open.
#[derive(Debug)]
pub(super) struct Counting {
    _open: OwnedFd,
}

impl Counting {
    /// Starts measuring; `None` if the kernel refuses.
    pub(super) fn start() -> Option<Counting> {
        const RUN_TIME: u32 = 0;
        // SAFETY: the call takes a number and returns a descriptor or a negative number.
        let descriptor = unsafe { libbpf_sys::bpf_enable_stats(RUN_TIME) };
        (descriptor >= 0).then(|| Counting {
            // SAFETY: the kernel has just opened it, and nothing else owns it.
            _open: unsafe { OwnedFd::from_raw_fd(descriptor) },
        })
    }
}

/// Statistics of a program.
struct Reported {
    runs: u64,
    run_time_ns: u64,
    misses: u64,
}

/// Runs and run times of all loaded programs, and how often a run was skipped because the program was already running.
pub(super) fn read(object: &Object) -> (TraceCost, u64) {
    let mut cost = TraceCost::default();
    let mut misses = 0;
    for program in object.progs_mut() {
        // Programs that were not selected have no descriptor.
        if !program.autoload() || program.as_fd().as_raw_fd() < 0 {
            continue;
        }
        let Some(reported) = ask(program.as_fd()) else {
            continue;
        };
        misses += reported.misses;
        cost.programs.push(ProgramCost {
            name: program.name().to_string_lossy().into_owned(),
            runs: reported.runs,
            run_time_ns: reported.run_time_ns,
        });
    }
    (cost, misses)
}

fn ask(program: BorrowedFd<'_>) -> Option<Reported> {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut length = size_of::<libbpf_sys::bpf_prog_info>() as u32;
    // SAFETY: the structure has the length that is passed, has none of our pointers, and outlives the call.
    let status = unsafe {
        libbpf_sys::bpf_prog_get_info_by_fd(program.as_raw_fd(), &raw mut info, &raw mut length)
    };
    (status == 0).then_some(Reported {
        runs: info.run_cnt,
        run_time_ns: info.run_time_ns,
        misses: info.recursion_misses,
    })
}
