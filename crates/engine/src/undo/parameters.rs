//! Server parameters that are set and later restored if their values have not changed since.

use super::step::NotUndone;
use crate::connector::connector_to;
use crate::error::{Error, Kind, OrFault};
use bson::{Bson, doc};
use dyno_load::connect::{Control, ControlError};
use dyno_observe::doctor::change::Reverted;
use dyno_plan::knobs::ENGINE_CONFIGURATION;
use dyno_plan::task::Remote;
use dyno_plan::uri::{Host, Target};
use serde::{Deserialize, Serialize};

/// `Unauthorized` and `AuthenticationFailed`.
pub(crate) const NO_RIGHTS: [i32; 2] = [13, 18];

/// A parameter that was set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangedParameter {
    /// Connection string of the deployment, without credentials.
    pub uri: String,
    /// Address of the server.
    pub server: String,
    pub name: String,
    pub before: Bson,
    pub set: Bson,
}

impl ChangedParameter {
    /// Message after the undo, such as: `syncdelay` of `127.0.0.1:27017` is `60.0` again.
    pub fn reverted(&self) -> String {
        format!("`{}` of `{}` is `{}` again", self.name, self.server, text(&self.before))
    }

    /// Connects to the server by its connection string, with the user of `given` if that names the
    /// same deployment.
    pub(super) fn connect(&self, given: Option<&Remote>) -> Result<Control, Error> {
        let stored = Remote::parse(&self.uri)?;
        let server = Remote::parse(&format!("mongodb://{}/", self.server))?;
        let Target { hosts, .. } = server.target;
        let host = hosts.into_iter().next();
        let host =
            host.ok_or_else(|| Error::new(Kind::BadInput, "the entry has no server address"))?;
        let is_of = |given: &&Remote| is_of_deployment(&given.target, &stored.target, &host);
        let remote = given.filter(is_of).unwrap_or(&stored);
        let connector = connector_to(&remote.target, remote.credentials.clone(), host)?;
        connector.control().map_err(|error| {
            Error::from(error).context(format!("cannot connect to `{}`", self.server))
        })
    }

    /// Sets the parameter. Returns the change with the server's resulting value, which may include
    /// more than was set.
    pub(super) fn apply(&self, control: &mut Control) -> Result<Self, Error> {
        self.write(control, &self.set)?;
        let set = self.value_now(control)?.unwrap_or_else(|| self.set.clone());
        Ok(ChangedParameter { set, ..self.clone() })
    }

    /// Restores the earlier value, if the set value is unchanged.
    pub(super) fn undo(&self, control: &mut Control) -> Result<Reverted, NotUndone> {
        let hint = "if the server needs a password, set its connection string in `DYNO_URI`; if the server is gone, remove the entry";
        let failed = |failure: Error| NotUndone::Failed(failure.with_hint(hint));
        let now = self.value_now(control).map_err(failed)?;
        let undone = self.compare(now.as_ref())?;
        if undone == Reverted::Now {
            self.write(control, &self.before).map_err(failed)?;
        }
        Ok(undone)
    }

    fn compare(&self, now: Option<&Bson>) -> Result<Reverted, NotUndone> {
        let is = |value: &Bson| now.is_some_and(|now| is_same(now, value));
        if is(&self.before) {
            return Ok(Reverted::Already);
        }
        if is(&self.set) {
            return Ok(Reverted::Now);
        }
        // A server reports only the engine text set last, and an empty one after a start. A text
        // set by others need not contain the options set here, and then leaves them unchanged.
        if self.name == ENGINE_CONFIGURATION && is(&Bson::String(String::new())) {
            return Ok(Reverted::Gone);
        }
        let found = now.map_or_else(|| "missing".to_owned(), |now| format!("`{}`", text(now)));
        Err(NotUndone::Changed(format!(
            "`{}` of `{}` is {found}, not `{}`: it was changed after this program set it",
            self.name,
            self.server,
            text(&self.set)
        )))
    }

    fn write(&self, control: &mut Control, value: &Bson) -> Result<(), Error> {
        let command = doc! { "setParameter": 1, &self.name: value.clone() };
        control.run("admin", command).map(drop).map_err(|error| {
            let failure = match &error {
                ControlError::Server { code, .. } if !NO_RIGHTS.contains(code) => {
                    let refused = RefusedParameter {
                        name: self.name.clone(),
                        value: text(value),
                        said: error.to_string(),
                    };
                    Error::from_cause(Kind::BadInput, refused)
                }
                _ => {
                    let kind = error.code().map_or(Kind::Environment, |_| Kind::BadInput);
                    Error::from_cause(kind, error)
                }
            };
            failure.context(format!(
                "cannot set `{}` of `{}` to `{}`",
                self.name,
                self.server,
                text(value)
            ))
        })
    }

    pub(super) fn value_now(&self, control: &mut Control) -> Result<Option<Bson>, Error> {
        let command = doc! { "getParameter": 1, &self.name: 1 };
        let reply = control.run("admin", command).or_fault(Kind::Environment, || {
            format!("cannot read `{}` of `{}`", self.name, self.server)
        })?;
        Ok(reply.get(&self.name).map(unwrapped).cloned())
    }
}

/// Whether a given connection string is for the deployment of an entry. Its user must not sign in
/// anywhere else.
fn is_of_deployment(given: &Target, stored: &Target, server: &Host) -> bool {
    let is_shared = |host: &Host| stored.hosts.contains(host) || host == server;
    let is_same_name = given.srv.is_some() && given.srv == stored.srv;
    is_same_name || given.hosts.iter().any(is_shared)
}

/// A value that a server refuses.
#[derive(Debug, thiserror::Error)]
#[error("{said}")]
pub(crate) struct RefusedParameter {
    pub(crate) name: String,
    pub(crate) value: String,
    /// The server's answer, or another reason against the value.
    pub(crate) said: String,
}

impl RefusedParameter {
    /// Message for the user.
    pub(crate) fn in_words(&self) -> String {
        format!("`{}` cannot be `{}`: {}", self.name, self.value, self.said)
    }

    /// Finds the refused parameter among the causes of a failure.
    pub(crate) fn among(failure: &Error) -> Option<&RefusedParameter> {
        failure.cause.chain().find_map(|cause| cause.downcast_ref())
    }
}

/// Unwraps a value: newer versions wrap some parameters.
pub(crate) fn unwrapped(value: &Bson) -> &Bson {
    let inner = value.as_document().and_then(|wrapped| wrapped.get("value"));
    inner.unwrap_or(value)
}

/// Whether two values are equal, whatever the width of their numbers.
pub(crate) fn is_same(one: &Bson, other: &Bson) -> bool {
    text(one) == text(other)
}

/// A value as people write it.
pub(crate) fn text(value: &Bson) -> String {
    match value {
        Bson::String(text) => text.clone(),
        // With a fraction, even if it is 0.
        Bson::Double(number) => format!("{number:?}"),
        other => other.to_string(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn change(name: &str) -> ChangedParameter {
        ChangedParameter {
            uri: "mongodb://127.0.0.1:27017/".into(),
            server: "127.0.0.1:27017".into(),
            name: name.into(),
            before: Bson::Double(60.0),
            set: Bson::Double(5.0),
        }
    }

    #[test]
    fn user_of_one_deployment_does_not_sign_in_at_another() {
        let target = |uri: &str| Remote::parse(uri).expect("it is valid").target;
        let stored = target("mongodb://a:1,b:2/");
        let server = target("mongodb://c:3/").hosts.remove(0);
        for (given, is_of) in [
            ("mongodb://me:pw@b:2/", true),
            ("mongodb://me:pw@c:3/", true),
            ("mongodb://me:pw@b:3/", false),
            ("mongodb://me:pw@d:3/", false),
        ] {
            let found = is_of_deployment(&target(given), &stored, &server);
            assert_eq!(found, is_of, "{given}");
        }
    }

    #[test]
    fn engine_options_set_by_others_are_left_alone() {
        let own = ChangedParameter {
            before: Bson::String("eviction=(threads_max=20)".into()),
            set: Bson::String("eviction=(threads_max=4)".into()),
            ..change(ENGINE_CONFIGURATION)
        };
        let found = |now: &str| own.compare(Some(&Bson::String(now.into())));
        assert_eq!(found("eviction=(threads_max=4)").ok(), Some(Reverted::Now));
        let before = found("eviction=(threads_max=20)");
        assert_eq!(before.ok(), Some(Reverted::Already));
        assert_eq!(found("").ok(), Some(Reverted::Gone));
        let other = found("eviction_target=70");
        assert!(matches!(other, Err(NotUndone::Changed(_))));
        let other = change("a").compare(Some(&Bson::String(String::new())));
        assert!(matches!(other, Err(NotUndone::Changed(_))));
    }
}
