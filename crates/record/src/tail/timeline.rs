//! Latency of a producer's messages over a run, and its analysis.

use crate::statement::Statement;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limit of a producer's unanswered inserts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InFlight {
    /// Maximum number, at least 1.
    Bounded(u64),
    Unbounded,
}

/// Where messages wait if the number in flight is unbounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QueuePlace {
    /// In the driver: they have been handed over.
    Driver,
    /// In the program, before the threads that wait for their inserts.
    Program,
}

/// Medians of consecutive messages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Number of the middle message.
    pub message: f64,
    /// Intended → send.
    pub wait_ns: f64,
    /// Send → acknowledged.
    pub acknowledged_ns: f64,
    /// Acknowledged → received; `None` if none of the messages was received.
    pub after_ns: Option<f64>,
    /// Intended → received; `None` if none of the messages was received.
    pub total_ns: Option<f64>,
    /// Unanswered inserts when the messages were sent, including themselves.
    pub in_flight: f64,
    /// Number of messages in the server reply that delivered each message; `None` if the driver does not report it.
    pub batch_messages: Option<f64>,
}

/// Rates over a whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rates {
    /// Messages per second of the schedule; `None` in a closed loop.
    pub offered_per_s: Option<f64>,
    /// Messages sent, from the first send to the last.
    pub sent_per_s: f64,
    /// Messages acknowledged, from the first send to the last acknowledgement.
    pub acknowledged_per_s: f64,
    /// First half of the acknowledgements, from the first send.
    pub acknowledged_first_half_per_s: f64,
    /// Second half of the acknowledgements.
    pub acknowledged_second_half_per_s: f64,
    /// Time from the first send to the last.
    pub handed_over_s: f64,
    /// Time from the first send to the last acknowledgement.
    pub all_s: f64,
}

/// Timeline of one producer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Timeline {
    pub messages: u64,
    pub in_flight: InFlight,
    /// Where messages wait if the number in flight is unbounded.
    pub place: QueuePlace,
    /// Maximum number of connections in the driver's pool; `None` without a pool.
    pub pool: Option<u64>,
    /// Points in message order.
    pub points: Vec<Point>,
    pub rates: Rates,
}

/// Cause of growing latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Latency does not grow.
    Stationary,
    /// The schedule demands more than is sent or acknowledged: messages wait in the producer, or within its limit of
    /// inserts in flight.
    MoreOfferedThanSent,
    /// The inserts in flight are unbounded, so they queue before the connections.
    UnboundedInFlight,
    /// Inserts take longer although no more are in flight: the server, the network, or the producer's CPU is slow.
    Server,
    /// Stored messages are received later and later.
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
    /// Intended → received: all parts.
    Total,
}

/// The trend of one part: nanoseconds over messages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartTrend {
    pub part: Part,
    pub trend: Trend,
}

/// Analysis of one producer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judgement {
    pub cause: Cause,
    /// The finding with its numbers.
    pub statement: Statement,
    /// Trends of the measured parts.
    pub trends: Vec<PartTrend>,
    /// Trend of the inserts in flight.
    pub in_flight: Trend,
    /// Insert times divided by the times that Little's law gives from the number in flight and the rate, median over
    /// the run; near 1 if inserts wait in one queue. `None` without acknowledgements.
    pub little_ratio: Option<f64>,
    /// Lower bound of the part of the median insert time that is spent waiting for a pooled connection: the remainder
    /// if all connections are assumed busy. `None` if no more inserts are in flight than there are connections.
    pub connection_wait_ns: Option<f64>,
}

impl Judgement {
    /// The trend of a part, if it was measured.
    pub fn trend_of(&self, part: Part) -> Option<&Trend> {
        let found = self.trends.iter().find(|trend| trend.part == part);
        found.map(|found| &found.trend)
    }
}

/// Direction of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    Growing,
    Falling,
    /// No trend, or one that is small or may be chance.
    Flat,
    /// Too few points.
    TooFew,
}

/// A trend with its size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trend {
    pub direction: Direction,
    /// Kendall's tau, -1 to 1: the share of growing pairs minus the share of falling pairs.
    pub tau_ratio: f64,
    /// Two-sided probability of such a tau without a trend, 0 to 1.
    pub p_ratio: f64,
    /// Theil–Sen slope: change in units of y per unit of x.
    pub slope: f64,
    /// Slope times the range of x: change over the series in units of y.
    pub change: f64,
    /// Median of the series in units of y; 0 without points.
    pub median: f64,
}
