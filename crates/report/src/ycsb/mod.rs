//! The final output of YCSB, so that scripts that read it work unchanged.
//!
//! Names, order and number format of the lines are YCSB's. What is deliberately different:
//!
//! - `[OVERALL]` counts operations that succeeded. YCSB counts failed ones too.
//! - Of the garbage collector's lines only the totals are printed (`[TOTAL_GCs]`,
//!   `[TOTAL_GC_TIME]`, `[TOTAL_GC_TIME_%]`), all 0: true for a program without a collector, and
//!   enough for scripts that look them up. Lines named after a collector of a JVM are left out.
//! - A block `[<OP>-FAILED]` holds the number of failures and no latencies, because a run does not
//!   hold the latencies of failures.
//! - `[CLEANUP]` appears if the run has an operation of that name: closing connections is not
//!   measured, and a line without a measurement behind it would be made up.
//! - In the load phase an operation is a document, as for YCSB; its latency is that of the batch
//!   it was sent with, where YCSB reports almost zero for all but the last document of a batch.
//! - Programs read this text line by line, so that nothing is in it that YCSB does not print: whether a run ended
//!   as planned is said by the exit status, see [`crate::incomplete`] for people.

mod blocks;
mod export;
pub(crate) mod java_double;

use crate::error::ReportError;
use crate::run::result::result_phase;
use blocks::Entries;
use dyno_record::model::{PhaseKind, PhaseRecord};
use dyno_record::reader::Run;

/// What is printed and how: YCSB's properties.
#[derive(Clone, Debug, PartialEq)]
pub struct YcsbOptions {
    /// The phase that the output is about; the measure phase when absent, or the last one that did
    /// something.
    pub phase: Option<PhaseKind>,
    /// Percentiles, 0 to 100 (`hdrhistogram.percentiles`).
    pub percentiles: Vec<f64>,
    /// Where latencies begin (`measurement.interval`).
    pub interval: MeasurementInterval,
    /// Which figures an operation gets (`measurementtype`).
    pub measurement: MeasurementType,
    /// Form of the output (`exporter`).
    pub exporter: Exporter,
    /// Buckets of 1 ms of the type `histogram` (`histogram.buckets`).
    pub buckets: usize,
    /// Step of the type `timeseries` in milliseconds (`timeseries.granularity`).
    pub granularity_ms: u64,
    /// Whether the buckets of histograms are printed too (`measurement.histogram.verbose`).
    pub verbose: bool,
}

impl Default for YcsbOptions {
    fn default() -> Self {
        YcsbOptions {
            phase: None,
            percentiles: vec![50.0, 95.0, 99.0],
            interval: MeasurementInterval::Op,
            measurement: MeasurementType::HdrHistogram,
            exporter: Exporter::Text,
            buckets: 1_000,
            granularity_ms: 1_000,
            verbose: false,
        }
    }
}

/// Where latencies begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MeasurementInterval {
    /// At the send: service time.
    #[default]
    Op,
    /// At the intended start: response time.
    Intended,
    /// Both, the latter in blocks named `Intended-<OP>`.
    Both,
}

/// Which figures an operation gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MeasurementType {
    /// `histogram`: mean, variance and percentiles from buckets of 1 ms.
    Histogram,
    /// `hdrhistogram`: mean and percentiles from an HdrHistogram.
    #[default]
    HdrHistogram,
    /// `hdrhistogram+histogram`: both, in blocks `Hdr<OP>` and `Bucket<OP>`.
    HdrHistogramAndHistogram,
    /// `hdrhistogram+raw`: cannot be made from a run.
    HdrHistogramAndRaw,
    /// `timeseries`: mean latency per step.
    TimeSeries,
    /// `raw`: cannot be made from a run.
    Raw,
}

/// Form of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exporter {
    /// `TextMeasurementsExporter`: `[READ], Operations, 478`.
    #[default]
    Text,
    /// `JSONMeasurementsExporter`. YCSB joins its objects without a separator, which is no JSON
    /// document; here each object has its line (JSON Lines), which the same stream readers accept.
    Json,
    /// `JSONArrayMeasurementsExporter`: one array of all objects.
    JsonArray,
}

/// Renders the output of one phase.
pub(crate) fn render(run: &Run, options: &YcsbOptions) -> Result<String, ReportError> {
    let valid = |percentile: &&f64| !(0.0..=100.0).contains(*percentile);
    if let Some(&percentile) = options.percentiles.iter().find(valid) {
        return Err(ReportError::Percentile { percentile });
    }
    let phase = chosen_phase(run, options)?;
    let mut entries = Entries::default();
    blocks::overall(&mut entries, phase);
    blocks::operations(&mut entries, run, phase, options)?;
    blocks::verify(&mut entries, run, phase);
    export::write(&entries.into_vec(), options.exporter)
}

fn chosen_phase<'a>(run: &'a Run, options: &YcsbOptions) -> Result<&'a PhaseRecord, ReportError> {
    let Some(phase) = options.phase else {
        return result_phase(&run.document).ok_or(ReportError::NoPhase);
    };
    let mut phases = run.document.phases.iter();
    phases
        .find(|record| record.name == phase)
        .ok_or(ReportError::NoSuchPhase { phase })
}
