//! Keeps which parameters of servers that ran already were set, until they are put back. An entry is written before its change
//! is made: a program that is killed in between leaves an entry too many, never one too few.

use super::journal::{keep, lock, read_own, unusable};
use crate::deployment::parameters::{apply, is_same, text, value_now};
use crate::deployment::server::connector_to;
use crate::error::{Error, Kind};
use crate::observer::SharedObserver;
use bson::Bson;
use dyno_plan::knobs::ENGINE_CONFIGURATION;
use dyno_plan::task::Remote;
use dyno_plan::uri::{Host, Target};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

const FILE: &str = "parameters-undo.json";

/// A parameter that was set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangedParameter {
    /// Connection string of the deployment, without credentials.
    pub uri: String,
    /// Address of the server.
    pub server: String,
    /// Name of the parameter.
    pub name: String,
    /// What it was.
    pub before: Bson,
    /// What it was set to.
    pub set: Bson,
}

impl ChangedParameter {
    /// As a person is told of it: `syncdelay` of `127.0.0.1:27017` is `60.0` again.
    pub fn reverted(&self) -> String {
        format!(
            "`{}` of `{}` is `{}` again",
            self.name,
            self.server,
            text(&self.before)
        )
    }
}

/// See the module. One process at a time has it open.
#[derive(Debug)]
pub struct ParameterJournal {
    path: PathBuf,
    entries: Vec<ChangedParameter>,
    /// Others wait until it is closed.
    _lock: File,
}

impl ParameterJournal {
    /// Opens the list of a folder; one that is not there is empty.
    ///
    /// # Errors
    /// It cannot be read, or others can write to it.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let lock = lock(folder)?;
        let path = folder.join(FILE);
        let entries = match read_own(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            text => {
                let text = text.map_err(|error| unusable(&path, error))?;
                serde_json::from_str(&text).map_err(|error| unusable(&path, error))?
            }
        };
        Ok(ParameterJournal {
            path,
            entries,
            _lock: lock,
        })
    }

    /// Refuses a parameter that another run has set and not put back: what it was before would be lost.
    ///
    /// # Errors
    /// There is such a run.
    pub fn check(&self, server: &str, name: &str) -> Result<(), Error> {
        let is_same = |entry: &ChangedParameter| entry.server == server && entry.name == name;
        if !self.entries.iter().any(is_same) {
            return Ok(());
        }
        let text = format!("another run has set `{name}` of `{server}` and not put it back");
        Err(Error::new(Kind::Environment, text)
            .with_hint("`dyno doctor --revert` does, once that run has ended"))
    }

    /// As [`check`](Self::check), of all servers of a deployment by its connection string.
    ///
    /// # Errors
    /// There is such a run.
    pub fn check_deployment(&self, uri: &str) -> Result<(), Error> {
        let mut own = self.entries.iter().filter(|entry| entry.uri == uri);
        own.try_for_each(|entry| self.check(&entry.server, &entry.name))
    }

    /// Keeps changes that are about to be made.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn remember(&mut self, changes: &[ChangedParameter]) -> Result<(), Error> {
        self.entries.extend(changes.iter().cloned());
        self.save()
    }

    /// Forgets changes that were taken back.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn forget(&mut self, changes: &[ChangedParameter]) -> Result<(), Error> {
        let is = |entry: &ChangedParameter, change: &ChangedParameter| {
            (&entry.server, &entry.name) == (&change.server, &change.name)
        };
        self.entries
            .retain(|entry| !changes.iter().any(|change| is(entry, change)));
        self.save()
    }

    /// Puts everything back, the last change first; `uri` names the deployment and its user, if one is given. What somebody
    /// else has changed is left alone, and so is what cannot be reached: that many are returned after those that were put
    /// back.
    ///
    /// # Errors
    /// A connection string that is not valid, and a list that cannot be written.
    pub fn revert(
        &mut self,
        uri: Option<&str>,
        observer: &dyn SharedObserver,
    ) -> Result<(Vec<ChangedParameter>, usize), Error> {
        let given = uri.map(Remote::parse).transpose()?;
        let (mut reverted, mut refused) = (Vec::new(), 0);
        for entry in self.entries.clone().into_iter().rev() {
            match put_back(&entry, given.as_ref()) {
                Ok(found) => {
                    self.forget(std::slice::from_ref(&entry))?;
                    match found {
                        Found::Ours => reverted.push(entry),
                        Found::Before => observer.note(&format!("{} already", entry.reverted())),
                        Found::Start => observer.note(&format!(
                            "`{}` of `{}` is what it was started with: nothing was set since",
                            entry.name, entry.server
                        )),
                    }
                }
                Err(failure) => {
                    refused += 1;
                    let hint = failure.hint.clone().unwrap_or_else(|| {
                        format!(
                            "if the server is gone, remove the entry from `{}`",
                            self.path.display()
                        )
                    });
                    observer.warning(&format!("{}; {hint}", failure.reason()));
                }
            }
        }
        Ok((reverted, refused))
    }

    fn save(&self) -> Result<(), Error> {
        keep(
            &self.path,
            (!self.entries.is_empty()).then_some(&self.entries),
        )
    }
}

/// What a server has of a parameter that was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// What was set.
    Ours,
    /// What was there before.
    Before,
    /// The options of the engine that it was started with.
    Start,
}

/// Compares what a server has now with what was set and with what was there before.
///
/// # Errors
/// Somebody else has changed it.
fn compare(entry: &ChangedParameter, now: Option<&Bson>) -> Result<Found, Error> {
    let is = |value: &Bson| now.is_some_and(|now| is_same(now, value));
    if is(&entry.before) {
        return Ok(Found::Before);
    }
    if is(&entry.set) {
        return Ok(Found::Ours);
    }
    // Of the engine a server tells the text that was set last, and nothing after a start. Another text need not name the options
    // that were set, and leaves them as they are then.
    if entry.name == ENGINE_CONFIGURATION && is(&Bson::String(String::new())) {
        return Ok(Found::Start);
    }
    let found = now.map_or_else(|| "not there".to_owned(), |now| format!("`{}`", text(now)));
    let text = format!(
        "`{}` of `{}` is {found}, not `{}`: it was changed after this program set it",
        entry.name,
        entry.server,
        text(&entry.set)
    );
    Err(Error::new(Kind::Environment, text))
}

/// Whether a connection string that was given is for the deployment of an entry. Its user signs in nowhere else.
fn is_of_deployment(given: &Target, stored: &Target, server: &str) -> bool {
    let is_shared = |host: &Host| stored.hosts.contains(host) || host.to_string() == server;
    let is_same_name = given.srv.is_some() && given.srv == stored.srv;
    is_same_name || given.hosts.iter().any(is_shared)
}

/// Puts one parameter back, if that is needed; what was there.
fn put_back(entry: &ChangedParameter, given: Option<&Remote>) -> Result<Found, Error> {
    let stored = Remote::parse(&entry.uri)?;
    let is_of = |remote: &&Remote| is_of_deployment(&remote.target, &stored.target, &entry.server);
    let remote = given.filter(is_of).unwrap_or(&stored);
    let server = Remote::parse(&format!("mongodb://{}/", entry.server))?;
    let Target { hosts, .. } = server.target;
    let host = hosts.into_iter().next();
    let host = host.ok_or_else(|| Error::new(Kind::BadInput, "an entry names no server"))?;
    let connector = connector_to(&remote.target, remote.credentials.clone(), host)?;
    let control = connector.control();
    let mut control = control.map_err(|error| {
        Error::from(error).context(format!("cannot connect to `{}`", entry.server))
    })?;
    let refused = |failure: Error| {
        if remote.credentials.is_some() {
            return failure;
        }
        failure.with_hint(
            "if the server asks for a password, give its connection string by `DYNO_URI`",
        )
    };
    let now = value_now(&mut control, entry).map_err(refused)?;
    let found = compare(entry, now.as_ref())?;
    if found == Found::Ours {
        apply(&mut control, entry, &entry.before).map_err(refused)?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn change(name: &str) -> ChangedParameter {
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
        for (given, is_of) in [
            ("mongodb://me:pw@b:2/", true),
            ("mongodb://me:pw@c:3/", true),
            ("mongodb://me:pw@b:3/", false),
            ("mongodb://me:pw@d:3/", false),
        ] {
            assert_eq!(is_of_deployment(&target(given), &stored, "c:3"), is_of, "{given}");
        }
    }

    #[test]
    fn options_of_the_engine_that_somebody_else_has_set_are_no_way_back() {
        let own = ChangedParameter {
            before: Bson::String("eviction=(threads_max=20)".into()),
            set: Bson::String("eviction=(threads_max=4)".into()),
            ..change(ENGINE_CONFIGURATION)
        };
        let found = |now: &str| {
            let found = compare(&own, Some(&Bson::String(now.into())));
            found.map_err(|failure| failure.reason())
        };
        assert_eq!(found("eviction=(threads_max=4)"), Ok(Found::Ours));
        assert_eq!(found("eviction=(threads_max=20)"), Ok(Found::Before));
        assert_eq!(found(""), Ok(Found::Start));
        let said = found("eviction_target=70").unwrap_err();
        assert!(said.contains("changed after this program"), "{said}");
        let other = compare(&change("a"), Some(&Bson::String(String::new())));
        assert!(other.is_err());
    }

    #[test]
    fn what_is_remembered_outlives_the_program_with_its_types() {
        let folder = TempDir::new().unwrap();
        let mut journal = ParameterJournal::open(folder.path()).unwrap();
        journal.remember(&[change("a"), change("b")]).unwrap();
        drop(journal);
        let mut journal = ParameterJournal::open(folder.path()).unwrap();
        assert_eq!(journal.entries, [change("a"), change("b")]);
        let twice = journal.check("127.0.0.1:27017", "b").unwrap_err();
        assert!(twice.reason().contains("`b`"), "{}", twice.reason());
        assert!(journal.check("127.0.0.1:27018", "b").is_ok());
        journal.forget(&[change("a"), change("b")]).unwrap();
        drop(journal);
        assert!(!folder.path().join(FILE).exists());
    }
}
