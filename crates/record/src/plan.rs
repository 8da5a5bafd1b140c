//! Reads the tables of a recorded plan that results need. Records keep the plan as it was written, so that rewriting a
//! record loses nothing.

pub use dyno_plan::model::FieldLength;
pub use dyno_plan::model::ScheduleKind;
pub use dyno_plan::price::PricePlan;
pub use dyno_plan::workload::Collection;

use dyno_plan::index_build::IndexBuildPlan;
use dyno_plan::model::{
    ClientPlan, DataPlan, KeyDistribution, ObservePlan, PhasePlan, Schedule, ServerKind, ServerPlan,
};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;

/// The tables of a resolved plan that results need. A table that was not recorded, or that this version cannot read, is
/// absent.
#[serde_with::apply(_ => #[serde(deserialize_with = "lenient")])]
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RecordedPlan {
    /// Purpose of the plan.
    pub description: Option<String>,
    pub server: Option<ServerPlan>,
    pub data: Option<DataPlan>,
    /// Weights of the operations, by name; empty if not recorded. They need not add up to 1.
    pub operations: BTreeMap<String, f64>,
    pub keys: Option<KeyDistribution>,
    pub client: Option<ClientPlan>,
    pub schedule: Option<Schedule>,
    pub phases: Option<PhasePlan>,
    pub observe: Option<ObservePlan>,
    /// Price of the test bench; absent if the plan does not name one.
    pub price: Option<PricePlan>,
    /// Index build; absent in other experiments.
    pub index_build: Option<IndexBuildPlan>,
}

impl RecordedPlan {
    /// Reads the plan of a record.
    pub fn new(plan: &Value) -> RecordedPlan {
        let mut read = RecordedPlan::deserialize(plan).unwrap_or_default();
        // Recorded tables are complete: a missing duration means no limit instead of the default.
        if let Some(phases) = &mut read.phases
            && plan["phases"].get("duration").is_none()
        {
            phases.duration = None;
        }
        read.operations.extend(own_weights(&plan["operations"]));
        read
    }

    /// Kind of the schedule.
    pub fn schedule_kind(&self) -> Option<ScheduleKind> {
        self.schedule.as_ref().map(Schedule::kind)
    }

    /// Offered rate; `None` with a closed loop.
    pub fn rate_per_s(&self) -> Option<f64> {
        self.schedule.as_ref()?.rate_per_s()
    }

    /// Whether the servers were already running.
    pub fn uses_running_server(&self) -> bool {
        self.server.as_ref().is_some_and(|server| server.kind == ServerKind::Uri)
    }

    /// Number of operations after which measuring ends, if limited.
    pub fn most_operations(&self) -> Option<u64> {
        self.phases.as_ref()?.operations
    }

    /// Seed of all random sequences.
    pub fn seed(&self) -> Option<u64> {
        self.client.as_ref().map(|client| client.seed)
    }
}

/// Weights of own operations by name; empty if the plan has YCSB's.
fn own_weights(operations: &Value) -> BTreeMap<String, f64> {
    let operations = operations.as_array().into_iter().flatten();
    let weights = operations.filter_map(|operation| {
        Some((operation["name"].as_str()?.to_owned(), operation["weight"].as_f64()?))
    });
    weights.collect()
}

/// Deserializes a value, or returns the default if it has another type.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_plan::model::{Plan, ThinkTime};
    use dyno_plan::units::Span;
    use dyno_plan::{builtin, file};
    use serde_json::json;

    #[track_caller]
    fn assert_is_read(plan: &Plan) {
        let read = RecordedPlan::new(&file::recorded(plan));
        let name = &plan.name;
        assert_eq!(read.description.as_ref(), Some(&plan.description), "{name}");
        assert_eq!(read.server.as_ref(), Some(&plan.server), "{name}");
        assert_eq!(read.data.as_ref(), Some(&plan.data), "{name}");
        let weight = |name: &str| read.operations.get(name).copied();
        let own = plan.operations.own.first();
        let (first, expected) = match own {
            Some(own) => (own.name.as_str(), own.weight),
            None => ("read", Some(plan.operations.read)),
        };
        assert_eq!(weight(first), expected, "{name}");
        assert_eq!(read.keys.as_ref(), Some(&plan.keys), "{name}");
        assert_eq!(read.client.as_ref(), Some(&plan.client), "{name}");
        assert_eq!(read.schedule.as_ref(), Some(&plan.schedule), "{name}");
        assert_eq!(read.phases.as_ref(), Some(&plan.phases), "{name}");
        assert_eq!(read.observe.as_ref(), Some(&plan.observe), "{name}");
        assert_eq!(read.index_build, plan.index_build, "{name}");
    }

    #[test]
    fn built_in_plans_are_read_from_their_records() {
        for plans in [&builtin::LOADS, &builtin::INDEX_BUILDS, &builtin::TAILS] {
            for name in plans.names() {
                assert_is_read(&plans.find(name).expect("it is listed"));
            }
        }
    }

    #[test]
    fn every_variant_is_read_from_its_record() {
        let mut plan = builtin::find("a").expect("it is listed");
        let (rate_per_s, max_start_delay) = (500.5, Span::from_secs(3));
        for schedule in [
            Schedule::Closed {},
            Schedule::Constant { rate_per_s, max_start_delay },
            Schedule::Poisson { rate_per_s, max_start_delay },
            Schedule::Throttled { rate_per_s },
        ] {
            plan.schedule = schedule;
            assert_is_read(&plan);
        }
        for keys in [
            KeyDistribution::Uniform {},
            KeyDistribution::ScrambledZipfian {},
            KeyDistribution::Zipfian { exponent: 0.9 },
            KeyDistribution::Latest {},
            KeyDistribution::Hotspot { hot_data_ratio: 0.2, hot_operation_ratio: 0.8 },
            KeyDistribution::Sequential {},
            KeyDistribution::Exponential { percentile: 95.0, data_ratio: 0.1 },
        ] {
            plan.keys = keys;
            assert_is_read(&plan);
        }
        for field_length in [
            FieldLength::Constant { bytes: 7 },
            FieldLength::Uniform { min_bytes: 1, max_bytes: 9 },
            FieldLength::Zipfian { min_bytes: 1, max_bytes: 9 },
            FieldLength::Histogram { block_bytes: 10, weights: vec![1, 0, 2] },
        ] {
            plan.data.field_length = field_length;
            assert_is_read(&plan);
        }
        plan.client.think_time = Some(Span::from_secs(5));
        for distribution in [None, Some(ThinkTime::Constant), Some(ThinkTime::Exponential)] {
            plan.client.think_time_distribution = distribution;
            assert_is_read(&plan);
        }
    }

    #[test]
    fn own_operations_and_collections_are_read_from_a_record() {
        let plan = RecordedPlan::new(&json!({
            "data": {"collections": [{"name": "orders", "records": 7, "document": "{}"}]},
            "operations": [{"name": "all orders", "weight": 3, "command": "{find: 'orders'}"}],
        }));
        assert_eq!(plan.operations["all orders"], 3.0);
        assert_eq!(plan.data.unwrap().planned_documents(), 7);
    }

    #[test]
    fn index_build_and_price_are_read_from_a_record() {
        let plan = RecordedPlan::new(&json!({
            "price": {"per_h": 0.5, "currency": "USD"},
            "index_build": {"keys": "{\"a\": 1}"},
        }));
        assert_eq!(plan.price.unwrap().per_h, 0.5);
        assert_eq!(plan.index_build.unwrap().remedy, None);
    }

    #[test]
    fn missing_and_mistyped_tables_are_absent() {
        let plan = RecordedPlan::new(&json!({
            "server": "none",
            "client": {"clients": "many", "threads": 2},
            "schedule": {"kind": "poisson", "rate_per_s": 500},
        }));
        assert_eq!((&plan.server, &plan.client), (&None, &None));
        assert_eq!(plan.schedule_kind(), Some(ScheduleKind::Poisson));
        assert_eq!(plan.rate_per_s(), Some(500.0));
        assert!(plan.operations.is_empty());
        assert_eq!(RecordedPlan::new(&Value::Null), RecordedPlan::default());
    }
}
