//! What can be typed. The doc comments are the help text; what they mean is done in `commands`.

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
    AgentArguments, FleetArguments, FleetCommand, HOST_FOLDER, HostArguments, OnHosts,
    RedisArguments, RenderArguments, RenderSystem,
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
pub(crate) use tail::{SendingArguments, TailArguments};
pub(crate) use tools::{
    CompletionArguments, DoctorArguments, ExportArguments, ExportForm, ManArguments,
    ReportArguments, ResponderArguments, SelfcheckArguments,
};
pub(crate) use trace::{IndexBuildArguments, TraceArguments};
pub(crate) use tune::{AllowName, TuneArguments};
pub(crate) use values::property;

/// A dynamometer for MongoDB: puts a server on the bench, loads it, and says what it saw and how far to trust it
///
/// Exit status: 0 done; 1 done, but more operations failed than are tolerated; 2 bad arguments or
/// plan; 3 something around is not as needed (server, disk, permission); 4 internal error; 130
/// interrupted, what was measured until then is saved.
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
    /// What was typed, or why it cannot be read, or the help that was asked for.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        let mut matches = groups::with_groups(Self::command()).try_get_matches()?;
        Self::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut Self::command()))
    }
}

/// Options of every command.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct CommonArguments {
    /// Say only errors and warnings on standard error
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Say more on standard error: details of connections and of the server's start
    #[arg(long, short, global = true, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Folder for what is kept between runs: the result of `selfcheck`, deployments of `server start`
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
    /// Run a workload, or several: load what is missing, warm up, measure, report
    ///
    /// Several workloads, or several values of a key (`--set KEY=V1,V2`), are a suite: each is run with each, and one table has
    /// all of them. Exit status: 0 done; 1 more operations failed than are tolerated.
    Run(Box<SuiteArguments>),
    /// Run the load phase of a workload alone
    Load(Box<LoadArguments>),
    /// Do what `bin/ycsb` does, with the same options, properties and output
    ///
    /// `dyno ycsb --help` lists the options. They are those of YCSB, with a single dash.
    #[command(disable_help_flag = true)]
    Ycsb(YcsbArguments),
    /// Keep a load on for hours: bounded memory and disk, notices when something changes
    ///
    /// Exit status: 0 done; 1 more operations failed than are tolerated; 3 the server was away for longer than
    /// `--give-up`, or the disk was nearly full; what was recorded is kept.
    Soak(Box<SoakArguments>),
    /// Show the runs that go on
    ///
    /// Exit status: 0 at least one goes on; 1 none does.
    Status(StatusArguments),
    /// End a run that goes on, in order: what it recorded is kept
    ///
    /// Exit status: 0 it has ended; 3 there is none, or it did not end in time.
    Stop(StopArguments),
    /// Measure at several loads or settings: bounds, scalability, laws
    ///
    /// Exit status: 0 done; 1 more operations of a run failed than `client.tolerated_error_ratio` of the plan.
    Sweep(Box<SweepArguments>),
    /// Find the highest rate that the server sustains
    ///
    /// Exit status: 0 done; 1 more operations of a run failed than `client.tolerated_error_ratio` of the plan.
    Xmax(Box<XmaxArguments>),
    /// Find the highest offered rate that keeps an objective, such as `--p99 5ms`
    Slo(Box<SloArguments>),
    /// Compare two plans, or one with itself under other settings, in interleaved pairs of runs
    ///
    /// Exit status: 0 done; 1 more operations of a run failed than `client.tolerated_error_ratio` of its plan.
    Ab(Box<AbArguments>),
    /// Find the settings that really help, prove it, and say which of them matter
    ///
    /// What is changed on a server comes back after each run. Nothing that makes writes less durable is changed unless
    /// `--allow durability`. Exit status: 0 done, also if there is nothing to gain.
    Tune(Box<TuneArguments>),
    /// Compare two runs that exist already
    ///
    /// Exit status: 0 done; 1 with `--fail-if-slower`: B is slower, or the runs cannot be compared.
    Compare(CompareArguments),
    /// Look for changes over a series of runs of the same plan
    ///
    /// Exit status: 0 no regression; 1 the present level is worse than the best one before it, by more than `--margin`.
    History(HistoryArguments),
    /// Go on with an experiment that was interrupted
    Resume(ResumeArguments),
    /// Trace what processes read and write in files, by eBPF: offset, size and latency of each call
    ///
    /// Exit status: 0 done; 1 the program that was traced ended with a status other than 0; 2 bad arguments; 3
    /// this machine does not allow it, and why; 130 interrupted, what was traced until then is kept.
    Trace(Box<TraceArguments>),
    /// Build an index on documents that exist already, under trace: how their files are read, and what a remedy does
    ///
    /// Exit status: 0 done; 1 a remedy changed the documents; 2 bad arguments or plan; 3 something around is not as needed; 130
    /// interrupted, what was measured until then is kept.
    IndexBuild(Box<IndexBuildArguments>),
    /// Send messages through a capped collection by one driver after the other, and explain how long each took
    ///
    /// Exit status: 0 done; 1 messages were lost or came twice, or a driver failed; 2 bad arguments or plan; 3 something around
    /// is not as needed; 130 interrupted, what was measured until then is kept.
    Tail(Box<TailArguments>),
    /// Render a recorded run, an experiment or a trace again
    Report(ReportArguments),
    /// Write a recorded run in a form that other programs read
    Export(ExportArguments),
    /// Start servers that stay, look at them, stop them; show placements
    Server(ServerArguments),
    /// Measure the load generator itself and keep the result
    Selfcheck(SelfcheckArguments),
    /// Check this machine and a server before a run, and say what to change
    ///
    /// Exit status: 0 nothing fails; 1 a check fails, or a change could not be taken back; 2 bad
    /// arguments; 3 the server cannot be reached or a change cannot be made.
    Doctor(DoctorArguments),
    /// Run a workload, or an experiment, on many hosts at once
    ///
    /// The table `[fleet]` of the plan says which. Exit status: that of the verb; 3 a host, Redis or Ansible is not as needed.
    Fleet(FleetArguments),
    /// Do what the controller of a fleet says: load its servers, or start one
    ///
    /// Exit status: 0 the controller has ended the run; 3 the controller or Redis has gone, or this host is not as needed.
    Agent(Box<AgentArguments>),
    /// Print the completions of a shell
    Completions(CompletionArguments),
    /// Print the manual page, or write one page per command into a folder
    Man(ManArguments),
    /// Serve as a server with known behaviour until standard input ends: what a measurement must find is arithmetic
    ///
    /// It speaks enough of the protocol for the plans of `dyno run` and for drivers, stores nothing, and prints where it listens.
    /// `docs/measuring.md` has a walk.
    Responder(ResponderArguments),
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_plan::model::{Backend, ServerKind};
    use dyno_plan::request::ScheduleKind;
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
    fn the_definition_of_the_arguments_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn options_left_out_change_nothing() {
        let run = run(&[]).expect("a workload is enough");
        assert_eq!(run.target.workload.as_deref(), Some("a"));
        assert!(run.target.wsf.is_none() && run.rps.is_none());
        assert_eq!(
            (run.operations, run.duration, run.warmup, run.rate),
            (None, None, None, None)
        );
        assert_eq!(
            (
                run.client.clients,
                run.client.worker.threads,
                run.client.worker.seed
            ),
            (None, None, None)
        );
        assert_eq!(
            (run.data.records, run.data.batch, run.data.fresh),
            (None, None, false)
        );
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
        .expect("all of them are valid");
        assert_eq!(run.target.start.server, Some(ServerKind::Mongod));
        assert_eq!(run.target.start.mongod.as_deref(), Some("/m"));
        assert_eq!(run.target.start.data_dir.as_deref(), Some("/d"));
        assert_eq!(
            (run.data.records, run.operations, run.data.batch),
            (Some(7), Some(8), Some(6))
        );
        assert_eq!(
            (run.duration, run.warmup),
            (Some(Span::from_secs(9)), Some(Span::from_secs(1)))
        );
        assert_eq!(
            (
                run.client.clients,
                run.client.worker.threads,
                run.client.worker.seed
            ),
            (Some(3), Some(2), Some(5))
        );
        assert_eq!(run.rate, Some(Rate(20_000.0)));
        assert_eq!(run.schedule, Some(ScheduleKind::Poisson));
        assert_eq!(run.client.worker.backend, Some(Backend::Driver));
        let properties =
            [("fieldcount", "3"), ("x", "a=b")].map(|(name, value)| (name.into(), value.into()));
        assert_eq!(run.target.properties, properties);
        assert_eq!(
            run.client.worker.timeout,
            Some(Span(std::time::Duration::from_millis(250)))
        );
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
    fn arguments_of_ycsb_are_passed_on_untouched() {
        let all = [
            "dyno", "ycsb", "run", "mongodb", "-s", "-P", "w", "-p", "a=b", "-threads", "4",
            "--help",
        ];
        let arguments = Arguments::try_parse_from(all).expect("they are read later");
        let Command::Ycsb(ycsb) = arguments.command else {
            panic!("not ycsb")
        };
        assert_eq!(ycsb.arguments, all[2..]);
    }

    #[test]
    fn a_stall_of_the_responder_needs_both_times() {
        assert!(Arguments::try_parse_from(["dyno", "responder", "--stall-every", "1s"]).is_err());
        let both = [
            "dyno",
            "responder",
            "--stall-every",
            "1s",
            "--stall-length",
            "10ms",
        ];
        assert!(Arguments::try_parse_from(both).is_ok());
    }
}
