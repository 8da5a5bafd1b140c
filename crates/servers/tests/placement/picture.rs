//! The picture of a placement.

use dyno_servers::placement::{Machine, PlacementRequest, draw, plan};

use crate::fixtures::*;

fn picture(machine: &Machine, text: &str, instances: u32) -> String {
    let request = PlacementRequest::parse(text, instances).unwrap();
    let picture = draw(machine, &plan(machine, &request).unwrap(), 80);
    for line in picture.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    picture
}

#[test]
fn two_large_sockets_fit_eighty_columns() {
    let machine = LARGE.fixture().machine();
    insta::assert_snapshot!(picture(&machine, "spread", 2), @"");
}

#[test]
fn caches_and_idle_siblings_can_be_seen() {
    let machine = SEVERAL_CACHES.fixture().machine();
    insta::assert_snapshot!(picture(&machine, "cores-per-instance=3 client=other", 3), @"");
}

#[test]
fn numbers_of_nodes_in_turn_are_those_of_the_kernel() {
    let machine = TWO_SOCKETS_IN_TURN
        .fixture()
        .allowed("0-15,16", "0-1")
        .machine();
    insta::assert_snapshot!(picture(&machine, "node=1 client=0,2", 2), @"");
}

#[test]
fn nodes_of_memory_alone_and_of_cpus_alone_are_boxes() {
    let fixture = plain_cpus(Fixture::new(4, "0-3"), 0..4);
    let fixture = fixture.nodes(&[node("0-1", 16), node("2-3", 0), node("", 32)]);
    insta::assert_snapshot!(picture(&fixture.machine(), "spread client=none", 2), @"");
}

#[test]
fn what_is_left_to_the_system_is_said() {
    let machine = ONE_SOCKET.fixture().machine();
    insta::assert_snapshot!(picture(&machine, "none", 1), @"");
}
