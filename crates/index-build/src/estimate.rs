//! What an index build will need: room on the disk, and time. Rough figures, told with what they rest on, so that nobody
//! begins by mistake what takes a night.

use dyno_plan::index_build::{IndexBuildPlan, Layout, Remedy};
use dyno_plan::model::{Plan, ServerKind};
use dyno_plan::topology::Topology;
use dyno_record::quantity::Quantity;
use std::path::Path;

/// Documents of 3 KB that one connection inserts per second into MongoDB 6.0.5 on two virtual CPUs, where the disk keeps up.
const LOADED_PER_S: f64 = 20_000.0;
/// Bytes that a hard disk writes per second. Documents are written twice, to the journal and to their file.
const WRITTEN_BYTES_PER_S: f64 = 100e6;
/// Bytes that a server reads in order per second: a hard disk, or an index build that keeps one CPU busy.
const IN_ORDER_BYTES_PER_S: f64 = 100e6;
/// Bytes that a random read brings: most of a page of WiredTiger (decision 008).
const RANDOM_READ_BYTES: f64 = 22.0 * 1024.0;
/// Random reads per second of a disk with seeks, where the plan has no limit.
const RANDOM_READS_PER_S: f64 = 200.0;
/// Room for a server beside its documents: journal, diagnostic data, catalogue.
const BESIDE_DOCUMENTS: f64 = 512.0 * 1024.0 * 1024.0;

/// What an index build will need.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Estimate {
    /// Size of the documents as BSON.
    pub(crate) documents_bytes: u64,
    /// Room for one configuration, whose data is removed before the next one.
    pub(crate) room_bytes: u64,
    /// Configurations, one after the other.
    configurations: usize,
    /// Time to load the documents of one configuration, if no cache is too small.
    load_s: f64,
    /// How many updates and deletions in shuffled order may have to read their document from the disk.
    missed: f64,
    /// Reading all documents once for their hash, after they were loaded: at least and at most.
    hash_s: Range,
    /// The remedy of one configuration with its checks.
    remedy_s: Option<Range>,
    /// How often the index is built in all.
    builds: u32,
    /// One build on a single server.
    build_s: Range,
    /// How long all of it takes.
    all_s: Range,
    /// Random reads per second of a build.
    random_per_s: f64,
}

/// At least, where all is read in order or from a cache, and at most.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Range {
    least: f64,
    most: f64,
}

impl Range {
    /// Both ends times so many.
    fn times(self, n: f64) -> Range {
        Range {
            least: self.least * n,
            most: self.most * n,
        }
    }

    /// Both ends and those of the other one.
    fn with(self, other: Range) -> Range {
        Range {
            least: self.least + other.least,
            most: self.most + other.most,
        }
    }

    /// A length of time without a range.
    fn of(seconds: f64) -> Range {
        Range {
            least: seconds,
            most: seconds,
        }
    }

    /// `10 min`, or `10 min to 4 h`.
    fn words(self) -> String {
        let [least, most] = [self.least, self.most].map(|seconds| {
            // Nobody needs the seconds of an hour.
            let whole_minutes = (seconds / 60.0).round() * 60.0;
            let seconds = if seconds < 600.0 {
                seconds
            } else {
                whole_minutes
            };
            Quantity::seconds(seconds).brief().to_string()
        });
        match least == most {
            true => least,
            false => format!("{least} to {most}"),
        }
    }
}

/// What the layout does to the documents.
struct Made {
    /// How much longer it takes than inserting the documents once while the cache holds them, as measured with MongoDB 6.0.5.
    written: f64,
    /// How many times the documents the file may have, with what updates and deletions leave unused.
    unused: f64,
    /// Updates and deletions in shuffled order, for each document.
    changes: f64,
    /// Whether the file has another order than the records (decision 008).
    is_scattered: bool,
}

impl Made {
    /// `None` of documents that are there already.
    fn of(layout: Layout) -> Option<Made> {
        let (written, unused, changes) = match layout {
            Layout::Existing => return None,
            Layout::Ordered | Layout::Shuffled | Layout::Concurrent => (1.0, 1.1, 0.0),
            // Each document grows, and for every tenth another one is deleted.
            Layout::Churned => (3.5, 2.0, 1.1),
            // As many documents as arrive later, half of them, are deleted in the order of their hashes.
            Layout::Migrated => (1.5, 2.0, 0.5),
        };
        Some(Made {
            written,
            unused,
            changes,
            is_scattered: changes > 0.0,
        })
    }
}

/// What a plan will need; `None` of documents that are there already.
pub(crate) fn estimate(plan: &Plan, build: &IndexBuildPlan) -> Option<Estimate> {
    let made = Made::of(build.layout)?;
    let documents_bytes = plan
        .data
        .records
        .saturating_mul(build.mean_document_bytes());
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
    // The limit of a storage is that of builds alone.
    let limit = plan.server.storage.as_ref().and_then(|on| on.limit);
    let random_per_s = limit.map_or(RANDOM_READS_PER_S, |limit| f64::from(limit.per_s));
    let build_s = Range {
        least: in_order_s,
        most: at_random_s(random_per_s),
    };
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
    let grown_s = Range {
        least: load_s,
        most: load_s + missed / RANDOM_READS_PER_S,
    };
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
        // The servers of `split` and the shards have a part of the documents each, and members of a set all of theirs.
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

/// The share of the documents for which the caches of all servers have no room, where they are smallest. A running server, or one
/// without a setting, has at least the smallest cache.
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

/// How often the index is built before a remedy, and after it: with each build without a trace once under trace, and at least this
/// once.
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
        // In place, and so perhaps in the same order as before; and other servers keep theirs.
        Some(remedy) if remedy == Remedy::Compact || build.remedy_on.is_some() => before_s,
        Some(_) => Range::of(before_s.least),
    }
}

fn is_embedded(plan: &Plan) -> bool {
    plan.server.kind == ServerKind::Embedded
}

/// How many times the documents a remedy needs room beside the collection. The embedded server copies a copy once more for its name,
/// with logs of all of it.
fn copies(remedy: Option<Remedy>, is_embedded: bool) -> f64 {
    match remedy {
        None | Some(Remedy::Compact) => 0.0,
        Some(_) if is_embedded => 23.0,
        Some(Remedy::Rewrite | Remedy::NaturalCopy) => 1.0,
        Some(Remedy::Dump) => 2.0,
    }
}

/// How long a remedy takes with its checks. `old_s` is reading the collection once in the order that it had.
fn remedy_s(remedy: Remedy, is_embedded: bool, documents: f64, old_s: Range) -> Range {
    let in_order_s = documents / IN_ORDER_BYTES_PER_S;
    let written_s = 2.0 * documents / WRITTEN_BYTES_PER_S;
    // The hash before, the copy or the dump, and the look for changes; the hashes of the copy and of what took the place.
    let copied = old_s
        .times(3.0)
        .with(Range::of(2.0 * in_order_s + written_s));
    let copied = match is_embedded {
        true => copied.with(Range::of(written_s)),
        false => copied,
    };
    match remedy {
        Remedy::Rewrite | Remedy::NaturalCopy => copied,
        // Written to a file, and read from there.
        Remedy::Dump => copied.with(Range::of(in_order_s + documents / WRITTEN_BYTES_PER_S)),
        // Hashes before and after, and what the server moves.
        Remedy::Compact => old_s.times(2.0).with(Range::of(in_order_s + written_s)),
    }
}

impl Estimate {
    /// Both in words, a sentence each. `free` is the room where the data goes, if it is known.
    pub(crate) fn words(&self, free: Option<u64>) -> [String; 2] {
        let size = |bytes: u64| Quantity::bytes(bytes);
        let free = free.map_or(String::new(), |free| format!("; {} are free", size(free)));
        let each = match self.configurations {
            1 => "",
            _ => " on each configuration, one after the other",
        };
        let space = format!(
            "space: {} of documents{each}, with a need of up to {}{free}",
            size(self.documents_bytes),
            size(self.room_bytes)
        );
        let per_s = |rate: f64| Quantity::count(rate as u64);
        let mut parts = vec![format!(
            "about {} to load the documents{each}",
            Range::of(self.load_s).words()
        )];
        if self.missed >= 1.0 {
            parts.push(format!(
                "up to {} more for {} updates and deletions at random that the cache does not answer, by {} reads per second",
                Range::of(self.missed / RANDOM_READS_PER_S).words(),
                Quantity::count(self.missed as u64),
                per_s(RANDOM_READS_PER_S)
            ));
        }
        parts.push(format!("{} to hash them", self.hash_s.words()));
        parts.extend(
            self.remedy_s
                .map(|range| format!("{} for the remedy with its checks", range.words())),
        );
        let builds = match self.builds {
            1 => "1 build".to_owned(),
            builds => format!("{builds} builds"),
        };
        let random = match self.build_s.most > self.build_s.least {
            true => format!(
                ", at random by {} reads per second",
                per_s(self.random_per_s)
            ),
            false => String::new(),
        };
        parts.push(format!(
            "{builds} of the index, each about {}{random}",
            self.build_s.words()
        ));
        let time = format!("time: {}; in all {}", parts.join("; "), self.all_s.words());
        [space, time]
    }

    /// Whether not even the documents have room.
    pub(crate) fn cannot_fit(&self, free: u64) -> bool {
        self.documents_bytes > free
    }
}

/// Whether the server stores its documents as they are, so that their size is known.
pub(crate) fn is_uncompressed(plan: &Plan) -> bool {
    plan.server.block_compressor.as_deref() == Some("none")
}

/// The refusal of documents that have no room.
pub(crate) fn no_room(estimate: &Estimate, free: u64, folder: &Path) -> String {
    format!(
        "the documents have {}, and `{}` has room for {}",
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
        let mut plan = dyno_plan::builtin::INDEX_BUILDS
            .find("ordered")
            .expect("it is built in");
        plan.server.kind = ServerKind::Mongod;
        let mut build = plan.index_build.clone().unwrap_or_default();
        change(&mut plan, &mut build);
        estimate(&plan, &build)
    }

    #[test]
    fn twenty_million_documents_have_an_estimate_of_space_and_time() {
        let found = of(|plan, build| {
            plan.data.records = 20_000_000;
            build.topologies = ["standalone", "split=2"].map(str::to_owned).to_vec();
        });
        let found = found.expect("they are loaded");
        // 20 million of 3.2 KB.
        assert!(
            (59..61).contains(&(found.documents_bytes >> 30)),
            "{found:?}"
        );
        assert!((66..69).contains(&(found.room_bytes >> 30)), "{found:?}");
        assert_eq!(found.builds, 4);
        let [space, time] = found.words(Some(1 << 40));
        for part in ["1.00 TiB", "each configuration"] {
            assert!(space.contains(part), "{part}: {space}");
        }
        for part in ["about 22 min", "4 builds", "about 11 min; in"] {
            assert!(time.contains(part), "{part}: {time}");
        }
        assert!(found.cannot_fit(30 << 30) && !found.cannot_fit(100 << 30));
    }

    /// The documents of 20 million in shuffled order over 60 GiB, with a cache of 2 GiB.
    fn churned(change: impl FnOnce(&mut Plan, &mut IndexBuildPlan)) -> Estimate {
        let found = of(|plan, build| {
            plan.data.records = 20_000_000;
            plan.server.cache = Some("2GiB".parse().expect("it is one"));
            build.layout = Layout::Churned;
            change(plan, build);
        });
        found.expect("they are loaded")
    }

    #[test]
    fn updates_beyond_the_cache_read_their_document_from_the_disk() {
        let found = churned(|_, _| ());
        let hours = |seconds: f64| seconds / 3600.0;
        // 20 million and a tenth, of which a thirtieth is in the cache, by 200 reads per second.
        assert!(
            (29.0..30.0).contains(&hours(found.missed / 200.0)),
            "{found:?}"
        );
        // One of 22 KiB after the other.
        assert!((3.8..4.2).contains(&hours(found.hash_s.most)), "{found:?}");
        let [_, time] = found.words(None);
        for part in [
            "about 1 h 16 min",
            "29 h 33 min more for 21,",
            "updates",
            "by 200 reads",
            "11 min to 3 h 52 min",
            "about 11 min to 4 h, at random by 200",
        ] {
            assert!(time.contains(part), "{part}: {time}");
        }
        // A cache that holds all of them, that of one server or those of several together.
        let large = |plan: &mut Plan, _: &mut IndexBuildPlan| {
            plan.server.cache = Some("64GiB".parse().expect("it is one"));
        };
        let found = churned(large);
        assert_eq!((found.missed, found.hash_s.most), (0.0, found.hash_s.least));
        let [_, time] = found.words(None);
        assert!(!time.contains("updates"), "{time}");
        let split = |plan: &mut Plan, build: &mut IndexBuildPlan| {
            plan.server.cache = Some("16GiB".parse().expect("it is one"));
            build.topologies = vec!["split=4".into()];
        };
        assert_eq!(churned(split).missed, 0.0);
        // Documents that arrive in order are not looked up.
        let found = of(|plan, build| {
            plan.data.records = 20_000_000;
            build.layout = Layout::Shuffled;
        });
        assert_eq!(found.expect("they are loaded").missed, 0.0);
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
        let remedy_s = rewritten.remedy_s.expect("it has one");
        // Three times over the old file, twice over the new one, and two writes.
        let in_order_s = plain.build_s.least;
        let expected = 3.0 * plain.hash_s.most + 4.0 * in_order_s;
        assert!((remedy_s.most - expected).abs() < 1.0, "{rewritten:?}");
        let parts = parts + remedy_s.most + in_order_s;
        assert!((rewritten.all_s.most - parts).abs() < 1.0, "{rewritten:?}");
        let [_, time] = rewritten.words(None);
        assert!(time.contains("the remedy"), "{time}");
        // A dump is written to a file and read again; what is compacted may keep its order.
        assert!(with(Remedy::Dump).all_s.least > rewritten.all_s.least);
        let compacted = with(Remedy::Compact);
        let twice = plain.all_s.most + plain.build_s.most;
        assert!(compacted.all_s.most > twice, "{compacted:?}");
        // On one of four servers a quarter.
        let on = |name: Option<&str>| {
            let found = churned(|_, build| {
                build.topologies = vec!["split=4".into()];
                build.remedy = Some(Remedy::Rewrite);
                build.remedy_on = name.map(str::to_owned);
            });
            found.remedy_s.expect("it has one").least
        };
        assert!((on(None) / on(Some("split-1")) - 4.0).abs() < 1e-9);
        // Configurations follow each other.
        let several = churned(|_, build| {
            build.untraced = 0;
            build.topologies = vec!["standalone".into(), "split=2".into()];
        });
        assert!((several.all_s.least / plain.all_s.least - 2.0).abs() < 1e-9);
    }

    #[test]
    fn dealt_documents_need_room_once_and_each_server_some_more() {
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
            found.expect("they are loaded").builds
        };
        assert_eq!(builds(0, None, Start::Cold), 1);
        assert_eq!(builds(1, None, Start::Cold), 2);
        assert_eq!(builds(3, Some(Remedy::Rewrite), Start::Cold), 12);
        assert_eq!(builds(3, Some(Remedy::Rewrite), Start::Warm), 2);
        let room = |remedy| {
            of(|_, build| build.remedy = remedy)
                .expect("they are loaded")
                .room_bytes
        };
        assert!(room(Some(Remedy::Rewrite)) > room(None));
        let limited = of(|plan, _| {
            let storage = "ext4 on loop:4GiB at 400 iops".parse().expect("it is one");
            plan.server.storage = Some(storage);
        });
        assert_eq!(limited.expect("they are loaded").random_per_s, 400.0);
    }
}
