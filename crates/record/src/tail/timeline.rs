//! Latency of a producer's messages over a run, and what was found of it.

use crate::statement::Statement;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
pub struct Timeline {
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
    /// The finding with its numbers.
    #[serde(alias = "words")]
    pub statement: Statement,
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

/// Which way a series goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// It grows.
    Growing,
    /// It falls.
    Falling,
    /// No trend that is both beyond chance and large.
    Flat,
    /// Too few points.
    TooFew,
}

/// A trend with its size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trend {
    /// Which way.
    pub direction: Direction,
    /// Kendall's tau, -1 to 1: the share of pairs that grow less the share that fall.
    pub tau_ratio: f64,
    /// Probability of such a tau without a trend, two-sided, 0 to 1.
    pub p_ratio: f64,
    /// Slope of Theil and Sen: change in units of y for one unit of x.
    pub slope: f64,
    /// Slope times the range of x: change over the series in units of y.
    pub change: f64,
    /// Median of the series in units of y; 0 without points.
    pub median: f64,
}
