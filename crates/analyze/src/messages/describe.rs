//! Findings with their numbers.

use super::judge::SLOWER_RATIO;
use super::trend::LEAST_POINTS;
use crate::values::{exact, number, rate, time};
use dyno_record::document::variant_name;
use dyno_record::statement;
use dyno_record::statement::{Number, Statement};
use dyno_record::tail::{Cause, InFlight, Judgement, Part, QueuePlace, Timeline, Trend};

/// Largest deviation of Little's ratio from 1 that still agrees: medians stand for means, and inserts in flight
/// at the end of the run are counted on one side only.
const LITTLE_TOLERANCE: f64 = 0.25;

pub(super) fn judgement(timeline: &Timeline, found: &Judgement) -> Statement {
    let mut parts = match found.cause {
        Cause::TooFew => vec![statement!(
            "too-few-messages",
            points = timeline.points.len(),
            least = LEAST_POINTS
        )],
        Cause::Stationary => vec![stationary(timeline, found)],
        Cause::MoreOfferedThanSent => vec![more_offered(timeline, found)],
        Cause::UnboundedInFlight => unbounded(timeline, found),
        Cause::Server => vec![server(timeline, found)],
        Cause::Delivery => vec![delivery(timeline, found)],
    };
    parts.extend(connection_wait(timeline, found));
    if found.cause != Cause::TooFew {
        parts.extend(slower(timeline));
    }
    statement!("messages", parts = parts)
}

/// A time in nanoseconds, which may be negative.
pub(super) fn duration(ns: f64) -> Number {
    time(ns / 1e9)
}

fn per_thousand(trend: Option<&Trend>) -> Option<Number> {
    trend.map(|trend| duration(trend.slope * 1000.0))
}

fn tau(trend: Option<&Trend>) -> Option<Number> {
    trend.map(|trend| number(trend.tau_ratio))
}

fn median(trend: Option<&Trend>) -> Option<Number> {
    trend.map(|trend| duration(trend.median))
}

/// The trend of a part next to a growing one.
fn beside(found: &Judgement, part: Part) -> Statement {
    let trend = found.trend_of(part);
    let direction = trend.map(|trend| variant_name(&trend.direction));
    statement!(
        "part-beside",
        part = variant_name(&part),
        direction = direction,
        growth = per_thousand(trend),
        median = median(trend)
    )
}

fn stationary(timeline: &Timeline, found: &Judgement) -> Statement {
    let total = found.trend_of(Part::Total).or(found.trend_of(Part::Acknowledged));
    statement!(
        "latency-does-not-grow",
        messages = timeline.messages,
        median = duration(total.map_or(0.0, |trend| trend.median)),
        tau = number(total.map_or(0.0, |trend| trend.tau_ratio))
    )
}

fn more_offered(timeline: &Timeline, found: &Judgement) -> Statement {
    let wait = found.trend_of(Part::Wait);
    let inserted = found.trend_of(Part::Acknowledged);
    let in_flight = wait.map(|wait| wait.change) < inserted.map(|inserted| inserted.change);
    let (code, growing, other) = if in_flight {
        ("more-offered-than-acknowledged", inserted, Part::Wait)
    } else {
        ("more-offered-than-sent", wait, Part::Acknowledged)
    };
    statement!(
        code,
        growth = per_thousand(growing),
        beside = beside(found, other),
        offered = timeline.rates.offered_per_s.map(rate),
        sent = rate(timeline.rates.sent_per_s),
        tau = tau(growing)
    )
}

fn unbounded(timeline: &Timeline, found: &Judgement) -> Vec<Statement> {
    let messages = timeline.messages;
    let rates = &timeline.rates;
    let wait = found.trend_of(Part::Wait);
    let inserted = found.trend_of(Part::Acknowledged);
    let in_program = timeline.place == QueuePlace::Program
        || wait.map(|wait| wait.change) > inserted.map(|inserted| inserted.change);
    if in_program {
        return vec![statement!(
            "due-messages-unbounded",
            messages = messages,
            offered = rates.offered_per_s.map(rate),
            growth = per_thousand(wait),
            beside = beside(found, Part::Acknowledged),
            sent = rate(rates.sent_per_s)
        )];
    }
    let mut parts = vec![statement!(
        "in-flight-unbounded",
        messages = messages,
        handed_over = time(rates.handed_over_s),
        all = time(rates.all_s),
        growth = per_thousand(inserted)
    )];
    if let Some((ratio, most)) = found.little_ratio.zip(most_in_flight(timeline)) {
        parts.push(statement!(
            "littles-law-of-inserts",
            in_flight = number(most),
            rate = rate(rates.acknowledged_per_s),
            time = time(most / rates.acknowledged_per_s),
            agrees = (ratio - 1.0).abs() <= LITTLE_TOLERANCE,
            ratio = number(ratio)
        ));
    }
    parts
}

fn most_in_flight(timeline: &Timeline) -> Option<f64> {
    let most = timeline.points.iter().map(|point| point.in_flight);
    most.max_by(f64::total_cmp).filter(|most| *most > 0.0)
}

fn server(timeline: &Timeline, found: &Judgement) -> Statement {
    let inserted = found.trend_of(Part::Acknowledged);
    let (is_bounded, in_flight) = match timeline.in_flight {
        InFlight::Bounded(bound) => (true, exact(bound as f64)),
        InFlight::Unbounded => (false, number(found.in_flight.median)),
    };
    statement!(
        "inserts-take-longer",
        growth = per_thousand(inserted),
        median = median(inserted),
        tau = tau(inserted),
        is_bounded = is_bounded,
        in_flight = in_flight,
        beside = beside(found, Part::Wait)
    )
}

fn delivery(timeline: &Timeline, found: &Judgement) -> Statement {
    let after = found.trend_of(Part::After);
    let mut batches = timeline.points.iter().filter_map(|point| point.batch_messages);
    let ends = batches.next().zip(batches.next_back());
    statement!(
        "delivery-falls-behind",
        growth = per_thousand(after),
        beside = beside(found, Part::Acknowledged),
        tau = tau(after),
        first_batch = ends.map(|(first, _)| number(first)),
        last_batch = ends.map(|(_, last)| number(last))
    )
}

fn connection_wait(timeline: &Timeline, found: &Judgement) -> Option<Statement> {
    let wait = duration(found.connection_wait_ns?);
    let connections = timeline.pool?;
    Some(statement!("inserts-wait-for-connection", wait = wait, connections = connections))
}

fn slower(timeline: &Timeline) -> Option<Statement> {
    let rates = &timeline.rates;
    let (first, second) =
        (rates.acknowledged_first_half_per_s, rates.acknowledged_second_half_per_s);
    (first > 0.0 && second > 0.0 && second < SLOWER_RATIO * first)
        .then(|| statement!("second-half-slower", second = rate(second), first = rate(first)))
}
