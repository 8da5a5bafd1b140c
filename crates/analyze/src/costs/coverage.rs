//! The share of a phase between two readings of a counter.
//!
//! A counter is never read exactly at the start or end of a phase, and a busy server answers late. So its
//! growth is scaled to the length of the phase, as if its rate had been even. The interval covers the possible
//! error: during the missed time, the counter may have stood still or grown at twice the mean rate.

use dyno_record::consumption::{Consumption, ReadTime};
use dyno_record::experiment::Figure;
use dyno_record::model::{PhaseRecord, RunDocument};

/// Longest time between phases that form one load without a gap.
const NO_GAP_S: f64 = 1e-3;

/// Smallest share of a phase that allows an extrapolation to the whole.
const LEAST_RATIO: f64 = 0.5;

/// A phase with its neighbours.
pub(super) struct Span {
    start_s: f64,
    end_s: f64,
    /// Whether another phase's load continues into this one.
    is_led: bool,
    /// Whether this phase's load continues into another one.
    is_followed: bool,
    /// Operations of the previous phase that end in this one and are counted in neither, per counted operation.
    carried_ratio: f64,
}

/// The part of a phase that two readings cover.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Coverage {
    /// Factor from the counter's growth to its growth within the phase.
    pub(super) factor: f64,
    /// Share by which the result may be too high.
    pub(super) surplus_ratio: f64,
    /// Share by which the result may be too low.
    pub(super) missing_ratio: f64,
}

/// Effect of one end of a phase, in seconds.
struct End {
    /// Time under load that the readings cover beyond the phase; negative if they miss some of it.
    extra_s: f64,
    /// Longest time under load that they may miss or cover in addition.
    loaded_s: f64,
    /// Time without load that they cover.
    idle_s: f64,
}

impl Coverage {
    /// The phase's count from the count between the readings. The count itself may be wrong by `error`; an
    /// exact count has no interval.
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

    /// Coverage of work by itself, which begins at 0.
    pub(super) fn alone(duration_s: f64) -> Self {
        Span {
            start_s: 0.0,
            end_s: duration_s,
            is_led: false,
            is_followed: false,
            carried_ratio: 0.0,
        }
    }

    /// `None` if the readings cover too little of the phase.
    fn between(&self, first: ReadTime, last: ReadTime) -> Option<Coverage> {
        // Mirrored, the start is like the end.
        let mirrored = ReadTime { from_s: -first.until_s, until_s: -first.from_s };
        let start = End::new(-self.start_s, self.is_led, mirrored);
        // The last phase is read when its last operation has ended: before its planned end, if nothing more was
        // due.
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

    /// Coverage of a counter with regular readings, with proportional growth around both ends; `None` if the
    /// phase is too short.
    fn in_proportion(&self, every_s: f64) -> Option<Coverage> {
        // If the load begins or ends after the share f of the time between two readings, f (1 - f) ≤ 1/4 of the
        // use in this time is on the wrong side. Also, the last reading may be missing, with no use or twice
        // the mean.
        const MOST_WRONG: f64 = 1.25;
        let length_s = self.end_s - self.start_s;
        let ratio = every_s * MOST_WRONG / length_s;
        (length_s > 0.0 && ratio <= LEAST_RATIO).then_some(Coverage {
            factor: 1.0,
            surplus_ratio: ratio + self.carried_ratio,
            missing_ratio: ratio,
        })
    }

    /// Coverage of a counter that was read until it included everything that the phase caused.
    fn since(&self, first: ReadTime) -> Option<Coverage> {
        let at_end = ReadTime { from_s: self.end_s, until_s: self.end_s };
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

/// Coverage of a phase by the kernel's counters.
pub(super) fn of_kernel(used: &Consumption, span: &Span) -> Option<Coverage> {
    if let Some(every_s) = used.every_s {
        return span.in_proportion(every_s);
    }
    let [first, last] = kernel_read(used);
    span.between(first, last)
}

/// Coverage by the servers' own counters, and by context switches.
pub(super) fn of_servers(used: &Consumption, span: &Span) -> Option<Coverage> {
    let [first, last] = match used.read {
        Some(read) => [read.servers_at_start, read.servers_at_end],
        None => of_old_record(used),
    };
    span.between(first, last)
}

/// Coverage by a counter that was read until it included everything that the phase caused.
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

/// Records of earlier versions have one instant at each end.
fn of_old_record(used: &Consumption) -> [ReadTime; 2] {
    [used.start_s, used.end_s].map(|at_s| ReadTime { from_s: at_s, until_s: at_s })
}
