//! Refuses plans that a fleet cannot perform, before anything is started.

use dyno_engine::deployment::check_remote;
use dyno_engine::deployment::expected::check_elsewhere;
use dyno_engine::deployment::placement::check_clients_alone;
use dyno_engine::deployment::server::ServerPaths;
use dyno_engine::environment::Environment;
use dyno_engine::{Error, Kind, refuse};
use dyno_plan::Plan;
use dyno_plan::fleet::{Amounts, FleetPlan, Mapping};
use dyno_plan::model::{PageCache, ServerKind};
use dyno_plan::task::Remote;
use dyno_plan::topology::Topology;
use dyno_record::document::variant_name;
use std::path::Path;

/// Checks that a plan has these hosts, agents and kind of server, which are the first plan's.
pub(super) fn check_fits(
    plan: &Plan,
    fleet: Option<&FleetPlan>,
    kind: ServerKind,
) -> Result<(), Error> {
    let what = match (plan.fleet.as_ref() == fleet, plan.server.kind == kind) {
        (true, true) => return Ok(()),
        (false, _) => "another `[fleet]` table",
        (true, false) => "another `server.kind`",
    };
    let text =
        format!("a later plan has {what} than the first plan, for which the hosts were prepared");
    refuse(text, "run one experiment for each, and compare their runs with `dyno compare`")
}

/// Refuses plans that a fleet cannot perform, and plans without a fleet.
pub(super) fn check<'a>(
    plan: &'a Plan,
    remote: Option<&Remote>,
    in_cluster: bool,
) -> Result<&'a FleetPlan, Error> {
    let bad = |text: &str| Error::new(Kind::BadInput, text.to_owned());
    let Some(fleet) = &plan.fleet else {
        return Err(bad("the plan has no `[fleet]` table")
            .with_hint("see docs/fleet.md, or use `dyno run`"));
    };
    if fleet.clients.is_empty() && !in_cluster {
        return Err(bad("`fleet.clients` does not name a host"));
    }
    if remote.is_none() && fleet.servers.is_empty() && !in_cluster {
        return Err(
            bad("`fleet.servers` is empty, so no server would be started").with_hint(
                "name server hosts, or set the connection string of running servers by `--uri` or `server.uri`",
            ),
        );
    }
    check_plan(plan)?;
    match remote {
        None => check_clients_alone(plan)?,
        Some(_) if plan.server.receive_packet_steering.is_some() => {
            return Err(bad(
                "`server.receive_packet_steering` applies only to servers that the run starts, but these are running already",
            ));
        }
        Some(_) => {}
    }
    let of_hosts = [
        ("fleet.client_hosts", fleet.client_hosts.is_some()),
        ("fleet.agents_per_host", fleet.agents_per_host > 1),
    ];
    let mut of_hosts = of_hosts.into_iter().filter(|(_, is_given)| *is_given);
    match of_hosts.next().filter(|_| in_cluster) {
        None => Ok(fleet),
        Some((key, _)) => {
            Err(bad(&format!("`{key}` applies to hosts, not to the pods of `--kubernetes`"))
                .with_hint(
                    "`fleet.kubernetes.client_pods` sets the number of pods, each with one agent",
                ))
        }
    }
}

/// Refuses plan keys that no fleet supports. Agents check their work again, because Redis does not prove who wrote it.
pub(crate) fn check_plan(plan: &Plan) -> Result<(), Error> {
    if let Some(key) = unsupported(plan) {
        let text = format!("`{key}` applies to one machine and is not supported in a fleet");
        return Err(Error::new(Kind::BadInput, text));
    }
    Ok(dyno_plan::task::check(plan)?)
}

/// The first plan key that concerns only this program's machine.
fn unsupported(plan: &Plan) -> Option<&'static str> {
    let server = &plan.server;
    [
        ("data.collections", plan.is_own()),
        ("traces", !plan.traces.is_empty()),
        ("trace", plan.trace.is_some()),
        ("data.page_cache", plan.data.page_cache != PageCache::Keep),
        ("server.host_settings", !server.host_settings.is_empty()),
        ("server.listen", server.listen.is_some()),
        ("server.advertise", server.advertise.is_some()),
    ]
    .into_iter()
    .find_map(|(key, is_given)| is_given.then_some(key))
}

/// Refuses a search with amounts per agent or server: it sets numbers of the whole fleet.
pub(super) fn check_amounts(plan: &Plan, verb: &str) -> Result<(), Error> {
    let amounts = plan.fleet.as_ref().map(|fleet| fleet.amounts);
    let Some(amounts) = amounts.filter(|amounts| *amounts != Amounts::InAll) else {
        return Ok(());
    };
    let amounts = variant_name(&amounts);
    let text = format!(
        "`fleet.amounts` is `{amounts}`, but `dyno fleet {verb}` searches for numbers of the whole fleet"
    );
    refuse(text, "set `fleet.amounts` to `in-all`")
}

/// Number of independent deployments on this many server hosts; at least 1.
///
/// # Errors
/// Hosts without a task, or too few hosts.
pub(super) fn deployments(plan: &Plan, fleet: &FleetPlan, hosts: u32) -> Result<u32, Error> {
    if fleet.mapping != Mapping::Deployment || hosts <= 1 {
        return Ok(hosts.max(1).saturating_mul(plan.server.pairs.max(1)));
    }
    let topology = plan.server.topology();
    let (text, hint) = match topology {
        Ok(set @ Topology::ReplicaSet(_)) if set.instances() == hosts => return Ok(1),
        Ok(set @ Topology::ReplicaSet(_)) => (
            format!(
                "`server.topology` is `{set}`, which has {} members, but `fleet.servers` names {hosts} hosts",
                set.instances()
            ),
            "name one host for each member, or one host for all of them",
        ),
        _ => (
            format!("`fleet.mapping` is `deployment`, but `fleet.servers` names {hosts} hosts"),
            "name one host, map clients to independent servers by `pairs` or `all-to-all`, or start a replica set with a member on each host (`server.topology`)",
        ),
    };
    refuse(text, hint)
}

/// Refuses servers that no host can start, or that do not match the number of server hosts.
///
/// # Errors
/// Either of these.
pub(super) fn check_servers(plan: &Plan, remote: Option<&Remote>, hosts: u32) -> Result<(), Error> {
    let Some(fleet) = plan.fleet.as_ref().filter(|_| remote.is_none()) else {
        return Ok(());
    };
    deployments(plan, fleet, hosts)?;
    let is_set = is_set(plan, hosts as usize);
    check_elsewhere(plan, &paths(&Environment::default()), is_set)
}

/// Refuses a connection string that the agents cannot use. No server is contacted.
pub(super) fn check_running(plan: &Plan, remote: &Remote) -> Result<(), Error> {
    check_remote(plan, remote, &paths(&Environment::default()))
}

/// Paths without anything of this machine.
fn paths(environment: &Environment) -> ServerPaths<'_> {
    ServerPaths { environment, embedded: None, folder: Path::new("") }
}

/// Whether the servers of all hosts form one replica set.
pub(super) fn is_set(plan: &Plan, hosts: usize) -> bool {
    let mapping = plan.fleet.as_ref().map(|fleet| fleet.mapping);
    hosts > 1 && mapping == Some(Mapping::Deployment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shares::{Share, shares};

    fn plan(fleet: FleetPlan) -> Plan {
        let mut plan = dyno_plan::builtin::find("a").expect("built in");
        plan.fleet = Some(FleetPlan { clients: vec!["c".to_owned()], ..fleet });
        plan
    }

    #[test]
    fn replica_set_has_one_member_on_each_host() {
        let count = |topology: Option<&str>, mapping, hosts| {
            let mut plan = plan(FleetPlan { mapping, ..FleetPlan::default() });
            plan.server.topology = topology.map(str::to_owned);
            let fleet = plan.fleet.clone().expect("present");
            deployments(&plan, &fleet, hosts).map_err(|error| error.to_string())
        };
        let whole = Mapping::Deployment;
        assert_eq!(count(Some("replica-set=2+1"), whole, 3), Ok(1));
        assert_eq!(count(Some("replica-set=3"), whole, 1), Ok(1));
        assert_eq!(count(None, whole, 0), Ok(1));
        assert_eq!(count(Some("replica-set=3"), Mapping::Pairs, 2), Ok(2));
        let few = count(Some("replica-set=3"), whole, 2).expect_err("one host is missing");
        for part in ["`server.topology`", "3 members", "2 hosts"] {
            assert!(few.contains(part), "{few}");
        }
        let none = count(None, whole, 2).expect_err("ambiguous");
        for part in ["`fleet.mapping`", "2 hosts"] {
            assert!(none.contains(part), "{none}");
        }
    }

    #[test]
    fn each_agent_loads_all_servers_of_all_hosts() {
        let mut plan = plan(FleetPlan { mapping: Mapping::AllToAll, ..FleetPlan::default() });
        plan.server.pairs = 2;
        plan.client.clients = 14;
        plan.data.records = 10;
        let fleet = plan.fleet.clone().expect("present");
        let servers = deployments(&plan, &fleet, 2).expect("two on each host");
        let shares = shares(&plan, 3, servers).expect("all have a task");
        let links = |share: &Share| -> Vec<(u32, u32)> {
            share.links.iter().map(|link| (link.server, link.clients)).collect()
        };
        // Each agent's remainder goes to other servers.
        assert_eq!(
            shares.iter().map(links).collect::<Vec<_>>(),
            [
                [(0, 2), (1, 1), (2, 1), (3, 1)],
                [(0, 1), (1, 1), (2, 1), (3, 2)],
                [(0, 1), (1, 1), (2, 1), (3, 1)],
            ]
        );
        // Together, the agents load each server's documents once.
        for server in 0..servers as usize {
            let own = shares.iter().map(|share| &share.links[server]);
            let parts: Vec<_> =
                own.map(|link| (link.load_first, link.load_count, link.insert_offset)).collect();
            assert_eq!(parts, [(0, 4, 0), (4, 3, 1), (7, 3, 2)]);
        }
    }

    #[test]
    fn servers_need_hosts_or_a_connection_string() {
        let none = plan(FleetPlan::default());
        let some = plan(FleetPlan { servers: vec!["s".to_owned()], ..FleetPlan::default() });
        let remote = Remote::parse("mongodb://db").expect("valid");
        let text = |plan: &Plan, remote: Option<&Remote>| {
            let checked = check(plan, remote, false);
            checked.err().map(|error| error.cause.to_string())
        };
        assert_eq!(text(&none, Some(&remote)), None);
        assert_eq!(text(&some, None), None);
        let empty = text(&none, None).expect("no server would be started");
        assert!(empty.contains("`fleet.servers` is empty"), "{empty}");
        assert_eq!(text(&some, Some(&remote)), None, "running servers are watched");
    }
}
