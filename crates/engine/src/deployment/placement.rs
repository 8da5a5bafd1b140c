//! Placement of a run's servers and clients on this machine, and its verification.

mod clients;

pub use clients::{ClientsAlone, check_clients_alone};
pub(crate) use clients::{cpus_of, memory_setter};

use crate::deployment;
use crate::error::{Error, Kind};
use dyno_plan::Plan;
use dyno_plan::model::ServerKind;
use dyno_plan::placement::ClientPolicy;
use dyno_record::model::{Caveat, CaveatKind, PlacementRecord, PlannedMachine, PlannedNode};
use dyno_record::statement;
use dyno_servers::MemoryShare;
use dyno_servers::placement::{
    self, AchievedPlacement, CpuSet, Deviation, InstancePlacement, Machine, MemoryPolicy, Node,
    Placement, PlacementError, PlacementRequest,
};
use std::collections::BTreeSet;
use std::path::Path;

/// The machine and the placement planned on it.
pub struct HostPlacement {
    pub machine: Machine,
    /// Places of servers and clients.
    pub placement: Placement,
}

impl HostPlacement {
    /// Plans the placement that a plan requests; the default is `none`. `None` if the plan starts
    /// no server and requests no placement.
    pub fn from_plan(plan: &Plan) -> Result<Option<Self>, Error> {
        let request = request(plan)?;
        request.map(Self::planned).transpose()
    }

    /// The same for servers with clients on other machines.
    pub fn of_servers_alone(plan: &Plan) -> Result<Option<Self>, Error> {
        let request = request(plan)?
            .map(|request| PlacementRequest { client: ClientPolicy::Unpinned, ..request });
        request.map(Self::planned).transpose()
    }

    fn planned(request: PlacementRequest) -> Result<Self, Error> {
        let machine = Machine::read(Path::new("/")).map_err(failure)?;
        let placement = placement::plan(&machine, &request).map_err(failure)?;
        Ok(HostPlacement { machine, placement })
    }

    /// Place of one server.
    pub fn of_server(&self, number: usize) -> Option<InstancePlacement> {
        let place = self.placement.instances.get(number)?;
        (*place != InstancePlacement::default()).then(|| place.clone())
    }

    /// Number of CPUs of all servers together; `None` if a server is not bound to CPUs.
    pub fn cpus_of_servers(&self) -> Option<u32> {
        let mut all = BTreeSet::new();
        for place in &self.placement.instances {
            all.extend(place.cpus.as_ref()?.iter());
        }
        u32::try_from(all.len()).ok().filter(|count| *count > 0)
    }

    /// Place of one of `clients`. A single client of several servers gets the CPUs of all places,
    /// and the memory policy of the first.
    pub fn of_client(&self, number: usize, clients: usize) -> InstancePlacement {
        let all = &self.placement.clients;
        let places = match clients {
            1 => &all[..],
            _ => all.get(number).map(std::slice::from_ref).unwrap_or_default(),
        };
        let cpus: Option<Vec<&CpuSet>> = places.iter().map(|place| place.cpus.as_ref()).collect();
        let cpus = cpus.into_iter().flatten();
        let cpus: CpuSet = cpus.flat_map(|cpus| cpus.iter()).collect();
        InstancePlacement {
            cpus: (!cpus.is_empty()).then_some(cpus),
            memory: places.first().map_or(MemoryPolicy::Default, |place| place.memory.clone()),
        }
    }

    /// Memory of each data server, if there are several or they are bound: a single unbound server
    /// uses its own default.
    pub fn memory(&self) -> Option<Vec<MemoryShare>> {
        let instances = &self.placement.instances;
        let is_bound = instances.iter().any(|place| *place != InstancePlacement::default());
        (is_bound || instances.len() > 1).then(|| self.placement.memory_shares(&self.machine))
    }

    /// Compares the plan with the actual placement of `processes`, the running servers. Adds a
    /// caveat for each difference.
    pub fn verify(&self, processes: &[u32]) -> (PlacementRecord, Vec<Caveat>) {
        let placed = processes.iter().zip(&self.placement.instances).enumerate();
        let mut record = PlacementRecord {
            request: self.placement.request.to_string(),
            instances: texts(&self.placement.instances),
            clients: texts(&self.placement.clients),
            notes: self.placement.notes.iter().map(ToString::to_string).collect(),
            machine: Some(planned_machine(&self.machine)),
            ..PlacementRecord::default()
        };
        let mut caveats = Vec::new();
        for (number, (process, place)) in placed {
            let deviations = match AchievedPlacement::read(*process, Path::new("/")) {
                Ok(achieved) => {
                    record.achieved.push(serde_json::to_value(&achieved).unwrap_or_default());
                    achieved.deviations(place)
                }
                Err(error) => vec![Deviation::not_verified(&error)],
            };
            caveats.extend(deviations.iter().map(|deviation| {
                let statement = statement!(
                    "instance-placed-otherwise",
                    instance = number,
                    deviation = deviation.to_string()
                );
                Caveat::of_run(CaveatKind::ServerSetting, statement)
            }));
        }
        (record, caveats)
    }
}

fn planned_machine(machine: &Machine) -> PlannedMachine {
    let node = |node: &Node| PlannedNode {
        number: node.number,
        cpus: node.cpus.to_string(),
        memory_bytes: node.memory_bytes,
    };
    PlannedMachine {
        cpus: machine.allowed_cpus.to_string(),
        memory_limit_bytes: machine.limits.memory_bytes,
        nodes: machine.nodes.iter().map(node).collect(),
    }
}

/// Compares the worker threads of this process with their planned places. Workers are numbered
/// consecutively, `threads` for each of `clients`. `None` without workers or without a plan.
pub fn client_deviations(
    place: &HostPlacement,
    clients: usize,
    threads: usize,
) -> Option<Vec<Caveat>> {
    let workers = workers()?;
    let mut caveats = Vec::new();
    let mut is_planned = false;
    for number in 0..clients {
        let planned = place.of_client(number, clients);
        let own: Vec<u32> = workers
            .iter()
            .filter(|(worker, _)| worker / threads.max(1) == number)
            .map(|(_, thread)| *thread)
            .collect();
        let is_left = planned.cpus.is_none() && planned.memory.nodes().is_empty();
        if is_left || own.is_empty() {
            continue;
        }
        is_planned = true;
        let found = placement::verify_threads(std::process::id(), &own, &planned, Path::new("/"));
        caveats.extend(found.iter().map(|deviation| {
            let statement = statement!(
                "client-placed-otherwise",
                client = number,
                deviation = deviation.to_string()
            );
            Caveat::of_run(CaveatKind::ServerSetting, statement)
        }));
    }
    is_planned.then_some(caveats)
}

/// Running worker threads: number and thread.
fn workers() -> Option<Vec<(usize, u32)>> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    let found: Vec<_> = tasks
        .filter_map(|task| {
            let task = task.ok()?;
            let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
            let number = name.trim_end().strip_prefix("worker-")?.parse().ok()?;
            Some((number, task.file_name().to_str()?.parse().ok()?))
        })
        .collect();
    (!found.is_empty()).then_some(found)
}

fn texts(places: &[InstancePlacement]) -> Vec<String> {
    places.iter().map(ToString::to_string).collect()
}

/// Refuses placements that no machine could have. With `over_machines` each member of the
/// deployment has its own machine.
pub(super) fn check_elsewhere(plan: &Plan, over_machines: bool) -> Result<(), Error> {
    let mut plan = plan.clone();
    if over_machines {
        plan.server.topology = None;
    }
    let request = request(&plan)?;
    request.map_or(Ok(()), |request| placement::check_anywhere(&request).map_err(failure))
}

/// The placement that a plan requests.
fn request(plan: &Plan) -> Result<Option<PlacementRequest>, Error> {
    let text = match (&plan.server.placement, plan.server.kind) {
        (None, ServerKind::Uri) => return Ok(None),
        (None, _) => "none",
        (Some(text), _) => text,
    };
    let servers = deployment::topology_of(plan)?.data_servers();
    PlacementRequest::parse(text, servers).map(Some).map_err(|error| failure(error.into()))
}

fn failure(error: PlacementError) -> Error {
    let hint = error.hint();
    let exit = match error {
        PlacementError::Read { .. } | PlacementError::Refused { .. } => Kind::Environment,
        _ => Kind::BadInput,
    };
    Error::from_cause(exit, error).with_optional_hint(hint)
}
