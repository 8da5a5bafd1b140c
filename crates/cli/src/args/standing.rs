//! Arguments of `soak`, `status` and `stop`, and the options for observing runs.

use super::run::RunArguments;
use super::values::{hidden, quantity};
use crate::metrics::listen;
use clap::Args;
use dyno_fleet::options::Hidden;
use dyno_plan::price::PricePlan;
use dyno_plan::request::Exporter;
use dyno_plan::units::{Bytes, Span};
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct SoakArguments {
    #[command(flatten)]
    pub(crate) run: RunArguments,
    /// End when no connection was possible for this time (default: 5m)
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, help_heading = "Load")]
    pub(crate) give_up: Option<Span>,
    /// End when the disk of the run directory or the data has less free space than this
    #[arg(long, value_name = "SIZE", value_parser = quantity::<Bytes>, default_value = "1GiB", help_heading = "Output")]
    pub(crate) least_free: Bytes,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// Run directory, or a part of its name (default: all runs of the current user on this machine)
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<PathBuf>,
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Refresh every second until no run is in progress
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) follow: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StopArguments {
    /// Run directory, or a part of its name; required if several runs are in progress
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<PathBuf>,
    /// Maximum time to wait for the run to end
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, default_value = "60s")]
    pub(crate) wait: Span,
}

/// Options for observing machines and servers during the load.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Watching")]
pub(crate) struct ObserveArguments {
    /// Interval between two readings of the machine and the servers, 100ms to 1m (default: 1s)
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, hide_short_help = true)]
    pub(crate) observe_interval: Option<Span>,
    /// Watch neither this machine nor the servers; exporters are still read
    #[arg(long, conflicts_with = "observe_interval", hide_short_help = true)]
    pub(crate) no_observe: bool,
    /// Also read this Prometheus exporter, such as `http://db1:9100/metrics`; may be repeated
    ///
    /// NAME names its metrics (default: `exporter-1` and so on). An exporter that requires a token or a password needs an entry
    /// in a plan, see `docs/plans.md`.
    #[arg(long = "exporter", value_name = "[NAME=]URL", hide_short_help = true)]
    pub(crate) exporters: Vec<Exporter>,
}

/// Options for the price and the tags of a record, and for annotations in Grafana.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ShownArguments {
    /// Post the events of each run as annotations to this Grafana, such as `http://monitor:3000`
    ///
    /// The variable `DYNO_GRAFANA_TOKEN`, or a file named in the plan, holds the token of a service account. The report links to
    /// the dashboard. See `docs/prometheus.md`.
    #[arg(long, value_name = "URL", help_heading = "Watching", hide_short_help = true)]
    pub(crate) grafana: Option<String>,
    /// Price of the whole bench per hour, such as `0.504/h` or `0.504 USD/h`
    ///
    /// The report then shows the price per million operations (per million documents for a load or an index build, per million
    /// messages for `tail`). Include all machines: the servers, the clients if they count, and the storage.
    #[arg(long, value_name = "PRICE", help_heading = "Output",
          value_parser = quantity::<PricePlan>, hide_short_help = true)]
    pub(crate) price: Option<PricePlan>,
    /// Label of the run, such as `nightly`, by which `dyno runs --tag` finds it; may be repeated
    #[arg(long = "tag", value_name = "TAG", help_heading = "Output", hide_short_help = true)]
    pub(crate) tags: Vec<String>,
}

/// Options for serving metrics during the load.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct MetricsArguments {
    /// Serve metrics for Prometheus at this address during the run, such as `127.0.0.1:9464`
    ///
    /// Port 0 picks a free port and prints it on standard error. Addresses that other machines can reach need
    /// `--metrics-token`. See `docs/prometheus.md`.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen::address, help_heading = "Watching", hide_short_help = true)]
    pub(crate) metrics: Option<SocketAddr>,
    /// Require this token from readers of the metrics, as `Authorization: Bearer TOKEN`
    ///
    /// It has at least 16 characters. The variable `DYNO_METRICS_TOKEN` also sets it, and keeps it out of the process list.
    #[arg(
        long,
        value_name = "TOKEN",
        value_parser = hidden,
        help_heading = "Watching",
        requires = "metrics",
        hide_short_help = true
    )]
    pub(crate) metrics_token: Option<Hidden>,
}
