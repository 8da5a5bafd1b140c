//! The final output of `dyno ycsb`: which options the report needs, and where the text goes.

use crate::messages::print_data;
use crate::reports::{refused, ycsb_text};
use dyno_engine::Error;
use dyno_engine::files::write_file;
use dyno_plan::ycsb::{self, YcsbClientOptions};
use dyno_record::model::PhaseKind;
use dyno_record::reader::Run;
use dyno_report::RenderOptions;
use dyno_report::ycsb::{Exporter, MeasurementInterval, MeasurementType, YcsbOptions};

/// Prints the output of `phase`, or writes it to `exportfile`.
pub(crate) fn export(
    run: &Run,
    phase: PhaseKind,
    options: &YcsbClientOptions,
) -> Result<(), Error> {
    let render_options = RenderOptions {
        ycsb: report_options(phase, options),
        ..RenderOptions::default()
    };
    let text = ycsb_text(run, &render_options).map_err(refused)?;
    match &options.export_file {
        Some(path) => Ok(write_file(path, &text)?),
        None => print_data(&text),
    }
}

fn report_options(phase: PhaseKind, options: &YcsbClientOptions) -> YcsbOptions {
    YcsbOptions {
        phase: Some(phase),
        percentiles: options.percentiles.clone(),
        interval: match options.measurement_interval {
            ycsb::MeasurementInterval::Op => MeasurementInterval::Op,
            ycsb::MeasurementInterval::Intended => MeasurementInterval::Intended,
            ycsb::MeasurementInterval::Both => MeasurementInterval::Both,
        },
        measurement: match options.measurement_type {
            ycsb::MeasurementType::Histogram => MeasurementType::Histogram,
            ycsb::MeasurementType::HdrHistogram => MeasurementType::HdrHistogram,
            ycsb::MeasurementType::HdrHistogramAndHistogram => {
                MeasurementType::HdrHistogramAndHistogram
            }
            ycsb::MeasurementType::TimeSeries => MeasurementType::TimeSeries,
        },
        exporter: match options.exporter {
            ycsb::Exporter::Text => Exporter::Text,
            ycsb::Exporter::Json => Exporter::Json,
            ycsb::Exporter::JsonArray => Exporter::JsonArray,
        },
        buckets: options.histogram_buckets as usize,
        granularity_ms: options.timeseries_granularity_ms,
        verbose: options.histogram_verbose,
    }
}
