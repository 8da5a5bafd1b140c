//! The run document before any measurement.

use crate::version::VERSION;
use dyno_plan::Plan;
use dyno_record::model::{Environment, RunDocument, SCHEMA_VERSION, ServerRecord};
use jiff::Timestamp;

/// A document with status `running` and without results.
pub fn initial(plan: &Plan, started: Timestamp, environment: Environment) -> RunDocument {
    RunDocument {
        schema_version: SCHEMA_VERSION,
        dyno_version: VERSION.into(),
        name: plan.name.clone(),
        started_at: started.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
        plan: dyno_plan::file::recorded(plan),
        operations: plan.counted_operations(),
        environment,
        ..RunDocument::default()
    }
}

/// One record for all servers of a run: the record of a single server unchanged, otherwise with
/// summed sizes, the first server's settings, and all addresses.
pub(crate) fn server_of_all(servers: &[ServerRecord]) -> ServerRecord {
    let Some(first) = servers.first() else {
        return ServerRecord::default();
    };
    if servers.len() == 1 {
        return first.clone();
    }
    let sum =
        |size: fn(&ServerRecord) -> Option<u64>| -> Option<u64> { servers.iter().map(size).sum() };
    let addresses: Vec<&str> = servers.iter().map(|s| s.address.as_str()).collect();
    let one = first.topology.as_deref().unwrap_or("unknown");
    ServerRecord {
        address: addresses.join(", "),
        topology: Some(format!("{} x {one}", servers.len())),
        cache_bytes: sum(|server| server.cache_bytes),
        documents: sum(|server| server.documents),
        data_bytes: sum(|server| server.data_bytes),
        storage_bytes: sum(|server| server.storage_bytes),
        ..first.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::model::RunStatus;

    #[test]
    fn new_document_is_running_and_has_its_start_time() {
        let plan = dyno_plan::builtin::find("a").expect("it is built in");
        let started = "2026-08-22T10:15:00.5Z".parse().expect("it is a time");
        let document = initial(&plan, started, Environment::default());
        assert_eq!(document.status, RunStatus::Running);
        assert_eq!(document.started_at, "2026-08-22T10:15:00.500Z");
        assert_eq!(document.plan["data"]["records"], plan.data.records);
    }
}
