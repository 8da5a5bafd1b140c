//! Properties of every machine and every request.

use std::collections::BTreeMap;
use std::sync::Mutex;

use dyno_servers::placement::{CpuSet, InstancePlacement, Machine, PlacementRequest, plan};
use dyno_servers::{ServerProgram, cache_shares};
use proptest::prelude::*;

use super::fixtures::*;

/// Small enough that their files are written quickly.
fn shape() -> impl Strategy<Value = Shape> {
    let numbering = prop_oneof![Just(Numbering::NodesInTurn), Just(Numbering::SiblingsNext)];
    let inside = prop_oneof![Just((1, 1, 7)), Just((2, 1, 4)), Just((1, 2, 4))];
    (1..=2_u32, inside, 1..=2_u32, numbering).prop_map(
        |(packages, (nodes_per_package, groups_per_node, cores_per_group), threads, numbering)| {
            Shape {
                packages,
                nodes_per_package,
                groups_per_node,
                cores_per_group,
                threads,
                numbering,
            }
        },
    )
}

/// The machine of a shape. Files are written once for each.
fn read(shape: Shape) -> Machine {
    static KNOWN: Mutex<BTreeMap<Shape, Machine>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap();
    known.entry(shape).or_insert_with(|| shape.fixture().machine()).clone()
}

/// A machine with some CPUs forbidden, at least one allowed.
fn machine() -> impl Strategy<Value = Machine> {
    (shape(), any::<u64>(), any::<bool>()).prop_map(|(shape, bits, restricted)| {
        let mut machine = read(shape);
        if restricted {
            let kept = |cpu: &u32| bits >> (cpu % 64) & 1 == 1;
            let mut allowed: CpuSet = machine.online.iter().filter(kept).collect();
            allowed.insert(machine.online.first().unwrap());
            machine.allowed_cpus = allowed;
        }
        machine
    })
}

/// Requests, about half of which can be satisfied.
fn text() -> impl Strategy<Value = String> {
    let list = |most: u32| {
        (0..4_u32, 0..most).prop_map(|(first, more)| format!("{first}-{}", first + more))
    };
    let pinned = prop_oneof![
        Just("spread".to_owned()),
        (0..2_u32).prop_map(|node| format!("node={node}")),
        list(8).prop_map(|list| format!("cores={list}")),
        (1..4_u32).prop_map(|cores| format!("cores-per-instance={cores}")),
        (1..4_u32).prop_map(|cores| format!("cores-per-instance={cores},smt")),
    ];
    let client = prop_oneof![
        Just("none".to_owned()),
        Just("same".to_owned()),
        Just("other".to_owned()),
        list(4),
    ];
    let unpinned = prop_oneof![Just("none".to_owned()), Just("interleave".to_owned())];
    let unpinned_client = prop_oneof![Just("none".to_owned()), list(4)];
    prop_oneof![
        8 => (pinned, client),
        1 => (unpinned, unpinned_client),
    ]
    .prop_map(|(policy, client)| format!("{policy} client={client}"))
}

fn sizes(places: &[InstancePlacement]) -> Vec<usize> {
    let pinned = places.iter().filter_map(|place| place.cpus.as_ref());
    pinned.map(CpuSet::len).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn processes_have_their_own_allowed_cpus(
        machine in machine(), text in text(), instances in 1..5_u32
    ) {
        let request = PlacementRequest::parse(&text, instances).unwrap();
        let Ok(placement) = plan(&machine, &request) else { return Ok(()) };
        prop_assert_eq!(placement.instances.len(), instances as usize);
        prop_assert_eq!(placement.clients.len(), instances as usize);
        let mut seen = CpuSet::default();
        for place in placement.instances.iter().chain(&placement.clients) {
            let Some(cpus) = &place.cpus else { continue };
            prop_assert!(!cpus.is_empty());
            prop_assert!(cpus.is_subset(&machine.allowed_cpus));
            prop_assert!(cpus.is_disjoint(&seen), "{} twice in {}", cpus, text);
            prop_assert!(place.memory.nodes().is_subset(&machine.allowed_memory_nodes));
            seen.extend(cpus);
        }
    }

    #[test]
    fn instances_differ_by_no_more_than_a_core(
        machine in machine(), text in text(), instances in 1..5_u32
    ) {
        let request = PlacementRequest::parse(&text, instances).unwrap();
        let Ok(placement) = plan(&machine, &request) else { return Ok(()) };
        let sizes = sizes(&placement.instances);
        let spread = sizes.iter().max().unwrap_or(&0) - sizes.iter().min().unwrap_or(&0);
        // A control group may have removed a sibling from each requested whole core.
        let cores = machine.allowed_cores();
        let widest = cores.iter().map(|core| core.cpus.len()).max().unwrap();
        let uneven = text.contains(",smt") && cores.iter().any(|core| core.cpus.len() != widest);
        prop_assert!(uneven || spread <= widest, "{:?} in {}", sizes, text);
    }

    #[test]
    fn no_core_is_shared_unless_the_request_names_its_cpus(
        machine in machine(), text in text(), instances in 1..5_u32
    ) {
        let request = PlacementRequest::parse(&text, instances).unwrap();
        let Ok(placement) = plan(&machine, &request) else { return Ok(()) };
        let places = || placement.instances.iter().chain(&placement.clients);
        for core in &machine.cores {
            let owners = places().filter(|place| {
                place.cpus.as_ref().is_some_and(|cpus| !cpus.is_disjoint(&core.cpus))
            });
            let named = text.contains("cores=") && text.contains("client=")
                && text.ends_with(|last: char| last.is_ascii_digit());
            prop_assert!(named || owners.count() < 2, "{} in {}", core.cpus, text);
        }
    }

    #[test]
    fn caches_never_take_more_than_half_of_the_memory(
        machine in machine(), text in text(), instances in 1..5_u32
    ) {
        let request = PlacementRequest::parse(&text, instances).unwrap();
        let Ok(placement) = plan(&machine, &request) else { return Ok(()) };
        let memory: u64 = machine.nodes.iter().map(|node| node.memory_bytes).sum();
        let memory_shares = placement.memory_shares(&machine);
        let Ok(shares) = cache_shares(&memory_shares, ServerProgram::Mongod, 0) else {
            return Ok(());
        };
        let caches: u64 = shares.iter().sum();
        prop_assert!(caches <= memory / 2, "{} of {}", caches, memory);
    }

    #[test]
    fn picture_is_no_wider_than_requested(
        machine in machine(), text in text(), instances in 1..5_u32, width in 60..120_usize
    ) {
        let request = PlacementRequest::parse(&text, instances).unwrap();
        let Ok(placement) = plan(&machine, &request) else { return Ok(()) };
        let picture = dyno_servers::placement::draw(&machine, &placement, width);
        for line in picture.lines() {
            prop_assert!(line.chars().count() <= width, "{}", picture);
        }
    }
}
