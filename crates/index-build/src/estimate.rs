//! What an index build will need: room on the disk, and time. Rough figures, told with what they rest on, so that nobody
//! begins by mistake what takes a night.

use dyno_plan::index_build::{IndexBuildPlan, Layout, Remedy};
use dyno_plan::model::{Plan, ServerKind};
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
    /// Time to load the documents of one configuration.
    load_s: f64,
    /// Configurations, one after the other.
    configurations: usize,
    /// How often the index is built in all.
    builds: u32,
    /// One build on a single server whose documents are read in order.
    in_order_s: f64,
    /// The same at random.
    at_random_s: f64,
    /// Random reads per second that this rests on.
    random_per_s: f64,
}

/// What a plan will need; `None` of documents that are there already.
pub(crate) fn estimate(plan: &Plan, build: &IndexBuildPlan) -> Option<Estimate> {
    // How much longer it takes than inserting the documents once, as measured with MongoDB 6.0.5, and how many times the
    // documents the file may have, with what updates and deletions leave unused.
    let (written, unused) = match build.layout {
        Layout::Existing => return None,
        Layout::Ordered | Layout::Shuffled | Layout::Concurrent => (1.0, 1.1),
        Layout::Churned => (3.5, 2.0),
        Layout::Migrated => (1.5, 2.0),
    };
    let documents_bytes = plan
        .data
        .records
        .saturating_mul(build.mean_document_bytes());
    let documents = documents_bytes as f64;
    let is_embedded = plan.server.kind == ServerKind::Embedded;
    // A copy beside the collection; the embedded server copies it once more for its name, with logs of all of it.
    let copies = match build.remedy {
        None | Some(Remedy::Compact) => 0.0,
        Some(_) if is_embedded => 23.0,
        Some(Remedy::Rewrite | Remedy::NaturalCopy) => 1.0,
        Some(Remedy::Dump) => 2.0,
    };
    let topologies = build.topologies(&plan.server).ok()?;
    let servers = topologies.iter().map(|topology| topology.data_servers());
    let most_servers = f64::from(servers.max().unwrap_or(1));
    let storage = plan.server.storage.as_ref();
    let limit = storage.and_then(|storage| storage.limit);
    let random_per_s = limit.map_or(RANDOM_READS_PER_S, |limit| f64::from(limit.per_s));
    let stages = if build.remedy.is_some() { 2 } else { 1 };
    // With each one without a trace one under trace, and at least this one.
    let per_stage = match build.untraced_builds() {
        0 => 1,
        untraced => 2 * untraced,
    };
    Some(Estimate {
        documents_bytes,
        room_bytes: (documents * (unused + copies) + most_servers * BESIDE_DOCUMENTS) as u64,
        load_s: written
            * f64::max(
                plan.data.records as f64 / LOADED_PER_S,
                2.0 * documents / WRITTEN_BYTES_PER_S,
            ),
        configurations: topologies.len(),
        builds: stages * per_stage * topologies.len() as u32,
        in_order_s: documents / IN_ORDER_BYTES_PER_S,
        at_random_s: documents / RANDOM_READ_BYTES / random_per_s,
        random_per_s,
    })
}

impl Estimate {
    /// Both in words, a sentence each. `free` is the room where the data goes, if it is known.
    pub(crate) fn words(&self, free: Option<u64>) -> [String; 2] {
        let size = |bytes: u64| Quantity::bytes(bytes);
        let time = |seconds: f64| Quantity::seconds(seconds).brief();
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
        let time = format!(
            "time: about {} to load the documents{each}; {} of the index, each about {} if they are read in order, and up to {} at random by {} reads per second",
            time(self.load_s),
            match self.builds {
                1 => "1 build".to_owned(),
                builds => format!("{builds} builds"),
            },
            time(self.in_order_s),
            time(self.at_random_s),
            Quantity::count(self.random_per_s as u64)
        );
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
    fn twenty_million_documents_are_told_with_their_room_and_their_time() {
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
        assert!(space.contains("1.00 TiB are free"), "{space}");
        assert!(space.contains("on each configuration, one after the other"));
        assert!(time.contains("about 21 min"), "{time}");
        assert!(
            time.contains("4 builds of the index, each about 10 min"),
            "{time}"
        );
        assert!(time.contains("200 reads per second"), "{time}");
        assert!(found.cannot_fit(30 << 30) && !found.cannot_fit(100 << 30));
    }

    #[test]
    fn what_is_there_is_not_estimated() {
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
