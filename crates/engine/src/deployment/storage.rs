//! Storage that a plan has prepared for its servers: made before they start, measured, limited, and
//! removed after them.

use crate::context::Context;
use crate::deployment::server::ServerPaths;
use crate::error::{Error, Kind, refuse};
use dyno_observe::Device;
use dyno_plan::Plan;
use dyno_plan::model::{DataPlan, ServerPlan};
use dyno_plan::storage::{Device as Named, Storage};
use dyno_plan::units::Bytes;
use dyno_record::disk::DiskCapacity;
use dyno_record::model::{Environment, StorageRecord};
use dyno_record::storage::PreparedStorageRecord;
use dyno_servers::storage::{
    self, MEASURING, PreparedStorage, StorageError, StorageLimits, Throttle,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Mount folder, next to the server logs.
const FOLDER: &str = "server-storage";

/// Measured storage by setting. An experiment makes the same storage for each run and measures it
/// only before the first: the device stays the same, and the time is better spent on the server.
static MEASURED: Mutex<BTreeMap<String, Measured>> = Mutex::new(BTreeMap::new());

/// Measured storage, or why it was not measured.
type Measured = Result<MeasuredStorage, String>;

/// Measured limits, and the device names at that time: each time the storage is made, other loop
/// devices may be free.
#[derive(Clone, Debug)]
struct MeasuredStorage {
    limits: StorageLimits,
    devices: Vec<String>,
}

/// See the module.
#[derive(Debug)]
pub struct StorageUnderTest {
    // Declared before the storage: limits end before it is removed.
    throttle: Option<Throttle>,
    later: Option<LaterThrottle>,
    prepared: Arc<PreparedStorage>,
    record: PreparedStorageRecord,
    capacities: BTreeMap<String, DiskCapacity>,
}

/// A limit that a thread applies while the servers work.
#[derive(Debug)]
struct LaterThrottle {
    /// Dropping it ends the thread and the limit.
    end: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl LaterThrottle {
    fn start(prepared: Arc<PreparedStorage>, after: Duration, processes: Vec<u32>) -> Self {
        let (end, ended) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            if ended.recv_timeout(after) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            match prepared.throttle(&processes) {
                // Nothing is sent: this waits until the sender is dropped.
                Ok(_throttle) => drop(ended.recv()),
                Err(error) => tracing::warn!(%error, "cannot limit the storage"),
            }
        });
        LaterThrottle { end: Some(end), thread: Some(thread) }
    }
}

impl Drop for LaterThrottle {
    fn drop(&mut self) {
        drop(self.end.take());
        // The thread holds the storage until it has ended.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Size of this many documents of a data set, without keys and field names; `None` if the lengths
/// follow a histogram.
pub fn planned_bytes(data: &DataPlan, documents: u64) -> Option<u64> {
    let document = data.mean_document_bytes()?;
    Some(documents.saturating_mul(document))
}

/// Data folder of servers on prepared storage; `None` if the plan has none.
pub fn data_folder(server: &ServerPlan, folder: &Path) -> Option<PathBuf> {
    server.storage.as_ref()?;
    Some(folder.join(FOLDER).join("data"))
}

/// Refuses storage that [`StorageUnderTest::prepare`] would refuse, and notes what it would do.
///
/// # Errors
/// See above.
pub fn check(plan: &Plan, folder: &Path, context: Context<'_>) -> Result<(), Error> {
    let Some(setting) = &plan.server.storage else {
        return Ok(());
    };
    let found = storage::check(setting, folder)?;
    let size = found.iter().map(|block| block.bytes).sum::<u64>() + setting.loop_bytes();
    check_room(plan, size, context)?;
    let mut sizes = found.iter().map(|block| Bytes(block.bytes >> 20 << 20));
    let devices: Vec<String> = setting
        .devices
        .iter()
        .map(|device| match (device, sizes.next()) {
            (Named::Block(path), Some(size)) => format!("`{path}`, a device of {size}"),
            (Named::Block(path), None) => format!("`{path}`"),
            (Named::Loop(size), _) => format!("a file of {size} behind a loop device"),
        })
        .collect();
    let measuring = match storage::can_measure() {
        true => format!("measures it with `fio`, which takes about {} s", MEASURING.as_secs()),
        false => format!("does not measure it, because {NO_FIO}"),
    };
    context.note(format!(
        "storage: makes {} on {}, {measuring}, and removes it after the servers",
        setting.volume,
        devices.join(" and ")
    ));
    Ok(())
}

/// Space that each server needs in addition to its data: preallocated journal files and the
/// server's own collections.
const ROOM_BYTES: u64 = 512 << 20;

/// Refuses storage that is too small for the documents, and warns if pages rewritten by checkpoints
/// may fill it.
fn check_room(plan: &Plan, size: u64, context: Context<'_>) -> Result<(), Error> {
    // Shards split the documents; members each hold all of them.
    let copies = plan.server.topology().map_or(1, |one| one.copies());
    let servers = u64::from(copies.max(1));
    let Some(data) = planned_bytes(&plan.data, plan.data.records) else {
        return Ok(());
    };
    let data = data.saturating_mul(servers);
    let hint = "give it a larger file or device, or load fewer documents (`--records`)";
    let text = |what: &str| {
        format!(
            "`server.storage` has {}, and {} documents of {} {what}",
            Bytes(size >> 20 << 20),
            plan.data.records.saturating_mul(servers),
            Bytes(data >> 20 << 20)
        )
    };
    if data >= size {
        return refuse(text("do not fit into it"), hint);
    }
    let needed = data.saturating_mul(2).saturating_add(ROOM_BYTES * servers);
    if needed > size {
        let what = text("may fill it while they are loaded and updated, which ends the server");
        context.warning(format!("{what}: {hint}"));
    }
    Ok(())
}

/// Refuses a free-space limit that the plan's storage cannot meet.
///
/// # Errors
/// Files behind loop devices are not larger than the limit.
pub fn check_least_free(plan: &Plan, least_free: Bytes) -> Result<(), Error> {
    let Some(setting) = &plan.server.storage else {
        return Ok(());
    };
    let size = setting.loop_bytes();
    if !setting.is_on_loop() || size > least_free.0 {
        return Ok(());
    }
    let text = format!(
        "`server.storage` has {}, and the run ends if less than {least_free} is free",
        Bytes(size)
    );
    refuse(text, "make the file larger, or set `--least-free` lower")
}

/// Whether a failure concerns the storage: preparing, limiting or removing it.
pub(crate) fn is_of_storage(failure: &Error) -> bool {
    failure.cause.is::<StorageError>()
}

/// Reason without the measuring program.
const NO_FIO: &str = "`fio` is not installed (package `fio`)";

impl StorageUnderTest {
    /// Prepares the plan's storage; `None` if it has none.
    ///
    /// # Errors
    /// A device cannot be used, or the storage cannot be made. Nothing is left behind.
    pub fn prepare(
        server: &ServerPlan,
        paths: &ServerPaths<'_>,
        note: &dyn Fn(&str),
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Option<Self>, Error> {
        let Some(setting) = &server.storage else {
            return Ok(None);
        };
        note(&format!("preparing storage: {setting}"));
        let prepared = PreparedStorage::prepare(setting, &paths.folder.join(FOLDER), interrupted)?;
        let devices = prepared.member_paths();
        let measured = measured(setting, &prepared, note, interrupted)?;
        let not_measured = measured.as_ref().err().cloned();
        let (limits, mut capacities, mut no_capacity) = match measured {
            Ok(found) => {
                let capacities = found.capacities(&devices);
                (Some(found.limits.performance), capacities, found.limits.no_capacity)
            }
            Err(_) => (None, BTreeMap::new(), None),
        };
        // A limit that starts later does not bound the whole run; its devices' own capacity does.
        if let Some(per_s) = prepared.limit_per_s() {
            let limited = dyno_observe::devices_at_end(&prepared.data()).into_iter();
            let limited = limited.map(|device| device.name).collect();
            if let Some(reason) = add_limit(per_s, limited, &devices, &mut capacities) {
                note(&reason);
                add_reason(&mut no_capacity, &reason);
            }
        }
        Ok(Some(StorageUnderTest {
            capacities,
            throttle: None,
            later: None,
            record: PreparedStorageRecord {
                setting: setting.to_string(),
                devices,
                size_bytes: prepared.bytes(),
                no_capacity,
                limits,
                not_measured,
            },
            prepared: Arc::new(prepared),
        }))
    }

    /// Folder for the servers' data.
    pub fn data(&self) -> PathBuf {
        self.prepared.data()
    }

    /// Adds the storage to a machine's record, which was read before the storage existed.
    pub fn describe(&self, environment: &mut Environment) {
        let seen = dyno_observe::environment::storage_of(&self.data());
        environment.data_storage = Some(StorageRecord {
            capacities: self.capacities.clone(),
            prepared: Some(self.record.clone()),
            ..seen.unwrap_or_default()
        });
    }

    /// Limits the operations of these processes as planned, at once or later, until the storage is
    /// removed.
    ///
    /// # Errors
    /// The kernel refuses the limit.
    pub fn limit(&mut self, processes: &[u32]) -> Result<(), Error> {
        match self.prepared.limited_after() {
            None => self.throttle = self.prepared.throttle(processes)?,
            Some(after) => {
                let prepared = Arc::clone(&self.prepared);
                let later = LaterThrottle::start(prepared, after, processes.to_owned());
                self.later = Some(later);
            }
        }
        Ok(())
    }

    /// Ends the limit.
    pub fn lift_limit(&mut self) {
        self.throttle = None;
        self.later = None;
    }

    /// Removes the storage. The servers must have ended.
    ///
    /// # Errors
    /// Parts of the storage cannot be removed.
    pub fn remove(mut self) -> Result<(), Error> {
        self.lift_limit();
        match Arc::into_inner(self.prepared) {
            Some(prepared) => Ok(prepared.remove()?),
            None => Err(Error::new(Kind::Internal, "the storage is in use by a thread")),
        }
    }
}

/// Measures the storage without a server, once per setting. A failure does not prevent measuring
/// the server.
fn measured(
    setting: &Storage,
    prepared: &PreparedStorage,
    note: &dyn Fn(&str),
    interrupted: &dyn Fn() -> bool,
) -> Result<Measured, Error> {
    let key = setting.to_string();
    let known = || MEASURED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known().get(&key) {
        return Ok(known.clone());
    }
    note("measuring the storage with `fio`");
    let devices = dyno_observe::devices_at_end(&prepared.data());
    let counted = || {
        let counters = |device: &Device| Ok((device.name.clone(), device.counters()?));
        devices.iter().map(counters).collect()
    };
    let measured = match prepared.measure(&counted, interrupted) {
        Ok(mut limits) => {
            let hard_disks = devices.iter().filter(|device| device.is_hard_disk());
            let hard_disks: Vec<String> = hard_disks.map(|device| device.name.clone()).collect();
            forget_requests(&mut limits, &hard_disks);
            if let Some(reason) = &limits.no_capacity {
                note(&format!("the storage may be able to do more than was measured: {reason}"));
            }
            Ok(MeasuredStorage { limits, devices: prepared.member_paths() })
        }
        Err(StorageError::Interrupted) => return Err(StorageError::Interrupted.into()),
        Err(StorageError::NoProgram { .. }) => Err(NO_FIO.to_owned()),
        Err(error) => Err(Error::from(error).reason()),
    };
    if let Err(reason) = &measured {
        note(&format!("cannot measure the storage: {reason}"));
    }
    known().insert(key, measured.clone());
    Ok(measured)
}

impl MeasuredStorage {
    /// Capacity of each device, by its current name.
    fn capacities(&self, now: &[String]) -> BTreeMap<String, DiskCapacity> {
        let same = |of: &String| {
            let place = self.devices.iter().position(|path| name(path) == of);
            // Members of a volume keep their names.
            place.map_or(of.clone(), |place| name(&now[place]).to_owned())
        };
        self.limits.capacities.iter().map(|(of, capacity)| (same(of), *capacity)).collect()
    }
}

/// Adds the planned limit, whether or not the devices were measured. It applies to the devices
/// named in the plan. For an array or a volume, each member's share is unknown; returns a reason
/// then.
fn add_limit(
    per_s: u32,
    ends: Vec<String>,
    named: &[String],
    capacities: &mut BTreeMap<String, DiskCapacity>,
) -> Option<String> {
    let (named, others): (Vec<String>, Vec<String>) =
        ends.into_iter().partition(|device| named.iter().any(|path| name(path) == device));
    for device in named {
        let capacity = capacities.entry(device).or_default();
        capacity.limit_per_s = Some(per_s.into());
    }
    (!others.is_empty()).then(|| {
        let others: Vec<String> = others.iter().map(|one| format!("`{one}`")).collect();
        format!(
            "the planned limit applies to the named device; the share of {} is unknown",
            others.join(" or ")
        )
    })
}

/// Appends a reason to the known ones.
fn add_reason(reasons: &mut Option<String>, reason: &str) {
    *reasons = Some(match reasons.take() {
        Some(others) => format!("{others}; {reason}"),
        None => reason.to_owned(),
    });
}

/// Name of the device in `/sys`.
fn name(path: &str) -> &str {
    path.strip_prefix("/dev/").unwrap_or(path)
}

/// Removes request rates of hard disks as limits and gives the reason: they serve adjacent requests
/// much faster than random ones.
fn forget_requests(limits: &mut StorageLimits, hard_disks: &[String]) {
    for (name, capacity) in &mut limits.capacities {
        if hard_disks.contains(name) {
            (capacity.read_per_s, capacity.write_per_s) = (None, None);
            let reason = format!(
                "`{name}` is a hard disk, which serves adjacent requests faster than random ones"
            );
            add_reason(&mut limits.no_capacity, &reason);
        }
    }
}

impl From<StorageError> for Error {
    fn from(error: StorageError) -> Self {
        let kind = match &error {
            StorageError::Refused { .. } | StorageError::NoSpace { .. } => Kind::BadInput,
            StorageError::Interrupted => Kind::Interrupted,
            _ => Kind::Environment,
        };
        let hint = error.hint();
        Error::from_cause(kind, error).with_optional_hint(hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::storage::StorageLimitsRecord;

    fn measured() -> MeasuredStorage {
        let capacity = |name: &str, read_per_s| {
            let read_per_s = Some(read_per_s);
            (name.to_owned(), DiskCapacity { read_per_s, ..DiskCapacity::default() })
        };
        MeasuredStorage {
            limits: StorageLimits {
                performance: StorageLimitsRecord::default(),
                capacities: [capacity("loop3", 3.0), capacity("loop4", 4.0), capacity("sdb", 5.0)]
                    .into(),
                no_capacity: None,
            },
            devices: vec!["/dev/loop3".to_owned(), "/dev/loop4".to_owned()],
        }
    }

    fn reads(capacities: &BTreeMap<String, DiskCapacity>) -> Vec<(&str, Option<f64>)> {
        let reads = capacities.iter();
        let reads = reads.map(|(name, one)| (name.as_str(), one.read_per_s));
        reads.collect()
    }

    #[test]
    fn capacity_follows_its_member_to_another_device() {
        let now = ["/dev/loop7".to_owned(), "/dev/loop3".to_owned()];
        let found = measured().capacities(&now);
        let expected = [
            ("loop3", Some(4.0)),
            ("loop7", Some(3.0)),
            // Below a volume.
            ("sdb", Some(5.0)),
        ];
        assert_eq!(reads(&found), expected);
    }

    #[test]
    fn limit_applies_to_each_device_even_if_nothing_was_measured() {
        let mut found = measured().capacities(&measured().devices);
        let ends = ["loop3", "loop9"].map(str::to_owned);
        let named = ["/dev/loop3", "/dev/loop9"].map(str::to_owned);
        let reason = add_limit(500, ends.to_vec(), &named, &mut found);
        assert_eq!(reason, None);
        let limits: Vec<Option<f64>> = found.values().map(|one| one.limit_per_s).collect();
        assert_eq!(limits, [Some(500.0), None, Some(500.0), None]);
        assert_eq!(reads(&found)[0], ("loop3", Some(3.0)));
        assert_eq!(reads(&found)[2], ("loop9", None));
    }

    #[test]
    fn limit_of_an_array_does_not_apply_to_its_members() {
        let mut found = measured().capacities(&measured().devices);
        let before = found.clone();
        let ends = ["sdb", "sdc"].map(str::to_owned).to_vec();
        let reason = add_limit(500, ends, &["/dev/md0".to_owned()], &mut found);
        assert!(reason.is_some_and(|reason| reason.contains("`sdb` or `sdc`")));
        assert_eq!(found, before);
    }

    #[test]
    fn random_requests_do_not_limit_a_hard_disk() {
        let mut limits = measured().limits;
        limits.capacities.get_mut("sdb").unwrap().read_bytes_per_s = Some(2e8);
        forget_requests(&mut limits, &["sdb".to_owned()]);
        let expected = [("loop3", Some(3.0)), ("loop4", Some(4.0)), ("sdb", None)];
        assert_eq!(reads(&limits.capacities), expected);
        assert_eq!(limits.capacities["sdb"].read_bytes_per_s, Some(2e8));
        assert!(limits.no_capacity.is_some_and(|reason| reason.contains("`sdb`")));
    }
}
