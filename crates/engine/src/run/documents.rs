//! The documents of a session: decides which to load, and checks that the expected ones exist.

use super::{SET_UP_LIMIT, Session};
use crate::deployment::DeploymentUnderTest;
use crate::deployment::server::ServerUnderTest;
use crate::error::{Error, refuse};
use crate::run::collection::{self, Decision};
use crate::run::consumption;
use crate::run::observation;
use crate::run::options::Extent;
use dyno_load::connect::{CancelCheck, Control};
use dyno_load::prepare::{self, CollectionState};
use dyno_load::workload::{LoadTask, Workload};
use dyno_plan::Plan;
use dyno_record::model::{
    Caveat, CaveatKind, CollectionRecord, Effect, PhaseEdge, PhaseKind, PhaseRecord,
    SecondaryIndexes,
};
use dyno_record::quantity::{Quantity, Unit};
use dyno_record::statement;
use dyno_record::statement::Number;
use dyno_wire::handshake::Role;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time limits for the check of the collection after a run, and after an interrupted one: the
/// server may hang, and the results are worth more than the sizes.
const LOOK_BACK_LIMIT: Duration = Duration::from_secs(60);
const LOOK_BACK_LIMIT_INTERRUPTED: Duration = Duration::from_secs(2);

/// How long to wait for an unreachable server after a run: a restarted one recovers.
pub(super) const RECONNECT_LIMIT: Duration = Duration::from_secs(10);
const RECONNECT_PAUSE: Duration = Duration::from_millis(250);

impl Session<'_> {
    /// Loads all incomplete collections at the same time, and waits until all are complete.
    pub(super) fn load_what_is_missing(
        &mut self,
        deployment: &mut DeploymentUnderTest,
        controls: &mut [Control],
    ) -> Result<(), Error> {
        let mut targets = Vec::new();
        self.keeps.clear();
        let mut count = 0;
        for (number, control) in controls.iter_mut().enumerate() {
            let is_own = self.plan.is_own();
            let load = if is_own { self.plan_own_load(control)? } else { self.plan_load(control)? };
            let Some(load) = load else {
                continue;
            };
            refuse_writes(control, "load documents into")?;
            if !is_own {
                prepare::create_collection(control, &self.plan.data)?;
            }
            let concerns = deployment.servers[number].concerns();
            let workload = Arc::new(Workload::load(self.plan, load, &concerns)?);
            count += load.count;
            self.keeps.push((number, load.keep_existing));
            targets.push((number, workload));
        }
        if targets.is_empty() {
            return Ok(());
        }
        self.load(&targets, count, deployment)?;
        self.context.cancel.check()
    }

    /// Creates the missing secondary indexes, on one server after the other.
    pub(super) fn create_indexes(
        &mut self,
        deployment: &DeploymentUnderTest,
        controls: &mut [Control],
    ) -> Result<(), Error> {
        if self.plan.is_own() {
            return self.create_own_indexes_after_load(deployment, controls);
        }
        let data = &self.plan.data;
        if data.indexes.is_empty() {
            return Ok(());
        }
        let start = Instant::now();
        let mut built = 0;
        for control in controls.iter_mut() {
            // Building takes any time; an interrupt ends it.
            control.set_limit(None);
            built += prepare::create_indexes(control, data)?;
            control.set_limit(Some(SET_UP_LIMIT));
        }
        let build_s = (built > 0).then(|| start.elapsed().as_secs_f64());
        if let Some(build_s) = build_s {
            let time = Quantity::seconds(build_s);
            self.context.note(format!("created {built} secondary indexes in {time}"));
            // Changes left in memory would be written during the measurement.
            if deployment.is_started() {
                let cancel = self.context.cancel;
                self.context.noting(consumption::WRITING_BACK, || {
                    consumption::write_all(deployment.data_servers(), cancel);
                });
            }
        }
        self.document.secondary_indexes =
            Some(SecondaryIndexes { keys: data.indexes.clone(), build_s, each: Vec::new() });
        self.context.cancel.check()
    }

    /// The load phase, if there is something to load.
    fn plan_load(&mut self, control: &mut Control) -> Result<Option<LoadTask>, Error> {
        let data = &self.plan.data;
        let load = |keep_existing| LoadTask {
            first: data.insert_start,
            count: collection::own_documents(self.plan),
            batch: self.plan.client.batch,
            keep_existing,
        };
        match self.options.extent {
            Extent::BlindMix => return Ok(None),
            Extent::BlindLoad => return Ok(Some(load(false))),
            Extent::Whole | Extent::Load => {}
        }
        let state = prepare::collection_state(control, self.plan)?;
        Ok(match collection::decide(self.plan, &state, self.options.no_load)? {
            Decision::Ready => {
                let note = format!(
                    "the collection holds its {} documents, nothing to load",
                    state.documents
                );
                self.context.note(note);
                None
            }
            Decision::Load => Some(load(false)),
            Decision::Complete => {
                let note = format!(
                    "the collection holds {} of {} documents, loading the rest",
                    state.documents, data.records
                );
                self.context.note(note);
                Some(load(true))
            }
        })
    }

    /// Records the servers' collection statistics before or after the measured load.
    pub(super) fn note_collections(&mut self, controls: &mut [Control], at: PhaseEdge) {
        let phase = match self.options.extent {
            Extent::Whole | Extent::BlindMix => PhaseKind::Measure,
            Extent::Load | Extent::BlindLoad => PhaseKind::Load,
        };
        // The record has statistics of a single collection.
        let is_read = self.plan.observe.server && !self.plan.is_own();
        if !is_read || self.context.cancel.requested() {
            return;
        }
        let is_one = controls.len() == 1;
        for (number, control) in controls.iter_mut().enumerate() {
            let instance = if is_one { "server".to_owned() } else { format!("pair-{number}") };
            let of_instance = |known: &CollectionRecord| known.instance == instance;
            let was_reported = self.document.collections.iter().any(of_instance);
            match observation::collection(control, self.plan, &instance, phase, at) {
                Ok(found) => self.document.collections.push(found),
                // Only a server that reported it before the load is expected to report it again.
                Err(reason) if was_reported => {
                    let said =
                        statement!("collection-not-read", server = instance, reason = reason);
                    let kind = CaveatKind::ProbeUnavailable;
                    self.caveats.push(Caveat::of_run(kind, said));
                }
                Err(_) => {}
            }
        }
    }

    /// Checks after loading and before measuring that the collection matches the plan. For runs
    /// that measure existing documents, only notes the difference.
    pub(super) fn check_collection(
        &mut self,
        number: usize,
        control: &mut Control,
    ) -> Result<(), Error> {
        if self.plan.is_own() {
            return self.check_own_collections(number, control);
        }
        let state = match self.options.extent {
            Extent::Whole | Extent::Load => prepare::collection_state(control, self.plan)?,
            Extent::BlindLoad | Extent::BlindMix => {
                prepare::collection_size(control, &self.plan.data)?
            }
        };
        match self.options.extent {
            Extent::Whole | Extent::Load => collection::check_loaded(self.plan, &state),
            Extent::BlindLoad => {
                let acknowledged = self.acknowledged(number);
                collection::check_acknowledged(self.plan, &state, acknowledged)
            }
            Extent::BlindMix => {
                self.warn_about_count(state.documents);
                Ok(())
            }
        }
        .map_err(|failure| match prepare::expiring_index(control, &self.plan.data) {
            Ok(Some(index)) => {
                failure.context(format!("the index `{index}` lets documents expire"))
            }
            _ => failure,
        })?;
        let server = &mut self.servers[number];
        server.documents = Some(state.documents);
        server.data_bytes = state.data_bytes;
        server.storage_bytes = state.storage_bytes;
        Ok(())
    }

    fn warn_about_count(&mut self, found: u64) {
        let planned = self.plan.data.records;
        if found != planned {
            let message =
                format!("the collection holds {found} documents, `recordcount` says {planned}");
            self.context.warning(&*message);
        }
    }

    /// Reads sizes after the run, and checks the number of written documents. Reconnects after a
    /// lost connection or a step-down, trying for up to `patience`; none after a failed run, whose
    /// server may be gone.
    pub(super) fn look_back(
        &mut self,
        number: usize,
        control: &mut Control,
        server: &ServerUnderTest,
        patience: Duration,
    ) {
        if self.plan.is_own() {
            // The plan's checks look at own collections; acknowledged changes do not give their numbers.
            return;
        }
        let limit = if self.context.cancel.requested() {
            // The end was already requested: only this check is left, with its own limit.
            control.set_cancel_check(CancelCheck::new(|| false));
            LOOK_BACK_LIMIT_INTERRUPTED
        } else if patience.is_zero() {
            RECONNECT_LIMIT
        } else {
            LOOK_BACK_LIMIT
        };
        control.set_limit(Some(limit));
        let state = match self.collection_after(control, server, limit, patience) {
            Ok(state) => state,
            Err(error) => {
                let said = statement!("documents-not-counted", reason = error.reason());
                let caveat = Caveat::of_run(CaveatKind::DocumentCount, said);
                return self.keep_count(number, Some(caveat));
            }
        };
        let changes = self.document_changes(number);
        let server = &mut self.servers[number];
        server.data_bytes = state.data_bytes.or(server.data_bytes);
        server.storage_bytes = state.storage_bytes.or(server.storage_bytes);
        let before = server.documents.unwrap_or(0);
        let caveat = count_caveat(self.plan, before, state.documents, &changes);
        self.keep_count(number, caveat);
    }

    /// The collection after the run, over a new connection if the old one is lost or its server
    /// stepped down.
    fn collection_after(
        &self,
        control: &mut Control,
        server: &ServerUnderTest,
        limit: Duration,
        patience: Duration,
    ) -> Result<CollectionState, Error> {
        let data = &self.plan.data;
        match prepare::collection_size(control, data) {
            Err(error) if prepare::needs_new_connection(&error) => {}
            looked => return Ok(looked?),
        }
        let until = Instant::now() + patience;
        loop {
            let error = match server.control() {
                Err(error) => error,
                Ok(new) => {
                    *control = new;
                    control.set_limit(Some(limit));
                    match prepare::collection_size(control, data) {
                        // An election can take longer than the new connection.
                        Err(error) if prepare::needs_new_connection(&error) => Error::from(error),
                        looked => return Ok(looked?),
                    }
                }
            };
            if Instant::now() >= until || self.context.cancel.requested() {
                return Err(error);
            }
            std::thread::sleep(RECONNECT_PAUSE);
        }
    }

    fn keep_count(&mut self, number: usize, caveat: Option<Caveat>) {
        match self.instances.get_mut(number) {
            None => self.caveats.extend(caveat),
            Some(instance) => {
                let of_instance = |caveat: Caveat| Caveat {
                    statement: caveat
                        .statement
                        .with("instance", Number::new(number as f64, Unit::Exact)),
                    ..caveat
                };
                self.caveats.extend(caveat.clone().map(of_instance));
                instance.caveats.extend(caveat);
            }
        }
    }

    /// The phases of one server.
    fn phases_of(&self, number: usize) -> &[PhaseRecord] {
        match self.instances.get(number) {
            Some(instance) => instance.recorder.phases(),
            None => self.recorder.phases(),
        }
    }

    /// Documents that the load phase wrote.
    fn acknowledged(&self, number: usize) -> u64 {
        self.phases_of(number)
            .iter()
            .filter(|phase| phase.name == PhaseKind::Load)
            .flat_map(|phase| phase.operations.values())
            .map(|operation| operation.documents)
            .sum()
    }

    fn document_changes(&self, number: usize) -> Changes {
        let mut changes = Changes::default();
        let phases = self.phases_of(number).iter();
        for phase in phases.filter(|phase| phase.name != PhaseKind::Load) {
            for (name, record) in self.document.commands(phase) {
                match self.document.operations.find(name).map(|one| one.effect) {
                    Some(Effect::Insert) => changes.inserted += record.count,
                    Some(Effect::Delete) => changes.deleted += record.count,
                    _ => {}
                }
            }
            let unclear = ["timeout", "disconnected", "protocol", "cancelled", "driver"];
            changes.unclear +=
                unclear.iter().filter_map(|kind| phase.errors.get(*kind)).sum::<u64>();
        }
        changes
    }
}

/// Documents that the phases after the load wrote and removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Changes {
    inserted: u64,
    deleted: u64,
    /// Operations with an unknown effect.
    unclear: u64,
}

/// Refuses to write to a secondary.
pub(super) fn refuse_writes(control: &Control, intent: &str) -> Result<(), Error> {
    if control.hello().role() != Role::Secondary {
        return Ok(());
    }
    let text = format!(
        "cannot {intent} `{}`: it is a secondary, which accepts no writes",
        control.endpoint()
    );
    refuse(
        text,
        "connect without `directConnection=true`, or load through the primary and read from this member with a workload such as `c`",
    )
}

/// A caveat if the number of documents does not match the acknowledged operations.
fn count_caveat(plan: &Plan, before: u64, after: u64, changes: &Changes) -> Option<Caveat> {
    // An upsert does not distinguish inserts from replacements.
    if plan.access.upsert && changes.inserted > 0 {
        return None;
    }
    let expected = (before + changes.inserted).saturating_sub(changes.deleted);
    // The statistics do not include operations that began in the warm-up and ended after it.
    let slack = changes.unclear + u64::from(plan.client.clients);
    (after.abs_diff(expected) > slack).then(|| {
        let statement =
            statement!("documents-after-run", after = after, before = before, expected = expected);
        Caveat::of_run(CaveatKind::DocumentCount, statement)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let mut plan = dyno_plan::builtin::find("d").expect("it is built in");
        plan.client.clients = 2;
        plan
    }

    #[test]
    fn missing_acknowledged_documents_are_a_caveat() {
        let changes = Changes { inserted: 10, deleted: 3, unclear: 1 };
        assert_eq!(count_caveat(&plan(), 100, 107, &changes), None);
        assert_eq!(count_caveat(&plan(), 100, 104, &changes), None);
        let caveat = count_caveat(&plan(), 100, 103, &changes).expect("four are missing");
        assert_eq!(caveat.kind, CaveatKind::DocumentCount);
        assert!(
            caveat.statement.number("after") == Some(103.0)
                && caveat.statement.number("expected") == Some(107.0),
            "{}",
            caveat.statement
        );
    }

    #[test]
    fn upserts_leave_the_document_count_unchecked() {
        let mut plan = plan();
        plan.access.upsert = true;
        assert_eq!(
            count_caveat(&plan, 100, 100, &Changes { inserted: 50, ..Changes::default() }),
            None
        );
    }
}
