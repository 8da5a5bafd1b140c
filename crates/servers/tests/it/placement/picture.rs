//! The drawing of a placement.

use dyno_servers::placement::{Machine, PlacementRequest, draw, plan};

use super::fixtures::*;

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
    insta::assert_snapshot!(picture(&machine, "spread", 2), @r#"
    ┌─ node 0 · package 0 · 64.0 GiB ──────────────────────────────────────────────┐
    │ L3 0  cpu 0    s0/s0 s0/s0 s0/s0 s0/s0 s0/s0 s0/s0 s0/s0 s0/s0               │
    │       cpu 8    s0/s0 s0/s0 s0/s0 s0/s0 s0/s0 s0/s0 s0/s0 s0/s0               │
    │       cpu 16   c0/c0 c0/c0 c0/c0 c0/c0 c0/c0 c0/c0 c0/c0 c0/c0               │
    │       cpu 24   c0/c0 c0/c0 c0/c0 c0/c0 c0/c0 c0/c0 c0/c0 c0/c0               │
    │ memory of s0 c0                                                              │
    └──────────────────────────────────────────────────────────────────────────────┘
    ┌─ node 1 · package 1 · 64.0 GiB ──────────────────────────────────────────────┐
    │ L3 1  cpu 32   s1/s1 s1/s1 s1/s1 s1/s1 s1/s1 s1/s1 s1/s1 s1/s1               │
    │       cpu 40   s1/s1 s1/s1 s1/s1 s1/s1 s1/s1 s1/s1 s1/s1 s1/s1               │
    │       cpu 48   c1/c1 c1/c1 c1/c1 c1/c1 c1/c1 c1/c1 c1/c1 c1/c1               │
    │       cpu 56   c1/c1 c1/c1 c1/c1 c1/c1 c1/c1 c1/c1 c1/c1 c1/c1               │
    │ memory of s1 c1                                                              │
    └──────────────────────────────────────────────────────────────────────────────┘
    s0  server 0: CPUs 0-15,64-79, memory bind:0
    s1  server 1: CPUs 32-47,96-111, memory bind:1
    c0  client 0: CPUs 16-31,80-95, memory local
    c1  client 1: CPUs 48-63,112-127, memory local
    "#);
}

#[test]
fn caches_and_idle_siblings_are_visible() {
    let machine = SEVERAL_CACHES.fixture().machine();
    insta::assert_snapshot!(picture(&machine, "cores-per-instance=3 client=other", 3), @r#"
    ┌─ node 0 · package 0 · 64.0 GiB ──────────────────────────────────────────────┐
    │ L3 0  cpu 0    s0/-  s0/-  s0/-  c1/c1                                       │
    │ L3 1  cpu 4    s2/-  s2/-  s2/-  c1/c1                                       │
    │ L3 2  cpu 8    c1/c1 c1/c1 c1/c1 c1/c1                                       │
    │ L3 3  cpu 12   c1/c1 c1/c1 c1/c1 c1/c1                                       │
    │ memory of s0 s2 c1                                                           │
    └──────────────────────────────────────────────────────────────────────────────┘
    ┌─ node 1 · package 1 · 64.0 GiB ──────────────────────────────────────────────┐
    │ L3 4  cpu 16   s1/-  s1/-  s1/-  c0/c0                                       │
    │ L3 5  cpu 20   c0/c0 c0/c0 c0/c0 c0/c0                                       │
    │ L3 6  cpu 24   c0/c0 c0/c0 c2/c2 c2/c2                                       │
    │ L3 7  cpu 28   c2/c2 c2/c2 c2/c2 c2/c2                                       │
    │ memory of s1 c0 c2                                                           │
    └──────────────────────────────────────────────────────────────────────────────┘
    s0  server 0: CPUs 0-2, memory local
    s1  server 1: CPUs 16-18, memory local
    s2  server 2: CPUs 4-6, memory local
    c0  client 0: CPUs 19-25,51-57, memory local
    c1  client 1: CPUs 3,7-15,35,39-47, memory local
    c2  client 2: CPUs 26-31,58-63, memory local
    - idle sibling of a core in use
    "#);
}

#[test]
fn alternating_node_numbers_are_shown_like_the_kernel_s() {
    let machine = TWO_SOCKETS_IN_TURN.fixture().allowed("0-15,16", "0-1").machine();
    insta::assert_snapshot!(picture(&machine, "node=1 client=0,2", 2), @r#"
    ┌─ node 0 · package 0 · 64.0 GiB ──────────────────────────────────────────────┐
    │ L3 0  cpu 0    c0/-  c1/x  ·/x   ·/x   ·/x   ·/x   ·/x   ·/x                 │
    │ memory of c0 c1                                                              │
    └──────────────────────────────────────────────────────────────────────────────┘
    ┌─ node 1 · package 1 · 64.0 GiB ──────────────────────────────────────────────┐
    │ L3 1  cpu 1    s0/x  s0/x  s0/x  s0/x  s1/x  s1/x  s1/x  s1/x                │
    │ memory of s0 s1                                                              │
    └──────────────────────────────────────────────────────────────────────────────┘
    s0  server 0: CPUs 1,3,5,7, memory bind:1
    s1  server 1: CPUs 9,11,13,15, memory bind:1
    c0  client 0: CPU 0, memory local
    c1  client 1: CPU 2, memory local
    · free   - idle sibling of a core in use   x not allowed
    "#);
}

#[test]
fn memory_only_and_cpu_only_nodes_have_boxes() {
    let fixture = plain_cpus(Fixture::new(4, "0-3"), 0..4);
    let fixture = fixture.nodes(&[node("0-1", 16), node("2-3", 0), node("", 32)]);
    insta::assert_snapshot!(picture(&fixture.machine(), "spread client=none", 2), @r#"
    ┌─ node 0 · package 0 · 16.0 GiB ──────────────────────────────────────────────┐
    │ cpu 0    s0 s0                                                               │
    │ memory of s0                                                                 │
    └──────────────────────────────────────────────────────────────────────────────┘
    ┌─ node 1 · package 0 · no memory ─────────────────────────────────────────────┐
    │ cpu 2    s1 s1                                                               │
    └──────────────────────────────────────────────────────────────────────────────┘
    ┌─ node 2 · no CPUs · 32.0 GiB ────────────────────────────────────────────────┐
    │ memory of s1                                                                 │
    └──────────────────────────────────────────────────────────────────────────────┘
    s0  server 0: CPUs 0-1, memory bind:0
    s1  server 1: CPUs 2-3, memory bind:2
    c0  client 0: any CPU, memory default
    c1  client 1: any CPU, memory default
    note: instance 1 runs on node 1, which has no memory for it; the nearest is on
          node 2
    note: 2 clients left to the system, which may run them on CPUs of the others
    "#);
}

#[test]
fn unpinned_processes_are_named() {
    let machine = ONE_SOCKET.fixture().machine();
    insta::assert_snapshot!(picture(&machine, "none", 1), @r#"
    ┌─ node 0 · package 0 · 64.0 GiB ──────────────────────────────────────────────┐
    │ L3 0  cpu 0    ·/·   ·/·   ·/·   ·/·                                         │
    └──────────────────────────────────────────────────────────────────────────────┘
    s0  server 0: any CPU, memory default
    c0  client 0: any CPU, memory default
    · free
    "#);
}
