//! The rules, as data: for each cause what must hold together, what makes it surer, and what to try.
//!
//! Where causes exclude each other the one that is nearer to the root wins ([`Rule::hides`]): a server that is
//! throttled also uses all CPU time that it may, and its disk is idle for that reason.

use super::Cause;
use super::measures::Measure;

/// A bound of a measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bound {
    /// At least so much.
    AtLeast(f64),
    /// At most so much.
    AtMost(f64),
}

/// A figure that must be, or may be, on one side of a bound.
#[derive(Clone, Copy, Debug)]
pub(super) struct Condition {
    pub(super) measure: Measure,
    pub(super) bound: Bound,
    /// Whether it holds where a run has no such figure, as the time of reads in one of writes alone. Nothing is then said
    /// of it.
    pub(super) may_lack: bool,
}

/// What the load must be like for a rule to make sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// Any.
    Any,
    /// A closed loop: more work comes only when some is done.
    Closed,
    /// Any that comes from the machine of the servers.
    Beside,
}

/// One rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub(super) cause: Cause,
    /// What happened: the name of the rule, and of its evidence.
    pub(super) code: &'static str,
    pub(super) load: Load,
    /// All of these hold.
    pub(super) needs: &'static [Condition],
    /// Each of these that holds makes it surer, each that does not makes it less sure; one that was not watched does
    /// neither.
    pub(super) supports: &'static [Condition],
    /// Confidence when the needs hold and nothing is known of the rest.
    pub(super) confidence: f64,
    /// Causes that this one explains, which are then not told.
    pub(super) hides: &'static [Cause],
    /// What to try, the most promising first.
    pub(super) advice: &'static [&'static str],
}

const fn at_least(measure: Measure, bound: f64) -> Condition {
    Condition {
        measure,
        bound: Bound::AtLeast(bound),
        may_lack: false,
    }
}

const fn at_most(measure: Measure, bound: f64) -> Condition {
    Condition {
        measure,
        bound: Bound::AtMost(bound),
        may_lack: false,
    }
}

/// A condition that holds where the run has no such figure.
const fn if_there(condition: Condition) -> Condition {
    Condition {
        may_lack: true,
        ..condition
    }
}

/// Share of its time from which on a resource has nothing left: with random arrivals the queue for something that is 85 %
/// busy is more than five times the work in service.
const FULL: f64 = 0.85;
/// Share of its time up to which a resource is clearly not the limit.
const ROOM: f64 = 0.7;
/// Mean size of requests from which on a ceiling at which operations and bytes are both flat is one of bytes: volumes count
/// larger ones several times, and disks need more time for them.
pub(super) const LARGE_BYTES: f64 = 65_536.0;
/// Operations of a disk vary so little at a ceiling; a disk that answers demand varies with it.
pub(super) const FLAT: f64 = 0.15;
/// Share of the time in which requests wait before a disk from which on it holds up the server. The kernel weighs this
/// figure by CPUs that work, so that it stays below 1 where other processes compute.
pub(super) const BACKED_UP: f64 = 0.35;

/// All rules. Those that explain others come first.
#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    Rule {
        cause: Cause::CpuThrottled,
        code: "cpu-throttled",
        load: Load::Any,
        needs: &[
            // An operation in ten then meets a stop, which the 90th percentile shows.
            at_least(Measure::ServerThrottledRatio, 0.1),
        ],
        supports: &[
            at_least(Measure::ServerCpuRatio, FULL),
            // A machine without idle time would explain it as well.
            at_most(Measure::HostBusyRatio, 0.95),
        ],
        confidence: 0.85,
        hides: &[Cause::ServerCpu, Cause::SharedCpu, Cause::OneCore, Cause::TooFewClients, Cause::NoisyNeighbour],
        advice: &["raise-cpu-limit", "size-load-to-limit"],
    },
    Rule {
        cause: Cause::CpuStolen,
        code: "cpu-stolen",
        load: Load::Any,
        needs: &[
            // One CPU second in twenty is more than runs on quiet machines differ by.
            at_least(Measure::StealRatio, 0.05),
        ],
        supports: &[
            at_least(Measure::HostBusyRatio, ROOM),
        ],
        confidence: 0.8,
        hides: &[Cause::NoisyNeighbour],
        advice: &["repeat-elsewhere"],
    },
    Rule {
        cause: Cause::Client,
        code: "client",
        load: Load::Any,
        needs: &[
            // Threads that wait for answers are idle for more than a quarter of their time.
            at_least(Measure::ClientFullRatio, 0.75),
            at_most(Measure::ServerCpuRatio, ROOM),
            // Below 100 µs is what a healthy client does between two system calls.
            if_there(at_least(Measure::StartDelayMs, 0.1)),
        ],
        supports: &[
            // As the caveat of the client has it: the wait and not its own work is then the reason.
            at_least(Measure::ClientWaitRatio, 0.2),
            at_most(Measure::DiskSaturationRatio, ROOM),
        ],
        confidence: 0.75,
        hides: &[Cause::ServerCpu, Cause::SharedCpu, Cause::OneCore, Cause::TooFewClients, Cause::NoisyNeighbour],
        advice: &["give-client-more-cpu"],
    },
    Rule {
        cause: Cause::NoisyNeighbour,
        code: "noisy-neighbour",
        load: Load::Any,
        needs: &[
            // A quarter of a CPU: daemons and the kernel need less.
            at_least(Measure::OthersCpuCount, 0.25),
            // One thread that waits a tenth of its time: what a stolen time slice does.
            at_least(Measure::ServerWaitingCount, 0.1),
            // As FULL, but of a single CPU, which the scheduler may fill for a moment without harm.
            at_least(Measure::BusiestCpuRatio, 0.9),
        ],
        supports: &[
            // A server that has all its CPU time lacks none.
            at_most(Measure::ServerCpuRatio, 0.95),
        ],
        confidence: 0.75,
        hides: &[Cause::ServerCpu, Cause::SharedCpu, Cause::OneCore, Cause::TooFewClients],
        advice: &["keep-others-away"],
    },
    Rule {
        cause: Cause::Swapping,
        code: "swapping",
        load: Load::Any,
        needs: &[
            // 1 MiB/s: pages that were put aside long ago come back more slowly.
            at_least(Measure::SwapBytesPerS, 1_048_576.0),
        ],
        supports: &[
            // Swap in use shows as pressure long before the time of the other rule.
            at_least(Measure::MemoryPressureRatio, 0.02),
        ],
        confidence: 0.85,
        hides: &[Cause::MemoryPressure, Cause::CacheTooSmall, Cause::DiskOperations, Cause::DiskBandwidth],
        advice: &["lower-cache-to-fit", "take-programs-away"],
    },
    Rule {
        cause: Cause::MemoryPressure,
        code: "memory-pressure",
        load: Load::Any,
        needs: &[
            // One second in twenty; reclaim in the background stays far below.
            at_least(Measure::MemoryPressureRatio, 0.05),
        ],
        supports: &[
            // With more than a tenth available the pressure is that of a control group.
            at_most(Measure::AvailableMemoryRatio, 0.1),
        ],
        confidence: 0.7,
        hides: &[],
        advice: &["lower-cache-or-add-memory"],
    },
    Rule {
        cause: Cause::Network,
        code: "network",
        load: Load::Any,
        needs: &[
            at_least(Measure::NetworkRatio, FULL),
        ],
        supports: &[
            at_most(Measure::ServerCpuRatio, ROOM),
        ],
        confidence: 0.8,
        hides: &[Cause::TooFewClients, Cause::RoundTrip],
        advice: &["compress-network"],
    },
    Rule {
        cause: Cause::ConnectionStorm,
        code: "connection-storm",
        load: Load::Any,
        needs: &[
            // Fewer are monitors, and pools that renew themselves.
            at_least(Measure::ConnectionsPerS, 10.0),
            // A connection costs about as much as a hundred short operations (handshake, thread, authentication).
            at_least(Measure::ConnectionsPerOperationRatio, 0.01),
        ],
        supports: &[],
        confidence: 0.8,
        hides: &[],
        advice: &["keep-connections-open"],
    },
    Rule {
        cause: Cause::DiskOperations,
        code: "disk-operations",
        load: Load::Any,
        needs: &[
            // Less than the slowest disk does: below that it is idle.
            at_least(Measure::DiskOperationsPerS, 10.0),
            at_least(Measure::DiskBackedUpRatio, BACKED_UP),
            // With more idle connections the load asks for less than the disk could do.
            at_least(Measure::InFlightRatio, 0.8),
            at_most(Measure::DiskOperationsVariationRatio, FLAT),
            // Small requests: operations and bytes may be about equally flat.
            at_most(Measure::FlatterOperationsRatio, 1.2),
            at_most(Measure::DiskRequestBytes, LARGE_BYTES),
        ],
        supports: &[
            at_most(Measure::ServerCpuRatio, ROOM),
            // Idle CPUs that wait for a disk are rare on a machine whose disk keeps up.
            at_least(Measure::IowaitRatio, 0.1),
        ],
        confidence: 0.75,
        hides: &[Cause::TooFewClients, Cause::SlowSync, Cause::MemoryPressure],
        advice: &["disk-with-more-operations", "do-less-on-disk"],
    },
    Rule {
        cause: Cause::DiskOperations,
        code: "disk-operations",
        load: Load::Any,
        needs: &[
            // Less than the slowest disk does: below that it is idle.
            at_least(Measure::DiskOperationsPerS, 10.0),
            at_least(Measure::DiskBackedUpRatio, BACKED_UP),
            // With more idle connections the load asks for less than the disk could do.
            at_least(Measure::InFlightRatio, 0.8),
            at_most(Measure::DiskOperationsVariationRatio, FLAT),
            // Operations are clearly the flatter ones, whatever the size of requests.
            at_most(Measure::FlatterOperationsRatio, 0.7),
        ],
        supports: &[
            at_most(Measure::ServerCpuRatio, ROOM),
            // Idle CPUs that wait for a disk are rare on a machine whose disk keeps up.
            at_least(Measure::IowaitRatio, 0.1),
        ],
        confidence: 0.75,
        hides: &[Cause::TooFewClients, Cause::SlowSync, Cause::MemoryPressure],
        advice: &["disk-with-more-operations", "do-less-on-disk"],
    },
    Rule {
        cause: Cause::DiskBandwidth,
        code: "disk-bandwidth",
        load: Load::Any,
        needs: &[
            // 10 MiB/s: less than any disk or volume carries.
            at_least(Measure::DiskBytesPerS, 10_485_760.0),
            at_least(Measure::DiskBackedUpRatio, BACKED_UP),
            // With more idle connections the load asks for less than the disk could do.
            at_least(Measure::InFlightRatio, 0.8),
            at_most(Measure::DiskBytesVariationRatio, FLAT),
            // Bytes are clearly the flatter ones.
            at_least(Measure::FlatterOperationsRatio, 1.5),
        ],
        supports: &[
            at_most(Measure::ServerCpuRatio, ROOM),
        ],
        confidence: 0.7,
        hides: &[Cause::TooFewClients, Cause::SlowSync, Cause::MemoryPressure],
        advice: &["disk-with-more-bandwidth", "compress-blocks"],
    },
    Rule {
        cause: Cause::DiskBandwidth,
        code: "disk-bandwidth",
        load: Load::Any,
        needs: &[
            // 10 MiB/s: less than any disk or volume carries.
            at_least(Measure::DiskBytesPerS, 10_485_760.0),
            at_least(Measure::DiskBackedUpRatio, BACKED_UP),
            // With more idle connections the load asks for less than the disk could do.
            at_least(Measure::InFlightRatio, 0.8),
            at_most(Measure::DiskBytesVariationRatio, FLAT),
            // Large requests: bytes and operations may be about equally flat.
            at_least(Measure::FlatterOperationsRatio, 0.7),
            at_least(Measure::DiskRequestBytes, LARGE_BYTES),
        ],
        supports: &[
            at_most(Measure::ServerCpuRatio, ROOM),
        ],
        confidence: 0.65,
        hides: &[Cause::TooFewClients, Cause::SlowSync, Cause::MemoryPressure],
        advice: &["disk-with-more-bandwidth", "compress-blocks"],
    },
    Rule {
        cause: Cause::SlowSync,
        code: "slow-sync",
        load: Load::Any,
        needs: &[
            // In memory a write takes a tenth of that.
            at_least(Measure::WriteServiceMs, 1.0),
            // There are writes at all.
            at_least(Measure::WritesPerS, 1.0),
            // A write costs up to twice a read without any sync.
            if_there(at_least(Measure::WriteOverReadRatio, 3.0)),
            // One sync for fifty writes, which is what many clients at once share.
            at_least(Measure::SyncsPerWrite, 0.02),
            // A write that waits keeps the disk, or its queue, busy.
            at_least(Measure::DiskSaturationRatio, 0.3),
        ],
        supports: &[
            at_most(Measure::ServerCpuRatio, ROOM),
            // A disk with a write cache that survives a loss of power needs 0.1 ms.
            at_least(Measure::LogSyncMs, 0.5),
        ],
        confidence: 0.75,
        hides: &[Cause::TooFewClients],
        advice: &["disk-with-faster-flush", "more-clients-share-syncs", "do-not-wait-for-journal"],
    },
    Rule {
        cause: Cause::CacheTooSmall,
        code: "cache-too-small",
        load: Load::Any,
        needs: &[
            // Data that fit into the cache are read once.
            at_least(Measure::DataOverCacheRatio, 1.0),
            // An eighth of the smallest page (4 KiB): one operation in eight misses.
            at_least(Measure::ReadBytesPerOperation, 512.0),
        ],
        supports: &[
            // An operation reads several pages: at 97 % one in ten misses one of three.
            at_most(Measure::CacheHitRatio, 0.97),
            // A cache that suffices leaves evicting to its own threads; ten are no accident of one burst.
            at_least(Measure::ApplicationEvictionsPerS, 10.0),
            // Below that the missing pages come from the page cache, and cost little.
            at_least(Measure::DiskSaturationRatio, 0.3),
        ],
        confidence: 0.7,
        hides: &[Cause::TooFewClients],
        advice: &["raise-cache", "smaller-working-set"],
    },
    Rule {
        cause: Cause::Checkpoint,
        code: "checkpoint",
        load: Load::Any,
        needs: &[
            // 3 s of each minute, the usual distance; shorter ones touch too few operations.
            at_least(Measure::CheckpointRatio, 0.05),
            // Response times vary by tens of percent without any cause.
            at_least(Measure::CheckpointSlowdownRatio, 1.5),
        ],
        supports: &[
            // Half of the time: the writes of a checkpoint fill the disk in bursts only.
            at_least(Measure::DiskSaturationRatio, 0.5),
        ],
        confidence: 0.7,
        hides: &[],
        advice: &["disk-that-writes-faster"],
    },
    Rule {
        cause: Cause::Tickets,
        code: "tickets",
        load: Load::Any,
        needs: &[
            // There is always one that waits.
            at_least(Measure::QueueCount, 1.0),
            // They are taken and given back all the time, so that not all are seen in use.
            at_least(Measure::TicketsRatio, 0.9),
        ],
        supports: &[],
        confidence: 0.7,
        hides: &[Cause::TooFewClients],
        advice: &["look-at-ticket-holders", "offer-less"],
    },
    Rule {
        cause: Cause::Tickets,
        code: "locks",
        load: Load::Any,
        needs: &[
            // There is always one that waits.
            at_least(Measure::QueueCount, 1.0),
            // A quarter of those under way: the wait is a part of response times that is seen.
            at_least(Measure::QueuedRatio, 0.25),
        ],
        supports: &[
            // Above that they wait for tickets.
            at_most(Measure::TicketsRatio, 0.9),
        ],
        confidence: 0.6,
        hides: &[Cause::TooFewClients],
        advice: &["look-at-lock-holder"],
    },
    Rule {
        cause: Cause::ServerCpu,
        code: "server-cpu",
        load: Load::Any,
        needs: &[
            at_least(Measure::ServerCpuRatio, FULL),
        ],
        supports: &[
            at_most(Measure::DiskSaturationRatio, ROOM),
            // Threads wait once all CPUs are taken.
            at_least(Measure::ServerWaitingCount, 0.5),
        ],
        confidence: 0.8,
        hides: &[Cause::SharedCpu, Cause::TooFewClients, Cause::OneCore],
        advice: &["give-server-more-cpu", "look-where-cpu-time-goes"],
    },
    Rule {
        cause: Cause::SharedCpu,
        code: "shared-cpu",
        load: Load::Beside,
        needs: &[
            // As FULL, but interrupts and the kernel count as well.
            at_least(Measure::HostBusyRatio, 0.9),
            // Below that the server's part is too small to matter.
            at_least(Measure::ServerCpuRatio, 0.3),
            // A quarter of a CPU, as for a neighbour.
            at_most(Measure::OthersCpuCount, 0.25),
        ],
        supports: &[
            at_most(Measure::DiskSaturationRatio, ROOM),
        ],
        confidence: 0.75,
        hides: &[Cause::TooFewClients],
        advice: &["client-on-another-machine"],
    },
    Rule {
        cause: Cause::OneCore,
        code: "interrupts-on-one-cpu",
        load: Load::Any,
        needs: &[
            // Interrupts are most of its work.
            at_least(Measure::BusiestInterruptsRatio, 0.5),
            // Full: what is left is rounding of the counters.
            at_least(Measure::BusiestCpuRatio, 0.95),
            at_most(Measure::HostBusyRatio, ROOM),
        ],
        supports: &[],
        confidence: 0.75,
        hides: &[Cause::TooFewClients],
        advice: &["spread-interrupts"],
    },
    Rule {
        cause: Cause::OneCore,
        code: "busy-thread",
        load: Load::Any,
        // It may move from CPU to CPU, so that none of them is full.
        needs: &[
            at_least(Measure::ServerBusiestThreadRatio, FULL),
            at_most(Measure::HostBusyRatio, ROOM),
        ],
        supports: &[],
        confidence: 0.75,
        hides: &[Cause::TooFewClients],
        advice: &["look-at-thread"],
    },
    Rule {
        cause: Cause::RoundTrip,
        code: "round-trip",
        load: Load::Closed,
        needs: &[
            // More than half, so that the server is the smaller part for sure.
            at_least(Measure::RoundTripRatio, 0.6),
            // A server that is half idle answers at once.
            at_most(Measure::ServerCpuRatio, 0.5),
            at_most(Measure::HostBusyRatio, ROOM),
        ],
        supports: &[],
        confidence: 0.7,
        hides: &[Cause::TooFewClients],
        advice: &["more-clients-hide-round-trip"],
    },
    Rule {
        cause: Cause::TooFewClients,
        code: "too-few-clients",
        load: Load::Closed,
        needs: &[
            // The connections are busy, so that more of them would bring more.
            at_least(Measure::InFlightRatio, 0.8),
            at_most(Measure::ServerCpuRatio, ROOM),
            at_most(Measure::HostBusyRatio, ROOM),
            at_most(Measure::DiskSaturationRatio, ROOM),
            // Threads that wait for a CPU would wait longer with more clients.
            at_most(Measure::ServerWaitingCount, 0.5),
        ],
        supports: &[],
        confidence: 0.7,
        hides: &[],
        advice: &["raise-clients"],
    },
];
