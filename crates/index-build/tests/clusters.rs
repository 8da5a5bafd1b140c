//! Every remedy is refused on a sharded cluster before any change. The server answers like a member of a cluster.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use bson::{Document, doc};
use dyno_index_build::layout::{Access, Collection, LayoutError, apply};
use dyno_load::connect::Connector;
use dyno_plan::index_build::Remedy;
use dyno_testkit::scripted;
use std::sync::{Arc, Mutex};

/// Error of a remedy on this server, and the commands that the server received.
fn refusal(remedy: Remedy, hello: Document, is_shard: bool) -> (LayoutError, Vec<String>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let port = scripted::serve(move |command| {
        let name = command.keys().next().unwrap().clone();
        let reply = match name.as_str() {
            "hello" => hello.clone(),
            "shardingState" => doc! { "enabled": is_shard, "ok": 1 },
            _ => doc! { "ok": 0, "code": 59, "errmsg": "unsupported" },
        };
        seen.lock().unwrap().push(name);
        reply
    });
    let uri = format!("mongodb://127.0.0.1:{port}/");
    let (target, credentials) = dyno_plan::uri::parse(&uri).unwrap();
    let connector = Connector::new(&target, credentials).unwrap();
    let connect = || connector.control().map_err(LayoutError::from);
    let access = Access {
        connect: &connect,
        patient: &connect,
        interrupted: &|| false,
        progress: &|_, _, _| (),
    };
    let folder = tempfile::tempdir().unwrap();
    let collection = Collection::new("shop", "orders");
    let refused = apply(&access, &collection, remedy, folder.path());
    let mut asked = asked.lock().unwrap().clone();
    asked.dedup();
    (refused.unwrap_err(), asked)
}

#[test]
fn cluster_collection_is_refused_before_any_change() {
    let hello = |more: Document| {
        let mut hello = doc! { "isWritablePrimary": true, "maxWireVersion": 21, "ok": 1 };
        hello.extend(more);
        hello
    };
    for remedy in [Remedy::Rewrite, Remedy::NaturalCopy, Remedy::Dump, Remedy::Compact] {
        let (router, asked) = refusal(remedy, hello(doc! { "msg": "isdbgrid" }), false);
        assert!(matches!(router, LayoutError::Routed { .. }), "{router:?}");
        assert_eq!(asked, ["hello"]);
        let (shard, asked) = refusal(remedy, hello(doc! { "setName": "shard-0" }), true);
        assert!(
            matches!(&shard, LayoutError::Routed { namespace } if namespace == "shop.orders"),
            "{shard:?}"
        );
        assert_eq!(asked, ["hello", "shardingState"]);
        // A standalone server gets a query for the collection.
        let (other, asked) = refusal(remedy, hello(doc! {}), false);
        assert!(!matches!(other, LayoutError::Routed { .. }), "{other:?}");
        assert_eq!(asked.len(), 3, "{asked:?}");
    }
}
