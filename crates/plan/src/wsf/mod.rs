//! Parameters of the workload `Mongo-ycsb` of Intel's Workload Services Framework, as its scripts read
//! them from the environment, become keys of a plan and YCSB properties.
//!
//! Every parameter of [`VARIABLES`] is honoured, accepted with a warning that says why it has no
//! effect, or refused by name. The environment itself is read elsewhere.

mod numactl;
mod placement;
mod read;
mod table;

#[cfg(test)]
mod tests;

pub use table::{Form, Treatment, VARIABLES, Variable, find};

use crate::builtin;
use crate::model::TracePhase;
use crate::nearest::nearest;
use crate::problem::Problem;
use crate::units::Span;
use crate::ycsb;
use read::Given;
use std::collections::BTreeMap;

/// Test cases of that workload that are built-in plans here.
const CASES: [&str; 7] = [
    "gated",
    "pkm",
    "90read10update",
    "50read50update",
    "30write70read",
    "write",
    "read",
];
/// What runs when nothing names a workload.
const DEFAULT_CASE: &str = "90read10update";
/// Separates folders in `DB_HOSTPATH`.
const FOLDERS: &str = "%20";

/// A value for the plan, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The parameter.
    pub variable: &'static str,
    /// Whether it is given; otherwise this is that workload's default.
    pub given: bool,
    /// YCSB property or dotted key of the plan.
    pub name: &'static str,
    /// Value, in the form that the plan or the property has.
    pub value: String,
}

/// The window in which another program watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceWindow {
    /// Phase that it is in.
    pub phase: TracePhase,
    /// Time from the start of the phase.
    pub from: Span,
    /// Length; to the end of the phase when absent.
    pub length: Option<Span>,
}

/// What the parameters mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WsfSettings {
    /// Name of a built-in plan, or path of a plan or property file.
    pub workload: String,
    /// The parameter that names it; absent if it is named elsewhere, or by nothing.
    pub workload_variable: Option<&'static str>,
    /// Keys of the plan, in the form of [`crate::file::set`].
    pub keys: Vec<Setting>,
    /// YCSB properties.
    pub properties: Vec<Setting>,
    /// Window for a program that watches, if one is given.
    pub trace: Option<TraceWindow>,
    /// What is done differently from what was asked for, one sentence each.
    pub warnings: Vec<String>,
    /// What is good to know, one sentence each.
    pub notes: Vec<String>,
}

/// Maps parameters by their names to settings; other names are left alone. `workload` is what a person
/// has named besides them, which counts more. What is not given has that workload's default where it
/// shapes the load, unless the workload is a plan file (`.toml`), which says all of that itself.
///
/// # Errors
/// All problems: values of a wrong form, and what is not supported here, each with the parameter's name.
pub fn apply(
    variables: &BTreeMap<String, String>,
    workload: Option<&str>,
) -> Result<WsfSettings, Vec<Problem>> {
    let mut mapping = Mapping::default();
    mapping.given = Given::read(variables);
    mapping.choose_workload(workload);
    mapping.pass_on();
    mapping.servers();
    mapping.folders();
    mapping.place();
    mapping.measurement();
    mapping.trace();
    mapping.remarks();
    if !mapping.given.problems.is_empty() {
        return Err(mapping.given.problems);
    }
    Ok(WsfSettings {
        workload: mapping.workload,
        workload_variable: mapping.workload_variable,
        keys: mapping.keys,
        properties: mapping.properties,
        trace: mapping.window,
        warnings: mapping.given.warnings,
        notes: mapping.given.notes,
    })
}

impl WsfSettings {
    /// Adds to each problem of the plan which parameters set what it is about.
    pub fn explain(&self, problems: &mut [Problem]) {
        for problem in problems {
            let is_named = |name: &str| problem.message.contains(&format!("`{name}`"));
            let causes: Vec<String> = (self.keys.iter().chain(&self.properties))
                .filter(|setting| is_named(setting.name) || is_named(plan_key(setting.name)))
                .map(|setting| {
                    let default = if setting.given { "" } else { ", by default" };
                    let (name, variable) = (setting.name, setting.variable);
                    format!("`{name}` comes from `{variable}`{default}")
                })
                .collect();
            if !causes.is_empty() {
                let message = format!("{}; {}", problem.message, causes.join(", "));
                problem.message = message;
            }
        }
    }
}

/// The key of the plan that a YCSB property sets, or the name itself.
fn plan_key(name: &'static str) -> &'static str {
    match ycsb::find(name).map(|property| property.treatment) {
        Some(ycsb::Treatment::Plan(key)) => key,
        _ => name,
    }
}

#[derive(Default)]
struct Mapping {
    given: Given,
    workload: String,
    workload_variable: Option<&'static str>,
    keys: Vec<Setting>,
    properties: Vec<Setting>,
    window: Option<TraceWindow>,
}

impl Mapping {
    fn set(&mut self, variable: &'static str, key: &'static str, value: impl Into<String>) {
        self.keys.push(Setting {
            variable,
            given: self.given.is_given(variable),
            name: key,
            value: value.into(),
        });
    }

    fn choose_workload(&mut self, named: Option<&str>) {
        if let Some(named) = named {
            let reason = "the command line names the workload";
            self.given.unused("TESTCASE", reason);
            self.given.unused("WORKLOAD_FILE", reason);
            self.workload = named.to_owned();
            return;
        }
        let given = &mut self.given;
        let (variable, workload) = match (given.get("TESTCASE"), given.get("WORKLOAD_FILE")) {
            (Some(case), _) => {
                let case = case.to_owned();
                given.unused("WORKLOAD_FILE", "`TESTCASE` names the workload");
                (Some("TESTCASE"), self.test_case(&case))
            }
            (None, Some(file)) if file.eq_ignore_ascii_case("NA") => (None, DEFAULT_CASE.into()),
            (None, Some(file)) => {
                let lower = file.to_ascii_lowercase();
                let is_known = builtin::names().any(|name| name == lower);
                let workload = if is_known { lower } else { file.to_owned() };
                (Some("WORKLOAD_FILE"), workload)
            }
            (None, None) => (None, DEFAULT_CASE.into()),
        };
        (self.workload_variable, self.workload) = (variable, workload);
    }

    /// The plan of a test case, which is the last part of a name such as
    /// `test_static_ycsb_mongodb604_base_90read10update`.
    fn test_case(&mut self, name: &str) -> String {
        let case = name.rsplit('_').next().unwrap_or_default();
        let case = case.to_ascii_lowercase();
        let (reason, hint) = match case.as_str() {
            known if CASES.contains(&known) => return case,
            "iaa" => (
                "it needs the In-Memory Analytics Accelerator".to_owned(),
                "start such a server yourself, and aim at it with `--uri`".to_owned(),
            ),
            "30write60read10insert" => (
                "its proportions add up to 1.1 there, and it is not registered".to_owned(),
                "use `30write70read` with `READ_PROPORTION`, `UPDATE_PROPORTION` and `INSERT_PROPORTION`".to_owned(),
            ),
            unknown => (
                "it ends in no test case".to_owned(),
                match nearest(unknown, CASES) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("the test cases are `{}`", CASES.join("`, `")),
                },
            ),
        };
        self.given.refuse("TESTCASE", &reason, &hint);
        DEFAULT_CASE.into()
    }

    /// Whether what is not given has that workload's default.
    fn has_defaults(&self) -> bool {
        !self.workload.ends_with(".toml")
    }

    /// Parameters that each set one property or one key by themselves.
    fn pass_on(&mut self) {
        for variable in VARIABLES {
            let name = variable.name;
            let value = match (name, self.given.get(name), self.has_defaults()) {
                (_, Some(value), _) => value.to_owned(),
                // The gate has one client and one server there, too.
                ("CLIENT_SERVER_PAIR" | "THREADS", None, true) if self.workload == "gated" => {
                    continue;
                }
                ("CLIENT_SERVER_PAIR" | "THREADS", None, true) => match variable.default {
                    Some(_) if self.given.is_given(name) => continue,
                    Some(default) => default.to_owned(),
                    None => continue,
                },
                _ => continue,
            };
            match variable.treatment {
                Treatment::Property(property) => self.pass_property(name, property, value),
                Treatment::Plan(key) => self.pass_key(name, key, value),
                _ => {}
            }
        }
    }

    fn pass_property(&mut self, variable: &'static str, property: &'static str, value: String) {
        let value = match (variable, value.as_str()) {
            ("INSERT_COUNT", "0") => {
                let note =
                    "`INSERT_COUNT=0` means all documents here; YCSB would run on a single one";
                self.given.notes.push(note.into());
                return;
            }
            ("INSERT_ORDER", "sequential") => "ordered".into(),
            ("INSERT_ORDER", "random") => {
                let reason = "YCSB takes it for `ordered`, and its manual there means `hashed`";
                return self.given.refuse(variable, reason, "say which of the two");
            }
            _ => value,
        };
        self.properties.push(Setting {
            variable,
            given: self.given.is_given(variable),
            name: property,
            value,
        });
    }

    fn pass_key(&mut self, variable: &'static str, key: &'static str, value: String) {
        let is_set = self.given.is_true("REPLICA_SET");
        match variable {
            // The topology says how many servers there are.
            "CLIENT_SERVER_PAIR" if is_set => {}
            "JOURNAL_ENABLED" if is_set && value == "false" => {
                let warning = "`JOURNAL_ENABLED=false` has no effect: a member of a replica set needs its journal";
                self.given.warnings.push(warning.into());
            }
            // `storage.wiredTiger.engineConfig.cacheSizeGB` counts in powers of two.
            "CACHE_SIZE_GB" => self.set(variable, key, format!("{value}GiB")),
            _ => self.set(variable, key, value),
        }
    }

    /// Servers there are; at least 1.
    fn pairs(&self) -> u32 {
        let setting = self.keys.iter().find(|key| key.name == "server.pairs");
        setting
            .and_then(|setting| setting.value.parse().ok())
            .unwrap_or(1)
    }

    fn servers(&mut self) {
        if self.given.is_true("REPLICA_SET") {
            let asked = self.given.number("CLIENT_SERVER_PAIR");
            let default = if self.has_defaults() && self.workload != "gated" {
                3
            } else {
                1
            };
            let servers = asked.unwrap_or(default);
            if servers == 1 {
                self.set("REPLICA_SET", "server.topology", "replica-set=1");
            } else {
                let reason = format!(
                    "with {servers} servers it means {servers} replica sets of one member each, which are not there"
                );
                let hint = "set `CLIENT_SERVER_PAIR=1`, or leave both out and plan one real set, `server.topology = \"replica-set=3\"`";
                self.given.refuse("REPLICA_SET", &reason, hint);
            }
        }
        let flag = self.given.get("TLS_FLAG").map(str::to_ascii_lowercase);
        match flag.as_deref() {
            None => {}
            Some("false") => self.set("TLS_FLAG", "server.encryption", "off"),
            Some("true") => self.set("TLS_FLAG", "server.encryption", "server"),
            Some(number) => match number.parse::<u32>() {
                Ok(0) => self.set("TLS_FLAG", "server.encryption", "off"),
                Ok(_) => self.set("TLS_FLAG", "server.encryption", "server"),
                Err(_) => {
                    let (reason, hint) = ("it is neither on nor off", "give `0` or `1`");
                    self.given.refuse("TLS_FLAG", reason, hint);
                }
            },
        }
        if self.given.is_true("NETWORK_RPS_TUNE_ENABLE") {
            // The clients reach the servers on this machine by it.
            let key = "server.receive_packet_steering";
            self.set("NETWORK_RPS_TUNE_ENABLE", key, "lo");
        }
    }

    fn folders(&mut self) {
        let direct = self.given.is_true("DISK_SPEC");
        let Some(text) = self.given.get("DB_HOSTPATH").map(str::to_owned) else {
            if direct && !self.given.is_given("DB_HOSTPATH") {
                let hint = "name the folders by `DB_HOSTPATH`, with `%20` between them";
                let reason = "there are no disks to be had from a cluster";
                self.given.refuse("DISK_SPEC", reason, hint);
            }
            return;
        };
        let folders: Vec<&str> = text.split(FOLDERS).map(str::trim).collect();
        if folders.iter().any(|folder| folder.is_empty()) {
            let hint = "such as `/mnt/disk1%20/mnt/disk2`";
            let reason = "one of its folders has no name";
            return self.given.refuse("DB_HOSTPATH", reason, hint);
        }
        match folders[..] {
            [folder] if !direct => self.set("DB_HOSTPATH", "server.data_dir", folder),
            _ => {
                let list: toml::Value = folders.into();
                self.set("DB_HOSTPATH", "server.data_dirs", list.to_string());
            }
        }
        if direct {
            self.set("DISK_SPEC", "server.disk_mapping", "direct");
        }
    }

    fn place(&mut self) {
        let pairs = self.pairs();
        match placement::placement(&mut self.given, pairs) {
            Some((variable, text)) => {
                let note = format!("`{variable}` and its like mean `--placement '{text}'`");
                self.given.notes.push(note);
                self.set(variable, "server.placement", text);
            }
            None if self.has_defaults() && !self.given.is_given("NUMACTL_OPTION") => {
                self.set("NUMACTL_OPTION", "server.placement", "interleave");
            }
            None => {}
        }
    }

    fn measurement(&mut self) {
        let name = "YCSB_MEASUREMENT_TYPE";
        match self.given.get(name) {
            None | Some("hdrhistogram") => {}
            Some("raw" | "hdrhistogram+raw") => {
                let reason = "a run keeps histograms, not every single latency";
                let hint = "leave it out; the run directory has the histogram of every second";
                self.given.refuse(name, reason, hint);
            }
            Some(_) => {
                let reason = "a run always keeps HDR histograms and a time series";
                self.given.unused(name, reason);
            }
        }
    }

    fn trace(&mut self) {
        let name = "EVENT_TRACE_PARAMS";
        let Some(text) = self.given.get(name).map(str::to_owned) else {
            return;
        };
        let parts: Vec<String> = text
            .split(',')
            .map(|part| part.trim().replace(' ', "_"))
            .collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let whole = |phase| TraceWindow {
            phase,
            from: Span::from_secs(0),
            length: None,
        };
        let window = match parts[..] {
            ["roi", "RUN_PHASE", "benchmark-finish"] => Some(whole(TracePhase::Measure)),
            ["roi", "LOAD_PHASE", "RUN_PHASE"] => Some(whole(TracePhase::Load)),
            ["time", from, length] => match (from.parse(), length.parse::<Span>()) {
                (Ok(from), Ok(length)) if !length.0.is_zero() => Some(TraceWindow {
                    phase: TracePhase::Measure,
                    from,
                    length: Some(length),
                }),
                _ => None,
            },
            _ => None,
        };
        if window.is_none() {
            let hint = "`roi,RUN_PHASE,benchmark-finish`, `roi,LOAD_PHASE,RUN_PHASE`, or `time,300,300` for a start and a length in seconds";
            let reason = "it is no window that a run has";
            self.given.refuse(name, reason, hint);
        }
        self.window = window;
    }

    /// What differs without having been asked for.
    fn remarks(&mut self) {
        let machines = self.given.number("CLIENT_COUNT");
        let alone = self.given.is_true("RUN_SINGLE_NODE") || machines == Some(0);
        let shared = "servers and clients share this machine";
        match (alone, machines) {
            (true, _) => {}
            (false, Some(machines)) => self.given.warnings.push(format!(
                "`CLIENT_COUNT={machines}`: {shared}; for clients on others run `dyno` there, with `--uri`"
            )),
            (false, None) if self.given.is_given("RUN_SINGLE_NODE") => self
                .given
                .warnings
                .push(format!("`RUN_SINGLE_NODE=false`: {shared}")),
            (false, None) => self.given.notes.push(shared.into()),
        }
        let assumed: Vec<String> = (self.keys.iter().chain(&self.properties))
            .filter(|setting| !setting.given)
            .filter_map(|setting| find(setting.variable))
            .map(|variable| format!("`{}={}`", variable.name, variable.default.unwrap_or("")))
            .collect();
        if !assumed.is_empty() {
            let note = format!("not given, and as in that workload: {}", assumed.join(", "));
            self.given.notes.push(note);
        }
        let sizes = ["RECORD_COUNT", "OPERATION_COUNT", "MAX_EXECUTION_TIME"];
        let left: Vec<&str> = sizes
            .into_iter()
            .filter(|name| !self.given.is_given(name))
            .collect();
        if left.len() == sizes.len() {
            let note = format!("not given, and as in the plan: `{}`", left.join("`, `"));
            self.given.notes.push(note);
        }
        if !self.given.is_given("JOURNAL_ENABLED") && self.has_defaults() {
            let note = "`JOURNAL_ENABLED` is not given: the journal is as the server has it, where that workload switches it off";
            self.given.notes.push(note.into());
        }
    }
}
