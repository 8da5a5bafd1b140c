//! Own collections of a session: loading and indexing them, and the plan's checks.

use super::documents::refuse_writes;
use super::{SET_UP_LIMIT, Session};
use crate::deployment::DeploymentUnderTest;
use crate::error::{Error, Kind};
use crate::run::consumption;
use crate::run::options::Extent;
use dyno_load::connect::Control;
use dyno_load::prepare;
use dyno_load::workload::LoadTask;
use dyno_plan::Plan;
use dyno_plan::model::ServerKind;
use dyno_plan::workload::template::{Generator, Value};
use dyno_plan::workload::{BuildTime, Collection, ReadWorkload};
use dyno_record::model::{
    Caveat, CaveatKind, CheckRecord, DroppedCollection, IndexTime, PhaseKind, SecondaryIndexes,
};
use dyno_record::statement;
use std::time::{Duration, Instant};

/// Time limit of a check: it aggregates whole collections.
const CHECK_LIMIT: Duration = Duration::from_secs(600);

impl Session<'_> {
    /// The load phase, if an own collection is not complete. Creates missing collections, and the indexes that are built
    /// before the load.
    pub(super) fn plan_own_load(
        &mut self,
        control: &mut Control,
    ) -> Result<Option<LoadTask>, Error> {
        refuse_transactions(control, self.plan)?;
        if self.options.extent == Extent::BlindMix {
            return Ok(None);
        }
        let counts = prepare::own_counts(control, self.plan)?;
        let Some(keep_existing) = decide(self.plan, &counts, self.options.no_load)? else {
            let documents: u64 = counts.iter().sum();
            let note = format!("the collections hold their {documents} documents, nothing to load");
            self.context.note(note);
            return Ok(None);
        };
        refuse_writes(control, "load documents into")?;
        prepare::create_own_collections(control, self.plan)?;
        self.create_own_indexes(control, BuildTime::Before)?;
        Ok(Some(LoadTask {
            first: 0,
            count: self.plan.data.planned_documents(),
            batch: self.plan.client.batch,
            keep_existing,
        }))
    }

    /// Creates the missing indexes that are built at this time.
    pub(super) fn create_own_indexes(
        &mut self,
        control: &mut Control,
        build: BuildTime,
    ) -> Result<(), Error> {
        control.set_limit(None);
        let start = Instant::now();
        let built = prepare::create_own_indexes(control, self.plan, build)?;
        let whole_s = start.elapsed().as_secs_f64();
        control.set_limit(Some(SET_UP_LIMIT));
        if built.is_empty() {
            return Ok(());
        }
        let all = prepare::own_index_keys(self.plan);
        let record = self.document.secondary_indexes.get_or_insert_with(|| SecondaryIndexes {
            keys: all,
            build_s: None,
            each: Vec::new(),
        });
        if build == BuildTime::After {
            record.build_s = Some(record.build_s.unwrap_or(0.0) + whole_s);
        }
        let time = |(keys, time): (String, Duration)| IndexTime {
            keys,
            before_load: build == BuildTime::Before,
            build_s: time.as_secs_f64(),
        };
        record.each.extend(built.into_iter().map(time));
        Ok(())
    }

    /// The own collections' indexes after the load, on one server after the other.
    pub(super) fn create_own_indexes_after_load(
        &mut self,
        deployment: &DeploymentUnderTest,
        controls: &mut [Control],
    ) -> Result<(), Error> {
        for control in controls.iter_mut() {
            // A collection that was complete may lack indexes of both kinds.
            self.create_own_indexes(control, BuildTime::Before)?;
            self.create_own_indexes(control, BuildTime::After)?;
        }
        let keys = prepare::own_index_keys(self.plan);
        if self.document.secondary_indexes.is_none() && !keys.is_empty() {
            self.document.secondary_indexes =
                Some(SecondaryIndexes { keys, build_s: None, each: Vec::new() });
        }
        let indexes = self.document.secondary_indexes.as_ref();
        let has_built = indexes.is_some_and(|indexes| indexes.build_s.is_some());
        // Changes left in memory would be written during the measurement.
        if has_built && deployment.is_started() {
            let cancel = self.context.cancel;
            self.context.noting(consumption::WRITING_BACK, || {
                consumption::write_all(deployment.data_servers(), cancel);
            });
        }
        self.context.cancel.check()
    }

    /// Checks after loading that the own collections are complete.
    pub(super) fn check_own_collections(
        &mut self,
        number: usize,
        control: &mut Control,
    ) -> Result<(), Error> {
        let counts = prepare::own_counts(control, self.plan)?;
        if self.options.extent != Extent::BlindMix {
            decide(self.plan, &counts, true).map_err(|failure| {
                failure.context("the load phase ended, but the collections are not complete")
            })?;
        }
        self.servers[number].documents = Some(counts.iter().sum());
        Ok(())
    }

    /// Drops the own collections of each server.
    pub(super) fn drop_own_collections(&mut self, controls: &mut [Control]) -> Result<(), Error> {
        for control in controls.iter_mut() {
            refuse_writes(control, "drop the collections of")?;
            let counts = prepare::own_counts(control, self.plan)?;
            let found = self.plan.data.collections.iter().zip(counts);
            let found: Vec<_> = found.filter(|(_, documents)| *documents > 0).collect();
            let is_started = self.plan.server.kind != ServerKind::Uri;
            if !is_started && !self.options.drop_foreign && !found.is_empty() {
                return Err(refuse_to_drop(self.plan, &found));
            }
            prepare::drop_own_collections(control, self.plan)?;
            for (collection, documents) in found {
                self.document.dropped.push(DroppedCollection {
                    namespace: namespace(self.plan, collection),
                    documents,
                    foreign_key: None,
                    all_keys_checked: false,
                });
            }
        }
        Ok(())
    }

    /// Performs the plan's checks on each server, and records their results. A violated check is a caveat; a check that
    /// cannot be performed is one as well.
    pub(super) fn perform_checks(&mut self, controls: &mut [Control], after: PhaseKind) {
        let (plan, is_one) = (self.plan, controls.len() == 1);
        for (number, control) in controls.iter_mut().enumerate() {
            let instance = (!is_one).then_some(number as u64);
            control.set_limit(Some(CHECK_LIMIT));
            for check in &plan.checks {
                if self.context.cancel.requested() {
                    return;
                }
                let record = match prepare::run_check(control, plan, check) {
                    Ok(found) => CheckRecord {
                        name: check.name.clone(),
                        after,
                        instance,
                        expected: check.expect.clone(),
                        documents: found.documents,
                        first: found.first,
                        passed: found.is_as_expected,
                        fault: None,
                    },
                    Err(error) => CheckRecord {
                        name: check.name.clone(),
                        after,
                        instance,
                        expected: check.expect.clone(),
                        documents: 0,
                        first: Vec::new(),
                        passed: false,
                        fault: Some(Error::from(error).reason()),
                    },
                };
                self.caveats.extend(check_caveat(&record));
                self.document.checks.push(record);
            }
            control.set_limit(Some(SET_UP_LIMIT));
        }
    }
}

/// A standalone server refuses transactions.
fn refuse_transactions(control: &Control, plan: &Plan) -> Result<(), Error> {
    let first = plan.operations.own.iter().find(|operation| operation.transaction);
    let Some(operation) = first.filter(|_| !control.hello().takes_retryable_writes()) else {
        return Ok(());
    };
    let message = format!(
        "cannot perform the transaction `{}`: the server `{}` is not a member of a replica set",
        operation.name,
        control.endpoint()
    );
    let hint = "start a replica set with `--topology replica-set=1`, or connect to one";
    Err(Error::new(Kind::Environment, message).with_hint(hint))
}

fn check_caveat(record: &CheckRecord) -> Option<Caveat> {
    if record.passed {
        return None;
    }
    let said = match &record.fault {
        Some(fault) => {
            statement!("check-not-performed", check = &record.name, reason = fault)
        }
        None => statement!(
            "check-violated",
            check = &record.name,
            expected = &record.expected,
            documents = record.documents,
            after = record.after.as_str(),
            first = record.first.join(", ")
        ),
    };
    Some(Caveat::of_run(CaveatKind::CheckViolated, said))
}

/// Whether the collections must be loaded, and whether they already hold some of their documents.
fn decide(plan: &Plan, counts: &[u64], no_load: bool) -> Result<Option<bool>, Error> {
    let collections = plan.data.collections.iter().zip(counts);
    let planned = |collection: &Collection| collection.records.unwrap_or(0);
    let mut incomplete = None;
    for (collection, &found) in collections {
        let planned = planned(collection);
        if found > planned {
            return Err(wrong_count(plan, collection, found).with_hint(
                "an earlier run may have inserted them; drop the collections first with `--fresh`",
            ));
        }
        if found < planned {
            incomplete.get_or_insert((collection, found));
        }
    }
    let Some((first, found)) = incomplete else {
        return Ok(None);
    };
    if no_load {
        let hint = "leave out `--no-load`, or drop the collections first with `--fresh`";
        return Err(wrong_count(plan, first, found).with_hint(hint));
    }
    let has_some = counts.iter().any(|found| *found > 0);
    let read = ReadWorkload::new(&plan.own_workload());
    let has_keys = read.is_ok_and(|read| read.collections.iter().all(|one| has_key(&one.document)));
    if has_some && !has_keys {
        // Documents without a key of their own would be loaded twice.
        let hint = "drop the collections first with `--fresh`, or give the documents an `_id`";
        return Err(wrong_count(plan, first, found).with_hint(hint));
    }
    Ok(Some(has_some))
}

/// Whether each document has an `_id` of the plan, and not one that the server or the driver adds.
fn has_key(document: &Value) -> bool {
    match document {
        Value::Document(fields) => fields.iter().any(|(name, value)| {
            let is_optional =
                matches!(value, Value::Generated(one) if matches!(**one, Generator::Maybe { .. }));
            name == "_id" && !is_optional
        }),
        _ => false,
    }
}

fn wrong_count(plan: &Plan, collection: &Collection, found: u64) -> Error {
    let message = format!(
        "the collection `{}` holds {found} documents, the plan assumes {}",
        namespace(plan, collection),
        collection.records.unwrap_or(0)
    );
    Error::new(Kind::Environment, message)
}

fn refuse_to_drop(plan: &Plan, found: &[(&Collection, u64)]) -> Error {
    let names = found.iter().map(|(collection, documents)| {
        format!("`{}` with {documents} documents", namespace(plan, collection))
    });
    let names: Vec<String> = names.collect();
    let message = format!("would drop {}, which may belong to another program", names.join(", "));
    Error::new(Kind::Environment, message)
        .with_hint("use another database, or drop these documents with `--drop-foreign`")
}

fn namespace(plan: &Plan, collection: &Collection) -> String {
    format!("{}.{}", plan.data.database, collection.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(document: &str) -> Plan {
        let text = format!(
            "[[data.collections]]\nname = 'a'\nrecords = 10\ndocument = '{document}'\n\
            [[data.collections]]\nname = 'b'\nrecords = 5\ndocument = '{document}'\n\
            [[operations]]\nname = 'find'\nweight = 1\ncommand = '{{find: \"a\"}}'"
        );
        dyno_plan::file::parse(&text, "t").expect("it is valid")
    }

    #[test]
    fn incomplete_collections_are_loaded_and_others_refused() {
        let with_key = plan("{_id: \"%number\"}");
        let decided = |counts: [u64; 2]| decide(&with_key, &counts, false).ok();
        assert_eq!(decided([10, 5]), Some(None));
        assert_eq!(decided([0, 0]), Some(Some(false)));
        assert_eq!(decided([10, 0]), Some(Some(true)));
        assert_eq!(decided([11, 5]), None);
        assert!(decide(&with_key, &[10, 4], true).is_err());
        let without_key = plan("{a: 1}");
        assert!(decide(&without_key, &[0, 0], false).is_ok());
        assert!(decide(&without_key, &[10, 0], false).is_err());
    }

    #[test]
    fn violated_check_is_a_caveat() {
        let mut record = CheckRecord {
            name: "no negative stock".into(),
            after: PhaseKind::Measure,
            instance: None,
            expected: "0".into(),
            documents: 3,
            first: vec!["{}".into()],
            passed: false,
            fault: None,
        };
        let caveat = check_caveat(&record).expect("it is violated");
        assert_eq!(caveat.kind, CaveatKind::CheckViolated);
        record.passed = true;
        assert_eq!(check_caveat(&record), None);
    }
}
