//! Every property of YCSB's client, its core workload and its MongoDB binding: YCSB's default, and
//! its treatment here. The sibling modules read the values.

/// A property, its default and its treatment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Property {
    /// A name that ends in `.*` matches all names with this prefix.
    pub name: &'static str,
    /// YCSB's value if the property is not given; absent if YCSB has none.
    pub default: Option<&'static str>,
    pub treatment: Treatment,
}

/// Treatment of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// Sets this key of the plan.
    Plan(&'static str),
    /// Changes what `dyno ycsb` does or prints, not the plan.
    Client(&'static str),
    /// Has the only supported value.
    Checked(&'static str),
    /// Part of the connection string.
    Target(&'static str),
    /// Accepted; a value other than the default gives a warning with this reason.
    NoEffect(&'static str),
    /// A value other than the default is an error with this reason.
    Refused(&'static str),
}

impl Property {
    /// Whether a given name matches this property.
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

/// Rows of the table: treatment of a property, its name, YCSB's default if it has one, and the key,
/// effect or reason.
macro_rules! properties {
    (default) => { None };
    (default $default:literal) => { Some($default) };
    ($($treatment:ident $name:literal $(= $default:literal)?, $text:expr;)*) => {
        &[$(Property {
            name: $name,
            default: properties!(default $($default)?),
            treatment: Treatment::$treatment($text),
        }),*]
    };
}

/// All known properties.
pub const PROPERTIES: &[Property] = properties! {
    // Client
    Checked "workload" = "site.ycsb.workloads.CoreWorkload", "`CoreWorkload` is the only workload class";
    Checked "db" = "site.ycsb.db.MongoDbClient", "the MongoDB binding is the only one";
    Plan "recordcount", "data.records";
    Plan "operationcount" = "0", "phases.operations";
    Plan "insertcount", "data.insert_count";
    Plan "insertstart" = "0", "data.insert_start";
    Plan "threadcount" = "1", "client.clients";
    Plan "target" = "0", "schedule.rate_per_s";
    Plan "maxexecutiontime" = "0", "phases.duration";
    Checked "dotransactions" = "true", "the command `load` or `run` chooses the phase";
    Client "status" = "false", "a status line on stderr";
    Client "status.interval" = "10", "seconds between two status lines";
    Client "label" = "", "text before the status line";
    Client "exporter" = "site.ycsb.measurements.exporter.TextMeasurementsExporter", "format of the final output";
    Client "exportfile", "file for the final output instead of stdout";
    Client "measurementtype" = "hdrhistogram", "figures of an operation; `raw` types are refused";
    Client "measurement.interval" = "op", "where latencies begin: at the send, at the intended start, or both";
    Client "hdrhistogram.percentiles" = "50,95,99", "percentiles of the final output";
    Client "hdrhistogram.fileoutput" = "false", "one histogram log per operation";
    Client "hdrhistogram.output.path" = "", "prefix of the names of these logs";
    Client "measurement.histogram.verbose" = "false", "the buckets of the histograms are printed too";
    Client "histogram.buckets" = "1000", "number of 1 ms buckets of the type `histogram`";
    Client "timeseries.granularity" = "1000", "milliseconds of a step of the type `timeseries`";
    Client "reportlatencyforeacherror" = "false", "no effect, with a warning: latencies of failures are not kept";
    Client "latencytrackederrors", "no effect, with a warning: latencies of failures are not kept";
    NoEffect "spin.sleep" = "false", "starts are always timed by sleeping and then spinning";
    NoEffect "measurement.trackjvm" = "false", NO_JVM;
    NoEffect "measurement.raw.output_file" = "", NO_RAW;
    NoEffect "measurement.raw.no_summary" = "false", NO_RAW;
    NoEffect "htrace.*" = "", NO_JVM;
    // CoreWorkload
    Plan "table" = "usertable", "data.collection";
    Plan "fieldcount" = "10", "data.field_count";
    Plan "fieldnameprefix" = "field", "data.field_name_prefix";
    Plan "fieldlength" = "100", "data.field_length";
    Plan "minfieldlength" = "1", "data.field_length";
    Plan "fieldlengthdistribution" = "constant", "data.field_length";
    Plan "fieldlengthhistogram" = "hist.txt", "data.field_length";
    Plan "dataintegrity" = "false", "data.integrity";
    Plan "insertorder" = "hashed", "data.key_order";
    Plan "zeropadding" = "1", "data.zero_padding";
    Plan "readallfields" = "true", "access.read_all_fields";
    Plan "readallfieldsbyname" = "false", "access.read_all_fields_by_name";
    Plan "writeallfields" = "false", "access.write_all_fields";
    Plan "minscanlength" = "1", "access.min_scan_length";
    Plan "maxscanlength" = "1000", "access.max_scan_length";
    Plan "scanlengthdistribution" = "uniform", "access.scan_length_distribution";
    Plan "readproportion" = "0.95", "operations.read";
    Plan "updateproportion" = "0.05", "operations.update";
    Plan "insertproportion" = "0.0", "operations.insert";
    Plan "scanproportion" = "0.0", "operations.scan";
    Plan "readmodifywriteproportion" = "0.0", "operations.read_modify_write";
    Plan "requestdistribution" = "uniform", "keys.distribution";
    Plan "hotspotdatafraction" = "0.2", "keys.hot_data_ratio";
    Plan "hotspotopnfraction" = "0.8", "keys.hot_operation_ratio";
    Plan "exponential.percentile" = "95", "keys.percentile";
    Plan "exponential.frac" = "0.8571428571", "keys.data_ratio";
    Client "core_workload_insertion_retry_limit" = "0", "how often a failed insert of the load phase is repeated";
    Client "core_workload_insertion_retry_interval" = "3", "seconds before it is repeated";
    Client "core_workload_insertion_keep_going_on_error" = "false",
        "the load continues after a permanently failed insert";
    // Other workload classes
    Refused "disksize" = "100000000", ONE_WORKLOAD;
    Refused "occupancy" = "0.9", ONE_WORKLOAD;
    Refused "storageages" = "10", ONE_WORKLOAD;
    // MongoDB binding
    Target "mongodb.url", "the connection string; `mongodb://localhost:27017/ycsb?w=1` for `dyno ycsb`";
    Target "mongodb.database", "the database, unless `mongodb.url` names one";
    Plan "batchsize" = "1", "client.batch";
    Plan "mongodb.batchsize" = "1", "client.batch";
    Plan "mongodb.upsert" = "false", "access.upsert";
    Target "mongodb.writeConcern", "`w` or `journal`, in upper or lower case, unless `mongodb.url` has it";
    Target "mongodb.readPreference", "`readPreference`, in upper or lower case, unless `mongodb.url` has it";
    Target "mongodb.maxconnections", "`maxPoolSize`, unless `mongodb.url` has it";
    NoEffect "mongodb.threadsAllowedToBlockForConnectionMultiplier" = "", NO_BATCH_POOL;
    // Additions of mongodb-labs
    Target "mongodb.username", "user, unless `mongodb.url` names one";
    Target "mongodb.password", "password of that user";
    Plan "compressibility" = "1", "data.compressible_ratio";
    Refused "datatype" = "binData", "values are stored as binary data, as the MongoDB binding does";
    Refused "mongodb.sharded" = "false", "the collection is not sharded by this program; shard it before the load";
    Refused "mongodb.fle" = "false", NO_ENCRYPTION;
    Refused "mongodb.qe" = "false", NO_ENCRYPTION;
    Refused "mongodb.fle.*" = "", NO_ENCRYPTION;
    Refused "mongodb.qe.*" = "", NO_ENCRYPTION;
    NoEffect "noopsthreshold" = "240", "operations without a reply end after the plan's timeout";
    // Ours
    Plan "dyno.server" = "uri", "server.kind";
    Plan "dyno.backend" = "wire", "client.backend";
    Plan "dyno.seed" = "42", "client.seed";
    Plan "dyno.timeout" = "10s", "client.timeout";
};

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
    fn names_are_found_exactly_and_by_their_prefix() {
        assert_eq!(find("recordcount").map(|property| property.name), Some("recordcount"));
        assert_eq!(find("htrace.sampler.classes").map(|property| property.name), Some("htrace.*"));
        assert_eq!(find("recordCount"), None);
        assert_eq!(find("htrace"), None);
    }
}
