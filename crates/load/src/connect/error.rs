//! Why a server cannot be reached or used, and what to do about it.

use super::file_fault::FileFault;
use super::tls_error::TlsFault;
use dyno_plan::uri::{Host, UnsupportedOption, UriError};
use dyno_wire::code;
use dyno_wire::handshake::MIN_WIRE_VERSION;
use std::error::Error as StdError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Cause of any type.
pub(super) type Source = Box<dyn StdError + Send + Sync>;

/// What is being done until TLS is established.
pub(super) const TLS_STEP: &str = "establishing TLS";

/// Server code of wrong credentials.
pub(super) const AUTHENTICATION_FAILED: i32 = 18;

/// Why a server cannot be reached or used. No variant holds a password.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The connection string holds options that the wire backend does not support.
    #[error("{}", list_unsupported(options))]
    Unsupported {
        /// The options, at least one.
        options: Vec<UnsupportedOption>,
    },
    /// A host name has no address.
    #[error("cannot resolve `{host}`")]
    Resolve {
        /// Host name.
        host: String,
        /// What the resolver said.
        #[source]
        source: io::Error,
    },
    /// The records of a `mongodb+srv://` name cannot be looked up, or there are none.
    #[error("cannot look up the hosts of `{name}`")]
    ResolveService {
        /// Name of the SRV records.
        name: String,
        /// What the resolver said.
        #[source]
        source: Source,
    },
    /// An SRV record leads out of the domain of its name, which could be an attack.
    #[error("`{name}` lists the host `{host}`, which is outside of its domain")]
    ForeignHost {
        /// Name of the SRV records.
        name: String,
        /// Host in the record.
        host: String,
    },
    /// The TXT record of a `mongodb+srv://` name is not usable.
    #[error("the TXT record of `{name}` is not valid")]
    ServiceOptions {
        /// Name of the record.
        name: String,
        /// What is wrong with it.
        #[source]
        source: UriError,
    },
    /// Nothing listens at the address.
    #[error("`{endpoint}` refuses the connection")]
    Refused {
        /// Address.
        endpoint: Host,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Nothing was heard in the time allowed.
    #[error("`{endpoint}` did not answer within {limit_ms} ms while {step}")]
    TimedOut {
        /// Address.
        endpoint: Host,
        /// What was being done.
        step: &'static str,
        /// The time allowed, in milliseconds.
        limit_ms: u64,
    },
    /// The server closed the connection before it was usable.
    #[error("`{endpoint}` closed the connection while {step}")]
    Closed {
        /// Address.
        endpoint: Host,
        /// What was being done.
        step: &'static str,
        /// Whether the connection was to be encrypted.
        tls: bool,
        /// Whether the client has a certificate to show.
        certificate: bool,
        /// Connections that were made in the same way before.
        before: usize,
    },
    /// Another failure of the network or the system.
    #[error("cannot connect to `{endpoint}`: failure while {step}")]
    Io {
        /// Address.
        endpoint: Host,
        /// What was being done.
        step: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The caller did not want the server any more; see [`Connector::set_cancel_check`](super::Connector::set_cancel_check).
    #[error("interrupted while looking for the server")]
    Interrupted,
    /// A file with certificates or keys cannot be used.
    #[error("cannot use `{}` as `{option}`", path.display())]
    TlsFile {
        /// The file.
        path: PathBuf,
        /// Option of the connection string that names it.
        option: &'static str,
        /// What is wrong with it.
        #[source]
        source: Source,
    },
    /// TLS cannot be set up on this side.
    #[error("cannot set up TLS")]
    TlsSetup {
        /// What is wrong.
        #[source]
        source: Source,
    },
    /// The two sides do not come to terms, or the server's certificate is not accepted.
    #[error("cannot establish TLS with `{endpoint}`")]
    Tls {
        /// Address.
        endpoint: Host,
        /// What is wrong.
        #[source]
        source: TlsFault,
    },
    /// What answers does not speak the protocol.
    #[error("`{endpoint}` does not answer like a MongoDB server while {step}")]
    Protocol {
        /// Address.
        endpoint: Host,
        /// What was being done.
        step: &'static str,
        /// What is wrong with the answer.
        #[source]
        source: Source,
    },
    /// The server refuses a command of the handshake.
    #[error("`{endpoint}` refused `{command}`: {message} ({})", code::text(*code, ""))]
    Command {
        /// Address.
        endpoint: Host,
        /// Name of the command.
        command: &'static str,
        /// Code of the failure.
        code: i32,
        /// The server's text.
        message: String,
    },
    /// The server does not accept user and password (code 18).
    #[error(
        "`{endpoint}` does not accept the credentials of user `{username}` in database `{source_database}`"
    )]
    Credentials {
        /// Address.
        endpoint: Host,
        /// User name.
        username: String,
        /// Database that was asked for the user.
        source_database: String,
    },
    /// `authMechanism=MONGODB-X509` without a certificate of the client.
    #[error("`authMechanism=MONGODB-X509` needs a client certificate")]
    NoCertificate,
    /// The server does not accept the client's certificate as a user.
    #[error(
        "`{endpoint}` does not accept the client certificate as a user: {message} (code {code})"
    )]
    CertificateUser {
        /// Address.
        endpoint: Host,
        /// Code of the failure.
        code: i32,
        /// The server's text.
        message: String,
    },
    /// The authentication failed on this side: the server's part of it is not acceptable.
    #[error("cannot authenticate user `{username}` to `{endpoint}`")]
    Authentication {
        /// Address.
        endpoint: Host,
        /// User name.
        username: String,
        /// What is wrong.
        #[source]
        source: Source,
    },
    /// The server belongs to another replica set than the one named, or to none.
    #[error("`{endpoint}` is not a member of the replica set `{expected}`")]
    ReplicaSetName {
        /// Address.
        endpoint: Host,
        /// Name in the connection string.
        expected: String,
        /// Name that the server gave; `None` for a server that is in no replica set.
        found: Option<String>,
    },
    /// No member of the replica set takes writes.
    #[error("the replica set has no primary: {}", list_members(members))]
    NoPrimary {
        /// Members that were asked, with what they said.
        members: Vec<(Host, String)>,
    },
    /// A member of a replica set in a state in which no data can be read.
    #[error("`{endpoint}` {description}{}", state.as_ref().map_or(String::new(), |state| format!(" (state {state})")))]
    NotReady {
        /// Address.
        endpoint: Host,
        /// Its role, as the end of a sentence.
        description: &'static str,
        /// Name of the state, if the server gives it.
        state: Option<String>,
    },
    /// The server speaks only protocols that are no longer supported.
    #[error(
        "`{endpoint}` is too old: it supports wire version {found}, but {MIN_WIRE_VERSION} or newer is required"
    )]
    TooOld {
        /// Address.
        endpoint: Host,
        /// Newest wire version of the server.
        found: i32,
    },
}

impl ConnectError {
    /// What to do about it, if there is more to say than the message.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            ConnectError::Unsupported { options } => {
                let mut hints: Vec<&str> =
                    options.iter().map(|option| option.hint.as_str()).collect();
                hints.retain(|hint| !hint.is_empty());
                hints.dedup();
                return (!hints.is_empty()).then(|| hints.join("; "));
            }
            ConnectError::Resolve { host, .. } if host == "host.docker.internal" => {
                "only Docker Desktop resolves this name: use the host's address, or run the container with `--network host`".into()
            }
            ConnectError::Resolve { .. } => "check the host name".into(),
            ConnectError::ResolveService { .. } => {
                "check the name, or list the hosts with `mongodb://`".into()
            }
            ConnectError::Refused { endpoint, .. } if endpoint.is_loopback() => format!(
                "check that a server listens on `{endpoint}`; inside a container, this address is the container itself"
            ),
            ConnectError::Refused { endpoint, .. } => format!(
                "check that a server listens on `{endpoint}`, and that its `net.bindIp` includes this address"
            ),
            ConnectError::TimedOut { .. } => {
                "check the address and the firewall; `connectTimeoutMS` in the connection string sets the limit".into()
            }
            ConnectError::Closed {
                step,
                tls,
                certificate,
                before,
                ..
            } => closed_hint(*before, *tls && *step != TLS_STEP, *tls, *certificate),
            ConnectError::Tls { source, .. } => return source.hint(),
            ConnectError::TlsFile { option, source, .. } => {
                let fault = source.downcast_ref::<FileFault>();
                return fault.map_or_else(
                    || Some(format!("check the file that `{option}` names")),
                    |fault| Some(fault.hint()),
                );
            }
            ConnectError::NoCertificate => {
                "add `tls=true&tlsCertificateKeyFile=FILE` with the client's certificate and key to the connection string".into()
            }
            ConnectError::CertificateUser { .. } => {
                "create a user in the database `$external` whose name is the subject of the certificate: `openssl x509 -in FILE -noout -subject -nameopt RFC2253` prints it after `subject=`".into()
            }
            ConnectError::Credentials { source_database, .. } => format!(
                "check the user name and the password; `authSource` names the database that holds the user (now `{source_database}`)"
            ),
            ConnectError::ReplicaSetName { found, .. } => match found {
                Some(name) => format!("the server belongs to the replica set `{name}`"),
                None => "the server is in no replica set: remove `replicaSet` from the connection string".into(),
            },
            ConnectError::NoPrimary { .. } => {
                "wait for an election, initiate the replica set, or use `directConnection=true` to read from one member".into()
            }
            ConnectError::NotReady { .. } => {
                "wait until it is a primary or a secondary, initiate the replica set with `rs.initiate()`, or name a member that holds data".into()
            }
            ConnectError::TooOld { .. } => "use MongoDB 3.6 or newer".into(),
            ConnectError::ServiceOptions { source, .. } => return source.hint(),
            ConnectError::Protocol { .. } => "check that the port belongs to a MongoDB server".into(),
            _ => return None,
        })
    }

    /// Whether asking the deployment again for its primary may help.
    pub(super) fn may_be_stale(&self) -> bool {
        matches!(
            self,
            ConnectError::Refused { .. }
                | ConnectError::TimedOut { .. }
                | ConnectError::Closed { .. }
                | ConnectError::Io { .. }
                | ConnectError::Resolve { .. }
                | ConnectError::NoPrimary { .. }
        )
    }
}

/// Causes of a connection that the server closes without a word. `before` connections were made, TLS is `established` or only
/// `tls` is wanted, and a client `certificate` may be at hand.
fn closed_hint(before: usize, established: bool, tls: bool, certificate: bool) -> String {
    const FULL: &str = "the server may have no connection left: compare `serverStatus.connections.available` with `--clients`";
    if before > 0 {
        return format!(
            "the server took {before} connections before: it, or a proxy in front of it, may have no connection left or may be shutting down; use fewer `--clients`, or raise the server's `net.maxIncomingConnections` and its limit of open files"
        );
    }
    match (established, tls) {
        (true, _) if certificate => format!(
            "the client certificate must be signed by an authority of the server's `--tlsCAFile`; else {FULL}"
        ),
        (true, _) => format!(
            "if the server demands a client certificate, add `tlsCertificateKeyFile=FILE` to the connection string; else {FULL}"
        ),
        (false, true) => {
            "if the server does not use TLS, remove `tls=true` from the connection string".into()
        }
        (false, false) => format!(
            "if the server requires TLS, add `tls=true` to the connection string; else {FULL}"
        ),
    }
}

fn list_unsupported(options: &[UnsupportedOption]) -> String {
    let options: Vec<String> = options.iter().map(UnsupportedOption::to_string).collect();
    format!("the wire backend does not support {}", options.join("; "))
}

fn list_members(members: &[(Host, String)]) -> String {
    let members: Vec<String> = members
        .iter()
        .map(|(host, state)| format!("`{host}` {state}"))
        .collect();
    members.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint() -> Host {
        Host::Tcp {
            host: "localhost".into(),
            port: 27017,
        }
    }

    #[test]
    fn messages_name_what_is_needed_to_act() {
        let error = ConnectError::TimedOut {
            endpoint: endpoint(),
            step: "saying hello",
            limit_ms: 250,
        };
        let text = error.to_string();
        for part in ["`localhost:27017`", "250 ms", "saying hello"] {
            assert!(text.contains(part), "{text}");
        }
        let error = ConnectError::NoPrimary {
            members: vec![(endpoint(), "is a secondary".into())],
        };
        let text = error.to_string();
        for part in ["`localhost:27017`", "secondary"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn hints_of_addresses_know_containers_and_bind_addresses() {
        let tcp = |host: &str| Host::Tcp {
            host: host.into(),
            port: 27017,
        };
        let refused = |host| {
            let source = io::ErrorKind::ConnectionRefused.into();
            let endpoint = tcp(host);
            ConnectError::Refused { endpoint, source }.hint().unwrap()
        };
        assert!(refused("localhost").contains("container"));
        assert!(refused("127.0.0.1").contains("container"));
        assert!(refused("10.0.0.9").contains("`net.bindIp`"));
        let unknown = ConnectError::Resolve {
            host: "host.docker.internal".into(),
            source: io::ErrorKind::NotFound.into(),
        };
        assert!(unknown.hint().unwrap().contains("--network host"));
    }

    #[test]
    fn closed_connection_after_others_may_be_a_shutdown() {
        let error = ConnectError::Closed {
            endpoint: endpoint(),
            step: "saying hello",
            tls: false,
            certificate: false,
            before: 3,
        };
        let hint = error.hint().unwrap();
        assert!(hint.contains("3 connections"), "{hint}");
        assert!(hint.contains("shutting down"), "{hint}");
        assert!(hint.contains("`net.maxIncomingConnections`"), "{hint}");
        assert!(hint.contains("`--clients`"), "{hint}");
    }

    #[test]
    fn unsupported_options_are_listed_by_name() {
        let (reason, hint) = ("it does not", "use the other backend");
        let option = |name: &str| UnsupportedOption {
            name: name.into(),
            value: "1".into(),
            reason: reason.into(),
            hint: hint.into(),
        };
        let error = ConnectError::Unsupported {
            options: vec![option("a"), option("b")],
        };
        let text = error.to_string();
        assert!(text.contains("`a=1`") && text.contains("`b=1`"), "{text}");
        assert_eq!(text.matches(reason).count(), 2, "{text}");
        assert_eq!(error.hint().as_deref(), Some(hint));
    }

    #[test]
    fn the_hint_for_a_certificate_depends_on_what_is_wrong_with_it() {
        use rustls::CertificateError as Certificate;
        let hint = |error| {
            let source = rustls::Error::InvalidCertificate(error).into();
            let error = ConnectError::Tls {
                endpoint: endpoint(),
                source,
            };
            error.hint().unwrap()
        };
        assert!(hint(Certificate::UnknownIssuer).contains("tlsCAFile"));
        assert!(hint(Certificate::NotValidForName).contains("tlsAllowInvalidHostnames"));
        assert!(hint(Certificate::Expired).contains("tlsAllowInvalidCertificates"));
    }
}
