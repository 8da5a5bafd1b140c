//! Progress of an experiment: the number of the next run, its load, and the time left.

use crate::experiment::estimate::Estimate;
use crate::experiment::points::WhichPlan;
use dyno_plan::task::Task;
use dyno_record::experiment::{CLIENTS, Experiment, Point, RATE, Verb};
use dyno_record::quantity::Quantity;
use std::collections::BTreeMap;
use std::time::Instant;

/// Runs and time since the start.
pub(super) struct Pace {
    estimate: Estimate,
    begin: Instant,
    /// Runs that this process made.
    runs: usize,
}

impl Pace {
    pub(super) fn of(document: &Experiment, tasks: &BTreeMap<WhichPlan, Task>) -> Pace {
        Pace { estimate: Estimate::of(document, tasks), begin: Instant::now(), runs: 0 }
    }

    /// The number of runs and their time, before the first one.
    pub(super) fn extent(&self) -> String {
        self.estimate.to_string()
    }

    pub(super) fn run_ended(&mut self) {
        self.runs += 1;
    }

    /// `run 12 of at most 61: 531/s offered, at most 28 min left`
    pub(super) fn next(&self, document: &Experiment, index: usize) -> String {
        let point = &document.points[index];
        let at_most = if self.estimate.least_runs < self.most_runs() { "at most " } else { "" };
        // Runs that are repeated after a disturbance come on top.
        let most = self.most_runs().max(index + 1);
        let number = match point.side {
            Some(side) => {
                let (pair, most) = (index / 2 + 1, most.div_ceil(2));
                format!("pair {pair} of {at_most}{most}, {}", side.label())
            }
            None => format!("run {} of {at_most}{most}", index + 1),
        };
        let runs = match document.verb {
            Verb::Sweep | Verb::Suite => missing(document),
            _ => most - index,
        };
        let left = self.left_s(document, runs);
        let left = left.map(|s| format!("{at_most}{} left", Quantity::seconds(s).brief()));
        let is_objective = document.verb == Verb::Slo;
        let subject = subject(point).or_else(|| is_objective.then(|| "closed loop".to_owned()));
        let what = [subject, repetition(document, point), left];
        let what: Vec<String> = what.into_iter().flatten().collect();
        match what.as_slice() {
            [] => number,
            what => format!("{number}: {}", what.join(", ")),
        }
    }

    fn most_runs(&self) -> usize {
        self.estimate.most_runs
    }

    /// Time for this many more runs at the mean duration so far; before the first run, at the
    /// planned duration.
    fn left_s(&self, document: &Experiment, runs: usize) -> Option<f64> {
        let spent_s = self.begin.elapsed().as_secs_f64();
        let (_, most_s) = self.estimate.time_s?;
        let planned_s = most_s / self.most_runs() as f64;
        let run_s = match self.runs {
            0 => planned_s,
            made => spent_s / made as f64,
        };
        let by_runs_s = run_s * runs as f64;
        // These end by time.
        let limit_s = match document.verb {
            Verb::Tune => Some(most_s),
            Verb::Ab => document.options.ab.as_ref().and_then(|options| options.time_limit_s),
            Verb::Slo => document.options.slo.as_ref().and_then(|options| options.time_limit_s),
            Verb::Sweep | Verb::Xmax | Verb::Suite => return Some(by_runs_s),
        };
        let earlier_s = document.options.time_spent_s.unwrap_or_default().max(spent_s);
        let by_time_s = limit_s.map(|limit_s| (limit_s - earlier_s).max(run_s));
        Some(by_time_s.map_or(by_runs_s, |by_time_s| by_time_s.min(by_runs_s)))
    }
}

/// Planned runs that are not yet done.
fn missing(document: &Experiment) -> usize {
    document.points.iter().filter(|point| point.figures.is_none()).count()
}

/// The workload and the settings of a run: `a, 8 clients`, `531/s offered`.
fn subject(point: &Point) -> Option<String> {
    let is_offered = point.settings.contains_key(RATE);
    let settings = point.settings.iter().filter_map(|(key, value)| match key.as_str() {
        RATE => {
            let rate = value.parse::<f64>().ok();
            let rate = rate.map(|rate| Quantity::per_second(rate).brief().to_string());
            Some(format!("{} offered", rate.unwrap_or_else(|| value.clone())))
        }
        CLIENTS if value == "1" => Some("1 client".to_owned()),
        CLIENTS => Some(format!("{value} clients")),
        // The rate implies it.
        key if key.starts_with("schedule.") && is_offered => None,
        _ => Some(format!("{key}={value}")),
    });
    let all: Vec<String> = point.workload.iter().cloned().chain(settings).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// The repetition of a planned point, counted from 1.
fn repetition(document: &Experiment, point: &Point) -> Option<String> {
    let is_planned = matches!(document.verb, Verb::Sweep | Verb::Suite);
    let all = document.options.repeat.filter(|all| is_planned && *all > 1)?;
    Some(format!("repetition {} of {all}", point.repeat + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::points::point;
    use dyno_record::experiment::{Keys, Side};

    fn pace(least_runs: usize, most_runs: usize) -> Pace {
        let time_s = Some((30.0, most_runs as f64 * 30.0));
        let estimate = Estimate { verb: Verb::Sweep, least_runs, most_runs, time_s };
        Pace { estimate, begin: Instant::now(), runs: 0 }
    }

    fn with(verb: Verb, points: Vec<Point>) -> Experiment {
        Experiment { verb, points, ..Experiment::default() }
    }

    fn keys(keys: &[(&str, &str)]) -> Keys {
        keys.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn search_says_at_most_and_the_offered_rate() {
        let settings = keys(&[("schedule.kind", "constant"), (RATE, "531.38")]);
        let closed = point(0, Keys::new(), WhichPlan::Only, 0);
        let document = with(Verb::Slo, vec![closed, point(1, settings, WhichPlan::Only, 0)]);
        let said = pace(8, 61).next(&document, 1);
        assert_eq!(said, "run 2 of at most 61: 531/s offered, at most 30 min left");
    }

    #[test]
    fn first_run_of_an_objective_is_a_closed_loop() {
        let document = with(Verb::Slo, vec![point(0, Keys::new(), WhichPlan::Only, 0)]);
        let said = pace(8, 61).next(&document, 0);
        assert_eq!(said, "run 1 of at most 61: closed loop, at most 30 min 30 s left");
    }

    #[test]
    fn repetitions_and_pairs_count_from_one() {
        let which = WhichPlan::Workload("a".to_owned());
        let mut document = with(Verb::Suite, vec![point(0, keys(&[(CLIENTS, "8")]), which, 0)]);
        document.options.repeat = Some(3);
        let said = pace(3, 3).next(&document, 0);
        assert_eq!(said, "run 1 of 3: a, 8 clients, repetition 1 of 3, 30 s left");

        let side = |number, side| point(number, Keys::new(), WhichPlan::Side(side), 0);
        let document = with(Verb::Ab, vec![side(0, Side::A), side(1, Side::B)]);
        let said = pace(6, 40).next(&document, 1);
        assert!(said.starts_with("pair 1 of at most 20, B: at most "), "{said}");
    }
}
