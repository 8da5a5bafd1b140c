//! Arguments of `dyno fleet` and of its agents.

use super::experiments::{
    AbArguments, ResumeArguments, SloArguments, SweepArguments, XmaxArguments,
};
use super::run::{SuiteArguments, WsfDefaults};
use super::standing::SoakArguments;
use super::tune::TuneArguments;
use super::values::quantity;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};
use dyno_fleet::options::WatchedServer;
use dyno_plan::units::Span;
use std::net::IpAddr;
use std::path::PathBuf;

/// Where folders of runs are made on hosts if nobody says another place.
pub(crate) const HOST_FOLDER: &str = "/var/tmp";

#[derive(Debug, Args)]
pub(crate) struct FleetArguments {
    #[command(subcommand)]
    pub(crate) command: FleetCommand,
}

/// What can be done on many hosts.
#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// As `dyno run`
    Run(Box<OnHosts<SuiteArguments>>),
    /// As `dyno soak`
    Soak(Box<OnHosts<SoakArguments>>),
    /// As `dyno sweep`
    Sweep(Box<OnHosts<SweepArguments>>),
    /// As `dyno xmax`
    Xmax(Box<OnHosts<XmaxArguments>>),
    /// As `dyno slo`
    Slo(Box<OnHosts<SloArguments>>),
    /// As `dyno ab`
    Ab(Box<OnHosts<AbArguments>>),
    /// As `dyno tune`
    Tune(Box<OnHosts<TuneArguments>>),
    /// As `dyno resume`, of an experiment that began on a fleet
    Resume(Box<OnHosts<ResumeArguments>>),
    /// Write what another system needs to run the fleet of a plan
    Render(RenderArguments),
}

/// A verb, and the hosts that it is done on.
#[derive(Debug, Args)]
pub(crate) struct OnHosts<T: Args> {
    #[command(flatten)]
    pub(crate) hosts: HostArguments,
    #[command(flatten)]
    pub(crate) verb: T,
}

/// The hosts of a fleet, and where they meet.
#[derive(Debug, Args)]
pub(crate) struct HostArguments {
    /// Inventory of Ansible with the hosts of the plan
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present = "kubernetes",
        help_heading = "Fleet"
    )]
    pub(crate) inventory: Option<PathBuf>,
    /// Pods of `[fleet.kubernetes]` in place of hosts, in the cluster that `kubectl` is set to
    #[arg(long, conflicts_with = "inventory", help_heading = "Fleet")]
    pub(crate) kubernetes: bool,
    #[command(flatten)]
    pub(crate) redis: RedisArguments,
    /// Name of the run in Redis and on the hosts, up to 56 letters, digits, `.`, `_` and `-`; default: one of its own
    #[arg(long = "fleet-run", value_name = "NAME", help_heading = "Fleet")]
    pub(crate) run: Option<String>,
    /// Keep the logs of all hosts here; default: nothing is kept
    #[arg(long = "host-logs", value_name = "DIR", help_heading = "Fleet")]
    pub(crate) logs: Option<PathBuf>,
    /// Folder on each host that a folder for the run is made in, and taken away from
    #[arg(
        long,
        value_name = "DIR",
        default_value = HOST_FOLDER,
        help_heading = "Fleet"
    )]
    pub(crate) host_folder: String,
    /// Follow the advice of these checks of `dyno doctor` on the hosts of servers for the time of the run; needs root there
    ///
    /// Everything is put back at the end, also after an error. `all` stands for all checks.
    #[arg(
        long = "apply",
        value_name = "CHECKS",
        value_delimiter = ',',
        help_heading = "Fleet"
    )]
    pub(crate) apply: Vec<String>,
}

/// The meeting point.
#[derive(Debug, Args)]
pub(crate) struct RedisArguments {
    /// Redis that all meet at, `redis://HOST[:PORT]`, or `rediss://` with TLS
    ///
    /// One with a password is taken from the variable `DYNO_REDIS`, or from the file that `DYNO_REDIS_FILE` names.
    #[arg(long, value_name = "URL", help_heading = "Fleet")]
    pub(crate) redis: Option<String>,
    /// Certificates (PEM) that Redis is trusted by with `rediss://`; default: those of the system
    #[arg(long, value_name = "FILE", help_heading = "Fleet")]
    pub(crate) redis_ca: Option<PathBuf>,
    /// Take a Redis on another host without a password, or without `rediss://`: whoever reaches it can give work to all agents
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
    /// Name of this host in the record; default: its own
    #[arg(long, value_name = "NAME", env = "DYNO_AGENT_HOST")]
    pub(crate) host: Option<String>,
    /// Start servers in place of loading them
    #[arg(long)]
    pub(crate) serve: bool,
    /// Read this host and the server that listens on PORT, and start nothing; again for more servers
    ///
    /// DIR holds its data; without it, the folder that is on its command line.
    #[arg(long, value_name = "PORT[=DIR]", value_parser = watched, conflicts_with = "serve")]
    pub(crate) watch: Vec<WatchedServer>,
    /// Folder for data and logs of servers
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) folder: PathBuf,
    /// Program of a server that the work may name by its path; again for more
    #[arg(long = "mongod", value_name = "PATH", requires = "serve")]
    pub(crate) programs: Vec<PathBuf>,
    /// Folder that the work may name for data, besides that of `--folder`; again for more
    #[arg(long = "data-dir", value_name = "DIR", requires = "serve")]
    pub(crate) data_folders: Vec<PathBuf>,
    /// Parameter of a server that the work may set, with this value; again for more
    #[arg(long = "parameter", value_name = "NAME=VALUE", value_parser = parameter, requires = "serve")]
    pub(crate) parameters: Vec<String>,
    /// Network card whose packets the work may send to other CPUs, as `--rps` of `dyno run`; again for more
    #[arg(long = "rps", value_name = "INTERFACE[=CPULIST]", requires = "serve")]
    pub(crate) cards: Vec<String>,
    /// Checks of `dyno doctor` whose advice is followed on this host for the time of the run
    #[arg(long = "apply", value_name = "CHECKS", value_delimiter = ',')]
    pub(crate) apply: Vec<String>,
    /// The work may have servers that others reach without a password
    #[arg(long, requires = "serve")]
    pub(crate) without_password: bool,
    /// The work may have servers that others reach without TLS
    #[arg(long, requires = "serve")]
    pub(crate) without_tls: bool,
    /// Address that servers may listen on, besides those of loopback
    #[arg(long, value_name = "ADDRESS", requires = "serve")]
    pub(crate) listen: Option<IpAddr>,
    /// Host of a member that servers may be joined with into a replica set; again for more
    #[arg(long = "member", value_name = "HOST", requires = "serve")]
    pub(crate) members: Vec<String>,
    /// File with users and certificates of the servers, as the controller writes it; it may be `/dev/stdin`
    #[arg(long, value_name = "FILE", conflicts_with = "watch")]
    pub(crate) secrets: Option<PathBuf>,
    /// Host that the work may have loaded; again for more; default: this one, by loopback or a socket
    #[arg(long = "target", value_name = "HOST", conflicts_with_all = ["serve", "watch"])]
    pub(crate) targets: Vec<String>,
    /// Remove that folder when the controller or Redis has gone, and nobody else would; it must have been made for the run
    #[arg(long, requires = "folder")]
    pub(crate) remove_folder: bool,
    /// Longest wait for Redis and the controller
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, default_value = "1m")]
    pub(crate) join_within: Span,
    /// Path of the embedded server `secantusd-rs`
    #[arg(long, value_name = "PATH", env = "DYNO_EMBEDDED_SERVER")]
    pub(crate) embedded_server: Option<PathBuf>,
}

/// A parameter as it stands after `--setParameter`.
fn parameter(text: &str) -> Result<String, String> {
    let name = text.split_once('=').map(|(name, _)| name);
    name.filter(|name| !name.is_empty())
        .ok_or("it must be a name and a value, such as `ttlMonitorEnabled=false`")?;
    Ok(text.to_owned())
}

/// A server of somebody else on this machine.
fn watched(text: &str) -> Result<WatchedServer, String> {
    let (port, folder) = match text.split_once('=') {
        Some((port, folder)) => (port, Some(folder)),
        None => (text, None),
    };
    let port = port.parse().ok().filter(|port| *port > 0);
    let port = port
        .filter(|_| folder != Some(""))
        .ok_or("it must be a port, or a port and a folder, such as `27017=/data/db`")?;
    Ok(WatchedServer {
        port,
        folder: folder.map(Into::into),
    })
}

#[derive(Debug, Args)]
pub(crate) struct RenderArguments {
    /// The system
    #[arg(value_name = "SYSTEM")]
    pub(crate) system: RenderSystem,
    /// A plan with `[fleet.kubernetes]`; may be left out with `--wsf`
    #[arg(value_name = "PLAN", value_parser = NonEmptyStringValueParser::new(), required_unless_present = "wsf")]
    pub(crate) plan: Option<String>,
    /// Take the parameters of the Workload Services Framework's `Mongo-ycsb` from the environment, as `dyno fleet run` does
    #[arg(
        long,
        value_name = "DEFAULTS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "given"
    )]
    pub(crate) wsf: Option<WsfDefaults>,
    /// Folder for the manifests, which must not exist or be empty
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Name of the run in Redis
    #[arg(long = "fleet-run", value_name = "NAME", default_value = "fleet")]
    pub(crate) run: String,
}

/// Systems that manifests are written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RenderSystem {
    /// Manifests for `kubectl apply -k`
    Kubernetes,
}
