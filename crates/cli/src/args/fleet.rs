//! Arguments of `dyno fleet` and `dyno agent`.

use super::experiments::{ExperimentCommand, OnHosts};
use super::run::{SuiteArguments, WsfDefaults};
use super::standing::SoakArguments;
use super::values::quantity;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};
use dyno_fleet::options::WatchedServer;
use dyno_plan::units::Span;
use std::net::IpAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct FleetArguments {
    #[command(subcommand)]
    pub(crate) command: FleetCommand,
}

/// Commands that run on many hosts.
#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Run one or more workloads, as `dyno run` does
    Run(Box<OnHosts<HostArguments, SuiteArguments>>),
    /// Run a workload for hours, as `dyno soak` does
    Soak(Box<OnHosts<HostArguments, SoakArguments>>),
    #[command(flatten)]
    Experiment(ExperimentCommand<HostArguments>),
    /// Write the manifests to run a plan's fleet on another system
    Render(RenderArguments),
}

/// The hosts of a fleet and their Redis.
#[derive(Debug, Args)]
pub(crate) struct HostArguments {
    /// Ansible inventory with the hosts of the plan
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present = "kubernetes",
        help_heading = "Fleet"
    )]
    pub(crate) inventory: Option<PathBuf>,
    /// Use the pods of `[fleet.kubernetes]` instead of hosts, in the current cluster of `kubectl`
    #[arg(
        long,
        conflicts_with_all = ["inventory", "redis", "redis_ca", "insecure_redis", "host_folder", "apply"],
        help_heading = "Fleet"
    )]
    pub(crate) kubernetes: bool,
    #[command(flatten)]
    pub(crate) redis: RedisArguments,
    /// Name of the run in Redis and on the hosts: up to 50 letters, digits, `.`, `_` and `-` (default: generated)
    #[arg(long = "fleet-run", value_name = "NAME", help_heading = "Fleet")]
    pub(crate) run: Option<String>,
    /// Keep the logs of all hosts in this folder (default: do not keep them)
    #[arg(long = "host-logs", value_name = "DIR", help_heading = "Fleet")]
    pub(crate) logs: Option<PathBuf>,
    /// Parent directory for the run directory on each host
    #[arg(long, value_name = "DIR", default_value = "/var/tmp", help_heading = "Fleet")]
    pub(crate) host_folder: String,
    /// Apply the changes of these `dyno doctor` checks to the server hosts during the run, or `all`; needs root there
    ///
    /// All changes are reverted at the end, even after an error.
    #[arg(long = "apply", value_name = "CHECKS", value_delimiter = ',', help_heading = "Fleet")]
    pub(crate) apply: Vec<String>,
}

/// Options of the Redis server that the controller and the agents use.
#[derive(Debug, Args)]
pub(crate) struct RedisArguments {
    /// Redis that the controller and all agents use: `redis://HOST[:PORT]`, or `rediss://` with TLS
    ///
    /// Pass an address with a password in the variable `DYNO_REDIS`, or in the file that `DYNO_REDIS_FILE` names.
    #[arg(long, value_name = "URL", help_heading = "Fleet")]
    pub(crate) redis: Option<String>,
    /// CA certificates (PEM) to verify Redis with `rediss://` (default: the system's)
    #[arg(long, value_name = "FILE", help_heading = "Fleet")]
    pub(crate) redis_ca: Option<PathBuf>,
    /// Allow a Redis on another host that lacks a password or TLS; anyone who can reach it then controls all agents
    #[arg(long, help_heading = "Fleet")]
    pub(crate) insecure_redis: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AgentArguments {
    #[command(flatten)]
    pub(crate) redis: RedisArguments,
    /// Name of the run
    #[arg(long, value_name = "NAME")]
    pub(crate) run: String,
    /// Number of this agent in the run, from 0
    #[arg(long, value_name = "N", env = "DYNO_AGENT_INDEX")]
    pub(crate) index: u32,
    /// Name of this host in the record (default: its host name)
    #[arg(long, value_name = "NAME", env = "DYNO_AGENT_HOST")]
    pub(crate) host: Option<String>,
    /// Start servers instead of loading them
    #[arg(long)]
    pub(crate) serve: bool,
    /// Observe this host and the server that listens on PORT, and start nothing; may be repeated
    ///
    /// DIR is the server's data folder (default: the folder on its command line).
    #[arg(long, value_name = "PORT[=DIR]", value_parser = watched, conflicts_with = "serve")]
    pub(crate) watch: Vec<WatchedServer>,
    /// Folder for server data and logs
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) folder: PathBuf,
    /// Allow the task to start this server program; may be repeated
    #[arg(long = "mongod", value_name = "PATH", requires = "serve")]
    pub(crate) programs: Vec<PathBuf>,
    /// Allow the task to use this data folder, in addition to `--folder`; may be repeated
    #[arg(long = "data-dir", value_name = "DIR", requires = "serve")]
    pub(crate) data_folders: Vec<PathBuf>,
    /// Allow the task to set this server parameter to this value; may be repeated
    #[arg(long = "parameter", value_name = "NAME=VALUE", value_parser = parameter, requires = "serve")]
    pub(crate) parameters: Vec<String>,
    /// Allow the task to spread the packets of this network card, as `dyno run --receive-packet-steering` does; may be repeated
    #[arg(
        long = "receive-packet-steering",
        value_name = "INTERFACE[=CPULIST]",
        requires = "serve"
    )]
    pub(crate) cards: Vec<String>,
    /// Apply the changes of these `dyno doctor` checks to this host during the run
    #[arg(long = "apply", value_name = "CHECKS", value_delimiter = ',')]
    pub(crate) apply: Vec<String>,
    /// Allow the task to start servers that others can reach without a password
    #[arg(long, requires = "serve")]
    pub(crate) without_password: bool,
    /// Allow the task to start servers that others can reach without TLS
    #[arg(long, requires = "serve")]
    pub(crate) without_tls: bool,
    /// Allow servers to listen on this address, in addition to loopback
    #[arg(long, value_name = "ADDRESS", requires = "serve")]
    pub(crate) listen: Option<IpAddr>,
    /// Allow servers to join a replica set with members on this host; may be repeated
    #[arg(long = "member", value_name = "HOST", requires = "serve")]
    pub(crate) members: Vec<String>,
    /// File with the users and certificates of the servers, as written by the controller; may be `/dev/stdin`
    #[arg(long, value_name = "FILE", conflicts_with = "watch")]
    pub(crate) secrets: Option<PathBuf>,
    /// Allow the task to load servers on this host; may be repeated (default: this host, by loopback or a socket)
    #[arg(long = "target", value_name = "HOST", conflicts_with_all = ["serve", "watch"])]
    pub(crate) targets: Vec<String>,
    /// Remove `--folder` if the controller or Redis is gone; the folder must have been made for the run
    #[arg(long, requires = "folder")]
    pub(crate) remove_folder: bool,
    /// Maximum time to wait for Redis and the controller
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, default_value = "1m")]
    pub(crate) join_within: Span,
    /// Path of the embedded server `secantusd-rs`
    #[arg(long, value_name = "PATH", env = "DYNO_EMBEDDED_SERVER")]
    pub(crate) embedded_server: Option<PathBuf>,
}

/// Accepts `NAME=VALUE`, the form that `--setParameter` takes.
fn parameter(text: &str) -> Result<String, String> {
    let name = text.split_once('=').map(|(name, _)| name);
    name.filter(|name| !name.is_empty())
        .ok_or("it must be `NAME=VALUE`, such as `ttlMonitorEnabled=false`")?;
    Ok(text.to_owned())
}

/// Parses `PORT` or `PORT=DIR` of a server that another program started.
fn watched(text: &str) -> Result<WatchedServer, String> {
    let (port, folder) = match text.split_once('=') {
        Some((port, folder)) => (port, Some(folder)),
        None => (text, None),
    };
    let port = port.parse().ok().filter(|port| *port > 0);
    let port = port
        .filter(|_| folder != Some(""))
        .ok_or("it must be `PORT` or `PORT=DIR`, such as `27017=/data/db`")?;
    Ok(WatchedServer { port, folder: folder.map(Into::into) })
}

#[derive(Debug, Args)]
pub(crate) struct RenderArguments {
    /// System to write manifests for
    #[arg(value_name = "SYSTEM")]
    pub(crate) system: RenderSystem,
    /// Plan with a `[fleet.kubernetes]` table; optional with `--wsf`
    #[arg(value_name = "PLAN", value_parser = NonEmptyStringValueParser::new(), required_unless_present = "wsf")]
    pub(crate) plan: Option<String>,
    /// Read the parameters of the Workload Services Framework's `Mongo-ycsb` from the environment, as `dyno fleet run` does
    #[arg(
        long,
        value_name = "DEFAULTS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "given"
    )]
    pub(crate) wsf: Option<WsfDefaults>,
    /// Empty or new folder for the manifests
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Name of the run in Redis
    #[arg(long = "fleet-run", value_name = "NAME", default_value = "fleet")]
    pub(crate) run: String,
}

/// Systems that can run a fleet from manifests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RenderSystem {
    /// Manifests for `kubectl apply -f`
    Kubernetes,
}
