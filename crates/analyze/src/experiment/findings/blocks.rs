//! A closed loop over numbers of clients and an open loop over offered rates, told together.

use super::view::View;
use super::{STAGES, finding, limits};
use crate::experiment::blocks;
use crate::experiment::sweep::{is_missed, kept_rate_per_s};
use crate::experiment::words::{count, interval_or_none, percent, rate};
use dyno_record::experiment::{Block, BlocksAnswer, Experiment, Finding};

/// All rules of both blocks, stage by stage, and what follows from both.
pub(super) fn all(experiment: &Experiment, answer: &BlocksAnswer) -> Vec<Finding> {
    let view = |answer| View { experiment, answer };
    let closed = answer.closed.as_ref().map(view);
    let open = answer.open.as_ref().map(view);
    let x_max = closed
        .as_ref()
        .and_then(|closed| x_max(answer, closed, open.as_ref()));
    // What X_max says already.
    let said = closed.as_ref().filter(|_| x_max.is_some());
    let said = said.and_then(limits::highest_rate);
    let views: Vec<View<'_>> = closed.into_iter().chain(open).collect();
    let mut found = Vec::new();
    let mut x_max = x_max.into_iter();
    for (number, stage) in STAGES.into_iter().enumerate() {
        if number == 1 {
            found.extend(x_max.by_ref());
        }
        // What could be changed is the same for both, and the closed loop drove the bench to its limit.
        let number_of_views = match number + 1 == STAGES.len() {
            true => 1,
            false => views.len(),
        };
        let of_blocks = views.iter().take(number_of_views).map(|view| {
            let mut of_block = stage(view);
            let is_said = |one: &Finding| {
                view.answer.block == Some(Block::Closed) && Some(one) == said.as_ref()
            };
            of_block.retain(|one| !is_said(one));
            (view.answer.block, of_block)
        });
        found.extend(together(&of_blocks.collect::<Vec<_>>()));
    }
    found
}

/// What holds for one block says which; what both say is said once.
fn together(of_blocks: &[(Option<Block>, Vec<Finding>)]) -> Vec<Finding> {
    let mut told: Vec<Finding> = Vec::new();
    for (block, found) in of_blocks {
        for one in found {
            let has_it = |(_, other): &(_, Vec<Finding>)| other.contains(one);
            let is_common = of_blocks.len() > 1 && of_blocks.iter().all(has_it);
            if !is_common {
                let text = format!("{}{}", prefix(*block), one.text);
                told.push(Finding {
                    text,
                    ..one.clone()
                });
            } else if !told.contains(one) {
                told.push(one.clone());
            }
        }
    }
    told
}

fn prefix(block: Option<Block>) -> &'static str {
    match block {
        Some(Block::Closed) => "closed loop: ",
        Some(Block::Open) => "open loop: ",
        None => "",
    }
}

/// How much the bench can take, and which of the offered rates it kept up with.
fn x_max(answer: &BlocksAnswer, closed: &View<'_>, open: Option<&View<'_>>) -> Option<Finding> {
    let x_max = answer.x_max_per_s?;
    let best = closed.best();
    let at_least = match answer.is_x_max_reached {
        true => "",
        false => "at least ",
    };
    let kept = open.map_or(String::new(), |open| kept(open, x_max.value));
    let text = format!(
        "X_max is {at_least}{}{}, {}{kept}",
        rate(x_max.value),
        interval_or_none(&x_max, rate),
        closed.at(best)
    );
    let mut evidence: Vec<String> = limits::highest_rate(closed)?.evidence;
    let kept_per_s = open.and_then(|open| kept_rate_per_s(open.answer));
    evidence.push(limit_of_the_loop(answer, closed, kept_per_s));
    evidence.extend(open.map(offered));
    Some(finding(text, evidence))
}

/// Why X_max is what it is, or at least that.
fn limit_of_the_loop(answer: &BlocksAnswer, closed: &View<'_>, kept_per_s: Option<f64>) -> String {
    let best = closed.best();
    let clients = count(best.clients as usize, "client", "clients");
    let is_last = closed
        .answer
        .levels
        .iter()
        .all(|level| level.clients <= best.clients);
    let fewer = blocks::as_fast_with_fewer(closed.answer);
    match (answer.is_x_max_reached, fewer, kept_per_s) {
        (true, Some(fewer), _) if is_last => format!(
            "{} brought {} already: more than that did not raise the rate",
            count(fewer.clients as usize, "client", "clients"),
            rate(fewer.rate_per_s.value)
        ),
        (true, ..) => format!("more than {clients} did not raise the rate"),
        (false, _, Some(kept)) if kept > best.rate_per_s.value => format!(
            "an offered rate of {} was kept, which is more than the closed loop brought with up to {clients}: more \
             of them may bring more",
            rate(kept)
        ),
        (false, ..) => format!(
            "the rate rose up to the most clients that were tried, {clients}: more of them may bring more"
        ),
    }
}

fn kept(open: &View<'_>, x_max_per_s: f64) -> String {
    match kept_rate_per_s(open.answer) {
        Some(kept) => format!(
            "; the highest offered rate that the bench kept up with is {}, {} of it",
            rate(kept),
            percent(kept / x_max_per_s)
        ),
        None => "; it kept up with none of the offered rates".to_owned(),
    }
}

/// Whether higher rates were offered than those that were kept.
fn offered(open: &View<'_>) -> String {
    let missed = open.levels_where(is_missed);
    match missed.as_slice() {
        [] => "the bench kept up with all rates that were offered: higher ones may be kept, too"
            .to_owned(),
        missed => format!("the bench did not keep up {}", open.at_all(missed)),
    }
}
