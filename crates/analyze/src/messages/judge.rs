//! Where the latency of a producer's messages grows over a run, if it does.
//!
//! A message's time has three parts that follow each other: it waits in the producer (intended → send),
//! is inserted (send → acknowledged), and is delivered (acknowledged → received; below zero where the
//! consumer is faster than the answer). Each is tested for a trend of its own, and the one that grows
//! by most names the cause. An insert that takes longer while more inserts are in flight waits in the
//! queue in front of the connections: by Little's law the time is the number in flight over the rate,
//! whatever the server does. One that takes longer with the same number in flight takes longer at the server, on the way, or for want of
//! CPU in the producer.

use super::trend::{Direction, Trend, trend};
use super::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Smallest growth of a part over the run that is one: below a tenth of a millisecond the wake-ups of
/// the machine decide.
const LEAST_GROWTH_NS: f64 = 100_000.0;
/// A slower second half is told when its rate is below this share of the first.
pub(super) const SLOWER_RATIO: f64 = 0.7;
/// Least mean number in flight, times the connections, of which it is said that inserts wait for one.
const QUEUE_PER_CONNECTION: f64 = 1.5;

/// Most inserts of a producer without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InFlight {
    /// At most so many, from 1.
    Bounded(u64),
    /// No bound.
    Unbounded,
}

/// Where messages wait when nothing bounds those in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QueuePlace {
    /// In the driver: they have been handed over.
    Driver,
    /// In the program, in front of threads that wait for their inserts.
    Program,
}

/// Medians of some messages that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Number of the message in the middle.
    pub message: f64,
    /// Intended → send.
    pub wait_ns: f64,
    /// Send → acknowledged.
    pub acknowledged_ns: f64,
    /// Acknowledged → received; `None` if none of them was received.
    pub after_ns: Option<f64>,
    /// Intended → received; `None` if none of them was received.
    pub total_ns: Option<f64>,
    /// Inserts without an answer when the messages were sent, themselves included.
    pub in_flight: f64,
    /// Messages in the reply of the server that each came in; `None` where the driver does not tell.
    pub batch_messages: Option<f64>,
}

/// Rates over a whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rates {
    /// Messages that the schedule asks for; `None` in a closed loop.
    pub offered_per_s: Option<f64>,
    /// Messages sent, from the first send to the last.
    pub sent_per_s: f64,
    /// Messages acknowledged, from the first send to the last acknowledgement.
    pub acknowledged_per_s: f64,
    /// As before, of the first half of the acknowledgements, from the first send.
    pub acknowledged_first_half_per_s: f64,
    /// Of the second half.
    pub acknowledged_second_half_per_s: f64,
    /// From the first send to the last.
    pub handed_over_s: f64,
    /// From the first send to the last acknowledgement.
    pub all_s: f64,
}

/// One producer's run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Course {
    /// Messages sent.
    pub messages: u64,
    /// Most in flight.
    pub in_flight: InFlight,
    /// Where they wait without a bound.
    pub place: QueuePlace,
    /// Largest number of connections of the driver's pool; `None` if it has no pool.
    pub pool: Option<u64>,
    /// In the order of their messages.
    pub points: Vec<Point>,
    /// Rates.
    pub rates: Rates,
}

/// What makes latency grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Nothing: latency does not grow.
    Stationary,
    /// The schedule asks for more than is sent or acknowledged: messages wait in the producer, or below its bound on those in flight.
    MoreOfferedThanSent,
    /// Nothing bounds the inserts in flight, so they queue in front of the connections.
    UnboundedInFlight,
    /// Inserts take longer though no more of them are in flight: the server, the network, or the CPU of the producer.
    Server,
    /// Messages are there and are received later and later.
    Delivery,
    /// Too few points.
    TooFew,
}

/// A part of a message's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Intended → send.
    Wait,
    /// Send → acknowledged.
    Acknowledged,
    /// Acknowledged → received.
    After,
    /// Intended → received: all of them.
    Total,
}

/// The trend of one part; y is in nanoseconds and x in messages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartTrend {
    /// Which part.
    pub part: Part,
    /// Its trend.
    pub trend: Trend,
}

/// What was found of one producer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judgement {
    /// What makes its latency grow.
    pub cause: Cause,
    /// The finding with its numbers, without final period.
    pub words: String,
    /// Trends of the parts that were measured.
    pub trends: Vec<PartTrend>,
    /// Trend of the inserts in flight.
    pub in_flight: Trend,
    /// Insert times over those that Little's law gives from the number in flight and the rate, median
    /// over the run; near 1 if inserts wait in one queue. `None` without acknowledgements.
    pub little_ratio: Option<f64>,
    /// Part of the median insert time that is waiting for one of the pool's connections, at least:
    /// what is left when all connections are taken as busy. `None` where no more are in flight than
    /// there are connections.
    pub connection_wait_ns: Option<f64>,
}

impl Judgement {
    /// The trend of a part, if it was measured.
    pub fn trend_of(&self, part: Part) -> Option<&Trend> {
        let found = self.trends.iter().find(|trend| trend.part == part);
        found.map(|found| &found.trend)
    }
}

/// Says whether the latency of a producer's messages grows, and why.
pub fn judge(course: &Course) -> Judgement {
    let trends = trends(&course.points);
    let in_flight_points: Vec<(f64, f64)> = course
        .points
        .iter()
        .map(|point| (point.message, point.in_flight))
        .collect();
    let in_flight = trend(&in_flight_points, 1.0);
    let mut judgement = Judgement {
        cause: Cause::Stationary,
        words: String::new(),
        trends,
        in_flight,
        little_ratio: little_ratio(course),
        connection_wait_ns: connection_wait(course),
    };
    judgement.cause = cause(course, &judgement);
    judgement.words = words::of(course, &judgement);
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
        let series = points
            .iter()
            .filter_map(|point| Some((point.message, value(point)?)));
        (*part, series.collect::<Vec<_>>())
    });
    series
        .filter(|(_, series)| !series.is_empty())
        .map(|(part, series)| PartTrend {
            part,
            trend: trend(&series, LEAST_GROWTH_NS),
        })
        .collect()
}

fn cause(course: &Course, found: &Judgement) -> Cause {
    if found
        .trends
        .iter()
        .all(|part| part.trend.direction == Direction::TooFew)
    {
        return Cause::TooFew;
    }
    // A part that grows while another falls by as much moves time about and lengthens nothing.
    let total = found.trend_of(Part::Total);
    if total.is_some_and(|total| matches!(total.direction, Direction::Falling | Direction::Flat)) {
        return Cause::Stationary;
    }
    let parts = || found.trends.iter().filter(|part| part.part != Part::Total);
    let growing = parts().filter(|part| part.trend.direction == Direction::Growing);
    let largest =
        |left: &&PartTrend, right: &&PartTrend| left.trend.change.total_cmp(&right.trend.change);
    // All of it may grow though each part grows too little, or too unsteadily, to be told alone.
    let all_grow = total.is_some_and(|total| total.direction == Direction::Growing);
    let most = growing.max_by(largest).or_else(|| {
        let all = all_grow.then(|| parts().max_by(largest)).flatten();
        all.filter(|part| part.trend.change > 0.0)
    });
    let Some(most) = most else {
        return Cause::Stationary;
    };
    let unbounded = course.in_flight == InFlight::Unbounded;
    let more_in_flight = found.in_flight.direction == Direction::Growing;
    match most.part {
        // Blocking drivers queue in the program: without a schedule every message is due at the start.
        Part::Wait if unbounded && course.rates.offered_per_s.is_none() => Cause::UnboundedInFlight,
        Part::Wait => Cause::MoreOfferedThanSent,
        Part::Acknowledged if more_in_flight && unbounded => Cause::UnboundedInFlight,
        // A bound that is far away: they queue as they would without one.
        Part::Acknowledged if more_in_flight && course.rates.offered_per_s.is_some() => {
            Cause::MoreOfferedThanSent
        }
        Part::Acknowledged => Cause::Server,
        Part::After | Part::Total => Cause::Delivery,
    }
}

fn little_ratio(course: &Course) -> Option<f64> {
    let rate = course.rates.acknowledged_per_s;
    let ratios = course
        .points
        .iter()
        .filter(|point| point.in_flight > 0.0)
        .map(|point| point.acknowledged_ns / 1e9 * rate / point.in_flight);
    crate::robust::median(ratios).filter(|ratio| ratio.is_finite() && rate > 0.0)
}

fn connection_wait(course: &Course) -> Option<f64> {
    let pool = course.pool? as f64;
    let rate = course.rates.acknowledged_per_s;
    let in_flight = crate::robust::median(course.points.iter().map(|point| point.in_flight))?;
    let insert = crate::robust::median(course.points.iter().map(|point| point.acknowledged_ns))?;
    let busy_ns = pool / rate * 1e9;
    (rate > 0.0 && in_flight >= QUEUE_PER_CONNECTION * pool && insert > busy_ns)
        .then_some(insert - busy_ns)
}
