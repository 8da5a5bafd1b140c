//! Plans CPUs and memory of every instance and client from a machine and a request. Pure functions.

use super::division::{cpus_of, divide, take};
use super::error::PlacementError;
use super::machine::{Core, Machine};
use super::node_cores::{NodeCores, Process, Shares, assign, by_node, divide_cores, even_out};
use super::outcome::{Placement, counted, notes, process_name};
use dyno_plan::placement::{
    ClientPolicy, InstancePlacement, MemoryPolicy, PlacementRequest, Policy,
};
use dyno_plan::placement::{CpuSet, NodeSet};

/// Processes to place, in messages.
const INSTANCES: &str = "instances";

/// Plans where the instances and clients of `request` run on `machine`.
///
/// Only assigns CPUs and memory nodes that this process may use. Pinned processes never share a
/// CPU, and share a core only if the request names its CPUs individually. With a single memory
/// node, all policies except `custom` use the default memory policy.
///
/// # Errors
/// Any variant of [`PlacementError`] except read errors, most often
/// [`PlacementError::TooFewCores`].
pub fn plan(machine: &Machine, request: &PlacementRequest) -> Result<Placement, PlacementError> {
    check_anywhere(request)?;
    let planner = Planner {
        machine,
        request,
        count: request.instances as usize,
        cores: machine.allowed_cores(),
        reserved: explicit_clients(machine, request)?,
    };
    let (instances, clients) = planner.cpus()?;
    let instances = planner.with_memory(instances)?;
    let clients = match clients {
        Some(clients) => planner.client_memory(clients),
        None => planner.clients(&instances)?,
    };
    check_overlap(&instances, &clients)?;
    let notes = notes(machine, &instances, &clients);
    Ok(Placement { request: request.clone(), instances, clients, notes })
}

/// Refuses a request that no machine could satisfy.
///
/// # Errors
/// No servers, or a different number of explicit places.
pub fn check_anywhere(request: &PlacementRequest) -> Result<(), PlacementError> {
    if request.instances == 0 {
        return Err(PlacementError::NoInstances);
    }
    match &request.policy {
        Policy::Custom(places) => check_count(places, INSTANCES, request.instances as usize),
        _ => Ok(()),
    }
}

fn check_count(
    places: &[InstancePlacement],
    who: &'static str,
    wanted: usize,
) -> Result<(), PlacementError> {
    let given = places.len();
    if given == wanted {
        return Ok(());
    }
    Err(PlacementError::PlacementCount { who, given, wanted })
}

/// CPUs that the request assigns to clients by number; no instance may use them.
fn explicit_clients(
    machine: &Machine,
    request: &PlacementRequest,
) -> Result<CpuSet, PlacementError> {
    let mut cpus = CpuSet::default();
    match &request.client {
        ClientPolicy::Cores(list) => cpus.extend(list),
        ClientPolicy::Custom(placements) => {
            for placement in placements {
                cpus.extend(placement.cpus.as_ref().unwrap_or(&CpuSet::default()));
            }
        }
        ClientPolicy::Unpinned
        | ClientPolicy::Same
        | ClientPolicy::Other
        | ClientPolicy::Nodes(_) => {}
    }
    check_allowed(machine, &cpus)?;
    Ok(cpus)
}

/// Refuses an explicit place that the machine does not have.
pub(super) fn check_place(
    machine: &Machine,
    place: &InstancePlacement,
) -> Result<(), PlacementError> {
    check_allowed(machine, place.cpus.as_ref().unwrap_or(&CpuSet::default()))?;
    let known = &machine.allowed_memory_nodes;
    match place.memory.nodes().difference(known).first() {
        None => Ok(()),
        Some(node) => {
            Err(PlacementError::UnusableNode { node, what: "memory", known: known.clone() })
        }
    }
}

fn check_allowed(machine: &Machine, cpus: &CpuSet) -> Result<(), PlacementError> {
    let refused = cpus.difference(&machine.allowed_cpus);
    if refused.is_empty() {
        Ok(())
    } else {
        Err(PlacementError::UnusableCpus { refused, allowed: machine.allowed_cpus.clone() })
    }
}

fn check_overlap(
    instances: &[InstancePlacement],
    clients: &[InstancePlacement],
) -> Result<(), PlacementError> {
    let mut owned: Vec<(String, &CpuSet)> = Vec::new();
    for (index, placement) in instances.iter().chain(clients).enumerate() {
        let Some(cpus) = &placement.cpus else {
            continue;
        };
        let name = process_name(index, instances.len());
        if let Some((first, other)) = owned.iter().find(|(_, other)| !other.is_disjoint(cpus)) {
            return Err(PlacementError::Overlap {
                first: first.clone(),
                second: name,
                cpus: other.intersection(cpus),
            });
        }
        owned.push((name, cpus));
    }
    Ok(())
}

/// CPUs of each process; `None` if the system places it.
type Assignment = Vec<Option<CpuSet>>;

fn assignment(shares: &Shares) -> Assignment {
    shares.iter().map(|share| Some(cpus_of(share))).collect()
}

struct Planner<'a> {
    machine: &'a Machine,
    request: &'a PlacementRequest,
    /// Number of instances, and of clients.
    count: usize,
    /// Cores with their allowed CPUs.
    cores: Vec<Core>,
    /// CPUs that the request assigns to clients.
    reserved: CpuSet,
}

impl Planner<'_> {
    /// CPUs of the instances, and of the clients if both are decided together.
    fn cpus(&self) -> Result<(Assignment, Option<Assignment>), PlacementError> {
        match &self.request.policy {
            Policy::None | Policy::Interleave => Ok((vec![None; self.count], None)),
            Policy::Spread => self.assigned_to(None),
            Policy::Node(node) => self.assigned_to(Some(*node)),
            Policy::Cores(list) => Ok((self.divided(list, INSTANCES)?, None)),
            Policy::CoresPerInstance { cores, siblings } => {
                Ok((self.packed(cores.get() as usize, *siblings)?, None))
            }
            Policy::Custom(placements) => Ok((self.checked(placements, INSTANCES)?, None)),
        }
    }

    /// Places each instance on one node, and its client on the same or another one; a node's cores
    /// are divided evenly among the processes assigned to it.
    fn assigned_to(
        &self,
        only: Option<u32>,
    ) -> Result<(Assignment, Option<Assignment>), PlacementError> {
        let mut nodes = self.nodes_without(&self.reserved);
        self.check_node(only)?;
        let mut node_of_instance = Vec::new();
        for instance in 0..self.count {
            let node =
                assign(self.machine, &mut nodes, Process::Instance(instance), None, |node| {
                    only.is_none_or(|only| only == node)
                });
            node_of_instance.push(node.ok_or_else(|| self.no_core(only))?);
        }
        let client = &self.request.client;
        let pinned = matches!(client, ClientPolicy::Same | ClientPolicy::Other);
        if pinned {
            for (instance, &node) in node_of_instance.iter().enumerate() {
                let own: NodeSet = [node].into_iter().collect();
                self.assign_client(&mut nodes, instance, &own)?;
            }
        }
        let (mut instances, clients) = divide_cores(&nodes, self.count)?;
        even_out(&mut instances, &node_of_instance);
        Ok((assignment(&instances), pinned.then(|| assignment(&clients))))
    }

    fn check_node(&self, only: Option<u32>) -> Result<(), PlacementError> {
        let known: NodeSet = self.cores.iter().map(|core| core.node).collect();
        match only {
            Some(node) if !known.contains(node) => {
                Err(PlacementError::UnusableNode { node, what: "CPUs", known })
            }
            _ => Ok(()),
        }
    }

    /// The nodes with their cores, except cores with a CPU in `taken`.
    fn nodes_without(&self, taken: &CpuSet) -> Vec<NodeCores> {
        by_node(self.free_of(taken))
    }

    fn free_of(&self, taken: &CpuSet) -> Vec<Core> {
        self.cores.iter().filter(|core| core.cpus.is_disjoint(taken)).cloned().collect()
    }

    /// Assigns the client of an instance on the nodes `own` to a node.
    fn assign_client(
        &self,
        nodes: &mut [NodeCores],
        instance: usize,
        own: &NodeSet,
    ) -> Result<(), PlacementError> {
        let same = self.request.client == ClientPolicy::Same;
        let process = Process::Client(instance);
        let node =
            assign(self.machine, nodes, process, own.first(), |node| own.contains(node) == same);
        if node.is_some() {
            return Ok(());
        }
        if !same && self.cores.iter().all(|core| own.contains(core.node)) {
            return Err(PlacementError::NoOtherNode { instance });
        }
        let location =
            if same { format!("node {own}") } else { format!("every node except {own}") };
        Err(PlacementError::TooFewCores {
            location,
            available: 0,
            needed: 1,
            who: process_name(self.count + instance, self.count),
        })
    }

    fn no_core(&self, only: Option<u32>) -> PlacementError {
        PlacementError::TooFewCores {
            location: only.map_or("the machine".to_owned(), |node| format!("node {node}")),
            available: 0,
            needed: self.count,
            who: "the instances".to_owned(),
        }
    }

    /// Divides a list of CPUs core by core.
    fn divided(&self, list: &CpuSet, who: &'static str) -> Result<Assignment, PlacementError> {
        check_allowed(self.machine, list)?;
        let cores = self.machine.cores_within(list);
        if cores.len() < self.count {
            return Err(PlacementError::TooFewCores {
                location: format!("the list `{list}`"),
                available: cores.len(),
                needed: self.count,
                who: counted(self.count as u64, who.trim_end_matches('s')),
            });
        }
        Ok(assignment(&divide(&cores, self.count)))
    }

    fn packed(&self, cores: usize, siblings: bool) -> Result<Assignment, PlacementError> {
        let mut free = self.free_of(&self.reserved);
        let available = free.len();
        let mut placed: Vec<Vec<Core>> = Vec::new();
        for _ in 0..self.count {
            let load = |package| placed.iter().filter(|cores| cores[0].package == package).count();
            let taken = take(&mut free, cores, load);
            placed.push(taken.ok_or_else(|| PlacementError::TooFewCores {
                location: "the machine".to_owned(),
                available,
                needed: cores * self.count,
                who: format!("{} of {cores}", counted(self.count as u64, "instance")),
            })?);
        }
        let cpus = placed.iter().map(|cores| {
            Some(if siblings {
                cpus_of(cores)
            } else {
                cores.iter().filter_map(|core| core.cpus.first()).collect()
            })
        });
        Ok(cpus.collect())
    }

    /// Checks explicit places.
    fn checked(
        &self,
        placements: &[InstancePlacement],
        who: &'static str,
    ) -> Result<Assignment, PlacementError> {
        check_count(placements, who, self.count)?;
        for placement in placements {
            check_place(self.machine, placement)?;
        }
        Ok(placements.iter().map(|placement| placement.cpus.clone()).collect())
    }

    fn with_memory(
        &self,
        cpus_by_process: Assignment,
    ) -> Result<Vec<InstancePlacement>, PlacementError> {
        if let Policy::Custom(placements) = &self.request.policy {
            return Ok(self.written(placements));
        }
        let placement = |cpus: Option<CpuSet>| InstancePlacement {
            memory: self.memory_for(cpus.as_ref()),
            cpus,
        };
        Ok(cpus_by_process.into_iter().map(placement).collect())
    }

    /// Explicit places with the memory nodes of this machine.
    fn written(&self, placements: &[InstancePlacement]) -> Vec<InstancePlacement> {
        let nodes = &self.machine.allowed_memory_nodes;
        let places = placements.iter().map(|place| InstancePlacement {
            cpus: place.cpus.clone(),
            memory: place.memory.among(nodes),
        });
        places.collect()
    }

    fn memory_for(&self, cpus: Option<&CpuSet>) -> MemoryPolicy {
        if !self.machine.has_memory_choice() {
            return MemoryPolicy::Default;
        }
        match (&self.request.policy, cpus) {
            (Policy::Interleave, _) => {
                MemoryPolicy::Interleave(self.machine.allowed_memory_nodes.clone())
            }
            (Policy::Spread | Policy::Node(_) | Policy::Cores(_), Some(cpus)) => {
                MemoryPolicy::Bind(self.machine.memory_nodes_near(cpus))
            }
            (Policy::CoresPerInstance { .. }, _) => MemoryPolicy::Local,
            _ => MemoryPolicy::Default,
        }
    }

    /// Places the clients after the instances.
    fn clients(
        &self,
        instances: &[InstancePlacement],
    ) -> Result<Vec<InstancePlacement>, PlacementError> {
        let cpus_by_process = match &self.request.client {
            ClientPolicy::Unpinned => vec![None; self.count],
            ClientPolicy::Cores(list) => self.divided(list, "clients")?,
            ClientPolicy::Same | ClientPolicy::Other => self.around(instances)?,
            ClientPolicy::Custom(placements) => {
                self.checked(placements, "clients")?;
                return Ok(self.written(placements));
            }
            ClientPolicy::Nodes(_) => {
                return Err(PlacementError::NodesOfClientHosts {
                    client: self.request.client.to_string(),
                });
            }
        };
        Ok(self.client_memory(cpus_by_process))
    }

    fn client_memory(&self, cpus_by_process: Assignment) -> Vec<InstancePlacement> {
        let memory = |pinned: bool| {
            if pinned && self.machine.has_memory_choice() {
                MemoryPolicy::Local
            } else {
                MemoryPolicy::Default
            }
        };
        let placement =
            |cpus: Option<CpuSet>| InstancePlacement { memory: memory(cpus.is_some()), cpus };
        cpus_by_process.into_iter().map(placement).collect()
    }

    /// Places the clients on the cores that the instances leave free.
    fn around(&self, instances: &[InstancePlacement]) -> Result<Assignment, PlacementError> {
        let mut taken = CpuSet::default();
        for placement in instances {
            let cpus = placement.cpus.as_ref().ok_or_else(|| PlacementError::Unpinned {
                client: self.request.client.to_string(),
                policy: self.request.policy.to_string(),
            })?;
            taken.extend(cpus);
        }
        let mut nodes = self.nodes_without(&taken);
        for (index, placement) in instances.iter().enumerate() {
            let cpus = placement.cpus.as_ref().expect("unpinned instances are refused above");
            let own = self.machine.nodes_of(cpus);
            self.assign_client(&mut nodes, index, &own)?;
        }
        let (_, clients) = divide_cores(&nodes, self.count)?;
        Ok(assignment(&clients))
    }
}
