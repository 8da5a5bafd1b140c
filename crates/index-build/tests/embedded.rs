//! Layouts and remedies on the embedded server keep every document.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use bson::{RawBsonRef, RawDocumentBuf, cstr, doc, rawdoc};
use dyno_index_build::layout::{
    Access, Collection, Contents, LayoutError, Load, Share, Units, apply, contents, copy_prefix,
    load,
};
use dyno_load::connect::{Connector, Control};
use dyno_plan::index_build::{Layout, Remedy};
use dyno_testkit::{TestServer, embedded, or_skip};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

const COUNT: u64 = 1_500;

struct Fixture {
    connector: Connector,
    _server: TestServer,
    folder: tempfile::TempDir,
}

impl Fixture {
    fn start() -> Option<Fixture> {
        let server = or_skip(embedded())?;
        let (target, credentials) = dyno_plan::uri::parse(&server.uri()).unwrap();
        Some(Fixture {
            connector: Connector::new(&target, credentials).unwrap(),
            _server: server,
            folder: tempfile::tempdir().unwrap(),
        })
    }

    fn control(&self) -> Control {
        self.connector.control().unwrap()
    }

    /// Calls `work` with an access that continues until `stop` returns true; `seen` gets the current action.
    fn with<T>(
        &self,
        stop: &AtomicBool,
        seen: &(dyn Fn(&str, u64) + Sync),
        work: impl FnOnce(&Access<'_>) -> T,
    ) -> T {
        work(&Access {
            connect: &|| self.connector.control().map_err(LayoutError::from),
            patient: &|| self.connector.control().map_err(LayoutError::from),
            interrupted: &|| stop.load(Ordering::Relaxed),
            progress: &|what, done, _| seen(what, done),
        })
    }

    fn quietly<T>(&self, work: impl FnOnce(&Access<'_>) -> T) -> T {
        self.with(&AtomicBool::new(false), &|_, _| (), work)
    }

    fn loaded(&self, name: &str, layout: Layout) -> (Collection, Contents) {
        let collection = Collection::new("t", name);
        let units = Units::new(7, 20, 200);
        self.quietly(|access| {
            let share = Share::ALL;
            let count = COUNT;
            let it = Load { layout, units, count, share };
            load(access, &collection, it).unwrap();
            let found = contents(access, &collection, "look").unwrap();
            assert_eq!(found.documents, COUNT);
            (collection, found)
        })
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Names of the collections with this prefix.
    fn names(&self, prefix: &str) -> Vec<String> {
        let list = doc! { "listCollections": 1, "nameOnly": true };
        let answer = self.control().run("t", list).unwrap();
        let batch = answer.get_document("cursor").unwrap();
        batch
            .get_array("firstBatch")
            .unwrap()
            .iter()
            .map(|entry| entry.as_document().unwrap().get_str("name").unwrap())
            .filter(|name| name.starts_with(prefix))
            .map(str::to_owned)
            .collect()
    }
}

#[test]
fn every_layout_loads_the_same_documents() {
    let Some(fixture) = Fixture::start() else {
        return;
    };
    let (_, ordered) = fixture.loaded("ordered", Layout::Ordered);
    for (name, layout) in [
        ("shuffled", Layout::Shuffled),
        ("concurrent", Layout::Concurrent),
        ("churned", Layout::Churned),
        ("migrated", Layout::Migrated),
    ] {
        assert_eq!(fixture.loaded(name, layout).1, ordered, "{name}");
    }
    // Existing documents are not touched.
    let collection = Collection::new("t", "ordered");
    let again = fixture.quietly(|access| {
        let it = Load {
            layout: Layout::Shuffled,
            units: Units::new(7, 20, 200),
            count: COUNT,
            share: Share::ALL,
        };
        load(access, &collection, it)
    });
    assert!(matches!(again, Err(LayoutError::NotEmpty { documents: COUNT, .. })), "{again:?}");
    assert_eq!(fixture.quietly(|b| contents(b, &collection, "look")).unwrap(), ordered);
}

#[test]
fn remedies_keep_every_document_and_every_index() {
    let Some(fixture) = Fixture::start() else {
        return;
    };
    for remedy in [Remedy::Rewrite, Remedy::NaturalCopy, Remedy::Dump] {
        let name = format!("units {remedy:?}");
        let (collection, before) = fixture.loaded(&name, Layout::Churned);
        let index = doc! { "key": { "number": 1 }, "name": "number_1", "v": 2 };
        let mut control = fixture.control();
        collection.create_indexes(&mut control, &[index]).unwrap();
        let applied =
            fixture.quietly(|access| apply(access, &collection, remedy, fixture.folder())).unwrap();
        assert_eq!(applied.before, before, "{remedy:?}");
        assert_eq!(applied.after, before, "{remedy:?}");
        let shape = collection.shape(&mut control).unwrap().unwrap();
        let names: Vec<&str> = shape.indexes.iter().map(|i| i.get_str("name").unwrap()).collect();
        assert_eq!(names, ["number_1"], "{remedy:?}");
        assert!(fixture.names(&copy_prefix(&name)).is_empty(), "{remedy:?}");
        assert_eq!(std::fs::read_dir(fixture.folder()).unwrap().count(), 0);
    }
}

#[test]
fn interrupted_remedy_leaves_the_collection_and_no_copy() {
    let Some(fixture) = Fixture::start() else {
        return;
    };
    let (collection, before) = fixture.loaded("units", Layout::Shuffled);
    let moments = ["copying", "dumping", "restoring", "verifying the copy", "looking for changes"];
    let mut interrupted = BTreeSet::new();
    for remedy in [Remedy::Rewrite, Remedy::Dump] {
        for moment in moments {
            let stop = AtomicBool::new(false);
            let seen = |what: &str, _| {
                if what == moment {
                    stop.store(true, Ordering::Relaxed);
                }
            };
            let result = fixture
                .with(&stop, &seen, |access| apply(access, &collection, remedy, fixture.folder()));
            if !stop.load(Ordering::Relaxed) {
                result.unwrap();
                continue;
            }
            interrupted.insert(moment);
            assert!(matches!(result, Err(LayoutError::Interrupted)), "{moment}: {result:?}");
            let after = fixture.quietly(|access| contents(access, &collection, "look")).unwrap();
            assert_eq!(after, before, "{remedy:?} {moment}");
            assert!(fixture.names("units.dyno-copy").is_empty(), "{remedy:?} {moment}");
            assert_eq!(std::fs::read_dir(fixture.folder()).unwrap().count(), 0);
        }
    }
    assert_eq!(interrupted, BTreeSet::from(moments));
}

#[test]
fn concurrent_writes_are_never_lost() {
    let Some(fixture) = Fixture::start() else {
        return;
    };
    let (collection, _) = fixture.loaded("units", Layout::Ordered);
    let is_written = AtomicBool::new(false);
    let seen = |what: &str, done: u64| {
        if what == "copying" && done > 900 && !is_written.swap(true, Ordering::Relaxed) {
            let insert = doc! { "insert": "units", "documents": [{ "_id": -5_i64, "mine": true }] };
            fixture.control().run("t", insert).unwrap();
        }
    };
    let result = fixture.with(&AtomicBool::new(false), &seen, |access| {
        apply(access, &collection, Remedy::Rewrite, fixture.folder())
    });
    assert!(matches!(result, Err(LayoutError::Changed { .. })), "{result:?}");
    let after = fixture.quietly(|access| contents(access, &collection, "look")).unwrap();
    assert_eq!(after.documents, COUNT + 1);
    assert!(fixture.names("units.dyno-copy").is_empty());
}

#[test]
fn copy_of_a_killed_remedy_is_left_in_place() {
    let Some(fixture) = Fixture::start() else {
        return;
    };
    let (collection, before) = fixture.loaded("units", Layout::Ordered);
    let left = doc! { "insert": "units.dyno-copy", "documents": [{ "_id": 1 }] };
    fixture.control().run("t", left).unwrap();
    let result =
        fixture.quietly(|access| apply(access, &collection, Remedy::Rewrite, fixture.folder()));
    let error = result.unwrap_err();
    assert!(matches!(error, LayoutError::CopyExists { .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("units.dyno-copy"));
    assert_eq!(fixture.quietly(|b| contents(b, &collection, "look")).unwrap(), before);
    assert!(!fixture.names("units.dyno-copy").is_empty());
}

#[test]
fn missing_collection_is_an_error_and_is_not_created() {
    let Some(fixture) = Fixture::start() else {
        return;
    };
    let collection = Collection::new("t", "nothing");
    let result =
        fixture.quietly(|access| apply(access, &collection, Remedy::Rewrite, fixture.folder()));
    assert!(matches!(result, Err(LayoutError::Missing { .. })), "{result:?}");
    assert!(fixture.names("nothing").is_empty());
}

#[test]
fn documents_that_no_driver_writes_stay_unchanged() {
    let Some(fixture) = Fixture::start() else {
        return;
    };
    // A duplicate field.
    let mut odd = RawDocumentBuf::new();
    odd.append(cstr!("_id"), 1);
    odd.append(cstr!("a"), 1);
    odd.append(cstr!("a"), 2);
    let plain = rawdoc! { "_id": 2, "": "empty", "a.b": { "$x": 1 } };
    let mut control = fixture.control();
    let insert = rawdoc! { "insert": "odd" };
    let documents = [odd.clone(), plain.clone()];
    control.run_with_documents("t", insert, Some(("documents", &documents))).unwrap();
    let stored = |control: &mut Control| {
        let find = rawdoc! { "find": "odd", "sort": { "_id": 1 } };
        let answer = control.run_raw("t", find).unwrap();
        let batch = answer.get_document("cursor").unwrap();
        let batch = batch.get_array("firstBatch").unwrap().into_iter();
        let bytes = |item: RawBsonRef<'_>| item.as_document().unwrap().as_bytes().to_vec();
        batch.map(|item| bytes(item.unwrap())).collect::<Vec<_>>()
    };
    let before = stored(&mut control);
    assert_eq!(
        before,
        [odd.as_bytes(), plain.as_bytes()],
        "the server itself changes such documents"
    );
    let collection = Collection::new("t", "odd");
    for remedy in [Remedy::Rewrite, Remedy::NaturalCopy, Remedy::Dump] {
        fixture.quietly(|access| apply(access, &collection, remedy, fixture.folder())).unwrap();
        assert_eq!(stored(&mut control), before, "{remedy:?}");
    }
}

#[test]
fn foreign_changes_to_copy_or_indexes_end_the_remedy() {
    let Some(fixture) = Fixture::start() else {
        return;
    };
    let (collection, before) = fixture.loaded("units", Layout::Ordered);
    let index = doc! { "key": { "number": 1 }, "name": "number_1" };
    let meddle = |what: &str| match what {
        "index" => {
            let mut control = fixture.control();
            collection.create_indexes(&mut control, std::slice::from_ref(&index)).unwrap();
        }
        _ => {
            let copy = fixture.names("units.dyno-copy").remove(0);
            fixture.control().run("t", doc! { "drop": copy }).unwrap();
        }
    };
    for what in ["index", "copy"] {
        let is_done = AtomicBool::new(false);
        let seen = |step: &str, _: u64| {
            if step == "verifying the copy" && !is_done.swap(true, Ordering::Relaxed) {
                meddle(what);
            }
        };
        let result = fixture.with(&AtomicBool::new(false), &seen, |access| {
            apply(access, &collection, Remedy::Rewrite, fixture.folder())
        });
        assert!(is_done.load(Ordering::Relaxed));
        assert!(result.is_err(), "{what}: {result:?}");
        let after = fixture.quietly(|access| contents(access, &collection, "look")).unwrap();
        assert_eq!(after, before, "{what}");
        assert!(fixture.names("units.dyno-copy").is_empty(), "{what}");
        collection.drop_index(&mut fixture.control(), "number_1").unwrap();
    }
}

#[test]
fn internal_collections_are_refused() {
    let Some(fixture) = Fixture::start() else {
        return;
    };
    for (database, name) in [("admin", "x"), ("local", "oplog.rs"), ("t", "system.users")] {
        let collection = Collection::new(database, name);
        let result =
            fixture.quietly(|access| apply(access, &collection, Remedy::Rewrite, fixture.folder()));
        assert!(matches!(result, Err(LayoutError::OfServer { .. })), "{result:?}");
    }
}
