//! Why a server cannot be reached or used, with hints.

use super::file_fault::FileFault;
use super::tls_error::TlsFault;
use dyno_plan::uri::{Host, Mechanism, UnsupportedOption, UriError};
use dyno_wire::code;
use dyno_wire::handshake::MIN_WIRE_VERSION;
use std::error::Error as StdError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Cause of any type.
pub(super) type Source = Box<dyn StdError + Send + Sync>;

/// Step until TLS is established.
pub(super) const TLS_STEP: &str = "establishing TLS";

/// Server code for wrong credentials.
pub(super) const AUTHENTICATION_FAILED: i32 = 18;

/// Server code for a mechanism that is switched off, or that the edition does not have.
const MECHANISM_UNAVAILABLE: i32 = 334;

/// Why a server cannot be reached or used. No variant contains a password.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The connection string has options that the wire backend does not support.
    #[error("{}", list_unsupported(options))]
    Unsupported {
        /// At least one.
        options: Vec<UnsupportedOption>,
    },
    /// A host name has no address.
    #[error("cannot resolve `{host}`")]
    Resolve {
        host: String,
        #[source]
        source: io::Error,
    },
    /// The records of a `mongodb+srv://` name cannot be looked up, or do not exist.
    #[error("cannot look up the hosts of `{name}`")]
    ResolveService {
        /// Name of the SRV records.
        name: String,
        #[source]
        source: Source,
    },
    /// An SRV record names a host outside the domain of its name, which could be an attack.
    #[error("`{name}` lists the host `{host}`, which is outside of its domain")]
    ForeignHost {
        /// Name of the SRV records.
        name: String,
        /// Host in the record.
        host: String,
    },
    /// The TXT record of a `mongodb+srv://` name is invalid.
    #[error("the TXT record of `{name}` is not valid")]
    ServiceOptions {
        name: String,
        #[source]
        source: UriError,
    },
    /// Nothing listens at the address.
    #[error("`{endpoint}` refuses the connection")]
    Refused {
        endpoint: Host,
        #[source]
        source: io::Error,
    },
    /// The server did not answer in time.
    #[error("`{endpoint}` did not answer within {limit_ms} ms while {step}")]
    TimedOut { endpoint: Host, step: &'static str, limit_ms: u64 },
    /// The server closed the connection before it was usable.
    #[error("`{endpoint}` closed the connection while {step}")]
    Closed {
        endpoint: Host,
        step: &'static str,
        /// Whether the connection was to be encrypted.
        tls: bool,
        /// Whether the client has a certificate.
        certificate: bool,
        /// Number of earlier connections with the same settings.
        before: usize,
    },
    /// Another failure of the network or the system.
    #[error("cannot connect to `{endpoint}`: failure while {step}")]
    Io {
        endpoint: Host,
        step: &'static str,
        #[source]
        source: io::Error,
    },
    /// The caller cancelled; see [`Connector::set_cancel_check`](super::Connector::set_cancel_check).
    #[error("interrupted while looking for the server")]
    Interrupted,
    /// A file with certificates or keys is unusable.
    #[error("cannot use `{}` as `{option}`", path.display())]
    TlsFile {
        path: PathBuf,
        /// Option of the connection string that names the file.
        option: &'static str,
        #[source]
        source: Source,
    },
    /// Setting up TLS failed on this side.
    #[error("cannot set up TLS")]
    TlsSetup {
        #[source]
        source: Source,
    },
    /// The TLS handshake failed, or the server's certificate is not accepted.
    #[error("cannot establish TLS with `{endpoint}`")]
    Tls {
        endpoint: Host,
        #[source]
        source: TlsFault,
    },
    /// The peer does not speak the protocol.
    #[error("`{endpoint}` does not answer like a MongoDB server while {step}")]
    Protocol {
        endpoint: Host,
        step: &'static str,
        #[source]
        source: Source,
    },
    /// The server refused a command of the handshake.
    #[error("`{endpoint}` refused `{command}`: {message} ({})", code::text(*code, ""))]
    Command { endpoint: Host, command: &'static str, code: i32, message: String },
    /// The server does not accept user and password (code 18).
    #[error(
        "`{endpoint}` does not accept the credentials of user `{username}` in database `{source_database}`"
    )]
    Credentials {
        endpoint: Host,
        username: String,
        /// Authentication database of the user.
        source_database: String,
    },
    /// `authMechanism=MONGODB-X509` without a certificate of the client.
    #[error("`authMechanism=MONGODB-X509` needs a client certificate")]
    NoCertificate,
    /// `authMechanism=MONGODB-AWS` without a key.
    #[error("`authMechanism=MONGODB-AWS` needs an access key")]
    NoAwsKey,
    /// The file with the token of `authMechanism=MONGODB-OIDC` is unreadable.
    #[error("cannot read the token of `authMechanism=MONGODB-OIDC` from `{}`", path.display())]
    TokenFile {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The server does not accept the key or the token as a user (code 18).
    #[error("`{endpoint}` does not accept the user of `authMechanism={}`: {message}", mechanism.name())]
    Outside {
        endpoint: Host,
        /// [`Mechanism::Aws`] or [`Mechanism::Oidc`].
        mechanism: Mechanism,
        message: String,
    },
    /// The server does not accept the client certificate as a user.
    #[error(
        "`{endpoint}` does not accept the client certificate as a user: {message} (code {code})"
    )]
    CertificateUser { endpoint: Host, code: i32, message: String },
    /// Authentication failed on this side, because the server's messages are not acceptable.
    #[error("cannot authenticate user `{username}` to `{endpoint}`")]
    Authentication {
        endpoint: Host,
        username: String,
        #[source]
        source: Source,
    },
    /// The server is not a member of the given replica set.
    #[error("`{endpoint}` is not a member of the replica set `{expected}`")]
    ReplicaSetName {
        endpoint: Host,
        /// Name in the connection string.
        expected: String,
        /// The server's set name; `None` if it is not a member of a replica set.
        found: Option<String>,
    },
    /// No member of the replica set accepts writes.
    #[error("the replica set has no primary: {}", list_members(members))]
    NoPrimary {
        /// Members with their roles.
        members: Vec<(Host, String)>,
    },
    /// A member of a replica set in a state that does not allow reads.
    #[error("`{endpoint}` {description}{}", state.as_ref().map_or(String::new(), |state| format!(" (state {state})")))]
    NotReady {
        endpoint: Host,
        /// Its role, as the end of a sentence.
        description: &'static str,
        /// Name of the state, if the server sent it.
        state: Option<String>,
    },
    /// The server supports only outdated protocol versions.
    #[error(
        "`{endpoint}` is too old: it supports wire version {found}, but {MIN_WIRE_VERSION} or newer is required"
    )]
    TooOld {
        endpoint: Host,
        /// Newest wire version of the server.
        found: i32,
    },
}

impl ConnectError {
    /// How to solve the problem, if the message does not already say it.
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
                "check the name and this machine's name servers, or list the hosts with `mongodb://`".into()
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
            ConnectError::Command { code: MECHANISM_UNAVAILABLE, .. } => {
                "use another `authMechanism`, or add this one to the server's parameter `authenticationMechanisms`".into()
            }
            ConnectError::NoAwsKey => {
                "put it into `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`; for a profile or a role, `eval \"$(aws configure export-credentials --format env)\"` does so".into()
            }
            ConnectError::TokenFile { .. } => {
                "name the file of the token in the variable `AWS_WEB_IDENTITY_TOKEN_FILE`".into()
            }
            ConnectError::Outside { mechanism: Mechanism::Aws, .. } => {
                "check that the key is valid and not expired, and that the database `$external` has a user with the ARN of its identity as name (`aws sts get-caller-identity` prints it)".into()
            }
            ConnectError::Outside { .. } => {
                "check that the token is not expired, that the server's `oidcIdentityProviders` have its issuer and audience, and that its user or groups have roles".into()
            }
            ConnectError::CertificateUser { message, .. } if message.contains("cluster auth") => {
                "the server takes the certificate for a member's: its organization (`O`), unit (`OU`) or domain (`DC`) must differ from the server's".into()
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

    /// Whether the known primary may be outdated, so that discovering it again may help.
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

/// Likely causes if the server closes a connection without an error message. `before` is the number of earlier
/// connections, TLS is `established` or only requested (`tls`), and `certificate` says whether the client has a
/// certificate.
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
    let members: Vec<String> =
        members.iter().map(|(host, state)| format!("`{host}` {state}")).collect();
    members.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint() -> Host {
        Host::Tcp { host: "localhost".into(), port: 27017 }
    }

    #[test]
    fn messages_name_what_is_needed_to_act() {
        let error =
            ConnectError::TimedOut { endpoint: endpoint(), step: "saying hello", limit_ms: 250 };
        let text = error.to_string();
        for part in ["`localhost:27017`", "250 ms", "saying hello"] {
            assert!(text.contains(part), "{text}");
        }
        let error =
            ConnectError::NoPrimary { members: vec![(endpoint(), "is a secondary".into())] };
        let text = error.to_string();
        for part in ["`localhost:27017`", "secondary"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn hints_of_addresses_know_containers_and_bind_addresses() {
        let tcp = |host: &str| Host::Tcp { host: host.into(), port: 27017 };
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
        let error = ConnectError::Unsupported { options: vec![option("a"), option("b")] };
        let text = error.to_string();
        assert!(text.contains("`a=1`") && text.contains("`b=1`"), "{text}");
        assert_eq!(text.matches(reason).count(), 2, "{text}");
        assert_eq!(error.hint().as_deref(), Some(hint));
    }

    #[test]
    fn the_hint_for_a_certificate_depends_on_its_fault() {
        use rustls::CertificateError as Certificate;
        let hint = |error| {
            let source = rustls::Error::InvalidCertificate(error).into();
            let error = ConnectError::Tls { endpoint: endpoint(), source };
            error.hint().unwrap()
        };
        assert!(hint(Certificate::UnknownIssuer).contains("tlsCAFile"));
        assert!(hint(Certificate::NotValidForName).contains("tlsAllowInvalidHostnames"));
        assert!(hint(Certificate::Expired).contains("tlsAllowInvalidCertificates"));
    }
}
