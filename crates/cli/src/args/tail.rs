//! Arguments of `dyno tail`.

use super::names::one_of;
use super::run::ChosenServer;
use super::standing::ShownArguments;
use super::trace::PageArguments;
use super::values::{count, quantity, trimmed};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use dyno_plan::tail::TailMode;
use dyno_plan::units::{Bytes, Span};
use serde::Serialize;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct TailArguments {
    /// Plan: `tail`, `tail-riddle`, `tail-pool`, or a plan file with a `[tail]` table; see `docs/tail.md`
    #[arg(value_name = "PLAN", default_value = "tail", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) plan: String,
    #[command(flatten)]
    pub(crate) server: ChosenServer,
    #[command(flatten)]
    pub(crate) sending: SendingArguments,
    #[command(flatten)]
    pub(crate) shown: ShownArguments,
    /// Folder of the experiment (default: `experiments/TIME-tail-NAME`)
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) page: PageArguments,
    /// Print the plan without running it
    #[arg(long, help_heading = "Output")]
    pub(crate) dry_run: bool,
}

/// The messages, their producers and their consumers. The fields are the keys of the plan's table `tail`.
#[derive(Debug, Args, Serialize)]
#[command(next_help_heading = "Messages")]
pub(crate) struct SendingArguments {
    /// Drivers of the producers, measured in turn: `wire`, or folders of `drivers/` (default: all that can run here)
    #[arg(long = "producer", value_name = "DRIVER,…", value_delimiter = ',', value_parser = trimmed)]
    pub(crate) producers: Vec<String>,
    /// Drivers of the consumers (default: `wire`)
    #[arg(long = "consumer", value_name = "DRIVER,…", value_delimiter = ',', value_parser = trimmed)]
    pub(crate) consumers: Vec<String>,
    /// Messages per producer, such as `10k` (default: 100000)
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) messages: Option<u64>,
    /// Offered messages per second (default: send each message as soon as `--in-flight` allows)
    #[arg(long = "rate", value_name = "R")]
    pub(crate) rate_per_s: Option<f64>,
    /// Maximum number of unanswered inserts, or `unbounded`; several values are measured in turn (default: 1)
    #[arg(long, value_name = "W,…", value_delimiter = ',', value_parser = trimmed)]
    pub(crate) in_flight: Vec<String>,
    /// Connections in a driver's pool; several values are measured in turn (default: 100)
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub(crate) pool: Vec<u32>,
    /// Measure each combination N times, in rounds of all combinations in random order (default: 1)
    ///
    /// With 2 or more the report has intervals, and shows which differences exceed them. `--seed` fixes the order.
    #[arg(long, value_name = "N")]
    pub(crate) repeat: Option<u32>,
    /// Concurrent producers (default: 1)
    #[arg(long = "producers", value_name = "P")]
    pub(crate) producers_at_once: Option<u32>,
    /// Concurrent consumers; each receives all messages (default: 1)
    #[arg(long = "consumers", value_name = "C")]
    pub(crate) consumers_at_once: Option<u32>,
    /// Run the producers on another host, named as for `ssh`
    ///
    /// The clocks of the hosts are compared continuously, see `docs/tail.md`. `DYNO_SSH` names a program to use instead of `ssh`.
    #[arg(long, value_name = "HOST")]
    pub(crate) producer_host: Option<String>,
    /// Run the consumers on another host, named as for `ssh`
    #[arg(long, value_name = "HOST")]
    pub(crate) consumer_host: Option<String>,
    /// Folder of the drivers on other hosts (default: the same as here)
    #[arg(long, value_name = "DIR")]
    pub(crate) host_drivers: Option<String>,
    /// Bytes added to each message (default: 100)
    #[arg(long, value_name = "BYTES", value_parser = quantity::<Bytes>)]
    pub(crate) size: Option<Bytes>,
    /// Size of the capped collection (default: room for all messages)
    #[arg(long, value_name = "BYTES", value_parser = quantity::<Bytes>)]
    pub(crate) capped_size: Option<Bytes>,
    /// Write concern of the inserts: a number or `majority` (default: 1)
    #[arg(long, value_name = "W")]
    pub(crate) write_concern: Option<String>,
    /// How consumers receive messages (default: `tailable`)
    #[arg(long, value_name = "MODE", value_parser = one_of(TailMode::NAMES))]
    pub(crate) mode: Option<TailMode>,
    /// Time that a consumer spends on each message, to simulate slow consumers
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>)]
    pub(crate) work: Option<Span>,
    /// Seed of all random sequences (default: 42)
    #[arg(long, value_name = "N")]
    #[serde(skip)]
    pub(crate) seed: Option<u64>,
    /// Folder of the drivers other than `wire` (default: `drivers` here, or in the project that built this program)
    #[arg(long, value_name = "DIR", env = "DYNO_DRIVERS")]
    #[serde(skip)]
    pub(crate) drivers: Option<PathBuf>,
}
