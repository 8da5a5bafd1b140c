//! One build of the index on all servers in parallel: cold caches, tracer, command, and the activity of processes, devices and
//! servers.

use crate::figures::{self, Counters, Grown};
use crate::layout::{Collection, Held};
use crate::servers::{Servers, control};
use bson::{Document, doc};
use dyno_engine::context::Context;
use dyno_engine::deployment::DataMember;
use dyno_engine::recording::trace::Recording;
use dyno_engine::run::consumption::WorkMeter;
use dyno_engine::{Error, Kind};
use dyno_load::connect::{CancelCheck, Control, ControlError};
use dyno_observe::Device;
use dyno_observe::consumption::ConsumptionSubject;
use dyno_plan::index_build::{IndexBuildPlan, Start};
use dyno_record::consumption::{Consumption, Counted, Unknown};
use dyno_record::index_build::{BuildRecord, IndexBuildCaveat, IoFigures, MemberBuild};
use dyno_record::io_trace::document::TraceTarget;
use dyno_record::quantity::Unit;
use dyno_record::statement;
use dyno_record::statement::{Number, Statement};
use dyno_trace::Settings;
use jiff::Timestamp;
use std::iter;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Server counter: transactions that WiredTiger rolled back because the cache was full of their changes.
const ROLLED_BACK: &str =
    "wiredTiger.transaction.oldest pinned transaction ID rolled back for eviction";
/// Name of the index.
pub(crate) const INDEX: &str = "dyno_index_build";
/// Buffer for events: tens of thousands of random reads per second.
const BUFFER_BYTES: u32 = 32 << 20;
/// Longest wait for events before checking whether the build has ended.
const POLL: Duration = Duration::from_millis(20);
/// Longest time to drop the index of an interrupted build.
const TAKE_BACK_LIMIT: Duration = Duration::from_secs(120);
/// A server that reads at least this share of the documents for the index did not have them in its cache.
const READ_FOR_INDEX: f64 = 0.9;
/// Share of the documents that a server may read at its start without a caveat.
const READ_AT_START: f64 = 0.1;

/// Common parts of all builds of an experiment.
pub(crate) struct Builder<'a> {
    pub(crate) context: Context<'a>,
    pub(crate) plan: &'a IndexBuildPlan,
    pub(crate) collection: &'a Collection,
    pub(crate) folder: &'a Path,
}

/// A completed build.
pub(crate) struct Built {
    pub(crate) record: BuildRecord,
    pub(crate) caveats: Vec<IndexBuildCaveat>,
}

/// State of a server's caches when a build began.
struct StartingPoint {
    read_at_start: Option<u64>,
    data_bytes: Option<u64>,
    cached_bytes: Option<u64>,
    device: Option<Device>,
}

/// Measurements of one server.
struct Measured {
    duration: Duration,
    grown: Grown,
}

/// Measurements of all servers.
struct MeasuredBuild {
    started_at: String,
    members: Vec<Measured>,
    consumption: Option<Consumption>,
}

/// A completed command, and its duration from the common start.
type Ended = (Result<Document, ControlError>, Duration);

impl Builder<'_> {
    /// Builds the index on all servers in parallel; if `traced`, with a trace in the experiment's folder `name`. The index stays.
    /// `held` is the amount of data of each server.
    pub(crate) fn build(
        &self,
        servers: &mut Servers<'_>,
        held: &[Held],
        name: &str,
        traced: bool,
    ) -> Result<Built, Error> {
        let is_cold = self.plan.start == Start::Cold;
        let restarted = is_cold && servers.is_own();
        let starts = self.make_cold(servers, restarted)?;
        servers.limit()?;
        let devices: Vec<Option<&Device>> = counted_devices(&starts);
        let meter = self.meter(servers);
        let result = self.measure(servers, &devices, (name, traced), &meter);
        servers.lift_limit();
        let MeasuredBuild { started_at, members: measured, consumption } =
            result.map_err(|failure| servers.explain(failure))?;
        let members = servers.members();
        let held = members.iter().zip(held);
        let caveats = self.caveats(held, &starts, &measured, restarted);
        let caveats = caveats
            .into_iter()
            .map(|statement| IndexBuildCaveat { statement, build: Some(name.to_owned()) });
        let (process, device) = io_of_all(&measured, &devices);
        let all = |of: fn(&StartingPoint) -> Option<u64>| starts.iter().map(of).sum();
        let longest = measured.iter().map(|one| one.duration).max();
        let record = BuildRecord {
            name: name.to_owned(),
            configuration: None,
            started_at,
            duration_s: longest.unwrap_or_default().as_secs_f64(),
            server_restarted: restarted,
            page_cache_dropped: is_cold,
            cached_bytes: all(|start| start.cached_bytes),
            read_at_start_bytes: all(|start| start.read_at_start),
            data_bytes: all(|start| start.data_bytes),
            process,
            device,
            consumption,
            server: figures::sum_of_counters(measured.iter().map(|one| &one.grown.server)),
            members: of_members(members, &measured, &devices),
            tracing: Vec::new(),
        };
        Ok(Built { record, caveats: caveats.collect() })
    }

    /// Restarts the servers between two drops of the page cache, if planned, and measures the state of the caches.
    fn make_cold(
        &self,
        servers: &mut Servers<'_>,
        restarted: bool,
    ) -> Result<Vec<StartingPoint>, Error> {
        if restarted {
            self.say(match servers.members().len() {
                1 => "restarting the server with a cold page cache",
                _ => "restarting the servers with a cold page cache",
            });
            servers.restart(None, drop_page_cache)?;
        }
        let members = servers.members();
        let read_at_start = |member: &DataMember| {
            let read = restarted.then(|| figures::process_io(member.process)).flatten();
            read.map(|figures| figures.read_bytes)
        };
        let read_at_start: Vec<Option<u64>> = members.iter().map(read_at_start).collect();
        if self.plan.start == Start::Cold {
            // Drop what the server has read at its start.
            drop_page_cache()?;
        }
        let starts = members.iter().zip(read_at_start);
        let starts = starts.map(|(member, read_at_start)| {
            let data = &member.data;
            let files = data.as_deref().map(figures::files_of);
            StartingPoint {
                read_at_start,
                data_bytes: files.as_deref().map(figures::table_bytes),
                cached_bytes: files.as_deref().and_then(figures::cached_bytes),
                device: data.as_deref().and_then(figures::device_of),
            }
        });
        Ok(starts.collect())
    }

    /// Caveats about the duration.
    fn caveats<'m>(
        &self,
        members: impl ExactSizeIterator<Item = (&'m DataMember, &'m Held)>,
        starts: &[StartingPoint],
        measured: &[Measured],
        restarted: bool,
    ) -> Vec<Statement> {
        let mut caveats = Vec::new();
        if self.plan.start == Start::Cold && !restarted {
            caveats.push(statement!("only-page-cache-cold"));
        }
        let are_several = members.len() > 1;
        for (((member, held), start), measured) in members.zip(starts).zip(measured) {
            let name = are_several.then_some(&member.name);
            let read = measured.grown.process.map(|process| process.read_bytes);
            let documents = held.bytes;
            if let (Some(at_start), Some(read)) = (start.read_at_start, read)
                && may_have_been_cached(at_start, read, documents)
            {
                let bytes = |bytes: u64| Number::new(bytes as f64, Unit::Bytes);
                caveats.push(statement!(
                    "documents-may-have-been-cached",
                    member = name,
                    at_start = bytes(at_start),
                    for_index = bytes(read),
                    documents = bytes(documents)
                ));
            }
            let rolled_back = measured.grown.server.get(ROLLED_BACK);
            if let Some(times) = rolled_back.filter(|times| **times >= 1.0) {
                let times = Number::new(*times, Unit::Exact);
                caveats.push(statement!("rolled-back-for-room", member = name, times = times));
            }
        }
        caveats
    }

    fn measure(
        &self,
        servers: &mut Servers<'_>,
        devices: &[Option<&Device>],
        (name, traced): (&str, bool),
        meter: &WorkMeter<'_>,
    ) -> Result<MeasuredBuild, Error> {
        let how = if traced { "" } else { ", without a trace" };
        self.say(&format!("building the index ({name}{how})"));
        let asking = servers.connectors();
        let asking = asking.iter().map(control);
        let mut asking = asking.collect::<Result<Vec<Control>, Error>>()?;
        let mut building = servers.controls()?;
        let recording = traced.then(|| self.record(servers, &self.folder.join(name)));
        let mut recording = recording.transpose()?;
        let counters = |asking: &mut [Control]| -> Vec<Counters> {
            servers
                .members()
                .iter()
                .zip(devices)
                .zip(asking)
                .map(|((member, device), control)| Counters::read(member.process, *device, control))
                .collect()
        };
        let before = counters(&mut asking);
        let started_at = Timestamp::now().to_string();
        let started = meter.start(Instant::now());
        let (ended, fault) = self.command_on_all(&mut building, recording.as_mut());
        let metered = started.end();
        let after = counters(&mut asking);
        // Later writes of the servers do not belong to the build.
        let recorded = recording.map(Recording::stop).transpose()?;
        servers.lift_limit();
        // Before the trace is written, which may go to the same disk.
        let has_failed = ended.iter().any(|(result, _)| result.is_err());
        let consumption = match has_failed {
            true => None,
            false => meter.finish(metered).map(without_network),
        };
        if let Some(recorded) = recorded {
            let document = recorded.finish(&servers.tables())?;
            for caveat in &document.caveats {
                self.context.caveat(&caveat.statement);
            }
        }
        let (durations, failure) = first_failure(ended);
        if let Some((error, client)) = failure {
            return Err(self.failed(servers, error, client));
        }
        if let Some(fault) = fault {
            return Err(fault);
        }
        // One client may serve all servers.
        let last = durations.last().copied().unwrap_or_default();
        let durations = durations.into_iter().chain(iter::repeat(last));
        let grown = before.iter().zip(&after).zip(durations);
        let measured = grown
            .map(|((before, after), duration)| Measured { duration, grown: before.until(after) });
        Ok(MeasuredBuild { started_at, members: measured.collect(), consumption })
    }

    /// Measures the servers' resource use. Started servers flush pending writes to their files first.
    fn meter(&self, servers: &Servers<'_>) -> WorkMeter<'_> {
        let subject = ConsumptionSubject {
            processes: Ok(servers.processes()),
            data_folders: Ok(servers.data_folders()),
            is_local: true,
        };
        let writes_back = servers.is_own();
        WorkMeter::new(subject, servers.connectors(), writes_back, self.context.cancel)
    }

    /// Starts tracing the servers.
    fn record(&self, servers: &Servers<'_>, folder: &Path) -> Result<Recording, Error> {
        let target = TraceTarget {
            processes: Vec::new(),
            command: None,
            name: Some("index build".to_owned()),
        };
        let settings = Settings { ring_bytes: BUFFER_BYTES, ..Settings::default() };
        let mut recording = Recording::start(settings, target, None, folder)?;
        for process in servers.processes() {
            recording.follow(process)?;
        }
        Ok(recording)
    }

    /// Drops the index, and returns the error.
    fn failed(&self, servers: &Servers<'_>, error: ControlError, client: usize) -> Error {
        // The server may continue, and a later build would find the index.
        let taken_back = take_back(servers, self.collection);
        if !self.context.cancel.requested() {
            let on = servers.dealt(client).map_or(String::new(), |name| format!(" on `{name}`"));
            return Error::from_cause(Kind::Environment, error)
                .context(format!("cannot build the index{on}"));
        }
        let failure = Error::new(Kind::Interrupted, "interrupted while the index was built");
        match taken_back {
            Ok(()) => failure,
            Err(_) => failure.with_hint(format!(
                "the index `{INDEX}` of `{}` may remain: drop it",
                self.collection.namespace()
            )),
        }
    }

    /// Sends all clients' commands at once, and receives events until each has its answer. The first failure ends the others.
    fn command_on_all(
        &self,
        controls: &mut [Control],
        recording: Option<&mut Recording>,
    ) -> (Vec<Ended>, Option<Error>) {
        let command = doc! {
            "createIndexes": &self.collection.name,
            "indexes": [{ "key": keys(self.plan), "name": INDEX }],
        };
        let database = self.collection.database.as_str();
        let has_failed = Arc::new(AtomicBool::new(false));
        for control in &mut *controls {
            let (cancel, has_failed) = (self.context.cancel.clone(), Arc::clone(&has_failed));
            control.set_limit(None);
            control.set_cancel_check(CancelCheck::new(move || {
                cancel.requested() || has_failed.load(Ordering::Relaxed)
            }));
        }
        let began = Instant::now();
        std::thread::scope(|scope| {
            let builders: Vec<_> = controls
                .iter_mut()
                .map(|control| {
                    let (command, has_failed) = (command.clone(), &has_failed);
                    scope.spawn(move || {
                        let result = control.run(database, command);
                        let duration = began.elapsed();
                        has_failed.fetch_or(result.is_err(), Ordering::Relaxed);
                        (result, duration)
                    })
                })
                .collect();
            let mut fault = None;
            if let Some(recording) = recording {
                while builders.iter().any(|builder| !builder.is_finished()) {
                    if let Err(failure) = recording.poll(POLL) {
                        fault.get_or_insert(failure);
                        std::thread::sleep(POLL);
                    }
                }
            }
            let ended = builders.into_iter().map(|builder| {
                builder.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            (ended.collect(), fault)
        })
    }

    fn say(&self, text: &str) {
        self.context.note(text);
    }
}

/// Drops the index for all clients.
pub(crate) fn take_back(servers: &Servers<'_>, collection: &Collection) -> Result<(), Error> {
    let take_back = |client: usize| -> Result<(), Error> {
        let mut control = servers.control(client)?;
        control.set_limit(Some(TAKE_BACK_LIMIT));
        Ok(collection.drop_index(&mut control, INDEX)?)
    };
    let clients = 0..servers.shares().len();
    clients.map(take_back).fold(Ok(()), Result::and)
}

/// Duration for each client, and the first failure; the others are ended after it.
fn first_failure(ended: Vec<Ended>) -> (Vec<Duration>, Option<(ControlError, usize)>) {
    let durations = ended.iter().map(|(_, duration)| *duration).collect();
    let failed = ended.into_iter().enumerate();
    let failed = failed.filter_map(|(client, (result, duration))| {
        let error = result.err()?;
        Some((duration, error, client))
    });
    let first = failed.min_by_key(|(duration, ..)| *duration);
    (durations, first.map(|(_, error, client)| (error, client)))
}

/// Device of each server; if they share one, only for the first, because its counters cover all.
fn counted_devices(starts: &[StartingPoint]) -> Vec<Option<&Device>> {
    let devices: Vec<Option<&Device>> = starts.iter().map(|start| start.device.as_ref()).collect();
    let name = |device: &Option<&Device>| device.map(|device| device.name.clone());
    let mut seen = Vec::new();
    let first = devices.into_iter().map(|device| {
        let is_new = !seen.contains(&name(&device));
        seen.push(name(&device));
        device.filter(|_| is_new)
    });
    first.collect()
}

/// Activity of the processes and devices of all servers, each device counted once.
fn io_of_all(
    measured: &[Measured],
    devices: &[Option<&Device>],
) -> (Option<IoFigures>, Option<IoFigures>) {
    let counted = measured.iter().zip(devices);
    let counted = counted.filter(|(_, device)| device.is_some());
    (
        figures::sum(measured.iter().map(|one| one.grown.process)),
        figures::sum(counted.map(|(one, _)| one.grown.device)),
    )
}

/// The build on each of several servers. A shared device is recorded with the build.
fn of_members(
    members: &[DataMember],
    measured: &[Measured],
    devices: &[Option<&Device>],
) -> Vec<MemberBuild> {
    if members.len() == 1 {
        return Vec::new();
    }
    let have_own = devices.iter().all(Option::is_some);
    let of_members = members.iter().zip(measured);
    let of_members = of_members.map(|(member, one)| MemberBuild {
        name: member.name.clone(),
        duration_s: one.duration.as_secs_f64(),
        process: one.grown.process,
        device: one.grown.device.filter(|_| have_own),
    });
    of_members.collect()
}

/// Removes network figures: traffic during a build is not caused by the index.
fn without_network(used: Consumption) -> Consumption {
    let mut unknown: Vec<Unknown> =
        used.unknown.into_iter().filter(|one| one.what != Counted::Network).collect();
    unknown.push(Unknown {
        what: Counted::Network,
        reason: "a server builds an index by itself: its connections carry only the command and queries about it"
            .to_owned(),
    });
    Consumption { network: None, unknown, ..used }
}

/// The key pattern of the index.
pub(crate) fn keys(plan: &IndexBuildPlan) -> Document {
    let keys = plan.index_keys().unwrap_or_default();
    keys.into_iter().map(|(name, direction)| (name, direction.into())).collect()
}

/// Drops the page cache; also called before loading, to fail early.
pub(crate) fn drop_page_cache() -> Result<(), Error> {
    dyno_observe::environment::drop_page_cache().map_err(page_cache_stays)
}

/// Error that the page cache cannot be dropped.
pub(crate) fn page_cache_stays(error: std::io::Error) -> Error {
    Error::from_cause(Kind::Environment, error)
        .context("cannot drop the page cache of this machine")
        .with_hint("run as root, or build from a warm cache with `--warm`")
}

/// Whether documents that the server read at its start may have been cached.
fn may_have_been_cached(at_start: u64, for_index: u64, documents: u64) -> bool {
    let documents = documents as f64;
    at_start as f64 > READ_AT_START * documents && (for_index as f64) < READ_FOR_INDEX * documents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_may_be_cached_when_few_were_read_for_the_index() {
        assert!(may_have_been_cached(50, 60, 100));
        assert!(!may_have_been_cached(50, 95, 100));
        assert!(!may_have_been_cached(5, 60, 100));
    }

    #[test]
    fn keys_keep_their_order() {
        let plan = IndexBuildPlan { keys: "b:-1,a".into(), ..IndexBuildPlan::default() };
        assert_eq!(keys(&plan), doc! { "b": -1, "a": 1 });
    }
}
