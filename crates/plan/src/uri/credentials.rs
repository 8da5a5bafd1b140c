//! User, password and mechanism of a connection string.

use super::options::Authentication;
use super::percent::decode;
use super::{Target, UriError};
use std::fmt;

/// User and password. It has no `Serialize`, and `Debug` hides the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Empty only with [`Mechanism::X509`]: the server uses the subject of the client's
    /// certificate.
    pub username: String,
    /// Empty with [`Mechanism::X509`].
    password: String,
    /// Database of the user: `authSource`, else the database of the connection string, `$external`
    /// with [`Mechanism::X509`]; `admin` if absent.
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
            source_is_explicit: source.is_some(),
            source,
            mechanism: None,
        }
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

/// Authentication mechanisms that both backends support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// `SCRAM-SHA-1`.
    ScramSha1,
    /// `SCRAM-SHA-256`.
    ScramSha256,
    /// `MONGODB-X509`: the client's certificate names the user.
    X509,
}

impl Mechanism {
    pub(super) const ALL: [Mechanism; 3] =
        [Mechanism::ScramSha1, Mechanism::ScramSha256, Mechanism::X509];

    /// Name in connection strings and in commands.
    pub const fn name(self) -> &'static str {
        match self {
            Mechanism::ScramSha1 => "SCRAM-SHA-1",
            Mechanism::ScramSha256 => "SCRAM-SHA-256",
            Mechanism::X509 => "MONGODB-X509",
        }
    }
}

/// Database of users that an external system authenticates.
const EXTERNAL: &str = "$external";

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
    let Authentication { source, mechanism } = authentication;
    if mechanism == Some(Mechanism::X509) {
        return certificate_credentials(user, source).map(Some);
    }
    let Some((username, password)) = user else {
        return match mechanism {
            Some(_) => Err(UriError::Needs {
                name: "authMechanism",
                needs: "a user name in the connection string",
            }),
            // `authSource` alone has no effect.
            None => Ok(None),
        };
    };
    Ok(Some(Credentials {
        username,
        password,
        source_is_explicit: source.is_some(),
        source: source.or_else(|| target.database.clone()),
        mechanism,
    }))
}

fn certificate_credentials(
    user: Option<(String, String)>,
    source: Option<String>,
) -> Result<Credentials, UriError> {
    let (username, password) = user.unwrap_or_default();
    let conflict = |second| UriError::Conflict { first: "`authMechanism=MONGODB-X509`", second };
    if !password.is_empty() {
        return Err(conflict("a password"));
    }
    if source.as_deref().is_some_and(|source| source != EXTERNAL) {
        return Err(conflict("an `authSource` other than `$external`"));
    }
    Ok(Credentials {
        username,
        password,
        source: Some(EXTERNAL.to_owned()),
        mechanism: Some(Mechanism::X509),
        source_is_explicit: true,
    })
}
