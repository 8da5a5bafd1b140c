//! Tells Grafana what happened in each run, once the record of the run is complete: while the load goes on it does nothing.

use crate::export::annotations::{self, Annotation};
use crate::invocation::Invocation;
use crate::messages::Messages;
use dyno_engine::observer::RunFacts;
use dyno_engine::run::observation::grafana_of;
use dyno_engine::{Error, Observer};
use dyno_fleet::options::Hidden;
use dyno_plan::model::GrafanaPlan;
use dyno_results::AnalysedRun;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Longest time for the annotations of a run; the last one may take 2 s more.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// See the module.
pub(crate) struct Annotator {
    messages: Messages,
    token: Option<Hidden>,
    /// Name of the directory of the current run.
    directory: String,
    /// A Grafana that did not keep an annotation is left alone: the next runs of an experiment need not wait for it.
    gave_up: bool,
}

impl Annotator {
    pub(crate) fn new(invocation: Invocation<'_>) -> Annotator {
        Annotator {
            messages: invocation.messages,
            token: invocation.surroundings.grafana_token.clone(),
            directory: String::new(),
            gave_up: false,
        }
    }

    /// Posts all annotations of a run, or says how many were kept and why not all.
    fn post(&self, plan: &GrafanaPlan, all: &[Annotation]) -> Result<(), String> {
        let token = self.token.as_ref().map(|token| token.reveal().to_owned());
        let grafana = grafana_of(plan, token).map_err(|error| format!("{:#}", error.cause))?;
        let deadline = Instant::now() + TIME_LIMIT;
        for (kept, annotation) in all.iter().enumerate() {
            let text = serde_json::to_string(annotation).map_err(|error| error.to_string())?;
            let result = if Instant::now() < deadline {
                grafana.annotate(&text)
            } else {
                Err(format!("it takes longer than {} s", TIME_LIMIT.as_secs()))
            };
            let count = all.len();
            result.map_err(|reason| format!("it has {kept} of {count} annotations: {reason}"))?;
        }
        Ok(())
    }
}

/// Tells the Grafana of a plan what happened in an experiment that has no runs. If it does not keep all, a warning says why.
pub(crate) fn annotate(plan: &Value, all: &[Annotation], invocation: Invocation<'_>) {
    let Some(grafana) = grafana_in(plan) else {
        return;
    };
    if let Err(reason) = Annotator::new(invocation).post(&grafana, all) {
        let text = format!("Grafana was not told all of it: {reason}");
        invocation.messages.warning(&text);
    }
}

/// The Grafana of a recorded plan.
fn grafana_in(plan: &Value) -> Option<GrafanaPlan> {
    serde_json::from_value(plan["observe"]["grafana"].clone()).ok()
}

impl Observer for Annotator {
    fn run_started(&mut self, run: &RunFacts) {
        self.directory.clone_from(&run.directory);
    }

    fn run_saved(&mut self, saved: &AnalysedRun) -> Result<(), Error> {
        let run = &saved.run;
        let Some(plan) = grafana_in(&run.document.plan) else {
            return Ok(());
        };
        // What happened to one of several servers happened in the run, and is told once.
        let is_whole = run.directory.ends_with(&self.directory);
        if self.gave_up || !is_whole {
            return Ok(());
        }
        let timeline = saved.analysis.as_ref();
        let timeline = timeline.and_then(|analysis| analysis.timeline.as_ref());
        let changes = timeline.map_or(&[][..], |timeline| &timeline.changes);
        if let Err(reason) = self.post(&plan, &annotations::all(run, changes)?) {
            self.gave_up = true;
            let place = run.directory.display();
            self.messages.warning(&format!(
                "Grafana was not told all of the run: {reason}; `dyno export {place} --to annotations` writes them"
            ));
        }
        Ok(())
    }
}
