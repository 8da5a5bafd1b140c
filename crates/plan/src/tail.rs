//! `tail` in a plan: messages through a capped collection, by the drivers of `drivers/`. Every list is an axis: `dyno
//! tail` measures each combination by itself, and puts them on one page.

use crate::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
            size: Bytes(100),
            capped_size: None,
            write_concern: "1".into(),
            mode: TailMode::Tailable,
            rate_per_s: None,
        }
    }
}

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
                Ok(bound) => Ok(Some(bound)),
                Err(_) => Err("it is neither a number nor `unbounded`".into()),
            },
        }
    }

    /// Size of the capped collection.
    pub fn capped_bytes(&self) -> u64 {
        let all = self.messages * u64::from(self.producers_at_once);
        let needed = all * (self.size.0 + MESSAGE_BYTES);
        self.capped_size
            .map_or_else(|| needed.max(1 << 20), |size| size.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
