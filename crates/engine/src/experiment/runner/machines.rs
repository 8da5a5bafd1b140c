//! Machines of an experiment: the facts on which all its runs agree.

use dyno_record::experiment::Experiment;
use dyno_record::model::{Environment, FleetRecord, RunDocument};
use dyno_record::storage::PreparedStorageRecord;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Storage that was prepared for the servers of a run.
pub(super) fn prepared(environment: &Environment) -> Option<&PreparedStorageRecord> {
    environment.data_storage.as_ref()?.prepared.as_ref()
}

/// Removes a machine's storage if it was made for single runs and differs in this one.
fn forget_other_storage(kept: &mut Environment, of_run: &Environment) {
    let setting = |storage: &PreparedStorageRecord| storage.setting.clone();
    if prepared(kept).map(setting) != prepared(of_run).map(setting) {
        kept.data_storage = None;
    }
}

/// Fields that always vary: the first run's values are kept.
const OF_MOMENT: [&str; 4] = ["clock_read_ns", "load_average", "data_storage", "doctor"];

/// Fields with independent parts, each absent if unknown. Other fields are kept or removed as a
/// whole: allowed CPUs without their quotas would look like CPUs without quotas.
const OF_FACTS: [&str; 1] = ["cpu_settings"];

fn retain_agreed(own: &mut Map<String, Value>, other: &Map<String, Value>) {
    own.retain(|key, value| {
        let key = key.as_str();
        match (value, other.get(key)) {
            _ if OF_MOMENT.contains(&key) => true,
            (Value::Object(facts), Some(Value::Object(found))) if OF_FACTS.contains(&key) => {
                retain_agreed(facts, found);
                true
            }
            (value, found) => found == Some(&*value),
        }
    });
}

/// Removes facts that differ in another run.
fn forget_others<T: Serialize + DeserializeOwned>(kept: &mut T, of_run: &T) {
    let (Ok(Value::Object(mut own)), Ok(Value::Object(other))) =
        (serde_json::to_value(&*kept), serde_json::to_value(of_run))
    else {
        return;
    };
    retain_agreed(&mut own, &other);
    if let Ok(agreed) = serde_json::from_value(Value::Object(own)) {
        *kept = agreed;
    }
}

fn keep_machine(kept: &mut Environment, of_run: &Environment) {
    forget_others(kept, of_run);
    forget_other_storage(kept, of_run);
}

/// Adds the machines of a run, and removes facts of known machines that differ in this run.
pub(super) fn keep(document: &mut Experiment, run: &RunDocument) {
    let own = &mut document.environment;
    keep_machine(own.get_or_insert_with(|| run.environment.clone()), &run.environment);
    for (host, found) in run.fleet.iter().flat_map(FleetRecord::machines) {
        let kept = document.hosts.entry(host.to_owned());
        keep_machine(kept.or_insert_with(|| found.clone()), found);
    }
    for (address, found) in run.server_machines() {
        let kept = document.server_machines.entry(address.to_owned());
        forget_others(kept.or_insert_with(|| found.clone()), found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::cpus::{AllowedCpus, CpuQuota};
    use dyno_record::model::{CpuSettings, StorageRecord};

    fn on(setting: Option<&str>) -> Environment {
        let prepared = setting.map(|setting| PreparedStorageRecord {
            setting: setting.to_owned(),
            ..PreparedStorageRecord::default()
        });
        Environment {
            data_storage: Some(StorageRecord { prepared, ..StorageRecord::default() }),
            ..Environment::default()
        }
    }

    #[test]
    fn machine_record_keeps_only_facts_of_all_runs() {
        let run = |hostname: &str, load_average| Environment {
            hostname: Some(hostname.to_owned()),
            cpus: Some(2),
            load_average: Some(load_average),
            cpu_settings: CpuSettings { turbo: Some(hostname == "vm"), ..CpuSettings::default() },
            ..Environment::default()
        };
        let mut kept = run("vm", 1.0);
        keep_machine(&mut kept, &run("vm", 3.0));
        assert_eq!(kept, run("vm", 1.0));
        keep_machine(&mut kept, &run("other", 2.0));
        let agreed =
            Environment { cpus: Some(2), load_average: Some(1.0), ..Environment::default() };
        assert_eq!(kept, agreed);
        // A fact that differed once stays unknown.
        keep_machine(&mut kept, &run("vm", 2.0));
        assert_eq!(kept, agreed);
    }

    #[test]
    fn only_the_nested_fact_that_differs_is_removed() {
        let run = |turbo, quota| Environment {
            cpu_settings: CpuSettings {
                turbo: Some(turbo),
                smt: Some("on".to_owned()),
                ..CpuSettings::default()
            },
            allowed_cpus: Some(AllowedCpus {
                cpus: "0-3".to_owned(),
                quotas: vec![CpuQuota { group: "/".to_owned(), cpus: quota }],
            }),
            ..Environment::default()
        };
        let mut kept = run(true, 1.0);
        keep_machine(&mut kept, &run(false, 2.0));
        let expected = CpuSettings { smt: Some("on".to_owned()), ..CpuSettings::default() };
        assert_eq!(kept.cpu_settings, expected);
        assert_eq!(kept.allowed_cpus, None);
    }

    #[test]
    fn storage_that_differs_between_runs_is_not_of_the_machine() {
        for (first, later, stays) in [
            (None, None, true),
            (Some("xfs on loop:1GiB"), Some("xfs on loop:1GiB"), true),
            (Some("xfs on loop:1GiB"), Some("ext4 on loop:1GiB"), false),
            (Some("xfs on loop:1GiB"), None, false),
        ] {
            let mut kept = on(first);
            forget_other_storage(&mut kept, &on(later));
            assert_eq!(kept.data_storage.is_some(), stays, "{first:?}, {later:?}");
        }
    }
}
