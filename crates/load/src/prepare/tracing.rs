//! Profilers and audit log of a server, and the connections that it has left.

use super::{number_at, optional};
use crate::connect::Control;
use crate::error::LoadError;
use bson::{Bson, doc};
use std::collections::BTreeMap;

/// Setting of a server with an audit log.
const AUDIT_LOG: &str = "auditLog.destination";
/// Databases whose profiler level is read: each takes a command.
const MOST_DATABASES: usize = 50;

/// Connections that the server would still accept; `None` if it does not say.
///
/// # Errors
/// [`LoadError::Setup`] if the connection fails.
pub fn available_connections(control: &mut Control) -> Result<Option<u64>, LoadError> {
    let intent = "ask the server for its connections";
    let status = doc! {
        "serverStatus": 1, "metrics": 0, "locks": 0, "repl": 0, "tcmalloc": 0, "wiredTiger": 0,
    };
    let status = optional(control, "admin", status, intent)?;
    Ok(status.and_then(|status| number_at(&status, &["connections", "available"])))
}

/// Active profilers and the audit log, one text each; `None` if the server does not say. `settings` are the settings of the server.
///
/// # Errors
/// [`LoadError::Setup`] if the connection fails.
pub fn active_tracing(
    control: &mut Control,
    settings: &BTreeMap<String, String>,
) -> Result<Option<Vec<String>>, LoadError> {
    let intent = "ask the server for its profilers";
    let databases = doc! { "listDatabases": 1, "nameOnly": true, "authorizedDatabases": true };
    let Some(databases) = optional(control, "admin", databases, intent)? else {
        return Ok(None);
    };
    let databases = databases.get_array("databases").into_iter().flatten();
    let names: Vec<String> = databases
        .filter_map(Bson::as_document)
        .filter_map(|database| database.get_str("name").ok().map(str::to_owned))
        // Routers have no profiler.
        .take(if control.hello().is_mongos {
            0
        } else {
            MOST_DATABASES
        })
        .collect();
    let mut active = Vec::new();
    for name in names {
        let Some(profile) = optional(control, &name, doc! { "profile": -1 }, intent)? else {
            continue;
        };
        match number_at(&profile, &["was"]) {
            None | Some(0) => {}
            Some(level) => active.push(format!("profiler of `{name}` at level {level}")),
        }
    }
    if let Some(destination) = settings.get(AUDIT_LOG) {
        active.push(format!("audit log to {destination}"));
    }
    Ok(Some(active))
}
