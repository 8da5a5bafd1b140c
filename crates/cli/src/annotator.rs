//! Posts the events of each run to Grafana once its record is complete. It does nothing during the load.

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

/// Time limit for the annotations of a run; the last annotation may take 2 s more.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Observer that posts annotations after each run.
pub(crate) struct Annotator {
    messages: Messages,
    token: Option<Hidden>,
    /// Name of the directory of the current run.
    directory: String,
    /// Set after the first failure, so that the next runs of an experiment do not wait for Grafana.
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

    /// Posts all annotations of a run. An error names the number of posted annotations and the reason.
    fn post(&self, plan: &GrafanaPlan, all: &[Annotation]) -> Result<(), String> {
        let token = self.token.as_ref().map(|token| token.reveal().to_owned());
        let grafana = grafana_of(plan, token).map_err(|error| format!("{:#}", error.cause))?;
        let deadline = Instant::now() + TIME_LIMIT;
        for (kept, annotation) in all.iter().enumerate() {
            let text = serde_json::to_string(annotation).map_err(|error| error.to_string())?;
            let result = if Instant::now() < deadline {
                grafana.annotate(&text)
            } else {
                Err(format!("took longer than {} s", TIME_LIMIT.as_secs()))
            };
            let count = all.len();
            result.map_err(|reason| format!("{kept} of {count} were posted: {reason}"))?;
        }
        Ok(())
    }
}

/// Posts the annotations of an experiment without runs to the plan's Grafana. Warns if some could not be posted.
pub(crate) fn annotate(plan: &Value, all: &[Annotation], invocation: Invocation<'_>) {
    let Some(grafana) = grafana_in(plan) else {
        return;
    };
    if let Err(reason) = Annotator::new(invocation).post(&grafana, all) {
        let text = format!("cannot post all annotations to Grafana: {reason}");
        invocation.messages.warning(&text);
    }
}

/// Reads the Grafana settings of a recorded plan.
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
        // The record of each server repeats events of the whole run, so only the whole run is posted.
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
                "cannot post all annotations to Grafana: {reason}; `dyno export {place} --to annotations` writes them"
            ));
        }
        Ok(())
    }
}
