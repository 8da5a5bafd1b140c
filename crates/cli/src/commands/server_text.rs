//! Text and JSON of deployments.

use crate::messages::pretty_json;
use dyno_engine::detached::state::{MemberState, State};
use dyno_engine::detached::{DetachedDeployment, Status};
use dyno_load::connect::Connector;
use dyno_plan::task::Remote;
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

#[derive(Serialize)]
struct Shown<'a> {
    name: &'a str,
    #[serde(flatten)]
    state: &'a State,
    answers: Vec<Answer>,
}

/// Formats a deployment as JSON.
pub(crate) fn status_json(name: &str, state: &State, answers: Vec<Answer>) -> String {
    pretty_json(&Shown { name, state, answers })
}

/// Formats a deployment for people.
pub(crate) fn status(name: &str, state: &State, answers: &[Answer]) -> String {
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
    let mut rows =
        vec![["server", "does", "address", "process", "version", "answer"].map(String::from)];
    for (member, answer) in state.members.iter().zip(answers) {
        rows.push([
            member.name.clone(),
            member.duty.clone(),
            member.address.clone(),
            member.process.to_string(),
            member.version.clone(),
            in_words(answer),
        ]);
    }
    text.push_str(&table(&rows));
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

#[derive(Serialize)]
struct Listed<'a> {
    name: &'a str,
    /// `up`, `degraded`, `starting`, `unreadable` or `ended`.
    state: &'static str,
    /// The ended server, or the reason why the deployment cannot be read.
    problem: Option<&'a str>,
    deployment: Option<&'a State>,
}

fn listed((place, standing): &(DetachedDeployment, Status)) -> Listed<'_> {
    let (state, deployment, problem) = match standing {
        Status::Up(state) => ("up", Some(&**state), None),
        Status::Degraded(state, problem) => ("degraded", Some(&**state), Some(problem.as_str())),
        Status::Starting => ("starting", None, None),
        Status::Unreadable(problem) => ("unreadable", None, Some(problem.as_str())),
        Status::Gone => ("ended", None, None),
    };
    Listed { name: &place.name, state, problem, deployment }
}

/// Formats all deployments as JSON.
pub(crate) fn list_json(all: &[(DetachedDeployment, Status)]) -> String {
    pretty_json(&all.iter().map(listed).collect::<Vec<_>>())
}

/// Formats all deployments for people.
pub(crate) fn list(all: &[(DetachedDeployment, Status)]) -> String {
    if all.is_empty() {
        return "no deployments; start one with `dyno server start`\n".into();
    }
    let mut rows =
        vec![["name", "state", "topology", "program", "started", "uri"].map(String::from)];
    for one in all.iter().map(listed) {
        let of = |what: &dyn Fn(&State) -> String| one.deployment.map_or_else(String::new, what);
        rows.push([
            one.name.to_owned(),
            one.state.into(),
            of(&|state| state.topology.clone()),
            of(&|state| state.program.clone()),
            of(&|state| state.started.clone()),
            of(&|state| state.uris.join(" ")),
        ]);
    }
    let mut text = table(&rows);
    for one in all.iter().map(listed) {
        if let Some(problem) = one.problem {
            let _ = writeln!(text, "\nwarning: `{}`: {problem}", one.name);
        }
    }
    text
}

/// Aligns the columns, without padding the last one.
fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..N).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:<width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
