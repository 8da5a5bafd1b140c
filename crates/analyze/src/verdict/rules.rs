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

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Percent,
    Count,
    PerSecond,
    Bytes,
    BytesPerSecond,
    Milliseconds,
}

/// A figure that must be, or may be, on one side of a bound.
#[derive(Clone, Copy, Debug)]
pub(super) struct Condition {
    pub(super) measure: Measure,
    pub(super) bound: Bound,
    /// What it says; `{}` is the value.
    pub(super) says: &'static str,
    pub(super) unit: Unit,
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
    /// What happened, in a sentence without its end.
    pub(super) text: &'static str,
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
    pub(super) advice: &'static [&'static str],
}

const fn at_least(measure: Measure, bound: f64, says: &'static str, unit: Unit) -> Condition {
    Condition {
        measure,
        bound: Bound::AtLeast(bound),
        says,
        unit,
        may_lack: false,
    }
}

const fn at_most(measure: Measure, bound: f64, says: &'static str, unit: Unit) -> Condition {
    Condition {
        measure,
        bound: Bound::AtMost(bound),
        says,
        unit,
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
        text: "The kernel stopped the server at a limit of its CPU time",
        load: Load::Any,
        needs: &[at_least(Measure::ServerThrottledRatio, 0.1, "in {} of the periods of its control group the server had used up its CPU time", Unit::Percent)],
        supports: &[
            at_least(Measure::ServerCpuRatio, FULL, "it used {} of the CPU time that it may use", Unit::Percent),
            at_most(Measure::HostBusyRatio, 0.95, "the machine was {} busy, and had room", Unit::Percent),
        ],
        confidence: 0.85,
        hides: &[Cause::ServerCpu, Cause::SharedCpu, Cause::OneCore, Cause::TooFewClients, Cause::NoisyNeighbour],
        advice: &[
            "raise the limit of the server's control group (`cpu.max`, `cpu.cfs_quota_us`, the CPU limit of the container)",
            "or size the load to the limit: it is what the server has in service, too",
        ],
    },
    Rule {
        cause: Cause::CpuStolen,
        text: "The hypervisor gave CPU time of this machine to others",
        load: Load::Any,
        needs: &[at_least(Measure::StealRatio, 0.05, "{} of the CPU time was stolen", Unit::Percent)],
        supports: &[at_least(Measure::HostBusyRatio, ROOM, "the CPUs were {} busy", Unit::Percent)],
        confidence: 0.8,
        hides: &[Cause::NoisyNeighbour],
        advice: &["repeat at another time, or on a machine with CPUs of its own: such figures are about the neighbours, too"],
    },
    Rule {
        cause: Cause::Client,
        text: "The load generator was the limit, not the server",
        load: Load::Any,
        needs: &[
            at_least(Measure::ClientFullRatio, 0.75, "its worker threads worked or waited for a CPU {} of the time", Unit::Percent),
            at_most(Measure::ServerCpuRatio, ROOM, "the server used {} of its CPU time only", Unit::Percent),
            if_there(at_least(Measure::StartDelayMs, 0.1, "operations were sent {} late on average", Unit::Milliseconds)),
        ],
        supports: &[
            at_least(Measure::ClientWaitRatio, 0.2, "they waited for a CPU {} of the time", Unit::Percent),
            at_most(Measure::DiskSaturationRatio, ROOM, "the disk was busy {} of the time", Unit::Percent),
        ],
        confidence: 0.75,
        hides: &[Cause::ServerCpu, Cause::SharedCpu, Cause::OneCore, Cause::TooFewClients, Cause::NoisyNeighbour],
        advice: &["give the client more worker threads (`--threads`) or CPUs of its own (`--placement`), or a machine of its own"],
    },
    Rule {
        cause: Cause::NoisyNeighbour,
        text: "Another process took CPU time that the server waited for",
        load: Load::Any,
        needs: &[
            at_least(Measure::OthersCpuCount, 0.25, "others used {} CPUs of the server's machine", Unit::Count),
            at_least(Measure::ServerWaitingCount, 0.1, "{} threads of the server waited for a CPU on average", Unit::Count),
            at_least(Measure::BusiestCpuRatio, 0.9, "the busiest CPU worked {} of the time", Unit::Percent),
        ],
        supports: &[at_most(Measure::ServerCpuRatio, 0.95, "the server had {} of the CPU time that it may use", Unit::Percent)],
        confidence: 0.75,
        hides: &[Cause::ServerCpu, Cause::SharedCpu, Cause::OneCore, Cause::TooFewClients],
        advice: &["stop what runs beside, or keep it away from the server's CPUs (`dyno doctor` names it; `--placement` gives server and client their own)"],
    },
    Rule {
        cause: Cause::Swapping,
        text: "The machine of the server swaps",
        load: Load::Any,
        needs: &[at_least(Measure::SwapBytesPerS, 1_048_576.0, "{} went to and from swap", Unit::BytesPerSecond)],
        supports: &[at_least(Measure::MemoryPressureRatio, 0.02, "processes waited for memory {} of the time", Unit::Percent)],
        confidence: 0.85,
        hides: &[Cause::MemoryPressure, Cause::CacheTooSmall, Cause::DiskOperations, Cause::DiskBandwidth],
        advice: &["lower the server's cache (`--cache`), so that cache, connections and page cache fit into the memory", "take other programs away"],
    },
    Rule {
        cause: Cause::MemoryPressure,
        text: "Memory is short on the machine of the server",
        load: Load::Any,
        needs: &[at_least(Measure::MemoryPressureRatio, 0.05, "processes waited for memory {} of the time", Unit::Percent)],
        supports: &[at_most(Measure::AvailableMemoryRatio, 0.1, "{} of the memory was available", Unit::Percent)],
        confidence: 0.7,
        hides: &[],
        advice: &["lower the server's cache (`--cache`), or give the machine, or the control group, more memory"],
    },
    Rule {
        cause: Cause::Network,
        text: "The network carries no more",
        load: Load::Any,
        needs: &[at_least(Measure::NetworkRatio, FULL, "the busiest interface carried {} of its speed", Unit::Percent)],
        supports: &[at_most(Measure::ServerCpuRatio, ROOM, "the server used {} of its CPU time", Unit::Percent)],
        confidence: 0.8,
        hides: &[Cause::TooFewClients, Cause::RoundTrip],
        advice: &["compress what is sent (`compressors=zstd` in the connection string), return fewer fields, or take a faster link"],
    },
    Rule {
        cause: Cause::ConnectionStorm,
        text: "Connections are opened all the time",
        load: Load::Any,
        needs: &[
            at_least(Measure::ConnectionsPerS, 10.0, "the server accepted {} connections", Unit::PerSecond),
            at_least(Measure::ConnectionsPerOperationRatio, 0.01, "that is {} of the operations", Unit::Percent),
        ],
        supports: &[],
        confidence: 0.8,
        hides: &[],
        advice: &["keep connections open: use a pool, and look why they end (timeouts, proxies, limits of the server)"],
    },
    Rule {
        cause: Cause::DiskOperations,
        text: "The disk does no more operations per second",
        load: Load::Any,
        needs: &[
            at_least(Measure::DiskOperationsPerS, 10.0, "they stood at {}", Unit::PerSecond),
            at_least(Measure::DiskBackedUpRatio, BACKED_UP, "requests waited before the disk {} of the time", Unit::Percent),
            at_least(Measure::InFlightRatio, 0.8, "{} of the connections waited for an answer", Unit::Percent),
            at_most(Measure::DiskOperationsVariationRatio, FLAT, "its operations per second varied by {} only", Unit::Percent),
            at_most(Measure::FlatterOperationsRatio, 1.2, "they varied {} as much as its bytes per second", Unit::Percent),
            at_most(Measure::DiskRequestBytes, LARGE_BYTES, "a request had {}", Unit::Bytes),
        ],
        supports: &[
            at_most(Measure::ServerCpuRatio, ROOM, "the server used {} of its CPU time", Unit::Percent),
            at_least(Measure::IowaitRatio, 0.1, "CPUs were idle and waited for the disk {} of the time", Unit::Percent),
        ],
        confidence: 0.75,
        hides: &[Cause::TooFewClients, Cause::SlowSync, Cause::MemoryPressure],
        advice: &["take a disk, or a volume, with more operations per second, or several of them (RAID 0)", "do less on it: a larger cache, fewer indexes, a longer interval between journal syncs"],
    },
    Rule {
        cause: Cause::DiskOperations,
        text: "The disk does no more operations per second",
        load: Load::Any,
        needs: &[
            at_least(Measure::DiskOperationsPerS, 10.0, "they stood at {}", Unit::PerSecond),
            at_least(Measure::DiskBackedUpRatio, BACKED_UP, "requests waited before the disk {} of the time", Unit::Percent),
            at_least(Measure::InFlightRatio, 0.8, "{} of the connections waited for an answer", Unit::Percent),
            at_most(Measure::DiskOperationsVariationRatio, FLAT, "its operations per second varied by {} only", Unit::Percent),
            at_most(Measure::FlatterOperationsRatio, 0.7, "they varied {} as much as its bytes per second", Unit::Percent),
        ],
        supports: &[
            at_most(Measure::ServerCpuRatio, ROOM, "the server used {} of its CPU time", Unit::Percent),
            at_least(Measure::IowaitRatio, 0.1, "CPUs were idle and waited for the disk {} of the time", Unit::Percent),
        ],
        confidence: 0.75,
        hides: &[Cause::TooFewClients, Cause::SlowSync, Cause::MemoryPressure],
        advice: &["take a disk, or a volume, with more operations per second, or several of them (RAID 0)", "do less on it: a larger cache, fewer indexes, a longer interval between journal syncs"],
    },
    Rule {
        cause: Cause::DiskBandwidth,
        text: "The disk carries no more bytes per second",
        load: Load::Any,
        needs: &[
            at_least(Measure::DiskBytesPerS, 10_485_760.0, "they stood at {}", Unit::BytesPerSecond),
            at_least(Measure::DiskBackedUpRatio, BACKED_UP, "requests waited before the disk {} of the time", Unit::Percent),
            at_least(Measure::InFlightRatio, 0.8, "{} of the connections waited for an answer", Unit::Percent),
            at_most(Measure::DiskBytesVariationRatio, FLAT, "its bytes per second varied by {} only", Unit::Percent),
            at_least(Measure::FlatterOperationsRatio, 1.5, "its operations per second varied {} as much", Unit::Percent),
        ],
        supports: &[at_most(Measure::ServerCpuRatio, ROOM, "the server used {} of its CPU time", Unit::Percent)],
        confidence: 0.7,
        hides: &[Cause::TooFewClients, Cause::SlowSync, Cause::MemoryPressure],
        advice: &["take a disk, or a volume, with more bandwidth, or several of them (RAID 0)", "compress more (`--set server.block_compressor=zstd`)"],
    },
    Rule {
        cause: Cause::DiskBandwidth,
        text: "The disk carries no more bytes per second",
        load: Load::Any,
        needs: &[
            at_least(Measure::DiskBytesPerS, 10_485_760.0, "they stood at {}", Unit::BytesPerSecond),
            at_least(Measure::DiskBackedUpRatio, BACKED_UP, "requests waited before the disk {} of the time", Unit::Percent),
            at_least(Measure::InFlightRatio, 0.8, "{} of the connections waited for an answer", Unit::Percent),
            at_most(Measure::DiskBytesVariationRatio, FLAT, "its bytes per second varied by {} only", Unit::Percent),
            at_least(Measure::FlatterOperationsRatio, 0.7, "its operations per second varied {} as much", Unit::Percent),
            at_least(Measure::DiskRequestBytes, LARGE_BYTES, "a request had {}", Unit::Bytes),
        ],
        supports: &[at_most(Measure::ServerCpuRatio, ROOM, "the server used {} of its CPU time", Unit::Percent)],
        confidence: 0.65,
        hides: &[Cause::TooFewClients, Cause::SlowSync, Cause::MemoryPressure],
        advice: &["take a disk, or a volume, with more bandwidth, or several of them (RAID 0)", "compress more (`--set server.block_compressor=zstd`)"],
    },
    Rule {
        cause: Cause::SlowSync,
        text: "Writes wait until the disk has them for good",
        load: Load::Any,
        needs: &[
            at_least(Measure::WriteServiceMs, 1.0, "a write took {}", Unit::Milliseconds),
            at_least(Measure::WritesPerS, 1.0, "there were {}", Unit::PerSecond),
            if_there(at_least(Measure::WriteOverReadRatio, 3.0, "that is {} of the time of a read", Unit::Percent)),
            at_least(Measure::SyncsPerWrite, 0.02, "the disk was flushed {} times for each write", Unit::Count),
            at_least(Measure::DiskSaturationRatio, 0.3, "it worked, or was waited for, {} of the time", Unit::Percent),
        ],
        supports: &[
            at_most(Measure::ServerCpuRatio, ROOM, "the server used {} of its CPU time", Unit::Percent),
            at_least(Measure::LogSyncMs, 0.5, "a sync of the server's log took {}", Unit::Milliseconds),
        ],
        confidence: 0.75,
        hides: &[Cause::TooFewClients],
        advice: &[
            "take a disk with a faster flush (a write cache that keeps its content without power), or put the journal on one",
            "more clients share a sync: try a higher `--clients`",
            "if the data allows it, do not wait for the journal (`w=1&journal=false`), and say so beside the figures",
        ],
    },
    Rule {
        cause: Cause::CacheTooSmall,
        text: "The cache of the server does not hold what is asked for",
        load: Load::Any,
        needs: &[
            at_least(Measure::DataOverCacheRatio, 1.0, "the data are {} of the cache", Unit::Percent),
            at_least(Measure::ReadBytesPerOperation, 512.0, "{} were read into the cache for each operation", Unit::Bytes),
        ],
        supports: &[
            at_most(Measure::CacheHitRatio, 0.97, "{} of the pages were found in the cache", Unit::Percent),
            at_least(Measure::ApplicationEvictionsPerS, 10.0, "threads of the application evicted {} pages", Unit::PerSecond),
            at_least(Measure::DiskSaturationRatio, 0.3, "something waited for the disk {} of the time", Unit::Percent),
        ],
        confidence: 0.7,
        hides: &[Cause::TooFewClients],
        advice: &["raise the cache (`--cache`), or the memory of the machine", "make the working set smaller: shorter documents, a better index, a compressor for blocks"],
    },
    Rule {
        cause: Cause::Checkpoint,
        text: "Checkpoints of the server slow the operations down",
        load: Load::Any,
        needs: &[
            at_least(Measure::CheckpointRatio, 0.05, "a checkpoint ran {} of the time", Unit::Percent),
            at_least(Measure::CheckpointSlowdownRatio, 1.5, "response times were {} of the usual while it ran", Unit::Percent),
        ],
        supports: &[at_least(Measure::DiskSaturationRatio, 0.5, "the disk was busy {} of the time", Unit::Percent)],
        confidence: 0.7,
        hides: &[],
        advice: &["take a disk that writes faster, or have less to write at once: a lower share of dirty data in the cache (`eviction_dirty_target`)"],
    },
    Rule {
        cause: Cause::Tickets,
        text: "Operations queue inside the server",
        load: Load::Any,
        needs: &[
            at_least(Measure::QueueCount, 1.0, "{} operations waited on average", Unit::Count),
            at_least(Measure::TicketsRatio, 0.9, "{} of the tickets were in use", Unit::Percent),
        ],
        supports: &[],
        confidence: 0.7,
        hides: &[Cause::TooFewClients],
        advice: &["look what holds the tickets: slow operations, a slow disk, lock conflicts; more tickets seldom help", "offer less at once: fewer clients"],
    },
    Rule {
        cause: Cause::Tickets,
        text: "Operations wait for locks of the server",
        load: Load::Any,
        needs: &[
            at_least(Measure::QueueCount, 1.0, "{} operations waited on average", Unit::Count),
            at_least(Measure::QueuedRatio, 0.25, "that is {} of those under way", Unit::Percent),
        ],
        supports: &[at_most(Measure::TicketsRatio, 0.9, "{} of the tickets were in use: it is not them that lack", Unit::Percent)],
        confidence: 0.6,
        hides: &[Cause::TooFewClients],
        advice: &["look which operation holds the lock (`currentOp`): building an index, dropping or renaming a collection, a long transaction"],
    },
    Rule {
        cause: Cause::ServerCpu,
        text: "The server used up its CPU time",
        load: Load::Any,
        needs: &[at_least(Measure::ServerCpuRatio, FULL, "it used {} of the CPU time that it may use", Unit::Percent)],
        supports: &[
            at_most(Measure::DiskSaturationRatio, ROOM, "the disk was busy {} of the time", Unit::Percent),
            at_least(Measure::ServerWaitingCount, 0.5, "{} of its threads waited for a CPU on average", Unit::Count),
        ],
        confidence: 0.8,
        hides: &[Cause::SharedCpu, Cause::TooFewClients, Cause::OneCore],
        advice: &["give it more or faster CPUs", "look where the time goes (`perf`): queries without an index, compression, checksums, TLS"],
    },
    Rule {
        cause: Cause::SharedCpu,
        text: "Client and server together used up the CPUs of the machine that they share",
        load: Load::Beside,
        needs: &[
            at_least(Measure::HostBusyRatio, 0.9, "the CPUs were busy {} of the time", Unit::Percent),
            at_least(Measure::ServerCpuRatio, 0.3, "the server used {} of them", Unit::Percent),
            at_most(Measure::OthersCpuCount, 0.25, "others used {} CPUs", Unit::Count),
        ],
        supports: &[at_most(Measure::DiskSaturationRatio, ROOM, "the disk was busy {} of the time", Unit::Percent)],
        confidence: 0.75,
        hides: &[Cause::TooFewClients],
        advice: &["put the client on another machine (`--uri`): what it uses here is missing from the server"],
    },
    Rule {
        cause: Cause::OneCore,
        text: "One CPU is full with interrupts while others have room",
        load: Load::Any,
        needs: &[
            at_least(Measure::BusiestInterruptsRatio, 0.5, "the busiest of them took {} of the time of a CPU", Unit::Percent),
            at_least(Measure::BusiestCpuRatio, 0.95, "the busiest CPU worked {} of the time", Unit::Percent),
            at_most(Measure::HostBusyRatio, ROOM, "all CPUs together worked {} of it", Unit::Percent),
        ],
        supports: &[],
        confidence: 0.75,
        hides: &[Cause::TooFewClients],
        advice: &["spread the interrupts of the network card over CPUs (`--rps`, its queues, their affinity)"],
    },
    Rule {
        cause: Cause::OneCore,
        text: "One thread of the server is full while CPUs have room",
        load: Load::Any,
        // It may move from CPU to CPU, so that none of them is full.
        needs: &[
            at_least(Measure::ServerBusiestThreadRatio, FULL, "the busiest thread of the server worked {} of the time", Unit::Percent),
            at_most(Measure::HostBusyRatio, ROOM, "all CPUs together worked {} of it", Unit::Percent),
        ],
        supports: &[],
        confidence: 0.75,
        hides: &[Cause::TooFewClients],
        advice: &["look what that thread does (`perf top`): a path that one thread serves does not get faster with more CPUs"],
    },
    Rule {
        cause: Cause::RoundTrip,
        text: "Most of the time goes into the way to the server and back",
        load: Load::Closed,
        needs: &[
            at_least(Measure::RoundTripRatio, 0.6, "an empty command takes {} of the time of an operation", Unit::Percent),
            at_most(Measure::ServerCpuRatio, 0.5, "the server used {} of its CPU time", Unit::Percent),
            at_most(Measure::HostBusyRatio, ROOM, "its machine was busy {} of the time", Unit::Percent),
        ],
        supports: &[],
        confidence: 0.7,
        hides: &[Cause::TooFewClients],
        advice: &["more clients at once hide the way (`--clients`), batches make fewer of them; or move the client nearer"],
    },
    Rule {
        cause: Cause::TooFewClients,
        text: "Nothing was exhausted: the clients did not ask for more",
        load: Load::Closed,
        needs: &[
            at_least(Measure::InFlightRatio, 0.8, "{} of the connections had an operation under way", Unit::Percent),
            at_most(Measure::ServerCpuRatio, ROOM, "the server used {} of its CPU time", Unit::Percent),
            at_most(Measure::HostBusyRatio, 0.8, "its machine was busy {} of the time", Unit::Percent),
            at_most(Measure::DiskSaturationRatio, ROOM, "the disk was busy {} of the time", Unit::Percent),
            at_most(Measure::ServerWaitingCount, 0.5, "{} of its threads waited for a CPU on average", Unit::Count),
        ],
        supports: &[],
        confidence: 0.7,
        hides: &[],
        advice: &["raise `--clients`, or let `dyno xmax` find the number that the server can use"],
    },
];
