//! Applies the rules to the parts of a run between its level changes.

use super::bench::{Bench, Read, TimeRange};
use super::measures::{Measure, Seen, is_closed};
use super::rules::{BACKED_UP, Bound, Condition, FLAT, LARGE_BYTES, Load, RULES, Rule};
use super::{Cause, CauseFinding, Evidence, Verdict};
use crate::values::{number, percent, rate as per_s};
use dyno_record::statement;
use dyno_record::statement::{Number, Statement};

/// Advice for used up burst credits.
const BURST_ADVICE: [&str; 2] = ["look-at-burst-credits", "measure-longer-than-credits"];
/// Shortest part that can decide: the means of shorter parts describe single moments.
const SHORTEST_S: f64 = 5.0;
/// Fewest readings of a slice; a mean needs three, and the sources are not synchronized.
const READINGS_OF_SLICE: f64 = 4.0;
/// Tolerance for sums of binary fractions in a length.
const ROUNDING_S: f64 = 1e-6;
/// Most slices of a part: more would show single moments of a long run.
const MOST_SLICES: f64 = 24.0;
/// Confidence that each supporting condition adds or subtracts.
const SUPPORT: f64 = 0.05;
const CONTRADICTION: f64 = 0.1;
/// Upper limit: no outside observation is certain.
const MOST_CONFIDENCE: f64 = 0.98;
/// Findings with less confidence are not reported.
const LEAST_CONFIDENCE: f64 = 0.5;
/// Largest share of its operations per second that a disk keeps without burst credits.
const FALL: f64 = 0.7;
/// Largest share of the earlier operations per second that the load keeps if it is affected.
const FELT: f64 = 0.9;
/// Operations of a disk after a fall may vary more than at a constant ceiling: the part begins with the fall.
const FLAT_ENOUGH: f64 = 0.25;

/// The causes that limited a run. `transitions` are the times of its level changes in order: a cause in one
/// part may be absent in another.
pub fn judge(bench: &Bench<'_>, transitions: &[TimeRange]) -> Verdict {
    let parts = time_ranges(bench, transitions).into_iter();
    let parts: Vec<Part<'_>> = parts.map(|time_range| Part::new(bench, time_range)).collect();
    if parts.is_empty() {
        return Verdict {
            headline: statement!("too-short-for-verdict"),
            causes: Vec::new(),
            not_watched: Vec::new(),
        };
    }
    let mut found: Vec<CauseFinding> = Vec::new();
    for part in &parts {
        merge(&mut found, of_part(part));
    }
    if let Some(burst) = collapse(&parts) {
        found.retain(|one| one.cause != Cause::DiskOperations && one.cause != Cause::SlowSync);
        found.push(burst);
    }
    let weight = |one: &CauseFinding| match one.cause {
        // It explains the change that people notice first.
        Cause::BurstCredits => f64::MAX,
        _ => one.confidence * spans(one).iter().map(|span| span.length_s()).sum::<f64>(),
    };
    found.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    Verdict { headline: headline(&found, bench), causes: found, not_watched: not_watched(&parts) }
}

/// The parts of the measured time between the level changes that are long enough.
fn time_ranges(bench: &Bench<'_>, transitions: &[TimeRange]) -> Vec<TimeRange> {
    let Some(measured) = bench.measured() else {
        return Vec::new();
    };
    // The sources are not synchronized. A reading with a level change belongs to neither part: its middle lies
    // less than half of its length after the change.
    let edge_s = bench.longest_reading_s() / 2.0;
    let inside = |one: &&TimeRange| one.end_s > measured.start_s && one.start_s < measured.end_s;
    let mut parts = Vec::new();
    let mut start_s = measured.start_s;
    for transition in transitions.iter().filter(inside) {
        parts.push(TimeRange { start_s, end_s: transition.start_s });
        start_s = transition.end_s + edge_s;
    }
    parts.push(TimeRange { start_s, end_s: measured.end_s });
    parts.retain(|part| part.length_s() >= SHORTEST_S);
    parts
}

/// A part of the measured time, whole and in slices: conditions on its means need not hold all the time.
struct Part<'a> {
    whole: Seen<'a>,
    slices: Vec<Seen<'a>>,
}

impl<'a> Part<'a> {
    fn new(bench: &'a Bench<'a>, time_range: TimeRange) -> Self {
        // A slice contains several readings of each source.
        let shortest_s = SHORTEST_S.max(bench.longest_reading_s() * READINGS_OF_SLICE);
        let count = (time_range.length_s() / shortest_s).floor().clamp(1.0, MOST_SLICES);
        let end_s = |place: f64| time_range.start_s + time_range.length_s() * place / count;
        let slices = (0..count as usize).map(|place| TimeRange {
            start_s: end_s(place as f64),
            end_s: end_s(place as f64 + 1.0),
        });
        Part {
            whole: Seen::new(bench, time_range),
            slices: slices.map(|slice| Seen::new(bench, slice)).collect(),
        }
    }

    /// Slices in which all needs of a rule hold. A need that a slice is too short for, such as a variation,
    /// counts as held.
    fn held(&self, rule: &Rule) -> Vec<bool> {
        let fails = |slice: &Seen<'_>| {
            let mut needs = rule.needs.iter().filter(|need| !need.measure.is_variation());
            needs.any(|need| matches!(look(rule, need, slice), Some((false, _))))
        };
        match self.slices.as_slice() {
            [_] => vec![true],
            slices => slices.iter().map(|slice| !fails(slice)).collect(),
        }
    }

    /// The time ranges of these slices, with neighbours joined.
    fn spans(&self, held: &[bool]) -> Vec<TimeRange> {
        let mut spans: Vec<TimeRange> = Vec::new();
        let slices = self.slices.iter().zip(held);
        for slice in slices.filter(|(_, held)| **held).map(|(slice, _)| slice.time_range) {
            add_span(&mut spans, slice);
        }
        spans
    }
}

/// The causes of one part, without causes that others explain while they hold.
fn of_part(part: &Part<'_>) -> Vec<CauseFinding> {
    let mut reported: Vec<(&Rule, CauseFinding, Vec<bool>)> = Vec::new();
    // In the order of the rules: a cause that another one explains does not explain any other.
    for rule in RULES {
        let Some(finding) = apply(rule, &part.whole) else {
            continue;
        };
        let mut held = part.held(rule);
        for (other, _, explained) in &reported {
            if other.hides.contains(&rule.cause) {
                held.iter_mut().zip(explained).for_each(|(held, explained)| *held &= !explained);
            }
        }
        if let Some(finding) = in_its_time(rule, finding, part, &held) {
            reported.push((rule, finding, held));
        }
    }
    reported.into_iter().map(|(_, finding, _)| finding).collect()
}

/// A finding with the times in which it held. Its evidence comes from the longest one.
fn in_its_time(
    rule: &Rule,
    finding: CauseFinding,
    part: &Part<'_>,
    held: &[bool],
) -> Option<CauseFinding> {
    if held.iter().all(|held| *held) {
        return Some(finding);
    }
    let spans = part.spans(held);
    let longest = spans.iter().max_by(|a, b| a.length_s().total_cmp(&b.length_s()))?;
    let of_longest = apply(rule, &Seen::new(part.whole.bench, *longest));
    let finding = of_longest.unwrap_or(finding);
    Some(CauseFinding {
        start_s: spans[0].start_s,
        end_s: spans[spans.len() - 1].end_s,
        spans: if spans.len() > 1 { spans } else { Vec::new() },
        ..finding
    })
}

fn apply(rule: &Rule, part: &Seen<'_>) -> Option<CauseFinding> {
    if !rule.is_for(part.bench) {
        return None;
    }
    let mut evidence = Vec::new();
    for condition in rule.needs {
        match look(rule, condition, part) {
            Some((true, seen)) => evidence.push(seen),
            None if condition.may_lack => {}
            _ => return None,
        }
    }
    let mut confidence = rule.confidence;
    for condition in rule.supports {
        match look(rule, condition, part) {
            Some((true, seen)) => {
                confidence += SUPPORT;
                evidence.push(seen);
            }
            Some((false, _)) => confidence -= CONTRADICTION,
            None => {}
        }
    }
    (confidence >= LEAST_CONFIDENCE).then(|| CauseFinding {
        cause: rule.cause,
        statement: Statement::new(rule.cause_code()).with("because", &evidence[0].statement),
        start_s: part.time_range.start_s,
        end_s: part.time_range.end_s,
        spans: Vec::new(),
        confidence: confidence.min(MOST_CONFIDENCE),
        evidence,
        advice: rule.advice.iter().copied().map(advice).collect(),
    })
}

/// Whether a condition holds, with the evidence.
fn look(rule: &Rule, condition: &Condition, part: &Seen<'_>) -> Option<(bool, Evidence)> {
    let read = part.read(condition.measure)?;
    let holds = match condition.bound {
        Bound::AtLeast(bound) => read.value >= bound,
        Bound::AtMost(bound) => read.value <= bound,
    };
    let measure = condition.measure;
    let said =
        Statement::new(rule.evidence_code(measure)).with("value", measure.number(read.value));
    Some((holds, evidence(measure, read, part.time_range, said)))
}

fn evidence(measure: Measure, read: Read, time_range: TimeRange, statement: Statement) -> Evidence {
    Evidence {
        statement,
        measure: measure.name(),
        value: read.value,
        series: read.series,
        start_s: time_range.start_s,
        end_s: time_range.end_s,
    }
}

fn advice(code: &str) -> Statement {
    Statement::new(format!("advice.{code}"))
}

/// All verdict codes of rules, with the codes of their subjects, evidence and advice.
pub fn codes() -> Vec<String> {
    let of_rule = |rule: &Rule| {
        let evidence = rule
            .needs
            .iter()
            .chain(rule.supports)
            .map(|condition| rule.evidence_code(condition.measure));
        let advice = rule.advice.iter().map(|code| advice(code).code);
        let all = evidence.chain(advice).chain([rule.cause_code(), rule.cause.subject().code]);
        all.collect::<Vec<_>>()
    };
    let of_burst = BURST_ADVICE.map(|code| advice(code).code);
    let burst = [Cause::BurstCredits.subject().code];
    RULES.iter().flat_map(of_rule).chain(of_burst).chain(burst).collect()
}

impl Rule {
    fn cause_code(&self) -> String {
        format!("cause.{}", self.code)
    }

    fn evidence_code(&self, measure: Measure) -> String {
        format!("evidence.{}.{}", self.code, measure.name())
    }

    /// Whether it applies to the load of a run and the location of its client.
    fn is_for(&self, bench: &Bench<'_>) -> bool {
        match self.load {
            Load::Any => true,
            Load::Closed => is_closed(bench),
            Load::Beside => !bench.is_elsewhere(),
        }
    }
}

/// The first part in which the disk is at a ceiling after a fall. Between this part and the last fast one there
/// may be parts of the way down.
fn collapse(parts: &[Part<'_>]) -> Option<CauseFinding> {
    (1..parts.len()).find_map(|slow| {
        parts[..slow].iter().rev().find_map(|fast| burst(&fast.whole, &parts[slow].whole))
    })
}

/// A disk that fell to a flat ceiling under a constant load.
fn burst(before: &Seen<'_>, after: &Seen<'_>) -> Option<CauseFinding> {
    let bench = before.bench;
    let (was_s, is_s) = (before.time_range, after.time_range);
    let fast = before.read(Measure::DiskOperationsPerS)?;
    let slow = after.read(Measure::DiskOperationsPerS)?;
    let backed_up = after.read(Measure::DiskBackedUpRatio)?;
    let variation = after.read(Measure::DiskOperationsVariationRatio)?.value;
    let rate_before = before.read(Measure::OperationsPerS)?.value;
    let rate = after.read(Measure::OperationsPerS)?;
    let (response_before, response_after) = (before.response_us()?, after.response_us()?);
    let is_felt = rate.value <= rate_before * FELT || response_after >= response_before / FELT;
    let fell = slow.value <= fast.value * FALL;
    if !fell || !is_felt || backed_up.value < BACKED_UP || variation > FLAT_ENOUGH {
        return None;
    }
    let measured = bench.measured()?;
    let offered_per_s = bench.document.recorded_plan().rate_per_s();
    let says_fast = statement!("burst-was-fast", rate = per_s(fast.value));
    let says_slow =
        statement!("burst-is-slow", rate = per_s(slow.value), variation = percent(variation));
    let says_waited = statement!("burst-requests-waited", share = percent(backed_up.value));
    let says_rate = statement!(
        "burst-rate-fell",
        before = per_s(rate_before),
        after = per_s(rate.value),
        offered = offered_per_s.map(per_s)
    );
    Some(CauseFinding {
        cause: Cause::BurstCredits,
        statement: statement!(
            "burst-credits",
            bytes = ceiling(after),
            operations = number(slow.value),
            after = number(was_s.end_s - measured.start_s)
        ),
        // The time between is the way down.
        start_s: was_s.end_s,
        end_s: is_s.end_s,
        spans: Vec::new(),
        confidence: if variation <= FLAT { 0.9 } else { 0.8 },
        evidence: vec![
            evidence(Measure::DiskOperationsPerS, fast, was_s, says_fast),
            evidence(Measure::DiskOperationsPerS, slow, is_s, says_slow),
            evidence(Measure::DiskBackedUpRatio, backed_up, is_s, says_waited),
            evidence(Measure::OperationsPerS, rate, is_s, says_rate),
        ],
        advice: BURST_ADVICE.map(advice).into(),
    })
}

/// The bytes per second of a disk at its ceiling, if it has large requests; otherwise its operations are the
/// ceiling.
fn ceiling(part: &Seen<'_>) -> Option<Number> {
    let is_large = |size: &Read| size.value >= LARGE_BYTES;
    part.read(Measure::DiskRequestBytes).filter(is_large)?;
    let bytes = part.read(Measure::DiskBytesPerS)?;
    Some(Measure::DiskBytesPerS.number(bytes.value))
}

/// Adds findings of a part to earlier ones. The same cause in several parts becomes one finding, without the
/// times between separate parts. The evidence comes from the longest part.
fn merge(found: &mut Vec<CauseFinding>, new: Vec<CauseFinding>) {
    for finding in new {
        let Some(known) = found.iter_mut().find(|known| known.cause == finding.cause) else {
            found.push(finding);
            continue;
        };
        let mut spans = spans(known);
        for span in self::spans(&finding) {
            add_span(&mut spans, span);
        }
        let about = |finding: &CauseFinding| {
            let first = finding.evidence.first();
            first.map_or(0.0, |evidence| evidence.end_s - evidence.start_s)
        };
        if about(&finding) > about(known) {
            *known = finding;
        }
        (known.start_s, known.end_s) = (spans[0].start_s, spans[spans.len() - 1].end_s);
        known.spans = if spans.len() > 1 { spans } else { Vec::new() };
    }
}

/// Inserts a time range in order, and joins ranges that are too close for a part between them.
fn add_span(spans: &mut Vec<TimeRange>, new: TimeRange) {
    let place = spans.partition_point(|span| span.start_s <= new.start_s);
    spans.insert(place, new);
    let all = std::mem::take(spans);
    for span in all {
        match spans.last_mut() {
            Some(last) if span.start_s - last.end_s < SHORTEST_S - ROUNDING_S => {
                last.end_s = last.end_s.max(span.end_s);
            }
            _ => spans.push(span),
        }
    }
}

fn whole(finding: &CauseFinding) -> TimeRange {
    TimeRange { start_s: finding.start_s, end_s: finding.end_s }
}

/// The times in which a cause held.
fn spans(finding: &CauseFinding) -> Vec<TimeRange> {
    if finding.spans.is_empty() { vec![whole(finding)] } else { finding.spans.clone() }
}

fn headline(found: &[CauseFinding], bench: &Bench<'_>) -> Statement {
    match found.first() {
        Some(first) => first.statement.clone(),
        None if bench.tables.is_empty() => statement!("nothing-watched"),
        None => statement!("nothing-exhausted"),
    }
}

/// Causes that no part could decide because a required figure was not watched. A watched figure that rules a
/// cause out decides, whatever else is missing: an idle disk has no operations that could vary.
fn not_watched(parts: &[Part<'_>]) -> Vec<Cause> {
    let is_asked = |rule: &&Rule| parts.iter().all(|part| rule.is_for(part.whole.bench));
    let is_blind = |rule: &Rule| parts.iter().all(|part| is_undecided(rule, &part.whole));
    let mut causes: Vec<(Cause, bool)> = Vec::new();
    for rule in RULES.iter().filter(is_asked) {
        match causes.iter_mut().find(|(cause, _)| *cause == rule.cause) {
            // Any of several rules for a cause can decide it.
            Some((_, is_unknown)) => *is_unknown &= is_blind(rule),
            None => causes.push((rule.cause, is_blind(rule))),
        }
    }
    let unknown = causes.into_iter().filter(|(_, is_unknown)| *is_unknown);
    unknown.map(|(cause, _)| cause).collect()
}

/// Whether all known conditions hold while others are unknown.
fn is_undecided(rule: &Rule, part: &Seen<'_>) -> bool {
    let needs = rule.needs.iter().filter(|condition| !condition.may_lack);
    let looked: Vec<Option<bool>> =
        needs.map(|condition| look(rule, condition, part).map(|(holds, _)| holds)).collect();
    !looked.contains(&Some(false)) && looked.contains(&None)
}
