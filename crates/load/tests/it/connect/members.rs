//! Secondaries and other non-primary members of a replica set, on a real `mongod`.

use super::{Connector, connector, mongod, parse};
use bson::{Document, doc};
use dyno_load::backend::driver::DriverTarget;
use dyno_load::connect::{ConnectError, Control, ControlError};
use std::time::{Duration, Instant};

const SET: &[&str] = &["--replSet", "rs0", "--oplogSize", "50"];
const PATIENCE: Duration = Duration::from_secs(60);

fn direct(port: u16, more: &str) -> Connector {
    connector(&format!("mongodb://127.0.0.1:{port}/?directConnection=true{more}"))
}

fn until<T>(mut try_once: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = try_once() {
            return found;
        }
        assert!(Instant::now() < end, "it takes too long");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn count(control: &mut Control) -> Result<Document, ControlError> {
    control.run("test", doc! { "count": "c" })
}

#[test]
fn a_secondary_is_read_directly_and_an_arbiter_is_named() {
    let Some(primary) = mongod::start(SET) else {
        return;
    };
    let error = direct(primary.port, "").control().unwrap().check_ready().unwrap_err();
    let ConnectError::NotReady { description, .. } = &error else { panic!("{error:?}") };
    assert!(description.contains("not initiated"), "{error}");
    let (secondary, arbiter) = (mongod::start(SET).unwrap(), mongod::start(SET).unwrap());
    let host = |server: &mongod::Mongod| format!("127.0.0.1:{}", server.port);
    let configuration = doc! { "_id": "rs0", "members": [
        { "_id": 0, "host": host(&primary), "priority": 2 },
        { "_id": 1, "host": host(&secondary), "priority": 0 },
        { "_id": 2, "host": host(&arbiter), "arbiterOnly": true },
    ] };
    let initiate = doc! { "replSetInitiate": configuration };
    direct(primary.port, "").control().unwrap().run("admin", initiate).unwrap();
    let set = format!("mongodb://{}/?replicaSet=rs0", host(&primary));
    let mut control = until(|| connector(&set).control().ok());
    let update = doc! { "q": { "_id": 1 }, "u": { "$set": { "a": 1 } }, "upsert": true };
    let update = doc! {
        "update": "c", "updates": [update], "writeConcern": { "w": 2, "wtimeout": 60_000 },
    };
    // The new primary may not have its majority yet.
    until(|| control.run("test", update.clone()).ok());
    for more in ["", "&readPreference=secondary", "&readPreference=primary", "&replicaSet=rs0"] {
        let mut control = direct(secondary.port, more).control().unwrap();
        control.check_ready().unwrap();
        let counted = until(|| count(&mut control).ok());
        assert_eq!(counted.get_i32("n").unwrap(), 1, "{more}");
        let error = control.run("test", doc! { "insert": "c", "documents": [{}] }).unwrap_err();
        assert_eq!(error.code(), Some(10_107), "{more}");
        let uri = format!("mongodb://{}/?directConnection=true{more}", host(&secondary));
        let (target, _) = parse(&uri);
        DriverTarget::new(&target, None).unwrap();
    }
    let modes: Vec<_> = ["", "&readPreference=nearest"]
        .map(|more| direct(secondary.port, more).read_preference())
        .into_iter()
        .flatten()
        .collect();
    assert_eq!(modes, ["primaryPreferred", "nearest"]);
    assert_eq!(connector(&set).read_preference(), None);
    // The member starts up before it is an arbiter.
    until(|| {
        let error = direct(arbiter.port, "").control().ok()?.check_ready().err()?;
        let ConnectError::NotReady { description, state, .. } = error else {
            return None;
        };
        let is_named = description.contains("arbiter") && state.as_deref() == Some("ARBITER");
        is_named.then_some(())
    });
}
