//! `tail` in a plan: messages through a capped collection, by the drivers of `drivers/`. Every list is an axis: `dyno
//! tail` measures each combination by itself, and puts them on one page.

use crate::model::Plan;
use crate::names::{Names, name_of};
use crate::problem::Problem;
use crate::units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How consumers get messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TailMode {
    /// A tailable cursor that awaits data.
    #[default]
    Tailable,
    /// A change stream, which needs a replica set.
    ChangeStream,
    /// A query again and again.
    Poll,
}

impl TailMode {
    /// All of them with their names.
    pub const NAMES: Names<TailMode> = &[
        (
            TailMode::Tailable,
            "tailable",
            "A tailable cursor that awaits data",
        ),
        (
            TailMode::ChangeStream,
            "change-stream",
            "A change stream, which needs a replica set",
        ),
        (TailMode::Poll, "poll", "A query again and again"),
    ];

    /// Its name in a plan.
    pub fn as_str(self) -> &'static str {
        name_of(TailMode::NAMES, &self)
    }
}

/// Distances of messages that are due at a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TailArrivals {
    /// Equal ones.
    #[default]
    Constant,
    /// Exponentially distributed ones.
    Poisson,
}

/// The messages, who sends them, and who gets them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TailPlan {
    /// Drivers whose producers are measured, one after the other; all that can be run when empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub producers: Vec<String>,
    /// Drivers whose consumers are measured.
    pub consumers: Vec<String>,
    /// Messages of each producer.
    pub messages: u64,
    /// Most inserts of a producer without an answer: numbers, or `unbounded`.
    pub in_flight: Vec<String>,
    /// Largest number of connections of a driver.
    pub pool: Vec<u32>,
    /// Producers that run at once.
    pub producers_at_once: u32,
    /// Consumers that run at once, each of which gets all messages.
    pub consumers_at_once: u32,
    /// Host on which the producers run, as `ssh` takes it; this one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub producer_host: Option<String>,
    /// Host on which the consumers run; this one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumer_host: Option<String>,
    /// Folder of the drivers on those hosts; the same as here when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_drivers: Option<String>,
    /// Bytes that are added to each message.
    pub size: Bytes,
    /// Size of the capped collection; room for all messages when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capped_size: Option<Bytes>,
    /// Write concern of the inserts: `0`, `1`, another number, or `majority`.
    pub write_concern: String,
    /// How consumers get messages.
    pub mode: TailMode,
    /// Messages that all producers of a run send together in a second; as fast as they can when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// Distances of messages with `rate_per_s`.
    pub arrivals: TailArrivals,
    /// Time that a consumer spends on each message, in whole microseconds: a slow consumer.
    pub work: Span,
    /// Consumers end when nothing came for so long, in whole seconds from 1.
    pub idle: Span,
    /// Longest time of the producers of a run, in whole seconds from 1; what they have sent until then counts.
    pub limit: Span,
}

impl Default for TailPlan {
    fn default() -> Self {
        TailPlan {
            producers: Vec::new(),
            consumers: vec!["wire".into()],
            messages: 100_000,
            in_flight: vec!["1".into()],
            pool: vec![100],
            producers_at_once: 1,
            consumers_at_once: 1,
            producer_host: None,
            consumer_host: None,
            host_drivers: None,
            size: Bytes(100),
            capped_size: None,
            write_concern: "1".into(),
            mode: TailMode::Tailable,
            rate_per_s: None,
            arrivals: TailArrivals::Constant,
            work: Span::from_secs(0),
            idle: Span::from_secs(10),
            limit: Span::from_secs(600),
        }
    }
}

/// Most messages of a producer: what is known of each is in memory at the end, some 50 bytes.
const MOST_MESSAGES: u64 = 100_000_000;
/// Most inserts in flight, and most connections, that drivers take.
const MOST_IN_FLIGHT: u64 = 1_000_000;
const MOST_POOL: u64 = 100_000;
/// Longest time that a consumer spends on a message.
const MOST_WORK: Duration = Duration::from_secs(1000);
/// Most producers, and most consumers, at once.
const MOST_AT_ONCE: u32 = 64;
/// Most bytes that are added to a message, so that it stays below the 16 MiB of a document.
const MOST_SIZE: u64 = 16_000_000;
/// Smallest capped collection that servers make.
const LEAST_CAPPED: u64 = 4096;
/// Bytes of a message besides what is added to it, generously: fields, names, and what the server keeps of it.
const MESSAGE_BYTES: u64 = 256;

impl TailPlan {
    /// A number of inserts in flight; `None` is no bound.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn bound(text: &str) -> Result<Option<u64>, String> {
        match text.trim() {
            "unbounded" => Ok(None),
            number => match number.parse() {
                Ok(0) => Err("0 would send nothing".into()),
                Ok(bound) if bound > MOST_IN_FLIGHT => {
                    Err(format!("drivers take at most {MOST_IN_FLIGHT}"))
                }
                Ok(bound) => Ok(Some(bound)),
                Err(_) => Err("it is neither a number nor `unbounded`".into()),
            },
        }
    }

    /// Size of the capped collection.
    pub fn capped_bytes(&self) -> u64 {
        let all = self
            .messages
            .saturating_mul(u64::from(self.producers_at_once));
        let needed = all.saturating_mul(self.size.0 + MESSAGE_BYTES);
        self.capped_size
            .map_or_else(|| needed.max(1 << 20), |size| size.0)
    }
}

/// Problems of the table `tail`; none without it.
pub(crate) fn problems(plan: &Plan) -> Vec<Problem> {
    let Some(tail) = &plan.tail else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    let mut require = |holds: bool, message: String| {
        if !holds {
            problems.push(Problem::new(message));
        }
    };
    for (key, drivers) in [
        ("producers", &tail.producers),
        ("consumers", &tail.consumers),
    ] {
        for (place, name) in drivers.iter().enumerate() {
            let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            let is_name = !name.is_empty() && name.chars().all(allowed) && !name.starts_with('.');
            require(
                is_name,
                format!("`tail.{key}` names `{name}`, which is no folder of a driver"),
            );
            require(
                !drivers[..place].contains(name),
                format!("`tail.{key}` names `{name}` twice"),
            );
        }
    }
    require(
        !tail.consumers.is_empty(),
        "`tail.consumers` is empty, so that nobody would get the messages".to_owned(),
    );
    require(
        (1..=MOST_MESSAGES).contains(&tail.messages),
        format!(
            "`tail.messages` is `{}`, but must be 1 to {MOST_MESSAGES}",
            tail.messages
        ),
    );
    require(
        !tail.in_flight.is_empty() && !tail.pool.is_empty(),
        "`tail.in_flight` or `tail.pool` is empty, so that nothing would be measured".to_owned(),
    );
    for text in &tail.in_flight {
        if let Err(reason) = TailPlan::bound(text) {
            require(false, format!("`tail.in_flight` has `{text}`: {reason}"));
        }
    }
    let bounds: Vec<_> = tail
        .in_flight
        .iter()
        .map(|text| TailPlan::bound(text))
        .collect();
    let twice = |place: usize| bounds[..place].contains(&bounds[place]);
    require(
        !(0..bounds.len()).any(twice),
        "`tail.in_flight` has a number twice".to_owned(),
    );
    require(
        !tail.pool.contains(&0),
        "`tail.pool` has `0`, but drivers need a connection".to_owned(),
    );
    require(
        tail.pool.iter().all(|pool| u64::from(*pool) <= MOST_POOL),
        format!("`tail.pool` has more than the {MOST_POOL} connections that drivers take"),
    );
    require(
        tail.work.0 <= MOST_WORK,
        format!(
            "`tail.work` is `{}`, more than 1000 seconds for each message",
            tail.work
        ),
    );
    for (key, count) in [
        ("producers_at_once", tail.producers_at_once),
        ("consumers_at_once", tail.consumers_at_once),
    ] {
        require(
            (1..=MOST_AT_ONCE).contains(&count),
            format!("`tail.{key}` is `{count}`, but must be 1 to {MOST_AT_ONCE}"),
        );
    }
    for (key, host) in [
        ("producer_host", &tail.producer_host),
        ("consumer_host", &tail.consumer_host),
    ] {
        let is_name = host.as_ref().is_none_or(|host| {
            !host.is_empty() && !host.starts_with('-') && !host.contains(char::is_whitespace)
        });
        require(
            is_name,
            format!("`tail.{key}` is no name of a host that `ssh` takes"),
        );
    }
    require(
        tail.host_drivers
            .as_ref()
            .is_none_or(|folder| folder.starts_with('/')),
        "`tail.host_drivers` must be a whole path, from `/` on".to_owned(),
    );
    require(
        tail.size.0 <= MOST_SIZE,
        format!(
            "`tail.size` is `{}`: messages would be larger than the 16 MiB that a server takes",
            tail.size
        ),
    );
    require(
        tail.capped_size.is_none_or(|size| size.0 >= LEAST_CAPPED),
        "`tail.capped_size` is below 4 KiB, the least that servers make".to_owned(),
    );
    let concern = tail.write_concern.as_str();
    require(
        concern == "majority" || concern.parse::<u8>().is_ok_and(|w| w <= 50),
        format!("`tail.write_concern` is `{concern}`, but must be `majority` or 0 to 50"),
    );
    require(
        tail.rate_per_s
            .is_none_or(|rate| rate.is_finite() && rate > 0.0),
        "`tail.rate_per_s` must be above 0".to_owned(),
    );
    require(
        tail.work.0.subsec_nanos() % 1000 == 0,
        "`tail.work` must be whole microseconds".to_owned(),
    );
    for (key, span) in [("idle", tail.idle), ("limit", tail.limit)] {
        require(
            span.0.subsec_nanos() == 0 && !span.0.is_zero(),
            format!("`tail.{key}` is `{span}`, but must be whole seconds from 1"),
        );
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{builtin, file};

    #[test]
    fn what_is_wrong_is_told_with_its_key() {
        let problem = |text: &str| {
            let text = format!("[tail]\n{text}\n");
            let refused = file::parse(&text, "t").expect_err(&text);
            refused.to_string()
        };
        for (text, key) in [
            ("producers = [\"a/b\"]", "`tail.producers` names `a/b`"),
            ("consumers = [\"a\", \"a\"]", "names `a` twice"),
            ("consumers = []", "`tail.consumers` is empty"),
            ("messages = 0", "`tail.messages`"),
            ("in_flight = [\"many\"]", "neither a number nor `unbounded`"),
            ("pool = []", "`tail.pool` is empty"),
            ("pool = [5, 0]", "`tail.pool` has `0`"),
            ("producers_at_once = 65", "`tail.producers_at_once`"),
            ("size = \"16MiB\"", "`tail.size`"),
            ("capped_size = 100", "`tail.capped_size`"),
            ("write_concern = \"all\"", "`tail.write_concern`"),
            ("rate_per_s = 0", "`tail.rate_per_s`"),
            ("work = \"1ns\"", "`tail.work`"),
            ("idle = \"1500ms\"", "`tail.idle`"),
            ("mode = \"tailabel\"", "did you mean `tailable`?"),
        ] {
            let told = problem(text);
            assert!(told.contains(key), "{text}: {told}");
        }
    }

    #[test]
    fn every_built_in_plan_for_messages_says_what_it_is_for() {
        for name in builtin::tail_names() {
            let plan = builtin::find_tail(name).expect("it is listed");
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
    fn a_collection_has_room_for_all_messages_unless_it_shall_not() {
        let mut plan = TailPlan {
            messages: 1_000_000,
            producers_at_once: 2,
            ..TailPlan::default()
        };
        assert!(plan.capped_bytes() >= 2_000_000 * 200);
        plan.capped_size = Some(Bytes(4096));
        assert_eq!(plan.capped_bytes(), 4096);
    }
}
