//! User, password and mechanism of a connection string.

use super::options::Authentication;
use super::percent::decode;
use super::{Host, Target, UriError};
use std::fmt;

/// User and password. It has no `Serialize`, and `Debug` hides the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Empty if something outside of the connection string names the user: the client's certificate
    /// ([`Mechanism::X509`]), the environment ([`Mechanism::Aws`]) or a token
    /// ([`Mechanism::Oidc`]).
    pub username: String,
    /// Empty if the connection string does not contain a password.
    password: String,
    /// Session token of temporary keys, with [`Mechanism::Aws`].
    session_token: Option<String>,
    /// Database of the user: `authSource`, else the database of the connection string or
    /// `$external`, depending on the mechanism; `admin` if absent.
    pub source: Option<String>,
    /// Negotiated with the server if absent.
    pub mechanism: Option<Mechanism>,
    /// Whether `source` was given as `authSource`, so that a TXT record must not replace it.
    pub(super) source_is_explicit: bool,
}

impl Credentials {
    /// Creates credentials. `source` counts as explicit if present.
    pub fn new(username: String, password: String, source: Option<String>) -> Self {
        Credentials {
            username,
            password,
            session_token: None,
            source_is_explicit: source.is_some(),
            source,
            mechanism: None,
        }
    }

    /// Session token of temporary AWS keys, which must not appear in messages or files.
    pub fn session_token(&self) -> Option<&str> {
        self.session_token.as_deref()
    }

    /// The password in plain text, which must not appear in messages or files.
    pub fn password(&self) -> &str {
        &self.password
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Credentials")
            .field("username", &self.username)
            .field("password", &"***")
            .field("source", &self.source)
            .field("mechanism", &self.mechanism)
            .finish()
    }
}

/// Authentication mechanisms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// `SCRAM-SHA-1`.
    ScramSha1,
    /// `SCRAM-SHA-256`.
    ScramSha256,
    /// `MONGODB-X509`: the client's certificate names the user.
    X509,
    /// `PLAIN`: the password in plain text, for servers that ask LDAP.
    Plain,
    /// `MONGODB-AWS`: a request to AWS, signed by an access key.
    Aws,
    /// `MONGODB-OIDC`: a token in a file.
    Oidc,
}

impl Mechanism {
    pub(super) const ALL: [Mechanism; 6] = [
        Mechanism::ScramSha1,
        Mechanism::ScramSha256,
        Mechanism::X509,
        Mechanism::Plain,
        Mechanism::Aws,
        Mechanism::Oidc,
    ];

    /// Name in connection strings and in commands.
    pub const fn name(self) -> &'static str {
        match self {
            Mechanism::ScramSha1 => "SCRAM-SHA-1",
            Mechanism::ScramSha256 => "SCRAM-SHA-256",
            Mechanism::X509 => "MONGODB-X509",
            Mechanism::Plain => "PLAIN",
            Mechanism::Aws => "MONGODB-AWS",
            Mechanism::Oidc => "MONGODB-OIDC",
        }
    }
}

/// Database of users that an external system authenticates.
const EXTERNAL: &str = "$external";
const PROPERTIES: &str = "authMechanismProperties";
/// The property that takes the token of OIDC from a file.
pub(super) const TOKEN_FILE: &str = "ENVIRONMENT:k8s";
/// The property with the token of temporary AWS keys.
pub(super) const SESSION_TOKEN: &str = "AWS_SESSION_TOKEN:";

/// User name and password of `user:password`, decoded.
pub(super) fn parse_userinfo(userinfo: &str) -> Result<(String, String), UriError> {
    let (user, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
    let reserved = [':', '/', '?', '#', '[', ']', '@'];
    if user.contains(reserved) || password.contains(reserved) {
        return Err(UriError::UnescapedCredentials);
    }
    if user.is_empty() {
        return Err(UriError::EmptyUserName);
    }
    let decoded = |text| decode(text).ok_or(UriError::UnescapedCredentials);
    Ok((decoded(user)?, decoded(password)?))
}

pub(super) fn make_credentials(
    user: Option<(String, String)>,
    authentication: Authentication,
    target: &Target,
) -> Result<Option<Credentials>, UriError> {
    let Authentication { source, mechanism, properties } = authentication;
    let session_token = check_properties(mechanism, properties.as_deref())?;
    let is_named = user.is_some();
    let mut credentials = match (mechanism, user) {
        // `authSource` alone has no effect.
        (None, None) => return Ok(None),
        (Some(Mechanism::X509 | Mechanism::Aws | Mechanism::Oidc), user) => {
            let (username, password) = user.unwrap_or_default();
            Credentials::new(username, password, source)
        }
        (_, Some((username, password))) => Credentials::new(username, password, source),
        (Some(_), None) => {
            return Err(UriError::Needs {
                name: "authMechanism",
                needs: "a user name in the connection string",
            });
        }
    };
    let is_here = !target.hosts.is_empty() && target.hosts.iter().all(Host::is_on_this_machine);
    if mechanism == Some(Mechanism::Plain) && !target.options.tls && !is_here {
        return Err(UriError::UnencryptedPassword);
    }
    credentials.mechanism = mechanism;
    credentials.session_token = session_token;
    match mechanism {
        Some(external @ (Mechanism::X509 | Mechanism::Aws | Mechanism::Oidc)) => {
            make_external(&mut credentials, external, is_named)?;
        }
        _ if credentials.source.is_none() => {
            let otherwise = (mechanism == Some(Mechanism::Plain)).then(|| EXTERNAL.to_owned());
            credentials.source = target.database.clone().or(otherwise);
        }
        _ => {}
    }
    Ok(Some(credentials))
}

/// Checks the rules of a mechanism whose users are outside of MongoDB.
fn make_external(
    credentials: &mut Credentials,
    mechanism: Mechanism,
    is_named: bool,
) -> Result<(), UriError> {
    let first = match mechanism {
        Mechanism::X509 => "`authMechanism=MONGODB-X509`",
        Mechanism::Aws => "`authMechanism=MONGODB-AWS`",
        _ => "`authMechanism=MONGODB-OIDC`",
    };
    let conflict = |second| Err(UriError::Conflict { first, second });
    let has_password = !credentials.password.is_empty();
    if credentials.source.as_deref().is_some_and(|source| source != EXTERNAL) {
        return conflict("an `authSource` other than `$external`");
    }
    match mechanism {
        Mechanism::Aws if is_named && !has_password => {
            return Err(UriError::Needs {
                name: "authMechanism",
                needs: "the secret access key as password, or neither user nor password",
            });
        }
        Mechanism::Aws if !is_named && credentials.session_token.is_some() => {
            return Err(UriError::Needs {
                name: PROPERTIES,
                needs: "the access key as user and the secret access key as password",
            });
        }
        Mechanism::Aws => {}
        Mechanism::Oidc if is_named => return conflict("a user name"),
        _ if has_password => return conflict("a password"),
        _ => {}
    }
    credentials.source = Some(EXTERNAL.to_owned());
    credentials.source_is_explicit = true;
    Ok(())
}

/// Checks `authMechanismProperties`, and returns the session token in it.
fn check_properties(
    mechanism: Option<Mechanism>,
    properties: Option<&str>,
) -> Result<Option<String>, UriError> {
    let refused = |reason, hint| {
        Err(UriError::UnsupportedOption { name: PROPERTIES, value: "***".into(), reason, hint })
    };
    match (mechanism, properties) {
        (Some(Mechanism::Oidc), Some(TOKEN_FILE)) => Ok(None),
        (Some(Mechanism::Oidc), None) => Err(UriError::Needs {
            name: "authMechanism",
            needs: "`ENVIRONMENT:k8s` as `authMechanismProperties`, which reads the token from a file",
        }),
        (Some(Mechanism::Oidc), Some(_)) => refused(
            "with `MONGODB-OIDC`, only `ENVIRONMENT:k8s` is",
            "write a token into a file, name it in the variable `AWS_WEB_IDENTITY_TOKEN_FILE`, and use `ENVIRONMENT:k8s`",
        ),
        (Some(Mechanism::Aws), Some(given)) => match given.strip_prefix(SESSION_TOKEN) {
            Some(token) if !token.is_empty() => Ok(Some(token.to_owned())),
            _ => refused("with `MONGODB-AWS`, only `AWS_SESSION_TOKEN:TOKEN` is", "remove it"),
        },
        (_, Some(_)) => refused(
            "it belongs to `authMechanism=MONGODB-AWS` and `MONGODB-OIDC`",
            "remove it, or name the mechanism",
        ),
        (_, None) => Ok(None),
    }
}
