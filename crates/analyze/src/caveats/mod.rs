//! Reasons to doubt a run, found in its document and its windows. One function per kind, each with
//! its threshold and why it is that one. What only the run itself can see (probes that failed,
//! server settings that differ) is added by those who see it.

mod client;
mod facts;
mod machine;
mod result;
mod server;
mod steadiness;

use dyno_record::model::{Caveat, RunDocument};
use facts::Facts;

pub use facts::IntervalTotals;

/// All caveats that follow from a document and its windows, the gravest kinds first. The caveats
/// that the document holds already are not looked at and not repeated.
pub fn caveats(document: &RunDocument, intervals: &[IntervalTotals]) -> Vec<Caveat> {
    let facts = Facts::new(document, intervals);
    const FINDERS: [fn(&Facts<'_>) -> Vec<Caveat>; 24] = [
        result::partial,
        result::integrity,
        result::errors,
        client::generator_bottleneck,
        client::dropped_arrivals,
        client::rate_not_achieved,
        client::late_starts,
        result::little_law,
        result::uneven_shares,
        steadiness::not_steady,
        steadiness::warm_up_measured,
        result::too_few_intervals,
        result::too_few_operations,
        result::clamped_values,
        result::reconnects,
        server::document_count,
        server::fits_in_cache,
        server::durability,
        machine::shared_machine,
        machine::cpu_frequency,
        machine::clock_coarse,
        machine::failed_checks,
        machine::settings,
        machine::storage_settings,
    ];
    FINDERS.iter().flat_map(|find| find(&facts)).collect()
}

#[cfg(test)]
mod tests;
