//! Profilers and audit log of a server, and its available connections.

use super::{number_at, optional};
use crate::connect::Control;
use crate::error::LoadError;
use bson::{Bson, doc};
use std::collections::BTreeMap;

/// Setting for the audit log.
const AUDIT_LOG: &str = "auditLog.destination";
/// Maximum number of databases whose profiler level is read, with one command each.
const MOST_DATABASES: usize = 50;

/// Number of connections that the server still accepts; `None` if not reported.
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

/// Active profilers and the audit log, one text each; `None` if not reported. `settings` are the settings of the
/// server.
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
    let names: Vec<String> = databases
        .get_array("databases")
        .into_iter()
        .flatten()
        .filter_map(Bson::as_document)
        .filter_map(|database| database.get_str("name").ok().map(str::to_owned))
        // Routers do not have a profiler.
        .take(if control.hello().is_mongos { 0 } else { MOST_DATABASES })
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
