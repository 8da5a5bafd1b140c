//! Checks of what is watched.

use super::names::{NAME_CHARACTERS, is_file_name};
use super::problems::Problems;
use crate::model::{ExporterPlan, Plan};
use crate::units::Span;
use std::time::Duration;

/// Names of sources that a run has without exporters.
const OWN_SOURCES: [&str; 2] = ["host", "server"];

/// How the names of sources begin that are hosts of a fleet.
const HOST_OF_FLEET: &str = "host-";

/// How the names of one of several servers begin.
const SERVER_KINDS: [&str; 5] = ["pair", "member", "router", "config", "shard"];

pub(super) fn check_observe(problems: &mut Problems, plan: &Plan) {
    let observe = &plan.observe;
    let (least, most) = (Span(Duration::from_millis(100)), Span::from_secs(60));
    problems.within("observe.interval", observe.interval, least..=most);
    for (index, exporter) in observe.exporters.iter().enumerate() {
        let name = &exporter.name;
        problems.require_or(is_file_name(name), "it names a file", || {
            format!("`observe.exporters[{index}].name` is `{name}`, but must have 1 to {NAME_CHARACTERS} letters, digits, `.`, `_` or `-`")
        });
        let is_taken = OWN_SOURCES.contains(&name.as_str())
            || is_numbered_server(name)
            || (plan.fleet.is_some() && name.starts_with(HOST_OF_FLEET))
            || observe.exporters[..index]
                .iter()
                .any(|other| other.name == *name);
        problems.require(!is_taken, || {
            format!("two sources would have the name `{name}`; `observe.exporters[{index}].name` needs another")
        });
        check_exporter_access(problems, exporter, &format!("observe.exporters[{index}]"));
    }
}

/// The problems of where an exporter is and of how it is asked.
fn check_exporter_access(problems: &mut Problems, exporter: &ExporterPlan, path: &str) {
    let encrypted = exporter.url.strip_prefix("https://");
    let place = encrypted.or_else(|| exporter.url.strip_prefix("http://"));
    let host = place.and_then(|rest| rest.split('/').next());
    problems.require_or(
        host.is_some_and(|host| !host.is_empty() && !host.contains('@')),
        "give it as `http://HOST:PORT/metrics` or `https://HOST:PORT/metrics`; user and password have keys of their own",
        || format!("`{path}.url` is not the address of an exporter"),
    );
    let has_user = exporter.user.is_some();
    problems.require_or(
        has_user == exporter.password_file.is_some(),
        "give both for HTTP Basic authentication, or none",
        || format!("`{path}` has only one of `user` and `password_file`"),
    );
    problems.require_or(
        exporter.token_file.is_none() || !has_user,
        "leave one of them out",
        || {
            format!(
                "`{path}` has `token_file` and `user`, but a request can carry only one of them"
            )
        },
    );
    let user = exporter.user.as_deref().unwrap_or("user");
    let is_user = !user.is_empty() && !user.contains(|c: char| c == ':' || c.is_control());
    problems.require(is_user, || {
        format!("`{path}.user` is empty, or has `:` or a control character")
    });
    problems.require_or(
        exporter.ca_file.is_none() || encrypted.is_some(),
        "begin the address with `https://`, or leave `ca_file` out",
        || format!("`{path}.ca_file` applies to `https` only"),
    );
}

/// Whether it is the name of one of several servers, such as `member-0`.
fn is_numbered_server(name: &str) -> bool {
    name.split_once('-').is_some_and(|(kind, number)| {
        SERVER_KINDS.contains(&kind) && number.starts_with(|first: char| first.is_ascii_digit())
    })
}
