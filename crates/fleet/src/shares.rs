//! Divides a plan among agents. All sums are exact: shares of a number, including a rate, add up to it, and no two agents load or
//! insert the same document of a server.

use dyno_plan::Plan;
use dyno_plan::fleet::{Amounts, FleetPlan, MOST_AGENTS, Mapping};
use dyno_plan::model::Schedule;
use serde::{Deserialize, Serialize};

/// Distance between the agents' seeds: odd, so that all differ, and far from usual seeds.
const SEED_STEP: u64 = 0x9E37_79B9_7F4A_7C15;
/// Seeds of a plan have 63 bits.
const SEED_BITS: u64 = (1 << 63) - 1;

/// Reason why a plan cannot be divided.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShareError {
    /// The plan has no fleet.
    #[error("the plan has no `[fleet]` table")]
    NoFleet,
    /// The number of agents is out of range.
    #[error("the number of agents is {agents}, but must be from 1 to {MOST_AGENTS}")]
    Agents { agents: u32 },
    /// The plan has no server to load.
    #[error("no server to load")]
    NoServer,
    /// Independent servers cannot be paired with the agents.
    #[error(
        "{agents} agents cannot be paired with {servers} servers: one of the numbers must be a multiple of the other"
    )]
    Pairing { agents: u32, servers: u32 },
    /// `fleet.table` does not fit the fleet.
    #[error("`fleet.table` {problem}, with {agents} agents and {servers} servers")]
    Table {
        /// The problem, as a predicate.
        problem: String,
        agents: u32,
        servers: u32,
    },
    /// An agent would have nothing to do.
    #[error(
        "`{key}` is {amount}, but must be at least {least}, one for each agent and server that it loads"
    )]
    TooFew {
        /// Key of the plan.
        key: &'static str,
        amount: u64,
        least: u64,
    },
}

/// The share of one agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// Number of the agent, from 0.
    pub index: u32,
    /// Number of agents in the fleet.
    pub agents: u32,
    /// Its share on each server that it loads; at least one.
    pub links: Vec<Link>,
}

/// The share of one agent on one server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Number of the server, or of the deployment, from 0.
    pub server: u32,
    /// Connections; at least 1.
    pub clients: u32,
    /// Offered rate in operations per second; absent in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// Offset of the first operation in the period of a constant schedule, in nanoseconds after the common start, so that agents do
    /// not send all at once.
    pub first_after_ns: u64,
    /// Operations to measure; absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<u64>,
    /// First document to load.
    pub load_first: u64,
    /// Documents to load; 0 if there are more agents than documents, or if no document is missing.
    pub load_count: u64,
    /// Whether some of them may exist already, and are kept.
    #[serde(default)]
    pub keep_existing: bool,
    /// Number of agents that insert into the server; the step between an agent's numbers of new documents.
    pub insert_step: u32,
    /// Offset of the agent's numbers in each step, from 0.
    pub insert_offset: u32,
    /// Seed of all random sequences.
    pub seed: u64,
}

impl Share {
    /// Connections to all servers.
    pub fn clients(&self) -> u64 {
        self.links.iter().map(|link| u64::from(link.clients)).sum()
    }

    /// One line about the share, recorded for a run that lost it.
    pub fn describe(&self) -> String {
        let rate: f64 = self.links.iter().filter_map(|link| link.rate_per_s).sum();
        let servers: Vec<String> = self.links.iter().map(|link| link.server.to_string()).collect();
        let mut text = format!("{} clients on server {}", self.clients(), servers.join(", "));
        if rate > 0.0 {
            text.push_str(&format!(" at {rate} operations/s"));
        }
        text
    }
}

impl Link {
    /// The plan of this link for the warm-up and measure phases; it works on its server's whole data set.
    #[must_use]
    pub fn run_plan(&self, plan: &Plan) -> Plan {
        let mut plan = plan.clone();
        plan.fleet = None;
        plan.client.clients = self.clients;
        plan.client.threads = plan.client.threads.min(self.clients);
        plan.client.seed = self.seed;
        if let Some((rate, rate_per_s)) = self.rate_per_s.zip(plan.schedule.rate_mut()) {
            *rate_per_s = rate;
        }
        plan.phases.operations = self.operations;
        plan.data.insert_step = self.insert_step;
        plan.data.insert_offset = self.insert_offset;
        plan
    }

    /// The plan of this link for the load phase; `None` if it loads nothing.
    pub fn load_plan(&self, plan: &Plan) -> Option<Plan> {
        if self.load_count == 0 {
            return None;
        }
        let mut plan = self.run_plan(plan);
        plan.data.insert_start = self.load_first;
        plan.data.insert_count = Some(self.load_count);
        Some(plan)
    }
}

/// The plan of all these links together.
pub(crate) fn plan_of_links<'a>(plan: &Plan, links: impl Iterator<Item = &'a Link>) -> Plan {
    let mut plan = plan.clone();
    plan.fleet = None;
    let (mut clients, mut rate_per_s, mut operations) = (0_u32, 0.0, 0_u64);
    for link in links {
        clients = clients.saturating_add(link.clients);
        rate_per_s += link.rate_per_s.unwrap_or(0.0);
        operations = operations.saturating_add(link.operations.unwrap_or(0));
    }
    plan.client.clients = clients;
    if let Some(planned) = plan.schedule.rate_mut() {
        *planned = rate_per_s;
    }
    plan.phases.operations = plan.phases.operations.and(Some(operations));
    plan
}

/// The part of `amount` for `weight` of `total`; `before` is the sum of the weights before it.
fn weighted(amount: u64, before: u64, weight: u64, total: u64) -> u64 {
    let up_to = |sum: u64| u128::from(amount) * u128::from(sum) / u128::from(total.max(1));
    (up_to(before + weight) - up_to(before)) as u64
}

/// Size of part `part` of `parts` equal parts; the first parts get the remainder.
pub(crate) fn even(amount: u64, part: u64, parts: u64) -> u64 {
    amount / parts + u64::from(part < amount % parts)
}

/// Start of part `part` of `parts`.
fn even_start(amount: u64, part: u64, parts: u64) -> u64 {
    amount / parts * part + part.min(amount % parts)
}

/// Splits a positive number into an integer of at most 53 bits and a power of two: integers divide without loss, and their parts
/// are exact.
fn to_units(rate: f64) -> (u64, f64) {
    let bits = rate.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32;
    let fraction = bits & ((1 << 52) - 1);
    match exponent {
        0 => (fraction, f64::from_bits(1)),
        // 2^(exponent - 1075): below the smallest normal number it is one bit of the fraction.
        1..=52 => (fraction | 1 << 52, f64::from_bits(1 << (exponent - 1))),
        _ => (fraction | 1 << 52, f64::from_bits((exponent as u64 - 52) << 52)),
    }
}

/// A link without its amounts.
struct Place {
    agent: u32,
    server: u32,
    clients: u64,
}

/// The shares of `agents` agents on `servers` servers; `servers` is ignored with a single deployment.
///
/// # Errors
/// [`ShareError`] if the plan has no fleet, or if an agent would have nothing to do.
pub fn shares(plan: &Plan, agents: u32, servers: u32) -> Result<Vec<Share>, ShareError> {
    let fleet = plan.fleet.as_ref().ok_or(ShareError::NoFleet)?;
    if !(1..=MOST_AGENTS).contains(&agents) {
        return Err(ShareError::Agents { agents });
    }
    let servers = match fleet.mapping {
        Mapping::Deployment => 1,
        _ if servers == 0 => return Err(ShareError::NoServer),
        Mapping::Pairs if !is_even(fleet, agents, servers) => {
            return Err(ShareError::Pairing { agents, servers });
        }
        Mapping::Table => {
            check_table(&fleet.table, agents, servers)?;
            servers
        }
        Mapping::Pairs | Mapping::AllToAll => servers,
    };
    let places = places(plan, fleet, agents, servers)?;
    let links = links(plan, fleet, &places, servers)?;
    let mut shares = without_links(agents);
    for (place, link) in places.iter().zip(links) {
        shares[place.agent as usize].links.push(link);
    }
    Ok(shares)
}

/// Shares of agents that load no server.
pub(crate) fn without_links(agents: u32) -> Vec<Share> {
    let share = |index| Share { index, agents, links: Vec::new() };
    (0..agents).map(share).collect()
}

/// Whether pairs load all servers equally.
fn is_even(fleet: &FleetPlan, agents: u32, servers: u32) -> bool {
    fleet.amounts == Amounts::PerServer
        || agents.is_multiple_of(servers)
        || servers.is_multiple_of(agents)
}

/// Checks that each agent has a list, and each server an agent.
fn check_table(table: &[Vec<u32>], agents: u32, servers: u32) -> Result<(), ShareError> {
    let problem = |problem: String| ShareError::Table { problem, agents, servers };
    if table.len() != agents as usize {
        return Err(problem(format!("has {} lists", table.len())));
    }
    let named = || table.iter().flatten();
    if let Some(server) = named().find(|server| **server >= servers) {
        return Err(problem(format!("names server {server}")));
    }
    if let Some(server) = (0..servers).find(|server| !named().any(|named| named == server)) {
        return Err(problem(format!("names server {server} nowhere")));
    }
    Ok(())
}

/// Numbers of the servers that an agent loads.
fn servers_of(fleet: &FleetPlan, agent: u32, agents: u32, servers: u32) -> Vec<u32> {
    match fleet.mapping {
        Mapping::Deployment => vec![0],
        Mapping::Pairs if servers <= agents => vec![agent % servers.max(1)],
        Mapping::Pairs => (agent..servers).step_by(agents.max(1) as usize).collect(),
        Mapping::AllToAll => (0..servers).collect(),
        Mapping::Table => fleet.table.get(agent as usize).cloned().unwrap_or_default(),
    }
}

/// Largest number of servers of one agent.
fn most_servers(fleet: &FleetPlan, agents: u32, servers: u32) -> u32 {
    let each = (0..agents).map(|agent| servers_of(fleet, agent, agents, servers).len() as u32);
    each.max().unwrap_or(1).max(1)
}

/// Number of agents that load each server.
fn agents_of_servers(fleet: &FleetPlan, agents: u32, servers: u32) -> Vec<u32> {
    let mut of_servers = vec![0; servers.max(1) as usize];
    for server in (0..agents).flat_map(|agent| servers_of(fleet, agent, agents, servers)) {
        if let Some(count) = of_servers.get_mut(server as usize) {
            *count += 1;
        }
    }
    of_servers
}

/// Minimum of `client.clients` that gives each agent one for each of its servers: summed over all agents if the plan counts in all,
/// for a single agent or server otherwise. `None` if the plan has no fleet.
pub fn least_clients(plan: &Plan, agents: u32, servers: u32) -> Option<u64> {
    let fleet = plan.fleet.as_ref()?;
    let per_agent = u64::from(most_servers(fleet, agents, servers));
    Some(match fleet.amounts {
        Amounts::InAll => u64::from(agents) * per_agent,
        Amounts::PerAgent => per_agent,
        Amounts::PerServer => u64::from(
            agents_of_servers(fleet, agents, servers).into_iter().max().unwrap_or(1).max(1),
        ),
    })
}

/// Assigns agents to servers, with numbers of connections.
fn places(
    plan: &Plan,
    fleet: &FleetPlan,
    agents: u32,
    servers: u32,
) -> Result<Vec<Place>, ShareError> {
    let amount = u64::from(plan.client.clients);
    let least = least_clients(plan, agents, servers).unwrap_or(1);
    let key = "client.clients";
    if amount < least {
        return Err(ShareError::TooFew { key, amount, least });
    }
    let of_servers = agents_of_servers(fleet, agents, servers);
    let mut taken = vec![0_u64; of_servers.len()];
    let mut places = Vec::new();
    for agent in 0..agents {
        let own = servers_of(fleet, agent, agents, servers);
        for (place, server) in (0_u32..).zip(&own) {
            let (number, parts) = (*server as usize, own.len() as u64);
            // The remainder goes to a different server for each agent.
            let turn = u64::from((place + agent) % own.len() as u32);
            let clients = match fleet.amounts {
                Amounts::InAll => even(even(amount, agent.into(), agents.into()), turn, parts),
                Amounts::PerAgent => even(amount, turn, parts),
                Amounts::PerServer => even(amount, taken[number], of_servers[number].into()),
            };
            taken[number] += 1;
            places.push(Place { agent, server: *server, clients });
        }
    }
    Ok(places)
}

fn links(
    plan: &Plan,
    fleet: &FleetPlan,
    places: &[Place],
    servers: u32,
) -> Result<Vec<Link>, ShareError> {
    let mut on_server = vec![0_u32; servers as usize];
    for place in places {
        on_server[place.server as usize] += 1;
    }
    let in_all: u64 = places.iter().map(|place| place.clients).sum();
    let rate = plan.schedule.rate_per_s();
    let (mut taken, mut before, mut number) = (vec![0_u32; servers as usize], 0, 0);
    // Weights are connections: of the fleet, of the agent, or of the server.
    let whole = |place: &Place| match fleet.amounts {
        Amounts::InAll => 0,
        Amounts::PerAgent => place.agent as usize,
        Amounts::PerServer => place.server as usize,
    };
    let wholes = places.iter().map(whole).max().map_or(0, |most| most + 1);
    let (mut totals, mut befores) = (vec![0_u64; wholes], vec![0_u64; wholes]);
    for place in places {
        totals[whole(place)] += place.clients;
    }
    let mut links: Vec<Link> = Vec::with_capacity(places.len());
    for place in places {
        let (total, first) = (totals[whole(place)], befores[whole(place)]);
        let operations =
            plan.phases.operations.map(|amount| weighted(amount, first, place.clients, total));
        if operations == Some(0) {
            let (key, amount) = ("phases.operations", plan.phases.operations.unwrap_or(0));
            return Err(ShareError::TooFew { key, amount, least: total });
        }
        let rate_per_s = rate.map(|rate| {
            let (units, unit) = to_units(rate);
            weighted(units, first, place.clients, total) as f64 * unit
        });
        let order = taken[place.server as usize];
        taken[place.server as usize] += 1;
        let parts = on_server[place.server as usize];
        links.push(Link {
            server: place.server,
            clients: place.clients as u32,
            rate_per_s,
            first_after_ns: first_after_ns(plan, rate_per_s, before, in_all),
            operations,
            load_first: even_start(plan.data.records, order.into(), parts.into()),
            load_count: even(plan.data.records, order.into(), parts.into()),
            keep_existing: false,
            insert_step: parts,
            insert_offset: order,
            seed: seed(plan.client.seed, number),
        });
        before += place.clients;
        befores[whole(place)] += place.clients;
        number += 1;
    }
    Ok(links)
}

fn first_after_ns(plan: &Plan, rate_per_s: Option<f64>, before: u64, total: u64) -> u64 {
    match (&plan.schedule, rate_per_s) {
        (Schedule::Constant { .. }, Some(rate)) if rate > 0.0 => {
            (1e9 / rate * (before as f64 / total as f64)) as u64
        }
        _ => 0,
    }
}

/// Seed of a link. The first link has the plan's seed, so that a fleet of one agent repeats a local run.
fn seed(seed: u64, number: u64) -> u64 {
    seed.wrapping_add(number.wrapping_mul(SEED_STEP)) & SEED_BITS
}

#[cfg(test)]
#[path = "shares_tests.rs"]
mod tests;
