//! Shares make up the whole, and nobody's documents are another's.

use super::*;
use dyno_plan::units::Span;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashSet};

fn plan(mapping: Mapping, amounts: Amounts) -> Plan {
    let mut plan = dyno_plan::builtin::find("d").expect("it is built in");
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
    Schedule::Constant {
        rate_per_s,
        max_start_delay: Span::from_secs(1),
    }
}

fn links_of(shares: &[Share]) -> Vec<&Link> {
    shares.iter().flat_map(|share| &share.links).collect()
}

#[test]
fn a_fleet_of_one_does_what_a_local_run_does() {
    let mut plan = plan(Mapping::Deployment, Amounts::InAll);
    plan.schedule = constant(1234.5);
    let shares = shares(&plan, 1, 0).expect("it can be divided");
    let mut expected = plan.clone();
    expected.fleet = None;
    assert_eq!(shares[0].links[0].run_plan(&plan), expected);
    let load = shares[0].links[0].load_plan(&plan).expect("it loads");
    assert_eq!(
        (load.data.insert_start, load.data.insert_count),
        (0, Some(plan.data.records))
    );
}

#[test]
fn the_fewest_clients_are_those_with_which_everybody_has_one() {
    for (mapping, amounts, least) in [
        (Mapping::AllToAll, Amounts::InAll, 6),
        (Mapping::AllToAll, Amounts::PerAgent, 2),
        (Mapping::Deployment, Amounts::InAll, 3),
        (Mapping::Deployment, Amounts::PerAgent, 1),
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
    let shares = shares(&plan, 4, 0).expect("it can be divided");
    let first: Vec<u64> = links_of(&shares)
        .iter()
        .map(|link| link.first_after_ns)
        .collect();
    assert_eq!(first, [0, 1_000_000, 2_000_000, 3_000_000]);
}

#[test]
fn pairs_load_a_data_set_each() {
    let mut plan = plan(Mapping::Pairs, Amounts::PerAgent);
    plan.data.records = 10;
    let shares = shares(&plan, 4, 2).expect("it can be divided");
    let places: Vec<_> = links_of(&shares)
        .iter()
        .map(|link| {
            (
                link.server,
                link.load_first,
                link.load_count,
                link.insert_offset,
            )
        })
        .collect();
    assert_eq!(
        places,
        [(0, 0, 5, 0), (1, 0, 5, 0), (0, 5, 5, 1), (1, 5, 5, 1)]
    );
}

#[test]
fn what_cannot_be_divided_is_refused() {
    let refused = |plan: &Plan, agents, servers| {
        shares(plan, agents, servers)
            .expect_err("it cannot be divided")
            .to_string()
    };
    let mut all = plan(Mapping::AllToAll, Amounts::InAll);
    all.client.clients = 5;
    assert!(refused(&all, 3, 2).contains("`client.clients` is 5, but must be at least 6"));
    assert!(refused(&all, 3, 0).contains("no server"));
    assert!(refused(&all, 0, 2).contains("number of agents"));
    let pairs = plan(Mapping::Pairs, Amounts::InAll);
    assert!(refused(&pairs, 3, 2).contains("cannot be paired"));
    let mut few = plan(Mapping::Deployment, Amounts::InAll);
    few.phases.operations = Some(3);
    assert!(refused(&few, 4, 0).contains("`phases.operations` is 3"));
    few.fleet = None;
    assert!(refused(&few, 1, 0).contains("[fleet]"));
}

#[test]
fn a_share_says_what_it_was() {
    let mut plan = plan(Mapping::AllToAll, Amounts::InAll);
    plan.client.clients = 8;
    plan.schedule = constant(100.0);
    let shares = shares(&plan, 2, 2).expect("it can be divided");
    assert_eq!(
        shares[0].describe(),
        "4 clients on server 0, 1 at 50 operations/s"
    );
}

proptest! {
    #[test]
    fn shares_make_up_the_whole(
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
        let shares = shares(&plan, agents, servers).expect("it can be divided");
        prop_assert_eq!(shares.len(), agents as usize);
        let links = links_of(&shares);
        let sum: u64 = shares.iter().map(Share::clients).sum();
        prop_assert_eq!(sum, u64::from(plan.client.clients));
        prop_assert_eq!(links.iter().filter_map(|link| link.operations).sum::<u64>(), operations);
        // Exact, in whichever order they are added.
        prop_assert_eq!(links.iter().filter_map(|link| link.rate_per_s).sum::<f64>(), rate);
        prop_assert_eq!(links.iter().rev().filter_map(|link| link.rate_per_s).sum::<f64>(), rate);
        let seeds: HashSet<u64> = links.iter().map(|link| link.seed).collect();
        prop_assert_eq!(seeds.len(), links.len());
        let mut of_server: BTreeMap<u32, Vec<&&Link>> = BTreeMap::new();
        for link in &links {
            of_server.entry(link.server).or_default().push(link);
        }
        for links in of_server.values() {
            // Parts that follow each other cover the data set once.
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
    fn amounts_of_each_agent_are_those_of_the_plan(
        servers in 1u32..5,
        agents in 1u32..20,
        clients in 5u32..100,
        rate in 0.1f64..1e6,
    ) {
        let mut plan = plan(Mapping::AllToAll, Amounts::PerAgent);
        plan.client.clients = clients;
        plan.schedule = constant(rate);
        for share in shares(&plan, agents, servers).expect("it can be divided") {
            prop_assert_eq!(share.clients(), u64::from(clients));
            let sum: f64 = share.links.iter().filter_map(|link| link.rate_per_s).sum();
            prop_assert_eq!(sum, rate);
        }
    }
}
