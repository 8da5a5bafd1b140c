//! The rules as data: for each cause the necessary conditions, the supporting conditions, and the advice.
//!
//! If causes exclude each other, the one closer to the root wins ([`Rule::hides`]): a throttled server also
//! uses all its allowed CPU time, and its disk is idle for that reason.

use super::measures::Measure;
use dyno_record::document::variant_name;
use dyno_record::statement::Statement;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Causes that limit a run.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The load generator had no spare CPU time.
    Client,
    /// A kernel limit on the server's CPU time.
    CpuThrottled,
    /// The hypervisor gave CPU time to others.
    CpuStolen,
    /// Another process took CPU time that the server waited for.
    NoisyNeighbour,
    /// A disk that was fast and became slow under the same load.
    BurstCredits,
    /// The number of operations per second of the disk.
    DiskOperations,
    /// The bytes per second of the disk.
    DiskBandwidth,
    /// Writes wait until the disk has stored them durably.
    SlowSync,
    /// The server's cache is smaller than the requested data.
    CacheTooSmall,
    /// Checkpoints of the server.
    Checkpoint,
    /// Operations queue in the server for tickets or locks.
    Tickets,
    /// The machine of the server swaps.
    Swapping,
    /// Memory is short, and processes wait for it.
    MemoryPressure,
    /// The bandwidth of the network.
    Network,
    /// The network round trip takes most of the time.
    RoundTrip,
    /// Connections are opened continuously.
    ConnectionStorm,
    /// One CPU is busy with interrupts, or one server thread all the time, while others are not.
    OneCore,
    /// The server uses all CPU time that it may use.
    ServerCpu,
    /// Client and server use all CPU time of a shared machine.
    SharedCpu,
    /// Nothing is exhausted: more clients would raise the rate.
    TooFewClients,
}

impl Cause {
    /// The words for what it limits, for a sentence or a list.
    pub fn subject(self) -> Statement {
        Statement::new(format!("subject.{}", variant_name(&self)))
    }
}

/// A bound of a measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

/// A condition on a measure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Condition {
    pub(super) measure: Measure,
    pub(super) bound: Bound,
    /// Whether it holds if the run does not have the figure, such as read times in a write-only run. It is then
    /// not mentioned.
    pub(super) may_lack: bool,
}

/// The load that a rule applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    Any,
    /// A closed loop: new work starts only when other work ends.
    Closed,
    /// A load from the servers' machine.
    Beside,
}

/// One rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub(super) cause: Cause,
    /// Code of the rule and of its evidence.
    pub(super) code: &'static str,
    pub(super) load: Load,
    /// All of these must hold.
    pub(super) needs: &'static [Condition],
    /// Each condition that holds adds confidence, each that does not hold reduces it; an unwatched one does
    /// neither.
    pub(super) supports: &'static [Condition],
    /// Confidence if the needs hold and nothing else is known.
    pub(super) confidence: f64,
    /// Causes that this one explains, which are then not reported.
    pub(super) hides: &'static [Cause],
    /// Suggested actions, the most promising first.
    pub(super) advice: &'static [&'static str],
}

const fn at_least(measure: Measure, bound: f64) -> Condition {
    Condition { measure, bound: Bound::AtLeast(bound), may_lack: false }
}

const fn at_most(measure: Measure, bound: f64) -> Condition {
    Condition { measure, bound: Bound::AtMost(bound), may_lack: false }
}

/// A condition that also holds if the run does not have the figure.
const fn if_there(condition: Condition) -> Condition {
    Condition { may_lack: true, ..condition }
}

/// Utilization from which a resource counts as full: with random arrivals the queue for a resource that is 85 %
/// busy is more than five times the work in service.
const FULL: f64 = 0.85;
/// Utilization up to which a resource is clearly not the limit.
const ROOM: f64 = 0.7;
/// Mean request size from which a ceiling with flat operations and bytes is a byte ceiling: volumes count
/// larger requests several times, and disks need more time for them.
pub(super) const LARGE_BYTES: f64 = 65_536.0;
/// Largest variation of a disk's operations at a ceiling; a disk that follows demand varies with it.
pub(super) const FLAT: f64 = 0.15;
/// Share of time with requests waiting for a disk from which it limits the server. The kernel weights this
/// figure by busy CPUs, so it stays below 1 if other processes compute.
pub(super) const BACKED_UP: f64 = 0.35;

#[rustfmt::skip]
const DISK_OPERATIONS: Rule = Rule {
    cause: Cause::DiskOperations, code: "disk-operations", load: Load::Any, confidence: 0.75,
    needs: &[
        // Even the slowest disk does more: below this it is idle.
        at_least(Measure::DiskOperationsPerS, 10.0),
        at_least(Measure::DiskBackedUpRatio, BACKED_UP),
        // With more idle connections the load demands less than the disk could do.
        at_least(Measure::InFlightRatio, 0.8),
        at_most(Measure::DiskOperationsVariationRatio, FLAT),
        // Small requests: operations and bytes may be about equally flat.
        at_most(Measure::FlatterOperationsRatio, 1.2),
        at_most(Measure::DiskRequestBytes, LARGE_BYTES),
    ],
    supports: &[
        at_most(Measure::ServerCpuRatio, ROOM),
        // Idle CPUs that wait for a disk are rare if the disk is fast enough.
        at_least(Measure::IowaitRatio, 0.1),
    ],
    hides: &[Cause::TooFewClients, Cause::SlowSync, Cause::MemoryPressure],
    advice: &["disk-with-more-operations", "do-less-on-disk"],
};

#[rustfmt::skip]
const DISK_BANDWIDTH: Rule = Rule {
    cause: Cause::DiskBandwidth, code: "disk-bandwidth", load: Load::Any, confidence: 0.7,
    needs: &[
        // 10 MiB/s: less than any disk or volume can carry.
        at_least(Measure::DiskBytesPerS, 10_485_760.0),
        at_least(Measure::DiskBackedUpRatio, BACKED_UP),
        // With more idle connections the load demands less than the disk could do.
        at_least(Measure::InFlightRatio, 0.8),
        at_most(Measure::DiskBytesVariationRatio, FLAT),
        // Bytes are clearly flatter.
        at_least(Measure::FlatterOperationsRatio, 1.5),
    ],
    supports: &[at_most(Measure::ServerCpuRatio, ROOM)],
    hides: &[Cause::TooFewClients, Cause::SlowSync, Cause::MemoryPressure],
    advice: &["disk-with-more-bandwidth", "compress-blocks"],
};

/// All rules. Rules that explain others come first.
#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    Rule {
        cause: Cause::CpuThrottled, code: "cpu-throttled", load: Load::Any, confidence: 0.85,
        needs: &[
            // One operation in ten is then throttled, which the 90th percentile shows.
            at_least(Measure::ServerThrottledRatio, 0.1),
        ],
        supports: &[
            at_least(Measure::ServerCpuRatio, FULL),
            // A machine without idle time would also explain it.
            at_most(Measure::HostBusyRatio, 0.95),
        ],
        hides: &[Cause::ServerCpu, Cause::SharedCpu, Cause::OneCore, Cause::TooFewClients, Cause::NoisyNeighbour],
        advice: &["raise-cpu-limit", "size-load-to-limit"],
    },
    Rule {
        cause: Cause::CpuStolen, code: "cpu-stolen", load: Load::Any, confidence: 0.8,
        needs: &[
            // One CPU second in twenty exceeds the variation on quiet machines.
            at_least(Measure::StealRatio, 0.05),
        ],
        supports: &[at_least(Measure::HostBusyRatio, ROOM)],
        hides: &[Cause::NoisyNeighbour],
        advice: &["repeat-elsewhere"],
    },
    Rule {
        cause: Cause::Client, code: "client", load: Load::Any, confidence: 0.75,
        needs: &[
            // Threads that wait for answers are idle for more than a quarter of their time.
            at_least(Measure::ClientFullRatio, 0.75),
            at_most(Measure::ServerCpuRatio, ROOM),
            // A healthy client needs up to 100 µs between two system calls.
            if_there(at_least(Measure::StartDelayMs, 0.1)),
        ],
        supports: &[
            // As in the client caveat: the wait and not the client's own work is then the reason.
            at_least(Measure::ClientWaitRatio, 0.2),
            at_most(Measure::DiskSaturationRatio, ROOM),
        ],
        hides: &[Cause::ServerCpu, Cause::SharedCpu, Cause::OneCore, Cause::TooFewClients, Cause::NoisyNeighbour],
        advice: &["give-client-more-cpu"],
    },
    Rule {
        cause: Cause::NoisyNeighbour, code: "noisy-neighbour", load: Load::Any, confidence: 0.75,
        needs: &[
            // A quarter of a CPU: daemons and the kernel need less.
            at_least(Measure::OthersCpuCount, 0.25),
            // One thread that waits a tenth of its time: the effect of a stolen time slice.
            at_least(Measure::ServerWaitingCount, 0.1),
            // Like FULL, but for a single CPU, which the scheduler may briefly fill without harm.
            at_least(Measure::BusiestCpuRatio, 0.9),
        ],
        supports: &[
            // A server with all its CPU time is not starved.
            at_most(Measure::ServerCpuRatio, 0.95),
        ],
        hides: &[Cause::ServerCpu, Cause::SharedCpu, Cause::OneCore, Cause::TooFewClients],
        advice: &["keep-others-away"],
    },
    Rule {
        cause: Cause::Swapping, code: "swapping", load: Load::Any, confidence: 0.85,
        needs: &[
            // 1 MiB/s: pages swapped out long ago return more slowly.
            at_least(Measure::SwapBytesPerS, 1_048_576.0),
        ],
        supports: &[
            // Active swapping shows as pressure long before the threshold of the other rule.
            at_least(Measure::MemoryPressureRatio, 0.02),
        ],
        hides: &[Cause::MemoryPressure, Cause::CacheTooSmall, Cause::DiskOperations, Cause::DiskBandwidth],
        advice: &["lower-cache-to-fit", "take-programs-away"],
    },
    Rule {
        cause: Cause::MemoryPressure, code: "memory-pressure", load: Load::Any, confidence: 0.7,
        needs: &[
            // One second in twenty; background reclaim stays far below.
            at_least(Measure::MemoryPressureRatio, 0.05),
        ],
        supports: &[
            // With more than a tenth available the pressure comes from a control group.
            at_most(Measure::AvailableMemoryRatio, 0.1),
        ],
        hides: &[],
        advice: &["lower-cache-or-add-memory"],
    },
    Rule {
        cause: Cause::Network, code: "network", load: Load::Any, confidence: 0.8,
        needs: &[at_least(Measure::NetworkRatio, FULL)],
        supports: &[at_most(Measure::ServerCpuRatio, ROOM)],
        hides: &[Cause::TooFewClients, Cause::RoundTrip],
        advice: &["compress-network"],
    },
    Rule {
        cause: Cause::ConnectionStorm, code: "connection-storm", load: Load::Any, confidence: 0.8,
        needs: &[
            // Monitors and pool renewal open fewer.
            at_least(Measure::ConnectionsPerS, 10.0),
            // A connection costs about as much as a hundred short operations (handshake, thread, authentication).
            at_least(Measure::ConnectionsPerOperationRatio, 0.01),
        ],
        supports: &[],
        hides: &[],
        advice: &["keep-connections-open"],
    },
    DISK_OPERATIONS,
    Rule {
        needs: &[
            // Even the slowest disk does more: below this it is idle.
            at_least(Measure::DiskOperationsPerS, 10.0),
            at_least(Measure::DiskBackedUpRatio, BACKED_UP),
            // With more idle connections the load demands less than the disk could do.
            at_least(Measure::InFlightRatio, 0.8),
            at_most(Measure::DiskOperationsVariationRatio, FLAT),
            // Operations are clearly flatter, whatever the request size.
            at_most(Measure::FlatterOperationsRatio, 0.7),
        ],
        ..DISK_OPERATIONS
    },
    DISK_BANDWIDTH,
    Rule {
        needs: &[
            // 10 MiB/s: less than any disk or volume can carry.
            at_least(Measure::DiskBytesPerS, 10_485_760.0),
            at_least(Measure::DiskBackedUpRatio, BACKED_UP),
            // With more idle connections the load demands less than the disk could do.
            at_least(Measure::InFlightRatio, 0.8),
            at_most(Measure::DiskBytesVariationRatio, FLAT),
            // Large requests: bytes and operations may be about equally flat.
            at_least(Measure::FlatterOperationsRatio, 0.7),
            at_least(Measure::DiskRequestBytes, LARGE_BYTES),
        ],
        confidence: 0.65,
        ..DISK_BANDWIDTH
    },
    Rule {
        cause: Cause::SlowSync, code: "slow-sync", load: Load::Any, confidence: 0.75,
        needs: &[
            // A write in memory takes a tenth of that.
            at_least(Measure::WriteServiceMs, 1.0),
            // Excludes runs without writes.
            at_least(Measure::WritesPerS, 1.0),
            // A write costs up to twice a read without any sync.
            if_there(at_least(Measure::WriteOverReadRatio, 3.0)),
            // One sync for fifty writes, which many concurrent clients share.
            at_least(Measure::SyncsPerWrite, 0.02),
            // A waiting write keeps the disk, or its queue, busy.
            at_least(Measure::DiskSaturationRatio, 0.3),
        ],
        supports: &[
            at_most(Measure::ServerCpuRatio, ROOM),
            // A disk with a power-safe write cache needs 0.1 ms.
            at_least(Measure::LogSyncMs, 0.5),
        ],
        hides: &[Cause::TooFewClients],
        advice: &["disk-with-faster-flush", "more-clients-share-syncs", "do-not-wait-for-journal"],
    },
    Rule {
        cause: Cause::CacheTooSmall, code: "cache-too-small", load: Load::Any, confidence: 0.7,
        needs: &[
            // Data that fit into the cache are read once.
            at_least(Measure::DataOverCacheRatio, 1.0),
            // An eighth of the smallest page (4 KiB): one operation in eight misses.
            at_least(Measure::ReadBytesPerOperation, 512.0),
        ],
        supports: &[
            // An operation reads several pages: at 97 % one in ten misses one of three.
            at_most(Measure::CacheHitRatio, 0.97),
            // A sufficient cache evicts by its own threads; ten are not a single burst.
            at_least(Measure::ApplicationEvictionsPerS, 10.0),
            // Below this the missing pages come from the page cache, at a low cost.
            at_least(Measure::DiskSaturationRatio, 0.3),
        ],
        hides: &[Cause::TooFewClients],
        advice: &["raise-cache", "smaller-working-set"],
    },
    Rule {
        cause: Cause::Checkpoint, code: "checkpoint", load: Load::Any, confidence: 0.7,
        needs: &[
            // 3 s of each minute, the usual interval; shorter checkpoints affect too few operations.
            at_least(Measure::CheckpointRatio, 0.05),
            // Response times vary by tens of percent without any cause.
            at_least(Measure::CheckpointSlowdownRatio, 1.5),
        ],
        supports: &[
            // Half of the time: checkpoint writes fill the disk only in bursts.
            at_least(Measure::DiskSaturationRatio, 0.5),
        ],
        hides: &[],
        advice: &["disk-that-writes-faster"],
    },
    Rule {
        cause: Cause::Tickets, code: "tickets", load: Load::Any, confidence: 0.7,
        needs: &[
            // At least one always waits.
            at_least(Measure::QueueCount, 1.0),
            // They are taken and returned continuously, so that not all are seen in use.
            at_least(Measure::TicketsRatio, 0.9),
        ],
        supports: &[],
        hides: &[Cause::TooFewClients],
        advice: &["look-at-ticket-holders", "offer-less"],
    },
    Rule {
        cause: Cause::Tickets, code: "locks", load: Load::Any, confidence: 0.6,
        needs: &[
            // At least one always waits.
            at_least(Measure::QueueCount, 1.0),
            // A quarter of the operations in flight: the wait is a visible part of response times.
            at_least(Measure::QueuedRatio, 0.25),
        ],
        supports: &[
            // Above this they wait for tickets.
            at_most(Measure::TicketsRatio, 0.9),
        ],
        hides: &[Cause::TooFewClients],
        advice: &["look-at-lock-holder"],
    },
    Rule {
        cause: Cause::ServerCpu, code: "server-cpu", load: Load::Any, confidence: 0.8,
        needs: &[at_least(Measure::ServerCpuRatio, FULL)],
        supports: &[
            at_most(Measure::DiskSaturationRatio, ROOM),
            // Threads wait once all CPUs are taken.
            at_least(Measure::ServerWaitingCount, 0.5),
        ],
        hides: &[Cause::SharedCpu, Cause::TooFewClients, Cause::OneCore],
        advice: &["give-server-more-cpu", "look-where-cpu-time-goes"],
    },
    Rule {
        cause: Cause::SharedCpu, code: "shared-cpu", load: Load::Beside, confidence: 0.75,
        needs: &[
            // Like FULL, but including interrupts and the kernel.
            at_least(Measure::HostBusyRatio, 0.9),
            // Below this the server's part is too small to matter.
            at_least(Measure::ServerCpuRatio, 0.3),
            // A quarter of a CPU, as for a neighbour.
            at_most(Measure::OthersCpuCount, 0.25),
        ],
        supports: &[at_most(Measure::DiskSaturationRatio, ROOM)],
        hides: &[Cause::TooFewClients],
        advice: &["client-on-another-machine"],
    },
    Rule {
        cause: Cause::OneCore, code: "interrupts-on-one-cpu", load: Load::Any, confidence: 0.75,
        needs: &[
            // Interrupts are most of its work.
            at_least(Measure::BusiestInterruptsRatio, 0.5),
            // Full: the rest is counter rounding.
            at_least(Measure::BusiestCpuRatio, 0.95),
            at_most(Measure::HostBusyRatio, ROOM),
        ],
        supports: &[],
        hides: &[Cause::TooFewClients],
        advice: &["spread-interrupts"],
    },
    Rule {
        cause: Cause::OneCore, code: "busy-thread", load: Load::Any, confidence: 0.75,
        // It may move from CPU to CPU, so that none of them is full.
        needs: &[
            at_least(Measure::ServerBusiestThreadRatio, FULL),
            at_most(Measure::HostBusyRatio, ROOM),
        ],
        supports: &[],
        hides: &[Cause::TooFewClients],
        advice: &["look-at-thread"],
    },
    Rule {
        cause: Cause::RoundTrip, code: "round-trip", load: Load::Closed, confidence: 0.7,
        needs: &[
            // More than half, so that the server is certainly the smaller part.
            at_least(Measure::RoundTripRatio, 0.6),
            // A half-idle server answers at once.
            at_most(Measure::ServerCpuRatio, 0.5),
            at_most(Measure::HostBusyRatio, ROOM),
        ],
        supports: &[],
        hides: &[Cause::TooFewClients],
        advice: &["more-clients-hide-round-trip"],
    },
    Rule {
        cause: Cause::TooFewClients, code: "too-few-clients", load: Load::Closed, confidence: 0.7,
        needs: &[
            // The connections are busy, so more of them would raise the rate.
            at_least(Measure::InFlightRatio, 0.8),
            at_most(Measure::ServerCpuRatio, ROOM),
            at_most(Measure::HostBusyRatio, ROOM),
            at_most(Measure::DiskSaturationRatio, ROOM),
            // Threads that already wait for a CPU would wait longer with more clients.
            at_most(Measure::ServerWaitingCount, 0.5),
        ],
        supports: &[],
        hides: &[],
        advice: &["raise-clients"],
    },
];
