//! One topology of an index build, from loading its documents to the last build.

use crate::build::{self, Builder, Built, INDEX};
use crate::existing;
use crate::figures;
use crate::layout::{Access, Applied, Collection, Contents, Held, LayoutError, Load, Share, Units};
use crate::progress::ProgressNotes;
use crate::servers::{Servers, control};
use dyno_engine::context::Context;
use dyno_engine::{Error, Kind};
use dyno_observe::environment::storage_of;
use dyno_plan::index_build::{IndexBuildPlan, Layout, Remedy, Start};
use dyno_plan::task::Task;
use dyno_plan::topology::Topology;
use dyno_record::Document;
use dyno_record::index_build::{
    CollectionFacts, ConfigurationRecord, DiskFacts, IndexBuildCaveat, IndexBuildDocument,
    MemberFacts, RemedyRecord, TracingPair,
};
use dyno_record::statement;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A rename in one transaction needs a cache of this many times the documents.
const CACHE_FOR_NAME: u64 = 4;
/// Default cache of the embedded server.
const DEFAULT_CACHE: u64 = 4 << 30;
/// Smallest cache for a rename: WiredTiger evicts dirty pages once a twentieth of its cache has changed, and a few documents stay
/// below that.
const LEAST_CACHE_FOR_NAME: u64 = 2 << 30;
/// Folder of the servers if there are several configurations.
pub(crate) const SERVERS: &str = "servers";
/// Folder of a trace that only measures the cost of tracing.
const TRACE_OF_COST: &str = "trace-of-cost";

/// One topology of an index build.
pub(crate) struct Configuration<'a> {
    task: &'a Task,
    context: Context<'a>,
    plan: &'a IndexBuildPlan,
    path: &'a Path,
    collection: Collection,
    topology: Topology,
    /// Prefix of its build names; `None` for a single configuration with a standalone server.
    prefix: Option<String>,
    servers: Servers<'a>,
    /// Contents that each client has loaded or found.
    contents: Vec<Contents>,
    /// Amount of data of each server.
    held: Vec<Held>,
    /// Whether a kept collection contains this experiment's index.
    must_remove_index: bool,
}

/// Documents that a client has loaded.
struct Loaded {
    duration: Duration,
    contents: Contents,
}

impl Loaded {
    /// Loads one client's documents, and reads the resulting contents.
    fn load(
        access: &Access<'_>,
        collection: &Collection,
        load: Load,
    ) -> Result<Loaded, LayoutError> {
        let began = Instant::now();
        crate::layout::load(access, collection, load)?;
        let duration = began.elapsed();
        let contents = crate::layout::contents(access, collection, "reading the documents")?;
        Ok(Loaded { duration, contents })
    }
}

/// All results, or the error that caused the others to be interrupted.
fn all_or_cause<T>(ended: Vec<Result<T, LayoutError>>) -> Result<Vec<T>, LayoutError> {
    let mut all = Vec::new();
    let mut cause: Option<LayoutError> = None;
    for one in ended {
        match one {
            Ok(one) => all.push(one),
            Err(error) if matches!(cause, None | Some(LayoutError::Interrupted)) => {
                cause = Some(error);
            }
            Err(_) => {}
        }
    }
    cause.map_or(Ok(all), Err)
}

/// Topology name as part of a file name.
pub(crate) fn file_name(topology: &Topology) -> String {
    let text = topology.to_string();
    text.replace(|c: char| !c.is_ascii_alphanumeric(), "-")
}

/// The topologies with the prefixes of their builds.
pub(crate) fn named(topologies: &[Topology]) -> Vec<(Topology, Option<String>)> {
    let is_plain = matches!(topologies, [Topology::Standalone | Topology::Pairs { .. }]);
    let names = topologies.iter().map(|topology| {
        let prefix = (!is_plain).then(|| file_name(topology));
        (topology.clone(), prefix)
    });
    names.collect()
}

impl<'a> Configuration<'a> {
    /// Creates a configuration without starting servers, in the experiment's folder.
    pub(crate) fn new(
        task: &'a Task,
        plan: &'a IndexBuildPlan,
        (topology, prefix): (Topology, Option<String>),
        context: Context<'a>,
        embedded: Option<&'a Path>,
        path: &'a Path,
    ) -> Configuration<'a> {
        let folder = prefix.as_ref().map(|prefix| path.join(SERVERS).join(prefix));
        let folder = folder.as_deref().unwrap_or(path);
        Configuration {
            servers: Servers::new(task, &topology, context, embedded, folder.to_owned()),
            contents: Vec::new(),
            held: Vec::new(),
            collection: Collection::new(&*task.plan.data.database, &*task.plan.data.collection),
            task,
            context,
            plan,
            path,
            topology,
            prefix,
            must_remove_index: false,
        }
    }

    /// Performs the plan, and records measurements in the document.
    pub(crate) fn run(&mut self, document: &mut IndexBuildDocument) -> Result<(), Error> {
        self.prepare(document)?;
        self.load(document)?;
        self.build("before", document)?;
        let Some(remedy) = self.plan.remedy else {
            return Ok(());
        };
        self.remedy(remedy, document)?;
        self.build("after", document)
    }

    /// Checks what is known before the work, and starts the servers.
    fn prepare(&mut self, document: &mut IndexBuildDocument) -> Result<(), Error> {
        if self.plan.start == Start::Cold {
            build::drop_page_cache()?;
        }
        self.servers.prepare()?;
        self.say(&match (&self.topology, self.topology.data_servers()) {
            (Topology::Split { n }, _) => {
                format!("starting {n} servers, each with a part of the documents")
            }
            (_, 1) => "starting the server".to_owned(),
            (_, several) => format!("starting {several} servers with data"),
        });
        self.servers.open()?;
        if document.environment.is_some() {
            return Ok(());
        }
        document.server = self.servers.describe()?;
        let mut environment = self.servers.environment()?;
        let data = self.servers.members().first().and_then(|first| first.data.clone());
        document.disk = data.map(|data| DiskFacts {
            device: figures::device_of(&data).map_or(String::new(), |device| device.name),
            file_system: storage_of(&data).and_then(|one| one.filesystem).unwrap_or_default(),
            made: self.servers.storage().is_some(),
            iops: self
                .task
                .plan
                .server
                .storage
                .as_ref()
                .and_then(|storage| Some(storage.limit?.per_s)),
        });
        if let Some(storage) = self.servers.storage() {
            storage.describe(&mut environment);
        }
        document.environment = Some(environment);
        Ok(())
    }

    fn load(&mut self, document: &mut IndexBuildDocument) -> Result<(), Error> {
        for mut control in self.servers.controls()? {
            if self.plan.remedy.is_some() {
                // Before loading documents and building an index in vain.
                crate::layout::check_place(&mut control, &self.collection)?;
            }
            match self.plan.layout {
                Layout::Existing => existing::check(&mut control, &self.collection, self.plan)?,
                _ if !self.servers.is_own() => self.say(&format!(
                    "loading the documents into `{}` of this server, where they will stay",
                    self.collection.namespace()
                )),
                _ => {}
            }
        }
        let loaded = self.load_all().map_err(|error| self.failed(error))?;
        let load_s = loaded.iter().map(|loaded| loaded.duration).max();
        self.contents = loaded.iter().map(|loaded| loaded.contents).collect();
        self.held = self.held()?;
        let all = self.contents.iter().copied();
        let all = all.fold(Contents::default(), Contents::with);
        if all.documents == 0 {
            let text = format!("`{}` has no documents", self.collection.namespace());
            return Err(Error::new(Kind::BadInput, text));
        }
        let collection = CollectionFacts {
            namespace: self.collection.namespace(),
            documents: all.documents,
            bytes: all.bytes,
            content_hash: all.hash.to_string(),
            load_s: load_s
                .filter(|_| self.plan.layout != Layout::Existing)
                .map(|longest| longest.as_secs_f64()),
        };
        if document.collection.namespace.is_empty() {
            document.collection = collection.clone();
        }
        if self.prefix.is_some() {
            document.configurations.push(self.facts(collection));
        }
        Ok(())
    }

    /// Amount of data of each server: loaded by its client, or as counted by the server if one client serves all.
    fn held(&mut self) -> Result<Vec<Held>, Error> {
        self.servers.wait_until_ready()?;
        let members = self.servers.members();
        if members.len() == self.contents.len() {
            let contents = self.contents.iter();
            return Ok(contents.map(|contents| contents.size()).collect());
        }
        let held = members.iter().map(|member| {
            let found = self.collection.held(&mut control(&member.connector)?);
            Ok(found?)
        });
        held.collect()
    }

    fn facts(&self, collection: CollectionFacts) -> ConfigurationRecord {
        let members = self.servers.members().iter().zip(&self.held);
        let members = members.map(|(member, held)| MemberFacts {
            name: member.name.clone(),
            documents: held.documents,
            bytes: held.bytes,
            // In the format of a trace.
            data: member
                .data
                .as_ref()
                .and_then(|data| data.canonicalize().ok())
                .map(|data| data.display().to_string()),
        });
        ConfigurationRecord {
            topology: self.topology.to_string(),
            collection,
            members: members.collect(),
            remedy: None,
        }
    }

    /// Loads the documents of all clients in parallel, and reads the resulting contents.
    fn load_all(&self) -> Result<Vec<Loaded>, LayoutError> {
        let units = Units::new(
            self.task.plan.client.seed,
            self.plan.shortest_string,
            self.plan.longest_string,
        );
        let has_failed = AtomicBool::new(false);
        let notes = ProgressNotes::new(self.context.observer);
        let cancel = self.context.cancel;
        let interrupted = || cancel.requested() || has_failed.load(Ordering::Relaxed);
        let work = |(client, share): (usize, Share)| {
            let (connect, patient) = (self.servers.connector(client), self.servers.patient(client));
            let name = self.servers.dealt(client);
            let load =
                Load { layout: self.plan.layout, units, count: self.task.plan.data.records, share };
            let collection = &self.collection;
            let (notes, interrupted, has_failed) = (&notes, &interrupted, &has_failed);
            move || {
                let loaded = Loaded::load(
                    &Access {
                        connect: &connect,
                        patient: &patient,
                        interrupted,
                        progress: &|what, done, all| {
                            notes.progress(name, what, done, all);
                        },
                    },
                    collection,
                    load,
                );
                has_failed.fetch_or(loaded.is_err(), Ordering::Relaxed);
                loaded
            }
        };
        let ended: Vec<Result<Loaded, LayoutError>> = std::thread::scope(|scope| {
            let loading: Vec<_> = self
                .servers
                .shares()
                .into_iter()
                .enumerate()
                .map(|one| scope.spawn(work(one)))
                .collect();
            let ended = loading.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            ended.collect()
        });
        all_or_cause(ended)
    }

    /// Name of a build, with a prefix if there are several configurations.
    fn build_name(&self, name: &str) -> String {
        match (&self.prefix, self.plan.remedy) {
            (None, _) => name.to_owned(),
            (Some(prefix), None) => prefix.clone(),
            (Some(prefix), Some(_)) => format!("{prefix}-{name}"),
        }
    }

    /// Builds the index and drops it again, so that the collection stays without it. Then builds without and with a trace in turns,
    /// as often as planned.
    fn build(&mut self, name: &str, document: &mut IndexBuildDocument) -> Result<(), Error> {
        let name = self.build_name(name);
        let Built { mut record, caveats } = self.build_once(&name, true)?;
        let traced_s = record.duration_s;
        record.configuration = self.prefix.is_some().then(|| self.topology.to_string());
        document.builds.push(record);
        document.caveats.extend(caveats);
        // A killed process leaves its results so far.
        document.write(self.path)?;
        for number in 0..self.plan.untraced_builds() {
            // Alternate the order, so that effects of the first build on the second one affect both sides.
            let traced_first = number % 2 == 0;
            let early = match traced_first {
                true => None,
                false => Some(self.duration(&name, false)?),
            };
            let traced_s = match number {
                0 => traced_s,
                _ => self.duration(&name, true)?,
            };
            let untraced_s = match early {
                Some(untraced_s) => untraced_s,
                None => self.duration(&name, false)?,
            };
            if let Some(record) = document.builds.last_mut() {
                record.tracing.push(TracingPair { traced_s, untraced_s, traced_first });
            }
            document.write(self.path)?;
        }
        Ok(())
    }

    /// Duration of another build. Its trace is discarded.
    fn duration(&mut self, name: &str, traced: bool) -> Result<f64, Error> {
        let folder = self.path.join(TRACE_OF_COST);
        let name = if traced { TRACE_OF_COST } else { name };
        let built = self.build_once(name, traced);
        if traced {
            let _ = std::fs::remove_dir_all(folder);
        }
        Ok(built?.record.duration_s)
    }

    fn build_once(&mut self, name: &str, traced: bool) -> Result<Built, Error> {
        let builder = Builder {
            context: self.context,
            plan: self.plan,
            collection: &self.collection,
            folder: self.path,
        };
        self.must_remove_index = true;
        let built = builder.build(&mut self.servers, &self.held, name, traced)?;
        build::take_back(&self.servers, &self.collection)?;
        self.must_remove_index = false;
        Ok(built)
    }

    /// Applies the remedy on each planned server, one after the other.
    fn remedy(&mut self, remedy: Remedy, document: &mut IndexBuildDocument) -> Result<(), Error> {
        let kind = remedy.as_str().to_owned();
        let on = self.plan.remedy_on.clone();
        let cache_bytes = self.enlarge_cache(remedy)?;
        let mut duration_s = 0.0;
        let (mut before, mut after) = (Contents::default(), Contents::default());
        for client in 0..self.contents.len() {
            let name = self.servers.dealt(client).map(str::to_owned);
            if on.is_some() && on != name {
                before = before.with(self.contents[client]);
                after = after.with(self.contents[client]);
                continue;
            }
            let place = name.map_or(String::new(), |name| format!(" on `{name}`"));
            self.say(&format!("remedy: {kind}{place}"));
            let began = Instant::now();
            let applied = self.apply(client, remedy)?;
            duration_s += began.elapsed().as_secs_f64();
            (before, after) = (before.with(applied.before), after.with(applied.after));
        }
        self.servers.wait_until_ready()?;
        if cache_bytes.is_some() && self.plan.start == Start::Warm {
            self.servers.restart(None, || Ok(()))?;
            document.caveats.push(IndexBuildCaveat {
                statement: statement!("restarted-after-remedy"),
                build: Some(self.build_name("after")),
            });
        }
        let record = RemedyRecord {
            kind,
            duration_s,
            documents: (before.documents, after.documents),
            content_hash: (before.hash.to_string(), after.hash.to_string()),
            cache_bytes,
            on,
        };
        let (first, place) = match (&self.prefix, document.configurations.last_mut()) {
            (Some(_), Some(configuration)) => {
                (&configuration.collection, &mut configuration.remedy)
            }
            _ => (&document.collection, &mut document.remedy),
        };
        let found = (record.documents.0, &record.content_hash.0);
        let is_changed = (first.documents, &first.content_hash) != found;
        *place = Some(record);
        if is_changed {
            document
                .caveats
                .push(IndexBuildCaveat { statement: statement!("changed-by-others"), build: None });
        }
        document.write(self.path)?;
        Ok(())
    }

    /// Restarts servers that need a larger cache for the remedy; returns that cache.
    fn enlarge_cache(&mut self, remedy: Remedy) -> Result<Option<u64>, Error> {
        let on = self.plan.remedy_on.as_deref();
        let is_meant = |client| on.is_none() || on == self.servers.dealt(client);
        let meant = (0..self.contents.len()).filter(|client| is_meant(*client));
        let most = meant.map(|client| self.contents[client].bytes).max();
        let needed = (most.unwrap_or(0) * CACHE_FOR_NAME).max(LEAST_CACHE_FOR_NAME);
        let is_enough = self.servers.cache().unwrap_or(DEFAULT_CACHE) >= needed;
        if is_enough || !self.servers.copies_for_a_name() || remedy == Remedy::Compact {
            return Ok(None);
        }
        let whom = match self.servers.members().len() {
            1 => "restarting the server with a larger cache: it renames",
            _ => "restarting the servers with a larger cache: each renames",
        };
        self.say(&format!("{whom} a collection by copying it in one transaction"));
        self.servers.restart(Some(needed), || Ok(()))?;
        Ok(Some(needed))
    }

    fn apply(&mut self, client: usize, remedy: Remedy) -> Result<Applied, Error> {
        let (connect, patient) = (self.servers.connector(client), self.servers.patient(client));
        let notes = ProgressNotes::new(self.context.observer);
        let interrupted = || self.context.cancel.requested();
        let access = Access {
            connect: &connect,
            patient: &patient,
            interrupted: &interrupted,
            progress: &|what, done, all| notes.progress(None, what, done, all),
        };
        let applied = crate::layout::apply(&access, &self.collection, remedy, self.path);
        applied.map_err(|error| self.failed(error))
    }

    /// Error of a layout or a remedy. A command that a cancellation interrupted counts as interrupted.
    fn failed(&mut self, error: LayoutError) -> Error {
        let is_broken_off = matches!(error, LayoutError::Command { .. } | LayoutError::Connect(_));
        if is_broken_off && self.context.cancel.requested() {
            return LayoutError::Interrupted.into();
        }
        self.servers.explain(error.into())
    }

    /// Removes the index from kept collections, and stops the servers.
    pub(crate) fn end(self) -> Result<(), Error> {
        let is_left = self.must_remove_index && self.servers.is_kept() && self.servers.is_open();
        let taken = match is_left {
            true => build::take_back(&self.servers, &self.collection),
            false => Ok(()),
        };
        let taken =
            taken.map_err(|failure| failure.context(format!("the index `{INDEX}` may remain")));
        taken.and(self.servers.end())
    }

    fn say(&self, text: &str) {
        match &self.prefix {
            Some(_) => self.context.note(format!("{}: {text}", self.topology)),
            None => self.context.note(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_server_has_builds_without_a_topology_name() {
        let prefixes = |texts: &[&str]| -> Vec<Option<String>> {
            let topologies = texts.iter().map(|text| text.parse().expect("valid"));
            let topologies: Vec<Topology> = topologies.collect();
            named(&topologies).into_iter().map(|(_, prefix)| prefix).collect()
        };
        let name = |text: &str| Some(text.to_owned());
        assert_eq!(prefixes(&["standalone"]), [None]);
        assert_eq!(prefixes(&["split=2"]), [name("split-2")]);
        assert_eq!(prefixes(&["replica-set=3"]), [name("replica-set-3")]);
        let both = [name("standalone"), name("sharded-2x1-chunks-8")];
        assert_eq!(prefixes(&["standalone", "sharded=2x1,chunks=8"]), both);
    }
}
