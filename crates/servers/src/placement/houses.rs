//! Processes that live on nodes: who settles where, and how a node's cores are divided among those
//! that live on it.

use std::cmp::Reverse;

use super::division::{cpus_of, divide};
use super::error::PlacementError;
use super::machine::{Core, Machine};

/// Cores of each process.
pub(super) type Shares = Vec<Vec<Core>>;

/// The cores of one node that can be given out, and who lives on them.
pub(super) struct House {
    pub(super) node: u32,
    pub(super) cores: Vec<Core>,
    pub(super) tenants: Vec<Tenant>,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Tenant {
    Instance(usize),
    Client(usize),
}

/// A house for each node of these cores.
pub(super) fn built_of(cores: Vec<Core>) -> Vec<House> {
    let mut houses: Vec<House> = Vec::new();
    for core in cores {
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

/// Gives a tenant the node with the most cores for each that lives there, among equals the nearest
/// to `near`, then one in the emptiest package. `None` when no node fits.
pub(super) fn settle(
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
pub(super) fn even_out(instances: &mut [Vec<Core>], homes: &[u32]) {
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

/// Divides the cores of every node among its tenants, instances before clients.
pub(super) fn share_out(
    houses: &[House],
    count: usize,
) -> Result<(Shares, Shares), PlacementError> {
    let mut instances = vec![Vec::new(); count];
    let mut clients = vec![Vec::new(); count];
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
