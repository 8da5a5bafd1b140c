//! Parameters of the Workload Services Framework below the options of a command line: what was typed
//! counts more, and what then has no effect is told.

use crate::args::TargetArguments;
use crate::surroundings::Surroundings;
use dyno_engine::{Error, Kind};
use dyno_plan::builtin;
use dyno_plan::model::{Plan, ServerKind};
use dyno_plan::problem::Problem;
use dyno_plan::resolve::{self, Overrides, PlanError};
use dyno_plan::wsf::{self, Setting, WsfSettings};

/// Keys that say where the data of the servers is.
const FOLDERS: [&str; 3] = ["server.data_dir", "server.data_dirs", "server.disk_mapping"];

/// Reads the parameters, if they are wanted, and lays them below what was typed.
pub(crate) fn lay_below(
    arguments: &TargetArguments,
    overrides: &mut Overrides,
    surroundings: &Surroundings,
) -> Result<Option<WsfSettings>, Error> {
    if !arguments.wsf {
        return Ok(None);
    }
    let mut settings = wsf::apply(&surroundings.wsf, arguments.workload.as_deref())
        .map_err(|problems| failure_of(&problems))?;
    if is_aimed(&settings.workload, arguments, overrides) {
        let reason = "the server runs already";
        settings.keys = without(&mut settings, |key| key.starts_with("server."), reason);
    }
    if arguments.start.data_dir.is_some() {
        let reason = "`--data-dir` takes its place";
        settings.keys = without(&mut settings, |key| FOLDERS.contains(&key), reason);
    }
    if arguments.start.pairs.is_some() {
        let reason = "`--pairs` takes its place";
        settings.keys = without(&mut settings, |key| key == "server.topology", reason);
    }
    if arguments.start.topology.is_some() {
        let reason = "`--topology` takes its place";
        let says_how_many = |key: &str| key == "server.topology" || key == "server.pairs";
        settings.keys = without(&mut settings, says_how_many, reason);
    }
    load_one_by_one(&mut settings, overrides);
    prepend(&mut overrides.settings, &settings.keys);
    prepend(&mut overrides.properties, &settings.properties);
    Ok(Some(settings))
}

/// Its clients load one document per command. The latency of a command with many would stand beside
/// theirs by the same name.
fn load_one_by_one(settings: &mut WsfSettings, overrides: &mut Overrides) {
    let is_batch = |name: &str| ["client.batch", "batchsize", "mongodb.batchsize"].contains(&name);
    let mut typed = overrides.settings.iter().chain(&overrides.properties);
    let is_given = overrides.batch.is_some() || typed.any(|(name, _)| is_batch(name));
    // Files of plans and of properties say it themselves.
    if is_given || !builtin::names().any(|name| name == settings.workload) {
        return;
    }
    overrides
        .settings
        .insert(0, ("client.batch".into(), "1".into()));
    let note = "documents are loaded one by one, as in that workload: `--batch 100` is faster";
    settings.notes.push(note.into());
}

/// Whether the run aims at a server that runs already.
fn is_aimed(workload: &str, arguments: &TargetArguments, overrides: &Overrides) -> bool {
    let is_uri = |plan: &Plan| plan.server.kind == ServerKind::Uri;
    arguments.uri.is_some()
        || resolve::resolve(workload, overrides).is_ok_and(|resolved| is_uri(&resolved.plan))
}

/// The keys but for those that have no effect, which are told if they were given.
fn without(
    settings: &mut WsfSettings,
    has_no_effect: impl Fn(&str) -> bool,
    reason: &str,
) -> Vec<Setting> {
    let keys = std::mem::take(&mut settings.keys);
    let (gone, left): (Vec<Setting>, Vec<Setting>) =
        keys.into_iter().partition(|key| has_no_effect(key.name));
    for setting in gone.iter().filter(|setting| setting.given) {
        settings
            .warnings
            .push(format!("`{}` has no effect: {reason}", setting.variable));
    }
    left
}

/// Of two values of a name the last one counts.
fn prepend(typed: &mut Vec<(String, String)>, settings: &[Setting]) {
    let pairs = settings
        .iter()
        .map(|setting| (setting.name.to_owned(), setting.value.clone()));
    typed.splice(0..0, pairs);
}

/// Names the parameters behind what is wrong with the plan.
pub(crate) fn explain(error: PlanError, settings: Option<&WsfSettings>) -> Error {
    let Some(settings) = settings else {
        return error.into();
    };
    let named = |mut problems: Vec<Problem>| {
        settings.explain(&mut problems);
        problems
    };
    match error {
        PlanError::Properties(problems) => PlanError::Properties(named(problems)).into(),
        PlanError::Invalid(problems) => PlanError::Invalid(named(problems)).into(),
        error => match settings.workload_variable {
            Some(variable) => Error::from(error).context(format!("`{variable}` names no workload")),
            None => error.into(),
        },
    }
}

fn failure_of(problems: &[Problem]) -> Error {
    let list: String = problems
        .iter()
        .map(|problem| format!("\n  {problem}"))
        .collect();
    Error::new(
        Kind::BadInput,
        format!("the parameters in the environment cannot be used:{list}"),
    )
}
