//! The names of all metrics that the project defines. All code uses these constants, so that renaming a metric changes
//! its producers and consumers together.
//!
//! The suffix of a name is its unit; values cover the time since the previous reading, see [`crate::metrics`].
//! `docs/metrics.md` has the same list with the source of each.

use crate::metrics::MetricId;
use std::fmt;

/// Declares groups of metrics as modules of constants, and the list of all metrics.
macro_rules! metrics {
    ($($(#[$about:meta])* $group:ident { $($(#[$meaning:meta])* $metric:ident = $text:literal;)* })*) => {
        $($(#[$about])* pub mod $group {
            use crate::names::Metric;

            /// The group of these metrics.
            pub const GROUP: &str = stringify!($group);
            $($(#[$meaning])* pub const $metric: Metric = Metric($text);)*
        })*

        pub(super) const ALL: &[crate::names::Metric] = &[$($($group::$metric,)*)*];
    };
}

mod machine;
mod mongod;

pub use machine::{
    cgroup, cpu, disk, frequency, interrupts, load, memory, network, paging, pressure, process,
    softirq, storage, tcp, temperature,
};
pub use mongod::{
    admission, asserts, blocks, cache, checkpoint, connections, cursors, documents, flow_control,
    log, operation_latency, operations, query, queue, replication, server, server_cpu,
    server_memory, server_network, slow, tickets, transactions, ttl,
};

/// Instance of `cpu` metrics for all CPUs together.
pub const ALL_CPUS: &str = "all";

/// Instance of `process` and `cgroup` metrics for the load generator; all others are servers.
pub const CLIENT: &str = "client";

/// Name of a metric: of a whole machine, such as `memory.total_bytes`, or with one value per instance, such as
/// `disk.{}.read_per_s`, where `{}` is replaced by the instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Metric(&'static str);

impl Metric {
    /// The metric of an instance, which is ignored for metrics without instances.
    pub fn of(self, instance: &str) -> MetricId {
        if !self.has_instances() {
            return self.id();
        }
        MetricId::of_instance(self.group(), instance, self.name())
    }

    /// The metric, which must not have instances.
    pub fn id(self) -> MetricId {
        debug_assert!(!self.has_instances(), "{self} needs an instance");
        MetricId::parse(self.0).expect("a test parses all names")
    }

    /// Whether the metric has instances.
    pub fn has_instances(self) -> bool {
        self.0.contains("{}")
    }

    /// Whether `id` is this metric, for any instance.
    pub fn is(self, id: &MetricId) -> bool {
        let is_instance = || id.group() == self.group() && id.name() == self.name();
        id.as_str() == self.0 || self.has_instances() && is_instance()
    }

    /// Group, such as `cpu`.
    pub fn group(self) -> &'static str {
        self.0.split_once('.').map_or("", |(group, _)| group)
    }

    /// Metric name with its unit.
    pub fn name(self) -> &'static str {
        self.0.rsplit_once('.').map_or("", |(_, name)| name)
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }
}

/// Whether servers report the metrics of this group.
pub fn is_of_servers(group: &str) -> bool {
    mongod::ALL.iter().any(|metric| metric.group() == group)
}

/// All metrics: first the machines', then the servers'.
pub fn all() -> impl Iterator<Item = Metric> {
    machine::ALL.iter().chain(mongod::ALL).copied()
}
