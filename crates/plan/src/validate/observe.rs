//! Checks of the observed sources.

use super::names::{NAME_RULE, is_file_name};
use super::problems::Problems;
use crate::model::{ExporterPlan, GrafanaPlan, Plan};
use crate::units::Span;
use std::path::Path;
use std::time::Duration;

/// Names of sources that a run has without exporters.
const OWN_SOURCES: [&str; 2] = ["host", "server"];

/// Prefix of the names of sources that are hosts of a fleet.
const HOST_OF_FLEET: &str = "host-";

/// Prefixes of the names of servers, if there are several.
const SERVER_KINDS: [&str; 5] = ["pair", "member", "router", "config", "shard"];

pub(super) fn check_price(problems: &mut Problems, plan: &Plan) {
    let Some(price) = &plan.price else { return };
    problems.require("price.per_h", price.has_value(), || {
        format!("is {}, but must be above 0", price.per_h)
    });
    problems.require(
        "price.currency",
        price.has_currency(),
        "must have 1 to 8 characters without blanks, digits and `/`",
    );
}

pub(super) fn check_observe(problems: &mut Problems, plan: &Plan) {
    let observe = &plan.observe;
    let (least, most) = (Span(Duration::from_millis(100)), Span::from_secs(60));
    problems.within("observe.interval", observe.interval, least..=most);
    for (index, exporter) in observe.exporters.iter().enumerate() {
        let name = &exporter.name;
        let path = format!("observe.exporters[{index}]");
        let key = format!("{path}.name");
        problems.require_or(&key, is_file_name(name), "it names a file", || {
            format!("is `{name}`, but must have {NAME_RULE}")
        });
        let is_taken = OWN_SOURCES.contains(&name.as_str())
            || is_numbered_server(name)
            || (plan.fleet.is_some() && name.starts_with(HOST_OF_FLEET))
            || observe.exporters[..index].iter().any(|other| other.name == *name);
        problems.require([key.as_str()], !is_taken, || {
            format!("two sources would have the name `{name}`; `{key}` needs another")
        });
        check_exporter_access(problems, exporter, &path);
        check_disk(problems, exporter, &path);
    }
    if let Some(grafana) = &observe.grafana {
        check_grafana(problems, grafana);
    }
}

fn check_grafana(problems: &mut Problems, grafana: &GrafanaPlan) {
    let url = &grafana.url;
    let has_host = host(url).is_some() && !url.contains(['?', '#']);
    problems.require_or(
        "observe.grafana.url",
        has_host,
        "use `http://HOST:PORT` or `https://HOST:PORT`, without user, password and query",
        "is not the address of a Grafana",
    );
    check_authority(problems, url, grafana.ca_file.as_deref(), "observe.grafana");
}

/// The host, optionally with its port, of an `http` or `https` address without user and password.
fn host(url: &str) -> Option<&str> {
    let encrypted = url.strip_prefix("https://");
    let place = encrypted.or_else(|| url.strip_prefix("http://"))?;
    let host = place.split('/').next()?;
    (!host.is_empty() && !host.contains('@')).then_some(host)
}

fn check_authority(problems: &mut Problems, url: &str, ca_file: Option<&Path>, path: &str) {
    problems.require_or(
        &format!("{path}.ca_file"),
        ca_file.is_none() || url.starts_with("https://"),
        "begin the address with `https://`, or remove `ca_file`",
        "applies to `https` only",
    );
}

/// Checks the disks that hold a server's data.
fn check_disk(problems: &mut Problems, exporter: &ExporterPlan, path: &str) {
    let Some(disk) = &exporter.disk else {
        return;
    };
    let names = disk.names();
    problems.require_or(
        &format!("{path}.disk"),
        !names.is_empty(),
        "name the disks, or remove `disk`",
        "is an empty list",
    );
    for (index, name) in names.iter().enumerate() {
        problems.require_or(
            &format!("{path}.disk"),
            !name.is_empty() && !name.contains('/'),
            "name it as the exporter does, such as `nvme1n1`",
            || format!("is `{name}`, which is not the name of a disk"),
        );
        problems.require(&format!("{path}.disk"), !names[..index].contains(name), || {
            format!("has `{name}` twice")
        });
    }
    problems.require(
        &format!("{path}.disk"),
        exporter.of_server != Some(false),
        "names a server's disk, but `of_server` is `false`",
    );
}

/// Checks the address and the credentials of an exporter.
fn check_exporter_access(problems: &mut Problems, exporter: &ExporterPlan, path: &str) {
    problems.require_or(
        &format!("{path}.url"),
        host(&exporter.url).is_some(),
        "use `http://HOST:PORT/metrics` or `https://HOST:PORT/metrics`; user and password have \
            their own keys",
        "is not the address of an exporter",
    );
    let has_user = exporter.user.is_some();
    problems.require_or(
        path,
        has_user == exporter.password_file.is_some(),
        "set both for HTTP Basic authentication, or none",
        "has only one of `user` and `password_file`",
    );
    problems.require_or(
        path,
        exporter.token_file.is_none() || !has_user,
        "remove one of them",
        "has `token_file` and `user`, but a request can carry only one of them",
    );
    let user = exporter.user.as_deref().unwrap_or("user");
    let is_user = !user.is_empty() && !user.contains(|c: char| c == ':' || c.is_control());
    problems.require(
        &format!("{path}.user"),
        is_user,
        "is empty, or has `:` or a control character",
    );
    check_authority(problems, &exporter.url, exporter.ca_file.as_deref(), path);
}

/// Whether a text is the name of one of several servers, such as `member-0`.
fn is_numbered_server(name: &str) -> bool {
    name.split_once('-').is_some_and(|(kind, number)| {
        SERVER_KINDS.contains(&kind) && number.starts_with(|first: char| first.is_ascii_digit())
    })
}
