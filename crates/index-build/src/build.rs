//! One build of the index: caches made cold, the tracer attached, the command, and what everybody did meanwhile.

use crate::figures::{self, Counters};
use crate::layout::Collection;
use crate::server::Server;
use bson::{Document, doc};
use dyno_engine::context::Context;
use dyno_engine::deployment::storage::StorageUnderTest;
use dyno_engine::recording::trace::Recording;
use dyno_engine::{Error, Kind};
use dyno_load::connect::{Control, ControlError};
use dyno_observe::Device;
use dyno_plan::index_build::{IndexBuildPlan, Start};
use dyno_record::index_build::{BuildRecord, IndexBuildCaveat};
use dyno_record::io_trace::document::TraceTarget;
use dyno_record::quantity::Unit;
use dyno_record::statement;
use dyno_record::statement::{Number, Statement};
use dyno_trace::Settings;
use jiff::Timestamp;
use std::path::Path;
use std::time::{Duration, Instant};

/// Counter of a server that tells how often WiredTiger gave a transaction up because the cache was full of its changes.
const ROLLED_BACK: &str =
    "wiredTiger.transaction.oldest pinned transaction ID rolled back for eviction";
/// Name of the index.
pub(crate) const INDEX: &str = "dyno_index_build";
/// Memory for events on their way: random reads come in the tens of thousands per second.
const BUFFER_BYTES: u32 = 32 << 20;
/// Longest wait for events before it is seen whether the build has ended.
const POLL: Duration = Duration::from_millis(20);
/// Longest time for taking back an index that was interrupted.
const TAKE_BACK_LIMIT: Duration = Duration::from_secs(120);
/// A server that reads at least this share of the documents for the index did not have them in its cache.
const READ_FOR_INDEX: f64 = 0.9;
/// Bytes that a server may have read at its start, as a share of the documents, without a word.
const READ_AT_START: f64 = 0.1;

/// What all builds of an experiment have in common.
pub(crate) struct Builder<'a> {
    pub(crate) context: Context<'a>,
    pub(crate) plan: &'a IndexBuildPlan,
    pub(crate) collection: &'a Collection,
    pub(crate) folder: &'a Path,
    /// Size of the documents as BSON.
    pub(crate) documents_bytes: u64,
}

/// A build that came to its end.
pub(crate) struct Built {
    pub(crate) record: BuildRecord,
    pub(crate) caveats: Vec<IndexBuildCaveat>,
}

impl Builder<'_> {
    /// Builds the index under trace, which goes into the folder `name` of the experiment. The index stays.
    pub(crate) fn build(
        &self,
        server: &mut Server<'_>,
        mut storage: Option<&mut StorageUnderTest>,
        name: &str,
    ) -> Result<Built, Error> {
        let mut caveats = Vec::new();
        let mut caveat = |statement: Statement| {
            caveats.push(IndexBuildCaveat {
                statement,
                build: Some(name.to_owned()),
            });
        };
        let is_cold = self.plan.start == Start::Cold;
        let restarted = is_cold && server.can_restart;
        if restarted {
            self.say("restarting the server, with a cold page cache");
            server.stop()?;
            drop_page_cache()?;
        }
        server.open()?;
        let read_at_start = restarted
            .then(|| figures::read_bytes(server.processes()))
            .flatten();
        if is_cold {
            // What the server has read at its start.
            drop_page_cache()?;
        }
        let data = server.data();
        let files = data.as_deref().map(figures::files_of);
        let data_bytes = files.as_deref().map(figures::table_bytes);
        let cached_bytes = files.as_deref().and_then(figures::cached_bytes);
        if is_cold && !restarted {
            caveat(statement!("only-page-cache-cold"));
        }
        let device = data.as_deref().and_then(figures::device_of);
        if let Some(storage) = &mut storage {
            storage.limit(server.processes())?;
        }
        let result = self.traced(server, name, device.as_ref());
        if let Some(storage) = storage {
            storage.lift_limit();
        }
        let (started_at, duration_s, grown) = result.map_err(|failure| server.explain(failure))?;
        let read = grown.process.map(|process| process.read_bytes);
        if let (Some(at_start), Some(read)) = (read_at_start, read)
            && may_have_been_cached(at_start, read, self.documents_bytes)
        {
            let bytes = |bytes: u64| Number::new(bytes as f64, Unit::Bytes);
            caveat(statement!(
                "documents-may-have-been-cached",
                at_start = bytes(at_start),
                for_index = bytes(read),
                documents = bytes(self.documents_bytes)
            ));
        }
        if let Some(times) = grown.server.get(ROLLED_BACK).filter(|times| **times >= 1.0) {
            let times = Number::new(*times, Unit::Exact);
            caveat(statement!("rolled-back-for-room", times = times));
        }
        let record = BuildRecord {
            name: name.to_owned(),
            started_at,
            duration_s,
            server_restarted: restarted,
            page_cache_dropped: is_cold,
            cached_bytes,
            read_at_start_bytes: read_at_start,
            data_bytes,
            process: grown.process,
            device: grown.device,
            server: grown.server,
        };
        Ok(Built { record, caveats })
    }

    fn traced(
        &self,
        server: &Server<'_>,
        name: &str,
        device: Option<&Device>,
    ) -> Result<(String, f64, figures::Grown), Error> {
        self.say(&format!("building the index ({name})"));
        let folder = self.folder.join(name);
        let target = TraceTarget {
            processes: Vec::new(),
            command: None,
            name: Some("index build".to_owned()),
        };
        let settings = Settings {
            ring_bytes: BUFFER_BYTES,
            ..Settings::default()
        };
        let mut asking = server.control()?;
        let mut building = server.control()?;
        building.set_limit(None);
        building.set_cancel_check(self.context.cancel.patience());
        let mut recording = Recording::start(settings, target, None, &folder)?;
        for process in server.processes() {
            recording.follow(*process)?;
        }
        let before = Counters::read(server.processes(), device, &mut asking);
        let started_at = Timestamp::now().to_string();
        let (result, duration, fault) = self.command_under(&mut building, &mut recording);
        let after = Counters::read(server.processes(), device, &mut asking);
        let recorded = recording.stop()?;
        let document = recorded.finish(&server.tables())?;
        for caveat in &document.caveats {
            self.context.doubt(&caveat.statement);
        }
        if let Err(error) = result {
            // The server may go on with it, and a later build would find it there.
            let taken_back = self.take_back(server);
            if self.context.cancel.requested() {
                let failure =
                    Error::new(Kind::Interrupted, "interrupted while the index was built");
                return Err(match taken_back {
                    Ok(()) => failure,
                    Err(_) => failure.with_hint(format!(
                        "the index `{INDEX}` of `{}` may be there: drop it",
                        self.collection.namespace()
                    )),
                });
            }
            return Err(
                Error::from_cause(Kind::Environment, error).context("cannot build the index")
            );
        }
        if let Some(fault) = fault {
            return Err(fault);
        }
        Ok((started_at, duration.as_secs_f64(), before.until(&after)))
    }

    /// Sends the command and takes events until it is answered.
    fn command_under(
        &self,
        control: &mut Control,
        recording: &mut Recording,
    ) -> (Result<Document, ControlError>, Duration, Option<Error>) {
        let command = doc! {
            "createIndexes": &self.collection.name,
            "indexes": [{ "key": keys(self.plan), "name": INDEX }],
        };
        let database = &self.collection.database;
        std::thread::scope(|scope| {
            let builder = scope.spawn(|| {
                let began = Instant::now();
                let result = control.run(database, command);
                (result, began.elapsed())
            });
            let mut fault = None;
            while !builder.is_finished() {
                match recording.poll(POLL) {
                    Ok(()) => {}
                    Err(failure) => {
                        fault.get_or_insert(failure);
                        std::thread::sleep(POLL);
                    }
                }
            }
            let (result, duration) = builder
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (result, duration, fault)
        })
    }

    /// Drops the index, so that the collection is as it was.
    pub(crate) fn take_back(&self, server: &Server<'_>) -> Result<(), Error> {
        let mut control = server.control()?;
        control.set_limit(Some(TAKE_BACK_LIMIT));
        Ok(self.collection.drop_index(&mut control, INDEX)?)
    }

    fn say(&self, text: &str) {
        self.context.note(text);
    }
}

/// The fields of the index as a server takes them.
pub(crate) fn keys(plan: &IndexBuildPlan) -> Document {
    let keys = plan.index_keys().unwrap_or_default();
    keys.into_iter()
        .map(|(name, direction)| (name, direction.into()))
        .collect()
}

/// Before it is known whether it can be done, nothing is loaded.
pub(crate) fn drop_page_cache() -> Result<(), Error> {
    dyno_observe::environment::drop_page_cache().map_err(page_cache_stays)
}

/// The page cache cannot be dropped.
pub(crate) fn page_cache_stays(error: std::io::Error) -> Error {
    Error::from_cause(Kind::Environment, error)
        .context("cannot drop the page cache of this machine")
        .with_hint("run it as root, or build from a warm cache with `--warm`")
}

/// Whether documents that the server read at its start may have been in its cache.
fn may_have_been_cached(at_start: u64, for_index: u64, documents: u64) -> bool {
    let documents = documents as f64;
    at_start as f64 > READ_AT_START * documents && (for_index as f64) < READ_FOR_INDEX * documents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_for_the_index_was_not_in_the_cache() {
        assert!(may_have_been_cached(50, 60, 100));
        assert!(!may_have_been_cached(50, 95, 100));
        assert!(!may_have_been_cached(5, 60, 100));
    }

    #[test]
    fn keys_keep_their_order() {
        let plan = IndexBuildPlan {
            keys: "b:-1,a".into(),
            ..IndexBuildPlan::default()
        };
        assert_eq!(keys(&plan), doc! { "b": -1, "a": 1 });
    }
}
