//! Layouts and remedies on the embedded server: every document is there, whatever happens.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use bson::doc;
use dyno_layout::{
    Bench, Collection, Contents, LayoutError, Units, apply, contents, copy_name, load,
};
use dyno_load::connect::{Connector, Control};
use dyno_plan::index_build::{Layout, Remedy};
use dyno_testkit::{EmbeddedServer, embedded, or_skip};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

const COUNT: u64 = 1_500;

struct Fixture {
    connector: Connector,
    _server: EmbeddedServer,
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

    /// Calls `work` with a bench that goes on until `stop` says so; `seen` is told what is done.
    fn with<T>(
        &self,
        stop: &AtomicBool,
        seen: &(dyn Fn(&str, u64) + Sync),
        work: impl FnOnce(&Bench<'_>) -> T,
    ) -> T {
        work(&Bench {
            connect: &|| self.connector.control().map_err(LayoutError::from),
            interrupted: &|| stop.load(Ordering::Relaxed),
            progress: &|what, done, _| seen(what, done),
        })
    }

    fn quietly<T>(&self, work: impl FnOnce(&Bench<'_>) -> T) -> T {
        self.with(&AtomicBool::new(false), &|_, _| (), work)
    }

    fn loaded(&self, name: &str, layout: Layout) -> (Collection, Contents) {
        let collection = Collection::new("t", name);
        let units = Units::new(7, 20, 200);
        self.quietly(|bench| {
            load(bench, &collection, layout, units, COUNT).unwrap();
            let found = contents(bench, &collection, "look").unwrap();
            assert_eq!(found.documents, COUNT);
            (collection, found)
        })
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn is_there(&self, name: &str) -> bool {
        let mut control = self.control();
        Collection::new("t", name)
            .shape(&mut control)
            .unwrap()
            .is_some()
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
    ] {
        assert_eq!(fixture.loaded(name, layout).1, ordered, "{name}");
    }
    // What is there is left alone.
    let collection = Collection::new("t", "ordered");
    let again = fixture.quietly(|bench| {
        load(
            bench,
            &collection,
            Layout::Shuffled,
            Units::new(7, 20, 200),
            COUNT,
        )
    });
    assert!(
        matches!(
            again,
            Err(LayoutError::NotEmpty {
                documents: COUNT,
                ..
            })
        ),
        "{again:?}"
    );
    assert_eq!(
        fixture
            .quietly(|b| contents(b, &collection, "look"))
            .unwrap(),
        ordered
    );
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
        let applied = fixture
            .quietly(|bench| apply(bench, &collection, remedy, fixture.folder()))
            .unwrap();
        assert_eq!(applied.before, before, "{remedy:?}");
        assert_eq!(applied.after, before, "{remedy:?}");
        let shape = collection.shape(&mut control).unwrap().unwrap();
        let names: Vec<&str> = shape
            .indexes
            .iter()
            .map(|i| i.get_str("name").unwrap())
            .collect();
        assert_eq!(names, ["number_1"], "{remedy:?}");
        assert!(!fixture.is_there(&copy_name(&name)), "{remedy:?}");
        assert_eq!(std::fs::read_dir(fixture.folder()).unwrap().count(), 0);
    }
}

#[test]
fn a_remedy_that_is_interrupted_leaves_the_collection_and_no_copy() {
    let Some(fixture) = Fixture::start() else {
        return;
    };
    let (collection, before) = fixture.loaded("units", Layout::Shuffled);
    for remedy in [Remedy::Rewrite, Remedy::Dump] {
        for moment in [
            "copying",
            "dumping",
            "restoring",
            "verifying the copy",
            "looking for changes",
        ] {
            let stop = AtomicBool::new(false);
            let seen = |what: &str, _| {
                if what == moment {
                    stop.store(true, Ordering::Relaxed);
                }
            };
            let result = fixture.with(&stop, &seen, |bench| {
                apply(bench, &collection, remedy, fixture.folder())
            });
            if !stop.load(Ordering::Relaxed) {
                result.unwrap();
                continue;
            }
            assert!(
                matches!(result, Err(LayoutError::Interrupted)),
                "{moment}: {result:?}"
            );
            let after = fixture
                .quietly(|bench| contents(bench, &collection, "look"))
                .unwrap();
            assert_eq!(after, before, "{remedy:?} {moment}");
            assert!(!fixture.is_there("units.dyno-copy"), "{remedy:?} {moment}");
            assert_eq!(std::fs::read_dir(fixture.folder()).unwrap().count(), 0);
        }
    }
}

#[test]
fn what_others_write_meanwhile_is_never_lost() {
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
    let result = fixture.with(&AtomicBool::new(false), &seen, |bench| {
        apply(bench, &collection, Remedy::Rewrite, fixture.folder())
    });
    assert!(
        matches!(result, Err(LayoutError::Changed { .. })),
        "{result:?}"
    );
    let after = fixture
        .quietly(|bench| contents(bench, &collection, "look"))
        .unwrap();
    assert_eq!(after.documents, COUNT + 1);
    assert!(!fixture.is_there("units.dyno-copy"));
}

#[test]
fn the_copy_of_a_remedy_that_was_killed_is_left_to_the_person() {
    let Some(fixture) = Fixture::start() else {
        return;
    };
    let (collection, before) = fixture.loaded("units", Layout::Ordered);
    let left = doc! { "insert": "units.dyno-copy", "documents": [{ "_id": 1 }] };
    fixture.control().run("t", left).unwrap();
    let result =
        fixture.quietly(|bench| apply(bench, &collection, Remedy::Rewrite, fixture.folder()));
    let error = result.unwrap_err();
    assert!(matches!(error, LayoutError::CopyExists { .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("units.dyno-copy"));
    assert_eq!(
        fixture
            .quietly(|b| contents(b, &collection, "look"))
            .unwrap(),
        before
    );
    assert!(fixture.is_there("units.dyno-copy"));
}

#[test]
fn a_collection_that_is_missing_is_an_error_and_is_not_made() {
    let Some(fixture) = Fixture::start() else {
        return;
    };
    let collection = Collection::new("t", "nothing");
    let result =
        fixture.quietly(|bench| apply(bench, &collection, Remedy::Rewrite, fixture.folder()));
    assert!(
        matches!(result, Err(LayoutError::Missing { .. })),
        "{result:?}"
    );
    assert!(!fixture.is_there("nothing"));
    assert!(!fixture.is_there("nothing.dyno-copy"));
}
