//! Every property of YCSB's client, its core workload and its MongoDB binding: YCSB's default, and
//! what is done with it here. How a value is read is left to the sibling modules.

/// A property, its default and its treatment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Property {
    /// Name; a name that ends in `.*` stands for all names with this beginning.
    pub name: &'static str,
    /// YCSB's value when the property is not given; absent if YCSB has none.
    pub default: Option<&'static str>,
    /// What is done with it.
    pub treatment: Treatment,
}

/// What is done with a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// It sets this key of the plan.
    Plan(&'static str),
    /// It changes what `dyno ycsb` does or prints, not the plan.
    Client(&'static str),
    /// It is part of the connection string.
    Target(&'static str),
    /// It is accepted, and a value other than the default is worth a warning with this reason.
    NoEffect(&'static str),
    /// A value other than the default is an error with this reason.
    Refused(&'static str),
}

const fn plan(name: &'static str, default: &'static str, key: &'static str) -> Property {
    Property {
        name,
        default: Some(default),
        treatment: Treatment::Plan(key),
    }
}

const fn client(name: &'static str, default: &'static str, effect: &'static str) -> Property {
    Property {
        name,
        default: Some(default),
        treatment: Treatment::Client(effect),
    }
}

const fn target(name: &'static str, effect: &'static str) -> Property {
    Property {
        name,
        default: None,
        treatment: Treatment::Target(effect),
    }
}

const fn no_effect(name: &'static str, default: &'static str, reason: &'static str) -> Property {
    Property {
        name,
        default: Some(default),
        treatment: Treatment::NoEffect(reason),
    }
}

const fn refused(name: &'static str, default: &'static str, reason: &'static str) -> Property {
    Property {
        name,
        default: Some(default),
        treatment: Treatment::Refused(reason),
    }
}

impl Property {
    /// The same property, which YCSB gives no default.
    const fn without_default(mut self) -> Self {
        self.default = None;
        self
    }

    /// Whether a given name is this property.
    pub fn is_named(&self, name: &str) -> bool {
        match self.name.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == self.name,
        }
    }
}

/// The property with this name.
pub fn find(name: &str) -> Option<&'static Property> {
    PROPERTIES.iter().find(|property| property.is_named(name))
}

const NO_JVM: &str = "this program does not run in a JVM";
const NO_RAW: &str = "a run keeps histograms, not every single latency";
const NO_BATCH_POOL: &str = "each client has a connection of its own and never waits for one";
const ONE_WORKLOAD: &str = "it belongs to a workload class other than `CoreWorkload`";
const NO_ENCRYPTION: &str = "field-level and queryable encryption are not supported";

/// All known properties.
pub const PROPERTIES: &[Property] = &[
    // Client
    client(
        "workload",
        "site.ycsb.workloads.CoreWorkload",
        "checked: `CoreWorkload` is the only workload class",
    ),
    client(
        "db",
        "site.ycsb.db.MongoDbClient",
        "checked: the MongoDB binding is the only one",
    ),
    plan("recordcount", "0", "data.records").without_default(),
    plan("operationcount", "0", "phases.operations"),
    plan("insertcount", "", "data.insert_count").without_default(),
    plan("insertstart", "0", "data.insert_start"),
    plan("threadcount", "1", "client.clients"),
    plan("target", "0", "schedule.rate_per_s"),
    plan("maxexecutiontime", "0", "phases.duration"),
    client(
        "dotransactions",
        "true",
        "checked: the command `load` or `run` chooses the phase",
    ),
    client("status", "false", "a status line on stderr"),
    client("status.interval", "10", "seconds between two status lines"),
    client("label", "", "text before the status line"),
    client(
        "exporter",
        "site.ycsb.measurements.exporter.TextMeasurementsExporter",
        "form of the final output",
    ),
    client(
        "exportfile",
        "",
        "file for the final output, in place of stdout",
    )
    .without_default(),
    client(
        "measurementtype",
        "hdrhistogram",
        "figures of an operation; `raw` types are refused",
    ),
    client(
        "measurement.interval",
        "op",
        "where latencies begin: at the send, at the intended start, or both",
    ),
    client(
        "hdrhistogram.percentiles",
        "50,95,99",
        "percentiles of the final output",
    ),
    client(
        "hdrhistogram.fileoutput",
        "false",
        "one histogram log per operation",
    ),
    client(
        "hdrhistogram.output.path",
        "",
        "beginning of the names of these logs",
    ),
    client(
        "measurement.histogram.verbose",
        "false",
        "the buckets of the histograms are printed too",
    ),
    client(
        "histogram.buckets",
        "1000",
        "number of 1 ms buckets of the type `histogram`",
    ),
    client(
        "timeseries.granularity",
        "1000",
        "milliseconds of a step of the type `timeseries`",
    ),
    client(
        "reportlatencyforeacherror",
        "false",
        "no effect, with a warning: latencies of failures are not kept",
    ),
    client(
        "latencytrackederrors",
        "",
        "no effect, with a warning: latencies of failures are not kept",
    )
    .without_default(),
    no_effect(
        "spin.sleep",
        "false",
        "starts are always timed by sleeping and then spinning",
    ),
    no_effect("measurement.trackjvm", "false", NO_JVM),
    no_effect("measurement.raw.output_file", "", NO_RAW),
    no_effect("measurement.raw.no_summary", "false", NO_RAW),
    no_effect("htrace.*", "", NO_JVM),
    // CoreWorkload
    plan("table", "usertable", "data.collection"),
    plan("fieldcount", "10", "data.field_count"),
    plan("fieldnameprefix", "field", "data.field_name_prefix"),
    plan("fieldlength", "100", "data.field_length"),
    plan("minfieldlength", "1", "data.field_length"),
    plan("fieldlengthdistribution", "constant", "data.field_length"),
    plan("fieldlengthhistogram", "hist.txt", "data.field_length"),
    plan("dataintegrity", "false", "data.integrity"),
    plan("insertorder", "hashed", "data.key_order"),
    plan("zeropadding", "1", "data.zero_padding"),
    plan("readallfields", "true", "access.read_all_fields"),
    plan(
        "readallfieldsbyname",
        "false",
        "access.read_all_fields_by_name",
    ),
    plan("writeallfields", "false", "access.write_all_fields"),
    plan("minscanlength", "1", "access.min_scan_length"),
    plan("maxscanlength", "1000", "access.max_scan_length"),
    plan(
        "scanlengthdistribution",
        "uniform",
        "access.scan_length_distribution",
    ),
    plan("readproportion", "0.95", "operations.read"),
    plan("updateproportion", "0.05", "operations.update"),
    plan("insertproportion", "0.0", "operations.insert"),
    plan("scanproportion", "0.0", "operations.scan"),
    plan(
        "readmodifywriteproportion",
        "0.0",
        "operations.read_modify_write",
    ),
    plan("requestdistribution", "uniform", "keys.distribution"),
    plan("hotspotdatafraction", "0.2", "keys.hot_data_ratio"),
    plan("hotspotopnfraction", "0.8", "keys.hot_operation_ratio"),
    plan("exponential.percentile", "95", "keys.percentile"),
    plan("exponential.frac", "0.8571428571", "keys.data_ratio"),
    client(
        "core_workload_insertion_retry_limit",
        "0",
        "how often a failed insert of the load phase is repeated",
    ),
    client(
        "core_workload_insertion_retry_interval",
        "3",
        "seconds before it is repeated",
    ),
    client(
        "core_workload_insertion_keep_going_on_error",
        "false",
        "a load goes on after an insert that failed for good",
    ),
    // Other workload classes
    refused("disksize", "100000000", ONE_WORKLOAD),
    refused("occupancy", "0.9", ONE_WORKLOAD),
    refused("storageages", "10", ONE_WORKLOAD),
    // MongoDB binding
    target(
        "mongodb.url",
        "the connection string; `mongodb://localhost:27017/ycsb?w=1` for `dyno ycsb`",
    ),
    plan("batchsize", "1", "client.batch"),
    plan("mongodb.batchsize", "1", "client.batch"),
    plan("mongodb.upsert", "false", "access.upsert"),
    target(
        "mongodb.writeConcern",
        "`w` or `journal`, unless `mongodb.url` has it",
    ),
    target(
        "mongodb.readPreference",
        "`readPreference`, unless `mongodb.url` has it",
    ),
    target(
        "mongodb.maxconnections",
        "`maxPoolSize`, unless `mongodb.url` has it",
    ),
    no_effect(
        "mongodb.threadsAllowedToBlockForConnectionMultiplier",
        "",
        NO_BATCH_POOL,
    ),
    // Additions of mongodb-labs
    target("mongodb.username", "user, unless `mongodb.url` names one"),
    target("mongodb.password", "password of that user"),
    plan("compressibility", "1", "data.compressible_ratio"),
    refused(
        "datatype",
        "binData",
        "values are stored as binary data, as the MongoDB binding does",
    ),
    refused(
        "mongodb.sharded",
        "false",
        "the collection is not sharded by this program; shard it before the load",
    ),
    refused("mongodb.fle", "false", NO_ENCRYPTION),
    refused("mongodb.qe", "false", NO_ENCRYPTION),
    refused("mongodb.fle.*", "", NO_ENCRYPTION),
    refused("mongodb.qe.*", "", NO_ENCRYPTION),
    no_effect(
        "noopsthreshold",
        "240",
        "operations without an answer end by the timeout of the plan",
    ),
    // Ours
    plan("dyno.server", "uri", "server.kind"),
    plan("dyno.backend", "wire", "client.backend"),
    plan("dyno.seed", "42", "client.seed"),
    plan("dyno.timeout", "10s", "client.timeout"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_name_is_listed_once() {
        let mut seen = HashSet::new();
        for property in PROPERTIES {
            assert!(seen.insert(property.name), "{}", property.name);
        }
    }

    #[test]
    fn names_are_found_exactly_and_by_their_beginning() {
        assert_eq!(
            find("recordcount").map(|property| property.name),
            Some("recordcount")
        );
        assert_eq!(
            find("htrace.sampler.classes").map(|property| property.name),
            Some("htrace.*")
        );
        assert_eq!(find("recordCount"), None);
        assert_eq!(find("htrace"), None);
    }
}
