//! Placement of clients on machines without servers, and of the clients' threads.

use super::{failure, request, workers};
use crate::error::Error;
use dyno_load::job::SetMemory;
use dyno_plan::Plan;
use dyno_plan::placement::{ClientPolicy, names_clients};
use dyno_record::model::PlacementRecord;
use dyno_servers::placement::{
    self, AchievedThreads, CpuSet, Deviation, InstancePlacement, Machine, PreparedPlacement,
};
use std::path::Path;
use std::sync::Arc;

/// The one place of all clients on a machine without servers.
pub struct ClientsAlone {
    policy: ClientPolicy,
    /// Resolved for this machine.
    place: InstancePlacement,
    memory: Option<SetMemory>,
}

impl ClientsAlone {
    /// Resolves the plan's client place on this machine; `None` if the system decides.
    ///
    /// # Errors
    /// Places that [`check_clients_alone`] refuses, CPUs and nodes that this machine does not have,
    /// and memory policies that its kernel does not support.
    pub fn from_plan(plan: &Plan) -> Result<Option<Self>, Error> {
        let Some(policy) = named(plan)? else {
            return Ok(None);
        };
        let planned = Machine::read(Path::new("/"))
            .and_then(|machine| placement::plan_clients_alone(&machine, &policy))
            .map_err(failure);
        let planned = planned.and_then(|place| Ok((memory_setter(&place)?, place)));
        let (memory, place) = planned.map_err(|error| {
            let text =
                format!("cannot place the clients by `client={policy}` (`server.placement`)");
            error.context(text)
        })?;
        Ok(Some(ClientsAlone { policy, place, memory }))
    }

    /// CPUs of the worker threads; `None` if they are not bound.
    pub fn cpus(&self) -> Option<Vec<usize>> {
        cpus_of(&self.place)
    }

    /// Function that sets the memory policy of a worker thread; `None` if the system decides.
    pub fn memory(&self) -> Option<SetMemory> {
        self.memory.clone()
    }

    /// Record of the planned placement.
    pub fn record(&self) -> PlacementRecord {
        PlacementRecord {
            request: format!("client={}", self.policy),
            clients: vec![self.place.to_string()],
            ..PlacementRecord::default()
        }
    }

    /// The record with the actual places of the worker threads, and each difference. `None` without
    /// workers.
    pub fn verify(&self) -> Option<(PlacementRecord, Vec<String>)> {
        let threads: Vec<u32> = workers()?.into_iter().map(|(_, thread)| thread).collect();
        Some(self.verify_threads(&threads))
    }

    /// A thread that cannot be read because it ended counts as a difference: its place is unknown.
    fn verify_threads(&self, threads: &[u32]) -> (PlacementRecord, Vec<String>) {
        let (process, root) = (std::process::id(), Path::new("/"));
        let read = AchievedThreads::read(process, threads, &self.place, root);
        let (achieved, deviations) = match &read {
            Ok(achieved) => (
                vec![serde_json::to_value(achieved).unwrap_or_default()],
                achieved.deviations(&self.place),
            ),
            Err(error) => (Vec::new(), vec![Deviation::not_verified(error)]),
        };
        let record = PlacementRecord {
            achieved,
            clients_as_planned: Some(deviations.is_empty()),
            ..self.record()
        };
        let deviations = deviations.iter().map(ToString::to_string).collect();
        (record, deviations)
    }
}

/// Refuses client places that are impossible on machines without servers, whatever the machine.
///
/// # Errors
/// The text is not a placement, the place is relative to the servers, or each client has its own.
pub fn check_clients_alone(plan: &Plan) -> Result<(), Error> {
    named(plan).map(drop)
}

/// The plan's client place on machines without servers; `None` if the system decides.
fn named(plan: &Plan) -> Result<Option<ClientPolicy>, Error> {
    let placement = plan.server.placement.as_deref();
    if !placement.is_some_and(names_clients) {
        return Ok(None);
    }
    let policy = request(plan)?.map(|request| request.client);
    let policy = policy.filter(|policy| *policy != ClientPolicy::Unpinned);
    if let Some(policy) = &policy {
        placement::check_clients_alone(policy).map_err(failure)?;
    }
    Ok(policy)
}

/// CPU numbers of a client; `None` if it is not bound.
pub(crate) fn cpus_of(place: &InstancePlacement) -> Option<Vec<usize>> {
    let all = |cpus: &CpuSet| cpus.iter().map(|cpu| cpu as usize).collect();
    place.cpus.as_ref().map(all)
}

/// Function that sets the memory policy of a client's threads; `None` if the system decides.
///
/// # Errors
/// The kernel does not support the policy.
pub(crate) fn memory_setter(place: &InstancePlacement) -> Result<Option<SetMemory>, Error> {
    let prepared = PreparedPlacement::memory_of_client(place).map_err(failure)?;
    Ok(prepared
        .map(|prepared| -> SetMemory { Arc::new(move || prepared.apply_to_current_thread()) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_servers::placement::PlacementError;

    fn plan(placement: &str) -> Plan {
        let text = format!(
            "base = \"a\"\n[server]\nkind = \"mongod\"\npairs = 2\nplacement = \"{placement}\"\n"
        );
        dyno_plan::file::parse(&text, "t").unwrap()
    }

    #[test]
    fn clients_on_their_own_hosts_accept_only_one_place() {
        let check = |placement: &str| check_clients_alone(&plan(placement));
        for accepted in [
            "spread",
            "spread client=none",
            "spread client=0-2",
            "spread client=0-2@bind:0",
            "spread client=any@interleave:all",
            "none client=nodes=!0@local",
        ] {
            assert!(check(accepted).is_ok(), "{accepted}");
        }
        for place in ["any@bind:0/any@bind:0", "0/1", "same", "other"] {
            let error = check(&format!("spread client={place}")).unwrap_err();
            let cause = error.cause.downcast_ref::<PlacementError>();
            assert!(
                matches!(cause, Some(PlacementError::NotOneForAll { .. })),
                "{place}: {error:?}"
            );
            let hint = error.hint.unwrap_or_default();
            assert!(hint.contains("`client=LIST`"), "{place}: {hint}");
        }
    }

    #[test]
    fn worker_threads_are_verified_against_their_place() {
        let placed = |client: &str| ClientsAlone::from_plan(&plan(&format!("none {client}")));
        assert!(placed("client=none").unwrap().is_none());
        let allowed = Machine::read(Path::new("/")).unwrap().allowed_cpus;
        let cpu = allowed.first().unwrap();
        let clients = placed(&format!("client={cpu}")).unwrap().unwrap();
        assert_eq!(clients.cpus(), Some(vec![cpu as usize]));
        assert!(clients.memory().is_none());
        assert_eq!(clients.record().clients, [format!("{cpu}@default")]);
        let seen = |place: &InstancePlacement| {
            let look = || {
                let prepared = PreparedPlacement::new(place);
                prepared.apply_to_current_thread().unwrap();
                clients.verify().unwrap()
            };
            std::thread::scope(|scope| {
                let worker = std::thread::Builder::new().name("worker-0".to_owned());
                worker.spawn_scoped(scope, look).unwrap().join().unwrap()
            })
        };
        let (record, deviations) = seen(&clients.place);
        assert_eq!((record.clients_as_planned, deviations), (Some(true), vec![]));
        let threads = &record.achieved[0]["threads"][0];
        assert_eq!(threads["cpus"], cpu.to_string());
        let (record, deviations) = seen(&InstancePlacement::default());
        let is_alone = allowed.len() == 1;
        assert_eq!(record.clients_as_planned, Some(is_alone), "{deviations:?}");
        // No thread has this id.
        let (record, deviations) = clients.verify_threads(&[u32::MAX]);
        assert_eq!((record.clients_as_planned, record.achieved), (Some(false), vec![]));
        let [deviation] = &deviations[..] else {
            panic!("{deviations:?}");
        };
        assert!(deviation.contains("be verified"), "{deviation}");
    }

    #[test]
    fn missing_numa_node_is_refused_with_the_nodes_that_exist() {
        let Err(error) = ClientsAlone::from_plan(&plan("none client=any@bind:4095")) else {
            panic!("node 4095 does not exist");
        };
        let cause = error.cause.downcast_ref::<PlacementError>();
        let Some(PlacementError::UnusableNode { node, what, known }) = cause else {
            panic!("{error:?}");
        };
        assert_eq!((*node, *what), (4095, "memory"));
        let (reason, nodes) = (error.reason(), format!("`{known}`"));
        for part in ["`client=any@bind:4095`", "`server.placement`", nodes.as_str()] {
            assert!(reason.contains(part), "{reason}");
        }
    }
}
