//! Noise between runs of the same settings, from a finished experiment.

use super::{LEAST_PAIRS, goal_of};
use crate::experiment::ab::figures_of_pairs;
use crate::uncertainty::series::standard_deviation;
use dyno_record::experiment::{Answer, Experiment, Figures, TuneGoal};

/// Standard deviation of a goal's logarithm over runs of a workload: as found by a search for this goal, or by
/// the pairs of a comparison of two plans. `None` if the experiment does not contain it.
pub fn noise_reported(experiment: &Experiment, workload: &str, goal: TuneGoal) -> Option<f64> {
    match experiment.answer.as_ref()? {
        Answer::Tune(answer) => {
            let options = experiment.options.tune.as_ref()?;
            (options.goal == goal).then_some(answer.noise_ratio)
        }
        Answer::TuneAcross(answer) => {
            let search = answer.searches.iter().find(|search| search.workload == workload)?;
            (search.options.goal == goal).then_some(search.answer.noise_ratio)
        }
        Answer::Ab(answer) => of_pairs(&figures_of_pairs(experiment, &answer.set_aside), goal),
        _ => None,
    }
}

/// The difference between two plans is the same in every pair; the rest is the noise of both runs.
fn of_pairs(pairs: &[[&Figures; 2]], goal: TuneGoal) -> Option<f64> {
    let log = |[a, b]: &[&Figures; 2]| Some((goal_of(goal, b)? / goal_of(goal, a)?).ln());
    let logs: Vec<f64> = pairs.iter().map(log).collect::<Option<_>>()?;
    let is_known = logs.len() >= LEAST_PAIRS;
    is_known.then(|| standard_deviation(&logs) / std::f64::consts::SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::super::tests::figures;
    use super::*;

    #[test]
    fn noise_excludes_plan_differences_and_needs_four_pairs() {
        let rates =
            [[10_000.0, 20_000.0], [10_000.0, 21_000.0], [10_000.0, 20_000.0], [9_000.0, 18_900.0]];
        let runs = rates.map(|pair| pair.map(figures));
        let pairs: Vec<[&Figures; 2]> = runs.iter().map(|[a, b]| [a, b]).collect();
        let found = of_pairs(&pairs, TuneGoal::Rate).expect("four pairs");
        // Two ratios are 2 and two are 2.1: the deviation of the logarithms with one less than four of them.
        let expected = 1.05_f64.ln() / 2.0 * (4.0_f64 / 3.0).sqrt() / 2.0_f64.sqrt();
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        assert_eq!(of_pairs(&pairs[..3], TuneGoal::Rate), None);
        // The CPU time was not counted.
        assert_eq!(of_pairs(&pairs, TuneGoal::Cpu), None);
    }
}
