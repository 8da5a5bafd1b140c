//! What work may ask of an agent. It comes over Redis, and whoever writes there is not trusted: programs, folders and addresses are
//! those that the agent was started for.

use dyno_engine::{Error, Kind};
use dyno_plan::model::ServerPlan;
use dyno_plan::uri::{Host, Target};
use dyno_servers::is_installed_name;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Component, Path, PathBuf};

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permits {
    /// Programs of servers that a plan may name by path. Any may name an installed version.
    pub programs: BTreeSet<PathBuf>,
    /// Folders for data that a plan may name, besides that of the agent.
    pub data_folders: BTreeSet<PathBuf>,
    /// The address that servers may listen on, besides those of loopback.
    pub listen: Option<IpAddr>,
    /// Hosts that may be loaded, without ports; all if there are none.
    pub targets: BTreeSet<String>,
}

impl Permits {
    /// Adds what a plan names, and the server that runs already.
    pub(crate) fn add(&mut self, server: &ServerPlan, target: Option<&Target>) {
        self.programs
            .extend(named_programs(server).map(PathBuf::from));
        self.data_folders
            .extend(named_folders(server).map(PathBuf::from));
        self.targets.extend(target.into_iter().flat_map(hosts));
    }

    /// The arguments of an agent that loads.
    pub(crate) fn words_of_client(&self) -> Vec<String> {
        words("--target", self.targets.iter().cloned())
    }

    /// The arguments of an agent that starts servers, which listen on this address.
    pub(crate) fn words_of_server(&self, listen: &str) -> Vec<String> {
        let texts = |paths: &BTreeSet<PathBuf>| {
            let texts = paths.iter().map(|path| path.display().to_string());
            texts.collect::<Vec<_>>()
        };
        let mut all = words("--mongod", texts(&self.programs));
        all.extend(words("--data-dir", texts(&self.data_folders)));
        all.extend(words("--listen", [listen.to_owned()]));
        all
    }

    /// Refuses a plan whose servers are not what the agent was started for. `folder` is that of the agent.
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
        let listen = server.listen.as_deref().unwrap_or("127.0.0.1");
        let address = listen.parse::<IpAddr>().ok();
        if !address.is_some_and(|address| address.is_loopback() || Some(address) == self.listen) {
            return Err(refused("address", listen, "--listen"));
        }
        Ok(())
    }

    /// Refuses a server that the agent was not started to load.
    pub(crate) fn check_target(&self, target: &Target) -> Result<(), Error> {
        let is_foreign = |host: &String| {
            let mut own = self.targets.iter();
            !own.any(|target| target.eq_ignore_ascii_case(host))
        };
        match hosts(target).find(is_foreign) {
            Some(host) if !self.targets.is_empty() => Err(refused("server", &host, "--target")),
            _ => Ok(()),
        }
    }
}

fn refused(what: &str, value: &str, option: &str) -> Error {
    let text = format!("the work names the {what} `{value}`, which this agent was not started for");
    let hint = format!("start the agent with `{option} {value}` if the work is yours");
    Error::new(Kind::BadInput, text).with_hint(hint)
}

fn words(option: &str, values: impl IntoIterator<Item = String>) -> Vec<String> {
    let pairs = values.into_iter().map(|value| [option.to_owned(), value]);
    pairs.flatten().collect()
}

/// Programs that are named by path, and not by the version of an installed one.
fn named_programs(server: &ServerPlan) -> impl Iterator<Item = &str> {
    let mongod = server
        .mongod
        .as_deref()
        .filter(|text| !is_installed_name(text));
    mongod.into_iter().chain(server.mongos.as_deref())
}

fn named_folders(server: &ServerPlan) -> impl Iterator<Item = &str> {
    let all = server.data_dir.iter().chain(&server.data_dirs);
    all.map(String::as_str)
}

/// Hosts of a connection string, and the name that its addresses are looked up by.
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
        let mut permits = Permits {
            listen: "10.0.0.1".parse().ok(),
            ..Permits::default()
        };
        let server = ServerPlan {
            mongod: Some("/opt/mongod".into()),
            data_dirs: vec!["/data/a".into()],
            ..ServerPlan::default()
        };
        permits.add(&server, Some(&target("mongodb://db1,db2:7/")));
        permits
    }

    fn target(text: &str) -> Target {
        Remote::parse(text).expect("it is one").target
    }

    #[test]
    fn work_names_no_program_folder_or_address_beyond_what_the_agent_was_started_for() {
        let server = |change: fn(&mut ServerPlan)| {
            let mut server = ServerPlan::default();
            change(&mut server);
            let checked = permits().check_server(&server, Path::new("/own"));
            checked.map_err(|error| error.to_string())
        };
        for allowed in [
            (|_| ()) as fn(&mut ServerPlan),
            |server| server.mongod = Some("/opt/mongod".into()),
            |server| server.mongod = Some("6.0.27".into()),
            |server| server.data_dir = Some("/data/a/b".into()),
            |server| server.data_dir = Some("/own/data".into()),
            |server| server.listen = Some("10.0.0.1".into()),
        ] {
            assert_eq!(server(allowed), Ok(()));
        }
        for refused in [
            (|server| server.mongod = Some("/bin/sh".into())) as fn(&mut ServerPlan),
            |server| server.mongod = Some("sh".into()),
            |server| server.mongos = Some("sh".into()),
            |server| server.data_dir = Some("/etc".into()),
            |server| server.data_dir = Some("/data/a/../../etc".into()),
            |server| server.data_dirs = vec!["/data/a".into(), "/var/lib".into()],
            |server| server.listen = Some("0.0.0.0".into()),
        ] {
            let error = server(refused).expect_err("it is not allowed");
            assert!(error.contains("not started for"), "{error}");
        }
    }

    #[test]
    fn an_agent_with_targets_loads_no_others() {
        let check = |text| permits().check_target(&target(text)).is_ok();
        assert!(check("mongodb://db1:9/"));
        assert!(check("mongodb://DB2/"));
        assert!(!check("mongodb://db1,elsewhere/"));
        assert!(!check("mongodb://169.254.169.254/"));
        let shouted = Permits {
            targets: BTreeSet::from(["DB1".to_owned()]),
            ..Permits::default()
        };
        assert!(shouted.check_target(&target("mongodb://db1/")).is_ok());
        let any = Permits::default().check_target(&target("mongodb://elsewhere/"));
        assert!(any.is_ok());
    }

    #[test]
    fn arguments_name_what_is_permitted() {
        assert_eq!(
            permits().words_of_server("10.0.0.1").join(" "),
            "--mongod /opt/mongod --data-dir /data/a --listen 10.0.0.1"
        );
        assert_eq!(
            permits().words_of_client().join(" "),
            "--target db1 --target db2"
        );
    }
}
