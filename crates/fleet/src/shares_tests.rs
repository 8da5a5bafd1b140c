//! Shares add up to the whole, and agents do not share documents.

use super::*;
use dyno_plan::units::Span;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashSet};

fn plan(mapping: Mapping, amounts: Amounts) -> Plan {
    let mut plan = dyno_plan::builtin::find("d").expect("built in");
    plan.fleet = Some(FleetPlan {
        clients: vec!["c".into()],
        servers: vec!["s".into()],
        mapping,
        amounts,
        ..FleetPlan::default()
    });
    plan
}

fn constant(rate_per_s: f64) -> Schedule {
    Schedule::Constant { rate_per_s, max_start_delay: Span::from_secs(1) }
}

fn links_of(shares: &[Share]) -> Vec<&Link> {
    shares.iter().flat_map(|share| &share.links).collect()
}

#[test]
fn fleet_of_one_runs_the_same_plan_as_a_local_run() {
    let mut plan = plan(Mapping::Deployment, Amounts::InAll);
    plan.schedule = constant(1234.5);
    let shares = shares(&plan, 1, 0).expect("divisible");
    let mut expected = plan.clone();
    expected.fleet = None;
    assert_eq!(shares[0].links[0].run_plan(&plan), expected);
    let load = shares[0].links[0].load_plan(&plan).expect("it loads");
    assert_eq!((load.data.insert_start, load.data.insert_count), (0, Some(plan.data.records)));
}

#[test]
fn least_clients_gives_each_agent_one_per_server() {
    for (mapping, amounts, least) in [
        (Mapping::AllToAll, Amounts::InAll, 6),
        (Mapping::AllToAll, Amounts::PerAgent, 2),
        (Mapping::Deployment, Amounts::InAll, 3),
        (Mapping::Deployment, Amounts::PerAgent, 1),
        (Mapping::AllToAll, Amounts::PerServer, 3),
        (Mapping::Pairs, Amounts::PerServer, 2),
    ] {
        let mut plan = plan(mapping, amounts);
        assert_eq!(least_clients(&plan, 3, 2), Some(least));
        plan.client.clients = least as u32;
        assert!(shares(&plan, 3, 2).is_ok(), "{mapping:?} {amounts:?}");
        plan.client.clients -= 1;
        assert!(shares(&plan, 3, 2).is_err(), "{mapping:?} {amounts:?}");
    }
}

#[test]
fn constant_schedules_take_turns() {
    let mut plan = plan(Mapping::Deployment, Amounts::InAll);
    plan.client.clients = 4;
    plan.schedule = constant(1000.0);
    let shares = shares(&plan, 4, 0).expect("divisible");
    let first: Vec<u64> = links_of(&shares).iter().map(|link| link.first_after_ns).collect();
    assert_eq!(first, [0, 1_000_000, 2_000_000, 3_000_000]);
}

#[test]
fn pairs_load_a_data_set_each() {
    let mut plan = plan(Mapping::Pairs, Amounts::PerAgent);
    plan.data.records = 10;
    let shares = shares(&plan, 4, 2).expect("divisible");
    let places: Vec<_> = links_of(&shares)
        .iter()
        .map(|link| (link.server, link.load_first, link.load_count, link.insert_offset))
        .collect();
    assert_eq!(places, [(0, 0, 5, 0), (1, 0, 5, 0), (0, 5, 5, 1), (1, 5, 5, 1)]);
}

/// Servers that each agent loads.
fn servers_of_agents(shares: &[Share]) -> Vec<Vec<u32>> {
    let servers = |share: &Share| share.links.iter().map(|link| link.server).collect();
    shares.iter().map(servers).collect()
}

#[test]
fn agent_loads_several_servers_when_servers_outnumber_agents() {
    let pairs = plan(Mapping::Pairs, Amounts::InAll);
    let all = shares(&pairs, 2, 4).expect("divisible");
    assert_eq!(servers_of_agents(&all), [[0, 2], [1, 3]]);
    // Each server gets the same load, even if one agent has more servers.
    let mut uneven = plan(Mapping::Pairs, Amounts::PerServer);
    uneven.client.clients = 10;
    uneven.schedule = constant(300.0);
    uneven.phases.operations = Some(1_000);
    let all = shares(&uneven, 2, 3).expect("divisible");
    assert_eq!(servers_of_agents(&all), [vec![0, 2], vec![1]]);
    for link in links_of(&all) {
        let amounts = (link.clients, link.rate_per_s, link.operations);
        assert_eq!(amounts, (10, Some(300.0), Some(1_000)));
    }
    // Five agents on two servers: three share one, two the other.
    let all = shares(&uneven, 5, 2).expect("divisible");
    let of = |server| {
        let links = links_of(&all).into_iter();
        let links = links.filter(|link| link.server == server);
        plan_of_links(&uneven, links)
    };
    for server in 0..2 {
        let plan = of(server);
        assert_eq!(plan.client.clients, 10);
        assert_eq!(plan.schedule.rate_per_s(), Some(300.0));
        assert_eq!(plan.phases.operations, Some(1_000));
    }
}

#[test]
fn table_assigns_agents_to_servers() {
    let mut plan = plan(Mapping::Table, Amounts::InAll);
    plan.fleet.as_mut().expect("present").table = vec![vec![0, 1], vec![1, 2]];
    plan.client.clients = 6;
    let all = shares(&plan, 2, 3).expect("it fits");
    assert_eq!(servers_of_agents(&all), [[0, 1], [1, 2]]);
    let of_second = links_of(&all).into_iter().filter(|link| link.server == 1);
    let steps: Vec<_> = of_second.map(|link| (link.insert_step, link.insert_offset)).collect();
    assert_eq!(steps, [(2, 0), (2, 1)]);
    for (agents, servers, part) in [(3, 3, "2 lists"), (2, 2, "server 2"), (2, 4, "server 3")] {
        let error = shares(&plan, agents, servers).expect_err("does not fit");
        let ShareError::Table { problem, agents: of_agents, servers: of_servers } = &error else {
            panic!("{error:?}");
        };
        assert_eq!((*of_agents, *of_servers), (agents, servers));
        assert!(problem.contains(part), "{problem}");
    }
}

#[test]
fn indivisible_plans_are_refused() {
    let refused =
        |plan: &Plan, agents, servers| shares(plan, agents, servers).expect_err("not divisible");
    let mut all = plan(Mapping::AllToAll, Amounts::InAll);
    all.client.clients = 5;
    let too_few = ShareError::TooFew { key: "client.clients", amount: 5, least: 6 };
    assert_eq!(refused(&all, 3, 2), too_few);
    assert_eq!(refused(&all, 3, 0), ShareError::NoServer);
    assert_eq!(refused(&all, 0, 2), ShareError::Agents { agents: 0 });
    let pairs = plan(Mapping::Pairs, Amounts::InAll);
    let pairing = ShareError::Pairing { agents: 3, servers: 2 };
    assert_eq!(refused(&pairs, 3, 2), pairing);
    let mut few = plan(Mapping::Deployment, Amounts::InAll);
    few.phases.operations = Some(3);
    let error = refused(&few, 4, 0);
    assert!(
        matches!(error, ShareError::TooFew { key: "phases.operations", amount: 3, .. }),
        "{error}"
    );
    few.fleet = None;
    assert_eq!(refused(&few, 1, 0), ShareError::NoFleet);
}

#[test]
fn share_describes_its_clients_and_rate() {
    let mut plan = plan(Mapping::AllToAll, Amounts::InAll);
    plan.client.clients = 8;
    plan.schedule = constant(100.0);
    let shares = shares(&plan, 2, 2).expect("divisible");
    let text = shares[0].describe();
    for part in ["4 clients", "0, 1", "50 operations/s"] {
        assert!(text.contains(part), "{text}");
    }
}

proptest! {
    #[test]
    fn shares_add_up_to_the_whole_plan(
        mapping in prop_oneof![Just(Mapping::Deployment), Just(Mapping::Pairs), Just(Mapping::AllToAll)],
        servers in 1u32..6,
        per_server in 1u32..9,
        clients in 0u32..500,
        rate in prop_oneof![0.001f64..1e8, Just(f64::MIN_POSITIVE), Just(0.1), Just(1e15)],
        operations in 100_000u64..1 << 50,
        records in 1u64..1 << 50,
        seed in 0u64..1 << 63,
    ) {
        let agents = servers * per_server;
        let mut plan = plan(mapping, Amounts::InAll);
        plan.client.clients = agents * servers + clients;
        plan.client.seed = seed;
        plan.schedule = constant(rate);
        plan.phases.operations = Some(operations);
        plan.data.records = records;
        let shares = shares(&plan, agents, servers).expect("divisible");
        prop_assert_eq!(shares.len(), agents as usize);
        let links = links_of(&shares);
        let sum: u64 = shares.iter().map(Share::clients).sum();
        prop_assert_eq!(sum, u64::from(plan.client.clients));
        prop_assert_eq!(links.iter().filter_map(|link| link.operations).sum::<u64>(), operations);
        // Exact, in any order of addition.
        prop_assert_eq!(links.iter().filter_map(|link| link.rate_per_s).sum::<f64>(), rate);
        prop_assert_eq!(links.iter().rev().filter_map(|link| link.rate_per_s).sum::<f64>(), rate);
        let seeds: HashSet<u64> = links.iter().map(|link| link.seed).collect();
        prop_assert_eq!(seeds.len(), links.len());
        let mut of_server: BTreeMap<u32, Vec<&&Link>> = BTreeMap::new();
        for link in &links {
            of_server.entry(link.server).or_default().push(link);
        }
        for links in of_server.values() {
            // Adjacent parts cover the data set once.
            let mut next = 0;
            for link in links {
                prop_assert_eq!(link.load_first, next);
                next += link.load_count;
            }
            prop_assert_eq!(next, records);
            let offsets: HashSet<u32> = links.iter().map(|link| link.insert_offset).collect();
            prop_assert_eq!(offsets.len(), links.len());
            for link in links {
                prop_assert_eq!(link.insert_step as usize, links.len());
                prop_assert!(link.insert_offset < link.insert_step);
            }
        }
    }

    #[test]
    fn per_server_amounts_equal_the_plan(
        mapping in prop_oneof![Just(Mapping::Pairs), Just(Mapping::AllToAll)],
        servers in 1u32..7,
        agents in 1u32..20,
        clients in 20u32..100,
        rate in 0.1f64..1e6,
        operations in 100_000u64..1 << 50,
    ) {
        let mut plan = plan(mapping, Amounts::PerServer);
        plan.client.clients = clients;
        plan.schedule = constant(rate);
        plan.phases.operations = Some(operations);
        let shares = shares(&plan, agents, servers).expect("divisible");
        prop_assert!(shares.iter().all(|share| !share.links.is_empty() || agents > servers));
        for server in 0..servers {
            let links = links_of(&shares).into_iter().filter(|link| link.server == server);
            let of_server = plan_of_links(&plan, links);
            prop_assert_eq!(of_server.client.clients, clients);
            prop_assert_eq!(of_server.schedule.rate_per_s(), Some(rate));
            prop_assert_eq!(of_server.phases.operations, Some(operations));
        }
    }

    #[test]
    fn per_agent_amounts_equal_the_plan(
        servers in 1u32..5,
        agents in 1u32..20,
        clients in 5u32..100,
        rate in 0.1f64..1e6,
    ) {
        let mut plan = plan(Mapping::AllToAll, Amounts::PerAgent);
        plan.client.clients = clients;
        plan.schedule = constant(rate);
        for share in shares(&plan, agents, servers).expect("divisible") {
            prop_assert_eq!(share.clients(), u64::from(clients));
            let sum: f64 = share.links.iter().filter_map(|link| link.rate_per_s).sum();
            prop_assert_eq!(sum, rate);
        }
    }
}
