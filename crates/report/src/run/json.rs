//! The run document as JSON: the content of `run.json`, with the rebuilt phases of a killed run, and the analysis.

use super::answered;
use super::result::result_phase;
use crate::caveat::TrustJson;
use crate::io_trace::{TraceJson, TraceView};
use dyno_analyze::experiment::run::RunAnalysis;
use dyno_record::model::RunDocument;
use dyno_record::reader::Run;
use serde::Serialize;

/// The JSON document of a run.
#[derive(Serialize)]
pub(super) struct Analysed<'a> {
    #[serde(flatten)]
    document: &'a RunDocument,
    /// The sentence that answers the question of the run; absent without a phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trust: Option<TrustJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    analysis: Option<&'a RunAnalysis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    io_trace: Option<TraceJson<'a>>,
}

/// The document, its analysis, and a file I/O trace.
pub(super) fn document<'a>(
    run: &'a Run,
    analysis: Option<&'a RunAnalysis>,
    trace: Option<&TraceView<'a>>,
) -> Analysed<'a> {
    let result = result_phase(&run.document);
    let answered = result.map(|phase| answered(&run.document, phase, analysis));
    let (answer, trust) = answered.unzip();
    let trust = trust.flatten().map(TrustJson::from);
    Analysed {
        document: &run.document,
        answer,
        trust,
        analysis,
        io_trace: trace.map(TraceView::json),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;
    use serde_json::Value;

    fn text(run: &Run) -> String {
        crate::texts::with_texts(&document(run, None, None)).unwrap().to_string()
    }

    #[test]
    fn the_text_is_the_document() {
        let run = testdata::open_run();
        let back: RunDocument = serde_json::from_str(&text(&run)).unwrap();
        assert_eq!(back, run.document);
    }

    #[test]
    fn the_promised_keys_are_there() {
        let text = text(&testdata::open_run());
        let document: Value = serde_json::from_str(&text).unwrap();
        assert!(document["schema_version"].is_u64());
        assert!(document["caveats"][0]["kind"].is_string());
        assert!(document["caveats"][0]["message"].is_string());
        assert!(document["answer"].is_string());
        assert!(document["trust"]["level"].is_string() && document["trust"]["because"].is_string());
        assert_eq!(document["trust"]["runs"], 1);
        let measure =
            document["phases"].as_array().unwrap().iter().find(|p| p["name"] == "measure").unwrap();
        for key in ["duration_s", "offered_rate_per_s", "achieved_rate_per_s", "little_ratio"] {
            assert!(measure[key].is_f64(), "{key}");
        }
        assert!(measure["errors"].as_object().is_some_and(|e| !e.is_empty()));
        for key in ["cpu_user_s", "cpu_system_s", "cpu_us_per_operation", "max_rss_bytes"] {
            assert!(measure["client"][key].is_number(), "{key}");
        }
        let read = &measure["operations"]["read"];
        assert!(read["count"].is_u64() && read["errors"].is_u64());
        let levels = ["mean", "min", "p50", "p90", "p95", "p99", "p99_9", "p99_99", "max"];
        for clock in ["response_time_us", "service_time_us", "start_delay_us"] {
            for level in levels {
                assert!(read[clock][level].is_f64(), "{clock} {level}");
            }
        }
    }
}
