//! Texts and limits of topologies.

use super::*;

/// Why a text is not a topology, without the list of valid forms, which must be present.
fn refused(text: &str) -> String {
    let error = text.parse::<Topology>().unwrap_err();
    assert_eq!(error.value, text);
    assert!(error.reason.contains(text::FORMS), "{error}");
    error.reason.replace(text::FORMS, "")
}

#[test]
fn every_text_is_read_and_printed_again() {
    for text in [
        "standalone",
        "pairs=4",
        "split=2",
        "replica-set=3",
        "replica-set=3+1",
        "replica-set=3,priorities=2/1/0",
        "sharded=2x3",
        "sharded=2x3,config=3,routers=2,key=tenant.id:ranged",
        "sharded=4x1,chunks=64,balancer=on",
    ] {
        let topology: Topology = text.parse().unwrap();
        assert_eq!(topology.to_string(), text);
        assert_eq!(topology.to_string().parse(), Ok(topology));
    }
}

#[test]
fn topology_parts_are_parsed() {
    let Ok(Topology::ReplicaSet(set)) = "replica-set=2+1,priorities=5/1".parse() else {
        panic!("no replica set");
    };
    assert_eq!((set.data_members, set.arbiters), (2, 1));
    assert_eq!((set.priority(0), set.priority(1)), (5, 1));
    let Ok(Topology::Sharded(cluster)) =
        "sharded=2x3,config=3,key=k:ranged,balancer=on".parse::<Topology>()
    else {
        panic!("no cluster");
    };
    assert_eq!((cluster.shards, cluster.members_per_shard), (2, 3));
    assert_eq!((cluster.config_members, cluster.routers), (3, 1));
    assert_eq!(cluster.shard_key.kind, ShardKeyKind::Ranged);
    assert_eq!(cluster.balancer, Balancer::On);
    assert_eq!(Topology::Sharded(cluster).instances(), 10);
}

#[test]
fn errors_name_the_value_and_the_valid_forms() {
    for (text, part) in [
        ("replica=3", "`replica`"),
        ("", "``"),
        ("standalone=2", "`standalone`"),
        ("standalone,config=2", "`config`"),
        ("pairs", "`pairs`"),
        ("pairs=0", "1 to 64, not 0"),
        ("split", "`split`"),
        ("split=1", "2 to 64, not 1"),
        ("split=2,chunks=4", "`chunks`"),
        ("pairs=-1", "`-1`"),
        ("replica-set=0+1", "1 to 50"),
        ("replica-set=3+7", "0 to 6"),
        ("replica-set=3,priorities=1/1", "2 priorities"),
        ("replica-set=2,priorities=0/0", "all priorities"),
        ("replica-set=1,priorities=1001", "0 to 1000, not 1001"),
        ("sharded=2", "`2`"),
        ("sharded=2x0", "1 to 7"),
        ("sharded=30x3", "92"),
        ("sharded=2x1,key=a", "`a`"),
        ("sharded=2x1,key=a..b:hashed", "`a..b`"),
        ("sharded=2x1,key=a:ranged,chunks=4", "hashed key"),
        ("sharded=1x1,chunks=8192", "1 to 8191"),
        ("sharded=2x1,balancer=maybe", "`balancer`"),
        ("sharded=2x1,nodes=3", "`nodes`"),
        ("sharded=4294967295x7", "1 to 64"),
    ] {
        let reason = refused(text);
        assert!(reason.contains(part), "{text}: {reason}");
    }
}

#[test]
fn members_beyond_seven_voters_do_not_vote_or_become_primary() {
    let mut set = ReplicaSet::new(9);
    set.arbiters = 1;
    assert!(set.votes(5) && !set.votes(6));
    assert_eq!((set.priority(5), set.priority(6)), (1, 0));
}

#[test]
fn embedded_server_lacks_replica_sets_and_sharding() {
    let lacking = |text: &str| text.parse::<Topology>().unwrap().lacking_in_embedded();
    assert_eq!(lacking("replica-set=3"), Some("replica sets"));
    assert_eq!(lacking("sharded=2x2,chunks=4"), Some("sharding"));
    assert_eq!(lacking("standalone"), None);
    assert_eq!(lacking("pairs=2"), None);
}

#[test]
fn only_servers_with_data_are_counted_as_such() {
    let count = |text: &str| text.parse::<Topology>().unwrap().data_servers();
    assert_eq!(count("standalone"), 1);
    assert_eq!(count("pairs=4"), 4);
    assert_eq!(count("replica-set=2+1"), 2);
    assert_eq!(count("sharded=2x3,config=3,routers=2"), 6);
}

#[test]
fn every_document_is_on_as_many_servers_as_copies() {
    let copies = |text: &str| text.parse::<Topology>().unwrap().copies();
    let all = ["standalone", "split=4", "pairs=4", "replica-set=3+1", "sharded=2x3"];
    assert_eq!(all.map(copies), [1, 1, 4, 3, 3]);
}
