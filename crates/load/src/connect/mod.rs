//! Connections to the server under test: resolving, TLS, handshake, authentication, and discovering the server for the
//! operations. All of it blocks; the result is ready for the event loop.
//!
//! Callers replace connections that break later by the same [`Connector`].

mod authenticate;
mod changes;
mod compression;
mod control;
mod discover;
mod endpoint;
mod error;
mod file_fault;
mod identity;
mod outside;
mod random;
mod service;
mod session;
mod tls;
mod tls_error;
mod transport;

pub use control::{Control, ControlError};
pub use discover::{Topology, TopologyKind};
pub use dyno_wire::compress::Compressor;
pub use dyno_wire::handshake::Hello;
pub use endpoint::Endpoint;
pub use error::ConnectError;
pub(crate) use identity::has_encrypted_key;
pub use service::with_known_hosts;
pub use session::CancelCheck;
pub use tls_error::TlsFault;
pub use transport::Transport;

use changes::Changes;
use compression::{agreed_compressor, compressors};
use discover::Probe;
use dyno_plan::uri::{self, Credentials, Host, Target, TargetOptions, UnsupportedOption};
use dyno_record::model::Event;
use dyno_wire::bson::Document;
use dyno_wire::handshake::{HandshakeError, HelloOptions, Role, write_hello};
use dyno_wire::reply;
use dyno_wire::scram::SaltedPasswords;
use error::Source;
use rustls::ClientConfig;
use session::{Deadline, LOOK_INTERVAL, Session, io_error};
use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

/// Default time limit for opening a connection, as in the drivers.
const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Default time limit for finding a primary, as in the drivers.
const DEFAULT_SELECTION_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause between attempts to find a primary: elections take seconds.
const SELECTION_PAUSE: Duration = Duration::from_millis(250);
/// Default application name in the server's log.
const APPLICATION: &str = "mongodyno";
/// Server code of an unknown command.
const COMMAND_NOT_FOUND: i32 = 59;
const HELLO_STEP: &str = "saying hello";

/// A connection that is authenticated and ready.
#[derive(Debug)]
pub struct Connected {
    /// The byte stream, in blocking mode, with nothing unread.
    pub transport: Transport,
    /// The server's reply to the handshake.
    pub hello: Hello,
    /// Compressor for commands; `None` if none was agreed on.
    pub compressor: Option<Compressor>,
}

/// Commands that are sent again after a failure that allows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Retries {
    /// `retryReads=true`.
    pub(crate) reads: bool,
    /// `retryWrites=true`.
    pub(crate) writes: bool,
}

/// Makes connections to one deployment. Cheap to clone; all clones share their state.
#[derive(Clone)]
pub struct Connector {
    inner: Arc<Inner>,
    cancel_check: Option<CancelCheck>,
}

struct Inner {
    options: TargetOptions,
    /// Options that a router would need and that no command carries.
    unsupported_on_router: Vec<UnsupportedOption>,
    seeds: Vec<Host>,
    credentials: Option<Credentials>,
    /// `database.user`, for the query of its mechanisms.
    user: Option<String>,
    tls: Option<Arc<ClientConfig>>,
    compressors: Vec<Compressor>,
    salted_passwords: SaltedPasswords,
    connect_timeout: Option<Duration>,
    topology: Mutex<Option<Arc<Topology>>>,
    changes: Changes,
    /// Number of connections begun, for using routers in turn.
    turn: AtomicUsize,
    /// Number of connections made.
    made: AtomicUsize,
}

impl fmt::Debug for Connector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("Connector");
        debug.field("seeds", &self.inner.seeds);
        debug.finish_non_exhaustive()
    }
}

impl Connector {
    /// Prepares to connect: rejects unsupported options, looks up a `mongodb+srv://` name, and reads the files for TLS.
    /// Does not connect yet.
    ///
    /// # Errors
    /// [`ConnectError`]; here mostly `Unsupported`, `ResolveService` and `TlsFile`.
    pub fn new(target: &Target, credentials: Option<Credentials>) -> Result<Self, ConnectError> {
        refuse_unsupported(target)?;
        let (target, credentials) = with_known_hosts(target.clone(), credentials, None)?;
        // A TXT record can add options.
        refuse_unsupported(&target)?;
        let key_password = target.certificate_key_password().map(str::to_owned);
        let options = target.options;
        let mechanism = credentials.as_ref().and_then(|credentials| credentials.mechanism);
        if mechanism == Some(uri::Mechanism::X509) && options.tls_certificate_key_file.is_none() {
            return Err(ConnectError::NoCertificate);
        }
        credentials.as_ref().map_or(Ok(()), outside::check)?;
        // Only needed to choose a mechanism.
        let user = credentials.as_ref().filter(|_| mechanism.is_none()).map(|credentials| {
            format!("{}.{}", authenticate::source(credentials), credentials.username)
        });
        Ok(Connector {
            inner: Arc::new(Inner {
                tls: tls::client_config(&options, key_password.as_deref())?,
                compressors: compressors(&options),
                connect_timeout: limit(options.connect_timeout_ms, DEFAULT_CONNECT_TIMEOUT),
                salted_passwords: SaltedPasswords::new(),
                topology: Mutex::new(None),
                changes: Changes::default(),
                turn: AtomicUsize::new(0),
                made: AtomicUsize::new(0),
                unsupported_on_router: target.unsupported_on_router,
                options,
                seeds: target.hosts,
                credentials,
                user,
            }),
            cancel_check: None,
        })
    }

    /// Looks for servers only until `cancel_check` cancels; then it returns [`ConnectError::Interrupted`]. The same
    /// applies to clones that are made later.
    pub fn set_cancel_check(&mut self, cancel_check: CancelCheck) {
        self.cancel_check = Some(cancel_check);
    }

    /// Discovers the deployment's kind and servers, and caches the answer for later connections.
    ///
    /// Waits for a primary up to `serverSelectionTimeoutMS` (30 s when absent). If no seed answers, it fails
    /// immediately, unless that option is set: then it waits for the seeds as well.
    ///
    /// # Errors
    /// [`ConnectError`] of the first seed if none answers; `NoPrimary`, `ReplicaSetName`.
    pub fn discover(&self) -> Result<Topology, ConnectError> {
        *self.inner.known_topology() = None;
        Ok(Topology::clone(&*self.topology()?))
    }

    /// The known topology, or a newly discovered one; other callers wait for the same result.
    fn topology(&self) -> Result<Arc<Topology>, ConnectError> {
        let mut known = self.inner.known_topology();
        if let Some(topology) = &*known {
            return Ok(Arc::clone(topology));
        }
        let topology = Arc::new(self.select()?);
        self.inner.changes.found(&topology);
        *known = Some(Arc::clone(&topology));
        Ok(topology)
    }

    /// Looks for the servers until they are found, the time is over, or the search is cancelled. Name lookups and
    /// silent hosts block, so a thread does the search; after a cancellation, it ends later by itself.
    fn select(&self) -> Result<Topology, ConnectError> {
        let Some(cancel_check) = self.cancel_check.clone() else {
            return self.inner.select(&|| false);
        };
        let inner = Arc::clone(&self.inner);
        let is_cancelled = cancel_check.clone();
        let (sender, found) = sync_channel(1);
        let looking = std::thread::Builder::new().name("discovery".to_owned());
        let looking = looking.spawn(move || {
            // The receiver may be gone.
            let _ = sender.send(inner.select(&|| is_cancelled.is_cancelled()));
        });
        let Ok(looking) = looking else {
            // The machine does not allow more threads.
            return self.inner.select(&|| cancel_check.is_cancelled());
        };
        loop {
            match found.recv_timeout(LOOK_INTERVAL) {
                Ok(found) => return found,
                Err(RecvTimeoutError::Timeout) if cancel_check.is_cancelled() => {
                    return Err(ConnectError::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => match looking.join() {
                    Err(panic) => std::panic::resume_unwind(panic),
                    Ok(()) => unreachable!("the thread sends its result before it ends"),
                },
            }
        }
    }

    /// Opens an authenticated connection to the server for the operations.
    ///
    /// Discovers the primary if it is not known, and again if the known server cannot be reached or is no longer the
    /// primary.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn connect(&self) -> Result<Connected, ConnectError> {
        let offered = &self.inner.compressors;
        let opened = self.open(offered).and_then(|(session, hello)| {
            self.inner.refuse_on_router(&hello)?;
            Ok((session, hello))
        });
        self.inner.changes.tried(opened.as_ref().err());
        let (session, hello) = opened?;
        let compressor = agreed_compressor(offered, &hello);
        let endpoint = session.endpoint.host().clone();
        let tls = session.is_tls();
        let transport = session.into_transport().map_err(|error| {
            io_error(
                error,
                endpoint.clone(),
                "preparing the connection",
                Deadline::after(None),
                tls,
            )
        })?;
        tracing::debug!(%endpoint, tls, ?compressor, "connected");
        Ok(Connected { transport, hello, compressor })
    }

    /// Opens a blocking connection for set-up commands.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn control(&self) -> Result<Control, ConnectError> {
        let (session, hello) = self.open(&[])?;
        let limit = limit(self.inner.options.socket_timeout_ms, control::DEFAULT_LIMIT);
        let mut control = Control::new(session, hello, limit);
        // A router asks the primaries, so that the answers are current.
        let is_router = control.hello().is_mongos;
        control.read_preference = self.read_preference().filter(|_| !is_router);
        Ok(control)
    }

    /// Mode of the read preference for reads over a direct connection: like the drivers (server selection, topology
    /// `Single`), it allows a replica set member that is not the primary, and passes the given mode to a router. `None`
    /// for other connections, and if the server cannot be reached.
    pub fn read_preference(&self) -> Option<String> {
        self.inner.read_preference(&*self.topology().ok()?)
    }

    /// Retries of the connection string. Drivers default to both, this backend to none.
    pub(crate) fn retries(&self) -> Retries {
        let options = &self.inner.options;
        Retries {
            reads: options.retry_reads == Some(true),
            writes: options.retry_writes == Some(true),
        }
    }

    /// Changes of the servers since the last call, with the times when they were noticed.
    pub fn take_changes(&self) -> Vec<(Instant, Event)> {
        self.inner.changes.take()
    }

    /// Number of key derivations so far: one for each salt from a server, however many connections were made.
    pub fn password_derivations(&self) -> usize {
        self.inner.salted_passwords.derivations()
    }

    fn open(&self, compressors: &[Compressor]) -> Result<(Session, Hello), ConnectError> {
        let inner = &*self.inner;
        let topology = self.topology()?;
        let opened = match inner.open_any(&topology, compressors) {
            Err(error) if error.may_be_stale() => {
                inner.forget(&topology);
                let topology = self.topology();
                topology.and_then(|topology| inner.open_any(&topology, compressors))
            }
            result => result,
        };
        if opened.is_ok() {
            inner.made.fetch_add(1, Ordering::Relaxed);
        }
        opened
    }
}

impl Inner {
    fn known_topology(&self) -> std::sync::MutexGuard<'_, Option<Arc<Topology>>> {
        self.topology.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops the cached topology, unless another thread has renewed it.
    fn forget(&self, stale: &Arc<Topology>) {
        let mut known = self.known_topology();
        if known.as_ref().is_some_and(|known| Arc::ptr_eq(known, stale)) {
            *known = None;
        }
    }

    /// Looks for the servers until they are found, the time is over, or the search is cancelled.
    fn select(&self, is_cancelled: &dyn Fn() -> bool) -> Result<Topology, ConnectError> {
        let given = self.options.server_selection_timeout_ms;
        let limit = given.map_or(DEFAULT_SELECTION_TIMEOUT, Duration::from_millis);
        let started = Instant::now();
        loop {
            let rounds = Cell::new(0_u32);
            let found = discover::discover(&self.seeds, &self.options, &|hosts| {
                // Members may name new members endlessly. Ask the members that seeds name in any case: a dead seed may
                // have used all the time.
                rounds.set(rounds.get() + 1);
                if rounds.get() > 2 && started.elapsed() > limit {
                    return Vec::new();
                }
                self.ask(hosts)
            });
            let may_wait = match &found {
                Err(ConnectError::NoPrimary { .. }) => true,
                Err(error) => given.is_some() && error.may_be_stale(),
                Ok(_) => false,
            };
            if !may_wait || is_cancelled() || started.elapsed() + SELECTION_PAUSE > limit {
                return found;
            }
            std::thread::sleep(SELECTION_PAUSE);
        }
    }

    /// Asks all hosts in parallel, so that a dead one does not delay the others.
    fn ask(&self, hosts: Vec<Host>) -> Vec<Probe> {
        std::thread::scope(|scope| {
            let ask = |host: Host| {
                let asked = host.clone();
                let thread = std::thread::Builder::new();
                (host, thread.spawn_scoped(scope, move || self.probe(&asked)))
            };
            let asked: Vec<_> = hosts.into_iter().map(ask).collect();
            let answered = asked.into_iter().map(|(host, thread)| {
                let answer = match thread.map(ScopedJoinHandle::join) {
                    Ok(Ok(answer)) => answer,
                    Ok(Err(panic)) => std::panic::resume_unwind(panic),
                    // The machine does not allow more threads.
                    Err(_) => self.probe(&host),
                };
                Probe { host, answer }
            });
            answered.collect()
        })
    }

    fn read_preference(&self, topology: &Topology) -> Option<String> {
        if self.options.direct_connection != Some(true) {
            return None;
        }
        let given = self.options.read_preference.as_deref();
        let mode = given.filter(|&mode| mode != "primary");
        let mode = match topology.kind {
            TopologyKind::ReplicaSet { .. } => mode.or(Some("primaryPreferred")),
            TopologyKind::Sharded => mode,
            TopologyKind::Standalone => None,
        };
        mode.map(str::to_owned)
    }

    /// Rejects options of a direct connection that a router would need.
    fn refuse_on_router(&self, hello: &Hello) -> Result<(), ConnectError> {
        if !hello.is_mongos || self.unsupported_on_router.is_empty() {
            return Ok(());
        }
        let options = self.unsupported_on_router.clone();
        Err(ConnectError::Unsupported { options })
    }

    /// Adds details of the connection to an error.
    fn explained(&self, error: ConnectError) -> ConnectError {
        match error {
            ConnectError::Closed { endpoint, step, tls, .. } => ConnectError::Closed {
                endpoint,
                step,
                tls,
                certificate: self.options.tls_certificate_key_file.is_some(),
                before: self.made.load(Ordering::Relaxed),
            },
            error => error,
        }
    }

    fn probe(&self, host: &Host) -> Result<(Endpoint, Hello), ConnectError> {
        let greet = || {
            let deadline = Deadline::after(self.connect_timeout);
            let endpoint = Endpoint::resolve(host)?;
            let (session, hello) = self.greet(endpoint, &[], deadline)?;
            Ok((session.endpoint, hello))
        };
        greet().map_err(|error| self.explained(error))
    }

    /// Opens a connection and exchanges the handshake.
    fn greet(
        &self,
        endpoint: Endpoint,
        compressors: &[Compressor],
        deadline: Deadline,
    ) -> Result<(Session, Hello), ConnectError> {
        let transport = endpoint.open(self.tls.as_ref(), deadline)?;
        let mut session = Session::new(endpoint, transport);
        let hello = self.say_hello(&mut session, compressors, deadline)?;
        Ok((session, hello))
    }

    /// Tries the servers in turn, starting with the next one.
    fn open_any(
        &self,
        topology: &Topology,
        compressors: &[Compressor],
    ) -> Result<(Session, Hello), ConnectError> {
        let count = topology.endpoints.len();
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        let mut attempt = 0;
        loop {
            let endpoint = &topology.endpoints[first.wrapping_add(attempt) % count];
            attempt += 1;
            match self.open_one(endpoint, topology, compressors) {
                Err(error) if error.may_be_stale() && attempt < count => {}
                result => return result.map_err(|error| self.explained(error)),
            }
        }
    }

    fn open_one(
        &self,
        endpoint: &Endpoint,
        topology: &Topology,
        compressors: &[Compressor],
    ) -> Result<(Session, Hello), ConnectError> {
        let deadline = Deadline::after(self.connect_timeout);
        let (mut session, hello) = self.greet(endpoint.clone(), compressors, deadline)?;
        self.check_role(endpoint, topology, &hello)?;
        if let Some(credentials) = &self.credentials {
            let cache = &self.salted_passwords;
            authenticate::authenticate(&mut session, credentials, &hello, cache, deadline)?;
        }
        Ok((session, hello))
    }

    /// A replica set member must still be the primary, unless the connection is direct.
    fn check_role(
        &self,
        endpoint: &Endpoint,
        topology: &Topology,
        hello: &Hello,
    ) -> Result<(), ConnectError> {
        let is_set = matches!(topology.kind, TopologyKind::ReplicaSet { .. });
        let is_direct = self.options.direct_connection == Some(true);
        if is_set && !is_direct && hello.role() != Role::Primary {
            let state = "is no longer the primary".to_owned();
            let members = vec![(endpoint.host().clone(), state)];
            return Err(ConnectError::NoPrimary { members });
        }
        Ok(())
    }

    fn say_hello(
        &self,
        session: &mut Session,
        compressors: &[Compressor],
        deadline: Deadline,
    ) -> Result<Hello, ConnectError> {
        let mut options = HelloOptions {
            application: Some(self.options.app_name.as_deref().unwrap_or(APPLICATION)),
            compressors,
            mechanisms_of: self.user.as_deref(),
            legacy: false,
        };
        match hello_once(session, &options, deadline) {
            Err(ConnectError::Command { code: COMMAND_NOT_FOUND, .. }) => {
                options.legacy = true;
                hello_once(session, &options, deadline)
            }
            result => result,
        }
    }
}

fn hello_once(
    session: &mut Session,
    options: &HelloOptions<'_>,
    deadline: Deadline,
) -> Result<Hello, ConnectError> {
    let endpoint = session.endpoint.host().clone();
    let tls = session.is_tls();
    let body = session
        .exchange(deadline, |out, id| write_hello(out, id, options))
        .map_err(|error| error.into_connect_error(&endpoint, HELLO_STEP, deadline, tls))?;
    let malformed = |endpoint: Host, source: Source| ConnectError::Protocol {
        endpoint,
        step: HELLO_STEP,
        source,
    };
    let reply = match reply::read(&body) {
        Ok(reply) => reply,
        Err(error) => return Err(malformed(endpoint, error.into())),
    };
    if !reply.ok {
        return Err(ConnectError::Command {
            endpoint,
            command: "hello",
            code: reply.code,
            message: reply.message.to_owned(),
        });
    }
    let document: Document<'_> = match reply.document() {
        Ok(document) => document,
        Err(error) => return Err(malformed(endpoint, error.into())),
    };
    Hello::read(document).map_err(|error| match error {
        HandshakeError::TooOld { found } => ConnectError::TooOld { endpoint, found },
        error => malformed(endpoint, error.into()),
    })
}

fn refuse_unsupported(target: &Target) -> Result<(), ConnectError> {
    if target.unsupported_by_wire.is_empty() {
        return Ok(());
    }
    let options = target.unsupported_by_wire.clone();
    Err(ConnectError::Unsupported { options })
}

/// Time limit from the connection string; 0 means no limit.
fn limit(given_ms: Option<u64>, default: Duration) -> Option<Duration> {
    match given_ms {
        None => Some(default),
        Some(0) => None,
        Some(limit_ms) => Some(Duration::from_millis(limit_ms)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connector(text: &str) -> Result<Connector, ConnectError> {
        let (target, credentials) = uri::parse(text).unwrap();
        Connector::new(&target, credentials)
    }

    #[test]
    fn limits_of_zero_are_none() {
        let default = Duration::from_secs(1);
        assert_eq!(limit(None, default), Some(default));
        assert_eq!(limit(Some(0), default), None);
        assert_eq!(limit(Some(5), default), Some(Duration::from_millis(5)));
    }

    #[test]
    fn unsupported_options_are_refused_by_name() {
        let error = connector("mongodb://h/?loadBalanced=true&readPreference=nearest").unwrap_err();
        let text = error.to_string();
        assert!(text.contains("`loadBalanced=true`"), "{text}");
        assert!(text.contains("`readPreference=nearest`"), "{text}");
        assert!(error.hint().is_some());
    }

    #[test]
    fn a_missing_certificate_file_is_named() {
        let error = connector("mongodb://h/?tls=true&tlsCAFile=/nowhere/ca.pem").unwrap_err();
        let ConnectError::TlsFile { path, option, .. } = &error else { panic!("{error:?}") };
        assert_eq!((path.to_str(), *option), (Some("/nowhere/ca.pem"), "tlsCAFile"));
    }

    #[test]
    fn the_password_is_not_shown() {
        let connector = connector("mongodb://me:secret@h/").unwrap();
        assert!(!format!("{connector:?}").contains("secret"));
    }
}
