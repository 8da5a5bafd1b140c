//! Events of a run as a list of annotations for Grafana's HTTP API.

use crate::export::rows::started;
use dyno_analyze::timeline::{TimelineChange, TimelineSeries};
use dyno_engine::Error;
use dyno_record::document::variant_name;
use dyno_record::index_build::{BuildRecord, IndexBuildDocument};
use dyno_record::model::{PhaseRecord, RunDocument, milliseconds};
use dyno_record::quantity::Quantity;
use dyno_record::reader::Run;
use dyno_record::tail::TailDocument;
use serde::Serialize;

/// An annotation of an instant or a time range.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Annotation {
    /// Start in milliseconds since 1970.
    pub(crate) time: i64,
    /// End in milliseconds since 1970.
    #[serde(rename = "timeEnd", skip_serializing_if = "Option::is_none")]
    pub(crate) time_end: Option<i64>,
    pub(crate) tags: Vec<String>,
    pub(crate) text: String,
}

/// All annotations of a run in time order, including the level changes found by the analysis.
pub(crate) fn all(run: &Run, changes: &[TimelineChange]) -> Result<Vec<Annotation>, Error> {
    let mut found =
        Found { origin_ms: started(&run.document)?.as_millisecond(), annotations: Vec::new() };
    found.add_phases(&run.document);
    found.add_watching(&run.document);
    found.add_caveats(&run.document);
    for change in changes {
        let (name, text) = change_text(change);
        found.add("change", name, change.at_s, None, text);
    }
    found.annotations.sort_by_key(|annotation| annotation.time);
    Ok(found.annotations)
}

/// An annotation for each index build.
pub(crate) fn of_builds(document: &IndexBuildDocument) -> Vec<Annotation> {
    let of_one = |build: &BuildRecord| {
        let start_ms = milliseconds(&build.started_at)?;
        let took = Quantity::seconds(build.duration_s);
        Some(Annotation {
            time: start_ms,
            time_end: Some(start_ms + (build.duration_s * 1e3).round() as i64),
            tags: tags("index-build", &build.name),
            text: format!("index build {} of {}: {took}", build.name, document.name),
        })
    };
    document.builds.iter().filter_map(of_one).collect()
}

/// An annotation for the time when messages were sent.
pub(crate) fn of_messages(document: &TailDocument) -> Option<Annotation> {
    let measured = document.cells.iter().filter_map(|cell| cell.measured.as_ref());
    let producers = measured.flat_map(|measured| &measured.producers);
    let sent: u64 = producers.map(|one| one.sum.acknowledged).sum();
    Some(Annotation {
        time: milliseconds(&document.started_at)?,
        time_end: document.ended_at.as_deref().and_then(milliseconds),
        tags: tags("messages", &document.name),
        text: format!("{} messages of {}", Quantity::count(sent), document.name),
    })
}

fn tags(kind: &str, name: &str) -> Vec<String> {
    vec!["dyno".to_owned(), kind.to_owned(), name.to_owned()]
}

/// Collects annotations.
struct Found {
    /// Start of the run in milliseconds since 1970.
    origin_ms: i64,
    annotations: Vec<Annotation>,
}

impl Found {
    /// Adds an annotation; times are relative to the start of the run.
    fn add(&mut self, kind: &str, name: &str, start_s: f64, end_s: Option<f64>, text: String) {
        let at = |at_s: f64| self.origin_ms + (at_s * 1e3).round() as i64;
        self.annotations.push(Annotation {
            time: at(start_s),
            time_end: end_s.map(at),
            tags: tags(kind, name),
            text,
        });
    }

    fn add_phases(&mut self, document: &RunDocument) {
        for phase in &document.phases {
            let name = phase.name.as_str();
            let rate = Quantity::per_second(phase.achieved_rate_per_s);
            let text = format!("phase {name} of {}: {rate}", document.name);
            self.add("phase", name, phase.start_s, Some(end_s(phase)), text);
        }
    }

    fn add_watching(&mut self, document: &RunDocument) {
        for trace in &document.traces {
            if let Some(start_s) = trace.start_s {
                let text = format!("trace {}: {}", trace.name, trace.outcome);
                self.add("trace", &trace.name, start_s, trace.end_s, text);
            }
        }
        for source in &document.sources {
            for outage in &source.outages {
                let text = format!("{} could not be read: {}", source.name, outage.reason);
                self.add("outage", &source.name, outage.start_s, outage.end_s, text);
            }
        }
    }

    fn add_caveats(&mut self, document: &RunDocument) {
        for caveat in &document.caveats {
            let mut phases = document.phases.iter();
            // A caveat of the whole run does not have a time.
            if let Some(phase) = phases.find(|phase| Some(phase.name) == caveat.phase) {
                let kind = variant_name(&caveat.kind);
                let text = dyno_report::texts::text(&caveat.statement);
                self.add("caveat", &kind, phase.start_s, Some(end_s(phase)), text);
            }
        }
    }
}

/// Tag and text of a level change.
fn change_text(change: &TimelineChange) -> (&'static str, String) {
    let (tag, what, write): (_, _, fn(f64) -> Quantity) = match change.series {
        TimelineSeries::RatePerS => ("rate", "rate", Quantity::per_second),
        TimelineSeries::ResponseMeanUs => {
            ("response_mean", "mean response time", Quantity::microseconds)
        }
        TimelineSeries::ResponseP99Us => {
            ("response_p99", "p99 response time", Quantity::microseconds)
        }
        TimelineSeries::DiskOperationsPerS => {
            ("disk_operations", "operations of the disk", Quantity::per_second)
        }
    };
    let (before, after) = (write(change.before), write(change.after));
    (tag, format!("{what} changed from {before} to {after}"))
}

fn end_s(phase: &PhaseRecord) -> f64 {
    phase.start_s + phase.duration_s
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_engine::run::document;
    use dyno_record::model::{OutageRecord, SourceHealth, SourceKind, SourceRecord, TraceRecord};
    use dyno_record::writer::RunWriter;

    #[test]
    fn annotations_omit_events_that_never_began() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let plan = dyno_plan::builtin::find("read").expect("a built-in plan");
        let start = jiff::Timestamp::UNIX_EPOCH;
        let mut document = document::initial(&plan, start, Default::default());
        let trace = |name: &str, start_s| TraceRecord {
            name: name.into(),
            command: vec!["true".into()],
            directory: "traces/x".into(),
            start_s,
            end_s: start_s.map(|start_s| start_s + 2.0),
            outcome: "ended".into(),
        };
        document.traces = vec![trace("perf", Some(1.5)), trace("never", None)];
        document.sources = vec![SourceRecord {
            name: "server".into(),
            kind: SourceKind::Server,
            subject: "db:27017".into(),
            machine: None,
            of_server: true,
            interval_s: 1.0,
            readings_per_row: 1,
            health: SourceHealth::Failed,
            reason: None,
            missing: Vec::new(),
            readings: 0,
            missed: 1,
            outages: vec![OutageRecord { start_s: 0.25, end_s: None, reason: "it is gone".into() }],
            cpu_s: 0.0,
            cpu_ratio: 0.0,
        }];
        let writer = RunWriter::create(folder.path(), "", &document).expect("a new record");
        writer.finish(&document).expect("a complete record");
        let run = Run::open(folder.path()).expect("a readable record");
        let change = TimelineChange {
            series: TimelineSeries::RatePerS,
            at_s: 30.0,
            earliest_s: 29.0,
            latest_s: 31.0,
            before: 4_000.0,
            after: 1_000.0,
            p_value_ratio: 0.001,
        };
        let found: Vec<_> = all(&run, &[change])
            .expect("the change has a start")
            .into_iter()
            .map(|one| (one.time, one.time_end, one.tags[2].clone()))
            .collect();
        assert_eq!(
            found,
            [
                (250, None, "server".to_owned()),
                (1_500, Some(3_500), "perf".to_owned()),
                (30_000, None, "rate".to_owned())
            ]
        );
        let (_, text) = change_text(&change);
        let (before, after) = (text.find("4,000/s"), text.find("1,000/s"));
        assert!(before.is_some() && before < after, "{text}");
    }
}
