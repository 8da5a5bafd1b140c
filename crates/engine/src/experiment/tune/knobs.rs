//! Selects the knobs to try: those that the server and its machine have and that have an effect
//! there.

mod reported;

use crate::error::{Error, refuse};
use crate::run::host_settings;
use dyno_plan::knobs::versions::{Version, version};
use dyno_plan::knobs::{Knob, Machine, Need, Reach};
use dyno_plan::model::ServerKind;
use dyno_plan::task::Task;
use dyno_plan::topology::Topology;
use dyno_plan::units::Bytes;
use dyno_record::experiment::LeftOutKnob;
use dyno_record::model::ServerRecord;
use reported::Reported;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Reason to leave out values that lose acknowledged writes.
const LESS_DURABLE: &str = "less durable than now, which needs `--allow durability`";

/// Knobs to try, and those that are left out.
#[derive(Clone, Debug, Default)]
pub(super) struct Selection {
    pub(super) knobs: Vec<Knob>,
    pub(super) left_out: Vec<LeftOutKnob>,
}

impl Selection {
    /// Leaves out the knobs for which `check` gives a reason.
    pub(super) fn sift(&mut self, mut check: impl FnMut(&mut Knob) -> Result<(), String>) {
        self.knobs.retain_mut(|knob| match check(knob) {
            Ok(()) => true,
            Err(reason) => {
                self.left_out.push(LeftOutKnob { name: knob.name.clone(), reason });
                false
            }
        });
    }

    /// The knobs that are left out, with the reasons.
    pub(super) fn in_words(&self) -> impl Iterator<Item = String> {
        let all = self.left_out.iter();
        all.map(|knob| format!("`{}` is left out: {}", knob.name, knob.reason))
    }

    /// Fails if no knob is left.
    pub(super) fn check_some(&self) -> Result<(), Error> {
        if !self.knobs.is_empty() {
            return Ok(());
        }
        let reasons: Vec<String> = self.in_words().collect();
        let text = format!("no knob is left to try: {}", reasons.join("; "));
        refuse(text, "choose others with `--knobs`")
    }
}

/// Facts about the servers and their machine.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Facts {
    version: Option<Version>,
    has_replica_set: Option<bool>,
    /// Of a server that is started here.
    has_swap: Option<bool>,
    has_numa_nodes: Option<bool>,
}

impl Facts {
    /// Facts known before the first run.
    pub(super) fn planned(task: &Task) -> Facts {
        if task.remote.is_some() || task.plan.fleet.is_some() {
            return Facts::default();
        }
        let machine = dyno_observe::environment::capture(None);
        let topology = task.plan.server.topology().ok();
        Facts {
            version: None,
            has_replica_set: topology
                .map(|topology| matches!(topology, Topology::ReplicaSet(_) | Topology::Sharded(_))),
            has_swap: machine.swap_bytes.map(|bytes| bytes > 0),
            has_numa_nodes: machine.numa_nodes.map(|nodes| nodes > 1),
        }
    }

    /// Facts from a run's server record.
    pub(super) fn reported(server: &ServerRecord) -> Facts {
        let topology = server.topology.as_deref();
        Facts {
            version: server.version.as_deref().and_then(version),
            has_replica_set: topology.map(|topology| topology != "standalone"),
            ..Facts::default()
        }
    }

    /// Refuses a knob that is known to have no effect.
    pub(super) fn check(&self, knob: &Knob) -> Result<(), String> {
        let mut versions = knob.versions.iter().zip(self.version);
        if versions.any(|(versions, own)| !versions.contains(own)) {
            return Err("not in this version of the server".to_owned());
        }
        let (has, reason) = match knob.needs {
            None => return Ok(()),
            Some(Need::ReplicaSet) => (self.has_replica_set, "for replica sets only"),
            Some(Need::Swap) => (self.has_swap, "this machine has no swap"),
            Some(Need::NumaNodes) => (self.has_numa_nodes, "this machine has one NUMA node"),
        };
        if has == Some(false) { Err(reason.to_owned()) } else { Ok(()) }
    }
}

/// Machine facts for the ranges of knobs, and whether all tasks run their servers on it.
pub(super) fn machine(tasks: &[Task]) -> Machine {
    let environment = dyno_observe::environment::capture(None);
    let is_here = |task: &Task| task.remote.is_none() && task.plan.fleet.is_none();
    Machine {
        memory_bytes: environment.memory_bytes.unwrap_or_default(),
        cores: u32::try_from(environment.cpus.unwrap_or(1)).unwrap_or(u32::MAX),
        has_servers: tasks.iter().all(is_here),
    }
}

/// Makes values set in the plan the defaults of their knobs.
pub(super) fn as_planned(knobs: &mut [Knob], task: &Task) {
    planned(knobs, task, Knob::set_default);
}

/// Adds the values set in the plans of several workloads to the knobs. Only a plan's own value
/// becomes its default.
pub(super) fn with_values_of(knobs: &mut [Knob], task: &Task) {
    planned(knobs, task, Knob::add);
}

fn planned(knobs: &mut [Knob], task: &Task, put: fn(&mut Knob, &str)) {
    let own = knobs.iter_mut().filter(|knob| knob.reach != Reach::RunTime && knob.text.is_none());
    for knob in own {
        match dyno_plan::file::value_of(&task.plan, &knob.key) {
            Some(serde_json::Value::String(text)) => put(knob, &text),
            Some(serde_json::Value::Null) | None => {}
            Some(other) => put(knob, &other.to_string()),
        }
    }
}

/// Key of the storage that is made for the servers.
const STORAGE: &str = "server.storage";

/// Key of the knob with a default that depends on the machine and on the number of its servers.
const CACHE: &str = "server.cache";

/// Shipped group of the cache knob.
const CACHE_GROUP: &str = "cache";

/// Cache of each server of a run, if the plan does not set it.
pub(super) fn cache_of(server: Option<&ServerRecord>, task: &Task) -> Option<String> {
    let plan = &task.plan.server;
    // The cache of a running server is fixed, and the caches of a fleet's hosts are unknown here.
    if plan.cache.is_some() || task.remote.is_some() || task.plan.fleet.is_some() {
        return None;
    }
    // The record of independent servers has the sum of their caches; other records have the cache
    // of one server.
    let servers = match plan.topology() {
        Ok(Topology::Pairs { n }) => u64::from(n),
        _ => 1,
    };
    let each = server?.cache_bytes? / servers.max(1);
    Some(format!("{}MiB", each >> 20))
}

/// Adds the caches of these plans to the shipped knob, and removes sizes above `most_bytes`.
pub(super) fn fit_cache(
    knob: &mut Knob,
    caches: &[Option<String>],
    most_bytes: u64,
) -> Result<(), String> {
    if knob.key != CACHE || knob.group != CACHE_GROUP || caches.iter().all(Option::is_none) {
        return Ok(());
    }
    let bytes = |value: &String| value.parse::<Bytes>().map_or(0, |size| size.0);
    let mut fitting = knob.values.clone();
    fitting.retain(|value| bytes(value) <= most_bytes);
    // The servers' actual cache is better known than the default of a single server.
    knob.default = knob.default.filter(|_| caches.iter().any(Option::is_none));
    knob.retain(&fitting);
    caches.iter().flatten().for_each(|cache| knob.add(cache));
    check_several(knob)
}

/// Refuses a knob with a single value.
fn check_several(knob: &Knob) -> Result<(), String> {
    let is_one = knob.values.len() < 2;
    if is_one { Err("only one value is possible here".to_owned()) } else { Ok(()) }
}

/// Makes the servers' actual cache the default of its knob.
pub(super) fn with_cache(knobs: &mut [Knob], cache: Option<&str>) {
    let own = knobs.iter_mut().filter(|knob| knob.key == CACHE);
    own.zip(cache).for_each(|(knob, cache)| knob.set_default(cache));
}

/// Adds the parameter value of each plan's first server to a knob. Removes values that make
/// acknowledged writes less durable on any server, unless they are allowed, and notes them in
/// `partly` if others remain. `near` finds a similar name for a typed one.
pub(super) fn resolve_parameter(
    knob: &mut Knob,
    found: &[Vec<BTreeMap<String, String>>],
    allows_less_durable: bool,
    partly: &mut Vec<LeftOutKnob>,
    near: impl Fn(&str) -> Option<String>,
) -> Result<(), String> {
    let Some(name) = knob.reported_parameter() else {
        return Ok(());
    };
    let of_each = found.iter().map(|servers| of_servers(servers, name));
    let Some(of_each) = of_each.collect::<Option<Vec<Vec<&str>>>>() else {
        let near = near(name).filter(|_| *name == knob.name);
        let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        return Err(format!("there is no `{name}` here{near}"));
    };
    for first in of_each.iter().filter_map(|values| values.first()) {
        match reported::value_of(knob, first) {
            Reported::Value(value) => knob.set_default(&value),
            Reported::Nothing => {}
            Reported::Several => return Err("the server has several values for it".to_owned()),
        }
    }
    let weaker = knob.resolve_durability(&of_each.concat(), allows_less_durable);
    note_weaker(knob, &weaker, partly)
}

/// Notes the removed values of a knob in `partly`, or refuses the knob if no others remain.
fn note_weaker(
    knob: &Knob,
    weaker: &[String],
    partly: &mut Vec<LeftOutKnob>,
) -> Result<(), String> {
    if knob.values.len() < 2 {
        return Err(LESS_DURABLE.to_owned());
    }
    if !weaker.is_empty() {
        let name = format!("{} ({})", knob.name, weaker.join(", "));
        partly.push(LeftOutKnob { name, reason: LESS_DURABLE.to_owned() });
    }
    Ok(())
}

/// Whether a server has no journal, so that acknowledged writes become durable with the next
/// checkpoint.
pub(super) fn is_unjournaled(server: &ServerRecord) -> bool {
    let mut names = ["journal", "storage.journal.enabled"].into_iter();
    names.any(|name| server.settings.get(name).is_some_and(|own| own == "false"))
}

/// Removes checkpoint intervals that are longer than the server's if it has no journal, and notes
/// them in `partly` if others remain; marks them if they are allowed. The interval 0, which means
/// never, is the longest, and values without an order may all be longer.
pub(super) fn resolve_checkpoints(
    knob: &mut Knob,
    is_unjournaled: bool,
    allows_less_durable: bool,
    partly: &mut Vec<LeftOutKnob>,
) -> Result<(), String> {
    if !is_unjournaled || !knob.is_checkpoint_interval() {
        return Ok(());
    }
    let is_never = |value: &str| {
        let length = value.trim_end_matches(char::is_alphabetic).parse::<f64>();
        length.is_ok_and(|length| length <= 0.0)
    };
    let (now, is_never_now) = (knob.default_place(), is_never(knob.default_value()));
    let is_longer = |place: usize, value: &str| match knob.ordered {
        true => !is_never_now && (place > now || is_never(value)),
        false => place != now,
    };
    let (mut shorter, mut weaker) = (Vec::new(), Vec::new());
    for (place, value) in knob.values.iter().enumerate() {
        let part = if is_longer(place, value) { &mut weaker } else { &mut shorter };
        part.push(value.clone());
    }
    if allows_less_durable {
        knob.less_durable = weaker;
        return Ok(());
    }
    knob.retain(&shorter);
    note_weaker(knob, &weaker, partly)
}

/// Makes the parameter value of a plan's first server the default of its knob.
pub(super) fn as_reported(knob: &mut Knob, servers: &[BTreeMap<String, String>]) {
    let first = servers.first();
    let reported = knob.reported_parameter().and_then(|name| first?.get(name));
    if let Some(Reported::Value(value)) =
        reported.map(|reported| reported::value_of(knob, reported))
    {
        knob.set_default(&value);
    }
}

/// Values of a parameter on a plan's servers; `None` if a server does not have it or there are no
/// servers.
fn of_servers<'a>(servers: &'a [BTreeMap<String, String>], name: &str) -> Option<Vec<&'a str>> {
    let values = servers.iter().map(|server| server.get(name).map(String::as_str));
    let values = values.collect::<Option<Vec<&str>>>();
    values.filter(|values| !values.is_empty())
}

/// Refuses knobs that this kind of server cannot have, and machine settings without the right to
/// change them.
pub(super) fn check(knobs: &[Knob], task: &Task) -> Result<(), Error> {
    let reaches = |reach: Reach| knobs.iter().find(|knob| knob.reach == reach);
    if let Some(knob) = reaches(Reach::RunTime)
        && task.plan.server.kind == ServerKind::Embedded
    {
        let name = &knob.name;
        return refuse(
            format!("the embedded server has no parameters, such as `{name}`"),
            "give `--server mongod`; install one with `dyno server install`",
        );
    }
    if let Some(knob) = reaches(Reach::Restart)
        && task.remote.is_some()
    {
        let name = &knob.name;
        return refuse(
            format!("`{name}` needs a restart of the server, which is already running"),
            "leave out `--allow restart`, or let `dyno` start the server",
        );
    }
    if let Some(knob) = reaches(Reach::Host)
        && (task.remote.is_some() || task.plan.fleet.is_some())
    {
        let name = &knob.name;
        return refuse(
            format!("`{name}` is a setting of this machine, but the server was not started here"),
            "leave out `--allow host`, or let `dyno` start the server here",
        );
    }
    let server = &task.plan.server;
    // The default place of the data is a folder, which is not a value of this key, so the knob
    // would have no default.
    if let Some(knob) = knobs.iter().find(|knob| knob.key == STORAGE)
        && server.storage.is_none()
    {
        let text = format!(
            "`{STORAGE}` is changed by the knob `{}`, but the plan does not set a storage to compare with",
            knob.name
        );
        let hint = format!("set it, such as `--set '{STORAGE}=ext4 on loop:4GiB'`");
        return refuse(text, hint);
    }
    let is_planned = |knob: &&Knob| match knob.runtime_parameter() {
        Some(name) => server.runtime_parameters.contains_key(name),
        // The plan's value would be lost.
        None => {
            knob.key == dyno_plan::knobs::CONNECTION_OPTIONS && server.connection_options.is_some()
        }
    };
    if let Some(knob) = knobs.iter().find(is_planned) {
        let text =
            format!("`{}` is set by the plan and changed by the knob `{}`", knob.key, knob.name);
        return refuse(text, "leave one of them out");
    }
    host_settings::check_rights(knobs.iter().filter_map(Knob::host_setting), &task.plan)
}

/// Finds the files of a knob's setting on this machine. Its current value becomes the default, and
/// unsupported values are removed.
///
/// # Errors
/// The reason why the knob cannot be used here.
pub(super) fn resolve_host(knob: &mut Knob, folders: &[PathBuf]) -> Result<(), String> {
    resolve_host_in(Path::new("/"), knob, folders)
}

fn resolve_host_in(root: &Path, knob: &mut Knob, folders: &[PathBuf]) -> Result<(), String> {
    let Some(setting) = knob.host_setting() else {
        return Ok(());
    };
    let Ok(found) = host_settings::find(setting, folders, root) else {
        return Err("this machine does not have it".to_owned());
    };
    if host_settings::counts_instead(setting, root).is_some() {
        return Err("a size is set on this machine instead, and would be lost".to_owned());
    }
    if let Some(choices) = &found.choices {
        knob.retain(choices);
    }
    // A value from the plan applies during a run.
    if knob.default.is_none() {
        knob.set_default(&setting.read(&found.value));
    }
    knob.files = found.files.iter().map(|file| file.display().to_string()).collect();
    check_several(knob)
}

#[cfg(test)]
mod tests;
