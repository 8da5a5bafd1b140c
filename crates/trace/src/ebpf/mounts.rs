//! Converts paths on a file system to absolute paths, by `mountinfo`.

use super::devices;
use dyno_record::mounts::unescaped;

/// Absolute path of a path on a mounted file system; the longest mounted prefix wins. `None` if the file system, or
/// this part of it, is not mounted.
pub(super) fn mounted_path(mountinfo: &str, device: u32, path: &str) -> Option<String> {
    mountinfo
        .lines()
        .filter_map(parse)
        .filter(|mount| mount.device == device)
        .filter_map(|mount| {
            let rest = match mount.root.as_str() {
                "/" => Some(path),
                root => path.strip_prefix(root),
            }?;
            (rest.is_empty() || rest.starts_with('/')).then_some((
                mount.root.len(),
                mount.point,
                rest,
            ))
        })
        .max_by_key(|(length, ..)| *length)
        .map(|(_, point, rest)| format!("{}{rest}", point.trim_end_matches('/')))
}

struct Mount {
    device: u32,
    root: String,
    point: String,
}

fn parse(line: &str) -> Option<Mount> {
    let mut fields = line.split(' ').skip(2);
    Some(Mount {
        device: devices::parse(fields.next()?)?,
        root: unescaped(fields.next()?),
        point: unescaped(fields.next()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 254:0 /var/data /mnt/with\\040blank rw - ext4 /dev/vda rw
31 22 7:0 / /loop rw - ext4 /dev/loop0 rw
32 22 7:1 /part /other rw - ext4 /dev/loop1 rw
";

    fn mounted(device: (u32, u32), path: &str) -> Option<String> {
        mounted_path(INFO, devices::kernel_number(device.0, device.1), path)
    }

    #[test]
    fn a_path_is_appended_to_its_mount_point() {
        assert_eq!(mounted((7, 0), "/a/b").as_deref(), Some("/loop/a/b"));
        assert_eq!(mounted((254, 0), "/etc/x").as_deref(), Some("/etc/x"));
    }

    #[test]
    fn the_longest_mounted_part_wins() {
        let found = mounted((254, 0), "/var/data/db/x");
        assert_eq!(found.as_deref(), Some("/mnt/with blank/db/x"));
        assert_eq!(mounted((254, 0), "/var/database").as_deref(), Some("/var/database"));
    }

    #[test]
    fn a_part_that_is_not_mounted_has_no_path() {
        assert_eq!(mounted((7, 1), "/elsewhere/x"), None);
        assert_eq!(mounted((9, 9), "/x"), None);
    }
}
