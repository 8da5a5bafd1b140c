//! Checks that a host's disks have room for the data of all its servers. Several servers may share a file system.

use dyno_engine::deployment::storage::planned_bytes;
use dyno_engine::{Error, Kind};
use dyno_observe::environment::space_of;
use dyno_plan::Plan;
use dyno_plan::model::ServerKind;
use dyno_plan::topology::Topology;
use dyno_record::quantity::Quantity;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Space reserved for a `mongod` journal: the current file and two preallocated ones. Source: `du` of the journal of 6.0.5 after
/// its start, 301 MiB.
const JOURNAL_BYTES: u64 = 3 * (100 << 20);

/// Refuses servers whose data does not fit into their data folders. With `are_running`, journals exist already; otherwise a folder
/// that is not empty is skipped, because it may already hold the data.
///
/// # Errors
/// Names the folder without room, and the space that it needs.
pub(super) fn check(plan: &Plan, folders: &[PathBuf], are_running: bool) -> Result<(), Error> {
    let data = data_bytes(plan);
    let each = match plan.server.kind {
        ServerKind::Mongod if plan.server.journal != Some(false) && !are_running => {
            data.saturating_add(JOURNAL_BYTES)
        }
        _ => data,
    };
    let is_new = |folder: &&PathBuf| are_running || is_empty(folder);
    let new: Vec<&PathBuf> = folders.iter().filter(is_new).collect();
    match lacking(&new, each, space_of) {
        None => Ok(()),
        Some(lack) => Err(Error::new(Kind::Environment, lack).with_hint(
            "load fewer documents (`--records`), or name folders on larger disks (`server.data_dirs`)",
        )),
    }
}

/// Planned data bytes of one server; 0 if the document size is unknown. Each shard has an equal part.
fn data_bytes(plan: &Plan) -> u64 {
    let all = planned_bytes(&plan.data, plan.data.records).unwrap_or(0);
    match plan.server.topology() {
        Ok(Topology::Sharded(cluster)) => all / u64::from(cluster.shards.max(1)),
        _ => all,
    }
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).map_or(true, |mut all| all.next().is_none())
}

/// Describes the first file system with less free space than its folders need together. `space` returns a folder's file system
/// number and free bytes.
fn lacking(
    folders: &[&PathBuf],
    each: u64,
    space: impl Fn(&Path) -> Option<(u64, u64)>,
) -> Option<String> {
    let mut of_disks: BTreeMap<u64, (u64, &Path, u64)> = BTreeMap::new();
    for folder in folders {
        // Unknown space refuses nothing.
        let Some((disk, free)) = space(folder) else {
            continue;
        };
        of_disks.entry(disk).or_insert((free, folder.as_path(), 0)).2 += 1;
    }
    let (free, folder, servers) =
        of_disks.into_values().find(|(free, _, servers)| each.saturating_mul(*servers) > *free)?;
    let whom = match servers {
        1 => "its server needs".to_owned(),
        several => format!("{several} servers with data there need"),
    };
    Some(format!(
        "the file system of `{}` has {} free, but {whom} {}",
        folder.display(),
        Quantity::bytes(free),
        Quantity::bytes(each.saturating_mul(servers))
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `/a` and its subfolders are one file system with 100 free bytes, `/b` is another with 1000.
    fn space(folder: &Path) -> Option<(u64, u64)> {
        let disks = [("/a", (1, 100)), ("/b", (2, 1000))];
        disks.into_iter().find(|(root, _)| folder.starts_with(root)).map(|(_, space)| space)
    }

    fn lack(folders: &[&str], each: u64) -> Option<String> {
        let folders: Vec<PathBuf> = folders.iter().map(PathBuf::from).collect();
        let folders: Vec<&PathBuf> = folders.iter().collect();
        lacking(&folders, each, space)
    }

    #[test]
    fn servers_are_added_up_only_within_one_file_system() {
        assert_eq!(lack(&["/a/0"], 100), None);
        assert_eq!(lack(&["/a/0", "/b/1"], 100), None);
        let both = lack(&["/b/0", "/a/1", "/b/2", "/a/3"], 60).expect("120 of 100 bytes");
        for part in ["`/a/1`", "2 servers", "120 B"] {
            assert!(both.contains(part), "{both}");
        }
        let one = lack(&["/b/0", "/a/1"], 101).expect("101 of 100 bytes");
        assert!(one.contains("`/a/1`") && one.contains("101 B"), "{one}");
        assert_eq!(lack(&["/elsewhere"], 1 << 40), None, "the file system is unknown");
    }

    #[test]
    fn required_space_includes_new_journals_and_growing_data() {
        let folder = tempfile::tempdir().expect("can write");
        let own = folder.path().join("data");
        let mut plan = dyno_plan::builtin::find("a").expect("built in");
        plan.data.records = 1;
        let fits = |plan: &Plan, are_running| check(plan, std::slice::from_ref(&own), are_running);
        assert!(fits(&plan, false).is_ok());
        plan.data.records = u64::MAX;
        let error = fits(&plan, false).expect_err("larger than any disk");
        assert_eq!(error.kind, Kind::Environment);
        assert!(fits(&plan, true).is_err());
        std::fs::create_dir(&own).expect("can write");
        assert!(fits(&plan, false).is_err());
        std::fs::write(own.join("WiredTiger"), "").expect("can write");
        assert!(fits(&plan, false).is_ok(), "the data may be there already");
    }
}
