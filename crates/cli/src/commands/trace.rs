//! `dyno trace`: traces the file I/O of processes.

use crate::args::trace::TraceArguments;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::reports::{self, Report};
use dyno_engine::deployment::locality::{self, process_at};
use dyno_engine::recording::child::Program;
use dyno_engine::recording::roles::Tables;
use dyno_engine::recording::settings::{READS, SYNCS, WRITES};
use dyno_engine::recording::trace::Recording;
use dyno_engine::run::directory::RunDirectory;
use dyno_engine::{Error, Kind};
use dyno_load::connect::{Connector, Control};
use dyno_observe::doctor::Subject;
use dyno_observe::environment::examine;
use dyno_plan::command_words::without_secrets;
use dyno_plan::task::Remote;
use dyno_record::io_trace::document::{TraceDocument, TraceMode, TraceTarget};
use dyno_results::trace::TracePart;
use dyno_results::{AnalysedTrace, TraceOptions};
use dyno_trace::{Filter, Settings};
use jiff::Timestamp;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

/// Last part of the folder name of a trace, after its time.
const NAME: &str = "trace";
/// Maximum wait for events between checks for the end.
const POLL: Duration = Duration::from_millis(100);
/// Grace period after Ctrl-C for a program on the same terminal, which received the signal as well.
const SAME_SIGNAL: Duration = Duration::from_millis(500);
/// Time limit for a command to the server.
const QUESTION_LIMIT: Duration = Duration::from_secs(10);

/// Executes `dyno trace`.
pub(crate) fn trace(arguments: &TraceArguments, invocation: Invocation<'_>) -> Result<Exit, Error> {
    let has_subject = !arguments.processes.is_empty() || arguments.server.is_some();
    if !has_subject && arguments.command.is_empty() {
        let hint = "pass `--pid PID`, `--server URI`, or a program after `--`";
        return Err(Error::new(Kind::BadInput, "nothing to trace").with_hint(hint));
    }
    let part = TracePart::from(&arguments.part);
    if arguments.aggregated && !part.is_all() {
        let text =
            "`--window` and `--slices` need single calls, which `--aggregated` does not record";
        return Err(Error::new(Kind::BadInput, text));
    }
    let server = match &arguments.server {
        Some(text) => Some(Server::find(text, invocation)?),
        None => None,
    };
    let settings = settings(arguments);
    settings
        .check()
        .map_err(|error| Error::from(error).context("cannot trace with these options"))?;
    let directory = RunDirectory::create(arguments.out.as_deref(), NAME, Timestamp::now())?;
    let folder = directory.path().to_owned();
    let mut traced = Traced { arguments, invocation, server, program: None };
    let recording = match traced.begin(settings, &folder) {
        Ok(recording) => recording,
        Err(failure) => {
            directory.discard();
            return Err(failure);
        }
    };
    let ending = traced.record(recording)?;
    for caveat in &ending.document.caveats {
        invocation.messages.warning(&dyno_report::texts::text(&caveat.statement));
    }
    let asked = TraceOptions { gap_bytes: Some(arguments.gap.0), part, ..TraceOptions::default() };
    let analysed = AnalysedTrace::open(&folder, &asked).map_err(|error| {
        Error::from(error).context(format!("cannot show `{}`", folder.display()))
    })?;
    let shown = (arguments.page.format, &arguments.page.extent);
    reports::present(&folder, shown, &Report::Trace(analysed), invocation)?;
    Ok(ending.exit)
}

/// Converts the arguments to settings.
fn settings(arguments: &TraceArguments) -> Settings {
    let wanted = [(arguments.reads, READS), (arguments.writes, WRITES), (arguments.fsync, SYNCS)];
    let chosen = wanted.iter().filter(|(is_wanted, _)| *is_wanted);
    Settings {
        filter: Filter {
            processes: Vec::new(),
            files: arguments.files.clone(),
            operations: chosen.flat_map(|(_, operations)| operations.to_vec()).collect(),
            smallest_bytes: arguments.smallest.map_or(0, |size| size.0),
        },
        mode: if arguments.aggregated { TraceMode::Aggregated } else { TraceMode::Events },
        block: !arguments.no_block,
        measure_cost: arguments.cost,
        ring_bytes: u32::try_from(arguments.buffer.0).unwrap_or(u32::MAX),
        ..Settings::default()
    }
}

/// A server on this machine.
struct Server {
    process: u32,
    control: Control,
    address: String,
}

impl Server {
    fn find(text: &str, invocation: Invocation<'_>) -> Result<Server, Error> {
        let uri = if text.contains("://") { text.to_owned() } else { format!("mongodb://{text}") };
        let remote = Remote::parse(&uri)?;
        let mut connector = Connector::new(&remote.target, remote.credentials.clone())
            .map_err(|error| Error::from(error).context("cannot use `--server`"))?;
        connector.set_cancel_check(invocation.cancel.patience());
        let mut control = connector
            .control()
            .map_err(|error| Error::from(error).context("cannot connect to the server"))?;
        control.set_limit(Some(QUESTION_LIMIT));
        control.set_cancel_check(invocation.cancel.patience());
        let address = control.endpoint().to_string();
        if !locality::is_local(&remote, invocation.surroundings.environment.hostname.as_deref()) {
            let message = format!("cannot trace the server `{address}`: it is not on this machine");
            return Err(Error::new(Kind::BadInput, message)
                .with_hint("run `dyno trace` on the server's machine"));
        }
        let process = process_at(control.endpoint().host()).map_err(|reason| {
            Error::new(Kind::Environment, reason)
                .context(format!("cannot find the process of the server `{address}`"))
                .with_hint("pass its process ID with `--pid`")
        })?;
        Ok(Server { process, control, address })
    }
}

/// A trace in progress.
struct Traced<'a> {
    arguments: &'a TraceArguments,
    invocation: Invocation<'a>,
    server: Option<Server>,
    program: Option<Program>,
}

/// End of a trace.
struct Ending {
    document: TraceDocument,
    exit: Exit,
}

impl Traced<'_> {
    fn begin(&mut self, settings: Settings, folder: &Path) -> Result<Recording, Error> {
        let words = &self.arguments.command;
        let target = TraceTarget {
            processes: Vec::new(),
            command: (!words.is_empty()).then(|| without_secrets(words)),
            name: self.server.as_ref().map(|server| format!("server `{}`", server.address)),
        };
        let gap_bytes = Some(self.arguments.gap.0);
        // Before the probes are attached, so that they do not record it.
        let environment =
            examine(Subject { own: self.processes().collect(), ..Subject::default() });
        let mut recording = Recording::start(settings, target, gap_bytes, folder)?;
        recording.is_on(environment);
        for process in &self.arguments.processes {
            recording.follow(*process)?;
        }
        if let Some(server) = &self.server {
            recording.follow(server.process)?;
        }
        if let Some((name, rest)) = words.split_first() {
            let child = recording.spawn(Command::new(name).args(rest))?;
            self.program = Some(Program(child));
        }
        Ok(recording)
    }

    /// Records until the end, and completes the folder.
    fn record(&mut self, mut recording: Recording) -> Result<Ending, Error> {
        if self.program.is_none() {
            let note = "tracing; press Ctrl-C to stop";
            self.invocation.messages.note(note);
        }
        let began = Instant::now();
        let mut fault = None;
        let end = loop {
            if let Err(failure) = recording.poll(POLL) {
                fault = Some(failure);
                break End::Fault;
            }
            if let Some(end) = self.end_is_there(began)? {
                break end;
            }
        };
        let status = self.end_program(end, &mut recording)?;
        let recorded = recording.stop()?;
        let document = recorded.finish(&self.tables())?;
        if let Some(fault) = fault {
            return Err(fault);
        }
        Ok(Ending { document, exit: self.exit(end, status) })
    }

    fn end_is_there(&mut self, began: Instant) -> Result<Option<End>, Error> {
        if self.invocation.cancel.requested() {
            return Ok(Some(End::Signal));
        }
        let is_over = |length: std::time::Duration| began.elapsed() >= length;
        if self.arguments.length.is_some_and(|length| is_over(length.0)) {
            return Ok(Some(End::Time));
        }
        if let Some(program) = &mut self.program {
            return Ok(program.status()?.map(|_| End::Program));
        }
        Ok((!self.processes().any(is_alive)).then_some(End::Program))
    }

    /// Processes that were already running.
    fn processes(&self) -> impl Iterator<Item = u32> {
        let of_server = self.server.as_ref().map(|server| server.process);
        self.arguments.processes.iter().copied().chain(of_server)
    }

    /// Ends the program if necessary, traces it to its end, and returns its status.
    fn end_program(
        &mut self,
        end: End,
        recording: &mut Recording,
    ) -> Result<Option<ExitStatus>, Error> {
        let Some(program) = &mut self.program else {
            return Ok(None);
        };
        let asked = Instant::now();
        while end == End::Signal && asked.elapsed() < SAME_SIGNAL {
            if program.status()?.is_some() {
                break;
            }
            let _ = recording.poll(POLL);
        }
        match program.status()? {
            Some(status) => Ok(Some(status)),
            None => Ok(Some(program.end(|| {
                let _ = recording.poll(Duration::ZERO);
            })?)),
        }
    }

    /// Asks the server for the content of its files; empty if the server has ended.
    fn tables(&mut self) -> Tables {
        let Some(server) = &mut self.server else {
            return Tables::default();
        };
        Tables::ask(&mut server.control).unwrap_or_else(|error| {
            let text = format!("cannot read the content of the server's files: {error}");
            self.invocation.messages.warning(&text);
            Tables::default()
        })
    }

    fn exit(&self, end: End, status: Option<ExitStatus>) -> Exit {
        match (end, status) {
            // Without `--for` and COMMAND, a signal is the normal end.
            (End::Signal, None) if self.arguments.length.is_none() => Exit::Done,
            (End::Signal, _) => Exit::Interrupted,
            (End::Program, Some(status)) if !status.success() => {
                let text = format!("`{}` ended with {status}", self.arguments.command[0]);
                self.invocation.messages.warning(&text);
                Exit::CheckFailed
            }
            _ => Exit::Done,
        }
    }
}

/// Reason for the end of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Signal,
    Time,
    Program,
    Fault,
}

/// Whether a process is running. A zombie is not.
fn is_alive(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    state.is_some_and(|state| !"ZX".contains(state))
}
