//! Names and numbers of caveats, and the numbers that they apply to. The analysis finds caveats; this module keeps them
//! with their numbers.

use crate::page::sentence;
use crate::texts::{hint, text};
use dyno_analyze::caveats::{MUCH_OTHER_LOAD_RATIO, kind_of_check};
use dyno_record::model::{Caveat, CaveatKind, PhaseKind};
use dyno_record::statement::{Statement, Value};
use serde::Serialize;

/// Share of the operations below which a serious caveat about them is only a doubt: it cannot change the p99.
const FEW_RATIO: f64 = 0.001;

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

/// How far a result can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TrustLevel {
    /// A serious caveat applies.
    Low,
    /// A doubt about rate or response time applies, or one of them has no interval.
    Fair,
    High,
}

/// How far a result can be trusted, with the most serious reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trust {
    pub level: TrustLevel,
    /// A clause without its period.
    pub because: String,
    /// Number of measured runs that the result rests on.
    pub runs: usize,
    /// Numbers of the caveats of this weight.
    pub marks: Vec<usize>,
}

/// Why a result without any caveat is not trusted fully.
pub(crate) const NO_INTERVAL: &str = "the rate or the p99 has no interval";
pub(crate) const SINGLE_RUNS: &str = "one run of each setting does not show how much runs vary";

/// Trust in a JSON document, whose caveats have no numbers.
#[derive(Serialize)]
pub(crate) struct TrustJson {
    level: TrustLevel,
    because: String,
    runs: usize,
}

impl From<Trust> for TrustJson {
    fn from(Trust { level, because, runs, .. }: Trust) -> TrustJson {
        TrustJson { level, because, runs }
    }
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

    /// The trust in the result of these runs; see [`Trust::of`].
    pub(crate) fn trust(&self, runs: usize, lack: Option<&str>) -> Trust {
        Trust::of(self.entries.iter(), runs, lack)
    }

    /// The caveats in numerical order.
    pub fn into_entries(self) -> Vec<NumberedCaveat> {
        self.entries
    }
}

/// Numbers the caveats, the most serious first. Within a severity, caveats about the result's rate and response time come
/// first; otherwise their order stays.
pub(crate) fn numbered(mut caveats: Vec<NumberedCaveat>) -> Vec<NumberedCaveat> {
    caveats.sort_by_key(|caveat| (caveat.severity, !caveat.touches_result()));
    for (index, caveat) in caveats.iter_mut().enumerate() {
        caveat.number = index + 1;
    }
    caveats
}

impl Trust {
    /// The trust by the caveats of the result. `lack` is a reason for a doubt even without any caveat, such as a missing
    /// interval.
    pub(crate) fn of<'a>(
        caveats: impl Iterator<Item = &'a NumberedCaveat> + Clone,
        runs: usize,
        lack: Option<&str>,
    ) -> Self {
        let weighty = |severity: Severity| {
            let of_weight = move |one: &&NumberedCaveat| {
                let is_of_result = severity == Severity::Serious || one.touches_result();
                one.severity == severity && is_of_result && one.phase != Some(PhaseKind::Warmup)
            };
            caveats.clone().filter(of_weight)
        };
        for (severity, level) in
            [(Severity::Serious, TrustLevel::Low), (Severity::Doubt, TrustLevel::Fair)]
        {
            if let Some(first) = weighty(severity).next() {
                let marks = weighty(severity).map(|one| one.number).collect();
                return Trust { level, because: first.message.clone(), runs, marks };
            }
        }
        let (level, because) = match (lack, runs) {
            (Some(lack), _) => (TrustLevel::Fair, lack.to_owned()),
            // Its interval does not show how much runs vary.
            (None, 1) => (
                TrustLevel::High,
                "no caveat concerns the rate or the p99 of this one run; others may differ"
                    .to_owned(),
            ),
            (None, runs) => (
                TrustLevel::High,
                format!("no caveat concerns the rate or the p99 of the {runs} runs"),
            ),
        };
        Trust { level, because, runs, marks: Vec::new() }
    }

    /// `Trust: low, because others used 0.8 of the machine's 2 CPUs.`
    pub(crate) fn text(&self) -> String {
        let level = match self.level {
            TrustLevel::Low => "low",
            TrustLevel::Fair => "fair",
            TrustLevel::High => "high",
        };
        sentence(&format!("Trust: {level}, because {}", self.because))
    }
}

impl NumberedCaveat {
    /// Whether it applies to rate or response time of the result. Caveats without topics apply to everything, and
    /// caveats of the warm-up to none of it.
    fn touches_result(&self) -> bool {
        if self.phase == Some(PhaseKind::Warmup) {
            return false;
        }
        let is_of_result = |topic: &Topic| matches!(topic, Topic::Rate | Topic::Latency);
        self.topics.is_empty() || self.topics.iter().any(is_of_result)
    }

    /// A caveat with the text and the hint of its statement, not yet numbered. `otherwise` is its label and severity unless
    /// the statement is about a check of the machine.
    pub(crate) fn said(said: &Statement, otherwise: (&'static str, Severity)) -> Self {
        let (label, severity) = of_check(said).unwrap_or(otherwise);
        NumberedCaveat::of(label, severity, text(said), hint(said))
    }

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
        // An experiment wraps the caveats of its runs.
        let of_run = match caveat.statement.values.get("caveat") {
            Some(Value::Statement(inner)) => inner,
            _ => &caveat.statement,
        };
        let share = of_run.number("share");
        let severity = match (severity, caveat.kind, share) {
            (_, CaveatKind::OtherLoad, Some(share)) if share >= MUCH_OTHER_LOAD_RATIO => {
                Severity::Serious
            }
            (Severity::Serious, _, Some(share)) if share < FEW_RATIO => Severity::Doubt,
            _ => severity,
        };
        let (message, hint) = (text(&caveat.statement), hint(&caveat.statement));
        NumberedCaveat {
            phase: caveat.phase,
            topics,
            ..NumberedCaveat::of(label, severity, message, hint)
        }
    }
}

/// Name and severity of a finding by a machine check, in documents whose caveats have no kind; `None` for other statements.
fn of_check(said: &Statement) -> Option<(&'static str, Severity)> {
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
        Kind::Compression => ("compression", Doubt, &[Data]),
        Kind::Durability => ("durability", Condition, &[Durability]),
        Kind::UnverifiedTls => ("TLS not verified", Condition, &[Status]),
        Kind::CpuFrequency => ("CPU frequency not fixed", Condition, &[CpuFrequency]),
        Kind::MachineSetting => ("machine setting", Condition, &[MachineSettings]),
        Kind::SharedMachine => ("shared machine", Condition, &[SharedMachine, Client]),
        Kind::OtherLoad => ("other load", Doubt, &[Rate, Latency, Tail, SharedMachine]),
        Kind::ClockCoarse => ("coarse clock", Doubt, &[Latency, Tail, Clock]),
        Kind::ProbeUnavailable => ("not recorded", Doubt, &[Status]),
        Kind::ServerSetting => ("server setting", Doubt, &[ServerSettings]),
        Kind::Reconnects => ("reconnects", Doubt, &[Errors, Tail]),
        Kind::Integrity => ("wrong values read", Serious, &[Errors]),
        Kind::CheckViolated => ("check violated", Serious, &[Errors, Data]),
        Kind::NothingFound => ("nothing found", Serious, &[Rate, Latency, Tail, Data]),
        Kind::MixedRuns => ("mixed runs", Serious, &[Rate, Latency, Tail, Errors]),
        Kind::RecordChanged => ("record changed", Serious, &[Status, Rate, Latency, Tail, Errors]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::quantity::Unit;
    use dyno_record::statement::Number;

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
    fn trust_is_not_lowered_by_the_warm_up() {
        let trust = |phase| {
            let caveats = [
                caveat(CaveatKind::DroppedArrivals, Some(phase)),
                caveat(CaveatKind::NotSteady, None),
            ];
            let trust = CaveatBook::new(&caveats).trust(1, None);
            (trust.level, trust.marks)
        };
        assert_eq!(trust(PhaseKind::Measure), (TrustLevel::Low, vec![1]));
        assert_eq!(trust(PhaseKind::Warmup), (TrustLevel::Fair, vec![2]));
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
    fn trust_follows_the_weightiest_caveat() {
        let others = |share: f64| {
            let said = Statement::new("cpus-used-by-others")
                .with("share", Number::new(share, Unit::Ratio));
            Caveat::of_run(CaveatKind::OtherLoad, said)
        };
        let trust = |caveats: &[Caveat], lacks_interval: bool| {
            let lack = lacks_interval.then_some("no interval");
            let trust = CaveatBook::new(caveats).trust(1, lack);
            (trust.level, trust.marks)
        };
        let of = |kind| caveat(kind, None);
        let conditions = [of(CaveatKind::Durability), of(CaveatKind::TooFewOperations)];
        assert_eq!(trust(&conditions, false), (TrustLevel::High, vec![]));
        assert_eq!(trust(&conditions, true), (TrustLevel::Fair, vec![]));
        assert_eq!(trust(&[others(0.1)], false), (TrustLevel::Fair, vec![1]));
        assert_eq!(trust(&[others(0.3)], false), (TrustLevel::Low, vec![1]));
        let two = [of(CaveatKind::Durability), of(CaveatKind::NotSteady), others(0.4)];
        assert_eq!(trust(&two, false), (TrustLevel::Low, vec![1]));
        // One failure in a million cannot change the p99.
        let failed = |share: f64| Caveat { kind: CaveatKind::Errors, ..others(share) };
        assert_eq!(trust(&[failed(1e-6)], false), (TrustLevel::High, vec![]));
        assert_eq!(trust(&[failed(0.01)], false), (TrustLevel::Low, vec![1]));
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
