//! The charts of what was watched, as data: which metrics, of what, and the words above them.

use super::lines::Of;
use crate::page::time::PanelUnit;

/// A curve of a chart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// What it shows; `{}` is the process.
    pub(super) label: &'static str,
    /// What it is of.
    pub(super) of: Of,
    /// Metrics that are added up; `{}` is what they are of.
    pub(super) ids: &'static [&'static str],
}

/// When there is a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// If anything was told.
    Told,
    /// If anything was above this.
    Above(Least),
}

/// A bound below which a chart would show nothing of interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Least {
    /// Nothing at all happened.
    Nothing,
    /// Less than one on average.
    OneOnAverage,
}

/// A chart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spec {
    pub(super) id: &'static str,
    /// Title; `{}` is the disk or the interface.
    pub(super) title: &'static str,
    pub(super) caption: &'static str,
    pub(super) unit: PanelUnit,
    pub(super) is_stacked: bool,
    pub(super) lines: &'static [Line],
    /// Metrics that are looked for here though no curve shows them by themselves: group and name.
    pub(super) also: &'static [(&'static str, &'static str)],
    pub(super) shown: Shown,
}

impl Spec {
    /// Whether it is about servers, wherever they run, rather than about a machine.
    pub(super) fn is_of_servers(&self) -> bool {
        self.lines.iter().all(|line| line.of == Of::Server)
    }
}

const fn line(label: &'static str, of: Of, ids: &'static [&'static str]) -> Line {
    Line { label, of, ids }
}

/// Stands for a curve that is made of the checkpoints' times rather than of a metric.
pub(super) const CHECKPOINTS: &[&str] =
    &["checkpoint.{}.busy_ratio", "checkpoint.{}.running_count"];

/// All charts in their order: from the load to the disk and back, as work goes.
#[rustfmt::skip]
pub(super) const SPECS: &[Spec] = &[
    Spec {
        id: "cpu",
        title: "CPU",
        caption: "What the CPUs did, as a share of all their time; the rest is idle. Iowait is idle time in which something waited for a disk.",
        unit: PanelUnit::Ratio,
        is_stacked: true,
        lines: &[
            line("user", Of::Machine, &["cpu.all.user_ratio", "cpu.all.nice_ratio"]),
            line("system", Of::Machine, &["cpu.all.system_ratio"]),
            line("interrupts", Of::Machine, &["cpu.all.irq_ratio", "cpu.all.softirq_ratio"]),
            line("steal", Of::Machine, &["cpu.all.steal_ratio"]),
            line("iowait", Of::Machine, &["cpu.all.iowait_ratio"]),
        ],
        also: &[("cpu", "busy_ratio")],
        shown: Shown::Told,
    },
    Spec {
        id: "processes",
        title: "CPU of server and client",
        caption: "CPUs that their threads used, and threads that waited for a CPU, on average.",
        unit: PanelUnit::Count,
        is_stacked: false,
        lines: &[
            line("{}", Of::Process, &["process.{}.cpu_ratio"]),
            line("{} waiting", Of::Process, &["process.{}.cpu_wait_ratio"]),
        ],
        also: &[("process", "busiest_thread_ratio")],
        shown: Shown::Told,
    },
    Spec {
        id: "throttling",
        title: "Limit of CPU time",
        caption: "Periods in which the control group had used up its CPU time and was stopped, as a share of all.",
        unit: PanelUnit::Ratio,
        is_stacked: false,
        lines: &[line("{}", Of::Process, &["cgroup.{}.cpu_throttled_periods_ratio"])],
        also: &[("cgroup", "cpu_throttled_ratio"), ("cgroup", "cpu_limit_count")],
        shown: Shown::Told,
    },
    Spec {
        id: "disk-operations",
        title: "Disk operations of {}",
        caption: "Requests that the disk of the data finished in each second.",
        unit: PanelUnit::PerSecond,
        is_stacked: false,
        lines: &[
            line("reads", Of::DataDisk, &["disk.{}.read_per_s"]),
            line("writes", Of::DataDisk, &["disk.{}.write_per_s"]),
            line("flushes", Of::DataDisk, &["disk.{}.flush_per_s"]),
        ],
        also: &[],
        shown: Shown::Told,
    },
    Spec {
        id: "disk-busy",
        title: "Disk utilization of {}",
        caption: "Time in which the disk had any request, and time in which any task of the machine waited for a disk (I/O pressure).",
        unit: PanelUnit::Ratio,
        is_stacked: false,
        lines: &[
            line("utilization", Of::DataDisk, &["disk.{}.utilization_ratio"]),
            line("I/O pressure", Of::Machine, &["pressure.io.some_ratio"]),
        ],
        also: &[("disk", "queue_count")],
        shown: Shown::Told,
    },
    Spec {
        id: "disk-await",
        title: "Time of a disk operation of {}",
        caption: "Mean time from queueing a request to its end.",
        unit: PanelUnit::Milliseconds,
        is_stacked: false,
        lines: &[
            line("read", Of::DataDisk, &["disk.{}.read_await_ms"]),
            line("write", Of::DataDisk, &["disk.{}.write_await_ms"]),
            line("flush", Of::DataDisk, &["disk.{}.flush_await_ms"]),
        ],
        also: &[],
        shown: Shown::Told,
    },
    Spec {
        id: "disk-bytes",
        title: "Disk bandwidth of {}",
        caption: "Bytes that the disk of the data read and wrote.",
        unit: PanelUnit::BytesPerSecond,
        is_stacked: false,
        lines: &[
            line("read", Of::DataDisk, &["disk.{}.read_bytes_per_s"]),
            line("written", Of::DataDisk, &["disk.{}.write_bytes_per_s"]),
        ],
        also: &[],
        shown: Shown::Told,
    },
    Spec {
        id: "cache",
        title: "Cache of the server",
        caption: "Content of the storage engine's cache, and the part that must still be written, as shares of its limit.",
        unit: PanelUnit::Ratio,
        is_stacked: false,
        lines: &[
            line("used", Of::Server, &["cache.{}.used_ratio"]),
            line("dirty", Of::Server, &["cache.{}.dirty_ratio"]),
        ],
        also: &[("cache", "hit_ratio")],
        shown: Shown::Told,
    },
    Spec {
        id: "cache-traffic",
        title: "Into and out of the cache",
        caption: "Bytes that the storage engine read into its cache and wrote from it.",
        unit: PanelUnit::BytesPerSecond,
        is_stacked: false,
        lines: &[
            line("read", Of::Server, &["cache.{}.read_bytes_per_s"]),
            line("written", Of::Server, &["cache.{}.written_bytes_per_s"]),
        ],
        also: &[],
        shown: Shown::Told,
    },
    Spec {
        id: "evictions",
        title: "Evictions by clients",
        caption: "Pages that threads of clients had to take out of the cache before they could go on.",
        unit: PanelUnit::PerSecond,
        is_stacked: false,
        lines: &[line("pages", Of::Server, &["cache.{}.evicted_by_application_per_s"])],
        also: &[],
        shown: Shown::Above(Least::Nothing),
    },
    Spec {
        id: "checkpoints",
        title: "Checkpoints and syncs",
        caption: "Time in which the server wrote a checkpoint, and in which it synced its log. A sync counts where it ends, so that a long one may be above 100 %.",
        unit: PanelUnit::Ratio,
        is_stacked: false,
        lines: &[
            line("checkpoint", Of::Server, CHECKPOINTS),
            line("sync of the log", Of::Server, &["log.{}.syncing_ratio"]),
        ],
        also: &[("log", "syncs_per_s")],
        shown: Shown::Told,
    },
    Spec {
        id: "log-sync",
        title: "Time of a sync of the log",
        caption: "Mean time until the log of the storage engine was on the disk.",
        unit: PanelUnit::Milliseconds,
        is_stacked: false,
        lines: &[line("sync", Of::Server, &["log.{}.sync_mean_ms"])],
        also: &[],
        shown: Shown::Told,
    },
    Spec {
        id: "queue",
        title: "Operations waiting in the server",
        caption: "Operations that waited for a lock or a ticket, and tickets in use.",
        unit: PanelUnit::Count,
        is_stacked: false,
        lines: &[
            line("waiting", Of::Server, &["queue.{}.total_count"]),
            line("tickets in use", Of::Server, &["tickets.{}.read_in_use_count", "tickets.{}.write_in_use_count"]),
        ],
        also: &[("tickets", "read_total_count"), ("tickets", "write_total_count")],
        shown: Shown::Above(Least::Nothing),
    },
    Spec {
        id: "network",
        title: "Network, interface {}",
        caption: "Bytes that the busiest network interface of the machine carried.",
        unit: PanelUnit::BytesPerSecond,
        is_stacked: false,
        lines: &[
            line("received", Of::Interface, &["network.{}.received_bytes_per_s"]),
            line("sent", Of::Interface, &["network.{}.sent_bytes_per_s"]),
        ],
        also: &[("network", "speed_bytes_per_s")],
        shown: Shown::Told,
    },
    Spec {
        id: "connections",
        title: "Connections",
        caption: "Connections that were open at the server.",
        unit: PanelUnit::Count,
        is_stacked: false,
        lines: &[
            line("open", Of::Server, &["connections.{}.current_count"]),
            line("active", Of::Server, &["connections.{}.active_count"]),
        ],
        also: &[],
        shown: Shown::Told,
    },
    Spec {
        id: "new-connections",
        title: "New connections",
        caption: "Connections that the server accepted.",
        unit: PanelUnit::PerSecond,
        is_stacked: false,
        lines: &[line("accepted", Of::Server, &["connections.{}.created_per_s"])],
        also: &[],
        shown: Shown::Above(Least::OneOnAverage),
    },
    Spec {
        id: "memory",
        title: "Memory",
        caption: "What programs could still get, what holds pages of files, and what server and client have.",
        unit: PanelUnit::Bytes,
        is_stacked: false,
        lines: &[
            line("available", Of::Machine, &["memory.available_bytes"]),
            line("page cache", Of::Machine, &["memory.cached_bytes"]),
            line("{}", Of::Process, &["process.{}.resident_bytes"]),
        ],
        also: &[("memory", "total_bytes")],
        shown: Shown::Told,
    },
    Spec {
        id: "memory-pressure",
        title: "Memory pressure",
        caption: "Time in which any task of the machine waited for memory.",
        unit: PanelUnit::Ratio,
        is_stacked: false,
        lines: &[line("waiting", Of::Machine, &["pressure.memory.some_ratio"])],
        also: &[],
        shown: Shown::Above(Least::Nothing),
    },
    Spec {
        id: "swap",
        title: "Swap",
        caption: "Bytes that went to swap and came back.",
        unit: PanelUnit::BytesPerSecond,
        is_stacked: false,
        lines: &[
            line("in", Of::Machine, &["paging.swap_in_bytes_per_s"]),
            line("out", Of::Machine, &["paging.swap_out_bytes_per_s"]),
        ],
        also: &[],
        shown: Shown::Above(Least::Nothing),
    },
];
