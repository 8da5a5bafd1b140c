//! Names and numbers of caveats, and the numbers that they apply to. The analysis finds caveats; this module keeps them
//! with their numbers.

use crate::texts::{hint, text};
use dyno_analyze::caveats::kind_of_check;
use dyno_record::model::{Caveat, CaveatKind, PhaseKind};
use dyno_record::statement::Statement;
use serde::Serialize;

/// How a caveat affects the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The numbers do not mean what they seem to mean.
    Serious,
    /// The numbers are less certain than they look.
    Doubt,
    /// The numbers are right, but only under a condition that must be stated with them.
    Condition,
}

/// A group of numbers that are shown together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    Rate,
    /// Mean and percentiles up to p99.
    Latency,
    /// p99.9 and above, and the maximum.
    Tail,
    Errors,
    /// Arrivals of an open-loop schedule.
    Arrivals,
    /// Resources used by the load generator.
    Client,
    /// Operations in flight.
    InFlight,
    /// The data set.
    Data,
    /// Meaning of an acknowledged write.
    Durability,
    ServerSettings,
    /// Other users of the client's machine.
    SharedMachine,
    CpuFrequency,
    /// Settings of the client's machine: swap, huge pages, readahead.
    MachineSettings,
    Clock,
    /// How the run ended.
    Status,
}

/// A caveat with the number by which the report refers to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NumberedCaveat {
    /// Starts at 1.
    pub number: usize,
    pub label: &'static str,
    pub severity: Severity,
    /// The affected phase; the whole run if absent.
    pub phase: Option<PhaseKind>,
    /// The caveat with its figures.
    pub message: String,
    pub hint: Option<String>,
    #[serde(skip)]
    topics: &'static [Topic],
}

/// All caveats of a run, most serious first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CaveatBook {
    entries: Vec<NumberedCaveat>,
}

impl CaveatBook {
    /// Numbers the caveats of a run.
    pub fn new(caveats: &[Caveat]) -> Self {
        let entries = caveats.iter().map(NumberedCaveat::new).collect();
        CaveatBook { entries: numbered(entries) }
    }

    /// The numbers of the caveats that apply to `topic` in `phase`, in ascending order; without a phase, in any phase.
    pub fn marks(&self, topic: Topic, phase: Option<PhaseKind>) -> Vec<usize> {
        let touches = |entry: &&NumberedCaveat| {
            let same_phase = entry.phase.is_none() || phase.is_none() || entry.phase == phase;
            same_phase && entry.topics.contains(&topic)
        };
        self.entries.iter().filter(touches).map(|entry| entry.number).collect()
    }

    /// The caveats in numerical order.
    pub fn into_entries(self) -> Vec<NumberedCaveat> {
        self.entries
    }
}

/// Numbers the caveats, the most serious first; within a severity their order stays.
pub(crate) fn numbered(mut caveats: Vec<NumberedCaveat>) -> Vec<NumberedCaveat> {
    caveats.sort_by_key(|caveat| caveat.severity);
    for (index, caveat) in caveats.iter_mut().enumerate() {
        caveat.number = index + 1;
    }
    caveats
}

impl NumberedCaveat {
    /// A caveat that applies to no group of numbers, not yet numbered.
    pub(crate) fn of(
        label: &'static str,
        severity: Severity,
        message: String,
        hint: Option<String>,
    ) -> Self {
        NumberedCaveat { number: 0, label, severity, phase: None, message, hint, topics: &[] }
    }

    fn new(caveat: &Caveat) -> Self {
        let (label, severity, topics) = describe(caveat.kind);
        let (message, hint) = (text(&caveat.statement), hint(&caveat.statement));
        NumberedCaveat {
            phase: caveat.phase,
            topics,
            ..NumberedCaveat::of(label, severity, message, hint)
        }
    }
}

/// Name and severity of a finding by a machine check, in documents whose caveats have no kind; `None` for other statements.
pub(crate) fn of_check(said: &Statement) -> Option<(&'static str, Severity)> {
    let kind = match said.code.as_str() {
        "client-and-server-share-machine" => CaveatKind::SharedMachine,
        "check-fails" => kind_of_check(said.text("check")?.parse().ok()?),
        _ => return None,
    };
    let (label, severity, _) = describe(kind);
    Some((label, severity))
}

/// Name, severity and topics of a kind. Conditions such as durability hold for the whole run; they mark the facts about
/// them and not each number, because marks everywhere would mean nothing.
fn describe(kind: CaveatKind) -> (&'static str, Severity, &'static [Topic]) {
    use CaveatKind as Kind;
    use Severity::{Condition, Doubt, Serious};
    use Topic::*;
    match kind {
        Kind::ClientStopped => ("client stood still", Serious, &[Rate, Latency, Tail, Client]),
        Kind::GeneratorBottleneck => {
            ("generator was the bottleneck", Serious, &[Rate, Latency, Tail, Client])
        }
        Kind::DroppedArrivals => ("dropped arrivals", Serious, &[Rate, Latency, Tail, Arrivals]),
        Kind::LateStarts => ("late starts", Doubt, &[Latency, Tail, Arrivals]),
        Kind::RateNotAchieved => ("rate not achieved", Serious, &[Rate]),
        Kind::UnevenShares => ("uneven shares", Doubt, &[Rate, Latency, Tail]),
        Kind::NotSteady => ("no steady state", Doubt, &[Rate, Latency, Tail]),
        Kind::WarmUpMeasured => ("warm-up measured", Doubt, &[Rate, Latency, Tail]),
        Kind::TooFewIntervals => ("too few intervals", Doubt, &[Rate, Latency, Tail]),
        Kind::TooFewOperations => ("too few operations", Doubt, &[Tail]),
        Kind::ClampedValues => ("clamped values", Doubt, &[Tail]),
        Kind::Fleet => ("fleet incomplete", Serious, &[Rate, Latency, Tail]),
        Kind::Errors => ("operations failed", Serious, &[Errors]),
        Kind::Partial => ("partial run", Serious, &[Status, Rate, Latency, Tail, Errors]),
        Kind::DocumentCount => ("document count", Serious, &[Data, Rate, Latency, Tail]),
        Kind::LittleLaw => ("Little's law", Serious, &[Rate, Latency, Tail, InFlight]),
        Kind::FitsInCache => ("data fits in cache", Condition, &[Data]),
        Kind::Durability => ("durability", Condition, &[Durability]),
        Kind::UnverifiedTls => ("TLS not verified", Condition, &[Status]),
        Kind::CpuFrequency => ("CPU frequency not fixed", Condition, &[CpuFrequency]),
        Kind::MachineSetting => ("machine setting", Condition, &[MachineSettings]),
        Kind::SharedMachine => ("shared machine", Condition, &[SharedMachine, Client]),
        Kind::ClockCoarse => ("coarse clock", Doubt, &[Latency, Tail, Clock]),
        Kind::ProbeUnavailable => ("not recorded", Doubt, &[Status]),
        Kind::ServerSetting => ("server setting", Doubt, &[ServerSettings]),
        Kind::Reconnects => ("reconnects", Doubt, &[Errors, Tail]),
        Kind::Integrity => ("wrong values read", Serious, &[Errors]),
        Kind::MixedRuns => ("mixed runs", Serious, &[Rate, Latency, Tail, Errors]),
        Kind::RecordChanged => ("record changed", Serious, &[Status, Rate, Latency, Tail, Errors]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caveat(kind: CaveatKind, phase: Option<PhaseKind>) -> Caveat {
        Caveat { phase, ..Caveat::of_run(kind, Statement::recorded("message")) }
    }

    #[test]
    fn serious_caveats_come_first_and_the_rest_keeps_its_order() {
        let book = CaveatBook::new(&[
            caveat(CaveatKind::Durability, None),
            caveat(CaveatKind::NotSteady, None),
            caveat(CaveatKind::ClampedValues, None),
            caveat(CaveatKind::Errors, None),
        ]);
        let labels: Vec<_> =
            book.into_entries().iter().map(|entry| (entry.number, entry.label)).collect();
        let expected = [
            (1, "operations failed"),
            (2, "no steady state"),
            (3, "clamped values"),
            (4, "durability"),
        ];
        assert_eq!(labels, expected);
    }

    #[test]
    fn a_caveat_of_one_phase_marks_no_other_phase() {
        let book = CaveatBook::new(&[
            caveat(CaveatKind::RateNotAchieved, Some(PhaseKind::Measure)),
            caveat(CaveatKind::Partial, None),
        ]);
        let rate = |phase| book.marks(Topic::Rate, phase);
        assert_eq!(rate(Some(PhaseKind::Measure)), [1, 2]);
        assert_eq!(rate(Some(PhaseKind::Load)), [2]);
        assert_eq!(rate(None), [1, 2]);
        assert!(book.marks(Topic::Arrivals, None).is_empty());
    }

    #[test]
    fn every_kind_touches_something() {
        // From the committed names, so that a new kind cannot be forgotten here.
        let schema = serde_json::to_value(dyno_record::schema::run_schema()).unwrap();
        let text = schema.to_string();
        let mut kinds = 0;
        for name in text.split('"') {
            let quoted = serde_json::Value::String(name.into());
            if let Ok(kind) = serde_json::from_value::<CaveatKind>(quoted) {
                let (_, _, topics) = describe(kind);
                assert!(!topics.is_empty(), "{name}");
                kinds += 1;
            }
        }
        assert!(kinds >= 22, "{kinds}");
    }
}
