//! The index-build experiment: documents come into a collection in the order of a layout, an index is built on them under
//! trace, and again after a remedy for their order on the disk.

mod build;
mod figures;
pub mod layout;
mod server;

use crate::build::{Builder, Built, INDEX};
use crate::layout::{Access, Collection, LayoutError, Units};
use crate::server::Server;
use dyno_engine::VERSION;
use dyno_engine::context::Context;
use dyno_engine::deployment::server::ServerPaths;
use dyno_engine::deployment::storage::StorageUnderTest;
use dyno_engine::experiment::folder::ExperimentFolder;
use dyno_engine::observer::{Shared, SharedObserver};
use dyno_engine::run::preflight;
use dyno_engine::standalone::{self, FinishedStandalone, StandaloneOptions};
use dyno_engine::{Cancel, Observer};
use dyno_engine::{Error, Kind};
use dyno_load::connect::Control;
use dyno_plan::Plan;
use dyno_plan::index_build::{IndexBuildPlan, Layout, Remedy, Start};
use dyno_plan::task::Task;
use dyno_record::Document;
use dyno_record::index_build::{
    CollectionFacts, DiskFacts, IndexBuildCaveat, IndexBuildDocument, RemedyRecord, SCHEMA_VERSION,
};
use dyno_record::model::RunStatus;
use dyno_record::server::ExperimentServer;
use dyno_record::statement;
use dyno_trace::LiveKernel;
use jiff::Timestamp;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Data of a server, in the folder of the experiment.
const SERVER_DATA: &str = "server-data";
/// Distance between lines that say how far it is.
const SAY_EVERY: Duration = Duration::from_secs(10);
/// A rename in one transaction needs a cache of this many times the documents.
const CACHE_FOR_NAME: u64 = 4;
/// The cache that the embedded server has if nobody says it.
const DEFAULT_CACHE: u64 = 4 << 30;
/// And at least this one: WiredTiger writes pages out of their order once a twentieth of its cache is changed, and what few
/// documents change is less than that.
const LEAST_CACHE_FOR_NAME: u64 = 2 << 30;

/// Refuses what [`run`] would refuse, as far as that is known before the server runs.
///
/// # Errors
/// What the machine, the server or the folders lack.
pub fn check(
    task: &Task,
    options: &StandaloneOptions,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<(), Error> {
    let observer = Shared::new(observer);
    check_task(task, options, options.context(&observer, cancel))
}

fn check_task(task: &Task, options: &StandaloneOptions, context: Context<'_>) -> Result<(), Error> {
    let embedded = options.embedded_server.as_deref();
    let plan = task.plan.index_build.clone().unwrap_or_default();
    if let Some(refusal) = dyno_trace::possibilities(&LiveKernel::new()).refusal {
        return Err(refusal.into());
    }
    if plan.start == Start::Cold {
        dyno_observe::environment::may_drop_page_cache().map_err(build::page_cache_stays)?;
    }
    let server = Server::new(task, context, embedded, Path::new(SERVER_DATA));
    if task.plan.server.storage.is_some() {
        check_storage(&server)?;
    }
    server.check()?;
    if plan.layout == Layout::Existing && server.is_own() && !server.has_data() {
        let text = "`existing` works on documents that are there, and a new server has none";
        return Err(Error::new(Kind::BadInput, text).with_hint(
            "name the server with `--uri`, or its data with `--data-dir`, and `--collection`; or take a layout that loads documents",
        ));
    }
    preflight::servers(task, embedded, context)?;
    check_folders(&task.plan, options.out.as_deref())
}

/// The folder of the experiment is tidied up at the end, and data that is kept must not be in it.
fn check_folders(plan: &Plan, out: Option<&Path>) -> Result<(), Error> {
    let Some(out) = out else { return Ok(()) };
    ExperimentFolder::check(out)?;
    let Some(data) = &plan.server.data_dir else {
        return Ok(());
    };
    let out = std::path::absolute(out).unwrap_or_else(|_| out.to_owned());
    if !Path::new(data).starts_with(&out) {
        return Ok(());
    }
    let text = format!("the data folder `{data}` is inside the folder of the experiment");
    Err(Error::new(Kind::BadInput, text).with_hint("choose another `--out`"))
}

/// Does what the plan says: loads documents, builds the index under trace, and again after a remedy.
///
/// # Errors
/// No index was built, and nothing is left behind.
pub fn run(
    task: &Task,
    options: &StandaloneOptions,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<FinishedStandalone, Error> {
    let observer = Shared::new(observer);
    let context = options.context(&observer, cancel);
    // Before documents are loaded for minutes.
    check_task(task, options, context)?;
    let name = format!("index-build-{}", task.plan.name);
    let folder = ExperimentFolder::create(options.out.as_deref(), &name, Timestamp::now())?;
    folder.save_plan("plan.toml", task)?;
    let path = folder.path().to_owned();
    let fault = perform(task, context, options.embedded_server.as_deref(), folder)?;
    Ok(FinishedStandalone {
        folder: path,
        fault,
    })
}

/// Storage is prepared once, and stays while the server is restarted.
fn check_storage(server: &Server<'_>) -> Result<(), Error> {
    if server.can_restart && server.data().is_none() {
        return Ok(());
    }
    let text = "an index build prepares storage for one server that is started for it";
    Err(Error::new(Kind::BadInput, text).with_hint("leave out `--storage` or `--topology`"))
}

/// Does what the plan says, in this folder, which is discarded with an error if no index was built. Gives what ended it
/// early after that, if something did.
fn perform(
    task: &Task,
    context: Context<'_>,
    embedded: Option<&Path>,
    folder: ExperimentFolder,
) -> Result<Option<Error>, Error> {
    let plan = task.plan.index_build.clone().unwrap_or_default();
    let path = folder.path().to_owned();
    let mut experiment = Experiment {
        task,
        context,
        server: Server::new(task, context, embedded, &path),
        collection: Collection::new(&*task.plan.data.database, &*task.plan.data.collection),
        document: empty(&task.plan),
        path: &path,
        plan: &plan,
        storage: None,
        owns_data: false,
        must_remove_index: false,
    };
    let result = experiment.run();
    let ended = experiment.end();
    if experiment.owns_data {
        let _ = std::fs::remove_dir_all(path.join(SERVER_DATA));
    }
    let failure = result.and(ended).err();
    let Experiment {
        mut document,
        storage,
        ..
    } = experiment;
    let removed = storage.map_or(Ok(()), StorageUnderTest::remove);
    let failure = failure.or(removed.err());
    if document.builds.is_empty()
        && let Some(failure) = failure
    {
        let _ = std::fs::remove_dir_all(path.join("before"));
        folder.discard();
        return Err(failure);
    }
    (document.status, document.status_reason) = standalone::status(failure.as_ref());
    document.write(&path)?;
    folder.finish();
    Ok(failure)
}

/// One experiment under way.
struct Experiment<'a> {
    task: &'a Task,
    context: Context<'a>,
    server: Server<'a>,
    collection: Collection,
    document: IndexBuildDocument,
    path: &'a Path,
    plan: &'a IndexBuildPlan,
    /// Goes away after the server.
    storage: Option<StorageUnderTest>,
    /// Whether the data is in a folder of the experiment, which goes away with it.
    owns_data: bool,
    /// Whether an index of ours is in a collection that is kept.
    must_remove_index: bool,
}

impl Experiment<'_> {
    fn run(&mut self) -> Result<(), Error> {
        self.prepare()?;
        self.load()?;
        self.build("before")?;
        let Some(remedy) = self.plan.remedy else {
            return Ok(());
        };
        self.remedy(remedy)?;
        self.build("after")
    }

    /// Makes sure of what can be known before the work begins, and brings the server up.
    fn prepare(&mut self) -> Result<(), Error> {
        if self.plan.start == Start::Cold {
            build::drop_page_cache()?;
        }
        if self.task.plan.server.storage.is_some() {
            self.prepare_storage()?;
        } else if self.server.can_restart && self.server.data().is_none() {
            self.server.set_data(&self.path.join(SERVER_DATA));
            self.owns_data = true;
        }
        self.say("starting the server");
        self.server.open()?;
        self.document.server = self.server.describe()?;
        self.document.environment = Some(self.server.environment()?);
        self.document.disk = self.server.data().map(|data| DiskFacts {
            device: figures::device_of(&data).map_or(String::new(), |device| device.name),
            file_system: file_system_of(&data),
            made: self.storage.is_some(),
            iops: self
                .task
                .plan
                .server
                .storage
                .as_ref()
                .and_then(|storage| Some(storage.limit?.per_s)),
        });
        if let (Some(storage), Some(environment)) = (&self.storage, &mut self.document.environment)
        {
            storage.describe(environment);
        }
        Ok(())
    }

    fn prepare_storage(&mut self) -> Result<(), Error> {
        let context = self.context;
        let paths = ServerPaths {
            environment: context.environment,
            embedded: None,
            folder: self.path,
        };
        let interrupted = || context.cancel.requested();
        let note = |text: &str| context.note(text);
        let server = &self.task.plan.server;
        self.storage = StorageUnderTest::prepare(server, &paths, &note, &interrupted)?;
        if let Some(storage) = &self.storage {
            self.server.set_data(&storage.data());
        }
        Ok(())
    }

    fn load(&mut self) -> Result<(), Error> {
        let mut control = self.server.control()?;
        if self.plan.remedy.is_some() {
            // Before documents are loaded and an index is built for nothing.
            crate::layout::check_place(&mut control, &self.collection)?;
        }
        match self.plan.layout {
            Layout::Existing => self.check_existing(&mut control)?,
            _ if !self.server.is_own() => self.say(&format!(
                "the documents are loaded into `{}` of this server, and stay there",
                self.collection.namespace()
            )),
            _ => {}
        }
        let units = Units::new(
            self.task.plan.client.seed,
            self.plan.shortest_string,
            self.plan.longest_string,
        );
        let began = Instant::now();
        let layout = self.plan.layout;
        let records = self.task.plan.data.records;
        let collection = &self.collection;
        let loaded = self.with_access(|access| {
            crate::layout::load(access, collection, layout, units, records)?;
            let load_s = (layout != Layout::Existing).then(|| began.elapsed().as_secs_f64());
            let contents = crate::layout::contents(access, collection, "reading what is there")?;
            Ok((load_s, contents))
        });
        let (load_s, contents) = loaded.map_err(|error| self.failed(error))?;
        if contents.documents == 0 {
            let text = format!("`{}` has no documents", self.collection.namespace());
            return Err(Error::new(Kind::BadInput, text));
        }
        self.document.collection = CollectionFacts {
            namespace: self.collection.namespace(),
            documents: contents.documents,
            bytes: contents.bytes,
            content_hash: contents.hash.to_string(),
            load_s,
        };
        Ok(())
    }

    fn check_existing(&self, control: &mut Control) -> Result<(), Error> {
        let shape = match self.plan.remedy {
            // Before an index was built for nothing.
            Some(_) => crate::layout::check(control, &self.collection)?,
            None => self.collection.shape(control)?.ok_or_else(|| {
                Error::from(LayoutError::Missing {
                    namespace: self.collection.namespace(),
                })
            })?,
        };
        let is_ours =
            |index: &bson::Document| index.get_str("name").is_ok_and(|name| name == INDEX);
        if shape.indexes.iter().any(is_ours) {
            let text = format!(
                "`{}` has the index `{INDEX}` of an index build that was killed",
                self.collection.namespace()
            );
            let hint = format!(
                "drop it: `db.getCollection(\"{}\").dropIndex(\"{INDEX}\")`",
                self.collection.name
            );
            return Err(Error::new(Kind::BadInput, text).with_hint(hint));
        }
        let keys = build::keys(self.plan);
        let is_there = |index: &&bson::Document| {
            let found = index.get_document("key");
            found.is_ok_and(|found| same_keys(found, &keys))
        };
        let Some(found) = shape.indexes.iter().find(is_there) else {
            return Ok(());
        };
        let name = found.get_str("name").unwrap_or_default();
        let text = format!(
            "`{}` already has an index on these fields: `{name}`",
            self.collection.namespace()
        );
        Err(Error::new(Kind::BadInput, text).with_hint("choose other fields with `--keys`"))
    }

    /// Builds the index, and takes it away again: what follows finds the collection without it.
    fn build(&mut self, name: &str) -> Result<(), Error> {
        let builder = Builder {
            context: self.context,
            plan: self.plan,
            collection: &self.collection,
            folder: self.path,
            documents_bytes: self.document.collection.bytes,
        };
        self.must_remove_index = true;
        let Built { record, caveats } =
            builder.build(&mut self.server, self.storage.as_mut(), name)?;
        builder.take_back(&self.server)?;
        self.must_remove_index = false;
        self.document.builds.push(record);
        self.document.caveats.extend(caveats);
        // A process that is killed leaves what is known.
        self.document.write(self.path)?;
        Ok(())
    }

    fn remedy(&mut self, remedy: Remedy) -> Result<(), Error> {
        let kind = remedy.as_str().to_owned();
        let documents = &self.document.collection;
        let mut cache_bytes = None;
        if self.server.copies_for_a_name() && remedy != Remedy::Compact {
            let needed = (documents.bytes * CACHE_FOR_NAME).max(LEAST_CACHE_FOR_NAME);
            if self.server.cache().unwrap_or(DEFAULT_CACHE) < needed {
                cache_bytes = Some(needed);
                self.say("restarting the server with a larger cache: it copies a collection that gets another name in one transaction");
                self.server.restart(cache_bytes)?;
            }
        }
        self.say(&format!("remedy: {kind}"));
        let began = Instant::now();
        let applied = self.with_access(|access| {
            crate::layout::apply(access, &self.collection, remedy, self.path)
        });
        let applied = applied.map_err(|error| self.failed(error))?;
        self.document.remedy = Some(RemedyRecord {
            kind,
            duration_s: began.elapsed().as_secs_f64(),
            documents: (applied.before.documents, applied.after.documents),
            content_hash: (
                applied.before.hash.to_string(),
                applied.after.hash.to_string(),
            ),
            cache_bytes,
        });
        if cache_bytes.is_some() && self.plan.start == Start::Warm {
            self.server.restart(None)?;
            self.document.caveats.push(IndexBuildCaveat {
                statement: statement!("restarted-after-remedy"),
                build: Some("after".into()),
            });
        }
        let first = &self.document.collection;
        let before = (first.documents, first.content_hash.as_str());
        let hash = applied.before.hash.to_string();
        if before != (applied.before.documents, hash.as_str()) {
            self.document.caveats.push(IndexBuildCaveat {
                statement: statement!("changed-by-others"),
                build: None,
            });
        }
        self.document.write(self.path)?;
        Ok(())
    }

    /// Does something with the documents; how far it is is said now and then.
    fn with_access<T>(
        &self,
        work: impl FnOnce(&Access<'_>) -> Result<T, LayoutError>,
    ) -> Result<T, LayoutError> {
        let (connect, patient) = (self.server.connector(), self.server.patient());
        let notes = ProgressNotes::new(self.context.observer);
        let interrupted = || self.context.cancel.requested();
        work(&Access {
            connect: &connect,
            patient: &patient,
            interrupted: &interrupted,
            progress: &|what, done, all| notes.progress(what, done, all),
        })
    }

    /// Why a layout or a remedy failed. A command that a cancellation broke off failed for that reason alone.
    fn failed(&mut self, error: LayoutError) -> Error {
        let is_broken_off = matches!(error, LayoutError::Command { .. } | LayoutError::Connect(_));
        if is_broken_off && self.context.cancel.requested() {
            return LayoutError::Interrupted.into();
        }
        self.server.explain(error.into())
    }

    /// Leaves a collection that is kept without the index, and the machine without the server.
    fn end(&mut self) -> Result<(), Error> {
        let is_kept = !self.server.is_own() || self.task.plan.server.data_dir.is_some();
        let mut result = Ok(());
        if self.must_remove_index && is_kept && self.server.is_open() {
            let taken = self
                .server
                .control()
                .and_then(|mut control| Ok(self.collection.drop_index(&mut control, INDEX)?));
            result = taken.map_err(|failure| {
                failure.context(format!("the index `{INDEX}` may be left behind"))
            });
        }
        let stopped = self.server.stop();
        result.and(stopped)
    }

    fn say(&self, text: &str) {
        self.context.note(text);
    }
}

/// The same fields in the same order and direction, whatever type of number the directions have.
fn same_keys(one: &bson::Document, other: &bson::Document) -> bool {
    let plain = |document: &bson::Document| -> Vec<(String, Option<f64>)> {
        let number = |value: &bson::Bson| match value {
            bson::Bson::Int32(number) => Some(f64::from(*number)),
            bson::Bson::Int64(number) => Some(*number as f64),
            bson::Bson::Double(number) => Some(*number),
            _ => None,
        };
        let pairs = document.iter();
        pairs
            .map(|(name, value)| (name.clone(), number(value)))
            .collect()
    };
    plain(one) == plain(other)
}

fn file_system_of(folder: &Path) -> String {
    use nix::sys::statfs;
    /// Known to glibc only.
    const XFS_SUPER_MAGIC: statfs::FsType = statfs::FsType(0x5846_5342);
    let name = match statfs::statfs(folder).map(|found| found.filesystem_type()) {
        Ok(statfs::EXT4_SUPER_MAGIC) => "ext4",
        Ok(XFS_SUPER_MAGIC) => "xfs",
        Ok(statfs::BTRFS_SUPER_MAGIC) => "btrfs",
        Ok(statfs::TMPFS_MAGIC) => "tmpfs",
        Ok(statfs::OVERLAYFS_SUPER_MAGIC) => "overlay",
        _ => "",
    };
    name.to_owned()
}

/// A document of an experiment that has just begun.
fn empty(plan: &Plan) -> IndexBuildDocument {
    IndexBuildDocument {
        schema_version: SCHEMA_VERSION,
        dyno_version: VERSION.to_owned(),
        started_at: Timestamp::now().to_string(),
        status: RunStatus::Running,
        status_reason: None,
        name: plan.name.clone(),
        plan: dyno_plan::file::recorded(plan),
        server: ExperimentServer::default(),
        collection: CollectionFacts::default(),
        environment: None,
        disk: None,
        builds: Vec::new(),
        remedy: None,
        caveats: Vec::new(),
    }
}

/// Says how far something is, now and then.
struct ProgressNotes<'a> {
    observer: &'a dyn SharedObserver,
    said: Mutex<Instant>,
}

impl<'a> ProgressNotes<'a> {
    fn new(observer: &'a dyn SharedObserver) -> Self {
        ProgressNotes {
            observer,
            said: Mutex::new(Instant::now()),
        }
    }

    fn progress(&self, what: &str, done: u64, all: u64) {
        let Ok(mut said) = self.said.lock() else {
            return;
        };
        if said.elapsed() >= SAY_EVERY {
            *said = Instant::now();
            self.observer
                .note(&format!("{what}: {done} of {all} documents"));
        }
    }
}

impl From<LayoutError> for Error {
    fn from(error: LayoutError) -> Self {
        let hint = error.hint();
        let kind = match &error {
            LayoutError::Interrupted => Kind::Interrupted,
            LayoutError::NotIdentical(_) => Kind::CheckFailed,
            LayoutError::Missing { .. }
            | LayoutError::NotOrdinary { .. }
            | LayoutError::NotEmpty { .. }
            | LayoutError::Routed { .. }
            | LayoutError::CopyExists { .. } => Kind::BadInput,
            _ => Kind::Environment,
        };
        let failure = match error {
            LayoutError::Connect(source) => {
                Error::from(*source).context("cannot connect to the server")
            }
            other => Error::from_cause(kind, other),
        };
        failure.with_optional_hint(hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn an_index_is_the_same_whatever_type_its_directions_have() {
        assert!(same_keys(
            &doc! { "a": 1, "b": -1 },
            &doc! { "a": 1.0, "b": -1_i64 }
        ));
        assert!(!same_keys(
            &doc! { "a": 1, "b": -1 },
            &doc! { "b": -1, "a": 1 }
        ));
        assert!(!same_keys(&doc! { "a": 1 }, &doc! { "a": "hashed" }));
        assert!(!same_keys(&doc! { "a": 1 }, &doc! { "a": -1 }));
    }

    #[test]
    fn what_is_wrong_with_a_collection_is_bad_input() {
        let missing = LayoutError::Missing {
            namespace: "a.b".into(),
        };
        let failure = Error::from(missing);
        assert_eq!(failure.kind, Kind::BadInput);
        assert!(failure.hint.is_some());
        assert_eq!(
            Error::from(LayoutError::Interrupted).kind,
            Kind::Interrupted
        );
    }
}
