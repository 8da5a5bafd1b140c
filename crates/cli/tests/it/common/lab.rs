//! A bench with the fake `mongod` that replaces `mongod` and `mongos`.

use super::{Bench, names, processes_with};
use dyno_testkit::fake_mongod::FakeMongod;
use std::process::Command;

/// Name of the test for the processes of the fake `mongod`.
const HELPER: &str = "topologies::helper_that_is_a_server";

/// See the module. Remaining deployments are stopped at the end, even if the test fails.
pub(crate) struct Lab {
    pub(crate) bench: Bench,
    pub(crate) fake_mongod: FakeMongod,
    /// Path of the fake `mongod`.
    pub(crate) mongod: String,
}

impl Lab {
    pub(crate) fn new(version: &str) -> Self {
        let bench = Bench::new();
        let fake_mongod = FakeMongod::install(&bench.path("bin"), version, HELPER);
        Lab { mongod: fake_mongod.mongod().to_str().unwrap().to_owned(), bench, fake_mongod }
    }

    /// Fake `mongod` processes with this text among their arguments.
    pub(crate) fn processes(&self, text: &str) -> Vec<u32> {
        let folder = format!("DYNO_DOUBLE_FOLDER={}", self.bench.path("bin").display());
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Ok(process) = entry.file_name().to_string_lossy().parse::<u32>() else {
                continue;
            };
            let variables = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            let variables = String::from_utf8_lossy(&variables);
            let arguments =
                variables.split('\0').find_map(|one| one.strip_prefix("DYNO_DOUBLE_ARGUMENTS="));
            let ours = variables.split('\0').any(|one| one == folder);
            if ours && arguments.is_some_and(|arguments| arguments.contains(text)) {
                found.push(process);
            }
        }
        found
    }

    /// Number of times that a member received a command with this concern.
    pub(crate) fn asked(&self, member: &str, command: &str, concern: &str) -> u64 {
        let sent = self.fake_mongod.operations();
        sent.iter()
            .filter(|sent| sent.member == member && sent.command == command)
            .filter(|sent| sent.concern.as_deref().unwrap_or("none") == concern)
            .map(|sent| sent.count)
            .sum()
    }

    /// Data and secret folders in the run directory.
    pub(crate) fn folders(&self) -> Vec<String> {
        let run = self.bench.path("r");
        let mut found = if run.exists() { names(&run) } else { Vec::new() };
        found.retain(|name| name == "server-data" || name == "server-secrets");
        found
    }

    /// Names of the existing deployments.
    pub(crate) fn deployments(&self) -> Vec<String> {
        let folder = self.bench.path("state/servers");
        if folder.exists() { names(&folder) } else { Vec::new() }
    }

    /// Checks that nothing is left, and that no command was sent that the manual does not document.
    #[track_caller]
    pub(crate) fn assert_clean(&self) {
        assert_eq!(self.processes(""), Vec::<u32>::new());
        let place = self.bench.folder.path().to_str().unwrap();
        assert_eq!(processes_with(place), Vec::<u32>::new());
        assert_eq!(self.folders(), Vec::<String>::new());
        assert_eq!(self.deployments(), Vec::<String>::new());
        assert_eq!(self.fake_mongod.violations(), Vec::<String>::new());
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for name in self.deployments() {
            let _ = self.bench.dyno(&["server", "stop", &name]);
        }
    }
}

/// Ends a process at once.
pub(crate) fn kill(process: u32) {
    let status = Command::new("kill").args(["-9", &process.to_string()]).status();
    assert!(status.unwrap().success());
}
