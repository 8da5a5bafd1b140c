//! Maps the given values to the plan, one topic after the other.

use super::read::Given;
use super::table::{Treatment, VARIABLES, find};
use super::{Parameters, Setting, TraceWindow, WsfSettings, placement, pods};
use crate::builtin;
use crate::model::PhaseKind;
use crate::nearest::nearest;
use crate::problem::Problem;
use crate::units::Span;

/// Test cases of the workload that are built-in plans here.
pub(super) const CASES: [&str; 7] =
    ["gated", "pkm", "90read10update", "50read50update", "30write70read", "write", "read"];
/// The test case to run if no workload is named.
const DEFAULT_CASE: &str = "90read10update";
/// Other defaults from the workload's manual.
const OTHER_DEFAULTS: [(&str, &str); 4] = [
    ("RECORD_COUNT", "4000000"),
    ("OPERATION_COUNT", "4000000"),
    ("MAX_EXECUTION_TIME", "180"),
    ("JOURNAL_ENABLED", "false"),
];
/// Separates folders in `DB_HOSTPATH`.
const FOLDERS: &str = "%20";

/// The settings found so far.
pub(super) struct Mapping {
    given: Given,
    on_hosts: bool,
    on_pods: bool,
    all_defaults: bool,
    workload: String,
    workload_variable: Option<&'static str>,
    keys: Vec<Setting>,
    properties: Vec<Setting>,
    window: Option<TraceWindow>,
    refused_by_pods: Vec<Problem>,
}

impl Mapping {
    /// Maps all values. `workload` is the workload named on the command line.
    pub(super) fn new(parameters: &Parameters, workload: Option<&str>) -> Self {
        let mut mapping = Mapping {
            given: Given::read(&parameters.given),
            on_hosts: parameters.on_hosts,
            on_pods: parameters.on_pods,
            all_defaults: parameters.all_defaults,
            workload: String::new(),
            workload_variable: None,
            keys: Vec::new(),
            properties: Vec::new(),
            window: None,
            refused_by_pods: Vec::new(),
        };
        mapping.choose_workload(workload);
        mapping.pass_on();
        mapping.replica_set();
        mapping.encryption();
        mapping.steering();
        mapping.folders();
        mapping.place();
        mapping.measurement();
        mapping.trace();
        match mapping.on_hosts {
            true => mapping.hosts(),
            false => mapping.remark_on_machines(),
        }
        if mapping.on_pods {
            let problems = pods::keep_possible(&mut mapping.given, &mut mapping.keys);
            mapping.refused_by_pods.extend(problems);
        }
        mapping.remark_on_defaults();
        mapping
    }

    /// The settings, or all problems.
    pub(super) fn finish(self) -> Result<WsfSettings, Vec<Problem>> {
        if !self.given.problems.is_empty() {
            let mut problems = self.given.problems;
            problems.extend(self.refused_by_pods);
            return Err(problems);
        }
        Ok(WsfSettings {
            workload: self.workload,
            workload_variable: self.workload_variable,
            keys: self.keys,
            properties: self.properties,
            trace: self.window,
            refused_by_pods: self.refused_by_pods,
            warnings: self.given.warnings,
            notes: self.given.notes,
        })
    }

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
                "start such a server yourself and use it with `--uri`".to_owned(),
            ),
            "30write60read10insert" => (
                "its proportions add up to 1.1 there, and it is not a registered test case".to_owned(),
                "use `30write70read` with `READ_PROPORTION`, `UPDATE_PROPORTION` and `INSERT_PROPORTION`".to_owned(),
            ),
            unknown => (
                "it does not end in a test case".to_owned(),
                match nearest(unknown, CASES) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("the test cases are `{}`", CASES.join("`, `")),
                },
            ),
        };
        self.given.refuse("TESTCASE", &reason, &hint);
        DEFAULT_CASE.into()
    }

    /// Whether missing values get the workload's defaults.
    fn has_defaults(&self) -> bool {
        !self.workload.ends_with(".toml")
    }

    /// Maps parameters that each set a single property or key.
    fn pass_on(&mut self) {
        for variable in VARIABLES {
            let name = variable.name;
            let value = match (name, self.given.get(name), self.has_defaults()) {
                (_, Some(value), _) => value.to_owned(),
                // The gate has one client and one server in the original as well.
                ("CLIENT_SERVER_PAIR" | "THREADS", None, true) if self.workload == "gated" => {
                    continue;
                }
                ("CLIENT_SERVER_PAIR" | "THREADS", None, true) => match variable.default {
                    Some(_) if self.given.is_given(name) => continue,
                    Some(default) => default.to_owned(),
                    None => continue,
                },
                (_, None, true) => match self.other_default(name) {
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

    /// The workload's default for the size of the run and the journal, if requested. The gate is
    /// small in the original as well.
    fn other_default(&self, name: &'static str) -> Option<&'static str> {
        if !self.all_defaults || self.workload == "gated" || self.given.is_given(name) {
            return None;
        }
        // The trace of this plan begins after the workload's default time.
        let has_own_length = self.workload == "pkm";
        if has_own_length && ["OPERATION_COUNT", "MAX_EXECUTION_TIME"].contains(&name) {
            return None;
        }
        OTHER_DEFAULTS.into_iter().find_map(|(other, default)| (other == name).then_some(default))
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
                let reason =
                    "YCSB reads it as `ordered`, but that workload's manual means `hashed`";
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
            // The topology sets the number of servers.
            "CLIENT_SERVER_PAIR" if is_set => {}
            "JOURNAL_ENABLED" if is_set && value == "false" => {
                let warning = "`JOURNAL_ENABLED=false` has no effect: a member of a replica set needs its journal";
                self.given.warnings.push(warning.into());
            }
            // `storage.wiredTiger.engineConfig.cacheSizeGB` uses powers of two.
            "CACHE_SIZE_GB" => self.set(variable, key, format!("{value}GiB")),
            _ => self.set(variable, key, value),
        }
    }

    /// Number of servers, at least 1.
    fn pairs(&self) -> u32 {
        let setting = self.keys.iter().find(|key| key.name == "server.pairs");
        setting.and_then(|setting| setting.value.parse().ok()).unwrap_or(1)
    }

    /// In the workload, every server becomes a set of one member.
    fn replica_set(&mut self) {
        if !self.given.is_true("REPLICA_SET") {
            return;
        }
        let default = if self.has_defaults() && self.workload != "gated" { 3 } else { 1 };
        let servers = self.given.number("CLIENT_SERVER_PAIR").unwrap_or(default);
        if servers == 1 {
            return self.set("REPLICA_SET", "server.topology", "replica-set=1");
        }
        let reason = format!(
            "with {servers} servers it means {servers} replica sets of one member each, which dyno does not start"
        );
        let hint = "set `CLIENT_SERVER_PAIR=1`, or remove both and plan a real set, \
            `server.topology = \"replica-set=3\"`";
        self.given.refuse("REPLICA_SET", &reason, hint);
    }

    /// Maps the encryption parameter, a number in the scripts and a word in the manual.
    fn encryption(&mut self) {
        let Some(flag) = self.given.get("TLS_FLAG").map(str::to_ascii_lowercase) else {
            return;
        };
        let is_on = match flag.as_str() {
            "1" | "true" => Some(true),
            "0" | "false" => Some(false),
            _ => None,
        };
        match is_on {
            Some(true) => self.set("TLS_FLAG", "server.encryption", "server"),
            Some(false) => self.set("TLS_FLAG", "server.encryption", "off"),
            None => {
                let (reason, hint) =
                    ("it is neither on nor off", "use `0`, `1`, `true` or `false`");
                self.given.refuse("TLS_FLAG", reason, hint);
            }
        }
    }

    fn steering(&mut self) {
        if self.given.is_true("NETWORK_RPS_TUNE_ENABLE") {
            // Clients reach servers on this machine through `lo`, and a host's servers through its
            // card.
            let card = if self.on_hosts { "auto" } else { "lo" };
            let key = "server.receive_packet_steering";
            self.set("NETWORK_RPS_TUNE_ENABLE", key, card);
        }
    }

    fn folders(&mut self) {
        let direct = self.given.is_true("DISK_SPEC");
        let Some(text) = self.given.get("DB_HOSTPATH").map(str::to_owned) else {
            if direct && !self.given.is_given("DB_HOSTPATH") {
                let hint = "name the folders with `DB_HOSTPATH`, separated by `%20`";
                let reason = "there is no cluster to request disks from";
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
        match placement::placement(&mut self.given, pairs, self.on_hosts) {
            Some((variable, text)) if self.on_pods => {
                let problems = &mut self.refused_by_pods;
                let Some(text) = pods::placement(&mut self.given, text, problems) else {
                    return;
                };
                if self.given.number("NUMACTL_OPTION") == Some(3)
                    && let Some(cpus) = self.given.get("CORE_NUMS_EACH_INSTANCE")
                {
                    let cpus = cpus.to_owned();
                    let key = "fleet.kubernetes.server_cpus";
                    self.set("CORE_NUMS_EACH_INSTANCE", key, cpus);
                }
                self.set(variable, "server.placement", text);
            }
            Some((variable, text)) => {
                self.given.notes.push(placement::note(variable, &text));
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
                let hint = "remove it; the run directory has the histogram of every second";
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
        let Some(text) = self.given.get(name) else {
            return;
        };
        if self.on_hosts {
            let reason = "a fleet runs no trace commands on its hosts";
            return self.given.unused(name, reason);
        }
        self.window = window(text);
        if self.window.is_none() {
            let hint = "`roi,RUN_PHASE,benchmark-finish`, `roi,LOAD_PHASE,RUN_PHASE`, or `time,300,300` for a start and a length in seconds";
            let reason = "a run has no such window";
            self.given.refuse(name, reason, hint);
        }
    }

    /// Maps clients and servers that are on the hosts of an inventory or in pods: each server has
    /// its clients, which the client hosts share. A plan file sets this itself.
    fn hosts(&mut self) {
        let machines = self.given.number("CLIENT_COUNT");
        let alone = match (self.given.is_true("RUN_SINGLE_NODE"), machines) {
            (true, _) => Some("RUN_SINGLE_NODE"),
            (false, Some(0)) => Some("CLIENT_COUNT"),
            _ => None,
        };
        if let Some(variable) = alone {
            let reason = "clients and servers of a fleet are on different hosts";
            let hint = "use `dyno run --wsf` to run all of them on this machine";
            self.given.refuse(variable, reason, hint);
        }
        if let Some(variable) = self.workload_variable.filter(|_| self.workload == "pkm") {
            let reason = "its traces observe one machine, but a fleet has several";
            let hint = "`90read10update` with `MAX_EXECUTION_TIME=720` is the same load without traces, and `EVENT_TRACE_PARAMS` then has no effect";
            self.given.refuse(variable, reason, hint);
        }
        let clients = match (machines, self.on_pods) {
            (Some(machines), false) => Some(("fleet.client_hosts", machines)),
            (Some(machines), true) => Some(("fleet.kubernetes.client_pods", machines)),
            (None, true) if self.has_defaults() => Some(("fleet.kubernetes.client_pods", 1)),
            (None, _) => None,
        };
        if let Some((key, clients)) = clients {
            self.set("CLIENT_COUNT", key, clients.to_string());
        }
        if !self.has_defaults() {
            return;
        }
        let mapping = match self.given.is_true("REPLICA_SET") {
            true => "deployment",
            false => "pairs",
        };
        self.set("CLIENT_COUNT", "fleet.mapping", mapping);
        self.set("CLIENT_COUNT", "fleet.amounts", "per-server");
        let note = if self.on_pods {
            "numbers apply to each server"
        } else {
            self.set("CLIENT_COUNT", "fleet.clients", r#"["clients"]"#);
            self.set("CLIENT_COUNT", "fleet.servers", r#"["servers"]"#);
            "clients and servers are the groups `clients` and `servers` of the inventory; numbers apply to each server"
        };
        self.given.notes.push(note.into());
    }

    /// Notes that this machine also runs the clients.
    fn remark_on_machines(&mut self) {
        let machines = self.given.number("CLIENT_COUNT");
        let alone = self.given.is_true("RUN_SINGLE_NODE") || machines == Some(0);
        let shared = "servers and clients share this machine";
        match (alone, machines) {
            (true, _) => {}
            (false, Some(machines)) => self.given.warnings.push(format!(
                "`CLIENT_COUNT={machines}`: {shared}; `dyno fleet run --wsf` has clients on other machines"
            )),
            (false, None) if self.given.is_given("RUN_SINGLE_NODE") => self
                .given
                .warnings
                .push(format!("`RUN_SINGLE_NODE=false`: {shared}")),
            (false, None) => self.given.notes.push(shared.into()),
        }
    }

    /// Notes defaults that were chosen without being requested.
    fn remark_on_defaults(&mut self) {
        let assumed: Vec<String> = (self.keys.iter().chain(&self.properties))
            .filter(|setting| !setting.given)
            .filter(|setting| setting.variable != "CLIENT_COUNT")
            .filter_map(|setting| {
                let other = self.other_default(setting.variable);
                let default = other.or(find(setting.variable)?.default);
                Some(format!("`{}={}`", setting.variable, default.unwrap_or("")))
            })
            .collect();
        if !assumed.is_empty() {
            let note = format!("not given; default of that workload: {}", assumed.join(", "));
            self.given.notes.push(note);
        }
        let sizes = ["RECORD_COUNT", "OPERATION_COUNT", "MAX_EXECUTION_TIME"];
        let left: Vec<&str> = sizes.into_iter().filter(|name| !self.given.is_given(name)).collect();
        if left.len() == sizes.len() && !self.all_defaults {
            let note = format!("not given; taken from the plan: `{}`", left.join("`, `"));
            self.given.notes.push(note);
        }
        let mut keys = self.keys.iter();
        if keys.any(|key| key.variable == "JOURNAL_ENABLED" && !key.given) {
            let note = "`mongod` 6.1 and later always has a journal, and the embedded server a \
                log: set `JOURNAL_ENABLED=true` for these";
            self.given.notes.push(note.into());
        }
        if !self.given.is_given("JOURNAL_ENABLED") && self.has_defaults() && !self.all_defaults {
            let note = "`JOURNAL_ENABLED` is not given: the journal keeps the server's default; \
                that workload would disable it";
            self.given.notes.push(note.into());
        }
    }
}

/// The window between two lines of the scripts' output, or between two times.
fn window(text: &str) -> Option<TraceWindow> {
    let parts: Vec<String> = text.split(',').map(|part| part.trim().replace(' ', "_")).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let whole = |phase| TraceWindow { phase, from: Span::from_secs(0), length: None };
    match parts[..] {
        ["roi", "RUN_PHASE", "benchmark-finish"] => Some(whole(PhaseKind::Measure)),
        ["roi", "LOAD_PHASE", "RUN_PHASE"] => Some(whole(PhaseKind::Load)),
        ["time", from, length] => {
            let length: Span = length.parse().ok()?;
            (!length.0.is_zero()).then_some(TraceWindow {
                phase: PhaseKind::Measure,
                from: from.parse().ok()?,
                length: Some(length),
            })
        }
        _ => None,
    }
}
