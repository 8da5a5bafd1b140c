//! `dyno run` with several workloads, or with several values of a key: executes a suite.

use super::experiments;
use crate::args::run::{RunArguments, SuiteArguments};
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::task;
use dyno_engine::experiment::axes::is_several;
use dyno_engine::experiment::suite::{self, SuiteRequest};
use dyno_engine::{Error, Kind};
use dyno_plan::model::ScheduleKind;
use dyno_plan::suite::SuitePlan;
use dyno_plan::units::Rate;

/// The suite request of the arguments; `None` for a single run.
pub(super) fn request(arguments: &SuiteArguments) -> Result<Option<SuiteRequest>, Error> {
    let run = &arguments.run;
    let typed = run.base.target.workload.iter().chain(&arguments.workloads);
    let typed: Vec<String> = typed.cloned().collect();
    let plan = plan(&typed)?;
    let is_list = |(key, text): &(String, String)| is_several(key, text);
    let is_suite = plan.is_some()
        || typed.len() > 1
        || arguments.repeat.is_some_and(|repeat| repeat > 1)
        || arguments.below.is_some()
        || run.base.target.server.start.settings.iter().any(is_list);
    if !is_suite {
        return Ok(None);
    }
    if run.base.target.wsf.is_some() {
        let text = "`--wsf` sets the parameters of a single run, not of a suite";
        return Err(Error::new(Kind::BadInput, text)
            .with_hint("remove `--wsf`, or pass one workload without lists of values"));
    }
    let mut settings = plan.as_ref().map_or(Vec::new(), SuitePlan::settings);
    settings.extend(run.base.target.server.start.settings.iter().cloned());
    let of_plan = plan.as_ref();
    let repeat = arguments.repeat.or(of_plan.and_then(|plan| plan.repeat));
    let below = arguments.below.or(of_plan.and_then(|plan| plan.below));
    Ok(Some(SuiteRequest {
        name: of_plan.map(|plan| plan.name.clone()),
        workloads: of_plan.map_or(typed, |plan| plan.workloads.clone()),
        settings,
        repeat: repeat.unwrap_or(1),
        below: below.map(|below| below.0),
        embedded_server: run.base.target.server.start.embedded_server.clone(),
    }))
}

/// Finds a named suite, which must be the only workload.
fn plan(typed: &[String]) -> Result<Option<SuitePlan>, Error> {
    for name in typed {
        let found = SuitePlan::find(name)?;
        if found.is_some() && typed.len() > 1 {
            let text = format!("cannot combine the suite `{name}` with other workloads");
            return Err(Error::new(Kind::BadInput, text)
                .with_hint("pass the suite alone, or name its workloads"));
        }
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Executes the suite.
pub(super) fn suite(
    request: &SuiteRequest,
    run: &RunArguments,
    invocation: Invocation<'_>,
) -> Result<Exit, Error> {
    let resolve = |workload: Option<&str>,
                   settings: task::Settings<'_>,
                   (schedule, rate_per_s): (Option<ScheduleKind>, Option<f64>)| {
        let mut run = run.clone();
        run.base.target.workload = workload.map(str::to_owned);
        run.base.target.server.start.settings = settings.to_vec();
        run.schedule = schedule.or(run.schedule);
        run.rate = rate_per_s.map(Rate).or(run.rate);
        task::of_run(&run, invocation.surroundings)
    };
    let (document, tasks) = suite::plan(request, &resolve, invocation.environment())?;
    experiments::perform(document, tasks, &run.base, invocation)
}
