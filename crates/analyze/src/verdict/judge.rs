//! Applies the rules to the parts of a run between its changes of level.

use super::bench::{Bench, Stretch};
use super::measures::{Measure, plan_number};
use super::rules::{BACKED_UP, Bound, Condition, Load, RULES, Rule, Unit};
use super::{Cause, CauseFinding, Evidence, Verdict};
use crate::experiment::words;

/// A part that is shorter decides nothing: its means are about single moments.
const SHORTEST_S: f64 = 5.0;
/// What each supporting condition adds to the confidence, or takes from it.
const SUPPORT: f64 = 0.05;
const CONTRADICTION: f64 = 0.1;
/// Nothing that is observed from outside is certain.
const MOST_CONFIDENCE: f64 = 0.98;
/// A finding that is less sure is not told.
const LEAST_CONFIDENCE: f64 = 0.5;
/// Share of its operations per second that a disk keeps at most when its credits are used up.
const FALL: f64 = 0.7;
/// Share of the operations per second of before that the load keeps at most when it feels that.
const FELT: f64 = 0.9;

/// What held a run up. `shifts_s` are the times at which its level changed, from the start of the run: what is found
/// in one part may be absent in another.
pub fn judge(bench: &Bench<'_>, shifts_s: &[f64]) -> Verdict {
    let stretches = stretches(bench, shifts_s);
    if stretches.is_empty() {
        return Verdict {
            headline: "The measured time is too short for a verdict.".to_owned(),
            ..Verdict::default()
        };
    }
    let mut found: Vec<CauseFinding> = Vec::new();
    for stretch in &stretches {
        merge(&mut found, of_stretch(bench, *stretch));
    }
    if let Some(burst) = stretches
        .windows(2)
        .find_map(|pair| burst(bench, pair[0], pair[1]))
    {
        found.retain(|one| one.cause != Cause::DiskOperations && one.cause != Cause::SlowSync);
        found.push(burst);
    }
    let weight = |one: &CauseFinding| match one.cause {
        // It is the reason for the change that a person sees first.
        Cause::BurstCredits => f64::MAX,
        _ => one.confidence * (one.end_s - one.start_s),
    };
    found.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    Verdict {
        headline: headline(&found, bench),
        causes: found,
        not_watched: not_watched(bench, &stretches),
    }
}

/// The parts of the measured time between the changes of level that are long enough.
fn stretches(bench: &Bench<'_>, shifts_s: &[f64]) -> Vec<Stretch> {
    let Some(measured) = bench.measured() else {
        return Vec::new();
    };
    let mut ends: Vec<f64> = shifts_s
        .iter()
        .copied()
        .filter(|at_s| *at_s > measured.start_s && *at_s < measured.end_s)
        .collect();
    ends.sort_by(f64::total_cmp);
    ends.push(measured.end_s);
    let mut start_s = measured.start_s;
    let mut parts = Vec::new();
    for end_s in ends {
        let part = Stretch { start_s, end_s };
        if part.length_s() >= SHORTEST_S {
            parts.push(part);
        }
        start_s = end_s;
    }
    parts
}

/// The causes of one part, without those that others explain.
fn of_stretch(bench: &Bench<'_>, stretch: Stretch) -> Vec<CauseFinding> {
    let found: Vec<(&Rule, CauseFinding)> = RULES
        .iter()
        .filter_map(|rule| Some((rule, apply(rule, bench, stretch)?)))
        .collect();
    // In the order of the rules: what is explained by another cause explains none itself.
    let mut hidden: Vec<Cause> = Vec::new();
    let mut told = Vec::new();
    for (rule, finding) in found {
        if !hidden.contains(&finding.cause) {
            hidden.extend(rule.hides);
            told.push(finding);
        }
    }
    told
}

fn apply(rule: &Rule, bench: &Bench<'_>, stretch: Stretch) -> Option<CauseFinding> {
    if rule.load == Load::Closed && !is_closed(bench) {
        return None;
    }
    let mut evidence = Vec::new();
    for condition in rule.needs {
        let (holds, seen) = look(condition, bench, stretch)?;
        if !holds {
            return None;
        }
        evidence.push(seen);
    }
    let mut confidence = rule.confidence;
    for condition in rule.supports {
        match look(condition, bench, stretch) {
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
        text: format!("{}: {}.", rule.text, evidence[0].text),
        start_s: stretch.start_s,
        end_s: stretch.end_s,
        confidence: confidence.min(MOST_CONFIDENCE),
        evidence,
        advice: rule.advice.iter().map(|text| (*text).to_owned()).collect(),
    })
}

/// Whether a condition holds, and what was seen.
fn look(condition: &Condition, bench: &Bench<'_>, stretch: Stretch) -> Option<(bool, Evidence)> {
    let read = condition.measure.read(bench, stretch)?;
    let holds = match condition.bound {
        Bound::AtLeast(bound) => read.value >= bound,
        Bound::AtMost(bound) => read.value <= bound,
    };
    let evidence = Evidence {
        text: condition
            .says
            .replace("{}", &written(read.value, condition.unit)),
        measure: condition.measure.name(),
        value: read.value,
        series: read.series,
        start_s: stretch.start_s,
        end_s: stretch.end_s,
    };
    Some((holds, evidence))
}

fn written(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Percent => words::percent(value),
        Unit::Count => words::number(value),
        Unit::PerSecond => words::rate(value),
        Unit::Bytes => words::bytes(value),
        Unit::BytesPerSecond => format!("{}/s", words::bytes(value)),
        Unit::Milliseconds => words::time(value / 1e3),
    }
}

fn is_closed(bench: &Bench<'_>) -> bool {
    let kind = bench.document.plan.pointer("/schedule/kind");
    kind.and_then(serde_json::Value::as_str) == Some("closed")
}

/// A disk that fell to a flat ceiling under a load that did not change.
fn burst(bench: &Bench<'_>, before: Stretch, after: Stretch) -> Option<CauseFinding> {
    let read = |measure: Measure, stretch| measure.read(bench, stretch);
    let (fast, slow) = (
        read(Measure::DiskOperationsPerS, before)?,
        read(Measure::DiskOperationsPerS, after)?,
    );
    let saturation = read(Measure::DiskBackedUpRatio, after)?;
    let variation = read(Measure::DiskOperationsVariationRatio, after)?;
    let (rate_before, rate_after) = (bench.rate_per_s(before)?, bench.rate_per_s(after)?);
    let (response_before, response_after) = (bench.response_us(before)?, bench.response_us(after)?);
    let is_felt = rate_after <= rate_before * FELT || response_after >= response_before / FELT;
    let fell = slow.value <= fast.value * FALL;
    if !fell || !is_felt || saturation.value < BACKED_UP || variation.value > 0.25 {
        return None;
    }
    let measured = bench.measured()?;
    let after_s = after.start_s - measured.start_s;
    let evidence =
        |measure: Measure, value: f64, series: Vec<String>, at: Stretch, text: String| Evidence {
            text,
            measure: measure.name(),
            value,
            series,
            start_s: at.start_s,
            end_s: at.end_s,
        };
    let load = match plan_number(bench, "/schedule/rate_per_s") {
        Some(rate) => format!("{} were offered all the time", words::rate(rate)),
        None => "the same clients asked all the time".to_owned(),
    };
    let ceiling = words::number(slow.value);
    Some(CauseFinding {
        cause: Cause::BurstCredits,
        text: format!(
            "Disk IOPS ceiling reached at {ceiling} IOPS after {} s: burst credits exhausted or volume throttled.",
            words::number(after_s)
        ),
        start_s: after.start_s,
        end_s: after.end_s,
        confidence: if variation.value <= 0.15 { 0.9 } else { 0.8 },
        evidence: vec![
            evidence(
                Measure::DiskOperationsPerS,
                fast.value,
                fast.series.clone(),
                before,
                format!("the disk did {} before", words::rate(fast.value)),
            ),
            evidence(
                Measure::DiskOperationsPerS,
                slow.value,
                slow.series.clone(),
                after,
                format!("and {} after, which varied by {}", words::rate(slow.value), words::percent(variation.value)),
            ),
            evidence(
                Measure::DiskBackedUpRatio,
                saturation.value,
                saturation.series.clone(),
                after,
                format!("requests waited before it {} of the time after", words::percent(saturation.value)),
            ),
            evidence(
                Measure::OperationsPerS,
                rate_after,
                Vec::new(),
                after,
                format!("the rate went from {} to {}; {load}", words::rate(rate_before), words::rate(rate_after)),
            ),
        ],
        advice: vec![
            "look at the volume's balance of burst credits, and take one with more provisioned operations, or several (RAID 0)".to_owned(),
            "measure for longer than the credits last: the rate before the fall is not what the server can do for hours".to_owned(),
        ],
    })
}

/// Puts findings of a part beside those of earlier ones; the same cause in parts that follow each other is one.
fn merge(found: &mut Vec<CauseFinding>, new: Vec<CauseFinding>) {
    for finding in new {
        match found.iter_mut().find(|known| known.cause == finding.cause) {
            Some(known) => {
                let longer = finding.end_s - finding.start_s > known.end_s - known.start_s;
                let (start_s, end_s) = (known.start_s, finding.end_s);
                if longer {
                    *known = finding;
                }
                (known.start_s, known.end_s) = (start_s, end_s);
            }
            None => found.push(finding),
        }
    }
}

fn headline(found: &[CauseFinding], bench: &Bench<'_>) -> String {
    match found.first() {
        Some(first) => first.text.clone(),
        None if bench.tables.is_empty() => {
            "Nothing was watched: what held the run up cannot be told.".to_owned()
        }
        None => "No resource that was watched was exhausted.".to_owned(),
    }
}

/// Causes that no part could decide, because a figure that they need was not watched.
fn not_watched(bench: &Bench<'_>, stretches: &[Stretch]) -> Vec<Cause> {
    let is_blind = |rule: &&Rule| {
        let is_read = |condition: &Condition| {
            stretches
                .iter()
                .any(|stretch| condition.measure.read(bench, *stretch).is_some())
        };
        !rule.needs.iter().all(is_read)
    };
    RULES
        .iter()
        .filter(is_blind)
        .map(|rule| rule.cause)
        .collect()
}
