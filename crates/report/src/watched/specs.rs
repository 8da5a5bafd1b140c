//! Specifications of the resource charts: their metrics, instances and texts.

use super::lines::Of;
use crate::page::time::PanelUnit;
use dyno_record::names::{
    Metric, cache, cgroup, checkpoint, connections, cpu, disk, log, memory, network, paging,
    pressure, process, queue, tickets,
};

/// A curve of a chart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// Legend label; `{}` is the process.
    pub(super) label: &'static str,
    /// The kind of instance.
    pub(super) of: Of,
    /// Metrics that are summed.
    pub(super) metrics: &'static [Metric],
}

/// When a chart is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// If any value was reported.
    Reported,
    /// If any value is above 0.
    AboveNothing,
    /// If the mean is at least 1.
    OneOnAverage,
}

/// The specification of a chart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spec {
    pub(super) id: &'static str,
    /// `{}` is the disk or the interface.
    pub(super) title: &'static str,
    pub(super) caption: &'static str,
    pub(super) unit: PanelUnit,
    pub(super) is_stacked: bool,
    pub(super) lines: &'static [Line],
    /// Additional metrics that this chart represents, although no curve shows them by themselves.
    pub(super) also: &'static [Metric],
    pub(super) shown: Shown,
}

impl Spec {
    /// Whether it shows servers, wherever they run, instead of a machine.
    pub(super) fn is_of_servers(&self) -> bool {
        self.lines.iter().all(|line| line.of == Of::Server)
    }
}

const fn line(label: &'static str, of: Of, metrics: &'static [Metric]) -> Line {
    Line { label, of, metrics }
}

/// Marks a curve that is calculated from checkpoint times instead of a metric.
pub(super) const CHECKPOINTS: &[Metric] = &[checkpoint::BUSY_RATIO, checkpoint::RUNNING_COUNT];

/// Defaults of most charts.
const PLAIN: Spec = Spec {
    id: "",
    title: "",
    caption: "",
    unit: PanelUnit::Ratio,
    is_stacked: false,
    lines: &[],
    also: &[],
    shown: Shown::Reported,
};

/// All charts in order: from the load to the disk and back.
#[rustfmt::skip]
pub(super) const SPECS: &[Spec] = &[
    Spec {
        id: "cpu",
        title: "CPU",
        caption: "CPU time by use, as a share of all CPU time; the rest is idle. Iowait is idle time during which a task waited for a disk.",
        unit: PanelUnit::Ratio,
        is_stacked: true,
        lines: &[
            line("user", Of::Machine, &[cpu::ALL_USER_RATIO, cpu::ALL_NICE_RATIO]),
            line("system", Of::Machine, &[cpu::ALL_SYSTEM_RATIO]),
            line("interrupts", Of::Machine, &[cpu::ALL_IRQ_RATIO, cpu::ALL_SOFTIRQ_RATIO]),
            line("steal", Of::Machine, &[cpu::ALL_STEAL_RATIO]),
            line("iowait", Of::Machine, &[cpu::ALL_IOWAIT_RATIO]),
        ],
        also: &[cpu::BUSY_RATIO],
        ..PLAIN
    },
    Spec {
        id: "processes",
        title: "CPU of server and client",
        caption: "Mean number of CPUs used by their threads, and of threads waiting for a CPU.",
        unit: PanelUnit::Count,
        lines: &[
            line("{}", Of::Process, &[process::CPU_RATIO]),
            line("{} waiting", Of::Process, &[process::CPU_WAIT_RATIO]),
        ],
        also: &[process::BUSIEST_THREAD_RATIO],
        ..PLAIN
    },
    Spec {
        id: "throttling",
        title: "Limit of CPU time",
        caption: "Share of periods in which the control group used up its CPU time and was throttled.",
        unit: PanelUnit::Ratio,
        lines: &[line("{}", Of::Process, &[cgroup::CPU_THROTTLED_PERIODS_RATIO])],
        also: &[cgroup::CPU_THROTTLED_RATIO, cgroup::CPU_LIMIT_COUNT],
        ..PLAIN
    },
    Spec {
        id: "disk-operations",
        title: "Disk operations of {}",
        caption: "Requests per second that the data disk finished.",
        unit: PanelUnit::PerSecond,
        lines: &[
            line("reads", Of::DataDisk, &[disk::READ_PER_S]),
            line("writes", Of::DataDisk, &[disk::WRITE_PER_S]),
            line("flushes", Of::DataDisk, &[disk::FLUSH_PER_S]),
        ],
        ..PLAIN
    },
    Spec {
        id: "disk-busy",
        title: "Disk utilization of {}",
        caption: "Time in which the disk had a request, and time in which a task on the machine waited for a disk (I/O pressure).",
        unit: PanelUnit::Ratio,
        lines: &[
            line("utilization", Of::DataDisk, &[disk::UTILIZATION_RATIO]),
            line("I/O pressure", Of::Machine, &[pressure::IO_SOME_RATIO]),
        ],
        also: &[disk::QUEUE_COUNT],
        ..PLAIN
    },
    Spec {
        id: "disk-await",
        title: "Time of a disk operation of {}",
        caption: "Mean time from the queueing of a request to its end.",
        unit: PanelUnit::Milliseconds,
        lines: &[
            line("read", Of::DataDisk, &[disk::READ_AWAIT_MS]),
            line("write", Of::DataDisk, &[disk::WRITE_AWAIT_MS]),
            line("flush", Of::DataDisk, &[disk::FLUSH_AWAIT_MS]),
        ],
        ..PLAIN
    },
    Spec {
        id: "disk-bytes",
        title: "Disk bandwidth of {}",
        caption: "Bytes that the data disk read and wrote.",
        unit: PanelUnit::BytesPerSecond,
        lines: &[
            line("read", Of::DataDisk, &[disk::READ_BYTES_PER_S]),
            line("written", Of::DataDisk, &[disk::WRITE_BYTES_PER_S]),
        ],
        ..PLAIN
    },
    Spec {
        id: "cache",
        title: "Cache of the server",
        caption: "Content of the storage engine's cache, and its dirty part, as shares of the limit.",
        unit: PanelUnit::Ratio,
        lines: &[
            line("used", Of::Server, &[cache::USED_RATIO]),
            line("dirty", Of::Server, &[cache::DIRTY_RATIO]),
        ],
        also: &[cache::HIT_RATIO],
        ..PLAIN
    },
    Spec {
        id: "cache-traffic",
        title: "Into and out of the cache",
        caption: "Bytes that the storage engine read into its cache and wrote from it.",
        unit: PanelUnit::BytesPerSecond,
        lines: &[
            line("read", Of::Server, &[cache::READ_BYTES_PER_S]),
            line("written", Of::Server, &[cache::WRITTEN_BYTES_PER_S]),
        ],
        ..PLAIN
    },
    Spec {
        id: "evictions",
        title: "Evictions by clients",
        caption: "Pages that client threads had to evict from the cache before they could continue.",
        unit: PanelUnit::PerSecond,
        lines: &[line("pages", Of::Server, &[cache::EVICTED_BY_APPLICATION_PER_S])],
        shown: Shown::AboveNothing,
        ..PLAIN
    },
    Spec {
        id: "checkpoints",
        title: "Checkpoints and syncs",
        caption: "Time in which the server wrote a checkpoint, and in which it synced its log. A sync counts at its end, so a long one may exceed 100 %.",
        unit: PanelUnit::Ratio,
        lines: &[
            line("checkpoint", Of::Server, CHECKPOINTS),
            line("sync of the log", Of::Server, &[log::SYNCING_RATIO]),
        ],
        also: &[log::SYNCS_PER_S],
        ..PLAIN
    },
    Spec {
        id: "log-sync",
        title: "Time of a sync of the log",
        caption: "Mean time of a sync of the storage engine's log to disk.",
        unit: PanelUnit::Milliseconds,
        lines: &[line("sync", Of::Server, &[log::SYNC_MEAN_MS])],
        ..PLAIN
    },
    Spec {
        id: "queue",
        title: "Operations waiting in the server",
        caption: "Operations that waited for a lock or a ticket, and tickets in use.",
        unit: PanelUnit::Count,
        lines: &[
            line("waiting", Of::Server, &[queue::TOTAL_COUNT]),
            line("tickets in use", Of::Server, &[tickets::READ_IN_USE_COUNT, tickets::WRITE_IN_USE_COUNT]),
        ],
        also: &[tickets::READ_TOTAL_COUNT, tickets::WRITE_TOTAL_COUNT],
        shown: Shown::AboveNothing,
        ..PLAIN
    },
    Spec {
        id: "network",
        title: "Network, interface {}",
        caption: "Bytes that the busiest network interface of the machine carried.",
        unit: PanelUnit::BytesPerSecond,
        lines: &[
            line("received", Of::Interface, &[network::RECEIVED_BYTES_PER_S]),
            line("sent", Of::Interface, &[network::SENT_BYTES_PER_S]),
        ],
        also: &[network::SPEED_BYTES_PER_S],
        ..PLAIN
    },
    Spec {
        id: "connections",
        title: "Connections",
        caption: "Connections open at the server.",
        unit: PanelUnit::Count,
        lines: &[
            line("open", Of::Server, &[connections::CURRENT_COUNT]),
            line("active", Of::Server, &[connections::ACTIVE_COUNT]),
        ],
        ..PLAIN
    },
    Spec {
        id: "new-connections",
        title: "New connections",
        caption: "Connections that the server accepted.",
        unit: PanelUnit::PerSecond,
        lines: &[line("accepted", Of::Server, &[connections::CREATED_PER_S])],
        shown: Shown::OneOnAverage,
        ..PLAIN
    },
    Spec {
        id: "memory",
        title: "Memory",
        caption: "Memory available to programs, page cache, and memory of server and client.",
        unit: PanelUnit::Bytes,
        lines: &[
            line("available", Of::Machine, &[memory::AVAILABLE_BYTES]),
            line("page cache", Of::Machine, &[memory::CACHED_BYTES]),
            line("{}", Of::Process, &[process::RESIDENT_BYTES]),
        ],
        also: &[memory::TOTAL_BYTES],
        ..PLAIN
    },
    Spec {
        id: "memory-pressure",
        title: "Memory pressure",
        caption: "Time in which a task on the machine waited for memory.",
        unit: PanelUnit::Ratio,
        lines: &[line("waiting", Of::Machine, &[pressure::MEMORY_SOME_RATIO])],
        shown: Shown::AboveNothing,
        ..PLAIN
    },
    Spec {
        id: "swap",
        title: "Swap",
        caption: "Bytes swapped out and in.",
        unit: PanelUnit::BytesPerSecond,
        lines: &[
            line("in", Of::Machine, &[paging::SWAP_IN_BYTES_PER_S]),
            line("out", Of::Machine, &[paging::SWAP_OUT_BYTES_PER_S]),
        ],
        shown: Shown::AboveNothing,
        ..PLAIN
    },
];
