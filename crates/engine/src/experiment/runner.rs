//! Runs the points of an experiment one after the other, each into its own run directory, and keeps
//! the experiment's document up to date, so that an interruption loses at most the current point.

mod all;
mod conditions;
mod harm;
mod machines;
mod pace;

use harm::failure_of;
use machines::prepared;
use pace::Pace;

use super::deployment_key::DeploymentKey;
use super::folder::ExperimentFolder;
use super::hosts;
use super::points::{
    Planned, WhichPlan, changes_the_collection, documents, ended_after_s, planned, point,
};
use crate::context::Context;
use crate::deployment::DeploymentUnderTest;
use crate::deployment::locality;
use crate::deployment::parameters;
use crate::deployment::placement::HostPlacement;
use crate::deployment::server::ServerPaths;
use crate::error::{Error, Kind, OrFault};
use crate::observer::Observer;
use crate::run::host_settings::HostSettings;
use crate::run::limits::WindowLimits;
use crate::run::options::RunOptions;
use crate::run::run_on;
use crate::standalone::status;
use crate::undo::journal::Journal;
use crate::undo::step::Step;
use dyno_analyze::experiment::conditions::Conditions;
use dyno_analyze::experiment::figures::{self, measured};
use dyno_analyze::experiment::tune::Failure;
use dyno_analyze::uncertainty::series::IntervalSample;
use dyno_plan::model::{DataPlan, FreshData};
use dyno_plan::task::Task;
use dyno_record::experiment::{Experiment, FILE, Figures, Keys, Options, Point, Verb};
use dyno_record::model::{PhaseKind, RunDocument, RunStatus, ServerRecord};
use dyno_record::quantity::Quantity;
use dyno_record::reader::Run;
use dyno_record::responses::{WindowResponses, responses};
use dyno_results::experiment::{self as results, conclude};
use dyno_results::run::stolen_ratio;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// An experiment in progress.
pub(crate) struct ExperimentRunner<'a> {
    pub(crate) document: Experiment,
    pub(crate) folder: ExperimentFolder,
    /// The plans that the points change: one, or one for each side or workload.
    tasks: BTreeMap<WhichPlan, Task>,
    options: &'a RunOptions<'a>,
    pub(crate) context: Context<'a>,
    deployment: Option<OpenDeployment>,
    /// See [`Planned::varies_data`].
    varies_data: bool,
    /// Whether the experiment compares several kinds of servers. Each repetition then starts its
    /// own: properties of a single start, such as its memory placement, change results by several
    /// percent and would otherwise be the same in all repetitions.
    compares_servers: bool,
    /// Conditions of the runs completed before this process resumed the experiment.
    like: Vec<(String, Conditions)>,
    /// Whether the resumed experiment had ended as planned, so that it has all its points.
    pub(crate) was_complete: bool,
    pace: Pace,
}

/// Running servers.
struct OpenDeployment {
    key: DeploymentKey,
    deployment: DeploymentUnderTest,
    /// The repetition that started them.
    repeat: u32,
    /// Loaded documents; `None` if they are unknown or have changed.
    loaded: Option<DataPlan>,
}

impl<'a> ExperimentRunner<'a> {
    /// Opens an experiment; points with figures are complete.
    pub(crate) fn new(
        document: Experiment,
        folder: ExperimentFolder,
        tasks: BTreeMap<WhichPlan, Task>,
        options: &'a RunOptions<'a>,
        context: Context<'a>,
    ) -> Result<Self, Error> {
        let mut runner = ExperimentRunner {
            was_complete: document.status == RunStatus::Complete,
            pace: Pace::of(&document, &tasks),
            document,
            folder,
            tasks,
            options,
            context,
            deployment: None,
            varies_data: false,
            compares_servers: false,
            like: Vec::new(),
        };
        if !runner.folder.is_new {
            let earlier = results::conditions(&runner.document, runner.folder.path());
            for (run, reason) in &earlier.unread {
                runner.context.warning(format!(
                    "cannot compare the conditions with those of `{run}`: {reason}"
                ));
            }
            runner.like = earlier.known;
        }
        let wishes = (options.fresh, options.no_load);
        let Planned { tasks: planned, varies_data } =
            planned(&runner.document, &runner.tasks, wishes)?;
        runner.varies_data = varies_data;
        runner.compares_servers = matches!(runner.document.verb, Verb::Ab | Verb::Suite)
            && DeploymentKey::differ(&planned);
        runner.document.status = RunStatus::Running;
        runner.document.status_reason = None;
        runner.document.ended_at = None;
        runner.save()?;
        Ok(runner)
    }

    /// The tasks that the points change.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.tasks.values()
    }

    /// The task of a plan.
    pub(crate) fn task(&self, which: &WhichPlan) -> &Task {
        &self.tasks[which]
    }

    /// Options that this kind of experiment has.
    pub(crate) fn own<T: Clone>(&self, own: impl Fn(&Options) -> &Option<T>) -> Result<T, Error> {
        let text = || format!("`{FILE}` does not have the options of this kind of experiment");
        let own = own(&self.document.options).clone();
        own.ok_or_else(|| Error::new(Kind::BadInput, text()))
    }

    /// Share of a point's operations that its plan allows to fail.
    pub(crate) fn tolerated_error_ratio(&self, point: &Point) -> Result<f64, Error> {
        let task = self.task(&WhichPlan::of(point)).with_keys(&point.settings)?;
        Ok(task.plan.client.tolerated_error_ratio)
    }

    /// Fewest clients that a run can have: each agent of a fleet needs one.
    pub(crate) fn least_clients(&self) -> Result<u32, Error> {
        hosts::least_clients(self.tasks().next(), self.context)
    }

    /// Runs one more point of this plan with these settings, or returns the figures of an
    /// interrupted experiment that has it. Resumed searches request the same points again.
    pub(crate) fn measure(
        &mut self,
        settings: Keys,
        which: &WhichPlan,
        number: usize,
    ) -> Result<Figures, Error> {
        self.ask(settings, which, number);
        match &self.document.points[number].figures {
            Some(figures) => Ok(figures.clone()),
            None => self.run(number, None),
        }
    }

    /// Like [`ExperimentRunner::measure`], for a load that may be too high: `None` if no operation
    /// succeeded.
    pub(crate) fn probe(
        &mut self,
        settings: Keys,
        number: usize,
    ) -> Result<Option<Figures>, Error> {
        self.ask(settings, &WhichPlan::Only, number);
        let point = &self.document.points[number];
        if point.figures.is_some() || point.problem.is_some() {
            return Ok(point.figures.clone());
        }
        match self.run(number, None) {
            Err(_) if self.document.points[number].problem.is_some() => Ok(None),
            result => result.map(Some),
        }
    }

    /// Like [`ExperimentRunner::measure`], for settings that may do harm or be refused; the inner
    /// error says so. The run ends as soon as it breaks one of the limits.
    pub(crate) fn attempt(
        &mut self,
        settings: Keys,
        which: &WhichPlan,
        number: usize,
        limits: WindowLimits,
    ) -> Result<Result<Figures, Failure>, Error> {
        self.ask(settings, which, number);
        let point = &self.document.points[number];
        if let Some(figures) = &point.figures {
            return Ok(Ok(figures.clone()));
        }
        if let Some(failure) = failure_of(point) {
            return Ok(Err(failure));
        }
        match self.run(number, Some(limits)) {
            Ok(figures) => Ok(Ok(figures)),
            Err(failure) => self.judge_failure(number, failure).map(Err),
        }
    }

    /// Values of these parameters on each server of a plan. Starts the servers if necessary.
    pub(crate) fn server_parameters(
        &mut self,
        which: &WhichPlan,
        names: &[&String],
    ) -> Result<Vec<BTreeMap<String, String>>, Error> {
        let task = self.tasks[which].clone();
        let key = DeploymentKey::of(&task.plan);
        if self.deployment.as_ref().is_none_or(|open| open.key != key) {
            drop(self.open_deployment(&task, 0)?);
        }
        let open = self.deployment.as_ref();
        open.map_or(Ok(Vec::new()), |open| parameters::values(&open.deployment, names))
    }

    /// A runtime parameter of the running servers with a similar name.
    pub(crate) fn near_parameter(&self, name: &str) -> Option<String> {
        parameters::near(&self.deployment.as_ref()?.deployment, name)
    }

    /// Refuses running servers and a machine that still have settings of a killed run.
    pub(crate) fn check_undone(&self) -> Result<(), Error> {
        let Some(folder) = self.context.environment.state_dir.as_deref() else {
            return Ok(());
        };
        let journal = Journal::open(folder, Path::new("/"))?;
        if !self.is_remote() {
            journal.check_runs(Step::is_of_machine)?;
        }
        let remotes = self.tasks.values().filter_map(|task| task.remote.as_ref());
        let mut uris = remotes.map(|remote| remote.target.to_string());
        uris.try_for_each(|uri| journal.check_runs(|step| step.is_of_deployment(&uri)))
    }

    /// Local folders with the data of the servers started last.
    pub(crate) fn data_folders(&self) -> Vec<PathBuf> {
        let storage = self.deployment.as_ref().and_then(|open| open.deployment.storage());
        if let Some(storage) = storage {
            return vec![storage.data()];
        }
        let mut tasks = self.tasks().filter(|task| task.remote.is_none());
        let task = tasks.next();
        task.map_or_else(Vec::new, |task| locality::planned_folders(&task.plan, &self.paths()))
    }

    /// Paths for started servers.
    fn paths(&self) -> ServerPaths<'_> {
        ServerPaths {
            environment: self.context.environment,
            embedded: self.options.embedded_server.as_deref(),
            folder: self.folder.path(),
        }
    }

    /// Server record of a run; `None` if the experiment has no such run.
    pub(crate) fn server_of(&self, number: usize) -> Result<Option<ServerRecord>, Error> {
        if number >= self.document.points.len() {
            return Ok(None);
        }
        Ok(Some(Run::open(&self.directory_of(number))?.document.server))
    }

    /// Run directory of a point.
    fn directory_of(&self, number: usize) -> PathBuf {
        self.folder.path().join(&self.document.points[number].directory)
    }

    /// Whether the servers are already running, so that they cannot be restarted.
    pub(crate) fn is_remote(&self) -> bool {
        self.tasks.values().any(|task| task.remote.is_some())
    }

    /// Makes point `number` one with these settings. If it has others, drops it and the later
    /// points.
    fn ask(&mut self, settings: Keys, which: &WhichPlan, number: usize) {
        if let Some(known) = self.document.points.get(number) {
            if known.settings == settings && WhichPlan::of(known) == *which {
                return;
            }
            let others = self.document.points.len() - number;
            self.context.warning(format!(
                "the search continues differently from run {} on; runs that no longer count: {others}",
                number + 1
            ));
            self.document.points.truncate(number);
        }
        let repeat = self
            .document
            .points
            .iter()
            .filter(|point| point.settings == settings && WhichPlan::of(point) == *which)
            .count();
        self.document.points.push(point(
            number,
            settings,
            which.clone(),
            u32::try_from(repeat).unwrap_or(u32::MAX),
        ));
    }

    fn run(&mut self, index: usize, limits: Option<WindowLimits>) -> Result<Figures, Error> {
        self.context.cancel.check()?;
        let point = &self.document.points[index];
        let repeat = point.repeat;
        let task = self.task(&WhichPlan::of(point)).with_keys(&point.settings)?;
        self.context.note(self.pace.next(&self.document, index));
        self.document.points[index].problem = None;
        self.document.points[index].stolen_ratio = None;
        self.document.points[index].ended_after_s = None;
        self.document.points[index].server_ended = false;
        let directory = self.directory_of(index);
        // An interrupted run left it; it is not part of the experiment.
        if directory.exists() {
            std::fs::remove_dir_all(&directory)
                .or_fault(Kind::Environment, || format!("cannot use `{}`", directory.display()))?;
        }
        let context = self.context;
        let settings = self.open_deployment(&task, repeat)?;
        let (like, side) = (&self.like, self.document.points[index].side);
        let check = |run: &RunDocument| conditions::check(&Conditions::of_run(run, side), like);
        let options = RunOptions {
            fresh: self.begins_fresh(&task),
            abort_load: true,
            out: Some(directory.clone()),
            limits,
            check: Some(&check),
            ..self.options.clone()
        };
        let deployment = self.deployment.as_mut().map(|open| {
            // A failed run may leave any documents.
            open.loaded = None;
            &mut open.deployment
        });
        let outcome = run_on(&task, &options, context, deployment, settings);
        let finished =
            outcome?.ok_or_else(|| Error::new(Kind::Internal, "the run recorded nothing"))?;
        if let Some(fault) = finished.fault {
            return Err(fault.context(format!("the run in `{}` failed", directory.display())));
        }
        if finished.interrupted {
            return Err(Error::new(Kind::Interrupted, "interrupted"));
        }
        if let Some(open) = &mut self.deployment {
            let stays = !changes_the_collection(&task.plan);
            open.loaded = stays.then(|| documents(&task.plan));
        }
        let windows = responses(&directory, PhaseKind::Measure, None)?;
        let run = &finished.results.run.document;
        if let Some(ended_early) = &run.status_reason {
            self.context.note(ended_early);
        }
        let mut found = figures::of_run(run, &windows, self.seed());
        machines::keep(&mut self.document, run);
        if let Ok(figures) = &mut found {
            figures.stolen_ratio = stolen_ratio(&finished.results.run);
        }
        let storage = prepared(&run.environment).cloned();
        let point = &mut self.document.points[index];
        point.storage = storage;
        point.ended_after_s = ended_after_s(run);
        point.problem = found.as_ref().err().map(ToString::to_string);
        point.figures = found.as_ref().ok().cloned();
        self.pace.run_ended();
        self.save()?;
        found.or_fault(Kind::Environment, || format!("the run in `{}` failed", directory.display()))
    }

    /// Recording windows of all measured points, by index.
    pub(crate) fn windows(&self) -> Result<BTreeMap<usize, Vec<IntervalSample>>, Error> {
        let places: Vec<usize> = (0..self.document.points.len()).collect();
        self.windows_of(&places)
    }

    /// Recording windows of the measured ones of these points, in their order.
    pub(crate) fn windows_of(
        &self,
        places: &[usize],
    ) -> Result<BTreeMap<usize, Vec<IntervalSample>>, Error> {
        let mut all = BTreeMap::new();
        for (number, place) in places.iter().enumerate() {
            let point = &self.document.points[*place];
            if let Some(figures) = &point.figures {
                let is_open = figures.offered_rate_per_s.is_some();
                let windows = self.responses_of(*place)?;
                all.insert(number, measured(&windows, is_open).samples);
            }
        }
        Ok(all)
    }

    /// Recording windows of the measure phase of a point.
    pub(crate) fn responses_of(&self, place: usize) -> Result<Vec<WindowResponses>, Error> {
        Ok(responses(&self.directory_of(place), PhaseKind::Measure, None)?)
    }

    /// Seed for resampling: the plan's seed, so that the same runs give the same figures.
    pub(crate) fn seed(&self) -> u64 {
        self.tasks.values().next().map_or(0, |task| task.plan.client.seed)
    }

    /// Notes that a run or its pair does not count because the hypervisor took too much CPU time.
    pub(crate) fn note_set_aside(&self, stolen_ratio: Option<f64>) {
        if let Some(stolen_ratio) = stolen_ratio {
            self.context.note(format!(
                "set aside: the hypervisor took {} of the CPU time",
                Quantity::ratio(stolen_ratio)
            ));
        }
    }

    /// Whether this point was measured, or failed.
    pub(super) fn has_run(&self, number: usize) -> bool {
        let point = self.document.points.get(number);
        point.is_some_and(|point| point.figures.is_some() || point.problem.is_some())
    }

    /// Notes how many runs follow and how long they take.
    pub(super) fn announce_extent(&self) {
        self.context.note(self.pace.extent());
    }

    /// Whether a run drops the documents of earlier runs.
    fn begins_fresh(&self, task: &Task) -> bool {
        self.options.fresh
            || match task.plan.data.fresh {
                FreshData::Collection | FreshData::Server => true,
                FreshData::Never => false,
                FreshData::WhenChanged => task.remote.is_none() && self.holds_other_documents(task),
            }
    }

    /// Whether an earlier run may have left other documents than this run needs.
    fn holds_other_documents(&self, task: &Task) -> bool {
        let open = self.deployment.as_ref();
        let loaded = open.and_then(|open| open.loaded.as_ref());
        self.varies_data && loaded != Some(&documents(&task.plan))
    }

    /// Makes the running servers match a plan, and applies its machine settings, which last until
    /// they are dropped.
    fn open_deployment(
        &mut self,
        task: &Task,
        repeat: u32,
    ) -> Result<Vec<HostSettings<'a>>, Error> {
        let (plan, context) = (&task.plan, self.context);
        let mut settings = Vec::from_iter(HostSettings::of_kernel(plan, context)?);
        let key = DeploymentKey::of(plan);
        // Dropping a cluster's collection removes the requested sharding.
        let is_reusable = task.plan.data.fresh != FreshData::Server
            && !(task.plan.server.is_sharded() && self.begins_fresh(task));
        let is_its_own = |open: &OpenDeployment| {
            let is_of_repeat = open.repeat == repeat || task.remote.is_some();
            open.key == key && (is_of_repeat || !self.compares_servers)
        };
        if is_reusable && self.deployment.as_ref().is_some_and(is_its_own) {
            let folders = locality::planned_folders(plan, &self.paths());
            settings.extend(HostSettings::of_disk(plan, &folders, context)?);
            return Ok(settings);
        }
        self.close()?;
        let placement = match (&task.remote, context.source) {
            (None, None) => HostPlacement::from_plan(plan)?,
            _ => None,
        };
        let (remote, paths) = (task.remote.as_ref(), self.paths());
        let set = || HostSettings::of_disk(plan, &locality::planned_folders(plan, &paths), context);
        let placement = placement.as_ref();
        let (deployment, of_disk) =
            DeploymentUnderTest::open_after(plan, remote, &paths, placement, context, set)?;
        settings.extend(of_disk);
        self.deployment = Some(OpenDeployment { key, deployment, repeat, loaded: None });
        Ok(settings)
    }

    /// Stops the servers.
    pub(crate) fn close(&mut self) -> Result<(), Error> {
        let open = self.deployment.take();
        open.map_or(Ok(()), |open| open.deployment.stop_and_tell(self.context))
    }

    /// Writes the document.
    pub(crate) fn save(&self) -> Result<(), Error> {
        self.folder.save(&self.document)
    }

    /// Stops the servers, records how the experiment ended, and writes it. Returns the first
    /// failure.
    pub(crate) fn end(&mut self, result: Result<(), Error>) -> Result<(), Error> {
        let result = result.and(self.close());
        self.document.ended_at = Some(Timestamp::now().to_string());
        (self.document.status, self.document.status_reason) = status(result.as_ref().err());
        if result.is_err() && self.folder.is_new && !self.is_worth_keeping() {
            self.folder.discard();
            return result;
        }
        let saved = self.conclude();
        let place = self.folder.path().display();
        let resume = match self.context.source {
            Some(source) => source.resume_command(&place.to_string()),
            None => format!("dyno resume {place}"),
        };
        let result = result.map_err(|failure| match failure.hint {
            None => failure.with_hint(format!(
                "the measurements so far are in `{place}`; continue with `{resume}`"
            )),
            Some(hint) => Error {
                hint: Some(format!(
                    "{hint}; the measurements so far are in `{place}`, and `{resume}` continues"
                )),
                ..failure
            },
        });
        result.and(saved)
    }

    /// Derives the findings from the answer, and writes the document with its checksums and
    /// reports.
    fn conclude(&mut self) -> Result<(), Error> {
        conclude(&mut self.document, self.folder.path());
        self.save()?;
        self.folder.finish();
        let mut observer = self.context.observer;
        observer.experiment_saved(&self.document, self.folder.path())
    }

    /// Whether any run completed, or failed with a record.
    fn is_worth_keeping(&self) -> bool {
        let has_failed = self.document.status == RunStatus::Failed;
        self.document.points.iter().any(|point| {
            let tells_why = has_failed || point.problem.is_some();
            point.figures.is_some() || tells_why && self.folder.holds(point)
        })
    }
}
