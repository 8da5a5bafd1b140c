//! The least disk space and time of an index build, as a warning before an experiment that takes all night.

use dyno_plan::index_build::{IndexBuildPlan, Layout, Remedy};
use dyno_plan::model::{Plan, ServerKind};
use dyno_plan::topology::Topology;
use dyno_record::quantity::Quantity;

/// Documents of 3 KB per second that one connection inserts into MongoDB 6.0.5 on two virtual CPUs, if the disk keeps up.
const LOADED_PER_S: f64 = 20_000.0;
/// Bytes per second that a server reads in order: limited by a hard disk, or by an index build on one CPU.
const IN_ORDER_BYTES_PER_S: f64 = 100e6;

/// The least that an index build needs, without random reads, the time of a remedy, and unused space in files.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Estimate {
    /// Documents of the largest configuration, uncompressed; its data is removed before the next one.
    pub(crate) bytes: u64,
    /// The same with all copies during a remedy.
    pub(crate) bytes_with_remedy: u64,
    /// Number of index builds on all configurations.
    builds: u32,
    duration_s: f64,
}

impl Estimate {
    /// `None` for existing documents.
    pub(crate) fn of(plan: &Plan, build: &IndexBuildPlan) -> Option<Estimate> {
        if build.layout == Layout::Existing {
            return None;
        }
        let topologies = build.topologies(&plan.server).ok()?;
        let documents_bytes = plan.data.records.saturating_mul(build.mean_document_bytes());
        let copies = topologies.iter().map(Topology::copies).max().unwrap_or(1);
        let stages = 1 + u32::from(build.remedy.is_some());
        // Each build without a trace is paired with a traced one.
        let builds = topologies.len() as u32 * stages * (2 * build.untraced_builds()).max(1);
        // Each configuration also reads its documents once for their hash.
        let reads = builds as usize + topologies.len();
        let load_s = topologies.len() as f64 * plan.data.records as f64 / LOADED_PER_S;
        let read_s = reads as f64 * documents_bytes as f64 / IN_ORDER_BYTES_PER_S;
        let bytes = documents_bytes.saturating_mul(copies.into());
        Some(Estimate {
            bytes,
            bytes_with_remedy: bytes
                .saturating_mul(1 + remedy_copies(build.remedy, plan.server.kind)),
            builds,
            duration_s: load_s + read_s,
        })
    }

    /// Both in one sentence.
    pub(crate) fn words(&self) -> String {
        let builds = match self.builds {
            1 => "1 build".to_owned(),
            builds => format!("{builds} builds"),
        };
        format!(
            "at least {} of uncompressed documents and {} for {builds} of the index; random reads take longer",
            Quantity::bytes(self.bytes),
            Quantity::seconds(self.duration_s).brief()
        )
    }
}

/// Most copies of the documents that a remedy makes.
fn remedy_copies(remedy: Option<Remedy>, server: ServerKind) -> u64 {
    match remedy {
        None | Some(Remedy::Compact) => 0,
        // This server renames by another copy, and logs every copy (decision 008).
        Some(_) if server == ServerKind::Embedded => 23,
        Some(Remedy::Rewrite | Remedy::NaturalCopy) => 1,
        Some(Remedy::Dump) => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_plan::index_build::Start;

    /// 20 million documents, 60 GiB.
    fn of(change: impl FnOnce(&mut IndexBuildPlan)) -> Option<Estimate> {
        let mut plan = dyno_plan::builtin::INDEX_BUILDS.find("ordered").expect("built in");
        plan.data.records = 20_000_000;
        let mut build = plan.index_build.clone().unwrap_or_default();
        change(&mut build);
        Estimate::of(&plan, &build)
    }

    #[test]
    fn estimate_covers_loading_and_all_reads_of_each_configuration() {
        let found =
            of(|build| build.topologies = ["standalone", "split=2"].map(str::to_owned).into());
        let found = found.expect("an estimate");
        assert_eq!(found.bytes >> 30, 60, "{found:?}");
        // Twice: 1,000 s of loading, a hash and two builds of 11 min each.
        assert!((97.0..101.0).contains(&(found.duration_s / 60.0)), "{found:?}");
        let words = found.words();
        assert!(words.contains("GiB") && words.contains("4 builds"), "{words}");
        let set = of(|build| build.topologies = vec!["replica-set=3".into()]);
        assert_eq!(set.expect("an estimate").bytes, 3 * found.bytes, "each member has all");
        assert_eq!(of(|build| build.layout = Layout::Existing), None);
    }

    #[test]
    fn remedies_need_room_for_their_copies() {
        use ServerKind::{Embedded, Mongod};
        for (remedy, server, copies) in [
            (None, Embedded, 0),
            (Some(Remedy::Compact), Embedded, 0),
            (Some(Remedy::Rewrite), Embedded, 23),
            (Some(Remedy::Rewrite), Mongod, 1),
            (Some(Remedy::NaturalCopy), Mongod, 1),
            (Some(Remedy::Dump), Mongod, 2),
        ] {
            assert_eq!(remedy_copies(remedy, server), copies, "{remedy:?} {server:?}");
            let mut plan = dyno_plan::builtin::INDEX_BUILDS.find("ordered").expect("built in");
            plan.server.kind = server;
            let build = IndexBuildPlan { remedy, ..Default::default() };
            let found = Estimate::of(&plan, &build).expect("an estimate");
            assert_eq!(found.bytes_with_remedy, (1 + copies) * found.bytes, "{remedy:?}");
        }
    }

    #[test]
    fn remedies_and_builds_without_a_trace_are_counted() {
        let builds = |untraced, remedy, start| {
            let found =
                of(|build| (build.untraced, build.remedy, build.start) = (untraced, remedy, start));
            found.expect("an estimate").builds
        };
        assert_eq!(builds(0, None, Start::Cold), 1);
        assert_eq!(builds(1, None, Start::Cold), 2);
        assert_eq!(builds(3, Some(Remedy::Rewrite), Start::Cold), 12);
        assert_eq!(builds(3, Some(Remedy::Rewrite), Start::Warm), 2);
    }
}
