//! The final output of YCSB, compatible with scripts that read it.
//!
//! Names, order and number format of the lines match YCSB. Deliberate differences:
//!
//! - `[OVERALL]` counts only successful operations. YCSB also counts failed ones.
//! - Only the totals of the garbage collector are printed (`[TOTAL_GCs]`, `[TOTAL_GC_TIME]`, `[TOTAL_GC_TIME_%]`), all 0:
//!   true for a program without a collector, and enough for scripts that look them up. Lines named after a JVM collector are
//!   left out.
//! - A block `[<OP>-FAILED]` has the number of failures but no latencies, because a run does not record latencies of
//!   failures.
//! - `[CLEANUP]` appears only if the run has an operation of that name: closing connections is not measured.
//! - In the load phase an operation is a document, as in YCSB; its latency is the latency of its batch, while YCSB reports
//!   almost zero for all but the last document of a batch.
//! - Programs read this text line by line, so it contains nothing else. The exit status reports whether a run ended as
//!   planned; see [`crate::incomplete`] for people.

mod blocks;
mod export;
pub(crate) mod java_double;

use crate::error::ReportError;
use crate::run::result::result_phase;
use blocks::Entries;
pub use blocks::block_name;
use dyno_plan::ycsb::YcsbClientOptions;
use dyno_record::model::{PhaseKind, PhaseRecord};
use dyno_record::reader::Run;

/// Options of the output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct YcsbOptions {
    /// The phase of the output; if absent, the measure phase, or the last phase with operations.
    pub phase: Option<PhaseKind>,
    /// YCSB's properties. Only properties of the final output are used.
    pub client: YcsbClientOptions,
}

/// Renders the output of one phase.
pub(crate) fn render(run: &Run, options: &YcsbOptions) -> Result<String, ReportError> {
    let valid = |percentile: &&f64| !(0.0..=100.0).contains(*percentile);
    if let Some(&percentile) = options.client.percentiles.iter().find(valid) {
        return Err(ReportError::Percentile { percentile });
    }
    let phase = chosen_phase(run, options)?;
    let mut entries = Entries::default();
    blocks::overall(&mut entries, phase);
    blocks::operations(&mut entries, run, phase, &options.client)?;
    blocks::verify(&mut entries, run, phase);
    export::write(&entries.into_vec(), options.client.exporter)
}

fn chosen_phase<'a>(run: &'a Run, options: &YcsbOptions) -> Result<&'a PhaseRecord, ReportError> {
    let Some(phase) = options.phase else {
        return result_phase(&run.document).ok_or(ReportError::NoPhase);
    };
    run.document
        .phases
        .iter()
        .find(|record| record.name == phase)
        .ok_or(ReportError::NoSuchPhase { phase })
}
