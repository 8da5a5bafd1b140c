//! All parameters of the workload, with their default in the original and their treatment here. The
//! sibling modules handle values that depend on several parameters.

use self::Form::{Boolean, Cpus, Number, Positive, Text, Whole, Word};

/// A parameter, its default in the original and its treatment here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variable {
    /// Name of the environment variable.
    pub name: &'static str,
    /// Value in the original if the variable is not set; absent if it is empty and something else
    /// decides.
    pub default: Option<&'static str>,
    /// Valid form of its value.
    pub form: Form,
    pub treatment: Treatment,
}

/// Form of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// A whole number in these bounds.
    Whole(u64, u64),
    /// A finite number from 0.
    Number,
    /// A finite number above 0.
    Positive,
    /// `true` or `false` in any case.
    Boolean,
    /// One of these words in any case, passed on in this spelling.
    Word(&'static [&'static str]),
    /// Any text without control characters.
    Text,
    /// CPU numbers such as `0-7,16`.
    Cpus,
}

/// Treatment of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Treatment {
    /// Sets this YCSB property.
    Property(&'static str),
    /// Sets this key of the plan.
    Plan(&'static str),
    /// Sets the named thing together with other parameters.
    Together(&'static str),
    /// Has no effect here for this reason; a value other than the default gives a warning.
    NoEffect(&'static str),
    /// A value other than the default is an error; the second text is the hint.
    Refused(&'static str, &'static str),
}

const ANY: Form = Whole(0, u64::MAX);
const FROM_ONE: Form = Whole(1, u64::MAX);
const PLACEMENT: &str = "server.placement";
const NO_KUBERNETES: &str = "Kubernetes does not schedule anything here";
const NO_ACCELERATOR: &str = "it belongs to an accelerator that is not used";

/// Rows of the table: treatment of a parameter, its name, its default in the original if it has
/// one, its form, and the property, the key, the affected thing or the reason.
macro_rules! variables {
    (default) => { None };
    (default $default:literal) => { Some($default) };
    ($($treatment:ident $name:literal $(= $default:literal)?: $form:expr, $($text:expr),+;)*) => {
        &[$(Variable {
            name: $name,
            default: variables!(default $($default)?),
            form: $form,
            treatment: Treatment::$treatment($($text),+),
        }),*]
    };
}

/// All parameters, in the order of the documentation.
pub const VARIABLES: &[Variable] = variables! {
    // Which workload
    Together "TESTCASE": Text, "the workload";
    Together "WORKLOAD_FILE" = "90Read10Update": Text, "the workload";
    // Servers and clients
    Plan "CLIENT_SERVER_PAIR" = "3": Whole(1, 64), "server.pairs";
    Together "CLIENT_COUNT" = "1": Whole(0, 100_000), "a warning";
    Together "RUN_SINGLE_NODE" = "false": Boolean, "a warning";
    Together "REPLICA_SET" = "false": Boolean, "server.topology";
    Together "TLS_FLAG" = "0": Text, "server.encryption";
    NoEffect "CONFIG_CENTER_PORT" = "16379": Whole(1, 65_535),
        "clients on one machine need no Redis, and a fleet finds it through `DYNO_REDIS` or \
            `DYNO_REDIS_FILE`";
    // Placement
    Together "NUMACTL_OPTION" = "0": Whole(0, 5), PLACEMENT;
    Together "SELECT_NUMA_NODE" = "0": Whole(0, 65_535), PLACEMENT;
    Together "CORES": Cpus, PLACEMENT;
    Together "CORE_NUMS_EACH_INSTANCE": Whole(1, 65_535), PLACEMENT;
    Together "YCSB_CORES": Cpus, PLACEMENT;
    Together "CUSTOMER_NUMAOPT_SERVER": Text, PLACEMENT;
    Together "CUSTOMER_NUMAOPT_CLIENT": Text, PLACEMENT;
    // YCSB
    Property "THREADS" = "10": Whole(1, 100_000), "threadcount";
    Property "RECORD_COUNT": FROM_ONE, "recordcount";
    Property "OPERATION_COUNT": ANY, "operationcount";
    Property "MAX_EXECUTION_TIME": ANY, "maxexecutiontime";
    Property "TARGET": Number, "target";
    Property "INSERT_START": ANY, "insertstart";
    Property "INSERT_COUNT": ANY, "insertcount";
    Property "INSERT_ORDER": Word(&["hashed", "ordered", "sequential", "random"]), "insertorder";
    Property "READ_PROPORTION": Number, "readproportion";
    Property "UPDATE_PROPORTION": Number, "updateproportion";
    Property "INSERT_PROPORTION": Number, "insertproportion";
    Property "SCAN_PROPORTION": Number, "scanproportion";
    Property "READ_MODIFY_WRITE_PROPORTION": Number, "readmodifywriteproportion";
    Property "REQUEST_DISTRIBUTION": Word(&["uniform", "zipfian", "latest", "hotspot", "sequential", "exponential"]),
        "requestdistribution";
    Property "FIELD_COUNT": FROM_ONE, "fieldcount";
    Property "FIELD_LENGTH": ANY, "fieldlength";
    Property "MIN_FIELD_LENGTH": ANY, "minfieldlength";
    Property "FIELD_NAME_PREFIX": Text, "fieldnameprefix";
    Property "READ_ALL_FIELDS": Boolean, "readallfields";
    Property "WRITE_ALL_FIELDS": Boolean, "writeallfields";
    Property "MIN_SCANLENGTH": FROM_ONE, "minscanlength";
    Property "MAX_SCANLENGTH": FROM_ONE, "maxscanlength";
    Property "SCAN_LENGTH_DISTRIBUTION": Word(&["uniform", "zipfian"]), "scanlengthdistribution";
    Property "ZERO_PADDING": ANY, "zeropadding";
    Together "YCSB_MEASUREMENT_TYPE": Word(&["hdrhistogram", "histogram", "timeseries", "raw",
        "hdrhistogram+histogram", "hdrhistogram+raw"]), "a warning or an error";
    NoEffect "JVM_ARGS" = "-XX:+UseNUMA": Text, "the client does not run in a JVM";
    // mongod
    Plan "CACHE_SIZE_GB": Positive, "server.cache";
    Plan "JOURNAL_ENABLED" = "false": Boolean, "server.journal";
    Plan "JOURNAL_COMPRESSOR" = "snappy": Word(&["none", "snappy", "zlib", "zstd"]), "server.journal_compressor";
    Plan "COLLECTIONCONFIG_BLOCKCOMPRESSOR" = "snappy": Word(&["none", "lz4", "snappy", "zlib", "zstd"]),
        "server.block_compressor";
    Together "DB_HOSTPATH": Text, "server.data_dir, server.data_dirs";
    Together "DISK_SPEC" = "false": Boolean, "server.disk_mapping";
    NoEffect "PROCESS_MANAGEMENT_FORK" = "true": Boolean,
        "servers are child processes, so none is left behind";
    Refused "MONGO_DISK_DATABASE_ACCESS" = "false": Boolean,
        "dyno does not fill the machine's memory to make the server read from its disk",
        "set `CACHE_SIZE_GB` below the size of the data, and limit the memory of `dyno` and its servers with a control group";
    NoEffect "MONGODB_PERCENTAGE_DB_CACHE_DB": Text,
        "it has an effect only with `MONGO_DISK_DATABASE_ACCESS`, which is not supported";
    // The machine
    Together "NETWORK_RPS_TUNE_ENABLE" = "false": Boolean, "server.receive_packet_steering";
    NoEffect "DB_HUGEPAGE_STATUS" = "false": Boolean,
        "huge pages stay as they are; `dyno doctor` shows the advice for this server version, and \
            `dyno doctor --apply huge_pages,huge_pages_defrag` applies it";
    NoEffect "KERNEL_SETTING_OPTIMIZED" = "true": Boolean,
        "kernel settings stay as they are; `dyno doctor` checks them";
    Refused "CORE_FREQUENCY_ENABLE" = "false": Boolean,
        "a run does not set the core frequency", "set it before the run, for example with `cpupower frequency-set`";
    NoEffect "CORE_FREQUENCY": Text, "it has an effect only with `CORE_FREQUENCY_ENABLE`, which is not supported";
    Refused "UNCORE_FREQUENCY_ENABLE" = "false": Boolean,
        "a run does not set the uncore frequency",
        "set it before the run, in `/sys/devices/system/cpu/intel_uncore_frequency`";
    NoEffect "UNCORE_FREQUENCY": Text, "it has an effect only with `UNCORE_FREQUENCY_ENABLE`, which is not supported";
    // Watching
    Together "EVENT_TRACE_PARAMS" = "roi,RUN_PHASE,benchmark-finish": Text, "traces";
    // Accelerators
    Refused "HERO_FEATURE_IAA" = "false": Boolean,
        "compression with the In-Memory Analytics Accelerator needs a `mongod` built for it, and dyno does not configure its devices",
        "configure the devices, start that `mongod` yourself and use it with `--uri`";
    NoEffect "IAA_MODE": Text, NO_ACCELERATOR;
    NoEffect "IAA_DEVICES": Text, NO_ACCELERATOR;
    NoEffect "IAA_WQ_SIZE": Text, NO_ACCELERATOR;
    Refused "HERO_FEATURE_QAT" = "false": Boolean,
        "neither the servers nor this client are built for QuickAssist compression and encryption",
        "start such a server yourself and use it with `--uri`";
    // Kubernetes
    NoEffect "KUBERNETES_RESOURCE_REQUESTS" = "true": Boolean, NO_KUBERNETES;
    NoEffect "KUBERNETES_RESOURCE_REQUESTS_CPU" = "1": Text, NO_KUBERNETES;
    NoEffect "KUBERNETES_RESOURCE_REQUESTS_MEMORY": Text, NO_KUBERNETES;
    Refused "KUBERNETES_RESOURCE_LIMITS" = "false": Boolean,
        "limits of single servers are not set",
        "place the servers with `NUMACTL_OPTION` and set `CACHE_SIZE_GB`, or start `dyno` in a control group, whose limits it respects";
    NoEffect "KUBERNETES_RESOURCE_LIMITS_CPU": Text,
        "it has an effect only with `KUBERNETES_RESOURCE_LIMITS`, which is not supported";
    NoEffect "KUBERNETES_RESOURCE_LIMITS_MEMORY": Text,
        "it has an effect only with `KUBERNETES_RESOURCE_LIMITS`, which is not supported";
};

/// The parameter with this name.
pub fn find(name: &str) -> Option<&'static Variable> {
    VARIABLES.iter().find(|variable| variable.name == name)
}
