//! Observes a run: the sources that the plan requests, started before the load and ended after it.

use crate::cancel::Cancel;
use crate::deployment::DeploymentUnderTest;
use crate::deployment::server::ServerUnderTest;
use crate::error::{Error, Kind};
use crate::run::exporters;
use dyno_load::clock::Clock;
use dyno_load::connect::{CancelCheck, Connector, Control, ControlError};
use dyno_observe::consumption::Known;
use dyno_observe::doctor::network;
use dyno_observe::grafana::Grafana;
use dyno_observe::health::Reading;
use dyno_observe::http::{Address, Credentials};
use dyno_observe::watch::{
    Ask, AskError, DataPlace, Host as HostSource, HostSubject, Now, OutputOptions, ServerSubject,
    Source, Watcher, collection_statistics, exporter, server,
};
use dyno_plan::Plan;
use dyno_plan::model::{ExporterPlan, GrafanaPlan};
use dyno_record::model::{
    Caveat, CaveatKind, CollectionRecord, PhaseEdge, PhaseKind, SourceHealth, SourceRecord,
};
use dyno_record::names;
use dyno_record::statement;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest time for a query to a server: a source must not hang.
const QUESTION_LIMIT: Duration = Duration::from_secs(2);

/// Most rows of a metrics file and of a phase's windows; longer runs merge rows.
const MOST_ROWS: f64 = 7200.0;

/// Data folders of the servers.
pub(crate) struct DataFolders {
    /// Folders on this machine.
    pub(crate) here: Vec<PathBuf>,
    /// Folders that the servers report, wherever they run.
    pub(crate) named: Vec<String>,
}

/// Starts the plan's sources; `None` if it has none.
pub(crate) fn start(
    plan: &Plan,
    deployment: &DeploymentUnderTest,
    folders: DataFolders,
    keep: &OutputOptions,
    clock: Clock,
) -> Result<Option<Watcher>, Error> {
    let observe = &plan.observe;
    let mut sources: Vec<Box<dyn Source>> = Vec::new();
    if observe.host {
        let subject = host_subject(deployment, folders.here);
        sources.push(Box::new(HostSource::new(Path::new("/"), subject)));
    }
    let watched = if observe.server || !observe.exporters.is_empty() {
        deployment.watched_servers()
    } else {
        Vec::new()
    };
    let hostname = dyno_observe::environment::hostname();
    let addresses: Vec<String> = watched.iter().map(|one| one.address.clone()).collect();
    let is_of_server =
        |other: &ExporterPlan| exporters::is_of_server(other, &addresses, hostname.as_deref());
    let of_server: Vec<bool> = observe.exporters.iter().map(is_of_server).collect();
    if observe.server {
        for watched_server in watched {
            let subject = ServerSubject {
                name: watched_server.name,
                address: watched_server.address,
                database: plan.data.database.clone(),
                collection: plan.data.collection.clone(),
            };
            let asker = Asker::new(watched_server.connector);
            sources.push(Box::new(server(subject, Box::new(asker))));
        }
    }
    for (other, of_server) in observe.exporters.iter().zip(of_server) {
        sources.push(Box::new(source_of(other, of_server, &folders.named)?));
    }
    if sources.is_empty() {
        return Ok(None);
    }
    let now: Now = Arc::new(move || clock.now_ns() as f64 / 1e9);
    let watcher = Watcher::start(sources, observe.interval.0, keep, &now);
    Ok(Some(watcher))
}

/// Refuses exporters and a Grafana with unreadable credentials or certificates, before anything is
/// started.
pub(crate) fn check(plan: &Plan) -> Result<(), Error> {
    let exporters = &plan.observe.exporters;
    exporters.iter().try_for_each(|other| source_of(other, false, &[]).map(drop))?;
    let grafana = plan.observe.grafana.as_ref();
    grafana.map_or(Ok(()), |plan| grafana_of(plan, None).map(drop))
}

/// The plan's Grafana. `token` is used if the plan names no token file.
///
/// # Errors
/// The token or the certificates cannot be read.
pub fn grafana_of(plan: &GrafanaPlan, token: Option<String>) -> Result<Grafana, Error> {
    let address = Address {
        url: plan.url.clone(),
        credentials: plan.token_file.clone().map(Credentials::Token),
        ca_file: plan.ca_file.clone(),
    };
    Grafana::new(address, token)
        .map_err(|error| Error::from_cause(Kind::BadInput, error).context("cannot use Grafana"))
}

fn source_of(
    other: &ExporterPlan,
    of_server: bool,
    data_folders: &[String],
) -> Result<impl Source + use<>, Error> {
    let password = other.user.clone().zip(other.password_file.clone());
    let password = password.map(|(user, file)| Credentials::Password { user, file });
    let address = Address {
        url: other.url.clone(),
        credentials: other.token_file.clone().map(Credentials::Token).or(password),
        ca_file: other.ca_file.clone(),
    };
    let disks = other.disk.as_ref().map(|disk| disk.names().to_vec());
    let place = DataPlace {
        disks: disks.unwrap_or_default(),
        folders: data_folders.iter().filter(|_| of_server).cloned().collect(),
    };
    exporter(other.name.clone(), address, of_server, place).map_err(|error| {
        let what = format!("cannot use exporter `{}`", other.name);
        Error::from_cause(Kind::BadInput, error).context(what)
    })
}

/// Number of windows or readings of this length per row, so that files have a bounded length.
pub(crate) fn per_row(plan: &Plan, each: Duration) -> u64 {
    let phases = &plan.phases;
    let by_time_s = phases.duration.map(|span| span.0.as_secs_f64());
    // The time of a closed loop for its operations is not known in advance.
    let rate_per_s = plan.schedule.rate_per_s();
    let by_count_s = phases.operations.zip(rate_per_s);
    let by_count_s = by_count_s.map(|(operations, rate_per_s)| operations as f64 / rate_per_s);
    let length_s = [by_time_s, by_count_s].into_iter().flatten().reduce(f64::min);
    let length_s = length_s.unwrap_or(0.0);
    let rows = length_s / each.as_secs_f64();
    (rows / MOST_ROWS).ceil().max(1.0) as u64
}

fn host_subject(deployment: &DeploymentUnderTest, data_folders: Vec<PathBuf>) -> HostSubject {
    let mut processes = vec![(names::CLIENT.to_owned(), std::process::id())];
    let started = deployment.named_processes();
    let is_local = !started.is_empty() || deployment.servers.iter().all(ServerUnderTest::is_local);
    processes.extend(started);
    let mut ports = Vec::new();
    let mut unknown_process = None;
    // A server of another owner, who may restart it.
    if let Some((port, process)) = listener(deployment) {
        match process {
            Ok(process) => {
                processes.push(("server".to_owned(), process));
                ports.push(("server".to_owned(), port));
            }
            Err(health) => unknown_process = Some(health),
        }
    }
    HostSubject {
        hostname: dyno_observe::environment::hostname().unwrap_or_else(|| "this machine".into()),
        of_server: is_local,
        processes,
        ports,
        unknown_process,
        data_folders,
        unknown_folder: None,
    }
}

/// Processes of the data servers, found by port if this program did not start them, or why they are
/// unknown. All readers of their use call this, so that all parts of a record agree.
pub(super) fn server_processes(deployment: &DeploymentUnderTest) -> Known<Vec<u32>> {
    if !deployment.servers.iter().all(ServerUnderTest::is_local) {
        return Err("the servers run on another machine".to_owned());
    }
    let started = deployment.processes();
    if !started.is_empty() {
        return Ok(started);
    }
    let is_router =
        |server: &ServerUnderTest| server.control().is_ok_and(|own| own.hello().is_mongos);
    if deployment.servers.iter().any(is_router) {
        return Err("the servers behind a router are unknown".to_owned());
    }
    let (_, process) = listener(deployment).ok_or_else(|| {
        "the processes of servers that were already running are unknown".to_owned()
    })?;
    let process = process.map_err(|health| health.reason().to_owned());
    Ok(vec![process?])
}

/// Port and process of a single running server on this machine; otherwise `None`.
fn listener(deployment: &DeploymentUnderTest) -> Option<(u16, Reading<u32>)> {
    let [only] = deployment.servers.as_slice() else {
        return None;
    };
    let is_whole = || only.hosts().is_ok_and(|hosts| hosts.len() == 1);
    let is_meant = only.is_local() && !deployment.is_started() && is_whole();
    let port = only.port().filter(|_| is_meant)?;
    Some((port, network::listener_pid(Path::new("/"), port)))
}

/// Caveats for sources that could not be read completely.
pub(crate) fn caveats(records: &[SourceRecord]) -> Vec<Caveat> {
    let is_doubtful = |record: &&SourceRecord| {
        matches!(record.health, SourceHealth::Failed | SourceHealth::Degraded)
    };
    let doubtful = records.iter().filter(is_doubtful);
    let caveat = |record: &SourceRecord| {
        let code = match record.health {
            SourceHealth::Failed => "source-not-watched",
            _ => "source-watched-in-part",
        };
        let statement = statement!(
            code,
            source = &record.name,
            subject = &record.subject,
            reason = record.reason.as_ref()
        );
        Caveat::of_run(CaveatKind::ProbeUnavailable, statement)
    };
    doubtful.map(caveat).collect()
}

/// Queries one server over its own connection, which is opened when needed.
pub(super) struct Asker {
    connector: Connector,
    control: Option<Control>,
    limit: Duration,
    cancel_check: Option<CancelCheck>,
}

impl Asker {
    pub(super) fn new(connector: Connector) -> Self {
        Asker { connector, control: None, limit: QUESTION_LIMIT, cancel_check: None }
    }

    /// The same with a longer time limit for an answer, until it is cancelled.
    pub(super) fn patient(&mut self, limit: Duration, cancel: &Cancel) -> &mut Self {
        self.limit = limit;
        self.cancel_check = Some(cancel.patience());
        self
    }
}

impl Asker {
    fn ask_once(
        &mut self,
        database: &str,
        command: bson::Document,
    ) -> Result<bson::Document, AskError> {
        let control = match &mut self.control {
            Some(control) => control,
            None => {
                let opened = self.connector.control();
                self.control.insert(opened.map_err(|error| lost(&error))?)
            }
        };
        control.set_limit(Some(self.limit));
        if let Some(cancel_check) = self.cancel_check.take() {
            control.set_cancel_check(cancel_check);
        }
        let answer = control.run(database, command).map_err(|error| refused_or_lost(&error));
        if matches!(answer, Err(AskError::Lost { .. })) {
            self.control = None;
        }
        answer
    }
}

impl Ask for Asker {
    fn ask(&mut self, database: &str, command: bson::Document) -> Result<bson::Document, AskError> {
        let (was_open, begin) = (self.control.is_some(), Instant::now());
        match self.ask_once(database, command.clone()) {
            // The server may have restarted since the last query. A server that did not answer is
            // not tried again.
            Err(AskError::Lost { .. }) if was_open && begin.elapsed() < self.limit => {
                self.ask_once(database, command)
            }
            answer => answer,
        }
    }
}

/// Queries over an existing connection.
struct Borrowed<'a>(&'a mut Control);

impl Ask for Borrowed<'_> {
    fn ask(&mut self, database: &str, command: bson::Document) -> Result<bson::Document, AskError> {
        self.0.run(database, command).map_err(|error| refused_or_lost(&error))
    }
}

/// Queries a server for the statistics of the collection under test.
///
/// # Errors
/// The reason why it reports none, in words.
pub(crate) fn collection(
    control: &mut Control,
    plan: &Plan,
    instance: &str,
    phase: PhaseKind,
    at: PhaseEdge,
) -> Result<CollectionRecord, String> {
    let (database, collection) = (&plan.data.database, &plan.data.collection);
    let statistics = collection_statistics(&mut Borrowed(control), database, collection)
        .map_err(|health| health.reason().to_owned())?;
    Ok(CollectionRecord {
        phase,
        at,
        instance: instance.to_owned(),
        database: database.clone(),
        collection: collection.clone(),
        statistics,
    })
}

fn refused_or_lost(error: &ControlError) -> AskError {
    match error.code() {
        Some(code) => AskError::Refused { code, message: error.to_string() },
        None => lost(error),
    }
}

/// An error with its causes, without credentials.
fn lost(error: &dyn std::error::Error) -> AskError {
    let mut reason = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        reason.push_str(&format!(": {next}"));
        cause = next.source();
    }
    AskError::Lost { reason: dyno_plan::uri::redact(&reason) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_plan::units::Span;
    use dyno_record::model::SourceKind;

    #[test]
    fn long_runs_have_rows_of_several_readings() {
        let mut plan = dyno_plan::builtin::find("a").expect("it is built in");
        for (seconds, expected) in [(30, 1), (7200, 1), (7201, 2), (86_400, 12)] {
            plan.phases.duration = Some(Span::from_secs(seconds));
            assert_eq!(per_row(&plan, plan.observe.interval.0), expected, "{seconds}");
        }
        // A run that ends by a count takes as long as its rate implies.
        plan.phases.operations = Some(14_400_000);
        plan.schedule = dyno_plan::model::Schedule::Constant {
            rate_per_s: 1_000.0,
            max_start_delay: Span::from_secs(10),
        };
        assert_eq!(per_row(&plan, plan.observe.interval.0), 2);
        plan.phases.duration = None;
        assert_eq!(per_row(&plan, plan.observe.interval.0), 2);
        plan.phases.operations = None;
        assert_eq!(per_row(&plan, plan.observe.interval.0), 1);
    }

    #[test]
    fn only_unread_expected_sources_are_a_caveat() {
        let record = |health, reason: &str| SourceRecord {
            name: "server".into(),
            kind: SourceKind::Server,
            subject: "db:27017".into(),
            machine: None,
            of_server: true,
            interval_s: 1.0,
            readings_per_row: 1,
            health,
            reason: Some(reason.into()),
            missing: Vec::new(),
            readings: 0,
            missed: 0,
            outages: Vec::new(),
            cpu_s: 0.0,
            cpu_ratio: 0.0,
        };
        let records = [
            record(SourceHealth::Unsupported, "no such command"),
            record(SourceHealth::Healthy, ""),
            record(SourceHealth::Failed, "not authorized"),
        ];
        let caveats = caveats(&records);
        assert_eq!(caveats.len(), 1);
        let expected = statement!(
            "source-not-watched",
            source = "server",
            subject = "db:27017",
            reason = "not authorized"
        );
        assert_eq!(caveats[0].statement, expected);
    }
}
