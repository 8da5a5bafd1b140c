//! `index_build` in a plan: the experiment that builds an index on existing documents under trace.
//! Contains the layout of the documents on the disk, the fields of the index, and the remedy for
//! the documents' order.

use crate::model::ServerPlan;
use crate::names::{choices, with_defaults};
use crate::topology::{Topology, TopologyError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the documents get into the collection, which decides their order on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// The collection exists already; nothing is loaded, and only the index and a remedy change it.
    Existing,
    /// By one connection in the order of `_id`.
    #[default]
    Ordered,
    /// By one connection in an order that separates neighbours of `_id`, like hashed sharding.
    Shuffled,
    /// By 16 connections at once, each with its part of the documents in shuffled order.
    Concurrent,
    /// In order with short strings, each of which grows to its full length by an update in shuffled
    /// order; every tenth time one more document is loaded and deleted again.
    Churned,
    /// As on a shard after balancing: half of the documents in order, mixed with as many that
    /// belong to other shards; then the other half arrives in 32 chunks and the foreign documents
    /// are deleted.
    Migrated,
}

/// Whether the index is built from the disk or from memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// The server is restarted, if the experiment started it, and the machine's page cache is
    /// dropped.
    #[default]
    Cold,
    /// Caches are as the previous step left them.
    Warm,
}

choices! {
    /// The change to the documents' order on the disk between two builds of the index.
    Remedy {
        /// Replaces the collection with a copy in the order of `_id`, after verifying it.
        Rewrite = "rewrite", "Replaces the collection with a copy in the order of `_id`";
        /// Replaces the collection with a copy in the order in which the server returns the
        /// documents (`$natural`), after verifying it.
        NaturalCopy = "natural-copy", "Replaces the collection with a copy in the order in which the server returns the documents";
        /// Dumps the documents to a file in the order of `_id` and restores them into a collection
        /// that replaces the old one, after verifying it.
        Dump = "dump", "Dump to a file and restore";
        /// The server compacts the collection in place (`compact`).
        Compact = "compact", "The server's `compact`";
    }
}

with_defaults! {
    /// An index is built on existing documents, and observed.
    #[serde_with::skip_serializing_none]
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct IndexBuildPlan {
        /// How the documents get into the collection.
        pub layout: Layout = Layout::Ordered,
        /// Shortest string of a document, in bytes. At least 1.
        // By default, documents have 1 to 6 KiB, 3 KiB on average.
        pub shortest_string: u32 = 341,
        /// Longest string of a document, in bytes. Lengths are uniform; a document has an integer,
        /// a date, two strings and an array of one to four more strings.
        pub longest_string: u32 = 1024,
        /// Fields of the index, such as `date`, or `date:-1,number:1`.
        pub keys: String = "date".into(),
        /// Whether the documents are read from the disk or from memory.
        pub start: Start = Start::Cold,
        /// Change to the documents before the index is built a second time; it is built only once
        /// when absent.
        pub remedy: Option<Remedy>,
        /// Server whose documents get the remedy, such as `split-1`; all servers of the topology
        /// when absent.
        pub remedy_on: Option<String>,
        /// Number of additional builds without a trace, alternating with traced builds: the
        /// difference is the cost of tracing. 0 to 100; not with a warm start, where each build
        /// changes the caches of the next one.
        #[schemars(range(min = 0, max = 100))]
        pub untraced: u32 = 1,
        /// Topologies on which the same index is built one after the other, each with its own
        /// documents; only `server.topology` when empty.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub topologies: Vec<String>,
    }
}

/// A field of an index and its direction, 1 or -1.
pub type IndexKey = (String, i32);

impl IndexBuildPlan {
    /// The fields of the index in their order.
    ///
    /// # Errors
    /// A description of the error in `keys`.
    pub fn index_keys(&self) -> Result<Vec<IndexKey>, String> {
        let mut keys: Vec<IndexKey> = Vec::new();
        for part in self.keys.split(',') {
            let part = part.trim();
            let (name, direction) = match part.rsplit_once(':') {
                Some((name, direction)) => (name, direction),
                None => (part, "1"),
            };
            let direction = match direction {
                "1" => 1,
                "-1" => -1,
                other => return Err(format!("the direction `{other}` is neither 1 nor -1")),
            };
            // Parts between dots name fields of embedded documents: none may be empty.
            if name.split('.').any(str::is_empty) || name.starts_with('$') {
                return Err(format!("`{part}` does not name a field"));
            }
            if keys.iter().any(|(known, _)| known == name) {
                return Err(format!("the field `{name}` appears twice"));
            }
            keys.push((name.to_owned(), direction));
        }
        match keys.as_slice() {
            [(only, _)] if only == "_id" => Err("the index on `_id` always exists".into()),
            _ => Ok(keys),
        }
    }

    /// The topologies on which the index is built, in their order: at least one.
    ///
    /// # Errors
    /// A text is not a topology.
    pub fn topologies(&self, server: &ServerPlan) -> Result<Vec<Topology>, TopologyError> {
        if self.topologies.is_empty() {
            return Ok(vec![server.topology()?]);
        }
        self.topologies.iter().map(|text| text.parse()).collect()
    }

    /// Number of untraced builds, if they can show the cost of tracing.
    pub fn untraced_builds(&self) -> u32 {
        match self.start {
            Start::Cold => self.untraced,
            Start::Warm => 0,
        }
    }

    /// Largest size of a document in bytes: all strings at their longest, plus names and other
    /// fields.
    pub fn largest_document_bytes(&self) -> u64 {
        6 * (u64::from(self.longest_string) + 16) + 100
    }

    /// Mean size of a document, in bytes.
    pub fn mean_document_bytes(&self) -> u64 {
        let mean = (u64::from(self.shortest_string) + u64::from(self.longest_string)) / 2;
        9 * (mean + 16) / 2 + 100
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;
    use crate::file;

    fn keys(text: &str) -> Result<Vec<IndexKey>, String> {
        let plan = IndexBuildPlan { keys: text.into(), ..IndexBuildPlan::default() };
        plan.index_keys()
    }

    #[test]
    fn keys_have_a_direction() {
        assert_eq!(keys("date"), Ok(vec![("date".into(), 1)]));
        let two = vec![("a.b".into(), -1), ("c".into(), 1)];
        assert_eq!(keys("a.b:-1, c"), Ok(two));
    }

    #[test]
    fn malformed_keys_are_refused() {
        for wrong in ["", "a,,b", "a:2", "a,a", "$where", "_id", ":1", "a..b", ".a", "a.:1"] {
            assert!(keys(wrong).is_err(), "{wrong}");
        }
        assert!(keys("_id:-1,date").is_ok());
    }

    #[test]
    fn built_in_index_builds_have_a_layout_and_a_description() {
        for name in builtin::INDEX_BUILDS.names() {
            let plan = builtin::INDEX_BUILDS.find(name).expect("it is listed");
            assert_eq!(plan.name, name);
            assert!(plan.description.len() > 20);
            let build = plan.index_build.expect("it is an index build");
            let layout = serde_json::to_value(build.layout).expect("a word");
            assert_eq!(layout, name);
        }
    }

    #[test]
    fn topologies_of_index_builds_are_checked() {
        let problem = |text: &str| {
            let error = file::parse(text, "t").expect_err(text);
            error.to_string()
        };
        let dealt = "[server]\ntopology = \"split=2\"\ncache = \"1GiB\"\n";
        let text = problem(dealt);
        assert!(text.contains("`server.topology` = `split=2`"), "{text}");
        assert!(text.contains("`dyno index-build`"), "{text}");
        assert!(file::parse(&format!("{dealt}[index_build]\n"), "t").is_ok());
        let build = |server: &str, build: &str| {
            let text = format!("[server]\n{server}\n[index_build]\n{build}\n");
            file::parse(&text, "t").map_err(|error| error.to_string())
        };
        let both = "topologies = [\"standalone\", \"split=2\"]";
        let cache = "cache = \"1GiB\"";
        assert!(build(cache, both).is_ok());
        let joined = "topologies = [\"replica-set=3\", \"sharded=2x1\"]";
        assert!(build(cache, joined).is_ok());
        let set = "topology = \"replica-set=3\"\ncache = \"1GiB\"";
        assert!(build(set, "remedy = \"rewrite\"").is_ok());
        for (server, wrong, parts) in [
            (cache, "topologies = [\"split=1\"]", &["2 to 64"][..]),
            (
                cache,
                "topologies = [\"pairs=2\"]",
                &["`index_build.topologies` has `pairs=2`", "`split=N`"],
            ),
            (
                cache,
                "topologies = [\"split=2\", \"split=2\"]",
                &["`index_build.topologies` has `split=2`", "twice"],
            ),
            (
                cache,
                "topologies = [\"standalone\", \"sharded=2x1\"]\nremedy = \"rewrite\"",
                &["`index_build.remedy` on `sharded=2x1`", "`split=N`"],
            ),
            (
                cache,
                "topologies = [\"replica-set=3\"]\nremedy = \"compact\"",
                &["`index_build.remedy` on `replica-set=3`", "`compact`"],
            ),
            (
                cache,
                "topologies = [\"sharded=2x1,key=date:ranged\"]",
                &["`sharded=2x1,key=date:ranged`", "`key`"],
            ),
            (
                cache,
                "topologies = [\"sharded=2x1,balancer=on\"]",
                &["`sharded=2x1,balancer=on`", "`balancer`"],
            ),
            (
                cache,
                "layout = \"existing\"\ntopologies = [\"replica-set=1\"]",
                &["`index_build.layout` on `replica-set=1`", "`existing`"],
            ),
            ("kind = \"auto\"", both, &["`split=2`", "`server.cache`"]),
            ("cache = \"1GiB\"\npairs = 2", both, &["`server.topology`", "`server.pairs`"]),
            (
                "cache = \"1GiB\"\ndata_dir = \"/d\"",
                both,
                &["`index_build.topologies`", "data folder"],
            ),
            (
                "cache = \"1GiB\"\nstorage = \"xfs on /dev/sdb\"",
                both,
                &["`server.storage`", "`split=2`"],
            ),
            (
                "cache = \"1GiB\"\ndata_dirs = [\"/d\"]\ndisk_mapping = \"direct\"\ntopology = \"split=2\"",
                "",
                &["`server.disk_mapping`", "1 folders"],
            ),
            ("topology = \"sharded=2x1\"", "", &["`sharded=2x1`", "`server.cache`"]),
            ("topology = \"replica-set=1\"", "", &["`replica-set=1`", "`server.cache`"]),
            (
                cache,
                "remedy_on = \"split-0\"",
                &["`index_build.remedy_on`", "`index_build.remedy`"],
            ),
            (cache, "untraced = 101", &["`index_build.untraced`", "0 to 100"]),
        ] {
            let text = build(server, wrong).expect_err(wrong);
            for part in parts {
                assert!(text.contains(part), "{wrong}: {text}");
            }
        }
    }

    #[test]
    fn remedy_on_must_name_a_server_of_the_split() {
        let build = |topology: &str, server: &str| {
            let text = format!(
                "[server]\ntopology = \"{topology}\"\ncache = \"1GiB\"\n[index_build]\nremedy = \"dump\"\nremedy_on = \"{server}\"\n"
            );
            file::parse(&text, "t").map_err(|error| error.to_string())
        };
        assert!(build("split=2", "split-1").is_ok());
        for (topology, server) in [("split=2", "split-2"), ("standalone", "server")] {
            let text = build(topology, server).expect_err(server);
            assert!(text.contains(&format!("`index_build.remedy_on` is `{server}`")), "{text}");
        }
    }

    #[test]
    fn wrong_values_are_reported_with_their_key() {
        let problem = |text: &str| {
            let text = format!("[index_build]\n{text}\n");
            file::parse(&text, "t").expect_err("it is wrong").to_string()
        };
        assert!(problem("layout = \"orderd\"").contains("`ordered`"));
        assert!(problem("keys = \"a:2\"").contains("`index_build.keys`"));
        assert!(problem("shortest_string = 9\nlongest_string = 5").contains("shortest_string"));
        let records = "[data]\nrecords = 1_000_000\n[server]\nstorage = \"ext4 on loop:1GiB\"";
        let text = problem(&format!("keys = \"a\"\n{records}"));
        assert!(text.contains("`server.storage`") && text.contains("at least"), "{text}");
    }
}
