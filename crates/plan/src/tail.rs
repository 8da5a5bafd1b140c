//! `tail` in a plan: messages through a capped collection, sent and received by the drivers in
//! `drivers/`. Every list is an axis: `dyno tail` measures each combination separately, and shows
//! all of them on one page.

use crate::names::{choices, with_defaults};
use crate::units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

choices! {
    /// How consumers get messages.
    #[derive(Default)]
    TailMode {
        /// A tailable cursor that awaits data.
        #[default]
        Tailable = "tailable", "A tailable cursor that awaits data";
        /// A change stream, which needs a replica set.
        ChangeStream = "change-stream", "A change stream, which needs a replica set";
        /// A query that is repeated.
        Poll = "poll", "A query that is repeated";
    }
}

/// Intervals between messages that are sent at a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TailArrivals {
    /// Equal intervals.
    #[default]
    Constant,
    /// Exponentially distributed intervals.
    Poisson,
}

with_defaults! {
    /// The messages, their senders and their receivers.
    #[serde_with::skip_serializing_none]
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct TailPlan {
        /// Drivers whose producers are measured one after the other; all available drivers when
        /// empty.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub producers: Vec<String>,
        /// Drivers whose consumers are measured.
        pub consumers: Vec<String> = vec!["wire".into()],
        /// Messages of each producer.
        pub messages: u64 = 100_000,
        /// Largest number of unacknowledged inserts of a producer: numbers, or `unbounded`.
        pub in_flight: Vec<String> = vec!["1".into()],
        /// Largest number of connections of a driver.
        pub pool: Vec<u32> = vec![100],
        /// Number of measurements of each combination. From 2 on, every round contains all
        /// combinations in a random order, by `client.seed`.
        pub repeat: u32 = 1,
        /// Number of concurrent producers.
        pub producers_at_once: u32 = 1,
        /// Number of concurrent consumers, each of which gets all messages.
        pub consumers_at_once: u32 = 1,
        /// Host of the producers, in the form of `ssh`; this machine when absent.
        pub producer_host: Option<String>,
        /// Host of the consumers; this machine when absent.
        pub consumer_host: Option<String>,
        /// Folder of the drivers on those hosts; the same path as here when absent.
        pub host_drivers: Option<String>,
        /// Bytes added to each message.
        pub size: Bytes = Bytes(100),
        /// Size of the capped collection; large enough for all messages when absent.
        pub capped_size: Option<Bytes>,
        /// Write concern of the inserts: `0`, `1`, another number, or `majority`.
        pub write_concern: String = "1".into(),
        /// How consumers get messages.
        pub mode: TailMode = TailMode::Tailable,
        /// Messages per second that all producers of a run send together; unlimited when absent.
        pub rate_per_s: Option<f64>,
        /// Intervals between messages with `rate_per_s`.
        pub arrivals: TailArrivals = TailArrivals::Constant,
        /// Time that a consumer spends on each message, in whole microseconds, to simulate a slow
        /// consumer.
        pub work: Span = Span::from_secs(0),
        /// Consumers end after this time without a message, in whole seconds from 1.
        pub idle: Span = Span::from_secs(10),
        /// Longest time of a run's producers, in whole seconds from 1; messages sent until then
        /// count.
        pub limit: Span = Span::from_secs(600),
    }
}

/// Largest number of inserts in flight that drivers support.
const MOST_IN_FLIGHT: u64 = 1_000_000;
/// Generous estimate of a message's size in bytes without the added bytes: fields, names, and the
/// server's overhead.
pub const MESSAGE_BYTES: u64 = 256;

impl TailPlan {
    /// Parses a number of inserts in flight; `None` means unbounded.
    ///
    /// # Errors
    /// A description of the error.
    pub fn bound(text: &str) -> Result<Option<u64>, String> {
        match text.trim() {
            "unbounded" => Ok(None),
            number => match number.parse() {
                Ok(0) => Err("it must be at least 1".into()),
                Ok(bound) if bound > MOST_IN_FLIGHT => {
                    Err(format!("it must be at most {MOST_IN_FLIGHT}"))
                }
                Ok(bound) => Ok(Some(bound)),
                Err(_) => Err("it is not a number or `unbounded`".into()),
            },
        }
    }

    /// Size of the capped collection.
    pub fn capped_bytes(&self) -> u64 {
        let all = self.messages.saturating_mul(u64::from(self.producers_at_once));
        let needed = all.saturating_mul(self.size.0 + MESSAGE_BYTES);
        self.capped_size.map_or_else(|| needed.max(1 << 20), |size| size.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{builtin, file};

    #[test]
    fn wrong_values_are_reported_with_their_key() {
        let problem = |text: &str| {
            let text = format!("[tail]\n{text}\n");
            let refused = file::parse(&text, "t").expect_err(&text);
            refused.to_string()
        };
        for (text, key) in [
            ("producers = [\"a/b\"]", "`tail.producers` names `a/b`"),
            ("consumers = [\"a\", \"a\"]", "`tail.consumers` names `a`"),
            ("consumers = []", "`tail.consumers` is empty"),
            ("messages = 0", "`tail.messages`"),
            ("in_flight = [\"many\"]", "`unbounded`"),
            ("pool = []", "`tail.pool` is empty"),
            ("pool = [5, 0]", "`tail.pool` has `0`"),
            ("repeat = 0", "`tail.repeat`"),
            ("producers_at_once = 65", "`tail.producers_at_once`"),
            ("size = \"16MiB\"", "`tail.size`"),
            ("capped_size = 100", "`tail.capped_size`"),
            ("write_concern = \"all\"", "`tail.write_concern`"),
            ("rate_per_s = 0", "`tail.rate_per_s`"),
            ("work = \"1ns\"", "`tail.work`"),
            ("idle = \"1500ms\"", "`tail.idle`"),
            ("mode = \"tailabel\"", "`tailable`"),
        ] {
            let problem = problem(text);
            assert!(problem.contains(key), "{text}: {problem}");
        }
    }

    #[test]
    fn every_built_in_plan_for_messages_has_a_purpose() {
        for name in builtin::TAILS.names() {
            let plan = builtin::TAILS.find(name).expect("it is listed");
            assert_eq!(plan.name, name);
            assert!(plan.description.len() > 20);
            assert!(plan.tail.is_some());
        }
    }

    #[test]
    fn bounds_are_numbers_or_none() {
        assert_eq!(TailPlan::bound("64"), Ok(Some(64)));
        assert_eq!(TailPlan::bound("unbounded"), Ok(None));
        for wrong in ["0", "", "-1", "many"] {
            assert!(TailPlan::bound(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn capped_size_has_room_for_all_messages_by_default() {
        let mut plan =
            TailPlan { messages: 1_000_000, producers_at_once: 2, ..TailPlan::default() };
        assert!(plan.capped_bytes() >= 2_000_000 * 200);
        plan.capped_size = Some(Bytes(4096));
        assert_eq!(plan.capped_bytes(), 4096);
    }
}
