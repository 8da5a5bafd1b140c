//! Tasks that are made without a request, and what every plan must keep.

use crate::context::Context;
use crate::deployment::placement;
use crate::error::{Error, Kind};
use dyno_plan::Plan;
use dyno_plan::model::ServerKind;
use dyno_plan::resolve::PlanError;
use dyno_plan::task::{Remote, Task, Threads};
use dyno_plan::validate::validate;

/// Tells a person what a task has to say.
pub(crate) fn announce(task: &Task, context: Context<'_>) {
    for warning in &task.warnings {
        context.warning(warning);
    }
    for note in &task.notes {
        context.note(note);
    }
}

/// The task of a plan that was resolved before. The address may be another one by now, and credentials are in
/// `uri` only.
pub(crate) fn from_plan(
    mut plan: Plan,
    threads: Option<Threads>,
    uri: Option<&str>,
) -> Result<Task, Error> {
    let mut warnings = Vec::new();
    let remote = match (uri, &plan.server.uri) {
        (Some(uri), Some(known)) => {
            let remote = Remote::parse(uri)?;
            let target = remote.target.to_string();
            if target != *known {
                let text = format!(
                    "the runs that are done were made at `{known}`, the rest is made at `{target}`"
                );
                warnings.push(text);
                aim(&mut plan, &remote);
            }
            Some(remote)
        }
        (None, Some(known)) => Some(Remote::parse(known)?),
        (Some(_), None) => {
            warnings.push("`--uri` has no effect: the experiment starts its servers".into());
            None
        }
        (None, None) => None,
    };
    check(&plan)?;
    Ok(Task {
        threads: threads.unwrap_or(Threads::Given(plan.client.threads)),
        plan,
        remote,
        warnings,
        notes: Vec::new(),
        server: None,
    })
}

/// Makes the plan one for a server that runs already.
pub fn aim(plan: &mut Plan, remote: &Remote) {
    plan.server.kind = ServerKind::Uri;
    plan.server.uri = Some(remote.target.to_string());
    if let Some(database) = remote
        .target
        .database
        .as_deref()
        .filter(|database| *database != "admin")
    {
        plan.data.database = database.to_owned();
    }
}

/// All problems of the plan as an error.
pub fn check(plan: &Plan) -> Result<(), Error> {
    let problems = validate(plan);
    if problems.is_empty() {
        return placement::check(plan);
    }
    Err(PlanError::Invalid(problems).into())
}

/// Refuses to throw the data away before each run and to load none.
pub fn check_loads_what_it_drops(plan: &Plan, no_load: bool) -> Result<(), Error> {
    if !no_load || !plan.data.fresh.is_for_each_run() {
        return Ok(());
    }
    let text = "the plan drops the data before each run (`data.fresh`), and `--no-load` loads none";
    Err(Error::new(Kind::BadInput, text).with_hint("leave one of them out"))
}
