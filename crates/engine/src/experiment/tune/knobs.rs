//! Which knobs are tried: those that the server and its machine have, and that have an effect there.

mod reported;

use crate::context::Context;
use crate::deployment::choice;
use crate::environment::{Environment, ServerHome};
use crate::error::{Error, Kind};
use crate::run::host_settings;
use dyno_plan::host_setting::HostSetting;
use dyno_plan::knobs::versions::{Version, version};
use dyno_plan::knobs::{Knob, Machine, Need, RUNTIME_PARAMETERS, Reach};
use dyno_plan::model::ServerKind;
use dyno_plan::task::Task;
use dyno_plan::topology::Topology;
use dyno_plan::units::Bytes;
use dyno_record::experiment::{self as record, KnobReach, LeftOutKnob, LeftOutReason};
use dyno_record::model::ServerRecord;
use dyno_servers::{ServerProgram, program_version};
use reported::Reported;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Name of the option that holds the knobs as they were asked for.
pub(super) const WANTED: &str = "knobs";

/// What is known of the servers and their machine.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Facts {
    pub(super) version: Option<Version>,
    has_replica_set: Option<bool>,
    /// Of a server that is started here.
    has_swap: Option<bool>,
    has_numa_nodes: Option<bool>,
}

impl Facts {
    /// What is known before anything is run.
    pub(super) fn planned(task: &Task, environment: Option<&Environment>) -> Facts {
        if task.remote.is_some() || task.plan.fleet.is_some() {
            return Facts::default();
        }
        let machine = dyno_observe::environment::capture(None);
        let topology = task.plan.server.topology().ok();
        Facts {
            version: environment.and_then(|environment| planned_version(task, environment)),
            has_replica_set: topology
                .map(|topology| matches!(topology, Topology::ReplicaSet(_) | Topology::Sharded(_))),
            has_swap: machine.swap_bytes.map(|bytes| bytes > 0),
            has_numa_nodes: machine.numa_nodes.map(|nodes| nodes > 1),
        }
    }

    /// What a run has told of its server.
    pub(super) fn reported(server: &ServerRecord) -> Facts {
        let topology = server.topology.as_deref();
        Facts {
            version: server.version.as_deref().and_then(version),
            has_replica_set: topology.map(|topology| topology != "standalone"),
            ..Facts::default()
        }
    }

    /// Why a knob is not tried, if that is known.
    fn against(&self, knob: &Knob) -> Option<LeftOutReason> {
        if let Some((versions, own)) = knob.versions.zip(self.version)
            && !versions.contains(own)
        {
            return Some(LeftOutReason::Version);
        }
        let (has, reason) = match knob.needs? {
            Need::ReplicaSet => (self.has_replica_set, LeftOutReason::NoReplicaSet),
            Need::Swap => (self.has_swap, LeftOutReason::NoSwap),
            Need::NumaNodes => (self.has_numa_nodes, LeftOutReason::OneNumaNode),
        };
        (has == Some(false)).then_some(reason)
    }
}

/// The version of the program that a plan starts on this machine.
fn planned_version(task: &Task, environment: &Environment) -> Option<Version> {
    let server = &task.plan.server;
    if server.kind != ServerKind::Mongod || environment.home != ServerHome::Here {
        return None;
    }
    let found = choice::mongod(server.mongod.as_deref(), environment).ok()?;
    let program = program_version(ServerProgram::Mongod, &found.program).ok()?;
    version(&program.version)
}

/// Takes out the knobs of which it is known that they are of no use here.
pub(super) fn sift(knobs: &mut Vec<Knob>, facts: &Facts) -> Vec<LeftOutKnob> {
    let mut left_out = Vec::new();
    knobs.retain(|knob| {
        let reason = facts.against(knob);
        left_out.extend(reason.map(|reason| left(knob, reason)));
        reason.is_none()
    });
    left_out
}

pub(super) fn left(knob: &Knob, reason: LeftOutReason) -> LeftOutKnob {
    LeftOutKnob {
        name: knob.name.clone(),
        key: knob.key.clone(),
        values: Vec::new(),
        reason: Some(reason),
        near: None,
    }
}

/// Tells which knobs are left out, and why.
pub(super) fn note(left_out: &[LeftOutKnob], context: Context<'_>) {
    for knob in left_out {
        context.note(in_words(knob));
    }
}

/// A knob that is left out, as a person is told of it.
pub(super) fn in_words(knob: &LeftOutKnob) -> String {
    let why = match knob.reason {
        Some(LeftOutReason::Version) => "this version of the server does not have it",
        Some(LeftOutReason::NoReplicaSet) => "it has an effect in replica sets only",
        Some(LeftOutReason::NoSwap) => "this machine has no swap",
        Some(LeftOutReason::OneNumaNode) => "this machine has one NUMA node",
        Some(LeftOutReason::OneValue) => "this machine has one of its values only",
        Some(LeftOutReason::SizeInstead) => {
            "this machine has a size in place of this share, which would be lost"
        }
        Some(LeftOutReason::SeveralValues) => {
            "the server has different values where this knob has one"
        }
        Some(LeftOutReason::LessDurable) => {
            "it makes acknowledged writes less durable than they are; `--allow durability` lets it be tried"
        }
        Some(LeftOutReason::NotThere) | None => {
            let near = knob.near.as_ref();
            let near = near.map(|near| format!("; did you mean `{near}`?"));
            return format!(
                "there is no `{}` here: `{}` is left out{}",
                knob.key,
                knob.name,
                near.unwrap_or_default()
            );
        }
    };
    format!("`{}` is left out: {why}", knob.with_values(&knob.name))
}

/// An error if nothing is left.
pub(super) fn check_some(knobs: &[Knob], left_out: &[LeftOutKnob]) -> Result<(), Error> {
    if !knobs.is_empty() {
        return Ok(());
    }
    let reasons: Vec<String> = left_out.iter().map(in_words).collect();
    let text = format!("no knob is left to try: {}", reasons.join("; "));
    Err(Error::new(Kind::BadInput, text).with_hint("name others with `--knobs`"))
}

/// What this machine has for the ranges of knobs, and whether the servers of all these tasks run on it.
pub(super) fn machine(tasks: &[(String, Task)]) -> Machine {
    let environment = dyno_observe::environment::capture(None);
    let is_here = |task: &Task| task.remote.is_none() && task.plan.fleet.is_none();
    Machine {
        memory_bytes: environment.memory_bytes.unwrap_or_default(),
        cores: u32::try_from(environment.cpus.unwrap_or(1)).unwrap_or(u32::MAX),
        has_servers: tasks.iter().all(|(_, task)| is_here(task)),
    }
}

/// What the plan says itself is what a knob has unless it is turned.
pub(super) fn as_planned(knobs: &mut [Knob], task: &Task) {
    planned(knobs, task, Knob::set_default);
}

/// What the plans of several workloads say themselves are values for all of them, and the default of none but their own.
pub(super) fn with_values_of(knobs: &mut [Knob], task: &Task) {
    planned(knobs, task, Knob::add);
}

fn planned(knobs: &mut [Knob], task: &Task, put: fn(&mut Knob, &str)) {
    let plan = dyno_plan::file::recorded(&task.plan);
    let own = knobs
        .iter_mut()
        .filter(|knob| knob.reach != Reach::RunTime && knob.text.is_none());
    for knob in own {
        match plan.pointer(&format!("/{}", knob.key.replace('.', "/"))) {
            Some(serde_json::Value::String(text)) => put(knob, text),
            Some(serde_json::Value::Null) | None => {}
            Some(other) => put(knob, &other.to_string()),
        }
    }
}

/// What `mongod` has of it unless something else is asked for.
const CHECKPOINT_S: &str = "60";

/// Key of the storage that is made for the servers.
const STORAGE: &str = "server.storage";

/// Key of the knob whose default depends on the machine and on how many servers share it.
const CACHE: &str = "server.cache";

/// Its group among those that are shipped.
const CACHE_GROUP: &str = "cache";

/// The cache that each server of a run had, where the plan does not say it.
pub(super) fn cache_of(server: Option<&ServerRecord>, task: &Task) -> Option<String> {
    let plan = &task.plan.server;
    // One that runs already has no other cache, and what hosts of a fleet have is known to nobody here.
    if plan.cache.is_some() || task.remote.is_some() || task.plan.fleet.is_some() {
        return None;
    }
    // The record of independent servers has the sum of theirs, and that of others the one that was asked.
    let servers = match plan.topology() {
        Ok(Topology::Pairs { n }) => u64::from(n),
        _ => 1,
    };
    let each = server?.cache_bytes? / servers.max(1);
    Some(format!("{}MiB", each >> 20))
}

/// Makes the caches of these plans values of the shipped knob, and takes out those that so many servers of a machine with this memory
/// cannot have together. A knob that has no other value then is left out.
pub(super) fn fit_caches(
    knobs: &mut Vec<Knob>,
    caches: &[Option<String>],
    servers: u32,
    memory_bytes: u64,
) -> Vec<LeftOutKnob> {
    let mut left_out = Vec::new();
    let bytes = |value: &String| value.parse::<Bytes>().map_or(0, |size| size.0);
    let most = memory_bytes / 2 / u64::from(servers.max(1));
    knobs.retain_mut(|knob| {
        if knob.key != CACHE || knob.group != CACHE_GROUP || caches.iter().all(Option::is_none) {
            return true;
        }
        let mut fitting = knob.values.clone();
        fitting.retain(|value| bytes(value) <= most);
        // What the servers had is known better than what one alone would have.
        knob.default = knob.default.filter(|_| caches.iter().any(Option::is_none));
        knob.retain(&fitting);
        caches.iter().flatten().for_each(|cache| knob.add(cache));
        let is_one = knob.values.len() < 2;
        left_out.extend(is_one.then(|| left(knob, LeftOutReason::OneValue)));
        !is_one
    });
    left_out
}

/// The cache that the servers of a plan had is what its knob has unless it is turned.
pub(super) fn with_cache(knobs: &mut [Knob], cache: Option<&str>) {
    let own = knobs.iter_mut().filter(|knob| knob.key == CACHE);
    own.zip(cache)
        .for_each(|(knob, cache)| knob.set_default(cache));
}

/// What the first server of each plan has of the parameter of a knob is a value of it. Those that make acknowledged writes less
/// durable than they are on any of the servers go unless that is allowed. Whether there is something left to try.
pub(super) fn resolve_parameter(
    knob: &mut Knob,
    found: &[Vec<BTreeMap<String, String>>],
    allows_less_durable: bool,
    left_out: &mut Vec<LeftOutKnob>,
) -> bool {
    let Some(name) = knob.reported_parameter() else {
        return true;
    };
    let of_each = found.iter().map(|servers| of_servers(servers, name));
    let Some(of_each) = of_each.collect::<Option<Vec<Vec<&str>>>>() else {
        left_out.push(left(knob, LeftOutReason::NotThere));
        return false;
    };
    for first in of_each.iter().filter_map(|values| values.first()) {
        match reported::value_of(knob, first) {
            Reported::Value(value) => knob.set_default(&value),
            Reported::Nothing => {}
            Reported::Several => {
                left_out.push(left(knob, LeftOutReason::SeveralValues));
                return false;
            }
        }
    }
    let weaker = knob.resolve_durability(&of_each.concat(), allows_less_durable);
    leave_out(knob, weaker, left_out)
}

/// The time between checkpoints that a server without a journal had, on which acknowledged writes last with the next one.
pub(super) fn unjournaled_checkpoints(server: &ServerRecord) -> Option<&str> {
    let mut names = ["journal", "storage.journal.enabled"].into_iter();
    let is_off = |name| server.settings.get(name).is_some_and(|own| own == "false");
    let interval_s = server.settings.get("parameter.syncdelay");
    names
        .any(is_off)
        .then(|| interval_s.map_or(CHECKPOINT_S, String::as_str))
}

/// As [`resolve_parameter`], by the times between checkpoints that servers without a journal had.
pub(super) fn resolve_checkpoints(
    knob: &mut Knob,
    unjournaled: &[String],
    allows_less_durable: bool,
    left_out: &mut Vec<LeftOutKnob>,
) -> bool {
    let now: Vec<&str> = unjournaled.iter().map(String::as_str).collect();
    let weaker = knob.resolve_checkpoints(&now, allows_less_durable);
    weaker.is_empty() || leave_out(knob, weaker, left_out)
}

/// Names the values that were taken out as less durable. Whether there is something left to try.
fn leave_out(knob: &Knob, weaker: Vec<String>, left_out: &mut Vec<LeftOutKnob>) -> bool {
    let is_left = knob.values.len() > 1;
    if !weaker.is_empty() {
        let mut without = left(knob, LeftOutReason::LessDurable);
        if is_left {
            without.values = weaker;
        }
        left_out.push(without);
    }
    is_left
}

/// What the first server of a plan has of the parameter of a knob is what that has unless it is turned.
pub(super) fn as_reported(knob: &mut Knob, servers: &[BTreeMap<String, String>]) {
    let first = servers.first();
    let reported = knob.reported_parameter().and_then(|name| first?.get(name));
    if let Some(Reported::Value(value)) =
        reported.map(|reported| reported::value_of(knob, reported))
    {
        knob.set_default(&value);
    }
}

/// What each of the servers of a plan has of a parameter; `None` if one does not have it, or there is none.
fn of_servers<'a>(servers: &'a [BTreeMap<String, String>], name: &str) -> Option<Vec<&'a str>> {
    let values = servers
        .iter()
        .map(|server| server.get(name).map(String::as_str));
    let values = values.collect::<Option<Vec<&str>>>();
    values.filter(|values| !values.is_empty())
}

/// Says what may have been meant by the parameters that were typed and that no server has: `near` finds it.
pub(super) fn find_near(left_out: &mut [LeftOutKnob], near: impl Fn(&str) -> Option<String>) {
    for knob in left_out {
        let typed = knob.key.strip_prefix(RUNTIME_PARAMETERS);
        let is_missing = knob.reason == Some(LeftOutReason::NotThere);
        let typed = typed.filter(|name| is_missing && *name == knob.name);
        knob.near = typed.and_then(&near);
    }
}

/// Refuses knobs that this server has not, as far as its kind tells, and settings of the machine that may not be made.
pub(super) fn check(knobs: &[Knob], task: &Task) -> Result<(), Error> {
    let refuse = |text: String, hint: &str| Err(Error::new(Kind::BadInput, text).with_hint(hint));
    let reaches = |reach: Reach| knobs.iter().find(|knob| knob.reach == reach);
    if let Some(knob) = reaches(Reach::RunTime)
        && task.plan.server.kind == ServerKind::Embedded
    {
        let name = &knob.name;
        return refuse(
            format!("the embedded server has no parameters, such as `{name}`"),
            "give `--server mongod`; `dyno server install` gets one",
        );
    }
    if let Some(knob) = reaches(Reach::Restart)
        && task.remote.is_some()
    {
        let name = &knob.name;
        return refuse(
            format!("`{name}` needs another start of the server, which runs already"),
            "leave out `--allow restart`, or let `dyno` start the server",
        );
    }
    if let Some(knob) = reaches(Reach::Host)
        && (task.remote.is_some() || task.plan.fleet.is_some())
    {
        let name = &knob.name;
        return refuse(
            format!("`{name}` is a setting of this machine, and the server was not started here"),
            "leave out `--allow host`, or let `dyno` start the server here",
        );
    }
    let server = &task.plan.server;
    // The folder that is the place of the data otherwise is no value of the key, which has no default then.
    if let Some(knob) = knobs.iter().find(|knob| knob.key == STORAGE)
        && server.storage.is_none()
    {
        let text = format!(
            "`{STORAGE}` is turned by the knob `{}`, and the plan does not say with which storage the others are compared",
            knob.name
        );
        let hint = format!("name it, such as `--set '{STORAGE}=ext4 on loop:4GiB'`");
        return refuse(text, &hint);
    }
    let is_planned = |knob: &&Knob| match knob.runtime_parameter() {
        Some(name) => server.runtime_parameters.contains_key(name),
        // What the plan has there would be lost.
        None => {
            knob.key == dyno_plan::knobs::CONNECTION_OPTIONS && server.connection_options.is_some()
        }
    };
    if let Some(knob) = knobs.iter().find(is_planned) {
        let text = format!(
            "`{}` is set by the plan and turned by the knob `{}`",
            knob.key, knob.name
        );
        return refuse(text, "leave one of them out");
    }
    host_settings::check_rights(knobs.iter().filter_map(Knob::host_setting), &task.plan)
}

/// Where this machine has the setting of a knob; what it is now becomes the default, and values that the machine has not go.
///
/// # Errors
/// Why the knob is of no use here.
pub(super) fn resolve_host(
    knob: &mut Knob,
    setting: HostSetting,
    folders: &[PathBuf],
) -> Result<Vec<String>, LeftOutReason> {
    resolve_host_in(Path::new("/"), knob, setting, folders)
}

fn resolve_host_in(
    root: &Path,
    knob: &mut Knob,
    setting: HostSetting,
    folders: &[PathBuf],
) -> Result<Vec<String>, LeftOutReason> {
    let found = host_settings::find(setting, folders, root);
    let found = found.map_err(|_| LeftOutReason::NotThere)?;
    if host_settings::counts_instead(setting, root).is_some() {
        return Err(LeftOutReason::SizeInstead);
    }
    if let Some(choices) = &found.choices {
        knob.retain(choices);
    }
    // Where the plan says what it is, that is what it is in a run.
    if knob.default.is_none() {
        knob.set_default(&setting.read(&found.value));
    }
    if knob.values.len() < 2 {
        return Err(LeftOutReason::OneValue);
    }
    let files = found.files.iter();
    Ok(files.map(|file| file.display().to_string()).collect())
}

/// A knob as it is kept, with the files of the kernel that hold it.
pub(super) fn recorded(knob: Knob, files: Vec<String>) -> record::Knob {
    record::Knob {
        default: knob.default.unwrap_or(0),
        reach: match knob.reach {
            Reach::RunTime => KnobReach::RunTime,
            Reach::Restart => KnobReach::Restart,
            Reach::Host => KnobReach::Host,
            Reach::Client => KnobReach::Client,
        },
        needs_start: knob.reach == Reach::Host && knob.needs_start(),
        files,
        versions: knob.versions.map(|versions| versions.to_string()),
        name: knob.name,
        group: knob.group,
        key: knob.key,
        text: knob.text,
        values: knob.values,
        ordered: knob.ordered,
        less_durable: knob.less_durable,
        risk: knob.risk,
        documentation: knob.documentation,
    }
}

#[cfg(test)]
mod tests;
