//! Caveats of a run, from its document and its windows. One function per kind, each with its threshold and the
//! reason for it. Caveats that only the run itself can see (failed probes, differing server settings) are added
//! by their sources.

mod client;
mod facts;
mod machine;
mod result;
mod server;
mod steadiness;

use crate::windows::IntervalTotals;
use dyno_record::model::{Caveat, CaveatKind, RunDocument};
use facts::Facts;

pub use client::RATE_SHORTFALL_RATIO;
pub(crate) use machine::CpuUses;
pub use machine::{MUCH_OTHER_LOAD_RATIO, failed_checks, has_other_load, kind_of_check};

/// All caveats of a document and its windows, the most serious first. Existing caveats of the document are
/// ignored and not repeated.
pub fn caveats(document: &RunDocument, intervals: &[IntervalTotals]) -> Vec<Caveat> {
    let facts = &Facts::new(document, intervals);
    let mut found = Vec::new();
    found.extend(result::partial(facts));
    found.extend(result::integrity(facts));
    found.extend(result::nothing_found(facts));
    found.extend(result::errors(facts));
    let by_others = machine::used_by_others(facts);
    // The measurement replaces the check before it.
    let checks = failed_checks(&document.environment).into_iter();
    let checks = checks.filter(|one| by_others.is_none() || one.kind != CaveatKind::OtherLoad);
    found.extend(client::stood_still(facts));
    found.extend(by_others.clone());
    found.extend(client::generator_bottleneck(facts));
    found.extend(client::dropped_arrivals(facts));
    found.extend(client::rate_not_achieved(facts));
    found.extend(client::late_starts(facts));
    found.extend(result::little_law(facts));
    found.extend(result::uneven_shares(facts));
    found.extend(steadiness::not_steady(facts));
    found.extend(steadiness::warm_up_measured(facts));
    found.extend(result::too_few_intervals(facts));
    found.extend(result::too_few_operations(facts));
    found.extend(result::clamped_values(facts));
    found.extend(result::reconnects(facts));
    found.extend(server::document_count(facts));
    found.extend(server::fits_in_cache(facts));
    found.extend(server::compression(facts));
    found.extend(server::durability(facts));
    found.extend(server::unverified_tls(facts));
    found.extend(machine::shared_machine(facts));
    found.extend(machine::clock_coarse(facts));
    found.extend(checks);
    found
}

#[cfg(test)]
mod tests;
