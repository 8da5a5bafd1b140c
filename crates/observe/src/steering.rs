//! Receive packet steering: the CPUs that process the packets which a network card receives. Finds
//! the files of a card's receive queues and the values to write;
//! [`doctor::change`](crate::doctor::change) writes and reverts them.
//!
//! Without steering, the CPU that takes a queue's interrupt does all the work for that queue, so a
//! card with few queues can keep one CPU busy while others wait. See
//! `Documentation/networking/scaling.rst` of Linux.

use crate::health::Health;
use crate::host;
use dyno_record::verdict::Action;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Folder of the network interfaces.
const INTERFACES: &str = "sys/class/net";

/// Why the packets of a card cannot be steered.
#[derive(Debug, thiserror::Error)]
pub enum SteeringError {
    #[error("no network card `{interface}`")]
    NoInterface { interface: String, known: Vec<String> },
    #[error("`{interface}` has no receive queues that can be steered")]
    NoQueues { interface: String },
    /// The text is not a list of CPUs.
    #[error("`{list}` is not a list of CPUs such as `0-3,8`")]
    List { list: String },
    /// A CPU does not exist or is not online.
    #[error("CPU {cpu} is not online")]
    Offline { cpu: u64 },
    /// The online CPUs are unknown.
    #[error("cannot determine which CPUs are online: {}", health.reason())]
    Cpus { health: Health },
    #[error("cannot read `{}`", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`{}` holds `{text}`, which is not a mask for these CPUs", path.display())]
    Mask { path: PathBuf, text: String },
}

impl SteeringError {
    /// Advice to fix the error.
    pub fn hint(&self) -> Option<String> {
        match self {
            SteeringError::NoInterface { known, .. } if !known.is_empty() => {
                Some(format!("the network cards are: {}", known.join(", ")))
            }
            SteeringError::NoQueues { .. } => {
                Some("the kernel lacks packet steering, or the interface only groups other cards; name those cards".into())
            }
            SteeringError::Offline { .. } => {
                Some("`/sys/devices/system/cpu/online` lists the online CPUs".into())
            }
            _ => None,
        }
    }
}

/// Actions that steer the packets of `eth0`, one per receive queue in their order, to all online CPUs, or of `eth0=0-3` to these.
/// Changes nothing. `root` is `/`, or a file tree that imitates a machine.
///
/// # Errors
/// [`SteeringError`].
pub fn find(text: &str, root: &Path) -> Result<Vec<Action>, SteeringError> {
    let (interface, list) = match text.split_once('=') {
        Some((interface, list)) => (interface, Some(list)),
        None => (text, None),
    };
    let cpus = cpus(list, root)?;
    let mut actions = Vec::new();
    for path in queue_files(interface, root)? {
        let text = match fs::read_to_string(host::below(root, &path)) {
            Ok(text) => text.trim().to_owned(),
            Err(source) => return Err(SteeringError::Read { path, source }),
        };
        match mask(&cpus, &text) {
            Some(value) => actions.push(Action::Write { path, value }),
            None => return Err(SteeringError::Mask { path, text }),
        }
    }
    Ok(actions)
}

fn cpus(list: Option<&str>, root: &Path) -> Result<Vec<u64>, SteeringError> {
    let online = host::online_list(root).map_err(|health| SteeringError::Cpus { health })?;
    let Some(list) = list else { return Ok(online) };
    let wanted =
        host::members_of_list(list).ok_or_else(|| SteeringError::List { list: list.to_owned() })?;
    if let Some(cpu) = wanted.iter().find(|cpu| !online.contains(cpu)) {
        return Err(SteeringError::Offline { cpu: *cpu });
    }
    Ok(wanted)
}

/// The files of the receive queues as absolute paths.
fn queue_files(interface: &str, root: &Path) -> Result<Vec<PathBuf>, SteeringError> {
    let folder = Path::new("/").join(INTERFACES);
    let card = folder.join(interface);
    if !host::below(root, &card).is_dir() {
        return Err(SteeringError::NoInterface {
            interface: interface.to_owned(),
            known: names(&host::below(root, &folder)),
        });
    }
    let queues = card.join("queues");
    let mut numbers: Vec<u32> = names(&host::below(root, &queues))
        .iter()
        .filter_map(|name| name.strip_prefix("rx-")?.parse().ok())
        .collect();
    numbers.sort_unstable();
    let files: Vec<PathBuf> = numbers
        .iter()
        .map(|number| queues.join(format!("rx-{number}/rps_cpus")))
        .filter(|file| host::below(root, file).exists())
        .collect();
    if files.is_empty() {
        return Err(SteeringError::NoQueues { interface: interface.to_owned() });
    }
    Ok(files)
}

/// Names in a folder in alphabetical order; empty if it cannot be read.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// Formats CPUs like the kernel: hexadecimal digits with a comma after each 32 CPUs, as wide as the
/// machine's largest number of CPUs. `form` is such a text; the result has its width, so that it
/// reads back unchanged. `None` if `form` is not a mask or is too narrow.
fn mask(cpus: &[u64], form: &str) -> Option<String> {
    let is_mask = |c: char| c == ',' || c.is_ascii_hexdigit();
    if form.is_empty() || !form.chars().all(is_mask) {
        return None;
    }
    let mut digits = vec![0_u32; form.chars().filter(|c| *c != ',').count()];
    for cpu in cpus {
        let from_the_right = usize::try_from(cpu / 4).ok()?;
        let place = digits.len().checked_sub(from_the_right + 1)?;
        digits[place] |= 1 << (cpu % 4);
    }
    let mut digits = digits.into_iter();
    form.chars()
        .map(|c| match c {
            ',' => Some(','),
            _ => char::from_digit(digits.next()?, 16),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::tests::Fixture;

    const ONLINE: &str = "sys/devices/system/cpu/online";

    /// A card with two receive queues and one for sending, on a machine with 40 CPUs.
    fn machine() -> Fixture {
        Fixture::new()
            .with(ONLINE, "0-39\n")
            .with("sys/class/net/eth0/queues/rx-10/rps_cpus", "00,00000000\n")
            .with("sys/class/net/eth0/queues/rx-2/rps_cpus", "00,00000001\n")
            .with("sys/class/net/eth0/queues/tx-0/xps_cpus", "00,00000000\n")
            .with("sys/class/net/dummy0/mtu", "1500\n")
    }

    fn written(text: &str) -> Vec<(String, String)> {
        let steering = find(text, machine().root()).unwrap();
        let pair = |action: &Action| match action {
            Action::Write { path, value } => (path.display().to_string(), value.clone()),
            Action::Remount { .. } => panic!("{action:?}"),
        };
        steering.iter().map(pair).collect()
    }

    #[test]
    fn every_receive_queue_is_steered_to_all_online_cpus() {
        let file = |queue| format!("/sys/class/net/eth0/queues/{queue}/rps_cpus");
        let all = "ff,ffffffff".to_owned();
        let expected = [(file("rx-2"), all.clone()), (file("rx-10"), all)];
        assert_eq!(written("eth0"), expected);
    }

    #[test]
    fn list_of_cpus_limits_them() {
        assert!(written("eth0=33,0-1").iter().all(|(_, value)| value == "02,00000003"));
    }

    #[test]
    fn masks_have_the_width_that_the_kernel_has() {
        for (cpus, form, text) in [
            (&[0, 1][..], "0", "3"),
            (&[0], "00000000,00000000", "00000000,00000001"),
            (&[63], "ffffffff,ffffffff", "80000000,00000000"),
            (&[4, 5, 6, 7], "00", "f0"),
            (&[], "3", "0"),
        ] {
            assert_eq!(mask(cpus, form).as_deref(), Some(text));
        }
        assert_eq!(mask(&[4], "0"), None);
        assert_eq!(mask(&[0], ""), None);
        assert_eq!(mask(&[0], "all"), None);
    }

    #[test]
    fn steering_error_names_what_is_missing() {
        let error = |text: &str| find(text, machine().root()).unwrap_err();
        let missing = error("eth1");
        assert!(missing.to_string().contains("`eth1`"), "{missing}");
        assert!(missing.hint().unwrap().contains("dummy0, eth0"));
        let SteeringError::NoInterface { interface, known } = missing else {
            panic!("{missing}");
        };
        assert_eq!(interface, "eth1");
        assert_eq!(known, ["dummy0", "eth0"]);
        assert!(matches!(error("dummy0"), SteeringError::NoQueues { .. }));
        assert!(matches!(error("eth0=40"), SteeringError::Offline { cpu: 40 }));
        assert!(matches!(error("eth0=x"), SteeringError::List { .. }));
        let odd = machine().with("sys/class/net/eth0/queues/rx-3/rps_cpus", "0\n");
        let error = find("eth0", odd.root()).unwrap_err();
        assert!(matches!(error, SteeringError::Mask { .. }), "{error}");
        let error = find("eth0", Fixture::new().root()).unwrap_err();
        assert!(matches!(error, SteeringError::Cpus { .. }), "{error}");
    }
}
