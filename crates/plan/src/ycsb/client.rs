//! Options of `dyno ycsb` that are not part of the plan: status line, exporters, retries.

use super::reader::Reader;
use crate::model::set;
use crate::names::with_defaults;
use crate::nearest::nearest;
use std::path::PathBuf;

with_defaults! {
    /// Options of YCSB's client that are not part of a plan. The defaults are YCSB's.
    #[derive(Clone, Debug, PartialEq)]
    pub struct YcsbClientOptions {
        /// Whether to print a status line on stderr (`status`, `-s`).
        pub status: bool,
        /// Seconds between two status lines, at least 1 (`status.interval`).
        pub status_interval_s: u64 = 10,
        /// Text directly before the status line (`label`, `-l`).
        pub label: String,
        /// Operations per second over all threads, absent without a limit (`target`).
        pub target_ops_per_s: Option<f64>,
        /// Longest duration of a phase in seconds, absent without a limit (`maxexecutiontime`).
        pub max_execution_time_s: Option<u64>,
        /// Format of the final output (`exporter`).
        pub exporter: Exporter = Exporter::Text,
        /// File for the final output, stdout when absent (`exportfile`).
        pub export_file: Option<PathBuf>,
        /// Measured figures of an operation (`measurementtype`).
        pub measurement_type: MeasurementType = MeasurementType::HdrHistogram,
        /// Start of latencies (`measurement.interval`).
        pub measurement_interval: MeasurementInterval = MeasurementInterval::Op,
        /// Percentiles of the final output, each 0 to 100 (`hdrhistogram.percentiles`).
        pub percentiles: Vec<f64> = vec![50.0, 95.0, 99.0],
        /// Whether to write one histogram log per operation (`hdrhistogram.fileoutput`).
        pub hdr_fileoutput: bool,
        /// Prefix of the names of these logs (`hdrhistogram.output.path`).
        pub hdr_output_path: String,
        /// Whether to print the buckets of the histograms as well
        /// (`measurement.histogram.verbose`).
        pub histogram_verbose: bool,
        /// Number of 1 ms buckets of the type `histogram`, at least 1 (`histogram.buckets`).
        pub histogram_buckets: u32 = 1000,
        /// Step of the type `timeseries` in milliseconds, at least 1 (`timeseries.granularity`).
        pub timeseries_granularity_ms: u64 = 1000,
        /// Whether to print a block for each kind of error (`reportlatencyforeacherror`).
        pub report_latency_for_each_error: bool,
        /// Statuses with their own blocks (`latencytrackederrors`).
        pub latency_tracked_errors: Vec<String>,
        /// Largest number of retries of a failed insert in the load phase
        /// (`core_workload_insertion_retry_limit`).
        pub insertion_retry_limit: u32,
        /// Seconds before each retry (`core_workload_insertion_retry_interval`).
        pub insertion_retry_interval_s: u64 = 3,
        /// Whether to continue the load after a permanently failed insert
        /// (`core_workload_insertion_keep_going_on_error`).
        pub keep_going_on_error: bool,
    }
}

/// Format of the final output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exporter {
    /// `TextMeasurementsExporter`.
    Text,
    /// `JSONMeasurementsExporter`.
    Json,
    /// `JSONArrayMeasurementsExporter`.
    JsonArray,
}

/// Measured figures of an operation. YCSB's `raw` types need every single latency and are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasurementType {
    /// `histogram`.
    Histogram,
    /// `hdrhistogram`.
    HdrHistogram,
    /// `hdrhistogram+histogram`.
    HdrHistogramAndHistogram,
    /// `timeseries`.
    TimeSeries,
}

/// Start of latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasurementInterval {
    /// The send start.
    Op,
    /// The intended start.
    Intended,
    /// Both, in separate blocks.
    Both,
}

/// Statuses of YCSB's operations.
const STATUSES: [&str; 9] = [
    "OK",
    "ERROR",
    "NOT_FOUND",
    "NOT_IMPLEMENTED",
    "UNEXPECTED_STATE",
    "BAD_REQUEST",
    "FORBIDDEN",
    "SERVICE_UNAVAILABLE",
    "BATCHED_OK",
];

/// Reads the options; problems are added to the reader, with the default as the value.
pub(super) fn read(reader: &mut Reader<'_>) -> YcsbClientOptions {
    let mut options = YcsbClientOptions::default();
    read_status(reader, &mut options);
    read_output(reader, &mut options);
    read_measurement(reader, &mut options);
    read_retries(reader, &mut options);
    // The plan reads these two as well and reports their problems.
    options.target_ops_per_s = given(reader, "target").filter(|rate: &f64| *rate > 0.0);
    options.max_execution_time_s = given(reader, "maxexecutiontime").filter(|time: &u64| *time > 0);
    options
}

fn given<T: std::str::FromStr>(reader: &Reader<'_>, name: &str) -> Option<T> {
    reader.text(name)?.parse().ok()
}

/// A number of at least 1.
fn positive(reader: &mut Reader<'_>, name: &str) -> Option<u64> {
    let number = reader.count::<u64>(name)?;
    if number == 0 {
        reader.refuse(name, "a whole number from 1");
        return None;
    }
    Some(number)
}

fn read_status(reader: &mut Reader<'_>, options: &mut YcsbClientOptions) {
    set(&mut options.status, reader.boolean("status"));
    set(&mut options.status_interval_s, positive(reader, "status.interval"));
    set(&mut options.label, reader.exact_text("label").map(Into::into));
}

fn read_output(reader: &mut Reader<'_>, options: &mut YcsbClientOptions) {
    set(&mut options.exporter, exporter(reader));
    options.export_file =
        reader.text("exportfile").filter(|path| !path.is_empty()).map(PathBuf::from);
    set(&mut options.percentiles, percentiles(reader));
    set(&mut options.hdr_fileoutput, reader.boolean("hdrhistogram.fileoutput"));
    set(&mut options.hdr_output_path, reader.text("hdrhistogram.output.path").map(Into::into));
    if !options.hdr_fileoutput {
        reader.warn_unused("hdrhistogram.output.path", "`hdrhistogram.fileoutput` is not `true`");
    }
}

/// Exporters have the same class names in the packages of all versions.
fn exporter(reader: &mut Reader<'_>) -> Option<Exporter> {
    let class = reader.text("exporter")?;
    let exporter = match class.rsplit('.').next() {
        Some("TextMeasurementsExporter") => Some(Exporter::Text),
        Some("JSONMeasurementsExporter") => Some(Exporter::Json),
        Some("JSONArrayMeasurementsExporter") => Some(Exporter::JsonArray),
        _ => None,
    };
    if exporter.is_none() {
        reader.refuse(
            "exporter",
            "`site.ycsb.measurements.exporter.` and then `TextMeasurementsExporter`, \
             `JSONMeasurementsExporter` or `JSONArrayMeasurementsExporter`",
        );
    }
    exporter
}

fn percentiles(reader: &mut Reader<'_>) -> Option<Vec<f64>> {
    let text = reader.text("hdrhistogram.percentiles")?;
    let parsed: Option<Vec<f64>> = text
        .split(',')
        .map(|part| {
            part.trim().parse().ok().filter(|percentile| (0.0..=100.0).contains(percentile))
        })
        .collect();
    if parsed.is_none() {
        reader.refuse("hdrhistogram.percentiles", "numbers from 0 to 100, separated by commas");
    }
    parsed
}

fn read_measurement(reader: &mut Reader<'_>, options: &mut YcsbClientOptions) {
    set(&mut options.measurement_type, measurement_type(reader));
    let interval = reader.choice(
        "measurement.interval",
        &[
            ("op", MeasurementInterval::Op),
            ("intended", MeasurementInterval::Intended),
            ("both", MeasurementInterval::Both),
        ],
    );
    set(&mut options.measurement_interval, interval);
    if !reader.is_changed("target") {
        let reason = "without `target`, the intended start of an operation is its actual start";
        reader.warn_unused("measurement.interval", reason);
    }
    set(&mut options.histogram_verbose, reader.boolean("measurement.histogram.verbose"));
    let buckets = positive(reader, "histogram.buckets");
    set(
        &mut options.histogram_buckets,
        buckets.map(|number| u32::try_from(number).unwrap_or(u32::MAX)),
    );
    set(&mut options.timeseries_granularity_ms, positive(reader, "timeseries.granularity"));
    set(&mut options.report_latency_for_each_error, reader.boolean("reportlatencyforeacherror"));
    set(&mut options.latency_tracked_errors, tracked_errors(reader));
}

fn measurement_type(reader: &mut Reader<'_>) -> Option<MeasurementType> {
    const NAME: &str = "measurementtype";
    if matches!(reader.text(NAME)?, "raw" | "hdrhistogram+raw") {
        let value = reader.text(NAME).unwrap_or_default();
        let message = format!("`{NAME}` is `{value}`, which is not supported");
        let hint =
            "a run keeps histograms, not every single latency; use `hdrhistogram` or `timeseries`";
        reader.problem(NAME, message, hint);
        return None;
    }
    reader.choice(
        NAME,
        &[
            ("histogram", MeasurementType::Histogram),
            ("hdrhistogram", MeasurementType::HdrHistogram),
            ("hdrhistogram+histogram", MeasurementType::HdrHistogramAndHistogram),
            ("timeseries", MeasurementType::TimeSeries),
        ],
    )
}

fn tracked_errors(reader: &mut Reader<'_>) -> Option<Vec<String>> {
    const NAME: &str = "latencytrackederrors";
    let text = reader.text(NAME)?;
    let names: Vec<&str> = text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    if let Some(unknown) = names.iter().find(|name| !STATUSES.contains(name)) {
        let message = format!("`{NAME}` has the unknown status `{unknown}`");
        let hint = match nearest(unknown, STATUSES) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("statuses: `{}`", STATUSES.join("`, `")),
        };
        reader.problem(NAME, message, &hint);
        return None;
    }
    Some(names.into_iter().map(Into::into).collect())
}

fn read_retries(reader: &mut Reader<'_>, options: &mut YcsbClientOptions) {
    set(&mut options.insertion_retry_limit, reader.count("core_workload_insertion_retry_limit"));
    set(
        &mut options.insertion_retry_interval_s,
        reader.count("core_workload_insertion_retry_interval"),
    );
    let keep_going = reader.boolean("core_workload_insertion_keep_going_on_error");
    set(&mut options.keep_going_on_error, keep_going);
}
