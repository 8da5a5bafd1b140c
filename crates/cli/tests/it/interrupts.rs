//! Ctrl-C before the first measurement.

use crate::common::{Bench, Finished, signal};
use bson::doc;
use dyno_testkit::scripted;
use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

/// An immediate end takes at most this long on a busy machine; a search for a primary takes twice as long.
const SOON: Duration = Duration::from_secs(15);

/// A member of a replica set without a primary. The other members accept connections, and do not answer.
fn secondary(silent: &[TcpListener]) -> u16 {
    let hosts: Vec<String> =
        silent.iter().map(|member| member.local_addr().unwrap().to_string()).collect();
    scripted::serve(move |_| {
        doc! {
            "setName": "rs", "isWritablePrimary": false, "secondary": true, "hosts": &hosts,
            "maxWireVersion": 21, "ok": 1,
        }
    })
}

#[test]
fn interrupt_ends_the_search_for_a_primary_at_once() {
    for command in [
        &["run", "a"][..],
        &["run", "a", "--backend", "driver"],
        &["sweep", "a", "--clients", "1,2"],
    ] {
        let silent = [(); 2].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        let uri = format!("mongodb://127.0.0.1:{}/", secondary(&silent));
        let bench = Bench::new();
        let child = bench.spawn(&[command, &["--uri", &uri, "--out", "r"]].concat());
        // The run queries the other members and waits.
        let asked = silent.each_ref().map(|member| member.accept().unwrap());
        let begin = Instant::now();
        signal(&child, "INT");
        let ended = Finished::from(child.wait_with_output().unwrap());
        assert!(begin.elapsed() < SOON, "{command:?}: {ended:?}");
        ended.expect(130).says("interrupted");
        drop(asked);
    }
}
