//! Every finding made by this crate, with and without the measurement that it rests on.

use crate::samples::index_build::{dealt, pairs as tracing_pairs, rewritten, without_remedy};
use crate::samples::trace::{Traced, random_scan, sequential_scan, two_servers};
use dyno_analyze::access_pattern::Activity;
use dyno_record::experiment::Finding;
use dyno_record::index_build::IndexBuildDocument;
use dyno_report::index_build::{IndexBuildView, render};
use dyno_report::io_trace::TraceView;
use dyno_report::{PageFormat, RenderOptions};
use dyno_testkit::findings::{Reported, case};

/// One or two index builds with their traces.
#[derive(Clone)]
struct Built {
    document: IndexBuildDocument,
    traces: Vec<(&'static str, Traced)>,
}

type Case = dyno_testkit::findings::Case<Built>;

#[test]
fn every_finding_is_measured_and_silent_where_it_is_not() {
    let mut reported = Reported::default();
    reported
        .check(of_builds, [remedies(), orders(), configurations()].into_iter().flatten().collect());
    reported.finish("crates/report/src");
}

/// The findings from the JSON report.
fn of_builds(built: &Built) -> Vec<Finding> {
    let activity = Activity { subject: "mongod".to_owned(), scans_records: false };
    let views = built.traces.iter().map(|(name, traced)| {
        let view = TraceView {
            document: &traced.document,
            slices: &[],
            patterns: &traced.patterns,
            activity: &activity,
        };
        ((*name).to_owned(), view)
    });
    let view = IndexBuildView { document: &built.document, traces: views.collect() };
    let json = render(&view, PageFormat::Json, &RenderOptions::default()).unwrap();
    let mut json: serde_json::Value = serde_json::from_str(&json).unwrap();
    serde_json::from_value(json["findings"].take()).unwrap()
}

fn mended() -> Built {
    Built {
        document: rewritten(),
        traces: vec![("before", random_scan()), ("after", sequential_scan())],
    }
}

fn with(mut built: Built, change: impl FnOnce(&mut Built)) -> Built {
    change(&mut built);
    built
}

/// A caveat of the report covers this case.
fn without_traces(built: &mut Built) {
    built.traces.clear();
}

fn remedies() -> Vec<Case> {
    let once = |it: &mut Built| it.document.builds.truncate(1);
    let twice = |it: &mut Built| it.document.builds = rewritten().builds;
    let changed = |it: &mut Built| {
        it.document.remedy.as_mut().unwrap().documents.1 -= 1;
    };
    vec![
        case("remedy-changed-documents", with(mended(), changed))
            .not_if("all are what they were", |it| it.document = rewritten())
            .not_if("there was no remedy", |it| it.document = without_remedy()),
        case("remedy-without-second-build", with(mended(), once))
            .not_if("there was one", twice)
            .not_if("there was no remedy", |it| it.document.remedy = None),
        case("second-build-took", mended()).not_if("there was none", once).not_if(
            "its length is not known",
            |it| {
                it.document.builds[1].duration_s = f64::NAN;
            },
        ),
    ]
}

fn orders() -> Vec<Case> {
    let sequential = with(mended(), |it| it.traces[0].1 = sequential_scan());
    let random = with(mended(), |it| it.traces[1].1 = random_scan());
    let as_usual = |it: &mut Built| *it = mended();
    vec![
        case("nothing-to-mend", sequential)
            .not_if("the order was random", as_usual)
            .not_if("it was not traced", without_traces),
        case("order-not-mended", random)
            .not_if("it was mended", as_usual)
            .not_if("it was not traced", without_traces),
        case("scan-and-disk-order-disagree", mended())
            .not_if("they agree", |it| it.traces[0].1 = sequential_scan())
            .not_if("it was not traced", without_traces),
    ]
}

/// One server, and two servers that share the documents.
fn built() -> Built {
    Built {
        document: dealt(),
        traces: vec![("standalone", random_scan()), ("split-2", two_servers())],
    }
}

fn configurations() -> Vec<Case> {
    let other = with(built(), |it| {
        it.document.configurations[1].collection.content_hash = "00ff".into();
    });
    let alone = |it: &mut Built| {
        it.document.builds.truncate(1);
        it.document.configurations.truncate(1);
    };
    let cost = |pairs: &[(f64, f64)]| {
        let pairs = tracing_pairs(pairs);
        with(mended(), |it| it.document.builds[0].tracing = pairs)
    };
    vec![
        case("configurations-differ-in-documents", other)
            .not_if("they hold the same", |it| *it = built()),
        case("configuration-took", built()).not_if("there was one", alone).not_if(
            "its length is not known",
            |it| {
                it.document.builds[1].duration_s = f64::NAN;
            },
        ),
        case("servers-read-at-random", built())
            .not_if("all are read in order", |it| {
                it.traces = vec![("standalone", sequential_scan())];
            })
            .not_if("they were not traced", without_traces),
        case("cost-of-tracing", cost(&[(1.1, 1.0), (1.11, 1.0)]))
            .not_if("all builds were traced", |it| *it = mended()),
        case("cost-of-tracing-unknown", cost(&[(1.01, 1.0), (1.0, 1.0)]))
            .not_if("all builds were traced", |it| *it = mended()),
    ]
}
