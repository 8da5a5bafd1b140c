//! The storage that a plan has prepared for its servers: made before they start, measured, limited, and taken away after them.

use crate::context::Context;
use crate::deployment::server::ServerPaths;
use crate::error::{Error, Kind};
use dyno_plan::model::ServerPlan;
use dyno_plan::storage::{Device, Storage};
use dyno_plan::units::Bytes;
use dyno_record::model::{Environment, StorageRecord};
use dyno_record::storage::{PreparedStorageRecord, StorageLimitsRecord};
use dyno_servers::storage::{self, MEASURING, PreparedStorage, StorageError, Throttle};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Name of the folder where it is mounted, beside the logs of the servers.
const FOLDER: &str = "server-storage";

/// What the storage of each setting can do. An experiment makes the same storage for each of its runs, and measures it before
/// the first: the device stays the same, and its time is better spent on the server.
static MEASURED: Mutex<BTreeMap<String, Measured>> = Mutex::new(BTreeMap::new());

/// What it can do, or why that is not known.
type Measured = Result<StorageLimitsRecord, String>;

/// See the module.
#[derive(Debug)]
pub struct StorageUnderTest {
    // Limits end before what they limit goes away.
    throttle: Option<Throttle>,
    later: Option<LaterThrottle>,
    prepared: Arc<PreparedStorage>,
    record: PreparedStorageRecord,
}

/// A limit that begins to apply while the servers work, by a thread.
#[derive(Debug)]
struct LaterThrottle {
    /// Ends the thread, and with it the limit, when it is dropped.
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
                // Nothing is sent: it waits for the end of the other side.
                Ok(_throttle) => drop(ended.recv()),
                Err(error) => tracing::warn!(%error, "the storage is not limited"),
            }
        });
        LaterThrottle {
            end: Some(end),
            thread: Some(thread),
        }
    }
}

impl Drop for LaterThrottle {
    fn drop(&mut self) {
        drop(self.end.take());
        // It holds the storage until it has ended.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The folder for the data of servers on storage that is prepared; `None` if the plan has none.
pub fn data_folder(server: &ServerPlan, folder: &Path) -> Option<PathBuf> {
    server.storage.as_ref()?;
    Some(folder.join(FOLDER).join("data"))
}

/// Refuses what [`StorageUnderTest::prepare`] would refuse, and says what it would do.
///
/// # Errors
/// See above.
pub fn check(server: &ServerPlan, folder: &Path, context: Context<'_>) -> Result<(), Error> {
    let Some(setting) = &server.storage else {
        return Ok(());
    };
    let found = storage::check(setting, folder)?;
    let mut sizes = found.iter().map(|block| Bytes(block.bytes >> 20 << 20));
    let devices: Vec<String> = setting
        .devices
        .iter()
        .map(|device| match (device, sizes.next()) {
            (Device::Block(path), Some(size)) => format!("`{path}`, a device of {size}"),
            (Device::Block(path), None) => format!("`{path}`"),
            (Device::Loop(size), _) => format!("a file of {size} behind a loop device"),
        })
        .collect();
    let measuring = match storage::can_measure() {
        true => format!(
            "measures it with `fio`, which takes about {} s",
            MEASURING.as_secs()
        ),
        false => format!("does not measure it, because {NO_FIO}"),
    };
    context.note(format!(
        "storage: makes {} on {}, {measuring}, and takes it away after the servers",
        setting.volume,
        devices.join(" and ")
    ));
    Ok(())
}

/// Why nothing is measured without the program.
const NO_FIO: &str = "`fio` is not installed (package `fio`)";

impl StorageUnderTest {
    /// Prepares what the plan asks for; `None` if it asks for nothing.
    ///
    /// # Errors
    /// What cannot be used, or cannot be made; nothing is left behind.
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
        let measured = measured(setting, &prepared, note, interrupted)?;
        let (limits, not_measured) = match measured {
            Ok(limits) => (Some(limits), None),
            Err(reason) => (None, Some(reason)),
        };
        Ok(Some(StorageUnderTest {
            throttle: None,
            later: None,
            record: PreparedStorageRecord {
                setting: setting.to_string(),
                devices: prepared.member_paths(),
                size_bytes: prepared.bytes(),
                limits,
                not_measured,
            },
            prepared: Arc::new(prepared),
        }))
    }

    /// The folder for the data of the servers.
    pub fn data(&self) -> PathBuf {
        self.prepared.data()
    }

    /// Puts what it is into the record of a machine, which could not show it before it was there.
    pub fn describe(&self, environment: &mut Environment) {
        let seen = dyno_observe::environment::capture(Some(&self.data()));
        environment.data_storage = Some(StorageRecord {
            prepared: Some(self.record.clone()),
            ..seen.data_storage.unwrap_or_default()
        });
    }

    /// Limits the operations of these processes as the plan says, at once or later, until the storage goes away.
    ///
    /// # Errors
    /// The kernel refuses it.
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

    /// Takes it away. The servers must be gone.
    ///
    /// # Errors
    /// What stays as it is.
    pub fn remove(mut self) -> Result<(), Error> {
        self.lift_limit();
        match Arc::into_inner(self.prepared) {
            Some(prepared) => Ok(prepared.remove()?),
            None => Err(Error::new(
                Kind::Internal,
                "the storage is in use by a thread",
            )),
        }
    }
}

/// What the storage can do by itself. That it is not known is no reason not to measure the server.
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
    let measured = match prepared.measure(interrupted) {
        Ok(limits) => Ok(StorageLimitsRecord {
            random_reads_per_s: limits.random_reads_per_s,
            synced_writes_per_s: limits.synced_writes_per_s,
            measured_by: limits.measured_by,
        }),
        Err(StorageError::Interrupted) => return Err(StorageError::Interrupted.into()),
        Err(StorageError::NoProgram { .. }) => Err(NO_FIO.to_owned()),
        Err(error) => Err(format!("{:#}", anyhow::Error::from(error))),
    };
    if let Err(reason) = &measured {
        note(&format!("the storage is not measured: {reason}"));
    }
    known().insert(key, measured.clone());
    Ok(measured)
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
