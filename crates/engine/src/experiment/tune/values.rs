//! The plans that a search will try, each with one value of one knob. They are made first, so that
//! a value that makes a plan invalid is refused. Otherwise each run with it would fail, which says
//! nothing about the server.

use super::knobs::as_planned;
use crate::error::{Error, refuse};
use dyno_plan::knobs::{Knob, PARAMETERS, Reach, keys_of};
use dyno_plan::task::Task;
use dyno_record::experiment::Experiment;
use std::collections::BTreeMap;
use std::iter::once;

/// Refuses values that make a task invalid.
pub(super) fn check(knobs: &[Knob], task: &Task) -> Result<(), Error> {
    let mut own = knobs.to_vec();
    as_planned(&mut own, task);
    with_each(&own, task).map(drop)
}

/// Additional tasks of a search on a fleet: these tasks with each value of the knobs that agents
/// set, because agents accept only tasks that they were started for. Empty for other experiments.
///
/// # Errors
/// A value makes a plan invalid, or two knobs set one start parameter.
pub(in crate::experiment) fn of_search(
    document: &Experiment,
    tasks: &[Task],
) -> Result<Vec<Task>, Error> {
    let knobs = document.options.tune.as_ref().map_or(Vec::new(), |options| options.knobs.clone());
    check_alone(&knobs)?;
    let mut all = Vec::new();
    for task in tasks {
        all.extend(with_each(&knobs, task)?);
    }
    Ok(all)
}

/// Refuses two knobs for one start parameter: agents know the values that they were started for, but
/// not their combinations.
fn check_alone(knobs: &[Knob]) -> Result<(), Error> {
    let mut names = BTreeMap::new();
    for knob in knobs.iter().filter(|knob| knob.key.starts_with(PARAMETERS)) {
        if let Some(other) = names.insert(&knob.key, &knob.name) {
            let text = format!(
                "the knobs `{other}` and `{}` set `{}` together, but agents start servers only with values of single knobs",
                knob.name, knob.key
            );
            return refuse(text, "leave one of them out");
        }
    }
    Ok(())
}

/// A task with each value of each knob that a plan contains before a run: knobs that need a restart
/// of the servers, and knobs of the clients.
fn with_each(knobs: &[Knob], task: &Task) -> Result<Vec<Task>, Error> {
    let mut all = Vec::new();
    let of_plan = |knob: &&Knob| matches!(knob.reach, Reach::Restart | Reach::Client);
    for knob in knobs.iter().filter(of_plan) {
        for (place, value) in knob.values.iter().enumerate() {
            match task.with_keys(&keys_of(once((knob, value.as_str())))) {
                Ok(tried) => all.push(tried),
                // A default, such as no compressor, need not be expressible in a plan.
                Err(_) if knob.default == Some(place) => {}
                Err(error) => {
                    let intent = format!("the knob `{}` cannot be `{value}`", knob.name);
                    return Err(Error::from(error).context(intent));
                }
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use dyno_plan::knobs::{Allowed, Machine, find};
    use dyno_plan::model::ServerKind;

    pub(in super::super) fn task() -> Task {
        let mut plan = dyno_plan::builtin::find("c").expect("it is built in");
        plan.server.kind = ServerKind::Mongod;
        Task::from_plan(plan, None, None).expect("it is valid")
    }

    pub(in super::super) fn shipped(groups: &[&str]) -> Vec<Knob> {
        let groups: Vec<String> = groups.iter().map(ToString::to_string).collect();
        let allowed = Allowed { restart: true, ..Allowed::default() };
        let machine = Machine { memory_bytes: 4 << 30, cores: 2, has_servers: false };
        find(&groups, allowed, machine).expect("they are shipped")
    }

    #[test]
    fn value_that_invalidates_the_plan_is_refused_with_its_knob() {
        let mut knobs = shipped(&["compression"]);
        assert!(check(&knobs, &task()).is_ok());
        knobs[0].values.push("brotli".to_owned());
        let error = check(&knobs, &task()).expect_err("the compressor does not exist");
        let text = error.reason();
        assert!(text.contains("`block compressor` cannot be `brotli`"), "{text}");
        let durable = Knob {
            name: "durable writes".to_owned(),
            key: "server.durable_writes".to_owned(),
            values: ["false", "true"].map(str::to_owned).into(),
            default: Some(0),
            ..knobs.remove(0)
        };
        let mut task = task();
        task.plan.server.journal = Some(false);
        let error = check(&[durable], &task).expect_err("writes cannot wait for a missing journal");
        let text = error.reason();
        assert!(text.contains("`durable writes` cannot be `true`"), "{text}");
    }

    #[test]
    fn two_knobs_of_one_start_parameter_are_refused_on_a_fleet() {
        let mut knobs = shipped(&["tickets", "compression"]);
        assert!(check_alone(&knobs).is_ok());
        let algorithm = knobs.iter().find(|knob| knob.key.starts_with(PARAMETERS));
        let algorithm = algorithm.expect("it is shipped").clone();
        knobs.push(Knob { name: "other".to_owned(), ..algorithm });
        let error = check_alone(&knobs).expect_err("which value?");
        let text = error.reason();
        assert!(text.contains("`ticket algorithm` and `other`"), "{text}");
    }

    #[test]
    fn agents_get_every_value_for_restarts_and_clients() {
        let knobs = shipped(&["tickets", "client"]);
        let tasks = [task(), task()];
        let tried = tasks.each_ref().map(|task| with_each(&knobs, task).expect("all are valid"));
        let tried = tried.concat();
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
}
