//! Server secrets of an agent: users, passwords and certificates. An agent gets them by standard input or from a `Secret` of the
//! cluster, never over Redis, whose writers are not trusted.

use dyno_engine::{Error, Kind, OrFault};
use dyno_plan::model::{Encryption, ServerKind, ServerPlan};
use dyno_plan::task::Remote;
use dyno_plan::uri::{Credentials, Mechanism};
use dyno_servers::{Certificates, GivenSecrets, Identity, MemberKey, MemoryFile};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;

/// First line of a secrets file. Ansible treats a text with this beginning as plain text.
const HEAD: &str = "dyno-secrets 1\n";

/// Secrets of one agent; `Debug` does not show them.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bundle {
    /// Secrets of the servers that the fleet starts.
    pub(crate) own: Option<OwnSecrets>,
    /// Secrets of running servers.
    pub(crate) running: Vec<RunningSecrets>,
}

/// Secrets of the servers that the fleet starts.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OwnSecrets {
    pub(crate) user: String,
    pub(crate) password: String,
    /// Certificate of the authority, as PEM.
    pub(crate) ca: String,
    /// Certificate and key of clients, as PEM.
    pub(crate) client: (String, String),
    /// Secrets that only server hosts have.
    pub(crate) server: Option<ServerSecrets>,
}

/// Secrets of one server host.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServerSecrets {
    /// Certificate for the names of this host, and its key.
    pub(crate) certificate: (String, String),
    /// Key file with which members authenticate to each other.
    pub(crate) member_key: String,
}

/// Access to running servers.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunningSecrets {
    /// The connection string without file options.
    pub(crate) uri: String,
    /// Content of `tlsCAFile`.
    pub(crate) ca: Option<String>,
    /// Content of `tlsCertificateKeyFile`.
    pub(crate) client: Option<String>,
}

impl fmt::Debug for Bundle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Bundle(***)")
    }
}

impl fmt::Debug for RunningSecrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("RunningSecrets(***)")
    }
}

impl RunningSecrets {
    /// Whether a connection string contains a user, a file or another secret.
    fn are_needed(remote: &Remote) -> bool {
        let target = &remote.target;
        remote.credentials.is_some() || target.has_secret_options() || target.names_files()
    }

    /// Secrets of a connection string on this machine; `None` if it contains no user, no file and no other secret.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(crate) fn of(remote: &Remote) -> Result<Option<Self>, Error> {
        if !RunningSecrets::are_needed(remote) {
            return Ok(None);
        }
        let target = &remote.target;
        let read = |file: Option<&Path>| {
            let text = file.map(std::fs::read_to_string).transpose();
            text.or_fault(Kind::BadInput, || {
                let file = file.unwrap_or(Path::new("")).display();
                format!("cannot read `{file}`, which the connection string names")
            })
        };
        let ca = read(target.options.tls_ca_file.as_deref())?;
        let client = read(target.options.tls_certificate_key_file.as_deref())?;
        let bare = target.clone().with_files(None, None);
        Ok(Some(RunningSecrets {
            uri: bare.to_secret_uri(remote.credentials.as_ref()),
            ca,
            client,
        }))
    }
}

impl Bundle {
    /// Whether it contains no secrets.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Bundle::default()
    }

    /// Content of the secrets file.
    pub(crate) fn to_text(&self) -> String {
        let json = serde_json::to_string(self).expect("serializable");
        format!("{HEAD}{json}")
    }

    fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text.strip_prefix(HEAD)?).ok()
    }
}

/// An agent's secrets in use. Certificates are memory files, which leave nothing behind.
#[derive(Debug, Default)]
pub(crate) struct Secrets {
    bundle: Bundle,
    own: Option<Files>,
    running: Vec<(Remote, Files)>,
}

/// The files of one deployment.
#[derive(Debug)]
struct Files {
    ca: Option<MemoryFile>,
    client: Option<MemoryFile>,
}

impl Files {
    fn new(ca: Option<&str>, client: Option<&str>) -> Result<Self, Error> {
        let file = |text: Option<&str>| {
            let made = text.map(|text| MemoryFile::new(c"certificate", text));
            made.transpose().or_fault(Kind::Environment, || "cannot keep a certificate in memory")
        };
        Ok(Files { ca: file(ca)?, client: file(client)? })
    }

    /// The server's address with these files.
    fn give(&self, remote: Remote, with_client: bool) -> Remote {
        let path = |file: &Option<MemoryFile>| file.as_ref().map(|file| file.path().to_owned());
        let client = path(&self.client).filter(|_| with_client);
        Remote {
            target: remote.target.with_files(path(&self.ca).as_deref(), client.as_deref()),
            ..remote
        }
    }
}

impl Secrets {
    /// Reads an agent's secrets file, which may be standard input.
    ///
    /// # Errors
    /// The file cannot be read, or is not a secrets file.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .or_fault(Kind::BadInput, || format!("cannot read `{shown}`"))?;
        let bundle = Bundle::parse(&text);
        let bundle = bundle.ok_or_else(|| {
            // The content must not be shown.
            Error::new(Kind::BadInput, format!("`{shown}` is not a secrets file"))
                .with_hint("use the file of a controller with the same version")
        })?;
        Secrets::new(bundle)
    }

    /// Stores the secrets of a bundle.
    ///
    /// # Errors
    /// A connection string is not valid, or memory for certificates is unavailable.
    pub(crate) fn new(bundle: Bundle) -> Result<Self, Error> {
        let own = bundle.own.as_ref().map(|own| {
            let (certificate, key) = &own.client;
            Files::new(Some(&own.ca), Some(&format!("{certificate}{key}")))
        });
        let running = bundle.running.iter().map(|one| {
            let files = Files::new(one.ca.as_deref(), one.client.as_deref())?;
            Ok((Remote::parse(&one.uri)?, files))
        });
        Ok(Secrets {
            own: own.transpose()?,
            running: running.collect::<Result<_, Error>>()?,
            bundle,
        })
    }

    /// Adds user and certificates to a work's server. The trusted authority comes from this agent's options, whatever the work
    /// names.
    ///
    /// # Errors
    /// The work needs secrets that are missing here, or a weaker connection than they allow.
    pub(crate) fn apply(&self, remote: Remote, server: &ServerPlan) -> Result<Remote, Error> {
        if server.kind == ServerKind::Uri {
            let text = remote.target.to_string();
            let mut known = self.running.iter();
            let known = known.find(|(known, _)| known.target.to_string() == text);
            return Ok(known.map_or(remote, |(known, files)| files.give(known.clone(), true)));
        }
        let mut remote = remote;
        if !is_secured(server) {
            return Ok(remote);
        }
        let (Some(own), Some(files)) = (&self.bundle.own, &self.own) else {
            return Err(lacking());
        };
        if server.auth {
            remote.credentials = Some(own.credentials());
        }
        if server.encryption == Encryption::Off {
            return Ok(remote);
        }
        if !remote.target.options.tls || remote.target.is_lenient() {
            let text =
                "the work has servers with certificates, but connections that do not verify them";
            return Err(Error::new(Kind::BadInput, text));
        }
        Ok(files.give(remote, server.encryption == Encryption::Mutual))
    }

    /// Secrets to start a plan's servers on this host; `None` if it needs none.
    ///
    /// # Errors
    /// The work needs secrets that are missing here.
    pub(crate) fn of_server(&self, server: &ServerPlan) -> Result<Option<GivenSecrets>, Error> {
        if !is_secured(server) {
            return Ok(None);
        }
        let own = self.bundle.own.as_ref();
        let own = own.and_then(|own| Some((own, own.server.as_ref()?)));
        let (own, of_host) = own.ok_or_else(lacking)?;
        Ok(Some(GivenSecrets {
            credentials: Some(own.credentials()),
            certificates: Some(Certificates {
                ca: own.ca.clone(),
                server: identity(&of_host.certificate),
                client: identity(&own.client),
            }),
            key: Some(MemberKey::new(of_host.member_key.clone())),
        }))
    }
}

/// Whether a plan starts servers with users or certificates.
pub(crate) fn is_secured(server: &ServerPlan) -> bool {
    server.kind != ServerKind::Uri && (server.auth || server.encryption != Encryption::Off)
}

/// Whether the agents of a plan need secrets.
pub(crate) fn needs_secrets(server: &ServerPlan) -> bool {
    let remote = server.uri.as_deref().map(Remote::parse);
    is_secured(server)
        || remote.is_some_and(|one| one.is_ok_and(|one| RunningSecrets::are_needed(&one)))
}

fn identity((certificate, key): &(String, String)) -> Identity {
    Identity { certificate: certificate.clone(), key: key.clone() }
}

fn lacking() -> Error {
    let text = "the work needs users or certificates, but this agent has none";
    Error::new(Kind::BadInput, text).with_hint("pass the agent its secrets file by `--secrets`")
}

impl OwnSecrets {
    fn credentials(&self) -> Credentials {
        let (user, password) = (self.user.clone(), self.password.clone());
        let mut credentials = Credentials::new(user, password, Some("admin".to_owned()));
        credentials.mechanism = Some(Mechanism::ScramSha256);
        credentials
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> OwnSecrets {
        let pair = |name: &str| (format!("{name} "), "a-secret".to_owned());
        OwnSecrets {
            user: "dyno".into(),
            password: "a-secret".into(),
            ca: "authority".into(),
            client: pair("client"),
            server: Some(ServerSecrets {
                certificate: pair("server"),
                member_key: "a-secret".into(),
            }),
        }
    }

    fn remote(text: &str) -> Remote {
        Remote::parse(text).expect("valid")
    }

    fn server(auth: bool, encryption: Encryption) -> ServerPlan {
        ServerPlan { kind: ServerKind::Mongod, auth, encryption, ..ServerPlan::default() }
    }

    fn read(path: Option<&Path>) -> Option<String> {
        path.map(|path| std::fs::read_to_string(path).expect("memory file"))
    }

    #[test]
    fn secrets_file_is_read_and_never_shown() {
        let folder = tempfile::tempdir().expect("can write");
        let path = folder.path().join("secrets");
        let bundle = Bundle { own: Some(own()), running: Vec::new() };
        std::fs::write(&path, bundle.to_text()).expect("can write");
        let secrets = Secrets::read(&path).expect("valid");
        assert_eq!(secrets.bundle, bundle);
        assert!(!format!("{secrets:?}").contains("a-secret"));
        std::fs::write(&path, format!("{HEAD}{{\"a-secret\": 1}}")).expect("can write");
        let error = Secrets::read(&path).expect_err("invalid");
        assert!(!format!("{error:?} {error:#}").contains("a-secret"));
    }

    #[test]
    fn own_servers_have_the_user_and_tls_of_their_plan() {
        let bundle = Bundle { own: Some(own()), running: Vec::new() };
        let secrets = Secrets::new(bundle).expect("valid");
        let apply = |text: &str, plan: &ServerPlan| secrets.apply(remote(text), plan);
        let plain = apply("mongodb://h/", &server(false, Encryption::Off)).expect("open");
        assert!(plain.credentials.is_none() && !plain.target.names_files());
        let user = apply("mongodb://h/", &server(true, Encryption::Off)).expect("a user");
        let user = user.credentials.expect("present");
        assert_eq!((user.username.as_str(), user.password()), ("dyno", "a-secret"));
        let tls = "mongodb://h/?tls=true";
        let one = apply(tls, &server(false, Encryption::Server)).expect("encrypted");
        let options = one.target.options;
        assert_eq!(read(options.tls_ca_file.as_deref()).as_deref(), Some("authority"));
        assert_eq!(options.tls_certificate_key_file, None);
        let both = apply(tls, &server(true, Encryption::Mutual)).expect("both");
        let client = both.target.options.tls_certificate_key_file;
        assert_eq!(read(client.as_deref()).as_deref(), Some("client a-secret"));
        // A work cannot bypass the authority.
        for weak in ["mongodb://h/", "mongodb://h/?tls=true&tlsInsecure=true"] {
            assert!(apply(weak, &server(true, Encryption::Server)).is_err(), "{weak}");
        }
        let none = Secrets::default();
        let plan = server(true, Encryption::Off);
        assert!(none.apply(remote("mongodb://h/"), &plan).is_err());
        assert!(none.of_server(&plan).is_err());
        let given = secrets.of_server(&plan).expect("here").expect("asked for");
        assert_eq!(given.key.expect("a key").reveal(), "a-secret");
        assert!(
            secrets.of_server(&server(false, Encryption::Off)).is_ok_and(|none| none.is_none())
        );
    }

    #[test]
    fn running_servers_are_reached_with_the_controllers_secrets() {
        let folder = tempfile::tempdir().expect("can write");
        let ca = folder.path().join("ca.pem");
        std::fs::write(&ca, "their authority").expect("can write");
        let uri =
            format!("mongodb://u:a-secret@db1,db2/x?replicaSet=rs&tlsCAFile={}", ca.display());
        let known = remote(&uri);
        let running = RunningSecrets::of(&known).expect("can read");
        let secrets = Secrets::new(Bundle { own: None, running: running.into_iter().collect() });
        let secrets = secrets.expect("valid");
        let plan = ServerPlan { kind: ServerKind::Uri, ..ServerPlan::default() };
        // Text sent over Redis contains neither a user nor a path of this machine.
        let said = known.target.clone().with_files(None, None).to_string();
        assert!(!said.contains("a-secret") && !said.contains("ca.pem"), "{said}");
        let found = secrets.apply(remote(&said), &plan).expect("known server");
        assert_eq!(found.credentials, known.credentials);
        let file = found.target.options.tls_ca_file.as_deref();
        assert_eq!(read(file).as_deref(), Some("their authority"));
        let other = secrets.apply(remote("mongodb://elsewhere/"), &plan);
        assert!(other.expect("another one").credentials.is_none());
        assert!(
            RunningSecrets::of(&remote("mongodb://h/?tls=true")).is_ok_and(|none| none.is_none())
        );
        std::fs::remove_file(&ca).expect("present");
        let error = RunningSecrets::of(&known).expect_err("the file is deleted");
        assert_eq!(error.kind, Kind::BadInput);
        assert!(error.to_string().contains("ca.pem"), "{error}");
    }
}
