//! The machine of a server, as the server reports it.

use super::{number_at, setup, text_at};
use crate::connect::Control;
use crate::error::LoadError;
use bson::{Document, doc};
use dyno_record::server::ServerMachine;

/// Prefix that a server uses for the kernel version if it does not know the distribution's version.
const KERNEL: &str = "Kernel ";

/// Asks a server for its machine. If it does not know or not allow the command, the reason is kept.
///
/// # Errors
/// [`LoadError::Setup`] if the connection fails.
pub fn server_machine(control: &mut Control) -> Result<ServerMachine, LoadError> {
    match control.run("admin", doc! { "hostInfo": 1 }) {
        Ok(answer) => Ok(machine(&answer)),
        Err(error) if error.code().is_some() => {
            Ok(ServerMachine { reason: Some(error.to_string()), ..ServerMachine::default() })
        }
        Err(error) => Err(setup("ask the server for its machine", error)),
    }
}

fn machine(answer: &Document) -> ServerMachine {
    let text = |path: &[&str]| text_at(answer, path).filter(|text| !text.is_empty());
    // Unknown values are 0.
    let number = |path: &[&str]| number_at(answer, path).filter(|number| *number > 0);
    let bytes = |path: &[&str]| number(path).map(|mib| mib << 20);
    let version = text(&["os", "version"]);
    let release = version.as_deref().and_then(|text| text.strip_prefix(KERNEL));
    let release = text(&["extra", "kernelVersion"]).or(release.map(str::to_owned));
    let kind = text(&["os", "type"]);
    ServerMachine {
        hostname: text(&["system", "hostname"]),
        os: text(&["os", "name"]).map(|name| distribution(&name, version.as_deref())),
        kernel: release.map(|release| match kind {
            Some(kind) => format!("{kind} {release}"),
            None => release,
        }),
        architecture: text(&["system", "cpuArch"]),
        cpu_model: text(&["extra", "cpuString"]),
        cpus: number(&["system", "numCores"]),
        usable_cpus: number(&["system", "numCoresAvailableToProcess"]),
        numa_nodes: number(&["system", "numNumaNodes"]),
        memory_bytes: bytes(&["system", "memSizeMB"]),
        memory_limit_bytes: bytes(&["system", "memLimitMB"]),
        reason: None,
    }
}

/// Name and version, such as `Ubuntu 22.04`. On some systems, the name is a line of `/etc/os-release`, and the version
/// is the kernel's.
fn distribution(name: &str, version: Option<&str>) -> String {
    let name = name.trim();
    let name = name.strip_prefix("PRETTY_NAME=").unwrap_or(name);
    let name = name.trim_matches('"');
    match version {
        Some(version) if !version.starts_with(KERNEL) => format!("{name} {version}"),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_facts_are_formatted() {
        let answer = doc! {
            "system": {
                "hostname": "db1", "memSizeMB": 16_000_i64, "memLimitMB": 4_096_i64, "numCores": 8, "numCoresAvailableToProcess": 2,
                "numPhysicalCores": 4, "cpuArch": "x86_64", "numaEnabled": false, "numNumaNodes": 1,
            },
            "os": { "type": "Linux", "name": "Ubuntu", "version": "22.04" },
            "extra": { "kernelVersion": "5.15.0-1052-aws", "cpuString": "AMD EPYC 7R13 Processor" },
            "ok": 1.0,
        };
        let expected = ServerMachine {
            hostname: Some("db1".into()),
            os: Some("Ubuntu 22.04".into()),
            kernel: Some("Linux 5.15.0-1052-aws".into()),
            architecture: Some("x86_64".into()),
            cpu_model: Some("AMD EPYC 7R13 Processor".into()),
            cpus: Some(8),
            usable_cpus: Some(2),
            numa_nodes: Some(1),
            memory_bytes: Some(16_000 << 20),
            memory_limit_bytes: Some(4_096 << 20),
            reason: None,
        };
        assert_eq!(machine(&answer), expected);
    }

    #[test]
    fn facts_that_a_server_omits_are_unknown() {
        let os = doc! {
            "type": "Linux", "name": "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"", "version": "Kernel 6.1.0-18-amd64",
        };
        let system = doc! { "hostname": "", "numCores": 0, "numCoresAvailableToProcess": -1, "memSizeMB": "many" };
        let expected = ServerMachine {
            os: Some("Debian GNU/Linux 12 (bookworm)".into()),
            kernel: Some("Linux 6.1.0-18-amd64".into()),
            ..ServerMachine::default()
        };
        assert_eq!(machine(&doc! { "system": system, "os": os }), expected);
        assert_eq!(machine(&doc! { "ok": 1 }), ServerMachine::default());
    }
}
