//! The names of all metrics that the project defines. Those who produce a metric, judge it, draw it or export it name it by
//! these constants, so that a metric cannot be renamed on one side alone.
//!
//! The end of a name is its unit; values cover the time since the previous reading, see [`crate::metrics`]. `docs/metrics.md`
//! has the same list with the source of each.

use crate::metrics::MetricId;
use std::fmt;

/// Declares groups of metrics as modules of constants, and the list of all.
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

/// The instance of `cpu` metrics that stands for all CPUs together.
pub const ALL_CPUS: &str = "all";

/// The instance of `process` and `cgroup` metrics that is the load generator; all others are servers.
pub const CLIENT: &str = "client";

/// The name of a metric: of a whole machine, such as `memory.total_bytes`, or of each of several things, such as
/// `disk.{}.read_per_s`, where `{}` stands for the instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Metric(&'static str);

impl Metric {
    /// The metric of an instance; of a metric that a machine has once the instance does not matter.
    pub fn of(self, instance: &str) -> MetricId {
        if !self.has_instances() {
            return self.id();
        }
        MetricId::of_instance(self.group(), instance, self.name())
    }

    /// The metric, which a machine has once.
    pub fn id(self) -> MetricId {
        debug_assert!(!self.has_instances(), "{self} needs an instance");
        MetricId::parse(self.0).expect("a test parses all names")
    }

    /// Whether each of several things has one.
    pub fn has_instances(self) -> bool {
        self.0.contains("{}")
    }

    /// Whether this is the name of a recorded metric, of any instance.
    pub fn is(self, id: &MetricId) -> bool {
        let is_instance = || id.group() == self.group() && id.name() == self.name();
        id.as_str() == self.0 || self.has_instances() && is_instance()
    }

    /// Kind of thing that it is about.
    pub fn group(self) -> &'static str {
        self.0.split_once('.').map_or("", |(group, _)| group)
    }

    /// What it is, with its unit.
    pub fn name(self) -> &'static str {
        self.0.rsplit_once('.').map_or("", |(_, name)| name)
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }
}

/// Whether a group is of metrics that servers tell of themselves.
pub fn is_of_servers(group: &str) -> bool {
    mongod::ALL.iter().any(|metric| metric.group() == group)
}

/// All metrics: those of machines, then those of servers.
pub fn all() -> impl Iterator<Item = Metric> {
    machine::ALL.iter().chain(mongod::ALL).copied()
}
