//! Results of a search for the highest rate: the closed-loop maximum, whether it is the server's, and the
//! highest open-loop rate just below it that the server achieves.

use super::demands;
use super::disks::Loaded;
use super::stations::{knows_server, stations};
use super::sweep::disk_limits_of_runs;
use crate::laws::demand::bottleneck;
use dyno_record::experiment::{ClientsResult, Confirmation, Figure, Figures, XmaxAnswer};
use dyno_record::statement::Statement;

/// Share of the offered rate that confirms it.
pub const KEPT_RATIO: f64 = 0.99;

/// Shares of the closed-loop maximum that are offered in turn until one is achieved.
pub const CONFIRMATION_RATIOS: [f64; 6] = [0.98, 0.95, 0.9, 0.85, 0.8, 0.7];

/// Judges an open-loop run.
pub fn confirmation(ratio: f64, offered_rate_per_s: f64, figures: &Figures) -> Confirmation {
    Confirmation {
        ratio,
        offered_rate_per_s,
        rate_per_s: figures.rate_per_s,
        p99_us: figures.percentile("p99"),
        kept: figures.rate_per_s.value >= offered_rate_per_s * KEPT_RATIO
            && figures.dropped_ratio == 0.0
            && figures.failed_ratio == 0.0,
        generator_bound: figures.is_generator_bound(),
    }
}

/// An open-loop run in which no operation succeeded.
pub fn without_success(ratio: f64, offered_rate_per_s: f64) -> Confirmation {
    Confirmation {
        ratio,
        offered_rate_per_s,
        rate_per_s: Figure::bare(0.0),
        p99_us: None,
        kept: false,
        generator_bound: false,
    }
}

/// Builds the answer. `best` are the figures of the runs with the best number of clients in order, of which the
/// last ones count, `all` the figures of all runs, and `reasons` why their client was the limit.
pub fn answer(
    search: ClientsResult,
    best: &[&Figures],
    all: &[&Figures],
    reasons: Vec<Statement>,
    confirmations: Vec<Confirmation>,
) -> XmaxAnswer {
    let counted = best.len().saturating_sub(search.counted_runs as usize);
    let counted = &best[counted..];
    let last = best.last();
    let needed = demands::of_runs(counted);
    let disk = disk_limits_of_runs(counted, &needed, &Loaded::of_runs(all));
    let demands = last.map_or(Vec::new(), |last| stations(&needed, (*last).into(), disk.as_ref()));
    // An unwatched server may be the unseen bottleneck.
    let bottleneck = last
        .filter(|figures| knows_server(&figures.demands))
        .and_then(|_| bottleneck(&demands).cloned());
    let maximum = maximum(&search, counted);
    let is_of_server = reasons.is_empty();
    XmaxAnswer {
        x_max_per_s: Some(maximum).filter(|_| is_of_server),
        client_maximum_per_s: Some(maximum).filter(|_| !is_of_server),
        generator_bound: reasons,
        sustained_rate_per_s: confirmations
            .iter()
            .filter(|one| one.kept)
            .map(|one| one.offered_rate_per_s)
            .reduce(f64::max),
        confirmations,
        bound_per_s: bottleneck.as_ref().map(Figure::bound_by),
        bottleneck,
        demands,
        disk,
        search,
    }
}

/// The maximum with its interval: between the counted runs, or within a single one.
fn maximum(search: &ClientsResult, counted: &[&Figures]) -> Figure {
    let of_one = match counted {
        // A run that measured nothing is left out, and the rate may belong to the other run.
        [one] if one.rate_per_s.value == search.rate_per_s => one.rate_per_s,
        _ => Figure::bare(search.rate_per_s),
    };
    search.estimate_per_s.map_or(of_one, Figure::from)
}
