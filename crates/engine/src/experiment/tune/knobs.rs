//! Selects the knobs to try: those that the server and its machine have and that have an effect
//! there.

mod reported;

use crate::context::Context;
use crate::deployment::choice;
use crate::environment::{Environment, ServerHome};
use crate::error::{Error, Kind, OrFault};
use crate::run::host_settings;
use dyno_plan::host_setting::HostSetting;
use dyno_plan::knobs::versions::{Version, version};
use dyno_plan::knobs::{Knob, Machine, Need, RUNTIME_PARAMETERS, Reach};
use dyno_plan::model::ServerKind;
use dyno_plan::task::Task;
use dyno_plan::topology::Topology;
use dyno_plan::units::Bytes;
use dyno_record::experiment::{self as record, Experiment, KnobReach, LeftOutKnob, LeftOutReason};
use dyno_record::model::ServerRecord;
use dyno_servers::{ServerProgram, program_version};
use reported::Reported;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The requested knobs of an experiment.
pub(super) fn wanted(document: &Experiment) -> Result<Vec<Knob>, Error> {
    let knobs = document.options.knobs.clone().unwrap_or_default();
    serde_json::from_value(knobs)
        .or_fault(Kind::BadInput, || "the experiment has no valid option `knobs`")
}

/// Knobs as an option of an experiment.
pub(super) fn as_option(wanted: &[Knob]) -> Option<serde_json::Value> {
    Some(serde_json::to_value(wanted).expect("it is plain data"))
}

/// Facts about the servers and their machine.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Facts {
    pub(super) version: Option<Version>,
    has_replica_set: Option<bool>,
    /// Of a server that is started here.
    has_swap: Option<bool>,
    has_numa_nodes: Option<bool>,
}

impl Facts {
    /// Facts known before the first run.
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

    /// Facts from a run's server record.
    pub(super) fn reported(server: &ServerRecord) -> Facts {
        let topology = server.topology.as_deref();
        Facts {
            version: server.version.as_deref().and_then(version),
            has_replica_set: topology.map(|topology| topology != "standalone"),
            ..Facts::default()
        }
    }

    /// Why a knob is not tried, if known.
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

/// Program version of a plan's server on this machine.
fn planned_version(task: &Task, environment: &Environment) -> Option<Version> {
    let server = &task.plan.server;
    if server.kind != ServerKind::Mongod || environment.home != ServerHome::Here {
        return None;
    }
    let found = choice::mongod(server.mongod.as_deref(), environment).ok()?;
    let program = program_version(ServerProgram::Mongod, &found.program).ok()?;
    version(&program.version)
}

/// Removes knobs that cannot apply to this server.
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

/// Notes the knobs that are left out, and why.
pub(super) fn note(left_out: &[LeftOutKnob], context: Context<'_>) {
    for knob in left_out {
        context.note(in_words(knob));
    }
}

/// Message for a knob that is left out.
pub(super) fn in_words(knob: &LeftOutKnob) -> String {
    let why = match knob.reason {
        Some(LeftOutReason::Version) => "this version of the server does not have it",
        Some(LeftOutReason::NoReplicaSet) => "it affects only replica sets",
        Some(LeftOutReason::NoSwap) => "this machine has no swap",
        Some(LeftOutReason::OneNumaNode) => "this machine has one NUMA node",
        Some(LeftOutReason::OneValue) => "this machine supports only one of its values",
        Some(LeftOutReason::SizeInstead) => {
            "this machine has a size instead of this share, and the size would be lost"
        }
        Some(LeftOutReason::SeveralValues) => "the server has several values for this single knob",
        Some(LeftOutReason::LessDurable) => {
            "it makes acknowledged writes less durable than now; allow it with `--allow durability`"
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

/// Fails if no knob is left.
pub(super) fn check_some(knobs: &[Knob], left_out: &[LeftOutKnob]) -> Result<(), Error> {
    if !knobs.is_empty() {
        return Ok(());
    }
    let reasons: Vec<String> = left_out.iter().map(in_words).collect();
    let text = format!("no knob is left to try: {}", reasons.join("; "));
    Err(Error::new(Kind::BadInput, text).with_hint("choose others with `--knobs`"))
}

/// Machine facts for the ranges of knobs, and whether all tasks run their servers on it.
pub(super) fn machine(tasks: &[(String, Task)]) -> Machine {
    let environment = dyno_observe::environment::capture(None);
    let is_here = |task: &Task| task.remote.is_none() && task.plan.fleet.is_none();
    Machine {
        memory_bytes: environment.memory_bytes.unwrap_or_default(),
        cores: u32::try_from(environment.cpus.unwrap_or(1)).unwrap_or(u32::MAX),
        has_servers: tasks.iter().all(|(_, task)| is_here(task)),
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
    let plan = dyno_plan::file::recorded(&task.plan);
    let own = knobs.iter_mut().filter(|knob| knob.reach != Reach::RunTime && knob.text.is_none());
    for knob in own {
        match plan.pointer(&format!("/{}", knob.key.replace('.', "/"))) {
            Some(serde_json::Value::String(text)) => put(knob, text),
            Some(serde_json::Value::Null) | None => {}
            Some(other) => put(knob, &other.to_string()),
        }
    }
}

/// The default of `mongod`, in seconds.
const CHECKPOINT_S: &str = "60";

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

/// Adds the caches of these plans to the shipped knob, and removes sizes that do not fit into the
/// memory for this number of servers. Leaves out a knob with only one value.
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
        // The servers' actual cache is better known than the default of a single server.
        knob.default = knob.default.filter(|_| caches.iter().any(Option::is_none));
        knob.retain(&fitting);
        caches.iter().flatten().for_each(|cache| knob.add(cache));
        let is_one = knob.values.len() < 2;
        left_out.extend(is_one.then(|| left(knob, LeftOutReason::OneValue)));
        !is_one
    });
    left_out
}

/// Makes the servers' actual cache the default of its knob.
pub(super) fn with_cache(knobs: &mut [Knob], cache: Option<&str>) {
    let own = knobs.iter_mut().filter(|knob| knob.key == CACHE);
    own.zip(cache).for_each(|(knob, cache)| knob.set_default(cache));
}

/// Adds the parameter value of each plan's first server to a knob. Removes values that make
/// acknowledged writes less durable on any server, unless they are allowed. Returns whether
/// anything is left to try.
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

/// Checkpoint interval of a server without a journal, where acknowledged writes become durable with
/// the next checkpoint.
pub(super) fn unjournaled_checkpoints(server: &ServerRecord) -> Option<&str> {
    let mut names = ["journal", "storage.journal.enabled"].into_iter();
    let is_off = |name| server.settings.get(name).is_some_and(|own| own == "false");
    let interval_s = server.settings.get("parameter.syncdelay");
    names.any(is_off).then(|| interval_s.map_or(CHECKPOINT_S, String::as_str))
}

/// Like [`resolve_parameter`], for the checkpoint intervals of servers without a journal.
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

/// Records values removed as less durable. Returns whether anything is left to try.
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

/// Suggests similar names, found by `near`, for typed parameters that no server has.
pub(super) fn find_near(left_out: &mut [LeftOutKnob], near: impl Fn(&str) -> Option<String>) {
    for knob in left_out {
        let typed = knob.key.strip_prefix(RUNTIME_PARAMETERS);
        let is_missing = knob.reason == Some(LeftOutReason::NotThere);
        let typed = typed.filter(|name| is_missing && *name == knob.name);
        knob.near = typed.and_then(&near);
    }
}

/// Refuses knobs that this kind of server cannot have, and machine settings without the right to
/// change them.
pub(super) fn check(knobs: &[Knob], task: &Task) -> Result<(), Error> {
    let refuse = |text: String, hint: &str| Err(Error::new(Kind::BadInput, text).with_hint(hint));
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
        return refuse(text, &hint);
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

/// Finds a knob's setting on this machine. Its current value becomes the default, and unsupported
/// values are removed.
///
/// # Errors
/// The reason why the knob cannot be used here.
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
    // A value from the plan applies during a run.
    if knob.default.is_none() {
        knob.set_default(&setting.read(&found.value));
    }
    if knob.values.len() < 2 {
        return Err(LeftOutReason::OneValue);
    }
    Ok(found.files.iter().map(|file| file.display().to_string()).collect())
}

/// A knob for the record, with the kernel files that hold it.
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
