//! A sweep over numbers of clients and over offered rates: a closed loop for the highest rate and its bounds,
//! and an open loop for the response times at the offered rates.

use super::sweep::{analyze, analyze_block, kept_rate_per_s};
use crate::resampling::Resampling;
use crate::uncertainty::series::IntervalSample;
use dyno_record::experiment::{
    Answer, Block, BlocksAnswer, CLIENTS, Experiment, Figure, Level, SweepAnswer,
};
use std::collections::BTreeMap;

/// Smallest ratio of two equal rates, as in the search for X_max.
const SAME_RATIO: f64 = 0.97;

/// Finds the answer of a sweep, with or without blocks. `windows` are the recording windows of each point's
/// measure phase, by point number. `None` if no point was run.
pub fn answer(
    experiment: &Experiment,
    windows: &BTreeMap<usize, Vec<IntervalSample>>,
    resampling: Resampling,
) -> Option<Answer> {
    if !experiment.has_blocks() {
        let found = analyze(experiment, windows, resampling)?;
        return Some(Answer::Sweep(Box::new(found)));
    }
    let [closed, open] =
        Block::ALL.map(|block| analyze_block(experiment, Some(block), windows, resampling));
    if closed.is_none() && open.is_none() {
        return None;
    }
    let kept_per_s = open.as_ref().and_then(kept_rate_per_s);
    Some(Answer::Blocks(Box::new(BlocksAnswer {
        x_max_per_s: closed.as_ref().and_then(x_max),
        is_x_max_reached: closed.as_ref().is_some_and(|closed| is_reached(closed, kept_per_s)),
        closed,
        open,
    })))
}

fn best(closed: &SweepAnswer) -> &Level {
    &closed.levels[closed.best as usize]
}

fn x_max(closed: &SweepAnswer) -> Option<Figure> {
    let best = best(closed);
    let is_of_the_server = closed.axis.as_deref() == Some(CLIENTS) && !best.generator_bound;
    is_of_the_server.then_some(best.rate_per_s)
}

/// Whether more clients than the best number were tried, or fewer were as fast; and no offered rate above it
/// was achieved.
fn is_reached(closed: &SweepAnswer, kept_per_s: Option<f64>) -> bool {
    let best = best(closed);
    let x_max_per_s = best.rate_per_s.value;
    if kept_per_s.is_some_and(|kept_per_s| kept_per_s * SAME_RATIO > x_max_per_s) {
        return false;
    }
    closed.levels.iter().any(|level| level.clients > best.clients)
        || as_fast_with_fewer(closed).is_some()
}

/// The fewest clients with nearly the rate of the best number. The rates are compared without intervals: the
/// less is known about each, the more would be equal.
pub(super) fn as_fast_with_fewer(closed: &SweepAnswer) -> Option<&Level> {
    let best = best(closed);
    let fewer = closed.levels.iter().filter(|level| level.clients < best.clients);
    let as_fast =
        fewer.filter(|level| level.rate_per_s.value >= SAME_RATIO * best.rate_per_s.value);
    as_fast.min_by_key(|level| level.clients)
}
