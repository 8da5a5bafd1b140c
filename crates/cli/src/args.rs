//! Command-line arguments. The doc comments are the help text; `commands` executes the commands.

mod experiments;
mod fleet;
mod groups;
mod names;
mod run;
mod servers;
mod standing;
mod tail;
mod tools;
pub(crate) mod trace;
mod tune;
mod values;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
pub(crate) use experiments::{
    AbArguments, CompareArguments, ExperimentArguments, HistoryArguments, ObjectiveArguments,
    ResumeArguments, SloArguments, SweepArguments, XmaxArguments,
};
pub(crate) use fleet::{
    AgentArguments, FleetArguments, FleetCommand, OnHosts, RedisArguments, RenderArguments,
    RenderSystem,
};
pub(crate) use run::{
    DataArguments, ExtentArguments, LoadArguments, OrderName, OutputArguments, RunArguments,
    StartArguments, SuiteArguments, TargetArguments, WorkerArguments, WsfDefaults, YcsbArguments,
};
pub(crate) use servers::{
    ServerArguments, ServerCommand, ServerInstallArguments, ServerListArguments,
    ServerPlanArguments, ServerStartArguments, ServerStatusArguments,
};
pub(crate) use standing::{
    GrafanaArguments, MetricsArguments, ObserveArguments, PriceArguments, SoakArguments,
    StatusArguments, StopArguments,
};
use std::path::PathBuf;
pub(crate) use tail::TailArguments;
pub(crate) use tools::{
    CompletionArguments, DoctorArguments, ExportArguments, ExportForm, ManArguments,
    ReportArguments, ResponderArguments, SelfcheckArguments,
};
pub(crate) use trace::{IndexBuildArguments, TraceArguments};
pub(crate) use tune::{AllowName, TuneArguments};
pub(crate) use values::property;

/// A dynamometer for MongoDB: loads a server, measures it, and reports the results with their uncertainty
///
/// Exit status: 0 done; 1 done, but more operations failed than tolerated; 2 bad arguments or plan;
/// 3 environment error (server, disk, permission); 4 internal error; 130 interrupted (results so far
/// are saved).
#[derive(Debug, Parser)]
#[command(
    name = "dyno",
    version = env!("DYNO_VERSION"),
    max_term_width = 100,
    disable_help_subcommand = true
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) common: CommonArguments,
}

impl Arguments {
    /// Parses the command line. Help and version requests are returned as errors, as in clap.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        let mut matches = groups::with_groups(Self::command()).try_get_matches()?;
        Self::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut Self::command()))
    }
}

/// Options of every command.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct CommonArguments {
    /// Print only errors and warnings on standard error
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Print details of connections and server startup on standard error
    #[arg(long, short, global = true, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Folder for state kept between runs: `selfcheck` results, `server start` deployments
    ///
    /// Default: `$XDG_STATE_HOME/mongodyno`, or `~/.local/state/mongodyno`.
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        env = "DYNO_STATE_DIR",
        hide_env_values = true,
        hide_short_help = true
    )]
    pub(crate) state_dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run one or more workloads: load missing data, warm up, measure, report
    ///
    /// Several workloads, or several values of a key (`--set KEY=V1,V2`), form a suite: each workload runs with each setting, and
    /// one table shows all results. Exit status: 0 done; 1 more operations failed than tolerated.
    Run(Box<SuiteArguments>),
    /// Run only the load phase of a workload
    Load(Box<LoadArguments>),
    /// Replace `bin/ycsb`, with the same options, properties and output
    ///
    /// `dyno ycsb --help` lists the options. They are YCSB's own, with a single dash.
    #[command(disable_help_flag = true)]
    Ycsb(YcsbArguments),
    /// Run a workload for hours, with bounded memory and disk use and a notice of every change
    ///
    /// Exit status: 0 done; 1 more operations failed than tolerated; 3 the server was unreachable for longer than
    /// `--give-up`, or the disk was nearly full (the record so far is kept).
    Soak(Box<SoakArguments>),
    /// Show the runs in progress
    ///
    /// Exit status: 0 at least one run is in progress; 1 none.
    Status(StatusArguments),
    /// Stop a run in progress and keep its record
    ///
    /// Exit status: 0 the run has ended; 3 no run is in progress, or the run did not end in time.
    Stop(StopArguments),
    /// Measure at several loads or settings, and derive bounds and scalability
    ///
    /// Exit status: 0 done; 1 a run exceeded the plan's `client.tolerated_error_ratio`.
    Sweep(Box<SweepArguments>),
    /// Find the highest rate that the server sustains
    ///
    /// Exit status: 0 done; 1 a run exceeded the plan's `client.tolerated_error_ratio`.
    Xmax(Box<XmaxArguments>),
    /// Find the highest offered rate that meets an objective, such as `--p99 5ms`
    Slo(Box<SloArguments>),
    /// Compare two plans, or two settings of one plan, in interleaved pairs of runs
    ///
    /// Exit status: 0 done; 1 a run exceeded its plan's `client.tolerated_error_ratio`.
    Ab(Box<AbArguments>),
    /// Search for better settings, confirm the gain, and show which settings matter
    ///
    /// Changed server settings are restored after each run. Settings that make writes less durable are changed only with
    /// `--allow durability`. Exit status: 0 done, even if there is nothing to gain.
    Tune(Box<TuneArguments>),
    /// Compare two existing runs
    ///
    /// Exit status: 0 done; 1 with `--fail-if-slower` if B is slower or the runs cannot be compared.
    Compare(CompareArguments),
    /// Detect changes in a series of runs of the same plan
    ///
    /// Exit status: 0 no regression; 1 the current level is worse than the best earlier level by more than `--margin`.
    History(HistoryArguments),
    /// Continue an interrupted experiment
    Resume(ResumeArguments),
    /// Trace the file reads and writes of processes with eBPF: offset, size and latency of each call
    ///
    /// Exit status: 0 done; 1 the traced program ended with a status other than 0; 2 bad arguments; 3 this machine does not
    /// allow tracing (the message says why); 130 interrupted (the trace so far is kept).
    Trace(Box<TraceArguments>),
    /// Trace an index build on existing documents, before and after a remedy for their order on disk
    ///
    /// Exit status: 0 done; 1 a remedy changed the documents; 2 bad arguments or plan; 3 environment error; 130 interrupted
    /// (results so far are kept).
    IndexBuild(Box<IndexBuildArguments>),
    /// Send messages through a capped collection with each driver in turn, and explain their latency
    ///
    /// Exit status: 0 done; 1 messages were lost or duplicated, or a driver failed; 2 bad arguments or plan; 3 environment
    /// error; 130 interrupted (results so far are kept).
    Tail(Box<TailArguments>),
    /// Render a recorded run, experiment or trace again
    Report(ReportArguments),
    /// Export a recorded run to a format that other programs read
    Export(ExportArguments),
    /// Start, inspect and stop long-lived servers; show placements
    Server(ServerArguments),
    /// Measure the load generator itself and store the result
    Selfcheck(SelfcheckArguments),
    /// Check this machine and a server before a run, and recommend changes
    ///
    /// Exit status: 0 no check fails; 1 a check fails, or a change could not be reverted; 2 bad
    /// arguments; 3 the server cannot be reached, or a change cannot be made.
    Doctor(DoctorArguments),
    /// Run a workload or an experiment on many hosts at once
    ///
    /// The plan's `[fleet]` table lists the hosts. Exit status: as for the command; 3 a problem with a host, Redis or Ansible.
    Fleet(FleetArguments),
    /// Load or start servers on this host for the controller of a fleet
    ///
    /// Exit status: 0 the controller ended the run; 3 the controller or Redis is gone, or a problem with this host.
    Agent(Box<AgentArguments>),
    /// Print shell completions
    Completions(CompletionArguments),
    /// Print the manual page, or write one page per command to a folder
    Man(ManArguments),
    /// Act as a server with known behaviour until standard input ends, to verify measurements
    ///
    /// It speaks enough of the protocol for drivers and the plans of `dyno run`, stores nothing, and prints its address.
    /// See `docs/measuring.md` for a walkthrough.
    Responder(ResponderArguments),
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_plan::model::{Backend, ScheduleKind, ServerKind};
    use dyno_plan::units::{Rate, Span};
    use dyno_report::Format;

    fn run(arguments: &[&str]) -> Result<Box<RunArguments>, clap::Error> {
        let all = ["dyno", "run", "a"].iter().chain(arguments);
        Arguments::try_parse_from(all).map(|arguments| match arguments.command {
            Command::Run(suite) => Box::new(suite.run),
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn argument_definitions_are_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn omitted_options_change_nothing() {
        let run = run(&[]).expect("a workload is enough");
        assert_eq!(run.target.workload.as_deref(), Some("a"));
        assert!(run.target.wsf.is_none() && run.rps.is_none());
        assert_eq!((run.operations, run.duration, run.warmup, run.rate), (None, None, None, None));
        assert_eq!(
            (run.client.clients, run.client.worker.threads, run.client.worker.seed),
            (None, None, None)
        );
        assert_eq!((run.data.records, run.data.batch, run.data.fresh), (None, None, false));
        assert_eq!(run.output.format, Format::Human);
        assert!(!run.no_load && !run.output.dry_run && run.output.out.is_none());
    }

    #[test]
    fn every_option_of_run_is_read() {
        let run = run(&[
            "--server",
            "mongod",
            "--mongod",
            "/m",
            "--data-dir",
            "/d",
            "--records",
            "7",
            "--operations",
            "8",
            "--duration",
            "9s",
            "--warmup",
            "1s",
            "--clients",
            "3",
            "--threads",
            "2",
            "--rate",
            "20k",
            "--schedule",
            "poisson",
            "--backend",
            "driver",
            "--seed",
            "5",
            "-p",
            "fieldcount=3",
            "-p",
            "x=a=b",
            "--timeout",
            "250ms",
            "--tolerate-errors",
            "0.01",
            "--out",
            "/o",
            "--format",
            "json",
            "--dry-run",
            "--no-load",
            "--batch",
            "6",
            "--lenient",
        ])
        .expect("all options are valid");
        assert_eq!(run.target.start.server, Some(ServerKind::Mongod));
        assert_eq!(run.target.start.mongod.as_deref(), Some("/m"));
        assert_eq!(run.target.start.data_dir.as_deref(), Some("/d"));
        assert_eq!((run.data.records, run.operations, run.data.batch), (Some(7), Some(8), Some(6)));
        assert_eq!(
            (run.duration, run.warmup),
            (Some(Span::from_secs(9)), Some(Span::from_secs(1)))
        );
        assert_eq!(
            (run.client.clients, run.client.worker.threads, run.client.worker.seed),
            (Some(3), Some(2), Some(5))
        );
        assert_eq!(run.rate, Some(Rate(20_000.0)));
        assert_eq!(run.schedule, Some(ScheduleKind::Poisson));
        assert_eq!(run.client.worker.backend, Some(Backend::Driver));
        let properties =
            [("fieldcount", "3"), ("x", "a=b")].map(|(name, value)| (name.into(), value.into()));
        assert_eq!(run.target.properties, properties);
        assert_eq!(run.client.worker.timeout, Some(Span(std::time::Duration::from_millis(250))));
        assert_eq!(run.tolerate_errors, Some(0.01));
        assert_eq!(run.output.out, Some("/o".into()));
        assert_eq!(run.output.format, Format::Json);
        assert!(run.output.dry_run && run.no_load && run.target.lenient);
    }

    #[test]
    fn bad_values_and_conflicts_are_refused() {
        for arguments in [
            &["--duration", "soon"][..],
            &["--rate", "0"],
            &["--rate", "fast"],
            &["--schedule", "open"],
            &["--backend", "java"],
            &["--format", "xml"],
            &["--clients", "-1"],
            &["-p", "novalue"],
            &["-p", "=x"],
            &["--no-load", "--fresh"],
            &["--uri", "mongodb://h", "--mongod", "/m"],
            &["--uri", "mongodb://h", "--data-dir", "/d"],
            &["--quiet", "--verbose"],
            &["--rps", ""],
            &["--unknown"],
        ] {
            assert!(run(arguments).is_err(), "{arguments:?}");
        }
    }

    #[test]
    fn run_needs_a_workload_unless_wsf_is_given() {
        assert!(Arguments::try_parse_from(["dyno", "run"]).is_err());
        for command in ["run", "load"] {
            assert!(Arguments::try_parse_from(["dyno", command, "--wsf"]).is_ok());
            assert!(Arguments::try_parse_from(["dyno", command, "a", "--wsf"]).is_ok());
        }
    }

    #[test]
    fn ycsb_arguments_are_passed_on_unchanged() {
        let all = [
            "dyno", "ycsb", "run", "mongodb", "-s", "-P", "w", "-p", "a=b", "-threads", "4",
            "--help",
        ];
        let arguments = Arguments::try_parse_from(all).expect("they are read later");
        let Command::Ycsb(ycsb) = arguments.command else { panic!("not ycsb") };
        assert_eq!(ycsb.arguments, all[2..]);
    }

    #[test]
    fn responder_stall_needs_both_times() {
        assert!(Arguments::try_parse_from(["dyno", "responder", "--stall-every", "1s"]).is_err());
        let both = ["dyno", "responder", "--stall-every", "1s", "--stall-length", "10ms"];
        assert!(Arguments::try_parse_from(both).is_ok());
    }
}
