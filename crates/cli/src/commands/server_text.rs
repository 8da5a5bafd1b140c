//! Text and JSON of deployments.

use dyno_engine::detached::state::{MemberState, State};
use dyno_engine::detached::{DetachedDeployment, Status};
use dyno_load::connect::Connector;
use dyno_plan::task::Remote;
use dyno_report::page::table::{Cell, Table};
use dyno_report::table_text;
use serde::Serialize;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// Time limit for the answer of a server.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// Answer of a server to a status request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Answer {
    /// Reported role, such as `primary`; absent without an answer.
    role: Option<String>,
    /// Time until the first answer, including the connection.
    answered_after_ms: Option<f64>,
    /// Reason for a missing answer.
    problem: Option<String>,
}

impl Answer {
    /// Asks a server for its role.
    pub(crate) fn of(member: &MemberState) -> Self {
        let begin = Instant::now();
        match ask(member) {
            Ok(role) => Answer {
                role: Some(role),
                answered_after_ms: Some(begin.elapsed().as_secs_f64() * 1e3),
                problem: None,
            },
            Err(problem) => Answer { role: None, answered_after_ms: None, problem: Some(problem) },
        }
    }

    pub(crate) fn is_good(&self) -> bool {
        self.problem.is_none()
    }
}

fn ask(member: &MemberState) -> Result<String, String> {
    let mut remote = Remote::parse(&member.uri).map_err(|error| error.to_string())?;
    let limit_ms = u64::try_from(ANSWER_LIMIT.as_millis()).unwrap_or(u64::MAX);
    remote.target.options.connect_timeout_ms = Some(limit_ms);
    let connector = Connector::new(&remote.target, None).map_err(|error| error.to_string())?;
    let control = connector.control().map_err(|error| error.to_string())?;
    Ok(control.hello().role().as_str().to_owned())
}

/// A deployment and how its servers answer.
#[derive(Serialize)]
pub(crate) struct Shown<'a> {
    pub(crate) name: &'a str,
    #[serde(flatten)]
    pub(crate) state: &'a State,
    pub(crate) answers: Vec<Answer>,
}

/// Formats a deployment for people.
pub(crate) fn status(Shown { name, state, answers }: &Shown<'_>) -> String {
    let mut text = String::new();
    let mut fact = |key: &str, value: &str| {
        let _ = writeln!(text, "{key:<10} {value}");
    };
    fact("name", name);
    fact("topology", &state.topology);
    fact("program", &state.program);
    fact("started", &state.started);
    for uri in &state.uris {
        fact("uri", uri);
    }
    if let Some(user) = &state.user {
        fact("user", &format!("{user} (`dyno server status {name} --uri` prints the password)"));
    }
    if let Some(placement) = &state.placement {
        fact("placement", &placement.record.request);
        for (number, place) in placement.record.instances.iter().enumerate() {
            fact("", &format!("server {number}: {place}"));
        }
    }
    text.push('\n');
    let members: Vec<_> = state.members.iter().zip(answers).collect();
    let table = Table::of(&members)
        .text("server", |(member, _)| &member.name)
        .text("does", |(member, _)| &member.duty)
        .text("address", |(member, _)| &member.address)
        .text("process", |(member, _)| member.process)
        .text("version", |(member, _)| &member.version)
        .text("answer", |(_, answer)| in_words(answer));
    text.push_str(&table_text(&table.table("Servers"), None));
    for member in &state.members {
        for deviation in &member.deviations {
            let _ = writeln!(text, "\nwarning: server `{}`: {deviation}", member.name);
        }
    }
    for deviation in state.placement.iter().flat_map(|place| &place.deviations) {
        let _ = writeln!(text, "\nwarning: {deviation}");
    }
    text
}

fn in_words(answer: &Answer) -> String {
    match (&answer.role, answer.answered_after_ms, &answer.problem) {
        (Some(role), Some(time_ms), _) => format!("{role}, after {time_ms:.1} ms"),
        (_, _, Some(problem)) => format!("none: {problem}"),
        _ => String::new(),
    }
}

/// A deployment in a list.
#[derive(Serialize)]
pub(crate) struct Listed<'a> {
    name: &'a str,
    /// `up`, `degraded`, `starting`, `unreadable` or `ended`.
    state: &'static str,
    /// The ended server, or the reason why the deployment cannot be read.
    problem: Option<&'a str>,
    deployment: Option<&'a State>,
}

/// The entry of a deployment.
pub(crate) fn listed((place, standing): &(DetachedDeployment, Status)) -> Listed<'_> {
    let (state, deployment, problem) = match standing {
        Status::Up(state) => ("up", Some(&**state), None),
        Status::Degraded(state, problem) => ("degraded", Some(&**state), Some(problem.as_str())),
        Status::Starting => ("starting", None, None),
        Status::Unreadable(problem) => ("unreadable", None, Some(problem.as_str())),
        Status::Gone => ("ended", None, None),
    };
    Listed { name: &place.name, state, problem, deployment }
}

/// Formats all deployments for people.
pub(crate) fn list(listed: &[Listed<'_>]) -> String {
    if listed.is_empty() {
        return "no deployments; start one with `dyno server start`\n".into();
    }
    let known =
        |one: &Listed<'_>, fact: fn(&State) -> String| Cell::known(one.deployment.map(fact));
    let table = Table::of(listed)
        .text("name", |one| one.name)
        .text("state", |one| one.state)
        .text("topology", |one| known(one, |state| state.topology.clone()))
        .text("program", |one| known(one, |state| state.program.clone()))
        .text("started", |one| known(one, |state| state.started.clone()))
        .text("uri", |one| known(one, |state| state.uris.join(" ")));
    let mut text = table_text(&table.table("Deployments"), None);
    for one in listed {
        if let Some(problem) = one.problem {
            let _ = writeln!(text, "\nwarning: `{}`: {problem}", one.name);
        }
    }
    text
}
