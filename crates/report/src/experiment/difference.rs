//! The answer of a comparison of A and B: its sentence, its tiles and its table, for `dyno ab`, `dyno compare` and the
//! confirmation of `dyno tune`.

use super::ratios::statistic;
use crate::caveat::{NO_INTERVAL, SINGLE_RUNS};
use crate::costs;
use crate::page::Figure as Tile;
use crate::page::table::{Cell, Table, Tone};
use crate::texts::{list, text};
use dyno_analyze::experiment::ab::undecided;
use dyno_analyze::experiment::limits::{Changed, others};
use dyno_record::experiment::{
    AbAnswer, Basis, ComparedFigure, Comparison, ComparisonVerdict, CostKind, Figure, Judged,
    Outcome, Side, Statistic,
};
use dyno_record::model::{Caveat, CaveatKind};
use dyno_record::quantity::Quantity;

/// Ratios from this value on are written as a multiple.
const MANY_TIMES: f64 = 3.0;

/// Largest number of other figures in the sentence.
const MOST_OTHERS: usize = 5;

/// A ratio as a change: `+3.6 %`, `−14 %`, or `× 22`.
pub(crate) fn change(ratio: f64) -> String {
    let change = ratio - 1.0;
    match ratio {
        _ if ratio >= MANY_TIMES => format!("× {}", Quantity::times(ratio).brief()),
        _ if change.abs() < 0.000_5 => "0.0 %".to_owned(),
        _ => Quantity::ratio(change).brief().signed().to_string(),
    }
}

/// The interval of a ratio as changes: `−7.3 to +15.7 %`.
pub(crate) fn changes(low: f64, high: f64) -> String {
    let (low, high) = (change(low), change(high));
    // The unit stands once.
    let low = if high.ends_with(" %") { low.trim_end_matches(" %") } else { &low };
    format!("{low} to {high}")
}

/// The interval of a row, or the reason why it has no useful one.
pub(super) fn range(row: &Comparison) -> String {
    match row.basis {
        // The windows of one run do not show how much runs vary.
        Basis::WithinRun => "unknown".to_owned(),
        Basis::BetweenRuns if row.is_vague() => "too few runs".to_owned(),
        Basis::BetweenRuns => changes(row.ratio.low, row.ratio.high),
    }
}

/// The ends of the interval of a row, if it has a useful one.
pub(super) fn interval(row: &Comparison) -> Option<(f64, f64)> {
    let is_known = row.basis == Basis::BetweenRuns && !row.is_vague();
    is_known.then_some((row.ratio.low, row.ratio.high))
}

/// Reason to doubt a comparison even without any caveat.
pub(super) fn lack(answer: &AbAnswer) -> Option<&'static str> {
    let is_within_run = answer.comparisons.first().is_some_and(|row| row.basis == Basis::WithinRun);
    if is_within_run { Some(SINGLE_RUNS) } else { lacks_interval(answer).then_some(NO_INTERVAL) }
}

/// Whether the rate or the p99 has no useful interval.
fn lacks_interval(answer: &AbAnswer) -> bool {
    let is_known = |wanted| {
        let mut rows = answer.comparisons.iter();
        rows.any(|row| row.statistic == wanted && interval(row).is_some())
    };
    !is_known(Statistic::Rate) || !is_known(Statistic::Percentile { percent: 99.0 })
}

/// ` (−7.3 to +15.7 %)`, or nothing.
fn in_brackets(ends: Option<(f64, f64)>) -> String {
    ends.map_or(String::new(), |(low, high)| format!(" ({})", changes(low, high)))
}

fn ends(ratio: Figure) -> Option<(f64, f64)> {
    ratio.low.zip(ratio.high)
}

/// `12 % higher`, `28 % smaller`, `22 times as high`; the words are for more, less and many times.
fn size(ratio: f64, [more, less, times]: [&str; 3]) -> String {
    if ratio >= MANY_TIMES {
        return format!("{} times as {times}", Quantity::times(ratio).brief());
    }
    let size = Quantity::ratio((ratio - 1.0).abs()).brief();
    format!("{size} {}", if ratio >= 1.0 { more } else { less })
}

const AMOUNT: [&str; 3] = ["higher", "lower", "high"];
const SPEED: [&str; 3] = ["faster", "slower", "fast"];
const FILES: [&str; 3] = ["larger", "smaller", "large"];

/// Name of a figure in a sentence, with the words for its change.
fn named(figure: ComparedFigure) -> (String, [&'static str; 3]) {
    match figure {
        ComparedFigure::Statistic(Statistic::Percentile { percent }) => {
            (format!("p{percent}"), AMOUNT)
        }
        ComparedFigure::Statistic(one) => (statistic(one), AMOUNT),
        ComparedFigure::Cost(CostKind::SpaceAmplification) => ("files".to_owned(), FILES),
        ComparedFigure::Cost(kind) => (costs::label(kind).to_owned(), AMOUNT),
    }
}

/// Parts of the keys of settings whose effect depends on whether the data fits into the cache.
const OF_STORAGE: [&str; 7] =
    ["cache", "checkpoint", "compressor", "data", "disk", "journal", "storage"];

/// The caveats that can change the decision. Data in the cache of both sides matters only to settings of storage.
pub(super) fn relevant_caveats<'a>(
    caveats: &[Caveat],
    mut differing: impl Iterator<Item = &'a str>,
) -> Vec<Caveat> {
    let is_of_storage = differing.any(|key| OF_STORAGE.iter().any(|part| key.contains(part)));
    let is_relevant = |one: &&Caveat| is_of_storage || one.kind != CaveatKind::FitsInCache;
    caveats.iter().filter(is_relevant).cloned().collect()
}

/// What would decide a comparison that cannot be decided yet.
pub(super) struct Remedy {
    /// Without variation between runs, such as `make more pairs`.
    pub(super) of_one_run: &'static str,
    /// Otherwise, such as `about 145 pairs, 50 min, would`.
    pub(super) more: String,
}

/// The answer in a sentence, and in one more for all other figures that certainly differ.
pub(super) fn sentence(
    answer: &AbAnswer,
    labels: &[String; 2],
    limits: &[Judged],
    remedy: &Remedy,
) -> String {
    let parts = [
        of_limits(limits, &labels[1], remedy),
        Some(of_decision(answer, labels, remedy, limits.is_empty())),
        of_others(answer),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(" ")
}

fn of_decision(
    answer: &AbAnswer,
    [a, b]: &[String; 2],
    remedy: &Remedy,
    has_remedy: bool,
) -> String {
    let Some(row) = answer.decision() else {
        let why = undecided(answer).map_or(String::new(), |why| format!(": {}", text(&why)));
        return format!("Cannot tell whether {b} differs from {a}{why}.");
    };
    let value = row.ratio.value;
    let name = statistic(row.statistic);
    let is_same = (value - 1.0).abs() < 0.000_5;
    let is_undecided =
        matches!(row.verdict, ComparisonVerdict::NotEnoughData | ComparisonVerdict::NotComparable);
    // A difference that may be chance is a measurement, not a property of B.
    let [is, has] = if is_undecided { ["measured", "measured with"] } else { ["is", "has"] };
    let subject = match row.statistic {
        Statistic::Rate if is_same => format!("{b} {is} as fast as {a}"),
        Statistic::Rate => format!("{b} {is} {}", size(value, SPEED)),
        _ if is_same => format!("{b} {has} the {name} of {a}"),
        _ => format!("{b} {has} a {} {name}", size(value, AMOUNT)),
    };
    let found = subject + &in_brackets(interval(row));
    let then = |remedy: &str| match has_remedy {
        true => format!("; {remedy}"),
        false => String::new(),
    };
    match row.verdict {
        ComparisonVerdict::NoDifferenceLargerThan { margin_ratio } => {
            format!("{found}: no difference larger than {}.", percent(margin_ratio))
        }
        _ if !is_undecided => format!("{found}."),
        _ if row.basis == Basis::WithinRun => {
            let why = "one run of each does not show how much runs vary";
            format!("Cannot tell, because {why}: {found} here{}.", then(remedy.of_one_run))
        }
        _ => format!("Cannot tell yet: {found}{}.", then(&remedy.more)),
    }
}

/// `5 %`, without digits from binary fractions.
fn percent(ratio: f64) -> String {
    format!("{} %", Quantity::exact((ratio * 1e8).round() / 1e6))
}

/// The other figures that certainly differ.
fn of_others(answer: &AbAnswer) -> Option<String> {
    let others = others(answer);
    let mut said: Vec<String> = others.iter().take(MOST_OTHERS).map(changed).collect();
    let rest = others.len().saturating_sub(MOST_OTHERS);
    if rest > 0 {
        said.push(format!("{rest} more in the tables"));
    }
    (!said.is_empty()).then(|| format!("Certain: {}.", list(&said)))
}

fn changed(one: &Changed) -> String {
    let (name, words) = named(one.figure);
    format!("{name} {}", size(one.ratio.value, words))
}

/// Whether the limits are kept.
fn of_limits(limits: &[Judged], b: &str, remedy: &Remedy) -> Option<String> {
    let of = |outcome: Outcome| -> Option<String> {
        let those = limits.iter().filter(|one| one.outcome == outcome);
        let said: Vec<String> = those.map(against_limit).collect();
        (!said.is_empty()).then(|| said.join("; "))
    };
    let exceeded = of(Outcome::Exceeded).map(|said| format!("{b} is worse than allowed: {said}."));
    let undecided = of(Outcome::Undecided).map(|said| {
        format!("Cannot tell whether {b} is worse than allowed: {said}; {}.", remedy.more)
    });
    let is_kept = exceeded.is_none() && undecided.is_none();
    let kept = of(Outcome::Kept).filter(|_| is_kept);
    let kept = kept.map(|said| format!("{b} is not worse than allowed: {said}."));
    let said: Vec<String> = [exceeded, undecided, kept].into_iter().flatten().collect();
    (!said.is_empty()).then(|| said.join(" "))
}

/// `p99 +14 % (+11 to +18 %), limit +10 %`.
pub fn against_limit(one: &Judged) -> String {
    let (name, _) = named(one.limit.figure);
    let measured = one.ratio.map_or("not compared".to_owned(), |ratio| {
        format!("{}{}", change(ratio.value), in_brackets(ends(ratio)))
    });
    format!("{name} {measured}, limit {}", most(one))
}

/// The largest change that is allowed: `+10 %`, or `−10 %` where less is worse.
fn most(one: &Judged) -> String {
    let sign = if one.limit.figure.larger_is_better() { '−' } else { '+' };
    format!("{sign}{}", percent(one.limit.margin_ratio))
}

/// The limits with their outcomes; `None` without any.
pub(super) fn limits_table(limits: &[Judged]) -> Option<Table> {
    Table::of(limits)
        .text("figure", |one| Cell::new(named(one.limit.figure).0, Tone::Strong))
        .number("limit", 240, most)
        .number("change", 250, |one| Cell::known(one.ratio.map(|ratio| change(ratio.value))))
        .number("95 % interval", 230, |one| {
            let ends = one.ratio.and_then(ends);
            Cell::known(ends.map(|(low, high)| changes(low, high)))
        })
        .text("outcome", |one| match one.outcome {
            Outcome::Kept => Cell::new("kept", Tone::Strong),
            Outcome::Exceeded => Cell::new("exceeded", Tone::Alarm),
            Outcome::Undecided => Cell::new("cannot tell", Tone::Doubt),
        })
        .known("Limits")
}

/// A tile for each figure, with the caveats of rates and of times.
pub(super) fn tiles(
    answer: &AbAnswer,
    [rate, time]: &[Vec<usize>; 2],
    value: impl Fn(Side, Statistic) -> String,
) -> Vec<Tile> {
    let tile = |row: &Comparison| {
        let marks = if row.statistic == Statistic::Rate { rate } else { time };
        let [a, b] = [Side::A, Side::B].map(|side| value(side, row.statistic));
        let kind = if interval(row).is_some() { "95 %" } else { "no interval:" };
        Tile::new(statistic(row.statistic), Quantity::ratio(row.ratio.value - 1.0).signed())
            .with_note(format!("{a} → {b}; {kind} {}", range(row)))
            .marked(marks)
    };
    answer.comparisons.iter().map(tile).collect()
}

/// Widest column title that leaves room for the intervals on 80 columns.
const WIDEST_TITLE: usize = 12;

/// The column titles of both sides: their labels if they are short.
pub(super) fn titles(labels: [String; 2]) -> [String; 2] {
    match labels.iter().all(|label| label.chars().count() <= WIDEST_TITLE) {
        true => labels,
        false => ["A", "B"].map(str::to_owned),
    }
}

/// The comparisons with the values of both sides. A limit that is exceeded is as certain as the deciding figure.
pub(super) fn table(
    answer: &AbAnswer,
    [a, b]: &[String; 2],
    limits: &[Judged],
    value: impl Fn(Side, Statistic) -> String,
) -> Table {
    let others = others(answer);
    Table::of(&answer.comparisons)
        .text("figure", |row| Cell::new(statistic(row.statistic), Tone::Strong))
        .number(a, 240, |row| value(Side::A, row.statistic))
        .number(b, 245, |row| value(Side::B, row.statistic))
        .number("change", 250, |row| change(row.ratio.value))
        .number("95 % interval", 230, range)
        .text("verdict", |row| {
            let figure = ComparedFigure::Statistic(row.statistic);
            let is_exceeded =
                |one: &Judged| one.limit.figure == figure && one.outcome == Outcome::Exceeded;
            // Of several figures, one differs by chance.
            let is_certain = row.statistic == answer.deciding
                || others.iter().any(|one| one.figure == figure)
                || limits.iter().any(is_exceeded);
            verdict(row, is_certain)
        })
        .table("Comparisons")
}

fn verdict(row: &Comparison, is_certain: bool) -> Cell {
    match row.verdict {
        ComparisonVerdict::Faster if is_certain => Cell::new("B is better", Tone::Strong),
        ComparisonVerdict::Slower if is_certain => Cell::new("B is worse", Tone::Alarm),
        ComparisonVerdict::NoDifferenceLargerThan { margin_ratio } => {
            Cell::new(format!("within {}", percent(margin_ratio)), Tone::Plain)
        }
        _ => Cell::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::estimate::Estimate;
    use dyno_record::experiment::{AbEnd, Limit};
    use dyno_record::statement::Statement;

    fn row(statistic: Statistic, [low, value, high]: [f64; 3]) -> Comparison {
        Comparison {
            statistic,
            ratio: Estimate { value, low, high, confidence_ratio: 0.95 },
            verdict: ComparisonVerdict::NotEnoughData,
            margin_ratio: 0.05,
            basis: Basis::BetweenRuns,
            pairs: 5,
            pair_deviation_ratio: 0.05,
            degrees_of_freedom: Some(4.0),
            order_effect_ratio: None,
        }
    }

    fn answer(comparisons: Vec<Comparison>) -> AbAnswer {
        AbAnswer {
            deciding: comparisons[0].statistic,
            comparisons,
            pairs_needed: Some(145),
            end: AbEnd::Spent,
            set_aside: Vec::new(),
            demands: Vec::new(),
            costs: Vec::new(),
            explanation: None,
        }
    }

    fn said(answer: &AbAnswer, limits: &[Judged]) -> String {
        let remedy =
            Remedy { of_one_run: "repeat", more: "about 145 pairs, 50 min, would".to_owned() };
        sentence(answer, &["A", "B"].map(str::to_owned), limits, &remedy)
    }

    #[test]
    fn changes_are_percents_or_multiples() {
        let all = [0.5, 0.927, 0.99996, 1.036, 1.157, 22.3].map(change);
        assert_eq!(all, ["−50 %", "−7.3 %", "0.0 %", "+3.6 %", "+16 %", "× 22"]);
        assert_eq!(changes(0.927, 1.157), "−7.3 to +16 %");
        assert_eq!(changes(2.5, 9.0), "+150 % to × 9.0");
    }

    #[test]
    fn undecided_answer_says_what_would_decide() {
        let found = answer(vec![row(Statistic::Rate, [0.927, 1.036, 1.157])]);
        assert_eq!(
            said(&found, &[]),
            "Cannot tell yet: B measured 3.6 % faster (−7.3 to +16 %); about 145 pairs, 50 min, would."
        );
        let p99 = Statistic::Percentile { percent: 99.0 };
        let found = answer(vec![row(p99, [0.8, 1.2, 1.8])]);
        assert_eq!(
            said(&found, &[]),
            "Cannot tell yet: B measured with a 20 % higher p99 response (−20 to +80 %); about 145 pairs, 50 min, would."
        );
    }

    #[test]
    fn one_run_of_each_has_no_interval_and_no_claim() {
        let mut found = answer(vec![row(Statistic::Rate, [0.57, 0.58, 0.59])]);
        found.comparisons[0].basis = Basis::WithinRun;
        let said = said(&found, &[]);
        assert!(said.starts_with("Cannot tell, ") && said.contains("42 % slower here"), "{said}");
        assert!(said.ends_with("; repeat.") && !said.contains("95 %"), "{said}");
    }

    #[test]
    fn certain_answer_names_the_other_figures() {
        let p99 = Statistic::Percentile { percent: 99.0 };
        let mut found = answer(vec![
            row(p99, [1.2, 1.4, 1.65]),
            row(Statistic::Rate, [0.98, 1.0, 1.02]),
            row(Statistic::MeanTime, [1.3, 1.4, 1.5]),
        ]);
        found.comparisons[0].verdict = ComparisonVerdict::Slower;
        let said = said(&found, &[]);
        assert_eq!(
            said,
            "B has a 40 % higher p99 response (+20 to +65 %). Certain: mean response 40 % higher."
        );
    }

    #[test]
    fn figure_beyond_its_limit_has_a_verdict() {
        let p95 = Statistic::Percentile { percent: 95.0 };
        let ratio = [1.06, 1.13, 1.21];
        let same = [0.9, 1.0, 1.1];
        let mut found = answer(vec![
            row(Statistic::Rate, same),
            row(p95, ratio),
            row(Statistic::MeanTime, same),
        ]);
        found.comparisons[1].verdict = ComparisonVerdict::Slower;
        // Certain alone, but not as one of several figures.
        found.comparisons[1].degrees_of_freedom = Some(1.0);
        let [low, value, high] = ratio;
        let limit = |outcome| Judged {
            limit: Limit { figure: "p95".parse().unwrap(), margin_ratio: 0.05 },
            ratio: Some(Figure { value, low: Some(low), high: Some(high) }),
            outcome,
        };
        let shown = |limits: &[Judged]| {
            let titles = ["A", "B"].map(str::to_owned);
            let table = table(&found, &titles, limits, |_, _| "1".to_owned());
            table.rows[1].last().unwrap().text.clone()
        };
        assert_eq!(shown(&[limit(Outcome::Exceeded)]), "B is worse");
        let undecided = shown(&[limit(Outcome::Undecided)]);
        assert_ne!(undecided, "B is worse");
    }

    #[test]
    fn data_in_the_cache_matters_to_settings_of_storage() {
        let of = |kind| Caveat::of_run(kind, Statement::recorded("message"));
        let all = [of(CaveatKind::FitsInCache), of(CaveatKind::Durability)];
        let shown = |key: &str| relevant_caveats(&all, [key].into_iter()).len();
        assert_eq!(shown("server.block_compressor"), 2);
        assert_eq!(shown("client.clients"), 1);
    }

    #[test]
    fn limits_come_first() {
        let found = answer(vec![row(Statistic::Rate, [0.927, 1.036, 1.157])]);
        let judged = |outcome| Judged {
            limit: Limit { figure: "rate".parse().unwrap(), margin_ratio: 0.1 },
            ratio: Some(Figure { value: 1.036, low: Some(0.927), high: Some(1.157) }),
            outcome,
        };
        for (outcome, start) in [
            (
                Outcome::Kept,
                "B is not worse than allowed: rate +3.6 % (−7.3 to +16 %), limit −10 %.",
            ),
            (
                Outcome::Exceeded,
                "B is worse than allowed: rate +3.6 % (−7.3 to +16 %), limit −10 %.",
            ),
            (Outcome::Undecided, "Cannot tell whether B is worse than allowed: rate"),
        ] {
            let said = said(&found, &[judged(outcome)]);
            assert!(said.starts_with(start), "{said}");
            // The remedy is said once.
            let remedies = said.matches("would").count();
            assert_eq!(remedies, usize::from(outcome == Outcome::Undecided), "{said}");
        }
    }
}
