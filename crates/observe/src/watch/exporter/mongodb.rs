//! The numbers of `serverStatus` in the metrics of Percona's `mongodb_exporter`.
//!
//! Since version 0.30 the exporter derives the name of a metric from the path of a field:
//! `serverStatus.` becomes `ss_`, `wiredTiger.` becomes `wt_`, other characters become `_`, and in
//! some sections the last part of the path becomes a label. So a field is identified by the words
//! of its path, in any order. The names of older versions are not known here.

use super::text::{Sample, Scrape};
use crate::watch::server::fields::Fields;
use crate::watch::server::table::ROWS;
use crate::watch::source::Reported;
use dyno_record::names::replication;
use std::collections::{HashMap, HashSet};

/// Labels about the location of the server, which the exporter or Prometheus adds to all metrics.
const OF_PLACE: [&str; 6] = ["cl_id", "cl_role", "rs_nm", "rs_state", "instance", "job"];

/// State of each member of a replica set, and the time of its last operation.
pub(super) const OF_MEMBERS: [&str; 2] =
    ["mongodb_rs_members_state", "mongodb_rs_members_optimeDate"];

/// The useful fields of `serverStatus`, keyed by their words.
pub(crate) struct Wanted(HashMap<String, &'static str>);

impl Wanted {
    /// The fields of the server's table, and its uptime.
    pub(crate) fn from_table() -> Wanted {
        let paths = ROWS.iter().flat_map(|row| row.measure.paths()).flatten();
        let paths = paths.copied().chain(["uptimeMillis"]);
        Wanted(paths.map(|path| (words(path), path)).collect())
    }

    /// The useful fields that an exporter reports.
    pub(crate) fn among(&self, scrape: &Scrape<'_>) -> Scraped {
        let mut scraped = Scraped::default();
        for (place, sample) in scrape.samples.iter().enumerate() {
            let name = sample.name.strip_prefix("mongodb_ss_");
            let path = name.and_then(|name| self.0.get(&words_of(name, sample)).copied());
            if let Some(path) = path.filter(|_| sample.value.is_finite()) {
                if scraped.numbers.contains_key(path) {
                    scraped.twice.get_or_insert(place);
                }
                scraped.numbers.entry(path).or_insert(sample.value);
                scraped.places.insert(place);
            }
        }
        scraped
    }
}

/// Numbers of `serverStatus` by their paths.
#[derive(Debug, Default)]
pub(crate) struct Scraped {
    numbers: HashMap<&'static str, f64>,
    /// Index of the first sample that repeats a number.
    pub(crate) twice: Option<usize>,
    /// Indexes of the samples of these numbers.
    pub(crate) places: HashSet<usize>,
}

impl Scraped {
    /// Whether the exporter reports nothing about a server.
    pub(crate) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }
}

impl Fields for Scraped {
    fn number(&self, path: &str) -> Option<f64> {
        self.numbers.get(path).copied()
    }
}

/// State and lag of the members of a replica set, under the names of the server source.
pub(crate) fn report_replication(scrape: &Scrape<'_>, reported: &mut Reported) {
    let [states, times_ms] = OF_MEMBERS.map(|name| by_member(scrape, name));
    let time_ms = |member: &str| {
        let known = times_ms.iter().find(|(name, _)| *name == member);
        known.map(|(_, time_ms)| *time_ms)
    };
    let primary = states.iter().find(|(_, state)| *state == 1.0);
    let primary_ms = primary.and_then(|(member, _)| time_ms(member));
    for (member, state) in &states {
        reported.put(replication::STATE_COUNT.of(member), *state);
        // A member that is down has the time 0.
        let lag_ms = primary_ms.zip(time_ms(member).filter(|time_ms| *time_ms > 0.0));
        let lag_s = lag_ms.map(|(ahead, behind)| ((ahead - behind) / 1000.0).max(0.0));
        reported.put_if_known(replication::LAG_S.of(member), lag_s);
    }
}

fn by_member<'s>(scrape: &'s Scrape<'_>, name: &str) -> Vec<(&'s str, f64)> {
    let member = |sample: &'s Sample<'_>| Some((sample.label("member_idx")?, sample.value));
    scrape.named(name).filter_map(member).collect()
}

/// The words of a metric: the words of its name and its label values.
fn words_of(name: &str, sample: &Sample<'_>) -> String {
    let values = sample
        .labels
        .iter()
        .filter(|(label, _)| !OF_PLACE.contains(label))
        .map(|(_, value)| value.as_ref());
    sorted(std::iter::once(name).chain(values))
}

/// The words of a path, split by the rules of the exporter.
fn words(path: &str) -> String {
    let renamed = [("wiredTiger.transaction.", "wt txn "), ("wiredTiger.", "wt ")];
    let found =
        renamed.iter().find_map(|(prefix, short)| Some((*short, path.strip_prefix(prefix)?)));
    let (short, rest) = found.unwrap_or(("", path));
    sorted([short, rest].into_iter())
}

fn sorted<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let mut words: Vec<String> = texts
        .flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric()))
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    words.sort_unstable();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scraped(text: &str) -> Scraped {
        Wanted::from_table().among(&Scrape::parse(text))
    }

    #[test]
    fn field_is_found_by_the_words_of_its_path_in_any_order() {
        let fields = scraped(
            "mongodb_ss_opcounters{cl_id=\"\",cl_role=\"mongod\",legacy_op_type=\"insert\",rs_nm=\"\",rs_state=\"0\"} 4\n\
             mongodb_ss_wt_cache_bytes_currently_in_the_cache{cl_role=\"mongod\"} 5\n\
             mongodb_ss_wt_txn_transaction_checkpoint_total_time_msecs 6\n\
             mongodb_ss_wt_block_manager_bytes_read 7\n\
             mongodb_ss_wt_concurrentTransactions_out{txn_rw=\"read\"} 8\n\
             mongodb_ss_opLatencies_latency{op_type=\"reads\"} 9\n\
             mongodb_ss_mem_resident 10\nmongodb_ss_mem_bits 64\n",
        );
        for (path, number) in [
            ("opcounters.insert", 4.0),
            ("wiredTiger.cache.bytes currently in the cache", 5.0),
            ("wiredTiger.transaction.transaction checkpoint total time (msecs)", 6.0),
            ("wiredTiger.block-manager.bytes read", 7.0),
            ("wiredTiger.concurrentTransactions.read.out", 8.0),
            ("opLatencies.reads.latency", 9.0),
            ("mem.resident", 10.0),
        ] {
            assert_eq!(fields.number(path), Some(number), "{path}");
        }
        assert_eq!(fields.places.len(), 7);
        assert_eq!(fields.number("opcounters.query"), None);
        assert!(scraped("node_load1 1\n").is_empty());
    }

    #[test]
    fn every_field_of_the_tables_is_found_by_its_own_name() {
        let paths: HashSet<&str> =
            ROWS.iter().flat_map(|row| row.measure.paths()).flatten().copied().collect();
        let keys: HashSet<String> = paths.iter().map(|path| words(path)).collect();
        assert_eq!(keys.len(), paths.len());
    }

    #[test]
    fn member_lag_is_relative_to_the_primary() {
        let text = "mongodb_rs_members_state{member_idx=\"a:1\"} 1\n\
                    mongodb_rs_members_state{member_idx=\"b:1\"} 2\n\
                    mongodb_rs_members_state{member_idx=\"c:1\"} 8\n\
                    mongodb_rs_members_optimeDate{member_idx=\"a:1\"} 1.700000005e12\n\
                    mongodb_rs_members_optimeDate{member_idx=\"b:1\"} 1.700000002e12\n\
                    mongodb_rs_members_optimeDate{member_idx=\"c:1\"} 0\n";
        let mut reported = Reported::default();
        report_replication(&Scrape::parse(text), &mut reported);
        let values: Vec<(String, f64)> =
            reported.values.iter().map(|(id, value)| (id.to_string(), *value)).collect();
        let expected = [
            ("replication.a:1.state_count", 1.0),
            ("replication.a:1.lag_s", 0.0),
            ("replication.b:1.state_count", 2.0),
            ("replication.b:1.lag_s", 3.0),
            ("replication.c:1.state_count", 8.0),
        ];
        assert_eq!(values, expected.map(|(id, value)| (id.to_owned(), value)));
    }
}
