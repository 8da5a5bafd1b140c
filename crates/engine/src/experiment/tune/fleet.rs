//! Plans of a search for the agents of a fleet. Agents accept only tasks that they were started
//! for, and each needs something to do, so all plans must be known before anything is placed on a
//! host.

use super::knobs::wanted;
use super::values::{of_plan, with_each};
use crate::error::{Error, Kind};
use dyno_plan::knobs::{Knob, PARAMETERS};
use dyno_plan::task::Task;
use dyno_record::experiment::{Experiment, Verb};

/// Additional tasks of a search on a fleet: these tasks with each value of the knobs that agents
/// set. Empty for other experiments.
///
/// # Errors
/// A value makes a plan invalid, or two knobs set a parameter together.
pub(in crate::experiment) fn of_search(
    document: &Experiment,
    tasks: &[Task],
) -> Result<Vec<Task>, Error> {
    if document.verb != Verb::Tune {
        return Ok(Vec::new());
    }
    tried(&wanted(document)?, tasks)
}

/// Each task with each value of each knob that agents set: knobs that need a restart of the
/// servers, and knobs of the clients.
fn tried(knobs: &[Knob], tasks: &[Task]) -> Result<Vec<Task>, Error> {
    let reported = of_plan(knobs);
    check_alone(&reported)?;
    let mut all = Vec::new();
    for task in tasks {
        all.extend(with_each(&reported, task)?);
    }
    Ok(all)
}

/// Refuses two knobs for one parameter: agents know only the parameters that they were started for,
/// not the combinations.
fn check_alone(knobs: &[&Knob]) -> Result<(), Error> {
    let together = knobs.iter().enumerate().find_map(|(place, knob)| {
        let other = knobs[place + 1..].iter().find(|other| other.key == knob.key);
        let other = other.filter(|_| knob.key.starts_with(PARAMETERS))?;
        Some((knob, other))
    });
    let Some((one, other)) = together else {
        return Ok(());
    };
    let text = format!(
        "the knobs `{}` and `{}` set `{}` together, but agents start servers only with values of single knobs",
        one.name, other.name, one.key
    );
    Err(Error::new(Kind::BadInput, text).with_hint("leave one of them out"))
}

#[cfg(test)]
mod tests {
    use super::super::values::tests::{shipped, task};
    use super::*;
    use crate::experiment::request::document;
    use dyno_plan::knobs::Reach;

    #[test]
    fn agents_get_every_value_for_restarts_and_clients() {
        let knobs = shipped(&["tickets", "client"]);
        let tasks = [task(), task()];
        let tried = tried(&knobs, &tasks).expect("all are valid");
        let of = |name: &str| knobs.iter().find(|knob| knob.name == name).expect("it is there");
        let algorithm = of("ticket algorithm");
        let name = algorithm.key.strip_prefix(PARAMETERS).expect("it is one");
        for value in &algorithm.values {
            let with = |task: &&Task| task.plan.server.parameters.get(name) == Some(value);
            assert_eq!(tried.iter().filter(with).count(), tasks.len(), "{value}");
        }
        for value in &of("clients").values {
            let with = |task: &&Task| task.plan.client.clients.to_string() == *value;
            assert!(tried.iter().any(|task| with(&task)), "{value}");
        }
        // Agents do not set runtime parameters.
        let is_reported = |task: &Task| !task.plan.server.runtime_parameters.is_empty();
        assert!(!tried.iter().any(is_reported));
    }

    #[test]
    fn only_a_search_tries_more_than_its_tasks() {
        let searched = |verb| {
            let mut document = document(verb, "?".to_owned(), &task());
            let knobs = serde_json::to_value(shipped(&["client"])).expect("it is data");
            document.options.knobs = Some(knobs);
            of_search(&document, &[task()]).expect("all are valid").len()
        };
        assert!(searched(Verb::Tune) > 1);
        assert_eq!(searched(Verb::Sweep), 0);
    }

    #[test]
    fn two_knobs_of_one_start_parameter_are_refused() {
        let mut knobs = shipped(&["tickets"]);
        knobs.retain(|knob| knob.reach == Reach::Restart);
        knobs.push(Knob { name: "other".to_owned(), ..knobs[0].clone() });
        let error = tried(&knobs, &[task()]).expect_err("which value?");
        let text = error.reason();
        assert!(text.contains("`ticket algorithm` and `other`"), "{text}");
    }
}
