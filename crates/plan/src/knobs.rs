//! Knobs: keys of a plan with the values that `dyno tune` tries, from files and from the command line. A knob is data: its key
//! says how it is set, its values are few, and what a machine has decides their range.

use crate::error::PlanError;
use crate::file::FileError;
use crate::problem::Problem;
use crate::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The knobs that are part of the program, with the name of their file.
const BUILT_IN: (&str, &str) = (
    "mongod",
    include_str!("../../../workloads/knobs/mongod.toml"),
);

/// Keys below this one are set while a server runs.
pub const RUNTIME_PARAMETERS: &str = "server.runtime_parameters.";

/// The parameter of a running `mongod` that holds options of its storage engine.
pub const ENGINE_CONFIGURATION: &str = "wiredTigerEngineRuntimeConfig";

/// Most values of a knob.
const MOST_VALUES: usize = 24;

/// What of the machine decides about ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Cores.
    pub cores: u32,
}

/// How a knob is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// By a command to a server that runs.
    RunTime,
    /// By a start of the server.
    Restart,
    /// By what clients do.
    Client,
}

/// A knob whose values are known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knob {
    /// Its name.
    pub name: String,
    /// Its group.
    pub group: String,
    /// The key of the plan that it sets.
    pub key: String,
    /// The value of the key, with `{}` where that of the knob stands; the value alone when absent.
    pub text: Option<String>,
    /// The values, in their order if they have one.
    pub values: Vec<String>,
    /// Number of the value that it has unless it is set, if that is known.
    pub default: Option<usize>,
    /// Whether the values have an order.
    pub ordered: bool,
    /// How it is set.
    pub reach: Reach,
    /// What it can break.
    pub risk: Option<String>,
    /// Where it is described.
    pub documentation: Option<String>,
}

impl Knob {
    /// The value of its key for one of its values.
    pub fn set(&self, value: &str) -> String {
        match &self.text {
            Some(text) => text.replace("{}", value),
            None => value.to_owned(),
        }
    }

    /// The parameter of a running server that it sets by itself, if it does.
    pub fn runtime_parameter(&self) -> Option<&str> {
        self.key.strip_prefix(RUNTIME_PARAMETERS)
    }

    /// Makes this value the one that it has unless it is set. One that is not among its values is put there, where its
    /// order is.
    pub fn set_default(&mut self, value: &str) {
        let same = |known: &String| {
            known == value || number(known).is_some_and(|one| Some(one) == number(value))
        };
        self.default = self.values.iter().position(same).or_else(|| {
            let own = number(value);
            let behind = |known: &String| {
                number(known)
                    .zip(own)
                    .is_some_and(|(known, own)| known > own)
            };
            let place = self
                .values
                .iter()
                .position(behind)
                .unwrap_or(self.values.len());
            self.values.insert(place, value.to_owned());
            Some(place)
        });
    }
}

/// What may be changed besides parameters of running servers and of clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// What needs another start of the server.
    pub restart: bool,
    /// What makes acknowledged writes less durable.
    pub durability: bool,
}

/// A file of knobs.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct KnobFile {
    /// The knobs.
    knobs: Vec<KnobPlan>,
}

/// A knob as a file has it.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct KnobPlan {
    /// Its name in tables and charts.
    name: String,
    /// A group by which it can be chosen.
    group: String,
    /// The key of the plan that it sets: `server.runtime_parameters.NAME` for what a running server takes, another key of
    /// `server` for what needs another start of it, or one of `client`.
    key: String,
    /// The value of the key, with `{}` where the value of the knob stands; the value alone when absent. Texts of several knobs
    /// for one key are joined by commas.
    text: Option<String>,
    /// Its values.
    #[serde(default)]
    values: Vec<String>,
    /// Lowest value, in place of `values`: a number, a size such as `256MiB`, `memory` or `cores`, the latter two also with a
    /// factor or a divisor, such as `memory/4`.
    from: Option<String>,
    /// Highest value, as `from`.
    to: Option<String>,
    /// Number of values from the lowest to the highest; 2 to 24.
    #[schemars(range(min = 2, max = 24))]
    steps: Option<usize>,
    /// Whether the values lie at equal distances, or at equal ratios.
    #[serde(default)]
    scale: Scale,
    /// The value that it has unless it is set, as `from`. Of a parameter of a running server it is read there when absent.
    default: Option<String>,
    /// Whether the values have an order.
    #[serde(default = "yes")]
    ordered: bool,
    /// Values that make acknowledged writes less durable.
    #[serde(default)]
    less_durable: Vec<String>,
    /// What it can break.
    risk: Option<String>,
    /// Where it is described.
    documentation: Option<String>,
}

fn yes() -> bool {
    true
}

/// How values lie between the lowest and the highest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Scale {
    /// At equal ratios.
    #[default]
    Log,
    /// At equal distances.
    Linear,
}

/// The JSON schema of files of knobs.
pub fn schema() -> serde_json::Value {
    serde_json::to_value(schemars::schema_for!(KnobFile)).expect("a schema is plain data")
}

/// The groups of the knobs that are part of the program, each with the names of its knobs.
pub fn groups() -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for knob in built_in() {
        match groups.iter_mut().find(|(name, _)| *name == knob.group) {
            Some((_, names)) => names.push(knob.name),
            None => groups.push((knob.group, vec![knob.name])),
        }
    }
    groups
}

/// The knobs that are asked for: groups, files, and parameters of running servers with their values, `NAME=V1,V2`. Without any
/// all groups but `client`, as far as they are allowed.
///
/// # Errors
/// What is no group and no file, files that are not valid, a key that two knobs set in different ways, and what is asked for of which
/// nothing is allowed.
pub fn find(asked: &[String], allowed: Allowed, machine: Machine) -> Result<Vec<Knob>, PlanError> {
    let mut found = Vec::new();
    for text in asked {
        if let Some((name, values)) = text.split_once('=') {
            found.push(typed(name, values, allowed)?);
            continue;
        }
        let plans = if text.contains('/') || text.ends_with(".toml") {
            let path = Path::new(text);
            let content =
                std::fs::read_to_string(path).map_err(|source| PlanError::Unreadable {
                    path: path.to_owned(),
                    source,
                })?;
            parse(&content, text)?
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
            let problem = Problem::new(format!("nothing of `{text}` may be changed"));
            return Err(invalid(problem.with_hint(
                "give `--allow restart` for what needs another start of the server, `--allow durability` for what makes writes less durable",
            )));
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

/// Group of what clients do: more of them are another load and no better server, so that it must be named.
const CLIENT: &str = "client";

fn built_in() -> Vec<KnobPlan> {
    let (name, text) = BUILT_IN;
    let knobs = parse(text, name);
    debug_assert!(knobs.is_ok(), "{knobs:?}");
    knobs.unwrap_or_default()
}

fn parse(text: &str, origin: &str) -> Result<Vec<KnobPlan>, FileError> {
    let file = toml::from_str::<KnobFile>(text);
    file.map(|file| file.knobs).map_err(|error| FileError {
        origin: origin.to_owned(),
        kind: "file of knobs",
        problems: vec![Problem::new(error.message())],
    })
}

fn invalid(problem: Problem) -> PlanError {
    PlanError::Knobs(vec![problem])
}

fn no_group(text: &str) -> PlanError {
    let names: Vec<String> = groups().into_iter().map(|(name, _)| name).collect();
    let hint = format!(
        "the groups are `{}`; a file has a name with `/` or `.toml`, and a parameter of a running server its values, such as `syncdelay=20,60`",
        names.join("`, `")
    );
    invalid(Problem::new(format!("`{text}` is no group of knobs")).with_hint(hint))
}

/// A parameter of a running server with its values, as it is typed.
fn typed(name: &str, values: &str, allowed: Allowed) -> Result<Knob, PlanError> {
    let values: Vec<String> = values
        .split(',')
        .map(|value| value.trim().to_owned())
        .collect();
    let key = format!("{RUNTIME_PARAMETERS}{name}");
    let known = built_in().into_iter().find(|knob| knob.key == key);
    let weaker = known.map(|knob| knob.less_durable).unwrap_or_default();
    if let Some(value) = values
        .iter()
        .find(|value| weaker.contains(value) && !allowed.durability)
    {
        return Err(less_durable(&format!("{name}={value}")));
    }
    let knob = Knob {
        name: name.to_owned(),
        group: "own".to_owned(),
        key,
        text: None,
        ordered: values.iter().all(|value| number(value).is_some()),
        values: in_order(values),
        default: None,
        reach: Reach::RunTime,
        risk: None,
        documentation: None,
    };
    check_values(&knob)?;
    Ok(knob)
}

/// Keys whose values decide whether acknowledged writes last, whatever a file says of them.
const DURABILITY: [&str; 4] = [
    "server.durable_writes",
    "server.journal",
    "server.journal_commit_interval",
    "server.connection_options",
];

fn less_durable(what: &str) -> PlanError {
    let problem = Problem::new(format!(
        "`{what}` may make acknowledged writes less durable"
    ));
    invalid(problem.with_hint("give `--allow durability` if that is what you want"))
}

/// A knob with its values; `None` if it is not allowed.
fn resolved(plan: KnobPlan, allowed: Allowed, machine: Machine) -> Result<Option<Knob>, PlanError> {
    let reach = if plan.key.starts_with(RUNTIME_PARAMETERS) {
        Reach::RunTime
    } else if plan.key.starts_with("server.") {
        Reach::Restart
    } else {
        Reach::Client
    };
    if DURABILITY.contains(&plan.key.as_str()) && !allowed.durability {
        return Err(less_durable(&plan.key));
    }
    if reach == Reach::Restart && !allowed.restart {
        return Ok(None);
    }
    let mut values = match (&plan.from, &plan.to, plan.steps) {
        (Some(from), Some(to), Some(steps)) if plan.values.is_empty() => {
            range(&plan, from, to, steps, machine)?
        }
        (None, None, None) => in_order(plan.values.clone()),
        _ => {
            let text = format!(
                "knob `{}` has neither `values` alone nor `from`, `to` and `steps`",
                plan.name
            );
            return Err(invalid(Problem::new(text)));
        }
    };
    if !allowed.durability {
        values.retain(|value| !plan.less_durable.contains(value));
    }
    if values.len() < 2 {
        return Ok(None);
    }
    let mut knob = Knob {
        name: plan.name,
        group: plan.group,
        key: plan.key,
        text: plan.text,
        values,
        default: None,
        ordered: plan.ordered,
        reach,
        risk: plan.risk,
        documentation: plan.documentation,
    };
    match plan.default {
        Some(default) => {
            let own = amount(&default, machine)
                .map(|(value, is_size)| written(value, is_size, value.fract() == 0.0));
            knob.set_default(&own.unwrap_or(default));
        }
        None if knob.reach == Reach::RunTime && knob.text.is_none() => {}
        None => {
            let text = format!(
                "knob `{}` has no `default`, and no server tells it",
                knob.name
            );
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
    } else {
        return Ok(());
    };
    Err(invalid(Problem::new(format!(
        "knob `{}` {text}",
        knob.name
    ))))
}

/// Whether the knobs fit together.
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
            let text = format!(
                "`{}` is set by the knobs `{}` and `{}`",
                knob.key, other.name, knob.name
            );
            return Err(invalid(Problem::new(text)));
        }
    }
    Ok(())
}

/// Numbers ascending, and all else as it is.
fn in_order(mut values: Vec<String>) -> Vec<String> {
    if values.iter().all(|value| number(value).is_some()) {
        values.sort_by(|one, other| {
            number(one)
                .unwrap_or(0.0)
                .total_cmp(&number(other).unwrap_or(0.0))
        });
    }
    values
}

/// A number, also one of bytes.
fn number(text: &str) -> Option<f64> {
    let plain = text.parse::<f64>().ok().filter(|value| value.is_finite());
    plain.or_else(|| Some(text.parse::<Bytes>().ok()?.0 as f64))
}

/// The values between two, without those that are the same.
fn range(
    plan: &KnobPlan,
    from: &str,
    to: &str,
    steps: usize,
    machine: Machine,
) -> Result<Vec<String>, PlanError> {
    let ends = amount(from, machine).zip(amount(to, machine));
    let fits = |((from, _), (to, _)): &((f64, bool), (f64, bool))| {
        from < to && (plan.scale == Scale::Linear || *from > 0.0)
    };
    let Some(((from, size), (to, other_size))) = ends.filter(fits) else {
        let text = format!("knob `{}` has no range from `{from}` to `{to}`", plan.name);
        let hint = "two numbers, the lower one first, such as `1` and `cores*4`, or `256MiB` and `memory/2`";
        return Err(invalid(Problem::new(text).with_hint(hint)));
    };
    if !(2..=MOST_VALUES).contains(&steps) {
        let text = format!("knob `{}` needs 2 to {MOST_VALUES} `steps`", plan.name);
        return Err(invalid(Problem::new(text)));
    }
    let last = (steps - 1) as f64;
    let at = |step: usize| match plan.scale {
        Scale::Linear => from + (to - from) * step as f64 / last,
        Scale::Log => from * (to / from).powf(step as f64 / last),
    };
    let is_whole = from.fract() == 0.0 && to.fract() == 0.0;
    let mut values: Vec<String> = (0..steps)
        .map(|step| written(at(step), size || other_size, is_whole))
        .collect();
    values.dedup();
    Ok(values)
}

/// A number, and whether it is one of bytes.
fn amount(text: &str, machine: Machine) -> Option<(f64, bool)> {
    let text = text.trim();
    let of_machine = |rest: &str, value: f64| match rest.split_at_checked(1) {
        None => Some(value),
        Some(("*", factor)) => Some(value * factor.parse::<f64>().ok()?),
        Some(("/", divisor)) => Some(value / divisor.parse::<f64>().ok()?),
        Some(_) => None,
    };
    if let Some(rest) = text.strip_prefix("memory") {
        return Some((of_machine(rest, machine.memory_bytes as f64)?, true));
    }
    if let Some(rest) = text.strip_prefix("cores") {
        return Some((of_machine(rest, f64::from(machine.cores))?, false));
    }
    match text.parse::<f64>() {
        Ok(value) => Some((value, false)).filter(|_| value.is_finite()),
        Err(_) => Some((text.parse::<Bytes>().ok()?.0 as f64, true)),
    }
}

/// A number, whole or with three decimals at most, or whole mebibytes.
fn written(value: f64, is_size: bool, is_whole: bool) -> String {
    const MEBIBYTE: f64 = 1_048_576.0;
    if is_size {
        format!("{}MiB", (value / MEBIBYTE).round().max(1.0))
    } else if is_whole {
        format!("{}", value.round())
    } else {
        format!("{}", (value * 1e3).round() / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: Machine = Machine {
        memory_bytes: 24 << 30,
        cores: 2,
    };
    const ALL: Allowed = Allowed {
        restart: true,
        durability: true,
    };

    fn knobs(asked: &[&str], allowed: Allowed) -> Result<Vec<Knob>, String> {
        let asked: Vec<String> = asked.iter().map(|text| (*text).to_owned()).collect();
        find(&asked, allowed, MACHINE).map_err(|error| error.to_string())
    }

    #[test]
    fn what_needs_a_restart_or_weakens_writes_must_be_allowed() {
        let all = knobs(&[], ALL).unwrap();
        let safe = knobs(&[], Allowed::default()).unwrap();
        assert!(all.iter().any(|knob| knob.reach == Reach::Restart));
        assert!(safe.iter().all(|knob| knob.reach == Reach::RunTime));
        let journal = |knobs: &[Knob]| {
            let mut own = knobs
                .iter()
                .filter(|knob| knob.key.ends_with("journalCommitInterval"));
            own.next().unwrap().values.clone()
        };
        assert!(journal(&all).contains(&"500".to_owned()));
        assert!(
            !journal(&safe).contains(&"500".to_owned()),
            "{:?}",
            journal(&safe)
        );
        assert!(all.iter().all(|knob| knob.group != CLIENT));
    }

    #[test]
    fn the_machine_decides_the_range() {
        let cache = knobs(&["cache"], ALL).unwrap();
        let sizes: Vec<&str> = cache[0].values.iter().map(String::as_str).collect();
        assert_eq!((sizes[0], *sizes.last().unwrap()), ("256MiB", "12288MiB"));
        let error = knobs(&["cache"], Allowed::default()).unwrap_err();
        assert!(error.contains("--allow restart"), "{error}");
    }

    #[test]
    fn a_parameter_is_typed_with_its_values() {
        let mut knob = knobs(&["syncdelay=120,20"], Allowed::default())
            .unwrap()
            .remove(0);
        assert_eq!(knob.values, ["20", "120"]);
        assert_eq!((knob.default, knob.ordered), (None, true));
        knob.set_default("60.0");
        assert_eq!((knob.values.len(), knob.default), (3, Some(1)));
        knob.set_default("120.0");
        assert_eq!((knob.values.len(), knob.default), (3, Some(2)));
        for (wrong, says) in [
            ("syncdelay=20", "needs 2 to 24 values"),
            ("syncdelay=20,20", "a value twice"),
            ("evictions", "no group of knobs"),
            ("none.toml", "cannot read plan"),
            ("cache", "nothing of `cache`"),
            ("journalCommitInterval=30,300", "less durable"),
        ] {
            let error = knobs(&[wrong], Allowed::default()).unwrap_err();
            assert!(error.contains(says), "{wrong}: {error}");
        }
        let error = knobs(&["checkpoint", "syncdelay=20,60"], ALL).unwrap_err();
        assert!(error.contains("is set by the knobs"), "{error}");
    }

    #[test]
    fn a_file_that_is_not_valid_is_refused_with_its_place() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("own.toml");
        for (text, says) in [
            ("knobs = 1", "not a valid file of knobs"),
            (
                "[[knobs]]\nname='a'\ngroup='g'\nkey='server.cache'\nfrom='1GiB'\nto='1MiB'\nsteps=3\ndefault='1GiB'",
                "no range",
            ),
            (
                "[[knobs]]\nname='a'\ngroup='g'\nkey='server.cache'\nvalues=['1GiB','2GiB']",
                "no `default`",
            ),
            (
                "[[knobs]]\nname='a'\ngroup='g'\nkey='server.cache'\nvalues=['1GiB','2GiB']\nfrom='1'\ndefault='1GiB'",
                "neither",
            ),
            (
                "[[knobs]]\nname='a'\ngroup='g'\nkey='server.runtime_parameters.x'\nvalues=['1','2']\ntext='y'\ndefault='1'",
                "without `{}`",
            ),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = knobs(&[path.to_str().unwrap()], ALL).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
