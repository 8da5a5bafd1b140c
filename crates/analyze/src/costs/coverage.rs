//! How much of a phase lies between the two readings of a counter.
//!
//! A counter is never read at the very instant at which a phase starts or ends, and a busy server answers late. What it grew by
//! is therefore scaled to the length of the phase, as if its rate had been even, and its interval holds all that this may be
//! wrong by: in the time that was missed nothing may have been counted, or twice the mean.

use dyno_record::consumption::{Consumption, ReadTime};
use dyno_record::experiment::Figure;
use dyno_record::model::{PhaseRecord, RunDocument};

/// Phases are one load without a gap if no more than this lies between them.
const NO_GAP_S: f64 = 1e-3;

/// Least share of a phase from which the whole is known.
const LEAST_RATIO: f64 = 0.5;

/// A phase with what comes before and after it.
pub(super) struct Span {
    start_s: f64,
    end_s: f64,
    /// The load of another phase goes on into this one.
    is_led: bool,
    /// Its load goes on into another phase.
    is_followed: bool,
    /// Operations of the phase before that end in this one, and are counted in neither, for each one that is counted.
    carried_ratio: f64,
}

/// What two readings hold of a phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Coverage {
    /// What a counter grew by times this is what it grew by in the phase.
    pub(super) factor: f64,
    /// That may be too high by this share of it.
    pub(super) surplus_ratio: f64,
    /// It may be too low by this share.
    pub(super) missing_ratio: f64,
}

/// What one end of a phase contributes, in seconds.
struct End {
    /// Time under load that the readings hold beyond the phase; negative where they miss some of it.
    extra_s: f64,
    /// Most time under load that they may miss or hold in addition.
    loaded_s: f64,
    /// Time without load that they hold.
    idle_s: f64,
}

impl Coverage {
    /// What is counted between the readings, as that of the phase. By itself it is known up to `error`; a count that nothing is
    /// wrong with has no interval.
    pub(super) fn figure(&self, counted: f64, error: f64) -> Figure {
        let is_exact = self.surplus_ratio == 0.0 && self.missing_ratio == 0.0 && error == 0.0;
        let low = (counted - error) * self.factor * (1.0 - self.surplus_ratio);
        let high = (counted + error) * self.factor * (1.0 + self.missing_ratio);
        Figure {
            value: counted * self.factor,
            low: (!is_exact).then_some(low.max(0.0)),
            high: (!is_exact).then_some(high),
        }
    }
}

impl Span {
    pub(super) fn new(document: &RunDocument, phase: &PhaseRecord) -> Self {
        let (start_s, end_s) = (phase.start_s, phase.start_s + phase.duration_s);
        let touches = |end: f64, start: f64| (end - start).abs() < NO_GAP_S;
        let others = || document.phases.iter().filter(|one| one.name != phase.name);
        let is_led = others().any(|one| touches(one.start_s + one.duration_s, start_s));
        let count = (phase.succeeded + phase.failed) as f64;
        Span {
            start_s,
            end_s,
            is_led,
            is_followed: others().any(|one| touches(end_s, one.start_s)),
            carried_ratio: match is_led && count > 0.0 {
                true => (phase.mean_in_flight / count).min(1.0),
                false => 0.0,
            },
        }
    }

    /// Of work by itself, which begins at 0.
    pub(super) fn alone(duration_s: f64) -> Self {
        Span {
            start_s: 0.0,
            end_s: duration_s,
            is_led: false,
            is_followed: false,
            carried_ratio: 0.0,
        }
    }

    /// `None` if the readings hold too little of the phase.
    fn between(&self, first: ReadTime, last: ReadTime) -> Option<Coverage> {
        // Mirrored, the start is like the end.
        let mirrored = ReadTime {
            from_s: -first.until_s,
            until_s: -first.from_s,
        };
        let start = End::new(-self.start_s, self.is_led, mirrored);
        // The last phase is read when its last operation has ended: before its planned end, if nothing more was due.
        let last = match self.is_followed {
            true => last,
            false => ReadTime {
                from_s: last.from_s.max(self.end_s),
                until_s: last.until_s.max(self.end_s),
            },
        };
        let end = End::new(self.end_s, self.is_followed, last);
        self.coverage(&start, &end)
    }

    /// Of a counter that was read every so often, with the growth around both ends in proportion; `None` for a phase that is
    /// too short for that.
    fn in_proportion(&self, every_s: f64) -> Option<Coverage> {
        // Where the load begins or ends after the share f of the time between two readings, f (1 - f) ≤ 1/4 of what is used in such
        // a time is on the wrong side. And the last reading may be missing, and be nothing or twice the mean.
        const MOST_WRONG: f64 = 1.25;
        let length_s = self.end_s - self.start_s;
        let ratio = every_s * MOST_WRONG / length_s;
        (length_s > 0.0 && ratio <= LEAST_RATIO).then_some(Coverage {
            factor: 1.0,
            surplus_ratio: ratio + self.carried_ratio,
            missing_ratio: ratio,
        })
    }

    /// The same of a counter that was followed until all that the phase caused was counted.
    fn since(&self, first: ReadTime) -> Option<Coverage> {
        let at_end = ReadTime {
            from_s: self.end_s,
            until_s: self.end_s,
        };
        self.between(first, at_end)
    }

    fn coverage(&self, start: &End, end: &End) -> Option<Coverage> {
        let length_s = self.end_s - self.start_s;
        let held_s = length_s + start.extra_s + end.extra_s;
        let missing_ratio = (start.loaded_s + end.loaded_s) / length_s;
        let coverage = Coverage {
            factor: length_s / held_s,
            surplus_ratio: missing_ratio
                + (start.idle_s + end.idle_s) / length_s
                + self.carried_ratio,
            missing_ratio,
        };
        (held_s >= length_s * LEAST_RATIO && length_s > 0.0).then_some(coverage)
    }
}

impl End {
    fn new(end_s: f64, is_followed: bool, read: ReadTime) -> Self {
        let (from_s, until_s) = (read.from_s - end_s, read.until_s - end_s);
        match is_followed {
            true => End {
                extra_s: f64::midpoint(from_s, until_s),
                loaded_s: from_s.abs().max(until_s.abs()),
                idle_s: 0.0,
            },
            false => End {
                extra_s: f64::midpoint(from_s.min(0.0), until_s.min(0.0)),
                loaded_s: (-from_s).max(0.0),
                idle_s: until_s.max(0.0),
            },
        }
    }
}

/// What the readings of the kernel's counters hold of a phase.
pub(super) fn of_kernel(used: &Consumption, span: &Span) -> Option<Coverage> {
    if let Some(every_s) = used.every_s {
        return span.in_proportion(every_s);
    }
    let [first, last] = kernel_read(used);
    span.between(first, last)
}

/// The same of what servers tell of themselves, and of context switches.
pub(super) fn of_servers(used: &Consumption, span: &Span) -> Option<Coverage> {
    let [first, last] = match used.read {
        Some(read) => [read.servers_at_start, read.servers_at_end],
        None => of_old_record(used),
    };
    span.between(first, last)
}

/// The same of a counter that was followed until all that the phase caused was counted.
pub(super) fn since(used: &Consumption, span: &Span) -> Option<Coverage> {
    let [first, _] = kernel_read(used);
    span.since(first)
}

fn kernel_read(used: &Consumption) -> [ReadTime; 2] {
    match used.read {
        Some(read) => [read.kernel_at_start, read.kernel_at_end],
        None => of_old_record(used),
    }
}

/// Records of earlier versions know one instant at each end.
fn of_old_record(used: &Consumption) -> [ReadTime; 2] {
    [used.start_s, used.end_s].map(|at_s| ReadTime {
        from_s: at_s,
        until_s: at_s,
    })
}
