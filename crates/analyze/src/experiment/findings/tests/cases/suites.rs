//! The findings of suites.

use super::*;
use crate::experiment::suite::tests::on_two_topologies;
use dyno_record::experiment::SuiteAnswer;

pub(super) fn cases() -> Vec<Case> {
    let cases = [changes(), reach()];
    cases.into_iter().flatten().collect()
}

/// With the second topology `a` has half its rate with the first, and `c` nearly the same.
fn slower() -> Experiment {
    on_two_topologies([1_000, 2_000, 500, 1_950])
}

fn suite(experiment: &mut Experiment) -> &mut SuiteAnswer {
    match experiment.answer.as_mut() {
        Some(Answer::Suite(answer)) => answer,
        other => panic!("not a suite: {other:?}"),
    }
}

fn without_rates(experiment: &mut Experiment) {
    for row in &mut suite(experiment).rows {
        let rate = &mut row.level.rate_per_s;
        *rate = Figure::bare(rate.value);
    }
}

fn uncompared(experiment: &mut Experiment) {
    let relative = suite(experiment).relative.as_mut().unwrap();
    relative.levels.iter_mut().for_each(|row| row.comparisons.clear());
}

fn changes() -> Vec<Case> {
    vec![
        case("suite-changed", slower())
            .not_if("nothing is its base", |it| suite(it).relative = None)
            .not_without("workload: a", "level-not-compared", uncompared),
        case("level-not-compared", with(slower(), uncompared))
            .not_if("the rates have intervals", |it| *it = slower()),
    ]
}

fn reach() -> Vec<Case> {
    vec![
        case("rate-poorly-known-at-levels", with(slower(), without_rates))
            .not_if("they are well known", |it| *it = slower()),
    ]
}
