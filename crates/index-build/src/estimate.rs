//! Estimates the disk space and time of an index build. Rough figures, printed with their assumptions, as a warning before an
//! experiment that takes all night.

use dyno_plan::index_build::{IndexBuildPlan, Layout, Remedy};
use dyno_plan::model::{Plan, ServerKind};
use dyno_plan::topology::Topology;
use dyno_record::quantity::Quantity;
use std::path::Path;

/// Documents of 3 KB per second that one connection inserts into MongoDB 6.0.5 on two virtual CPUs, if the disk keeps up.
const LOADED_PER_S: f64 = 20_000.0;
/// Bytes per second that a hard disk writes. Documents are written twice, to the journal and to their file.
const WRITTEN_BYTES_PER_S: f64 = 100e6;
/// Bytes per second that a server reads in order: limited by a hard disk, or by an index build on one CPU.
const IN_ORDER_BYTES_PER_S: f64 = 100e6;
/// Bytes of a random read: most of a WiredTiger page (decision 008).
const RANDOM_READ_BYTES: f64 = 22.0 * 1024.0;
/// Random reads per second of a disk with seeks, if the plan has no limit.
const RANDOM_READS_PER_S: f64 = 200.0;
/// Space for a server in addition to its documents: journal, diagnostic data, catalogue.
const BESIDE_DOCUMENTS: f64 = 512.0 * 1024.0 * 1024.0;

/// Estimated needs of an index build.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Estimate {
    /// Size of the documents as BSON.
    pub(crate) documents_bytes: u64,
    /// Space for one configuration; its data is removed before the next one.
    pub(crate) room_bytes: u64,
    /// Number of configurations, one after the other.
    configurations: usize,
    /// Time to load the documents of one configuration, if caches are large enough.
    load_s: f64,
    /// Updates and deletions in shuffled order that may read their document from disk.
    missed: f64,
    /// Range of the time to read all documents once for their hash, after loading.
    hash_s: Range,
    /// The remedy of one configuration, with its checks.
    remedy_s: Option<Range>,
    /// Total number of index builds.
    builds: u32,
    /// One build on a single server.
    build_s: Range,
    /// Total time.
    all_s: Range,
    /// Random reads per second of a build.
    random_per_s: f64,
}

/// Minimum, with all reads in order or from a cache, and maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Range {
    least: f64,
    most: f64,
}

impl Range {
    /// Both ends multiplied.
    fn times(self, n: f64) -> Range {
        Range { least: self.least * n, most: self.most * n }
    }

    /// The sum of both ends.
    fn with(self, other: Range) -> Range {
        Range { least: self.least + other.least, most: self.most + other.most }
    }

    /// A duration without a range.
    fn of(seconds: f64) -> Range {
        Range { least: seconds, most: seconds }
    }

    /// `10 min`, or `10 min to 4 h`.
    fn words(self) -> String {
        let [least, most] = [self.least, self.most].map(|seconds| {
            // Above an hour, seconds do not matter.
            let whole_minutes = (seconds / 60.0).round() * 60.0;
            let seconds = if seconds < 600.0 { seconds } else { whole_minutes };
            Quantity::seconds(seconds).brief().to_string()
        });
        match least == most {
            true => least,
            false => format!("{least} to {most}"),
        }
    }
}

/// Effects of a layout on the documents.
struct Made {
    /// Duration relative to inserting the documents once while the cache holds them, as measured with MongoDB 6.0.5.
    written: f64,
    /// File size relative to the documents, with space that updates and deletions leave unused.
    unused: f64,
    /// Updates and deletions in shuffled order, for each document.
    changes: f64,
    /// Whether the file has another order than the records (decision 008).
    is_scattered: bool,
}

impl Made {
    /// `None` for existing documents.
    fn of(layout: Layout) -> Option<Made> {
        let (written, unused, changes) = match layout {
            Layout::Existing => return None,
            Layout::Ordered | Layout::Shuffled | Layout::Concurrent => (1.0, 1.1, 0.0),
            // Each document grows, and one extra document for every tenth is deleted.
            Layout::Churned => (3.5, 2.0, 1.1),
            // As many documents as arrive later, half of them, are deleted in the order of their hashes.
            Layout::Migrated => (1.5, 2.0, 0.5),
        };
        Some(Made { written, unused, changes, is_scattered: changes > 0.0 })
    }
}

/// Estimates a plan's needs; `None` for existing documents.
pub(crate) fn estimate(plan: &Plan, build: &IndexBuildPlan) -> Option<Estimate> {
    let made = Made::of(build.layout)?;
    let documents_bytes = plan.data.records.saturating_mul(build.mean_document_bytes());
    let documents = documents_bytes as f64;
    let topologies = build.topologies(&plan.server).ok()?;
    let most = |of: fn(&Topology) -> u32| f64::from(topologies.iter().map(of).max().unwrap_or(1));
    let (most_servers, most_copies) = (most(Topology::data_servers), most(Topology::copies));
    let configurations = topologies.len();
    let load_s = made.written
        * f64::max(
            plan.data.records as f64 / LOADED_PER_S,
            2.0 * documents * most_copies / WRITTEN_BYTES_PER_S,
        );
    let missed_ratio = missed_ratio(plan, &topologies, documents);
    let missed = plan.data.records as f64 * made.changes * missed_ratio;
    let in_order_s = documents / IN_ORDER_BYTES_PER_S;
    let at_random_s = |per_s: f64| match made.is_scattered {
        true => f64::max(in_order_s, documents / RANDOM_READ_BYTES / per_s),
        false => in_order_s,
    };
    // A storage limit applies only to builds.
    let limit = plan.server.storage.as_ref().and_then(|on| on.limit);
    let random_per_s = limit.map_or(RANDOM_READS_PER_S, |limit| f64::from(limit.per_s));
    let build_s = Range { least: in_order_s, most: at_random_s(random_per_s) };
    let hash_s = Range {
        least: in_order_s,
        most: f64::max(in_order_s, missed_ratio * at_random_s(RANDOM_READS_PER_S)),
    };
    let remedy_s = build.remedy.map(|remedy| {
        let part = match build.remedy_on {
            Some(_) => 1.0 / most_servers,
            None => 1.0,
        };
        remedy_s(remedy, is_embedded(plan), documents, hash_s).times(part)
    });
    let grown_s = Range { least: load_s, most: load_s + missed / RANDOM_READS_PER_S };
    let stages = if build.remedy.is_some() { 2 } else { 1 };
    let per_stage = builds_of_stage(build);
    let built_s = build_s.with(built_after_s(build, build_s));
    let one_s = grown_s
        .with(hash_s)
        .with(remedy_s.unwrap_or_default())
        .with(built_s.times(f64::from(per_stage)));
    let copies = copies(build.remedy, is_embedded(plan));
    Some(Estimate {
        documents_bytes,
        // The servers of `split` and the shards each have a part of the documents; members of a set have all of theirs.
        room_bytes: (documents * (made.unused + copies) * most_copies
            + most_servers * BESIDE_DOCUMENTS) as u64,
        configurations,
        load_s,
        missed,
        hash_s,
        remedy_s,
        builds: stages * per_stage * configurations as u32,
        build_s,
        all_s: one_s.times(configurations as f64),
        random_per_s,
    })
}

/// Share of the documents that exceeds the caches of all servers, in the configuration with the smallest ones. A running server, or
/// one without a setting, is assumed to have the smallest cache.
fn missed_ratio(plan: &Plan, topologies: &[Topology], documents: f64) -> f64 {
    let parts = topologies.iter();
    let parts = parts.map(|topology| topology.data_servers() / topology.copies().max(1));
    let fewest_parts = f64::from(parts.min().unwrap_or(1));
    let smallest = || {
        let smallest = plan.server.kind.smallest_cache();
        smallest.or(ServerKind::Mongod.smallest_cache())
    };
    let cache = plan.server.cache_bytes().or_else(smallest);
    let cached = cache.map_or(0.0, |cache| cache.0 as f64) * fewest_parts;
    (1.0 - cached / documents).max(0.0)
}

/// Number of builds before a remedy, and again after it: each build without a trace is paired with a traced one; at least one.
fn builds_of_stage(build: &IndexBuildPlan) -> u32 {
    match build.untraced_builds() {
        0 => 1,
        untraced => 2 * untraced,
    }
}

/// A build after the remedy, if there is one.
fn built_after_s(build: &IndexBuildPlan, before_s: Range) -> Range {
    match build.remedy {
        None => Range::default(),
        // `compact` may keep the order, and other servers keep theirs.
        Some(remedy) if remedy == Remedy::Compact || build.remedy_on.is_some() => before_s,
        Some(_) => Range::of(before_s.least),
    }
}

fn is_embedded(plan: &Plan) -> bool {
    plan.server.kind == ServerKind::Embedded
}

/// Space that a remedy needs in addition to the collection, relative to the documents. The embedded server renames by another copy,
/// and logs all of it.
fn copies(remedy: Option<Remedy>, is_embedded: bool) -> f64 {
    match remedy {
        None | Some(Remedy::Compact) => 0.0,
        Some(_) if is_embedded => 23.0,
        Some(Remedy::Rewrite | Remedy::NaturalCopy) => 1.0,
        Some(Remedy::Dump) => 2.0,
    }
}

/// Duration of a remedy with its checks. `old_s` is the time to read the collection once in its old order.
fn remedy_s(remedy: Remedy, is_embedded: bool, documents: f64, old_s: Range) -> Range {
    let in_order_s = documents / IN_ORDER_BYTES_PER_S;
    let written_s = 2.0 * documents / WRITTEN_BYTES_PER_S;
    // Old order: hash before, copy or dump, and check for changes. New order: hashes of the copy and of the result.
    let copied = old_s.times(3.0).with(Range::of(2.0 * in_order_s + written_s));
    let copied = match is_embedded {
        true => copied.with(Range::of(written_s)),
        false => copied,
    };
    match remedy {
        Remedy::Rewrite | Remedy::NaturalCopy => copied,
        // Written to a file, and read from it.
        Remedy::Dump => copied.with(Range::of(in_order_s + documents / WRITTEN_BYTES_PER_S)),
        // Hashes before and after, and the data that the server moves.
        Remedy::Compact => old_s.times(2.0).with(Range::of(in_order_s + written_s)),
    }
}

impl Estimate {
    /// Space and time as one sentence each. `free` is the free space for the data, if known.
    pub(crate) fn words(&self, free: Option<u64>) -> [String; 2] {
        let size = |bytes: u64| Quantity::bytes(bytes);
        let free = free.map_or(String::new(), |free| format!("; {} free", size(free)));
        let each = match self.configurations {
            1 => "",
            _ => " on each configuration, one after the other",
        };
        let space = format!(
            "space: {} of documents{each}; up to {} needed{free}",
            size(self.documents_bytes),
            size(self.room_bytes)
        );
        let per_s = |rate: f64| Quantity::count(rate as u64);
        let mut parts =
            vec![format!("about {} to load the documents{each}", Range::of(self.load_s).words())];
        if self.missed >= 1.0 {
            parts.push(format!(
                "up to {} more for {} random updates and deletions outside the cache, at {} reads per second",
                Range::of(self.missed / RANDOM_READS_PER_S).words(),
                Quantity::count(self.missed as u64),
                per_s(RANDOM_READS_PER_S)
            ));
        }
        parts.push(format!("{} to hash them", self.hash_s.words()));
        parts.extend(
            self.remedy_s.map(|range| format!("{} for the remedy with its checks", range.words())),
        );
        let builds = match self.builds {
            1 => "1 build".to_owned(),
            builds => format!("{builds} builds"),
        };
        let random = match self.build_s.most > self.build_s.least {
            true => format!(", with {} random reads per second", per_s(self.random_per_s)),
            false => String::new(),
        };
        parts.push(format!("{builds} of the index, about {} each{random}", self.build_s.words()));
        let time = format!("time: {}; in total {}", parts.join("; "), self.all_s.words());
        [space, time]
    }

    /// Whether not even the documents fit.
    pub(crate) fn cannot_fit(&self, free: u64) -> bool {
        self.documents_bytes > free
    }
}

/// Whether the server stores documents uncompressed, so that their size is known.
pub(crate) fn is_uncompressed(plan: &Plan) -> bool {
    plan.server.block_compressor.as_deref() == Some("none")
}

/// Error for documents that do not fit.
pub(crate) fn no_room(estimate: &Estimate, free: u64, folder: &Path) -> String {
    format!(
        "the documents need {}, but `{}` has {} free",
        Quantity::bytes(estimate.documents_bytes),
        folder.display(),
        Quantity::bytes(free)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_plan::index_build::Start;

    fn of(change: impl FnOnce(&mut Plan, &mut IndexBuildPlan)) -> Option<Estimate> {
        let mut plan = dyno_plan::builtin::INDEX_BUILDS.find("ordered").expect("built in");
        plan.server.kind = ServerKind::Mongod;
        let mut build = plan.index_build.clone().unwrap_or_default();
        change(&mut plan, &mut build);
        estimate(&plan, &build)
    }

    #[test]
    fn estimate_covers_space_and_time_of_20_million_documents() {
        let found = of(|plan, build| {
            plan.data.records = 20_000_000;
            build.topologies = ["standalone", "split=2"].map(str::to_owned).to_vec();
        });
        let found = found.expect("an estimate");
        // 20 million of 3.2 KB.
        assert!((59..61).contains(&(found.documents_bytes >> 30)), "{found:?}");
        assert!((66..69).contains(&(found.room_bytes >> 30)), "{found:?}");
        assert_eq!(found.builds, 4);
        let [space, time] = found.words(Some(1 << 40));
        for part in ["1.00 TiB", "each configuration"] {
            assert!(space.contains(part), "{part}: {space}");
        }
        for part in ["about 22 min", "4 builds", "about 11 min each; in"] {
            assert!(time.contains(part), "{part}: {time}");
        }
        assert!(found.cannot_fit(30 << 30) && !found.cannot_fit(100 << 30));
    }

    /// 20 million documents in shuffled order over 60 GiB, with a cache of 2 GiB.
    fn churned(change: impl FnOnce(&mut Plan, &mut IndexBuildPlan)) -> Estimate {
        let found = of(|plan, build| {
            plan.data.records = 20_000_000;
            plan.server.cache = Some("2GiB".parse().expect("valid"));
            build.layout = Layout::Churned;
            change(plan, build);
        });
        found.expect("an estimate")
    }

    #[test]
    fn updates_beyond_the_cache_read_from_the_disk() {
        let found = churned(|_, _| ());
        let hours = |seconds: f64| seconds / 3600.0;
        // 20 million and a tenth, minus a thirtieth in the cache, at 200 reads per second.
        assert!((29.0..30.0).contains(&hours(found.missed / 200.0)), "{found:?}");
        // One read of 22 KiB after the other.
        assert!((3.8..4.2).contains(&hours(found.hash_s.most)), "{found:?}");
        let [_, time] = found.words(None);
        for part in [
            "about 1 h 16 min",
            "29 h 33 min more for 21,",
            "updates",
            "at 200 reads",
            "11 min to 3 h 52 min",
            "about 11 min to 4 h each, with 200",
        ] {
            assert!(time.contains(part), "{part}: {time}");
        }
        // Caches that hold all documents: one server's, or several together.
        let large = |plan: &mut Plan, _: &mut IndexBuildPlan| {
            plan.server.cache = Some("64GiB".parse().expect("valid"));
        };
        let found = churned(large);
        assert_eq!((found.missed, found.hash_s.most), (0.0, found.hash_s.least));
        let [_, time] = found.words(None);
        assert!(!time.contains("updates"), "{time}");
        let split = |plan: &mut Plan, build: &mut IndexBuildPlan| {
            plan.server.cache = Some("16GiB".parse().expect("valid"));
            build.topologies = vec!["split=4".into()];
        };
        assert_eq!(churned(split).missed, 0.0);
        // Documents that arrive in order are not looked up.
        let found = of(|plan, build| {
            plan.data.records = 20_000_000;
            build.layout = Layout::Shuffled;
        });
        assert_eq!(found.expect("an estimate").missed, 0.0);
    }

    #[test]
    fn all_parts_add_up_to_the_whole() {
        let plain = churned(|_, build| build.untraced = 0);
        let parts = plain.load_s + plain.missed / 200.0 + plain.hash_s.most + plain.build_s.most;
        assert!((plain.all_s.most - parts).abs() < 1.0, "{plain:?}");
        let with = |remedy| {
            churned(|_, build| {
                build.untraced = 0;
                build.remedy = Some(remedy);
            })
        };
        let rewritten = with(Remedy::Rewrite);
        let remedy_s = rewritten.remedy_s.expect("present");
        // Three reads of the old file, two of the new one, and two writes.
        let in_order_s = plain.build_s.least;
        let expected = 3.0 * plain.hash_s.most + 4.0 * in_order_s;
        assert!((remedy_s.most - expected).abs() < 1.0, "{rewritten:?}");
        let parts = parts + remedy_s.most + in_order_s;
        assert!((rewritten.all_s.most - parts).abs() < 1.0, "{rewritten:?}");
        let [_, time] = rewritten.words(None);
        assert!(time.contains("the remedy"), "{time}");
        // A dump is written to a file and read again; compacting may keep the order.
        assert!(with(Remedy::Dump).all_s.least > rewritten.all_s.least);
        let compacted = with(Remedy::Compact);
        let twice = plain.all_s.most + plain.build_s.most;
        assert!(compacted.all_s.most > twice, "{compacted:?}");
        // On one of four servers, a quarter.
        let on = |name: Option<&str>| {
            let found = churned(|_, build| {
                build.topologies = vec!["split=4".into()];
                build.remedy = Some(Remedy::Rewrite);
                build.remedy_on = name.map(str::to_owned);
            });
            found.remedy_s.expect("present").least
        };
        assert!((on(None) / on(Some("split-1")) - 4.0).abs() < 1e-9);
        // Configurations run one after the other.
        let several = churned(|_, build| {
            build.untraced = 0;
            build.topologies = vec!["standalone".into(), "split=2".into()];
        });
        assert!((several.all_s.least / plain.all_s.least - 2.0).abs() < 1e-9);
    }

    #[test]
    fn divided_documents_need_space_once_plus_some_per_server() {
        let room = |topology: &str| churned(|_, build| build.topologies = vec![topology.into()]);
        let more = room("split=4").room_bytes - room("standalone").room_bytes;
        assert_eq!(more, 3 << 29);
    }

    #[test]
    fn existing_documents_are_not_estimated() {
        assert_eq!(of(|_, build| build.layout = Layout::Existing), None);
    }

    #[test]
    fn remedies_and_builds_without_a_trace_are_counted() {
        let builds = |untraced, remedy, start| {
            let found = of(|_, build| {
                build.untraced = untraced;
                build.remedy = remedy;
                build.start = start;
            });
            found.expect("an estimate").builds
        };
        assert_eq!(builds(0, None, Start::Cold), 1);
        assert_eq!(builds(1, None, Start::Cold), 2);
        assert_eq!(builds(3, Some(Remedy::Rewrite), Start::Cold), 12);
        assert_eq!(builds(3, Some(Remedy::Rewrite), Start::Warm), 2);
        let room = |remedy| of(|_, build| build.remedy = remedy).expect("an estimate").room_bytes;
        assert!(room(Some(Remedy::Rewrite)) > room(None));
        let limited = of(|plan, _| {
            let storage = "ext4 on loop:4GiB at 400 iops".parse().expect("valid");
            plan.server.storage = Some(storage);
        });
        assert_eq!(limited.expect("an estimate").random_per_s, 400.0);
    }
}
