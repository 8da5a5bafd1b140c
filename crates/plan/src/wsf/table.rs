//! Every parameter of the workload: its default there, and what becomes of it here. How values of
//! several parameters act together is left to the sibling modules.

/// A parameter, its default there and its treatment here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variable {
    /// Name of the environment variable.
    pub name: &'static str,
    /// Value there when the variable is not set; absent where it is empty and something else decides.
    pub default: Option<&'static str>,
    /// What its value must be.
    pub form: Form,
    /// What is done with it.
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
    /// One of these words in any case, passed on in this one.
    Word(&'static [&'static str]),
    /// Anything without a control character.
    Text,
    /// CPU numbers such as `0-7,16`.
    Cpus,
}

/// What is done with a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Treatment {
    /// It sets this YCSB property.
    Property(&'static str),
    /// It sets this key of the plan.
    Plan(&'static str),
    /// It acts together with others on what is named here.
    Together(&'static str),
    /// It changes nothing here for this reason, which is a warning for another value than the default.
    NoEffect(&'static str),
    /// Another value than the default is an error; the second text says what to do.
    Refused(&'static str, &'static str),
}

impl Variable {
    const fn new(name: &'static str, form: Form, treatment: Treatment) -> Self {
        Variable {
            name,
            default: None,
            form,
            treatment,
        }
    }

    const fn or(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }
}

const fn property(name: &'static str, form: Form, property: &'static str) -> Variable {
    Variable::new(name, form, Treatment::Property(property))
}

const fn plan(name: &'static str, form: Form, key: &'static str) -> Variable {
    Variable::new(name, form, Treatment::Plan(key))
}

const fn together(name: &'static str, form: Form, on: &'static str) -> Variable {
    Variable::new(name, form, Treatment::Together(on))
}

const fn no_effect(name: &'static str, form: Form, reason: &'static str) -> Variable {
    Variable::new(name, form, Treatment::NoEffect(reason))
}

const fn refused(
    name: &'static str,
    form: Form,
    reason: &'static str,
    instead: &'static str,
) -> Variable {
    Variable::new(name, form, Treatment::Refused(reason, instead))
}

const ANY: Form = Form::Whole(0, u64::MAX);
const FROM_ONE: Form = Form::Whole(1, u64::MAX);
const PLACEMENT: &str = "server.placement";
const NO_KUBERNETES: &str = "nothing is scheduled by Kubernetes";
const NO_ACCELERATOR: &str = "it belongs to an accelerator that is not used";

/// All parameters, in the order of the documentation.
pub const VARIABLES: &[Variable] = &[
    // Which workload
    together("TESTCASE", Form::Text, "the workload"),
    together("WORKLOAD_FILE", Form::Text, "the workload").or("90Read10Update"),
    // Servers and clients
    plan("CLIENT_SERVER_PAIR", Form::Whole(1, 64), "server.pairs").or("3"),
    together("CLIENT_COUNT", Form::Whole(0, 100_000), "a warning").or("1"),
    together("RUN_SINGLE_NODE", Form::Boolean, "a warning").or("false"),
    together("REPLICA_SET", Form::Boolean, "server.topology").or("false"),
    together("TLS_FLAG", Form::Text, "server.encryption").or("0"),
    no_effect(
        "CONFIG_CENTER_PORT",
        Form::Whole(1, 65_535),
        "clients wait for each other inside of one process, there is no Redis",
    )
    .or("16379"),
    // Placement
    together("NUMACTL_OPTION", Form::Whole(0, 5), PLACEMENT).or("0"),
    together("SELECT_NUMA_NODE", Form::Whole(0, 65_535), PLACEMENT).or("0"),
    together("CORES", Form::Cpus, PLACEMENT),
    together("CORE_NUMS_EACH_INSTANCE", Form::Whole(1, 65_535), PLACEMENT),
    together("YCSB_CORES", Form::Cpus, PLACEMENT),
    together("CUSTOMER_NUMAOPT_SERVER", Form::Text, PLACEMENT),
    together("CUSTOMER_NUMAOPT_CLIENT", Form::Text, PLACEMENT),
    // YCSB
    property("THREADS", Form::Whole(1, 100_000), "threadcount").or("10"),
    property("RECORD_COUNT", FROM_ONE, "recordcount"),
    property("OPERATION_COUNT", ANY, "operationcount"),
    property("MAX_EXECUTION_TIME", ANY, "maxexecutiontime"),
    property("TARGET", Form::Number, "target"),
    property("INSERT_START", ANY, "insertstart"),
    property("INSERT_COUNT", ANY, "insertcount"),
    property(
        "INSERT_ORDER",
        Form::Word(&["hashed", "ordered", "sequential", "random"]),
        "insertorder",
    ),
    property("READ_PROPORTION", Form::Number, "readproportion"),
    property("UPDATE_PROPORTION", Form::Number, "updateproportion"),
    property("INSERT_PROPORTION", Form::Number, "insertproportion"),
    property("SCAN_PROPORTION", Form::Number, "scanproportion"),
    property(
        "READ_MODIFY_WRITE_PROPORTION",
        Form::Number,
        "readmodifywriteproportion",
    ),
    property(
        "REQUEST_DISTRIBUTION",
        Form::Word(&[
            "uniform",
            "zipfian",
            "latest",
            "hotspot",
            "sequential",
            "exponential",
        ]),
        "requestdistribution",
    ),
    property("FIELD_COUNT", FROM_ONE, "fieldcount"),
    property("FIELD_LENGTH", ANY, "fieldlength"),
    property("MIN_FIELD_LENGTH", ANY, "minfieldlength"),
    property("FIELD_NAME_PREFIX", Form::Text, "fieldnameprefix"),
    property("READ_ALL_FIELDS", Form::Boolean, "readallfields"),
    property("WRITE_ALL_FIELDS", Form::Boolean, "writeallfields"),
    property("MIN_SCANLENGTH", FROM_ONE, "minscanlength"),
    property("MAX_SCANLENGTH", FROM_ONE, "maxscanlength"),
    property(
        "SCAN_LENGTH_DISTRIBUTION",
        Form::Word(&["uniform", "zipfian"]),
        "scanlengthdistribution",
    ),
    property("ZERO_PADDING", ANY, "zeropadding"),
    together(
        "YCSB_MEASUREMENT_TYPE",
        Form::Word(&[
            "hdrhistogram",
            "histogram",
            "timeseries",
            "raw",
            "hdrhistogram+histogram",
            "hdrhistogram+raw",
        ]),
        "a warning or an error",
    ),
    no_effect("JVM_ARGS", Form::Text, "the client does not run in a JVM").or("-XX:+UseNUMA"),
    // mongod
    plan("CACHE_SIZE_GB", Form::Positive, "server.cache"),
    plan("JOURNAL_ENABLED", Form::Boolean, "server.journal").or("false"),
    plan(
        "JOURNAL_COMPRESSOR",
        Form::Word(&["none", "snappy", "zlib", "zstd"]),
        "server.journal_compressor",
    )
    .or("snappy"),
    plan(
        "COLLECTIONCONFIG_BLOCKCOMPRESSOR",
        Form::Word(&["none", "lz4", "snappy", "zlib", "zstd"]),
        "server.block_compressor",
    )
    .or("snappy"),
    together("DB_HOSTPATH", Form::Text, "server.data_dir, server.data_dirs"),
    together("DISK_SPEC", Form::Boolean, "server.disk_mapping").or("false"),
    no_effect(
        "PROCESS_MANAGEMENT_FORK",
        Form::Boolean,
        "servers are children of this program, so that none is left behind",
    )
    .or("true"),
    refused(
        "MONGO_DISK_DATABASE_ACCESS",
        Form::Boolean,
        "the memory of the machine is not filled up to make the server read from its disk",
        "give a cache that does not hold the data by `CACHE_SIZE_GB`, and limit the memory of `dyno` and its servers by a control group",
    )
    .or("false"),
    no_effect(
        "MONGODB_PERCENTAGE_DB_CACHE_DB",
        Form::Text,
        "it counts only with `MONGO_DISK_DATABASE_ACCESS`, which is not supported",
    ),
    // The machine
    together(
        "NETWORK_RPS_TUNE_ENABLE",
        Form::Boolean,
        "server.receive_packet_steering",
    )
    .or("false"),
    no_effect(
        "DB_HUGEPAGE_STATUS",
        Form::Boolean,
        "a run does not change huge pages; `dyno doctor` says what the version of the server needs, and `dyno doctor --apply huge_pages,huge_pages_defrag` sets it",
    )
    .or("false"),
    no_effect(
        "KERNEL_SETTING_OPTIMIZED",
        Form::Boolean,
        "a run does not change settings of the kernel; `dyno doctor` checks them",
    )
    .or("true"),
    refused(
        "CORE_FREQUENCY_ENABLE",
        Form::Boolean,
        "a run does not set the frequency of the cores",
        "set it before the run, such as by `cpupower frequency-set`",
    )
    .or("false"),
    no_effect(
        "CORE_FREQUENCY",
        Form::Text,
        "it counts only with `CORE_FREQUENCY_ENABLE`, which is not supported",
    ),
    refused(
        "UNCORE_FREQUENCY_ENABLE",
        Form::Boolean,
        "a run does not set the frequency outside of the cores",
        "set it before the run, in `/sys/devices/system/cpu/intel_uncore_frequency`",
    )
    .or("false"),
    no_effect(
        "UNCORE_FREQUENCY",
        Form::Text,
        "it counts only with `UNCORE_FREQUENCY_ENABLE`, which is not supported",
    ),
    // Watching
    together("EVENT_TRACE_PARAMS", Form::Text, "traces").or("roi,RUN_PHASE,benchmark-finish"),
    // Accelerators
    refused(
        "HERO_FEATURE_IAA",
        Form::Boolean,
        "compression by the In-Memory Analytics Accelerator needs a `mongod` that was built for it, and its devices are not configured here",
        "configure the devices, start that `mongod` yourself, and aim at it with `--uri`",
    )
    .or("false"),
    no_effect("IAA_MODE", Form::Text, NO_ACCELERATOR),
    no_effect("IAA_DEVICES", Form::Text, NO_ACCELERATOR),
    no_effect("IAA_WQ_SIZE", Form::Text, NO_ACCELERATOR),
    refused(
        "HERO_FEATURE_QAT",
        Form::Boolean,
        "compression and encryption by QuickAssist are not there: neither the servers nor this client are built for it",
        "start such a server yourself, and aim at it with `--uri`",
    )
    .or("false"),
    // Kubernetes
    no_effect("KUBERNETES_RESOURCE_REQUESTS", Form::Boolean, NO_KUBERNETES).or("true"),
    no_effect("KUBERNETES_RESOURCE_REQUESTS_CPU", Form::Text, NO_KUBERNETES).or("1"),
    no_effect("KUBERNETES_RESOURCE_REQUESTS_MEMORY", Form::Text, NO_KUBERNETES),
    refused(
        "KUBERNETES_RESOURCE_LIMITS",
        Form::Boolean,
        "limits of single servers are not set",
        "place the servers by `NUMACTL_OPTION` and give `CACHE_SIZE_GB`, or start `dyno` in a control group, whose limits it keeps to",
    )
    .or("false"),
    no_effect(
        "KUBERNETES_RESOURCE_LIMITS_CPU",
        Form::Text,
        "it counts only with `KUBERNETES_RESOURCE_LIMITS`, which is not supported",
    ),
    no_effect(
        "KUBERNETES_RESOURCE_LIMITS_MEMORY",
        Form::Text,
        "it counts only with `KUBERNETES_RESOURCE_LIMITS`, which is not supported",
    ),
];

/// The parameter with this name.
pub fn find(name: &str) -> Option<&'static Variable> {
    VARIABLES.iter().find(|variable| variable.name == name)
}
