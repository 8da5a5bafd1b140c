//! Locates the control groups of a process: the mounted trees with their version, and the folders
//! between a group and the root of its tree. Some machines have both versions, with some
//! controllers in each.
//! Source: `cgroups(7)`.

use crate::health::Reading;
use crate::host::below;
use crate::storage::{Mount, mounts};
use std::path::{Path, PathBuf};

/// Version of the interface, which decides the names of files and their units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// One tree per controller.
    One,
    /// One tree for all controllers.
    Two,
}

/// The mounted trees.
#[derive(Debug)]
pub(super) struct Hierarchies(Vec<Hierarchy>);

#[derive(Debug)]
struct Hierarchy {
    version: Version,
    /// Controllers of version 1; empty for version 2.
    controllers: Vec<String>,
    /// The group that is visible at the mount point: not the root of the tree in some containers.
    part: PathBuf,
    /// In the machine's file tree.
    mount_point: PathBuf,
}

/// The groups of a process for one controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Groups {
    pub(super) version: Version,
    /// Folders, the process's own first and the outermost visible one last.
    pub(super) folders: Vec<PathBuf>,
}

impl Hierarchies {
    /// Reads the mounted trees.
    pub(super) fn read(root: &Path) -> Reading<Hierarchies> {
        let mounts = mounts(root)?;
        let trees = mounts.into_iter().filter_map(|mount| tree(root, mount));
        Ok(Hierarchies(trees.collect()))
    }

    /// The groups for a controller of a process with this `/proc/PID/cgroup`. `None` if the
    /// controller is not mounted, or if the process is outside the visible part.
    pub(super) fn groups(&self, controller: &str, membership: &str) -> Option<Groups> {
        // A controller is in only one of the versions.
        let trees = |version| self.0.iter().filter(move |tree| tree.version == version);
        let has_it = |tree: &&Hierarchy| tree.controllers.iter().any(|name| name == controller);
        let mut trees = trees(Version::One).filter(has_it).chain(trees(Version::Two));
        let tree = trees.next()?;
        // Lines are number, controllers, path; version 2 has number 0 and no controllers.
        let path = membership.lines().find_map(|line| {
            let (number, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            let is_it = match tree.version {
                Version::One => controllers.split(',').any(|name| name == controller),
                Version::Two => number == "0" && controllers.is_empty(),
            };
            is_it.then_some(path)
        })?;
        let inside = Path::new(path).strip_prefix(&tree.part).ok()?;
        if inside.components().any(|part| part.as_os_str() == "..") {
            return None;
        }
        let own = tree.mount_point.join(inside);
        let folders = own.ancestors().take_while(|folder| folder.starts_with(&tree.mount_point));
        Some(Groups { version: tree.version, folders: folders.map(Path::to_owned).collect() })
    }
}

fn tree(root: &Path, mount: Mount) -> Option<Hierarchy> {
    let (version, controllers) = match mount.filesystem.as_str() {
        "cgroup" => (Version::One, mount.options.split(',').map(str::to_owned).collect()),
        "cgroup2" => (Version::Two, Vec::new()),
        _ => return None,
    };
    Some(Hierarchy {
        version,
        controllers,
        part: mount.part,
        mount_point: below(root, &mount.mount_point),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::tests::Fixture;

    const ONE: &str = "1 0 0:1 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
        2 0 0:2 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
    const TWO: &str = "3 0 0:3 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n";
    const MEMBERSHIP: &str =
        "4:memory:/\n3:cpuacct,cpu:/a.slice/b c\n1:name=systemd:/x\n0::/user/app:1\n";

    fn folders(mounts: &str, controller: &str, membership: &str) -> Option<(Version, Vec<String>)> {
        let fixture = Fixture::new().with("proc/self/mountinfo", mounts);
        let hierarchies = Hierarchies::read(fixture.root()).unwrap();
        let groups = hierarchies.groups(controller, membership)?;
        let begin = fixture.root().join("sys/fs/cgroup");
        let name = |folder: &PathBuf| folder.strip_prefix(&begin).unwrap().display().to_string();
        Some((groups.version, groups.folders.iter().map(name).collect()))
    }

    fn expected(version: Version, folders: &[&str]) -> Option<(Version, Vec<String>)> {
        Some((version, folders.iter().map(|name| (*name).to_owned()).collect()))
    }

    #[test]
    fn each_controller_is_found_in_its_version() {
        let both = format!("{ONE}{TWO}");
        let of = |controller| folders(&both, controller, MEMBERSHIP);
        let one = ["cpu,cpuacct/a.slice/b c", "cpu,cpuacct/a.slice", "cpu,cpuacct"];
        assert_eq!(of("cpu"), expected(Version::One, &one));
        assert_eq!(of("memory"), expected(Version::One, &["memory"]));
        let two = ["unified/user/app:1", "unified/user", "unified"];
        assert_eq!(of("io"), expected(Version::Two, &two));
        assert_eq!(folders(ONE, "io", MEMBERSHIP), None);
        assert_eq!(folders(TWO, "cpu", MEMBERSHIP), expected(Version::Two, &two));
        assert_eq!(folders(TWO, "cpu", "garbage"), None);
    }

    #[test]
    fn container_sees_its_part_of_the_tree() {
        let mounts = "3 0 0:3 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let of = |membership| folders(mounts, "cpu", membership);
        assert_eq!(of("0::/docker/abc/x\n"), expected(Version::Two, &["x", ""]));
        assert_eq!(of("0::/docker/abc\n"), expected(Version::Two, &[""]));
        assert_eq!(of("0::/docker/other\n"), None);
        let mounts = mounts.replace("/docker/abc", "/");
        assert_eq!(folders(&mounts, "cpu", "0::/../other\n"), None);
    }
}
