//! From a machine and a request to CPUs and memory of every instance and client: a pure function.

use std::cmp::Reverse;

use super::division::{cpus_of, divide, take};
use super::error::PlacementError;
use super::id_set::{CpuSet, NodeSet};
use super::machine::{Core, Machine};
use super::outcome::{Placement, notes, process_name};
use super::policy::{ClientPolicy, InstancePlacement, MemoryPolicy, PlacementRequest, Policy};

/// Plans where the instances and clients of `request` run on `machine`.
///
/// Only CPUs and memory nodes that this process may use are given out. Wherever the policies pin
/// processes, no two of them share a CPU, and no core is divided between two of them unless the
/// request itself names its CPUs one by one. With a single memory node there is nothing to choose,
/// and the memory policy of all but `custom` is the default.
///
/// # Errors
/// Any variant of [`PlacementError`] but those of reading, [`PlacementError::TooFewCores`] foremost.
pub fn plan(machine: &Machine, request: &PlacementRequest) -> Result<Placement, PlacementError> {
    if request.instances == 0 {
        return Err(PlacementError::NoInstances);
    }
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
    Ok(Placement {
        request: request.clone(),
        instances,
        clients,
        notes,
    })
}

/// CPUs that the request gives to clients by number; no instance may have them.
fn explicit_clients(
    machine: &Machine,
    request: &PlacementRequest,
) -> Result<CpuSet, PlacementError> {
    let mut cpus = CpuSet::default();
    match &request.client {
        ClientPolicy::Cores(list) => cpus.extend(list),
        ClientPolicy::Custom(places) => {
            for place in places {
                cpus.extend(place.cpus.as_ref().unwrap_or(&CpuSet::default()));
            }
        }
        ClientPolicy::Unpinned | ClientPolicy::Same | ClientPolicy::Other => {}
    }
    check_allowed(machine, &cpus)?;
    Ok(cpus)
}

fn check_allowed(machine: &Machine, cpus: &CpuSet) -> Result<(), PlacementError> {
    let refused = cpus.difference(&machine.allowed_cpus);
    match refused.is_empty() {
        true => Ok(()),
        false => Err(PlacementError::UnusableCpus {
            refused,
            allowed: machine.allowed_cpus.clone(),
        }),
    }
}

fn check_overlap(
    instances: &[InstancePlacement],
    clients: &[InstancePlacement],
) -> Result<(), PlacementError> {
    let mut owned: Vec<(String, &CpuSet)> = Vec::new();
    for (index, place) in instances.iter().chain(clients).enumerate() {
        let Some(cpus) = &place.cpus else { continue };
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

/// CPUs of each process; `None` is one that the system places.
type Seats = Vec<Option<CpuSet>>;
/// Cores of each process.
type Shares = Vec<Vec<Core>>;

struct Planner<'a> {
    machine: &'a Machine,
    request: &'a PlacementRequest,
    /// Instances, and clients.
    count: usize,
    /// Cores with their allowed CPUs.
    cores: Vec<Core>,
    /// CPUs that the request gives to clients.
    reserved: CpuSet,
}

/// The cores of one node that can be given out, and who lives on them.
struct House {
    node: u32,
    cores: Vec<Core>,
    tenants: Vec<Tenant>,
}

#[derive(Clone, Copy, PartialEq)]
enum Tenant {
    Instance(usize),
    Client(usize),
}

impl Planner<'_> {
    /// CPUs of the instances, and those of the clients where both are decided together.
    fn cpus(&self) -> Result<(Seats, Option<Seats>), PlacementError> {
        match &self.request.policy {
            Policy::None | Policy::Interleave => Ok((vec![None; self.count], None)),
            Policy::Spread => self.living_on(None),
            Policy::Node(node) => self.living_on(Some(*node)),
            Policy::Cores(list) => Ok((self.divided(list, "instances")?, None)),
            Policy::CoresPerInstance { cores, siblings } => {
                Ok((self.packed(cores.get() as usize, *siblings)?, None))
            }
            Policy::Custom(places) => Ok((self.checked(places, "instances")?, None)),
        }
    }

    /// Each instance on one node, its client on the same or another; a node's cores are divided
    /// evenly among all that live there.
    fn living_on(&self, only: Option<u32>) -> Result<(Seats, Option<Seats>), PlacementError> {
        let mut houses = self.houses(&self.reserved);
        self.check_node(only)?;
        let mut homes = Vec::new();
        for instance in 0..self.count {
            let home = settle(
                self.machine,
                &mut houses,
                Tenant::Instance(instance),
                None,
                |node| only.is_none_or(|only| only == node),
            );
            homes.push(home.ok_or_else(|| self.no_core(only, "the instances"))?);
        }
        let client = &self.request.client;
        if matches!(client, ClientPolicy::Same | ClientPolicy::Other) {
            for (instance, &home) in homes.iter().enumerate() {
                let own: NodeSet = [home].into_iter().collect();
                self.settle_client(&mut houses, instance, &own)?;
            }
        }
        let (mut instances, clients) = self.share_out(&houses)?;
        even_out(&mut instances, &homes);
        let seats = |shares: Shares| -> Seats {
            let seats = shares.iter().map(|share| Some(cpus_of(share)));
            seats.collect()
        };
        let pinned = matches!(client, ClientPolicy::Same | ClientPolicy::Other);
        Ok((seats(instances), pinned.then(|| seats(clients))))
    }

    fn check_node(&self, only: Option<u32>) -> Result<(), PlacementError> {
        let known: NodeSet = self.cores.iter().map(|core| core.node).collect();
        match only {
            Some(node) if !known.contains(node) => Err(PlacementError::UnusableNode {
                node,
                what: "CPU",
                known,
            }),
            _ => Ok(()),
        }
    }

    /// The nodes with the cores of which no CPU is in `taken`.
    fn houses(&self, taken: &CpuSet) -> Vec<House> {
        let mut houses: Vec<House> = Vec::new();
        for core in self.free_of(taken) {
            match houses.iter_mut().find(|house| house.node == core.node) {
                Some(house) => house.cores.push(core),
                None => houses.push(House {
                    node: core.node,
                    cores: vec![core],
                    tenants: Vec::new(),
                }),
            }
        }
        houses
    }

    fn free_of(&self, taken: &CpuSet) -> Vec<Core> {
        let free = self.cores.iter();
        free.filter(|core| core.cpus.is_disjoint(taken))
            .cloned()
            .collect()
    }

    /// Finds a node for the client of an instance that has the nodes `own`.
    fn settle_client(
        &self,
        houses: &mut [House],
        instance: usize,
        own: &NodeSet,
    ) -> Result<(), PlacementError> {
        let same = self.request.client == ClientPolicy::Same;
        let tenant = Tenant::Client(instance);
        let home = settle(self.machine, houses, tenant, own.first(), |node| {
            own.contains(node) == same
        });
        if home.is_some() {
            return Ok(());
        }
        if !same && self.cores.iter().all(|core| own.contains(core.node)) {
            return Err(PlacementError::NoOtherNode { instance });
        }
        let place = match same {
            true => format!("node {own}"),
            false => format!("every node but {own}"),
        };
        Err(PlacementError::TooFewCores {
            place,
            available: 0,
            needed: 1,
            who: process_name(self.count + instance, self.count),
        })
    }

    /// Divides the cores of every node among its tenants, instances before clients.
    fn share_out(&self, houses: &[House]) -> Result<(Shares, Shares), PlacementError> {
        let mut instances = vec![Vec::new(); self.count];
        let mut clients = vec![Vec::new(); self.count];
        for house in houses {
            if house.cores.len() < house.tenants.len() {
                return Err(crowded(house));
            }
            let shares = divide(&house.cores, house.tenants.len());
            for (tenant, share) in house.tenants.iter().zip(shares) {
                match *tenant {
                    Tenant::Instance(index) => instances[index] = share,
                    Tenant::Client(index) => clients[index] = share,
                }
            }
        }
        Ok((instances, clients))
    }

    fn no_core(&self, only: Option<u32>, who: &str) -> PlacementError {
        PlacementError::TooFewCores {
            place: only.map_or("the machine".to_owned(), |node| format!("node {node}")),
            available: 0,
            needed: self.count,
            who: who.to_owned(),
        }
    }

    /// A list of CPUs, divided core by core.
    fn divided(&self, list: &CpuSet, who: &'static str) -> Result<Seats, PlacementError> {
        check_allowed(self.machine, list)?;
        let cores = self.machine.cores_within(list);
        if cores.len() < self.count {
            return Err(PlacementError::TooFewCores {
                place: format!("the list `{list}`"),
                available: cores.len(),
                needed: self.count,
                who: format!("{} {who}", self.count),
            });
        }
        let shares = divide(&cores, self.count);
        Ok(shares.iter().map(|share| Some(cpus_of(share))).collect())
    }

    fn packed(&self, cores: usize, siblings: bool) -> Result<Seats, PlacementError> {
        let mut free = self.free_of(&self.reserved);
        let available = free.len();
        let mut placed: Vec<Vec<Core>> = Vec::new();
        for _ in 0..self.count {
            let load = |package| {
                let placed = placed.iter();
                placed.filter(|cores| cores[0].package == package).count()
            };
            let taken = take(&mut free, cores, load);
            placed.push(taken.ok_or_else(|| PlacementError::TooFewCores {
                place: "the machine".to_owned(),
                available,
                needed: cores * self.count,
                who: format!("{} instances of {cores}", self.count),
            })?);
        }
        let seats = placed.iter().map(|cores| match siblings {
            true => Some(cpus_of(cores)),
            false => Some(cores.iter().filter_map(|core| core.cpus.first()).collect()),
        });
        Ok(seats.collect())
    }

    /// Places that are written out.
    fn checked(
        &self,
        places: &[InstancePlacement],
        who: &'static str,
    ) -> Result<Seats, PlacementError> {
        if places.len() != self.count {
            return Err(PlacementError::PlaceCount {
                who,
                given: places.len(),
                wanted: self.count,
            });
        }
        for place in places {
            check_allowed(
                self.machine,
                place.cpus.as_ref().unwrap_or(&CpuSet::default()),
            )?;
            let known = &self.machine.allowed_memory_nodes;
            let forbidden = place.memory.nodes().difference(known);
            if let Some(node) = forbidden.first() {
                return Err(PlacementError::UnusableNode {
                    node,
                    what: "memory",
                    known: known.clone(),
                });
            }
        }
        Ok(places.iter().map(|place| place.cpus.clone()).collect())
    }

    fn with_memory(&self, seats: Seats) -> Result<Vec<InstancePlacement>, PlacementError> {
        if let Policy::Custom(places) = &self.request.policy {
            return Ok(places.clone());
        }
        let place = |cpus: Option<CpuSet>| InstancePlacement {
            memory: self.memory_for(cpus.as_ref()),
            cpus,
        };
        Ok(seats.into_iter().map(place).collect())
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

    /// Clients that are placed after the instances.
    fn clients(
        &self,
        instances: &[InstancePlacement],
    ) -> Result<Vec<InstancePlacement>, PlacementError> {
        let seats = match &self.request.client {
            ClientPolicy::Unpinned => vec![None; self.count],
            ClientPolicy::Cores(list) => self.divided(list, "clients")?,
            ClientPolicy::Same | ClientPolicy::Other => self.around(instances)?,
            ClientPolicy::Custom(places) => {
                self.checked(places, "clients")?;
                return Ok(places.clone());
            }
        };
        Ok(self.client_memory(seats))
    }

    fn client_memory(&self, seats: Seats) -> Vec<InstancePlacement> {
        let memory = |pinned: bool| match pinned && self.machine.has_memory_choice() {
            true => MemoryPolicy::Local,
            false => MemoryPolicy::Default,
        };
        let place = |cpus: Option<CpuSet>| InstancePlacement {
            memory: memory(cpus.is_some()),
            cpus,
        };
        seats.into_iter().map(place).collect()
    }

    /// Clients on the cores that the instances have left.
    fn around(&self, instances: &[InstancePlacement]) -> Result<Seats, PlacementError> {
        let mut taken = CpuSet::default();
        for place in instances {
            let cpus = place
                .cpus
                .as_ref()
                .ok_or_else(|| PlacementError::Unpinned {
                    client: self.request.client.to_string(),
                    policy: self.request.policy.to_string(),
                })?;
            taken.extend(cpus);
        }
        let mut houses = self.houses(&taken);
        for (index, place) in instances.iter().enumerate() {
            let cpus = place
                .cpus
                .as_ref()
                .expect("unpinned instances are refused above");
            let own = self.machine.nodes_of(cpus);
            self.settle_client(&mut houses, index, &own)?;
        }
        let (_, clients) = self.share_out(&houses)?;
        Ok(clients.iter().map(|share| Some(cpus_of(share))).collect())
    }
}

/// Gives a tenant the node with the most cores for each that lives there, among equals the nearest
/// to `near`, then one in the emptiest package. `None` when no node fits.
fn settle(
    machine: &Machine,
    houses: &mut [House],
    tenant: Tenant,
    near: Option<u32>,
    fits: impl Fn(u32) -> bool,
) -> Option<u32> {
    let crowd = |package: u32| -> usize {
        let same = houses.iter().filter(|house| house.package() == package);
        same.map(|house| house.tenants.len()).sum()
    };
    let best = (0..houses.len())
        .filter(|&index| fits(houses[index].node))
        .min_by_key(|&index| {
            let house = &houses[index];
            // Scaled, so that thirds and halves of small nodes are told apart.
            let cores_each = house.cores.len() * 1024 / (house.tenants.len() + 1);
            let distance = near.map_or(0, |near| machine.distance(near, house.node));
            (
                Reverse(cores_each),
                distance,
                crowd(house.package()),
                house.node,
            )
        })?;
    houses[best].tenants.push(tenant);
    Some(houses[best].node)
}

impl House {
    fn package(&self) -> u32 {
        self.cores.first().map_or(0, |core| core.package)
    }
}

fn crowded(house: &House) -> PlacementError {
    let instances = house.tenants.iter();
    let instances = instances.filter(|tenant| matches!(tenant, Tenant::Instance(_)));
    let instances = instances.count();
    PlacementError::TooFewCores {
        place: format!("node {}", house.node),
        available: house.cores.len(),
        needed: house.tenants.len(),
        who: match house.tenants.len() - instances {
            0 => format!("{instances} instances"),
            clients => format!("{instances} instances and {clients} clients"),
        },
    }
}

/// Takes cores from instances on roomy nodes until none has more than the largest on the node of
/// the smallest: instances of different size cannot be compared.
fn even_out(instances: &mut [Vec<Core>], homes: &[u32]) {
    let size = |share: &[Core]| cpus_of(share).len();
    let smallest = (0..instances.len()).min_by_key(|&index| size(&instances[index]));
    let Some(smallest) = smallest else { return };
    let neighbours = (0..instances.len()).filter(|&index| homes[index] == homes[smallest]);
    let Some(limit) = neighbours.map(|index| size(&instances[index])).max() else {
        return;
    };
    for share in instances {
        while size(share) > limit && share.len() > 1 {
            share.pop();
        }
    }
}
