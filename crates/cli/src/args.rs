//! Command-line arguments. The doc comments are the help text; `commands` executes the commands.

pub(crate) mod examples;
pub(crate) mod experiments;
pub(crate) mod fleet;
pub(crate) mod groups;
mod habits;
mod names;
mod order;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod servers;
pub(crate) mod standing;
pub(crate) mod tail;
pub(crate) mod tools;
pub(crate) mod trace;
pub(crate) mod values;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use experiments::{CompareArguments, ExperimentCommand, HistoryArguments, ThisHost};
use fleet::{AgentArguments, FleetArguments};
use run::{LoadArguments, SuiteArguments, YcsbArguments};
use runs::RunsArguments;
use servers::ServerArguments;
use standing::{SoakArguments, StatusArguments, StopArguments};
use std::ffi::OsString;
use std::path::PathBuf;
use tail::TailArguments;
use tools::{
    CompletionArguments, DoctorArguments, ExportArguments, ManArguments, ReportArguments,
    ResponderArguments, SelfcheckArguments,
};
use trace::{IndexBuildArguments, TraceArguments};

/// Measure MongoDB under load, and learn how far to trust the result
///
/// Start with `run`. Then `sweep` shows how the server responds to more load, `xmax` finds its highest rate, `slo` the
/// highest rate that keeps a limit, and `ab` compares two settings.
///
/// Exit status: 0 done; 1 done, but more operations failed than tolerated; 2 bad arguments or plan;
/// 3 environment error (server, disk, permission); 4 internal error; 5 a comparison cannot tell;
/// 6 runs cannot be compared; 130 interrupted (results so far are saved).
#[derive(Debug, Parser)]
#[command(
    name = "dyno",
    version = env!("DYNO_VERSION"),
    max_term_width = groups::WIDTH,
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
        parse(&std::env::args_os().collect::<Vec<_>>())
    }
}

/// The commands with the help that people see.
pub(crate) fn command() -> clap::Command {
    examples::with_examples(without_examples())
}

/// The commands with the help that people see, for pages that show examples elsewhere.
pub(crate) fn without_examples() -> clap::Command {
    groups::with_groups(order::in_order(Arguments::command()))
}

/// Parses a command line; errors have a hint for words of other programs.
fn parse(words: &[OsString]) -> Result<Arguments, clap::Error> {
    let mut command = command();
    let found = command.try_get_matches_from_mut(words);
    let mut matches = found.map_err(|error| habits::with_hint(error, &command, words))?;
    Arguments::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// Options of every command.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "General")]
pub(crate) struct CommonArguments {
    /// Print only errors and warnings on standard error
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Also print details of connections and server startup
    #[arg(long, short, global = true, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Folder for state kept between runs: `selfcheck` results, `server start` deployments
    ///
    /// Default: `DYNO_STATE_DIR`, else `$XDG_STATE_HOME/mongodyno`, or `~/.local/state/mongodyno`.
    // Without `env`: the usage line shows each option with a value from the environment as if it were required.
    #[arg(long, global = true, value_name = "DIR", hide_short_help = true)]
    pub(crate) state_dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure a workload: load missing data, warm up, measure, report
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
    /// Run a workload for hours, and report every change
    ///
    /// Memory and disk use are bounded.
    ///
    /// Exit status: 0 done; 1 more operations failed than tolerated; 3 the server was unreachable for longer than
    /// `--give-up`, or the disk was nearly full (the record so far is kept).
    Soak(Box<SoakArguments>),
    /// List running benchmarks
    ///
    /// Exit status: 0 at least one run is in progress; 1 none.
    Status(StatusArguments),
    /// Stop a run in progress and keep its record
    ///
    /// Exit status: 0 the run has ended; 3 no run is in progress, or the run did not end in time.
    Stop(StopArguments),
    #[command(flatten)]
    Experiment(ExperimentCommand<ThisHost>),
    /// Compare existing runs, one or several of each side
    ///
    /// Exit status: 0 done, and no `--fail-if-worse` is exceeded; 1 one is certainly exceeded; 5 it is uncertain whether one is
    /// exceeded; 6 the runs measured different things and cannot be compared.
    Compare(CompareArguments),
    /// Detect changes in a series of runs of the same plan
    ///
    /// Exit status: 0 no regression; 1 the current level is worse than the best earlier level by more than `--margin`.
    History(HistoryArguments),
    /// Trace the file reads and writes of processes with eBPF
    ///
    /// The trace has offset, size and latency of each call.
    ///
    /// Exit status: 0 done; 1 the traced program ended with a status other than 0; 2 bad arguments; 3 this machine does not
    /// allow tracing (the message says why); 130 interrupted (the trace so far is kept).
    Trace(Box<TraceArguments>),
    /// Trace an index build, before and after reordering the documents
    ///
    /// Exit status: 0 done; 1 a remedy changed the documents; 2 bad arguments or plan; 3 environment error; 130 interrupted
    /// (results so far are kept).
    IndexBuild(Box<IndexBuildArguments>),
    /// Send messages through a capped collection with each driver
    ///
    /// Exit status: 0 done; 1 messages were lost or duplicated, or a driver failed; 2 bad arguments or plan; 3 environment
    /// error; 130 interrupted (results so far are kept).
    Tail(Box<TailArguments>),
    /// List recorded runs and experiments, the newest first; delete those that are no longer needed
    ///
    /// Exit status: 0 done; 1 the question of `--prune` was not answered with `y`; 2 bad arguments; 3 a record cannot be deleted.
    Runs(RunsArguments),
    /// Render a recorded run, experiment or trace again
    Report(ReportArguments),
    /// Export a recorded run to a format that other programs read
    Export(ExportArguments),
    /// Start, inspect and stop long-lived servers; show placements
    Server(ServerArguments),
    /// Measure the load generator itself and store the result
    Selfcheck(SelfcheckArguments),
    /// Check this machine and a server, and recommend changes
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
    /// Print the manual page, or write one page per command
    Man(ManArguments),
    /// Fake server with a known latency, to check dyno's numbers
    ///
    /// It runs until standard input ends.
    /// It speaks enough of the protocol for drivers and the plans of `dyno run`, stores nothing, and prints its address.
    /// See `docs/measuring.md` for a walkthrough.
    Responder(ResponderArguments),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::run::RunArguments;
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
        assert_eq!(run.base.target.workload.as_deref(), Some("a"));
        assert!(run.base.target.wsf.is_none() && run.receive_packet_steering.is_none());
        assert_eq!(
            (run.operations, run.duration, run.base.warmup, run.rate),
            (None, None, None, None)
        );
        assert_eq!(
            (run.client.clients, run.client.worker.threads, run.client.worker.seed),
            (None, None, None)
        );
        assert_eq!(
            (run.base.data.records, run.base.data.batch, run.base.data.fresh),
            (None, None, false)
        );
        assert_eq!(run.base.output.format, Format::Human);
        assert!(!run.base.no_load && !run.base.output.dry_run && run.base.output.out.is_none());
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
        assert_eq!(run.base.target.server.start.server, Some(ServerKind::Mongod));
        assert_eq!(run.base.target.server.start.mongod.as_deref(), Some("/m"));
        assert_eq!(run.base.target.server.start.data_dir.as_deref(), Some("/d"));
        assert_eq!(
            (run.base.data.records, run.operations, run.base.data.batch),
            (Some(7), Some(8), Some(6))
        );
        assert_eq!(
            (run.duration, run.base.warmup),
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
        assert_eq!(run.base.target.properties, properties);
        assert_eq!(run.client.worker.timeout, Some(Span(std::time::Duration::from_millis(250))));
        assert_eq!(run.tolerate_errors, Some(0.01));
        assert_eq!(run.base.output.out, Some("/o".into()));
        assert_eq!(run.base.output.format, Format::Json);
        assert!(run.base.output.dry_run && run.base.no_load && run.base.target.lenient);
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
            &["--receive-packet-steering", ""],
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
