//! Limits on an agent's work. Work arrives over Redis, whose writers are not trusted: programs, folders, server parameters and
//! addresses must match the options of the agent.

use dyno_engine::{Error, Kind, refuse};
use dyno_plan::model::{Encryption, ServerPlan};
use dyno_plan::uri::{self, Host, Target};
use dyno_servers::is_installed_name;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Component, Path, PathBuf};

/// Limits on an agent's work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permits {
    /// Server programs that a plan may name by path. Installed versions are always allowed.
    pub programs: BTreeSet<PathBuf>,
    /// Data folders that a plan may name, in addition to the agent's folder.
    pub data_folders: BTreeSet<PathBuf>,
    /// Address on which servers may listen, in addition to loopback.
    pub listen: Option<IpAddr>,
    /// Hosts of members that a server may join, without ports.
    pub members: BTreeSet<String>,
    /// Whether servers may be reachable for others without a password.
    pub open: bool,
    /// Whether servers may be reachable for others without TLS.
    pub plain: bool,
    /// Server parameters that a plan may set, each as `NAME=VALUE`. Some parameters let a `mongod` read files, contact other hosts
    /// or disable protections.
    pub parameters: BTreeSet<String>,
    /// Network cards whose packets a plan may steer to other CPUs, in the form of `--receive-packet-steering`.
    pub cards: BTreeSet<String>,
    /// Hosts that may be loaded, without ports; if empty, loopback and sockets of this host.
    pub targets: BTreeSet<String>,
}

impl Permits {
    /// Permits for a plan's servers.
    pub fn of(server: &ServerPlan) -> Self {
        let mut permits = Permits::default();
        permits.add(server);
        permits
    }

    /// Adds permits for a plan's servers.
    pub(crate) fn add(&mut self, server: &ServerPlan) {
        self.programs.extend(named_programs(server).map(PathBuf::from));
        self.data_folders.extend(named_folders(server).map(PathBuf::from));
        self.parameters.extend(named_parameters(server));
        self.cards.extend(server.receive_packet_steering.clone());
        self.open |= !server.auth;
        self.plain |= server.encryption == Encryption::Off;
        // An invalid connection string was refused before, and permits nothing.
        let running = server.uri.as_deref().map(uri::parse);
        if let Some(Ok((target, _))) = running {
            self.targets.extend(hosts(&target));
        }
    }

    /// Arguments of a loading agent.
    pub(crate) fn words_of_client(&self) -> Vec<String> {
        words("--target", self.targets.iter().cloned())
    }

    /// Arguments of an agent that starts servers, which listen on this address.
    pub(crate) fn words_of_server(&self, listen: &str) -> Vec<String> {
        let texts = |paths: &BTreeSet<PathBuf>| {
            let texts = paths.iter().map(|path| path.display().to_string());
            texts.collect::<Vec<_>>()
        };
        let mut all = words("--mongod", texts(&self.programs));
        all.extend(words("--data-dir", texts(&self.data_folders)));
        all.extend(words("--parameter", self.parameters.iter().cloned()));
        all.extend(words("--receive-packet-steering", self.cards.iter().cloned()));
        all.extend(self.open.then(|| "--without-password".to_owned()));
        all.extend(self.plain.then(|| "--without-tls".to_owned()));
        all.extend(words("--listen", [listen.to_owned()]));
        all.extend(words("--member", self.members.iter().cloned()));
        all
    }

    /// Refuses replica set members that the agent may not join.
    pub(crate) fn check_members(&self, members: &[String]) -> Result<(), Error> {
        let text = format!("mongodb://{}/", members.join(","));
        let (target, _) =
            uri::parse(&text).map_err(|error| Error::from_cause(Kind::BadInput, error))?;
        let foreign = hosts(&target).find(|host| !self.members.contains(host));
        foreign.map_or(Ok(()), |host| Err(refused("member", &host, "--member")))
    }

    /// Refuses a plan with servers beyond the agent's permits. `folder` is the agent's folder.
    pub(crate) fn check_server(&self, server: &ServerPlan, folder: &Path) -> Result<(), Error> {
        for program in named_programs(server) {
            if !self.programs.contains(Path::new(program)) {
                return Err(refused("program", program, "--mongod"));
            }
        }
        for data in named_folders(server) {
            let data = Path::new(data);
            let climbs = data.components().any(|part| part == Component::ParentDir);
            let mut allowed = self.data_folders.iter().map(PathBuf::as_path);
            let is_own = data.starts_with(folder);
            if climbs || !is_own && !allowed.any(|allowed| data.starts_with(allowed)) {
                let shown = data.display().to_string();
                return Err(refused("data folder", &shown, "--data-dir"));
            }
        }
        if let Some(storage) = &server.storage {
            // No option permits storage preparation: only someone at the host may write to devices.
            let text =
                format!("the work prepares storage, `{storage}`, which this agent does not permit");
            return refuse(
                text,
                "prepare a file system on the host, and set `server.data_dir` to its folder",
            );
        }
        for parameter in named_parameters(server) {
            if !self.parameters.contains(&parameter) {
                return Err(refused("parameter", &parameter, "--parameter"));
            }
        }
        if let Some(card) = &server.receive_packet_steering
            && !self.cards.contains(card)
        {
            return Err(refused("network card", card, "--receive-packet-steering"));
        }
        let listen = server.listen.as_deref().unwrap_or("127.0.0.1");
        let address = listen.parse::<IpAddr>().ok();
        if !address.is_some_and(|address| address.is_loopback() || Some(address) == self.listen) {
            return Err(refused("address", listen, "--listen"));
        }
        let is_reached = address.is_some_and(|address| !address.is_loopback());
        let missing = [
            ("a password", "--without-password", server.auth || self.open),
            ("TLS", "--without-tls", server.encryption != Encryption::Off || self.plain),
        ];
        let mut missing = missing.into_iter().filter(|(_, _, is_fine)| is_reached && !is_fine);
        if let Some((what, option, _)) = missing.next() {
            let text = format!(
                "the work has a server at `{listen}` without {what}, which this agent does not permit"
            );
            let hint = format!("start the agent with `{option}` if you trust the work");
            return refuse(text, hint);
        }
        Ok(())
    }

    /// Refuses a server that the agent may not load. Replica set members and SRV hosts behind a permitted host are not checked:
    /// their servers name them, not the work.
    pub(crate) fn check_target(&self, target: &Target) -> Result<(), Error> {
        if target.names_files() {
            let text = "the work has a connection string with files of this machine";
            return refuse(text, "pass certificates by the agent's secrets (`--secrets`)");
        }
        if self.targets.is_empty()
            && target.srv.is_none()
            && target.hosts.iter().all(Host::is_on_this_machine)
        {
            return Ok(());
        }
        let is_foreign = |host: &String| {
            let mut own = self.targets.iter();
            !own.any(|target| target.eq_ignore_ascii_case(host))
        };
        let foreign = hosts(target).find(is_foreign);
        foreign.map_or(Ok(()), |host| Err(refused("server", &host, "--target")))
    }
}

fn refused(what: &str, value: &str, option: &str) -> Error {
    let text = format!("the work names the {what} `{value}`, which this agent does not permit");
    let hint = format!("start the agent with `{option} {value}` if you trust the work");
    Error::new(Kind::BadInput, text).with_hint(hint)
}

fn words(option: &str, values: impl IntoIterator<Item = String>) -> Vec<String> {
    let pairs = values.into_iter().map(|value| [option.to_owned(), value]);
    pairs.flatten().collect()
}

/// Server programs given by path instead of by installed version.
fn named_programs(server: &ServerPlan) -> impl Iterator<Item = &str> {
    let mongod = server.mongod.as_deref().filter(|text| !is_installed_name(text));
    mongod.into_iter().chain(server.mongos.as_deref())
}

fn named_folders(server: &ServerPlan) -> impl Iterator<Item = &str> {
    server.data_dir.iter().chain(&server.data_dirs).map(String::as_str)
}

fn named_parameters(server: &ServerPlan) -> impl Iterator<Item = String> {
    server.parameters.iter().map(|(name, value)| format!("{name}={value}"))
}

/// Hosts of a connection string, and its SRV name.
fn hosts(target: &Target) -> impl Iterator<Item = String> {
    let hosts = target.hosts.iter().map(|host| match host {
        Host::Tcp { host, .. } => host.clone(),
        Host::Unix(path) => path.display().to_string(),
    });
    hosts.chain(target.srv.iter().map(|srv| srv.host.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_plan::task::Remote;

    fn permits() -> Permits {
        let mut permits = Permits { listen: "10.0.0.1".parse().ok(), ..Permits::default() };
        let parameters = [("ttlMonitorEnabled".to_owned(), "false".to_owned())];
        permits.add(&ServerPlan {
            mongod: Some("/opt/mongod".into()),
            data_dirs: vec!["/data/a".into()],
            parameters: parameters.into(),
            uri: Some("mongodb://db1,db2:7/".into()),
            ..ServerPlan::default()
        });
        permits
    }

    fn target(text: &str) -> Target {
        Remote::parse(text).expect("valid").target
    }

    #[test]
    fn server_settings_beyond_the_agents_permits_are_refused() {
        fn set(server: &mut ServerPlan, name: &str, value: &str) {
            server.parameters.insert(name.into(), value.into());
        }
        let server = |change: fn(&mut ServerPlan)| {
            let mut server = ServerPlan::default();
            change(&mut server);
            let checked = permits().check_server(&server, Path::new("/own"));
            checked.map_err(|error| (error.kind, error.hint.unwrap_or_default()))
        };
        for allowed in [
            (|_| ()) as fn(&mut ServerPlan),
            |server| server.mongod = Some("/opt/mongod".into()),
            |server| server.mongod = Some("6.0.27".into()),
            |server| server.data_dir = Some("/data/a/b".into()),
            |server| server.data_dir = Some("/own/data".into()),
            |server| server.listen = Some("10.0.0.1".into()),
            |server| set(server, "ttlMonitorEnabled", "false"),
        ] {
            assert_eq!(server(allowed), Ok(()));
        }
        type Change = fn(&mut ServerPlan);
        let refused: [(Change, &str); 10] = [
            (|server| server.mongod = Some("/bin/sh".into()), "--mongod /bin/sh"),
            (|server| server.mongod = Some("sh".into()), "--mongod sh"),
            (|server| server.mongos = Some("sh".into()), "--mongod sh"),
            (|server| server.data_dir = Some("/etc".into()), "--data-dir /etc"),
            (
                |server| server.data_dir = Some("/data/a/../../etc".into()),
                "--data-dir /data/a/../../etc",
            ),
            (
                |server| server.data_dirs = vec!["/data/a".into(), "/var/lib".into()],
                "--data-dir /var/lib",
            ),
            (|server| server.storage = "xfs on /dev/sdb".parse().ok(), "`server.data_dir`"),
            (|server| server.listen = Some("0.0.0.0".into()), "--listen 0.0.0.0"),
            (
                |server| set(server, "ttlMonitorEnabled", "true"),
                "--parameter ttlMonitorEnabled=true",
            ),
            (|server| set(server, "enableTestCommands", "1"), "--parameter enableTestCommands=1"),
        ];
        for (refused, part) in refused {
            let (kind, hint) = server(refused).expect_err("refused");
            assert_eq!(kind, Kind::BadInput, "{hint}");
            assert!(hint.contains(part), "{hint}");
        }
    }

    #[test]
    fn agent_with_targets_loads_no_others() {
        let check = |text| permits().check_target(&target(text)).is_ok();
        for allowed in ["mongodb://db1:9/", "mongodb://DB2/", "mongodb://db1/?replicaSet=rs"] {
            assert!(check(allowed), "{allowed}");
        }
        for refused in [
            "mongodb://db1,elsewhere/",
            "mongodb://169.254.169.254/",
            "mongodb://127.0.0.1/",
            "mongodb+srv://cluster.example.com/",
            "mongodb://db1/?tlsCAFile=%2Fetc%2Fshadow",
        ] {
            assert!(!check(refused), "{refused}");
        }
        let shouted = Permits { targets: BTreeSet::from(["DB1".to_owned()]), ..Permits::default() };
        assert!(shouted.check_target(&target("mongodb://db1/")).is_ok());
        let named = Permits::of(&ServerPlan {
            uri: Some("mongodb+srv://cluster.example.com/".into()),
            ..ServerPlan::default()
        });
        let srv = target("mongodb+srv://cluster.example.com/");
        assert!(named.check_target(&srv).is_ok());
    }

    #[test]
    fn agent_without_targets_loads_only_this_host() {
        let check = |text| Permits::default().check_target(&target(text));
        for allowed in [
            "mongodb://localhost/",
            "mongodb://127.0.0.2:7,[::1]/",
            "mongodb://%2Ftmp%2Fmongodb-27017.sock/",
        ] {
            assert!(check(allowed).is_ok(), "{allowed}");
        }
        for refused in [
            "mongodb://elsewhere/",
            "mongodb://localhost,elsewhere/",
            "mongodb://0.0.0.0/",
            "mongodb+srv://cluster.example.com/",
        ] {
            let error = check(refused).expect_err(refused);
            let hint = error.hint.unwrap_or_default();
            assert!(hint.contains("`--target "), "{refused}: {hint}");
        }
    }

    #[test]
    fn server_without_the_password_or_tls_of_the_run_is_refused() {
        let secured = ServerPlan {
            auth: true,
            encryption: Encryption::Server,
            listen: Some("10.0.0.1".into()),
            ..ServerPlan::default()
        };
        let started = Permits { listen: "10.0.0.1".parse().ok(), ..Permits::of(&secured) };
        let check = |permits: &Permits, server: &ServerPlan| {
            let checked = permits.check_server(server, Path::new("/run"));
            checked.map_err(|error| error.hint.unwrap_or_default())
        };
        assert_eq!(check(&started, &secured), Ok(()));
        let open = ServerPlan { auth: false, ..secured.clone() };
        let plain = ServerPlan { encryption: Encryption::Off, ..secured.clone() };
        let without = |server: &ServerPlan| check(&started, server).expect_err("less secure");
        assert!(without(&open).contains("--without-password"));
        assert!(without(&plain).contains("--without-tls"));
        // A comparison of both plans permits both.
        let mut both = started.clone();
        both.add(&open);
        assert_eq!(check(&both, &open), Ok(()));
        assert!(both.words_of_server("10.0.0.1").contains(&"--without-password".to_owned()));
        let here = ServerPlan { listen: None, ..open };
        assert_eq!(check(&started, &here), Ok(()), "loopback needs neither");
    }

    #[test]
    fn server_joins_only_members_that_the_agent_permits() {
        let permits = Permits {
            members: ["10.0.0.1", "fd00::2"].map(str::to_owned).into(),
            ..Permits::default()
        };
        let check = |hosts: &[&str]| {
            let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
            permits.check_members(&hosts)
        };
        assert!(check(&["10.0.0.1:7", "[fd00::2]:8"]).is_ok());
        let error = check(&["10.0.0.1:7", "10.0.0.9:7"]).expect_err("a foreign member");
        assert!(error.to_string().contains("`10.0.0.9`"), "{error}");
        assert!(check(&["10.0.0.1:7/?x=y"]).is_err() && check(&[]).is_err());
    }

    #[test]
    fn arguments_name_the_permits() {
        assert_eq!(
            permits().words_of_server("10.0.0.1").join(" "),
            "--mongod /opt/mongod --data-dir /data/a --parameter ttlMonitorEnabled=false \
             --without-password --without-tls --listen 10.0.0.1"
        );
        assert_eq!(permits().words_of_client().join(" "), "--target db1 --target db2");
    }
}
