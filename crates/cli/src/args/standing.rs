//! Arguments of what goes on for long or stands by: soak, its status and end, and watching alone.

use super::run::RunArguments;
use super::values::quantity;
use crate::metrics::{Secret, listen};
use clap::Args;
use dyno_plan::price::PricePlan;
use dyno_plan::request::Exporter;
use dyno_plan::units::{Bytes, Span};
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct SoakArguments {
    #[command(flatten)]
    pub(crate) run: RunArguments,
    /// End when no connection could be had for this time; default: 5m
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, help_heading = "Load")]
    pub(crate) give_up: Option<Span>,
    /// End when less than this is free on the disk of the run directory or of the data
    #[arg(long, value_name = "SIZE", value_parser = quantity::<Bytes>, default_value = "1GiB", help_heading = "Output")]
    pub(crate) least_free: Bytes,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// Run directory; default: all runs of this person on this machine
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<PathBuf>,
    /// Print JSON in place of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Show it anew each second until nothing goes on
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) follow: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StopArguments {
    /// Run directory; needed if more than one run goes on
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<PathBuf>,
    /// Longest wait for its end
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, default_value = "60s")]
    pub(crate) wait: Span,
}

/// What is watched while the load runs.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Watching")]
pub(crate) struct ObserveArguments {
    /// Time from one look at machine and servers to the next, 100ms to 1m; default: 1s
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>, hide_short_help = true)]
    pub(crate) observe_interval: Option<Span>,
    /// Watch neither this machine nor the servers; exporters that are named are read all the same
    #[arg(long, conflicts_with = "observe_interval", hide_short_help = true)]
    pub(crate) no_observe: bool,
    /// Read this Prometheus exporter as well; can be given several times
    ///
    /// Such as `http://db1:9100/metrics` of a `node_exporter` on the server's host. NAME is that of its metrics; default:
    /// `exporter-1` and so on. One that wants a token or a password needs an entry in a plan, see `docs/plans.md`.
    #[arg(long = "exporter", value_name = "[NAME=]URL", hide_short_help = true)]
    pub(crate) exporters: Vec<Exporter>,
}

/// Who is told of a run once it is recorded.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct GrafanaArguments {
    /// Post what happened in each run to this Grafana, such as `http://monitor:3000`, as annotations
    ///
    /// The variable `DYNO_GRAFANA_TOKEN` holds the token of a service account, or a plan names a file with it. The report
    /// links to the dashboard. See `docs/prometheus.md`.
    #[arg(
        long,
        value_name = "URL",
        help_heading = "Watching",
        hide_short_help = true
    )]
    pub(crate) grafana: Option<String>,
}

/// What the bench costs.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PriceArguments {
    /// Price of an hour of the whole bench, such as `0.504/h` or `0.504 USD/h`
    ///
    /// The report tells the price of a million operations then: of documents of a load or an index build, of messages. It is
    /// that of all machines together: of the servers, of the clients if they count, and of the storage.
    #[arg(long, value_name = "PRICE", help_heading = "Output",
          value_parser = quantity::<PricePlan>, hide_short_help = true)]
    pub(crate) price: Option<PricePlan>,
}

/// Who is told while the load runs.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct MetricsArguments {
    /// Serve metrics for Prometheus at this address while it runs, such as `127.0.0.1:9464`
    ///
    /// Port 0 takes a free one; standard error says which. Other addresses than those of this machine alone
    /// need `--metrics-token`. See `docs/prometheus.md`.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen::address, help_heading = "Watching", hide_short_help = true)]
    pub(crate) metrics: Option<SocketAddr>,
    /// Tell metrics only to those who send this token, as `Authorization: Bearer TOKEN`
    ///
    /// At least 16 characters. Also the variable `DYNO_METRICS_TOKEN`, which keeps it out of the list of processes.
    #[arg(
        long,
        value_name = "TOKEN",
        help_heading = "Watching",
        requires = "metrics",
        hide_short_help = true
    )]
    pub(crate) metrics_token: Option<Secret>,
}
