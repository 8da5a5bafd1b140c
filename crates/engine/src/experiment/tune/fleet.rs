//! What a search asks of a fleet. Its agents take no work but what they were started for, and each of them needs something to do: so
//! the plans of all that will be tried are known before anything is placed on a host.

use super::knobs::WANTED;
use super::values::{of_plan, with_each};
use crate::error::{Error, Kind, OrFault};
use dyno_plan::knobs::{Knob, PARAMETERS};
use dyno_plan::task::Task;
use dyno_record::experiment::{Experiment, Verb};

/// What a search beside these tasks tries on a fleet: the tasks with each value of its knobs that agents are told of. None of another
/// experiment.
///
/// # Errors
/// A value that makes no valid plan, and knobs that set a parameter together.
pub(in crate::experiment) fn of_search(
    document: &Experiment,
    tasks: &[Task],
) -> Result<Vec<Task>, Error> {
    let wanted = document.options.get(WANTED);
    let Some(wanted) = wanted.filter(|_| document.verb == Verb::Tune) else {
        return Ok(Vec::new());
    };
    let knobs: Vec<Knob> = serde_json::from_value(wanted.clone()).or_fault(
        Kind::BadInput,
        || "the experiment has no valid option `knobs`",
    )?;
    tried(&knobs, tasks)
}

/// Each of these tasks with each value of each knob that agents are told of: those that need another start of the servers, and those
/// of the clients.
fn tried(knobs: &[Knob], tasks: &[Task]) -> Result<Vec<Task>, Error> {
    let reported = of_plan(knobs);
    check_alone(&reported)?;
    let mut all = Vec::new();
    for task in tasks {
        all.extend(with_each(&reported, task)?);
    }
    Ok(all)
}

/// Agents start servers with the parameters that they were told of, and would have to know all that two knobs make together.
fn check_alone(knobs: &[&Knob]) -> Result<(), Error> {
    let mut parameters = knobs.iter().enumerate();
    let together = parameters.find_map(|(place, knob)| {
        let mut later = knobs[place + 1..].iter();
        let other = later.find(|other| other.key == knob.key);
        let other = other.filter(|_| knob.key.starts_with(PARAMETERS))?;
        Some((knob, other))
    });
    let Some((one, other)) = together else {
        return Ok(());
    };
    let text = format!(
        "the knobs `{}` and `{}` set `{}` together, and agents start servers with the values of single knobs",
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
        let of = |name: &str| {
            let mut knobs = knobs.iter();
            knobs.find(|knob| knob.name == name).expect("it is there")
        };
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
        // What is set while a server runs is the business of no agent.
        let is_reported = |task: &Task| !task.plan.server.runtime_parameters.is_empty();
        assert!(!tried.iter().any(is_reported));
    }

    #[test]
    fn only_a_search_tries_more_than_its_tasks() {
        let searched = |verb| {
            let mut document = document(verb, "?".to_owned(), &task());
            let knobs = serde_json::to_value(shipped(&["client"])).expect("it is data");
            document.options.insert(WANTED.to_owned(), knobs);
            of_search(&document, &[task()])
                .expect("all are valid")
                .len()
        };
        assert!(searched(Verb::Tune) > 1);
        assert_eq!(searched(Verb::Sweep), 0);
    }

    #[test]
    fn knobs_that_set_a_parameter_of_a_start_together_are_refused() {
        let mut knobs = shipped(&["tickets"]);
        knobs.retain(|knob| knob.reach == Reach::Restart);
        knobs.push(Knob {
            name: "other".to_owned(),
            ..knobs[0].clone()
        });
        let error = tried(&knobs, &[task()]).expect_err("which value?");
        let text = error.reason();
        assert!(text.contains("`ticket algorithm` and `other`"), "{text}");
    }
}
