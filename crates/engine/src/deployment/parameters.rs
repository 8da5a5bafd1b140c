//! Server parameters for the time of a run: set with `setParameter` once the servers run, and
//! restored at its end, however it ends. The list of changes keeps the earlier values of servers
//! that were already running, so that `dyno doctor --revert` can restore them if this program was
//! killed.

use super::engine_configuration;
use super::{DeploymentUnderTest, WatchedServer};
use crate::context::Context;
use crate::error::{Error, Kind};
use crate::undo::changes::Changes;
use crate::undo::journal;
use crate::undo::parameters::{
    ChangedParameter, NO_RIGHTS, RefusedParameter, is_same, text, unwrapped,
};
use crate::undo::step::{Step, Ways};
use bson::{Bson, Document, doc};
use dyno_analyze::experiment::conditions::changed_setting;
use dyno_load::connect::{Control, ControlError};
use dyno_plan::Plan;
use dyno_plan::knobs::ENGINE_CONFIGURATION;
use dyno_plan::nearest::nearest;
use dyno_record::model::{Caveat, CaveatKind};
use dyno_record::statement;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// Longest time for a command: shrinking a cache returns only when it has shrunk.
const LIMIT: Duration = Duration::from_secs(60);

/// Server name, and its parameter values by name.
pub(crate) type ServerValues = (String, BTreeMap<String, String>);

/// Parameters that are set. Dropping this restores them.
pub(crate) struct RuntimeParameters<'a> {
    servers: Rc<Vec<WatchedServer>>,
    names: Vec<String>,
    /// Values on the servers after all were set.
    pub(crate) found: Vec<ServerValues>,
    _changes: Changes<'a>,
}

impl<'a> RuntimeParameters<'a> {
    /// Sets the plan's parameters on all data servers; `None` if it has none.
    ///
    /// # Errors
    /// A server does not have a parameter, refuses its value, or needs another type, or its earlier
    /// value is unknown. Parameters set until then are restored.
    pub(crate) fn set(
        plan: &Plan,
        deployment: &DeploymentUnderTest,
        context: Context<'a>,
    ) -> Result<Option<Self>, Error> {
        let wanted = &plan.server.runtime_parameters;
        if wanted.is_empty() {
            return Ok(None);
        }
        let servers = Rc::new(deployment.data_servers());
        if servers.is_empty() {
            // A server that does not answer names no members.
            deployment.servers.iter().try_for_each(|server| server.control().map(drop))?;
            let text = "cannot set `server.runtime_parameters`: no server was found";
            return Err(Error::new(Kind::Environment, text));
        }
        let folder = match context.environment.state_dir.as_deref() {
            // The list would name servers that no longer exist.
            _ if deployment.ends_with_program() => None,
            given => Some(journal::folder(given)?),
        };
        let of_run = Rc::clone(&servers);
        let ways = Ways::to_servers(move |change| {
            let server = of_run.iter().find(|server| server.address == change.server);
            connect(server.ok_or_else(|| Error::new(Kind::Internal, "a server has gone"))?)
        });
        let changes = Changes::make(folder, ways, context.observer, || {
            let mut steps = Vec::new();
            for server in servers.iter() {
                steps.extend(changes_of(server, &deployment.uris(), wanted)?);
            }
            Ok(steps)
        })?;
        let mut parameters = RuntimeParameters {
            servers,
            names: wanted.keys().cloned().collect(),
            found: Vec::new(),
            _changes: changes,
        };
        let found: Result<_, _> = parameters.now().collect();
        parameters.found = found?;
        Ok(Some(parameters))
    }

    fn now(&self) -> impl Iterator<Item = Result<ServerValues, Error>> {
        let names: Vec<&String> = self.names.iter().collect();
        self.servers.iter().map(move |server| {
            let values = texts(&mut connect(server)?, server, &names)?;
            Ok((server.name.clone(), values))
        })
    }

    /// Values that were set. A value that has changed since includes the current value, and adds a
    /// caveat.
    pub(crate) fn look(&self) -> (Vec<ServerValues>, Vec<Caveat>) {
        let (mut applied, mut caveats) = (self.found.clone(), Vec::new());
        for ((server, values), now) in applied.iter_mut().zip(self.now()) {
            let now = now.map_or_else(|_| BTreeMap::new(), |(_, values)| values);
            for (parameter, set) in values {
                let statement = match now.get(parameter) {
                    Some(found) if found == set => continue,
                    Some(found) => statement!(
                        "parameter-changed",
                        server = &*server,
                        parameter = parameter,
                        set_to = &*set,
                        found = found
                    ),
                    None => {
                        statement!("parameter-not-read", server = &*server, parameter = parameter)
                    }
                };
                caveats.push(Caveat::of_run(CaveatKind::ServerSetting, statement));
                let found = now.get(parameter).map_or("not known", String::as_str);
                *set = changed_setting(set, found);
            }
        }
        (applied, caveats)
    }
}

/// Current values of these parameters on each data server, and the engine options in effect.
/// Parameters that a server does not have are left out.
///
/// # Errors
/// A server cannot be queried.
pub(crate) fn values(
    deployment: &DeploymentUnderTest,
    names: &[&String],
) -> Result<Vec<BTreeMap<String, String>>, Error> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let servers = deployment.data_servers();
    servers.iter().map(|server| reported(server, names)).collect()
}

fn reported(server: &WatchedServer, names: &[&String]) -> Result<BTreeMap<String, String>, Error> {
    let mut control = connect(server)?;
    let mut found = texts(&mut control, server, names)?;
    if let Some(configuration) = found.get_mut(ENGINE_CONFIGURATION) {
        let started = engine_at_start(&mut control, server)?;
        *configuration = engine_configuration::in_effect(&started, configuration);
    }
    Ok(found)
}

/// The runtime parameter of the first data server with the name most similar to `name`; `None` if
/// nothing is similar or the server does not list them.
pub(crate) fn near(deployment: &DeploymentUnderTest, name: &str) -> Option<String> {
    let servers = deployment.data_servers();
    listed_near(&mut connect(servers.first()?).ok()?, name)
}

fn listed_near(control: &mut Control, name: &str) -> Option<String> {
    let all = doc! { "getParameter": { "showDetails": true, "allParameters": true } };
    let listed = control.run("admin", all).ok()?;
    nearest(name, settable(&listed)).map(str::to_owned)
}

/// Names of the runtime parameters in a detailed list.
fn settable(listed: &Document) -> impl Iterator<Item = &str> {
    let is_settable = |details: &Bson| {
        let details = details.as_document();
        details.is_some_and(|own| own.get_bool("settableAtRuntime").unwrap_or_default())
    };
    listed.iter().filter_map(move |(name, details)| is_settable(details).then_some(name.as_str()))
}

/// Values of a server as people write them.
fn texts(
    control: &mut Control,
    server: &WatchedServer,
    names: &[&String],
) -> Result<BTreeMap<String, String>, Error> {
    let found = read(control, names, server)?;
    Ok(found.into_iter().map(|(name, value)| (name, text(&value))).collect())
}

/// Steps for one server, with its current values.
fn changes_of(
    server: &WatchedServer,
    uris: &[String],
    wanted: &BTreeMap<String, String>,
) -> Result<Vec<Step>, Error> {
    let names: Vec<&String> = wanted.keys().collect();
    let mut control = connect(server)?;
    let found = read(&mut control, &names, server)?;
    let started = match wanted.contains_key(ENGINE_CONFIGURATION) {
        true => engine_at_start(&mut control, server)?,
        false => String::new(),
    };
    let mut changes = Vec::new();
    for (name, asked) in wanted {
        let now = found.get(name).ok_or_else(|| unknown(name, server, &mut control))?;
        let set = typed(asked, now).ok_or_else(|| {
            let refused = RefusedParameter {
                name: name.clone(),
                value: asked.clone(),
                said: format!("`{}` has `{}`, of another kind", server.address, text(now)),
            };
            Error::from_cause(Kind::BadInput, refused)
                .context(format!("cannot set `server.runtime_parameters.{name}` to `{asked}`"))
                .with_hint("give a value of the same kind")
        })?;
        let before = match is_same(&set, now) {
            true => now.clone(),
            false => before(name, &started, now, asked)?,
        };
        changes.push(Step::Parameter(Box::new(ChangedParameter {
            uri: uris.first().cloned().unwrap_or_default(),
            server: server.address.clone(),
            name: name.clone(),
            before,
            set,
        })));
    }
    Ok(changes)
}

/// Hint that shows how to list the parameters.
const LISTING: &str = "`db.adminCommand({getParameter: \"*\"})` lists its parameters; their names depend on the version";

fn unknown(name: &str, server: &WatchedServer, control: &mut Control) -> Error {
    let text = format!("`{}` has no parameter `{name}`", server.address);
    let hint = match listed_near(control, name) {
        Some(near) => format!("did you mean `{near}`? {LISTING}"),
        None => LISTING.to_owned(),
    };
    Error::new(Kind::BadInput, text).with_hint(hint)
}

/// Engine options from the server's start; empty if there were none, or if it does not know the
/// command.
fn engine_at_start(control: &mut Control, server: &WatchedServer) -> Result<String, Error> {
    match control.run("admin", doc! { "getCmdLineOpts": 1 }) {
        Ok(reply) => Ok(configured(&reply).to_owned()),
        Err(ControlError::Server { code, .. }) if !NO_RIGHTS.contains(&code) => Ok(String::new()),
        Err(error) => {
            let intent = format!(
                "cannot read the start options of `{}`, which are needed to restore `{ENGINE_CONFIGURATION}`",
                server.address
            );
            let hint = "give a user with the role `clusterMonitor`";
            let hint = error.code().map(|_| hint.to_owned());
            let failure = Error::from_cause(Kind::Environment, error).context(intent);
            Err(failure.with_optional_hint(hint))
        }
    }
}

/// Engine options in the reply to `getCmdLineOpts`.
fn configured(reply: &Document) -> &str {
    let groups = ["parsed", "storage", "wiredTiger", "engineConfig"];
    let engine = groups.iter().try_fold(reply, |inner, name| inner.get_document(name).ok());
    let text = engine.and_then(|engine| engine.get_str("configString").ok());
    text.unwrap_or_default()
}

/// Value to restore. For the engine, `started` and the defaults fill in options that were not set
/// by command, because the server does not report them.
fn before(name: &str, started: &str, now: &Bson, asked: &str) -> Result<Bson, Error> {
    if name != ENGINE_CONFIGURATION {
        return Ok(now.clone());
    }
    let known = now.as_str().unwrap_or_default();
    engine_configuration::before(started, known, asked)
        .map(Bson::String)
        .map_err(|option| {
            let text = format!(
                "`{option}` in `server.runtime_parameters.{name}` cannot be restored: the server does not report its current value"
            );
            let known = engine_configuration::known().join("`, `");
            Error::new(Kind::BadInput, text).with_hint(format!("set one of `{known}`"))
        })
}

fn connect(server: &WatchedServer) -> Result<Control, Error> {
    let control = server.connector.control();
    let mut control = control.map_err(|error| {
        Error::from(error).context(format!("cannot connect to `{}`", server.address))
    })?;
    control.set_limit(Some(LIMIT));
    Ok(control)
}

/// Values of parameters. Parameters that the server does not have are left out.
fn read(
    control: &mut Control,
    names: &[&String],
    server: &WatchedServer,
) -> Result<BTreeMap<String, Bson>, Error> {
    let mut command = doc! { "getParameter": 1 };
    command.extend(names.iter().map(|name| ((*name).clone(), Bson::Int32(1))));
    let reply = match control.run("admin", command) {
        Ok(reply) => reply,
        // The server knows none of them. Some versions send no code for that, so every error but a
        // lack of rights counts.
        Err(ControlError::Server { code, .. }) if !NO_RIGHTS.contains(&code) => Document::new(),
        Err(error) => {
            let intent = format!("cannot read the parameters of `{}`", server.address);
            return Err(Error::from_cause(Kind::Environment, error).context(intent));
        }
    };
    let value = |name: &&String| Some(((*name).clone(), unwrapped(reply.get(*name)?).clone()));
    Ok(names.iter().filter_map(value).collect())
}

/// Parses `asked` as the type of the current value.
fn typed(asked: &str, now: &Bson) -> Option<Bson> {
    let asked = asked.trim();
    Some(match now {
        Bson::Boolean(_) => match asked {
            "true" | "1" => Bson::Boolean(true),
            "false" | "0" => Bson::Boolean(false),
            _ => return None,
        },
        Bson::Int32(_) => match asked.parse() {
            Ok(value) => Bson::Int32(value),
            Err(_) => Bson::Int64(asked.parse().ok()?),
        },
        Bson::Int64(_) => Bson::Int64(asked.parse().ok()?),
        Bson::Double(_) => {
            Bson::Double(asked.parse().ok().filter(|value: &f64| value.is_finite())?)
        }
        Bson::Document(_) | Bson::Array(_) => serde_json::from_str(asked).ok()?,
        _ => Bson::String(asked.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_is_parsed_as_the_type_on_the_server() {
        let cases = [
            ("30", Bson::Double(60.0), Some(Bson::Double(30.0))),
            ("30", Bson::Int32(60), Some(Bson::Int32(30))),
            ("5000000000", Bson::Int32(60), Some(Bson::Int64(5_000_000_000))),
            ("30", Bson::Int64(60), Some(Bson::Int64(30))),
            ("true", Bson::Boolean(false), Some(Bson::Boolean(true))),
            ("30", Bson::String("x".into()), Some(Bson::String("30".into()))),
            (
                r#"{"samplingRate": 0.5}"#,
                Bson::Document(doc! { "samplingRate": 0.01 }),
                Some(Bson::Document(doc! { "samplingRate": 0.5 })),
            ),
            ("many", Bson::Int32(60), None),
            ("nan", Bson::Double(60.0), None),
            ("2", Bson::Boolean(false), None),
        ];
        for (asked, now, expected) in cases {
            assert_eq!(typed(asked, &now), expected, "{asked} for {now}");
        }
    }

    #[test]
    fn only_runtime_parameters_are_suggested_for_a_name() {
        let taken = |taken: bool| doc! { "value": 60, "settableAtRuntime": taken };
        let listed =
            doc! { "syncdelay": taken(true), "syncDelays": taken(false), "port": 27017, "ok": 1.0 };
        assert_eq!(settable(&listed).collect::<Vec<_>>(), ["syncdelay"]);
        assert_eq!(nearest("syncDelays", settable(&listed)), Some("syncdelay"));
        assert_eq!(nearest("wrongName", settable(&listed)), None);
    }

    #[test]
    fn unset_engine_value_is_its_start_value_or_default() {
        let name = ENGINE_CONFIGURATION;
        let now = Bson::String(String::new());
        let asked = "eviction=(threads_max=20),eviction_dirty_target=1";
        let found = before(name, "", &now, asked).expect("both are known");
        assert_eq!(found.as_str(), Some("eviction=(threads_max=4),eviction_dirty_target=5"));
        let engine = doc! { "configString": "eviction=(threads_max=12)" };
        let storage = doc! { "wiredTiger": { "engineConfig": engine } };
        let reply = doc! { "parsed": { "storage": storage }, "ok": 1 };
        let found = before(name, configured(&reply), &now, asked).expect("both are known");
        assert_eq!(found.as_str(), Some("eviction=(threads_max=12),eviction_dirty_target=5"));
        assert_eq!(configured(&doc! { "parsed": {}, "ok": 1 }), "");
        let error = before(name, "", &now, "log=(enabled=false)").expect_err("it is not known");
        assert!(error.reason().contains("`log`"), "{}", error.reason());
    }
}
