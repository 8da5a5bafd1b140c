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
use dyno_plan::ycsb::YcsbClientOptions;
use dyno_record::model::{PhaseKind, PhaseRecord};
use dyno_record::reader::Run;

/// What is printed and how.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct YcsbOptions {
    /// The phase that the output is about; the measure phase when absent, or the last one that did
    /// something.
    pub phase: Option<PhaseKind>,
    /// YCSB's properties. Those of the final output are used, the others concern its client.
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
    let mut phases = run.document.phases.iter();
    phases
        .find(|record| record.name == phase)
        .ok_or(ReportError::NoSuchPhase { phase })
}
