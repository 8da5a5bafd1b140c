//! Knobs: keys of a plan with the values that `dyno tune` tries, from files and from the command
//! line. A knob is data: its key determines how it is set, and the machine limits the range of its
//! values.

mod durability;
mod file;
mod range;
pub mod versions;

pub use file::{Need, schema};

use crate::error::PlanError;
use crate::host_setting::HostSetting;
use crate::names::choices;
use crate::problem::Problem;
use crate::request::Keys;
use crate::text;
use durability::{decides_durability, less_durable, mark_less_durable};
use file::{KnobPlan, built_in, parse};
use range::{amount, in_order, number, range, written};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;
use versions::Versions;

/// Keys below this one are set while a server runs.
pub const RUNTIME_PARAMETERS: &str = "server.runtime_parameters.";

/// Keys below this one are parameters for the start of a server.
pub const PARAMETERS: &str = "server.parameters.";

/// Keys below this one are settings of the server's machine.
pub const HOST_SETTINGS: &str = "server.host_settings.";

/// Options of the connection string for servers that are started.
pub const CONNECTION_OPTIONS: &str = "server.connection_options";

/// The parameter of a running `mongod` with options of its storage engine.
pub const ENGINE_CONFIGURATION: &str = "wiredTigerEngineRuntimeConfig";

/// Largest number of values of a knob.
const MOST_VALUES: usize = 24;

/// Machine properties that limit knob ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    pub memory_bytes: u64,
    pub cores: u32,
    /// Whether the servers run on this machine; properties of other machines are unknown.
    pub has_servers: bool,
}

choices! {
    /// How a knob is set.
    Reach {
        /// By a command to a running server.
        RunTime = "run-time", "while the server runs";
        /// By a restart of the server.
        Restart = "restart", "by a restart of the server";
        /// By the kernel of the server's machine.
        Host = "host", "in the kernel of the server's machine";
        /// By the clients.
        Client = "client", "by the clients";
    }
}

impl Reach {
    /// How a key of the plan is set.
    fn of(key: &str) -> Reach {
        if key.starts_with(RUNTIME_PARAMETERS) {
            Reach::RunTime
        } else if key.starts_with(HOST_SETTINGS) {
            Reach::Host
        } else if key.starts_with("server.") {
            Reach::Restart
        } else {
            Reach::Client
        }
    }
}

/// A key of the plan and the values to try.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Knob {
    pub name: String,
    pub group: String,
    /// The key of the plan that it sets.
    pub key: String,
    /// Value of the key, with `{}` as the placeholder of the knob's value; the knob's value alone if
    /// absent.
    pub text: Option<String>,
    /// In their order if they have one.
    pub values: Vec<String>,
    /// Index of the default value, if it is known.
    pub default: Option<usize>,
    /// Whether the values have an order.
    pub ordered: bool,
    pub reach: Reach,
    /// Requirement for an effect.
    pub needs: Option<Need>,
    /// Server versions that support it; all if absent.
    #[schemars(with = "Option<String>")]
    pub versions: Option<Versions>,
    /// Values that make acknowledged writes less durable, or might.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub less_durable: Vec<String>,
    /// Kernel files that hold a setting of the machine, once they are found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Possible harm.
    pub risk: Option<String>,
    /// Where it is described.
    pub documentation: Option<String>,
}

impl Knob {
    /// A knob of the group `own` that sets a key to its values.
    pub fn new(name: &str, key: String, values: Vec<String>) -> Knob {
        Knob {
            name: name.to_owned(),
            group: "own".to_owned(),
            reach: Reach::of(&key),
            key,
            text: None,
            ordered: values.iter().all(|value| number(value).is_some()),
            values: in_order(values),
            default: None,
            needs: None,
            versions: None,
            less_durable: Vec::new(),
            files: Vec::new(),
            risk: None,
            documentation: None,
        }
    }

    /// Index of the default value; the first one if it is unknown.
    pub fn default_place(&self) -> usize {
        self.default.unwrap_or(0)
    }

    /// The default value.
    pub fn default_value(&self) -> &str {
        self.values.get(self.default_place()).map_or("", String::as_str)
    }

    /// The value of the key for a value of the knob.
    pub fn set(&self, value: &str) -> String {
        match &self.text {
            Some(text) => text.replace("{}", value),
            None => value.to_owned(),
        }
    }

    /// The parameter of a running server that it sets directly, if any.
    pub fn runtime_parameter(&self) -> Option<&str> {
        self.key.strip_prefix(RUNTIME_PARAMETERS)
    }

    /// The machine setting that it sets, if any.
    pub fn host_setting(&self) -> Option<HostSetting> {
        HostSetting::from_name(self.key.strip_prefix(HOST_SETTINGS)?)
    }

    /// Whether a new value needs a restart of the server.
    pub fn needs_start(&self) -> bool {
        self.reach == Reach::Restart || self.host_setting().is_some_and(HostSetting::needs_start)
    }

    /// Removes values that the machine does not support.
    pub fn retain(&mut self, choices: &[String]) {
        let default = self.default.and_then(|place| self.values.get(place).cloned());
        self.values.retain(|value| choices.contains(value));
        self.default = None;
        if let Some(default) = default {
            self.set_default(&default);
        }
    }

    /// Makes this value the default. A new value is inserted in order.
    pub fn set_default(&mut self, value: &str) {
        self.default = Some(self.place_of(value));
    }

    /// Inserts a value; the default stays.
    pub fn add(&mut self, value: &str) {
        let default = self.default.map(|place| self.values[place].clone());
        self.place_of(value);
        if let Some(default) = default {
            self.set_default(&default);
        }
    }

    /// Index of a value; a new value is inserted in order.
    fn place_of(&mut self, value: &str) -> usize {
        let same = |known: &String| {
            known == value || number(known).is_some_and(|one| Some(one) == number(value))
        };
        self.values.iter().position(same).unwrap_or_else(|| {
            let own = number(value);
            let behind =
                |known: &String| number(known).zip(own).is_some_and(|(known, own)| known > own);
            let place = self.values.iter().position(behind).unwrap_or(self.values.len());
            self.values.insert(place, value.to_owned());
            place
        })
    }
}

/// Keys of the plan for these knob values. If several knobs share a key, their texts are joined:
/// options of the connection string by `&`, others by commas.
pub fn keys_of<'a>(settings: impl Iterator<Item = (&'a Knob, &'a str)>) -> Keys {
    let mut keys = Keys::new();
    for (knob, value) in settings {
        let text = knob.set(value);
        let sign = if knob.key == CONNECTION_OPTIONS { '&' } else { ',' };
        keys.entry(knob.key.clone())
            .and_modify(|all| *all = format!("{all}{sign}{text}"))
            .or_insert(text);
    }
    keys
}

/// Permitted changes in addition to parameters of running servers and clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Settings that need a restart of the server.
    pub restart: bool,
    /// Settings of the server's machine.
    pub host: bool,
    /// Settings that make acknowledged writes less durable.
    pub durability: bool,
}

/// The requested knobs: groups, files, and parameters of running servers or machine settings with
/// their values, `NAME=V1,V2`. Without a request, all permitted groups except `client`.
///
/// # Errors
/// A name that is neither a group nor a file, an invalid file, a key that two knobs set in
/// different ways, or a request without any permitted knob.
pub fn find(asked: &[String], allowed: Allowed, machine: Machine) -> Result<Vec<Knob>, PlanError> {
    let mut found = Vec::new();
    for text in asked {
        if let Some((name, values)) = text.split_once('=') {
            found.push(typed(name, values, allowed)?);
            continue;
        }
        let plans = if text.contains('/') || text.ends_with(".toml") {
            let path = Path::new(text);
            let content = text::read(path).map_err(PlanError::unreadable(path))?;
            let plans = parse(&content, text)?;
            if let Some(problem) = plans.iter().find_map(|plan| crate::file::unknown_key(&plan.key))
            {
                return Err(invalid(problem));
            }
            plans
        } else {
            let own = built_in().into_iter().filter(|knob| knob.group == *text);
            own.collect()
        };
        if plans.is_empty() {
            return Err(no_group(text));
        }
        let before = found.len();
        for plan in plans {
            found.extend(resolved(plan, allowed, machine)?);
        }
        if found.len() == before {
            return Err(not_allowed(text));
        }
    }
    if asked.is_empty() {
        for plan in built_in().into_iter().filter(|knob| knob.group != CLIENT) {
            found.extend(resolved(plan, allowed, machine)?);
        }
    }
    check(&found)?;
    Ok(found)
}

/// Group of knobs for clients, which must be requested explicitly: more clients are a different
/// load, not a better server.
const CLIENT: &str = "client";

fn invalid(problem: Problem) -> PlanError {
    PlanError::Knobs(vec![problem])
}

fn no_group(text: &str) -> PlanError {
    let mut names: Vec<String> = built_in().into_iter().map(|knob| knob.group).collect();
    names.dedup();
    let hint = format!(
        "use one of the groups `{}`, a file with `/` or `.toml` in its name, or a server parameter \
            or machine setting with its values, such as `syncdelay=20,60`",
        names.join("`, `")
    );
    invalid(Problem::new(format!("unknown knob group `{text}`")).with_hint(hint))
}

/// A typed parameter of a running server or machine setting, with its values.
fn typed(name: &str, values: &str, allowed: Allowed) -> Result<Knob, PlanError> {
    let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
    let group = match HostSetting::from_name(name) {
        Some(_) => HOST_SETTINGS,
        None => RUNTIME_PARAMETERS,
    };
    let mut knob = Knob::new(name, format!("{group}{name}"), values);
    if !is_allowed(&knob.key, allowed) {
        return Err(not_allowed(&format!("{name}={}", knob.values.join(","))));
    }
    let known = built_in().into_iter().find(|own| own.key == knob.key);
    let weaker = known.map(|knob| knob.less_durable).unwrap_or_default();
    mark_less_durable(&mut knob, &weaker, name, allowed)?;
    check_values(&knob)?;
    Ok(knob)
}

fn not_allowed(what: &str) -> PlanError {
    let problem = Problem::new(format!("changing `{what}` is not allowed"));
    invalid(problem.with_hint(
        "use `--allow restart` for settings that need a server restart, `--allow host` for \
            settings of this machine, `--allow host,restart` for machine settings that need a \
            restart, such as `readahead`, `--allow durability` for settings that make writes less \
            durable",
    ))
}

/// Whether a key may be changed, apart from durability.
fn is_allowed(key: &str, allowed: Allowed) -> bool {
    let setting = key.strip_prefix(HOST_SETTINGS).and_then(HostSetting::from_name);
    match Reach::of(key) {
        Reach::RunTime | Reach::Client => true,
        Reach::Restart => allowed.restart,
        Reach::Host => {
            let needs_start = setting.is_some_and(HostSetting::needs_start);
            allowed.host && (allowed.restart || !needs_start)
        }
    }
}

/// A knob with its values; `None` if it is not permitted.
fn resolved(plan: KnobPlan, allowed: Allowed, machine: Machine) -> Result<Option<Knob>, PlanError> {
    if decides_durability(&plan) && !allowed.durability {
        // A knob that lists its weaker values is skipped; any other is refused.
        let is_reported = !plan.less_durable.is_empty();
        return if is_reported { Ok(None) } else { Err(less_durable(&plan.key)) };
    }
    if !is_allowed(&plan.key, allowed) {
        return Ok(None);
    }
    let mut values = match (&plan.from, &plan.to, plan.steps) {
        (Some(from), Some(to), Some(steps)) if plan.values.is_empty() => {
            range(&plan, from, to, steps, machine)?
        }
        (None, None, None) if plan.most.is_none() => in_order(plan.values.clone()),
        _ => {
            let text = format!(
                "knob `{}` has neither `values` alone nor `from`, `to` and `steps`",
                plan.name
            );
            return Err(invalid(Problem::new(text)));
        }
    };
    values.retain(|value| allowed.durability || !plan.less_durable.contains(value));
    if values.len() < 2 {
        return Ok(None);
    }
    // If a knob does not list its weaker values itself, all of them may be weaker.
    let weaker = match decides_durability(&plan) && plan.less_durable.is_empty() {
        true => values.clone(),
        false => plan.less_durable,
    };
    let is_switch = values.iter().all(|value| ["false", "true"].contains(&value.as_str()));
    let mut knob = Knob {
        group: plan.group,
        text: plan.text,
        ordered: plan.ordered && !is_switch,
        needs: plan.needs,
        versions: plan.versions,
        risk: plan.risk,
        documentation: plan.documentation,
        ..Knob::new(&plan.name, plan.key, values)
    };
    let key = knob.key.clone();
    mark_less_durable(&mut knob, &weaker, &key, allowed)?;
    match plan.default {
        Some(default) => {
            let own = amount(&default, machine)
                .map(|(value, is_size)| written(value, is_size, value.fract() == 0.0));
            knob.set_default(&own.unwrap_or(default));
        }
        None if matches!(knob.reach, Reach::RunTime | Reach::Host) && knob.text.is_none() => {}
        None => {
            let text =
                format!("knob `{}` needs a `default` because no server reports it", knob.name);
            return Err(invalid(Problem::new(text)));
        }
    }
    check_values(&knob)?;
    Ok(Some(knob))
}

fn check_values(knob: &Knob) -> Result<(), PlanError> {
    let mut sorted = knob.values.clone();
    sorted.sort_unstable();
    sorted.dedup();
    let text = if sorted.len() < knob.values.len() {
        "has a value twice"
    } else if !(2..=MOST_VALUES).contains(&knob.values.len()) {
        "needs 2 to 24 values"
    } else if knob.values.iter().any(String::is_empty) || knob.name.is_empty() {
        "has an empty name or value"
    } else if knob.text.as_ref().is_some_and(|text| !text.contains("{}")) {
        "has a `text` without `{}`"
    } else if knob.reach == Reach::Host && knob.host_setting().is_none() {
        "has a key that is not a machine setting"
    } else if let Some(setting) = knob.host_setting()
        && knob.values.iter().any(|value| setting.written(value).is_none())
    {
        "has a value that its machine setting does not support"
    } else {
        return Ok(());
    };
    Err(invalid(Problem::new(format!("knob `{}` {text}", knob.name))))
}

/// Checks that the knobs do not contradict each other.
fn check(knobs: &[Knob]) -> Result<(), PlanError> {
    for (place, knob) in knobs.iter().enumerate() {
        let before = &knobs[..place];
        if before.iter().any(|other| other.name == knob.name) {
            let text = format!("two knobs have the name `{}`", knob.name);
            return Err(invalid(Problem::new(text)));
        }
        let whole = |knob: &Knob| knob.text.is_none();
        let same = |other: &&Knob| other.key == knob.key && (whole(other) || whole(knob));
        if let Some(other) = before.iter().find(same) {
            let text =
                format!("`{}` is set by the knobs `{}` and `{}`", knob.key, other.name, knob.name);
            return Err(invalid(Problem::new(text)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
