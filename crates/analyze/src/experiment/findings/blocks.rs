//! Combined findings of a closed loop over numbers of clients and an open loop over offered rates.

use super::limits;
use super::stages::STAGES;
use super::view::View;
use crate::experiment::blocks;
use crate::experiment::queueing::is_missed;
use crate::experiment::sweep::{is_throttled, kept_rate_per_s};
use crate::values::{percent, rate, rate_of};
use dyno_record::experiment::{Block, BlocksAnswer, Experiment, Finding, SweepAnswer};
use dyno_record::statement;
use dyno_record::statement::Statement;

/// All rules of both blocks, stage by stage, and combined findings.
pub(super) fn all(experiment: &Experiment, answer: &BlocksAnswer) -> Vec<Finding> {
    let view = |answer| View { experiment, answer };
    let closed = answer.closed.as_ref().map(view);
    let open = answer.open.as_ref().map(view);
    let x_max = closed.as_ref().and_then(|closed| x_max(answer, closed, open.as_ref()));
    // X_max already covers this.
    let said = closed.as_ref().filter(|_| x_max.is_some());
    let said = said.and_then(limits::highest_rate);
    let views: Vec<View<'_>> = closed.into_iter().chain(open).collect();
    let mut found = Vec::new();
    let mut x_max = x_max.into_iter();
    for (number, stage) in STAGES.into_iter().enumerate() {
        if number == 1 {
            found.extend(x_max.by_ref());
        }
        // Possible changes are the same for both, and the closed loop drove the bench to its limit.
        let number_of_views = if number + 1 == STAGES.len() { 1 } else { views.len() };
        let of_blocks = views.iter().take(number_of_views).map(|view| {
            let mut of_block = stage(view);
            let is_said = |one: &Finding| {
                view.answer.block == Some(Block::Closed) && Some(one) == said.as_ref()
            };
            of_block.retain(|one| !is_said(one));
            (view.answer, of_block)
        });
        found.extend(together(&of_blocks.collect::<Vec<_>>()));
    }
    found
}

/// Findings of one block name it; findings of both appear once.
fn together(of_blocks: &[(&SweepAnswer, Vec<Finding>)]) -> Vec<Finding> {
    let mut reported: Vec<Finding> = Vec::new();
    for (answer, found) in of_blocks {
        for one in found {
            let has_it = |(_, other): &(&SweepAnswer, Vec<Finding>)| other.contains(one);
            let is_common = of_blocks.len() > 1 && of_blocks.iter().all(has_it);
            if !is_common {
                reported
                    .push(Finding { statement: of_block(answer, &one.statement), ..one.clone() });
            } else if !reported.contains(one) {
                reported.push(one.clone());
            }
        }
    }
    reported
}

fn of_block(answer: &SweepAnswer, said: &Statement) -> Statement {
    match answer.block {
        Some(Block::Closed) => statement!("in-closed-loop", said = said),
        Some(Block::Open) if is_throttled(answer) => statement!("in-throttled-loop", said = said),
        Some(Block::Open) => statement!("in-open-loop", said = said),
        None => said.clone(),
    }
}

/// The highest rate of the bench, and which offered rates it achieved.
fn x_max(answer: &BlocksAnswer, closed: &View<'_>, open: Option<&View<'_>>) -> Option<Finding> {
    let x_max = answer.x_max_per_s?;
    let best = closed.best();
    let kept_per_s = open.and_then(|open| kept_rate_per_s(open.answer));
    let said = statement!(
        "x-max-of-blocks",
        is_reached = answer.is_x_max_reached,
        x_max = rate_of(&x_max),
        at = closed.at(best),
        has_rates = open.is_some(),
        kept = kept_per_s.map(rate),
        share = kept_per_s.map(|kept| percent(kept / x_max.value))
    );
    let mut evidence = limits::highest_rate(closed)?.evidence;
    evidence.push(limit_of_the_loop(answer, closed, kept_per_s));
    evidence.extend(open.map(offered));
    Some(Finding::found(said, evidence))
}

/// Why X_max has this value or at least this value.
fn limit_of_the_loop(
    answer: &BlocksAnswer,
    closed: &View<'_>,
    kept_per_s: Option<f64>,
) -> Statement {
    let best = closed.best();
    let clients = best.clients;
    let is_last = closed.answer.levels.iter().all(|level| level.clients <= clients);
    let fewer = blocks::as_fast_with_fewer(closed.answer);
    match (answer.is_x_max_reached, fewer, kept_per_s) {
        (true, Some(fewer), _) if is_last => {
            let brought = rate(fewer.rate_per_s.value);
            statement!("fewer-clients-brought-it", clients = fewer.clients, rate = brought)
        }
        (true, ..) => statement!("more-clients-bring-nothing", clients = clients),
        (false, _, Some(kept)) if kept > best.rate_per_s.value => {
            statement!("kept-more-than-closed-loop", kept = rate(kept), clients = clients)
        }
        (false, ..) => statement!("rose-up-to-most-clients", clients = clients),
    }
}

/// Whether rates above the achieved ones were offered.
fn offered(open: &View<'_>) -> Statement {
    let missed = open.levels_where(is_missed);
    match missed.as_slice() {
        [] => statement!("all-rates-kept"),
        missed => statement!("rates-not-kept", at = open.at_all(missed)),
    }
}
