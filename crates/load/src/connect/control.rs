//! A blocking connection for the commands around a run: create, drop, count, statistics.

use super::discover::describe;
use super::endpoint::Endpoint;
use super::error::ConnectError;
use super::session::{CancelCheck, Deadline, ExchangeError, Session};
use bson::{Document, RawDocumentBuf, cstr, doc, rawdoc};
use dyno_plan::uri::Host;
use dyno_wire::code;
use dyno_wire::frame;
use dyno_wire::handshake::{Hello, Role};
use dyno_wire::reply;
use std::io::{self, ErrorKind};
use std::time::Duration;
use thiserror::Error;

/// Maximum time for one command unless the connection string sets it. It is generous, because set-up commands such as
/// dropping a large collection can be slow, but it guarantees an end.
pub(super) const DEFAULT_LIMIT: Duration = Duration::from_secs(300);

/// Why a command failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The command is not valid BSON (a key with a zero byte).
    #[error("cannot encode command `{command}`")]
    Encode {
        command: String,
        #[source]
        source: bson::error::Error,
    },
    /// The connection failed, or the time limit was exceeded (`TimedOut`, `WouldBlock`).
    #[error("connection to `{endpoint}` failed during `{command}`")]
    Io {
        endpoint: Host,
        command: String,
        #[source]
        source: std::io::Error,
    },
    /// The answer is malformed.
    #[error("`{endpoint}` sent a malformed reply to `{command}`")]
    Malformed {
        endpoint: Host,
        command: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server refused the command, or a write in it.
    #[error("the server refused `{command}`: {message} ({})", code::text(*code, code_name))]
    Server {
        command: String,
        code: i32,
        /// Empty if the server sent no name.
        code_name: String,
        /// Message of the server.
        message: String,
    },
}

impl ControlError {
    /// The server's code, if the server refused the command.
    pub fn code(&self) -> Option<i32> {
        match self {
            ControlError::Server { code, .. } => Some(*code),
            _ => None,
        }
    }
}

/// A blocking, authenticated connection. After a [`ControlError::Io`], all further commands fail at once.
#[derive(Debug)]
pub struct Control {
    session: Session,
    hello: Hello,
    limit: Option<Duration>,
    /// Whether a command ended without its answer, which may still arrive.
    is_lost: bool,
    /// Mode of the read preference for commands without their own.
    pub(super) read_preference: Option<String>,
}

impl Control {
    pub(super) fn new(session: Session, hello: Hello, limit: Option<Duration>) -> Self {
        Control { session, hello, limit, is_lost: false, read_preference: None }
    }

    /// The server's reply to the handshake.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// The server's address.
    pub fn endpoint(&self) -> &Endpoint {
        &self.session.endpoint
    }

    /// Rejects a member of a replica set in a state that does not allow reads.
    ///
    /// # Errors
    /// [`ConnectError::NotReady`].
    pub fn check_ready(&mut self) -> Result<(), ConnectError> {
        if self.hello.role() != Role::Other {
            return Ok(());
        }
        let status = self.run("admin", doc! { "replSetGetStatus": 1 });
        let state = status.ok().and_then(|status| {
            let members = status.get_array("members").ok()?;
            let mut members = members.iter().filter_map(|member| member.as_document());
            let me = members.find(|member| member.get_bool("self").unwrap_or(false))?;
            me.get_str("stateStr").ok().map(str::to_owned)
        });
        Err(ConnectError::NotReady {
            endpoint: self.session.endpoint.host().clone(),
            description: describe(&self.hello),
            state,
        })
    }

    /// Sets the maximum time for one command; `None` removes the limit.
    pub fn set_limit(&mut self, limit: Option<Duration>) {
        self.limit = limit;
    }

    /// Waits for answers only until `cancel_check` cancels; the current command then ends with [`ControlError::Io`].
    pub fn set_cancel_check(&mut self, cancel_check: CancelCheck) {
        self.session.set_cancel_check(cancel_check);
    }

    /// Runs one command on a database and returns the reply.
    ///
    /// # Errors
    /// [`ControlError::Server`], even if the command was executed but a write in it, or its write concern, failed.
    pub fn run(&mut self, database: &str, mut command: Document) -> Result<Document, ControlError> {
        let name = command.keys().next().cloned().unwrap_or_default();
        if let Some(mode) = &self.read_preference
            && !command.contains_key("$readPreference")
        {
            command.insert("$readPreference", doc! { "mode": mode });
        }
        command.insert("$db", database);
        let bytes = command
            .to_vec()
            .map_err(|source| ControlError::Encode { command: name.clone(), source })?;
        let write = |out: &mut Vec<u8>, id| frame::write_message(out, id, 0, &bytes);
        self.exchange(name, write, |bytes| Document::from_reader(bytes).map_err(Into::into))
    }

    /// Runs one command on a database, without interpreting the documents of the reply: they are returned byte by byte,
    /// including duplicate fields and similar anomalies.
    ///
    /// # Errors
    /// The same as for [`run`](Self::run).
    pub fn run_raw(
        &mut self,
        database: &str,
        command: RawDocumentBuf,
    ) -> Result<RawDocumentBuf, ControlError> {
        self.run_with_documents(database, command, None)
    }

    /// Like [`run_raw`](Self::run_raw), with a separate argument of the command, such as `documents`, that the server
    /// gets byte by byte. The name must not contain a zero byte.
    ///
    /// # Errors
    /// The same as for [`run`](Self::run).
    pub fn run_with_documents(
        &mut self,
        database: &str,
        mut command: RawDocumentBuf,
        documents: Option<(&str, &[RawDocumentBuf])>,
    ) -> Result<RawDocumentBuf, ControlError> {
        let name =
            command.iter().next().and_then(Result::ok).map(|(name, _)| name.as_str().to_owned());
        let name = name.unwrap_or_default();
        if let Some(mode) = &self.read_preference {
            command.append(cstr!("$readPreference"), rawdoc! { "mode": mode.as_str() });
        }
        command.append(cstr!("$db"), database);
        let bytes = command.as_bytes();
        let write = |out: &mut Vec<u8>, id| match documents {
            None => frame::write_message(out, id, 0, bytes),
            Some((name, documents)) => {
                let documents = documents.iter().map(|document| document.as_bytes());
                frame::write_message_with_sequence(out, id, bytes, name, documents);
            }
        };
        self.exchange(name, write, |bytes| {
            RawDocumentBuf::from_bytes(bytes.to_vec()).map_err(Into::into)
        })
    }

    /// Sends a command and decodes the reply by `decode`.
    fn exchange<T>(
        &mut self,
        name: String,
        write: impl FnOnce(&mut Vec<u8>, i32),
        decode: impl FnOnce(&[u8]) -> Result<T, Box<dyn std::error::Error + Send + Sync>>,
    ) -> Result<T, ControlError> {
        let endpoint = self.session.endpoint.host().clone();
        let exchanged = if self.is_lost {
            let source =
                io::Error::new(ErrorKind::NotConnected, "an earlier command got no answer");
            Err(ExchangeError::Io(source))
        } else {
            self.session.exchange(Deadline::after(self.limit), write)
        };
        self.is_lost |= matches!(exchanged, Err(ExchangeError::Io(_)));
        let body = exchanged.map_err(|error| match error {
            ExchangeError::Io(source) => {
                ControlError::Io { endpoint: endpoint.clone(), command: name.clone(), source }
            }
            ExchangeError::Malformed(source) => ControlError::Malformed {
                endpoint: endpoint.clone(),
                command: name.clone(),
                source,
            },
        })?;
        let malformed =
            |source| ControlError::Malformed { endpoint, command: name.clone(), source };
        let reply = match reply::read(&body) {
            Ok(reply) => reply,
            Err(error) => return Err(malformed(error.into())),
        };
        if let Some(error) = failure(&reply, &name) {
            return Err(error);
        }
        let decoded =
            reply.document().map_err(Into::into).and_then(|document| decode(document.as_bytes()));
        decoded.map_err(malformed)
    }
}

fn failure(reply: &reply::Reply<'_>, command: &str) -> Option<ControlError> {
    let refusal = reply.refusal()?;
    Some(ControlError::Server {
        command: command.to_owned(),
        code: refusal.code,
        code_name: refusal.code_name.to_owned(),
        message: refusal.message.to_owned(),
    })
}
