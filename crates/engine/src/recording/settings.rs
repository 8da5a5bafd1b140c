//! Tracer settings from a plan or from options.

use dyno_load::clock::Clock;
use dyno_plan::io_trace::{IoTracePlan, TracedOperation};
use dyno_record::io_trace::event::Operation;
use dyno_trace::{Filter, Settings};
use nix::time::{ClockId, clock_gettime};

/// Buffer of a trace in a run: twenty thousand calls a second fill it in about ten seconds.
const RUN_BUFFER_BYTES: u32 = 16 << 20;

/// The settings of a plan, on a clock with this zero.
pub fn from_plan(plan: &IoTracePlan, zero_monotonic_ns: u64) -> Settings {
    let operations = plan.operations.iter().flat_map(|operation| match operation {
        TracedOperation::Read => READS,
        TracedOperation::Write => WRITES,
        TracedOperation::Sync => SYNCS,
    });
    Settings {
        filter: Filter {
            processes: Vec::new(),
            files: plan.files.clone(),
            operations: operations.copied().collect(),
            smallest_bytes: plan.smallest.map_or(0, |size| size.0),
        },
        mode: plan.mode,
        ring_bytes: RUN_BUFFER_BYTES,
        zero_monotonic_ns: Some(zero_monotonic_ns),
        ..Settings::default()
    }
}

/// Operations in a trace of reads. Accesses to mapped files are also reads.
pub const READS: &[Operation] = &[Operation::Read, Operation::Fault];
/// Operations in a trace of writes.
pub const WRITES: &[Operation] = &[Operation::Write];
/// Operations in a trace of syncs.
pub const SYNCS: &[Operation] = &[Operation::Sync];

/// Zero of a run's clock on the machine's monotonic clock.
pub fn zero_of(clock: Clock) -> u64 {
    monotonic_ns().saturating_sub(clock.now_ns())
}

/// The machine's monotonic clock, which the tracer also uses.
pub fn monotonic_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map_or(0, |now| now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_plan::io_trace::TraceMode;

    #[test]
    fn a_plan_without_details_traces_everything() {
        let settings = from_plan(&IoTracePlan::default(), 7);
        assert_eq!(settings.zero_monotonic_ns, Some(7));
        assert!(Operation::ALL.iter().all(|operation| settings.filter.has(*operation)));
        assert!(settings.check().is_ok());
    }

    #[test]
    fn accesses_to_mapped_files_are_reads() {
        let plan = IoTracePlan {
            operations: vec![TracedOperation::Read],
            mode: TraceMode::Aggregated,
            ..IoTracePlan::default()
        };
        let settings = from_plan(&plan, 0);
        assert_eq!(settings.filter.operations, [Operation::Read, Operation::Fault]);
        assert_eq!(settings.mode, TraceMode::Aggregated);
    }

    #[test]
    fn zero_of_a_run_is_the_start_of_its_clock() {
        let before = zero_of(Clock::start());
        let clock = Clock::start();
        let (first, second) = (zero_of(clock), zero_of(clock));
        assert!(first >= before);
        assert!(first.abs_diff(second) < 100_000_000, "{first} {second}");
    }
}
