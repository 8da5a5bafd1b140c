//! The machines of an experiment, as the first run with each of them saw them.

use dyno_record::experiment::Experiment;
use dyno_record::model::{Environment, FleetRecord, RunDocument};
use dyno_record::storage::PreparedStorageRecord;

/// The storage that was made for the servers of a run.
pub(super) fn prepared(environment: &Environment) -> Option<&PreparedStorageRecord> {
    environment.data_storage.as_ref()?.prepared.as_ref()
}

/// Takes out the storage of a machine if it was made for single runs, and is another one in this.
fn forget_other_storage(kept: &mut Environment, of_run: &Environment) {
    let setting = |storage: &PreparedStorageRecord| storage.setting.clone();
    if prepared(kept).map(setting) != prepared(of_run).map(setting) {
        kept.data_storage = None;
    }
}

/// Keeps those of a run that are not known yet.
pub(super) fn keep(document: &mut Experiment, run: &RunDocument) {
    let own = document
        .environment
        .get_or_insert_with(|| run.environment.clone());
    forget_other_storage(own, &run.environment);
    for (host, found) in run.fleet.iter().flat_map(FleetRecord::machines) {
        let kept = document.hosts.entry(host.to_owned());
        forget_other_storage(kept.or_insert_with(|| found.clone()), found);
    }
    if document.server_machines.is_empty() {
        let found = run.server_machines().into_iter();
        let found = found.map(|(address, machine)| (address.to_owned(), machine.clone()));
        document.server_machines = found.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::model::StorageRecord;

    fn on(setting: Option<&str>) -> Environment {
        let prepared = setting.map(|setting| PreparedStorageRecord {
            setting: setting.to_owned(),
            ..PreparedStorageRecord::default()
        });
        Environment {
            data_storage: Some(StorageRecord {
                prepared,
                ..StorageRecord::default()
            }),
            ..Environment::default()
        }
    }

    #[test]
    fn storage_that_differs_from_run_to_run_is_none_of_the_machine() {
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
