//! Finds the growing part of a producer's message latency over a run, if any.
//!
//! A message's time has three consecutive parts: it waits in the producer (intended → send), is inserted (send
//! → acknowledged), and is delivered (acknowledged → received; below zero if the consumer is faster than the
//! answer). Each part is tested for a trend, and the one that grows most names the cause. An insert that takes
//! longer while more inserts are in flight waits in the queue in front of the connections: by Little's law the
//! time is the number in flight divided by the rate, whatever the server does. An insert that takes longer with
//! the same number in flight takes longer at the server, on the network, or because the producer lacks CPU.

use super::describe;
use super::trend::trend;
use dyno_record::statement;
use dyno_record::statement::Statement;
use dyno_record::tail::{Cause, Direction, InFlight, Judgement, Part, PartTrend, Point, Timeline};

/// Smallest growth of a part over the run that counts: below a tenth of a millisecond the machine's wake-ups
/// decide.
const LEAST_GROWTH_NS: f64 = 100_000.0;
/// Highest rate of a slower second half that is reported, as a share of the first half's rate.
pub(super) const SLOWER_RATIO: f64 = 0.7;
/// Smallest mean number in flight per connection at which inserts wait for a connection.
const QUEUE_PER_CONNECTION: f64 = 1.5;

/// Judges whether the latency of a producer's messages grows, and why.
pub fn judge(timeline: &Timeline) -> Judgement {
    let trends = trends(&timeline.points);
    let in_flight_points: Vec<(f64, f64)> =
        timeline.points.iter().map(|point| (point.message, point.in_flight)).collect();
    let in_flight = trend(&in_flight_points, 1.0);
    let mut judgement = Judgement {
        cause: Cause::Stationary,
        statement: statement!("messages", parts = Vec::<Statement>::new()),
        trends,
        in_flight,
        little_ratio: little_ratio(timeline),
        connection_wait_ns: connection_wait(timeline),
    };
    judgement.cause = cause(timeline, &judgement);
    judgement.statement = describe::judgement(timeline, &judgement);
    judgement
}

fn trends(points: &[Point]) -> Vec<PartTrend> {
    type Value = fn(&Point) -> Option<f64>;
    let parts: [(Part, Value); 4] = [
        (Part::Wait, |point| Some(point.wait_ns)),
        (Part::Acknowledged, |point| Some(point.acknowledged_ns)),
        (Part::After, |point| point.after_ns),
        (Part::Total, |point| point.total_ns),
    ];
    let series = parts.iter().map(|(part, value)| {
        let series = points.iter().filter_map(|point| Some((point.message, value(point)?)));
        (*part, series.collect::<Vec<_>>())
    });
    series
        .filter(|(_, series)| !series.is_empty())
        .map(|(part, series)| PartTrend { part, trend: trend(&series, LEAST_GROWTH_NS) })
        .collect()
}

fn cause(timeline: &Timeline, found: &Judgement) -> Cause {
    if found.trends.iter().all(|part| part.trend.direction == Direction::TooFew) {
        return Cause::TooFew;
    }
    // A part that grows while another falls equally only shifts time.
    let total = found.trend_of(Part::Total);
    if total.is_some_and(|total| matches!(total.direction, Direction::Falling | Direction::Flat)) {
        return Cause::Stationary;
    }
    let parts = || found.trends.iter().filter(|part| part.part != Part::Total);
    let growing = parts().filter(|part| part.trend.direction == Direction::Growing);
    let largest =
        |left: &&PartTrend, right: &&PartTrend| left.trend.change.total_cmp(&right.trend.change);
    // The total may grow although each part grows too little, or too unsteadily, to be reported alone.
    let all_grow = total.is_some_and(|total| total.direction == Direction::Growing);
    let most = growing.max_by(largest).or_else(|| {
        let all = all_grow.then(|| parts().max_by(largest)).flatten();
        all.filter(|part| part.trend.change > 0.0)
    });
    let Some(most) = most else {
        return Cause::Stationary;
    };
    let unbounded = timeline.in_flight == InFlight::Unbounded;
    let more_in_flight = found.in_flight.direction == Direction::Growing;
    match most.part {
        // Blocking drivers queue in the program: without a schedule every message is due at the start.
        Part::Wait if unbounded && timeline.rates.offered_per_s.is_none() => {
            Cause::UnboundedInFlight
        }
        Part::Wait => Cause::MoreOfferedThanSent,
        Part::Acknowledged if more_in_flight && unbounded => Cause::UnboundedInFlight,
        // A very high bound: inserts queue as they would without one.
        Part::Acknowledged if more_in_flight && timeline.rates.offered_per_s.is_some() => {
            Cause::MoreOfferedThanSent
        }
        Part::Acknowledged => Cause::Server,
        Part::After | Part::Total => Cause::Delivery,
    }
}

fn little_ratio(timeline: &Timeline) -> Option<f64> {
    let rate = timeline.rates.acknowledged_per_s;
    let ratios = timeline
        .points
        .iter()
        .filter(|point| point.in_flight > 0.0)
        .map(|point| point.acknowledged_ns / 1e9 * rate / point.in_flight);
    crate::robust::median(ratios).filter(|ratio| ratio.is_finite() && rate > 0.0)
}

fn connection_wait(timeline: &Timeline) -> Option<f64> {
    let pool = timeline.pool? as f64;
    let rate = timeline.rates.acknowledged_per_s;
    let in_flight = crate::robust::median(timeline.points.iter().map(|point| point.in_flight))?;
    let insert = crate::robust::median(timeline.points.iter().map(|point| point.acknowledged_ns))?;
    let busy_ns = pool / rate * 1e9;
    (rate > 0.0 && in_flight >= QUEUE_PER_CONNECTION * pool && insert > busy_ns)
        .then_some(insert - busy_ns)
}
