//! Programs on hosts, by Ansible: copied and started before a run, stopped and removed after it. The playbooks of `deploy/ansible/`
//! are embedded in the program.

use crate::inventory::Inventory;
use crate::program::{self, Call};
use dyno_engine::Cancel;
use dyno_engine::{Error, Kind, OrFault, refuse};
use dyno_servers::MemoryFile;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const START: &str = include_str!("../../../../deploy/ansible/fleet-start.yml");
const STOP: &str = include_str!("../../../../deploy/ansible/fleet-stop.yml");
/// Hint for a missing or failing Ansible.
const HINT: &str = "see docs/fleet.md; `scripts/python-tools.sh` installs it";
/// Gives up an unreachable host after 15 s, also on a connection that is reused between tasks.
const SSH_ARGS: &str = "-o ControlMaster=auto -o ControlPersist=30s -o ConnectTimeout=10 -o ServerAliveInterval=5 -o ServerAliveCountMax=3";
/// Longest time of a playbook: copying to many hosts over slow networks takes time.
const WITHIN: Duration = Duration::from_secs(900);
/// Starts of expressions that Ansible evaluates on the controller, and the header that changes these markers.
const EXPRESSIONS: [&str; 4] = ["{{", "{%", "{#", "#jinja2:"];
/// Lines of Ansible output that an error shows.
const TAIL_LINES: usize = 12;

/// A program to start on a host.
#[derive(Clone, Debug)]
pub(super) struct Started {
    /// Name of its log and of its process ID file.
    pub(super) name: String,
    pub(super) host: String,
    /// Arguments of `dyno`.
    pub(super) words: Vec<String>,
}

/// Environment variable that passes the Redis address to Ansible, so that nothing of it remains if this program is killed.
const REDIS_VARIABLE: &str = "DYNO_FLEET_REDIS";

/// Programs and files to deploy to the hosts.
pub(super) struct Wanted<'a> {
    pub(super) run: &'a str,
    pub(super) programs: &'a [Started],
    /// Server program to copy to the hosts of `servers`.
    pub(super) server_program: Option<PathBuf>,
    pub(super) servers: &'a [String],
    /// Users and certificates of servers, by the name of the program that gets them.
    pub(super) secrets: BTreeMap<String, String>,
    /// The Redis address with its password.
    pub(super) redis: String,
    /// File with the certificates to trust for Redis.
    pub(super) redis_ca: Option<PathBuf>,
    /// Parent folder of the runs on each host.
    pub(super) base: &'a str,
    /// This program's file.
    pub(super) program: PathBuf,
}

/// Ansible with an inventory.
#[derive(Debug)]
pub(super) struct Hosts {
    inventory: PathBuf,
    /// `PATH` to look up programs.
    path: Option<std::ffi::OsString>,
    /// Temporary folder of playbooks and variables.
    folder: PathBuf,
}

impl Hosts {
    /// Writes the playbooks into a folder that only this user can read.
    pub(super) fn new(
        inventory: &Path,
        path: Option<&OsStr>,
        folder: PathBuf,
    ) -> Result<Self, Error> {
        let inventory = match std::path::absolute(inventory) {
            Ok(absolute) if !is_list(inventory) => absolute,
            _ => inventory.into(),
        };
        let hosts = Hosts { inventory, path: path.map(OsStr::to_owned), folder };
        hosts.write("start.yml", START)?;
        hosts.write("stop.yml", STOP)?;
        Ok(hosts)
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf, Error> {
        let path = self.folder.join(name);
        std::fs::write(&path, text)
            .or_fault(Kind::Environment, || format!("cannot write `{}`", path.display()))?;
        Ok(path)
    }

    /// Reads the inventory through Ansible.
    pub(super) fn inventory(&self, cancel: &Cancel) -> Result<Inventory, Error> {
        // Ansible treats a missing file as an empty inventory.
        if !is_list(&self.inventory) && !self.inventory.exists() {
            let text = format!("the inventory `{}` does not exist", self.inventory.display());
            return refuse(text, "set `--inventory FILE`, as for `ansible-playbook`");
        }
        let list = ["--list".as_ref()];
        let output = self.run("ansible-inventory", &list, None, Some(cancel))?;
        if !output.status.success() {
            return Err(unreadable(&output));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let mut inventory =
            Inventory::parse(&text).map_err(|error| Error::from_cause(Kind::BadInput, error))?;
        let open = inventory.unevaluated().join(",");
        if !open.is_empty() {
            let question = Inventory::question();
            let words = [&open, "-m", "debug", "-a", &question].map(OsStr::new);
            let output = self.run("ansible", &words, None, Some(cancel))?;
            if !output.status.success() {
                let what = "cannot evaluate the addresses of the inventory";
                return Err(failed(&output, what, Kind::BadInput));
            }
            inventory.take_answers(&String::from_utf8_lossy(&output.stdout));
        }
        Ok(inventory)
    }

    /// Copies and starts programs. A signal interrupts it; [`stop`](Self::stop) then stops what was started.
    pub(super) fn start(&self, wanted: &Wanted<'_>, cancel: &Cancel) -> Result<(), Error> {
        wanted.programs.iter().try_for_each(check_words)?;
        let mut programs: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
        for program in wanted.programs {
            let entry = programs.entry(&program.host).or_default();
            let has_secrets = wanted.secrets.contains_key(&program.name);
            entry
                .push(json!({"name": program.name, "words": program.words, "secret": has_secrets}));
        }
        // Ansible reads the memory file while this program lives; nothing of it remains.
        let secrets = serde_json::to_string(&wanted.secrets).expect("serializable");
        let secrets = MemoryFile::new(c"secrets", &secrets);
        let secrets = secrets.or_fault(Kind::Environment, || "cannot keep secrets in memory")?;
        let variables = json!({
            "dyno_hosts": programs.keys().collect::<Vec<_>>(),
            "dyno_run": wanted.run,
            "dyno_base": wanted.base,
            "dyno_program": wanted.program,
            "dyno_programs": programs,
            "dyno_server_program": wanted.server_program,
            "dyno_server_hosts": wanted.servers,
            "dyno_secrets_file": secrets.path(),
            "dyno_redis_ca_file": wanted.redis_ca,
        });
        let what = "cannot prepare the hosts";
        self.play("start.yml", &variables, what, Some(&wanted.redis), Some(cancel))
    }

    /// Stops the remaining programs of a run and removes its files. `logs` receives the logs.
    pub(super) fn stop(
        &self,
        run: &str,
        base: &str,
        hosts: &[String],
        logs: Option<&Path>,
    ) -> Result<(), Error> {
        let variables = json!({
            "dyno_hosts": hosts,
            "dyno_run": run,
            "dyno_base": base,
            "dyno_logs": logs,
        });
        let what = "cannot clean up all hosts";
        self.play("stop.yml", &variables, what, None, None)
    }

    fn play(
        &self,
        book: &str,
        variables: &Value,
        what: &str,
        redis: Option<&str>,
        cancel: Option<&Cancel>,
    ) -> Result<(), Error> {
        let file = self.write(&format!("{book}.json"), &variables.to_string())?;
        let mut from = std::ffi::OsString::from("@");
        from.push(file);
        let book = self.folder.join(book);
        let output =
            self.run("ansible-playbook", &[book.as_os_str(), "-e".as_ref(), &from], redis, cancel)?;
        if !output.status.success() {
            return Err(failed(&output, what, Kind::Environment));
        }
        Ok(())
    }

    fn run(
        &self,
        program: &str,
        arguments: &[&OsStr],
        redis: Option<&str>,
        cancel: Option<&Cancel>,
    ) -> Result<Output, Error> {
        let mut command = Command::new(program);
        command.arg("-i").arg(&self.inventory).args(arguments);
        if let Some(path) = &self.path {
            command.env("PATH", path);
        }
        if let Some(redis) = redis {
            command.env(REDIS_VARIABLE, redis);
        }
        command
            .env("ANSIBLE_NOCOLOR", "1")
            // By default, a source that cannot be parsed is an empty inventory.
            .env("ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED", "1")
            .env("ANSIBLE_LOAD_CALLBACK_PLUGINS", "0")
            .env("ANSIBLE_RETRY_FILES_ENABLED", "0")
            .env("ANSIBLE_PIPELINING", "1")
            // Users who keep remote files get no pipelining.
            .env("ANSIBLE_KEEP_REMOTE_FILES", "0")
            .env("ANSIBLE_SSH_ARGS", SSH_ARGS)
            .env("ANSIBLE_FORKS", "50")
            .env("ANSIBLE_INTERPRETER_PYTHON", "auto_silent")
            .env("ANSIBLE_LOCAL_TEMP", &self.folder);
        let to = Stdio::piped();
        let call = Call { name: program, within: WITHIN, input: b"", to, cancel, hint: HINT };
        program::output(command, call)
    }
}

/// Refuses arguments that Ansible would evaluate. The variables file has no marker for raw text that all Ansible versions
/// understand.
pub(super) fn check_words(program: &Started) -> Result<(), Error> {
    let is_expression = |word: &&String| EXPRESSIONS.iter().any(|start| word.contains(start));
    let Some(word) = program.words.iter().find(is_expression) else {
        return Ok(());
    };
    let text = format!(
        "an argument of `{}` on `{}` contains an expression that Ansible would evaluate: {word:?}",
        program.name, program.host
    );
    refuse(text, "remove `{{`, `{%`, `{#` and `#jinja2:` from the plan")
}

/// Whether an inventory is a list of host names, which contains a comma, instead of a file.
fn is_list(inventory: &Path) -> bool {
    inventory.to_string_lossy().contains(',')
}

/// Error with each parser's reason why Ansible cannot read an inventory. Skips the parser that needs a key that few inventories
/// have.
fn unreadable(output: &Output) -> Error {
    let said = String::from_utf8_lossy(&output.stderr).replace("\r\n", "\n");
    let mut reasons: Vec<String> = said
        .split("[WARNING]:")
        .skip(1)
        .filter_map(|warning| warning.trim_start().split("\n\n").next())
        .map(|warning| warning.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|warning| warning.contains("arse") && !warning.contains("no root 'plugin' key"))
        .collect();
    reasons.dedup();
    let what = "cannot read the inventory";
    if reasons.is_empty() {
        return failed(output, what, Kind::BadInput);
    }
    Error::new(Kind::BadInput, reasons.join("; ")).context(what)
}

/// Error with Ansible's messages about failed or unreachable hosts; each names its host.
fn failed(output: &Output, what: &str, kind: Kind) -> Error {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut reasons: Vec<String> = said.lines().filter_map(reason).collect();
    reasons.dedup();
    let what = what.to_owned();
    if reasons.is_empty() {
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let lines: Vec<&str> = errors.lines().chain(said.lines()).collect();
        let tail = &lines[lines.len().saturating_sub(TAIL_LINES)..];
        let mut error = Error::new(kind, what);
        error.log_tail = tail.iter().map(|line| (*line).to_owned()).collect();
        return error;
    }
    Error::new(kind, reasons.join("; ")).context(what)
}

/// Turns `fatal: [HOST]: UNREACHABLE! => {…}` into `HOST: MESSAGE`.
fn reason(line: &str) -> Option<String> {
    let is_failure = line.starts_with("fatal: [") || line.starts_with("failed: [");
    let (_, rest) = line.split_once('[').filter(|_| is_failure)?;
    let (host, rest) = rest.split_once(']')?;
    let (_, rest) = rest.split_once("=> ")?;
    let result = serde_json::from_str::<Value>(rest).ok();
    let text = |key: &str| Some(result.as_ref()?.get(key)?.as_str()?.trim().to_owned());
    let filled = |text: String| (!text.is_empty()).then_some(text);
    let errors = ["stderr", "module_stderr"].into_iter();
    let mut errors = errors.filter_map(|key| text(key).and_then(filled));
    let message = errors.next().or_else(|| text("msg"));
    let message = message.unwrap_or_else(|| rest.to_owned());
    Some(format!("`{host}`: {}", message.replace('\n', " ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_testkit::{Skip, or_skip, project_dir};

    #[test]
    fn failing_hosts_are_named_with_their_error() {
        let line = r#"fatal: [client2]: UNREACHABLE! => {"changed": false, "msg": "Failed to connect", "unreachable": true}"#;
        assert_eq!(reason(line).as_deref(), Some("`client2`: Failed to connect"));
        let line = r#"failed: [db] (item={"a": 1}) => {"msg": "non-zero", "stderr": "no room\n"}"#;
        assert_eq!(reason(line).as_deref(), Some("`db`: no room"));
        assert_eq!(reason("ok: [db] => {}"), None);
    }

    /// Starts one program with this argument; Ansible is looked up in `folder`, and missing.
    fn start(folder: &Path, word: &str) -> Error {
        let hosts = Hosts::new(Path::new("h,"), Some(folder.as_os_str()), folder.to_owned());
        let program = Started {
            name: "server-0".into(),
            host: "h".into(),
            words: vec!["--watch".into(), word.into()],
        };
        let wanted = Wanted {
            run: "r",
            programs: &[program],
            server_program: None,
            servers: &[],
            secrets: BTreeMap::new(),
            redis: String::new(),
            redis_ca: None,
            base: "/var/tmp",
            program: "/bin/true".into(),
        };
        let started = hosts.expect("can write").start(&wanted, &Cancel::new());
        started.expect_err("without Ansible")
    }

    #[test]
    fn ansible_expression_in_an_argument_is_refused() {
        let folder = tempfile::tempdir().expect("can write");
        let variables = folder.path().join("start.yml.json");
        for word in ["7=/a/{{ lookup('pipe', 'x') }}", "{% if x %}", "a{#b", "#jinja2:a:b"] {
            let error = start(folder.path(), word);
            assert_eq!(error.kind, Kind::BadInput);
            let text = error.to_string();
            assert!(text.contains("`server-0` on `h`"), "{text}");
            assert!(!variables.exists(), "{word}");
        }
        let error = start(folder.path(), "7=/data/{a}");
        assert_eq!(error.kind, Kind::Environment, "{error:#}");
        assert!(variables.exists());
    }

    /// Writes a shell script for tests.
    fn script(path: &Path, text: &str) {
        std::fs::write(path, format!("#!/bin/sh\n{text}\n")).expect("can write");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, mode).expect("own file");
    }

    #[test]
    fn inventory_that_ansible_cannot_read_is_refused_with_reason() {
        let ansible = project_dir().join(".cache/python/bin/ansible-inventory");
        let is_there = ansible.exists().then_some(());
        let skip = || Skip::new("no Ansible", "run `scripts/setup.sh test`");
        if or_skip(is_there.ok_or_else(skip)).is_none() {
            return;
        }
        let folder = tempfile::tempdir().expect("can write");
        let own = std::env::var("PATH").expect("present");
        let programs = ansible.parent().expect("has a parent");
        let path = format!("{}:{own}", programs.display());
        let read = |name: &str, text: &str| {
            let file = folder.path().join(name);
            std::fs::write(&file, text).expect("can write");
            let hosts = Hosts::new(&file, Some(path.as_ref()), folder.path().to_owned());
            hosts.expect("can write").inventory(&Cancel::new())
        };
        for (name, text, reason) in [
            ("bad.ini", "[clients]\nload1\n[servers\ndb1\n", "nventory"),
            ("num.yml", "all:\n  hosts:\n    12: {}\n", "must be a string"),
            ("tab.yml", "all:\n  hosts:\n\ta: {}\n", "YAML"),
        ] {
            let error = read(name, text).expect_err(name);
            assert_eq!(error.kind, Kind::BadInput);
            let said = format!("{error:#}");
            assert!(said.contains("inventory") && said.contains(reason), "{said}");
        }
        let text = "[clients]\nc[1:2]\n[clients:vars]\nnet=10.0.0\nansible_host={{ net }}.7\n[all_clients:children]\nclients\n";
        let inventory = read("good", text).expect("valid");
        let hosts = inventory.hosts(&["all_clients".to_owned()]).expect("there");
        assert_eq!(hosts, ["c1", "c2"]);
        assert_eq!(inventory.address("c2"), "10.0.0.7");
    }

    #[test]
    fn ansible_neither_prints_secrets_nor_writes_them_to_files() {
        let ansible = project_dir().join(".cache/python/bin/ansible-playbook");
        let is_there = ansible.exists().then_some(());
        let skip = || Skip::new("no Ansible", "run `scripts/setup.sh test`");
        if or_skip(is_there.ok_or_else(skip)).is_none() {
            return;
        }
        let folder = tempfile::tempdir().expect("can write");
        let at = |name: &str| folder.path().join(name);
        let (log, said, found) = (at("log"), at("said"), at("found"));
        // This machine, with an Ansible that logs everything, and a program that fails after searching files for its secret.
        let playbook = format!(
            "export ANSIBLE_LOG_PATH={}\n{} \"$@\" >{said} 2>&1\ncode=$?\ncat {said}\nexit $code",
            log.display(),
            ansible.display(),
            said = said.display(),
        );
        script(&at("ansible-playbook"), &playbook);
        let daemon = format!(
            "grep -rlF \"$(cat)\" {} >{}\necho 'no such luck' >&2; exit 3",
            folder.path().display(),
            found.display()
        );
        script(&at("start-stop-daemon"), &daemon);
        let inventory = at("inventory");
        let host = format!(
            "db ansible_connection=local ansible_pipelining=false ansible_remote_tmp={} ansible_python_interpreter={}\n",
            at("remote").display(),
            ansible.with_file_name("python3").display()
        );
        std::fs::write(&inventory, host).expect("can write");
        let own = std::env::var("PATH").expect("present");
        let path = format!("{}:{own}", folder.path().display());
        let hosts = Hosts::new(&inventory, Some(path.as_ref()), folder.path().to_owned());
        let program =
            Started { name: "server-0".into(), host: "db".into(), words: vec!["--serve".into()] };
        let secret = "a-secret-of-tests";
        let wanted = Wanted {
            run: "r",
            programs: &[program],
            server_program: None,
            servers: &[],
            secrets: [("server-0".into(), secret.into())].into(),
            redis: "redis://:a-password-of-tests@127.0.0.1".into(),
            redis_ca: None,
            base: &folder.path().display().to_string(),
            program: "/bin/true".into(),
        };
        let started = hosts.expect("can write").start(&wanted, &Cancel::new());
        let error = started.expect_err("the program fails");
        let text = format!("{error:#}");
        for part in ["`db`", "`server-0`", "no such luck"] {
            assert!(text.contains(part), "{text} {:?}", error.log_tail);
        }
        let files = std::fs::read_to_string(found).expect("the program ran");
        assert_eq!(files, "", "the secret was written to files");
        for file in [log, said] {
            let reported = std::fs::read_to_string(file).expect("Ansible printed something");
            assert!(reported.contains("no such luck"), "{reported}");
            assert!(!reported.contains(secret), "{reported}");
            assert!(!reported.contains("a-password-of-tests"), "{reported}");
        }
    }

    #[test]
    fn arguments_reach_a_program_unchanged() {
        // Ansible and `start-stop-daemon` take lists of arguments; only the shell between them could split an argument.
        let script = START.lines().find_map(|line| {
            let line = line.trim_start().strip_prefix("- 'ulimit ")?;
            line.strip_suffix('\'')
        });
        let script = format!("ulimit {}", script.expect("in the playbook"));
        assert!(START.contains(r#"argv: "{{ dyno_daemon + dyno_words }}""#));
        let words = ["--watch", "7=/a b/\"c\" 'd'\ne;f $(echo g) `echo h` $HOME * {{ 7 * 6 }}"];
        let folder = tempfile::tempdir().expect("can write");
        let log = folder.path().join("log of it");
        let run = |has_secrets: &str, program: &[&str]| {
            let secrets = MemoryFile::new(c"secrets", "a secret").expect("can write");
            let secrets = std::fs::File::open(secrets.path()).expect("present");
            let mut command = Command::new("/bin/sh");
            command.args(["-c", &script, "redis-url"]).arg(&log);
            let output = command.arg(has_secrets).args(program).stdin(secrets);
            assert!(output.output().expect("can run sh").stdout.is_empty());
            let text = std::fs::read_to_string(&log).expect("has a log");
            std::fs::remove_file(&log).expect("present");
            text
        };
        let program = [&["printf", "%s|%s"], &words[..]].concat();
        assert_eq!(run("False", &program), words.join("|"));
        // Secrets reach only the programs that need them, and no other program inherits a standard input.
        assert_eq!(run("True", &["cat", "/dev/stdin"]), "a secret");
        assert_eq!(run("False", &["cat", "/dev/stdin"]), "");
    }
}
