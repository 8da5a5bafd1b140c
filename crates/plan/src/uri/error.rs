//! Errors in connection strings, with advice.

/// A text is not a usable connection string. No variant contains a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UriError {
    /// Another scheme, or none.
    #[error("a connection string starts with `mongodb://` or `mongodb+srv://`")]
    Scheme,
    /// A character that must be percent-encoded in a user name or password, or stray credentials.
    #[error("user name and password must be percent-encoded")]
    UnescapedCredentials,
    /// `@` without a user name.
    #[error("the user name before `@` is empty")]
    EmptyUserName,
    /// A host without a name.
    #[error("a host of the connection string is empty")]
    EmptyHost,
    /// An invalid host.
    #[error("`{host}` is not a host: {reason}")]
    Host { host: String, reason: &'static str },
    /// The path of a Unix-domain socket with slashes.
    #[error("the path of a Unix-domain socket must be percent-encoded")]
    Socket,
    /// A database name that MongoDB does not allow.
    #[error("`{database}` is not a database name: it contains `{character}`")]
    Database {
        /// The decoded name.
        database: String,
        /// The first forbidden character.
        character: char,
    },
    /// A piece after `?` that is not `name=value`.
    #[error("`{text}` in the connection string is not `name=value`")]
    OptionSyntax { text: String },
    /// Bad percent-encoding outside the credentials.
    #[error("`{text}` is not valid percent-encoding of UTF-8")]
    PercentEncoding { text: String },
    /// A name that MongoDB's drivers do not know.
    #[error("unknown option `{name}` in the connection string")]
    UnknownOption {
        name: String,
        /// The nearest known name, if there is one.
        nearest: Option<String>,
    },
    /// A value of the wrong type or out of range.
    #[error("option `{name}` of the connection string is `{value}`, expected {expected}")]
    OptionValue {
        /// Canonical name.
        name: &'static str,
        /// The given value; `***` for a secret.
        value: String,
        /// Description of the valid values.
        expected: String,
    },
    /// An option that neither backend supports.
    #[error("option `{name}={value}` of the connection string is not supported: {reason}")]
    UnsupportedOption {
        /// Canonical name.
        name: &'static str,
        /// The given value; `***` for a secret.
        value: String,
        reason: &'static str,
        /// Advice for the user.
        hint: &'static str,
    },
    /// One option given twice with different values.
    #[error("option `{name}` is given more than once, with different values")]
    Repeated {
        /// Canonical name.
        name: &'static str,
    },
    /// Options that exclude each other.
    #[error("{first} and {second} exclude each other")]
    Conflict { first: &'static str, second: &'static str },
    /// An option that has no effect without another part.
    #[error("option `{name}` needs {needs}")]
    Needs {
        /// Canonical name.
        name: &'static str,
        /// The missing part.
        needs: &'static str,
    },
    /// `authMechanism=PLAIN` without TLS to another machine.
    #[error("`authMechanism=PLAIN` would send the password unencrypted")]
    UnencryptedPassword,
    /// An authentication mechanism that neither backend supports.
    #[error("authentication mechanism `{mechanism}` is not supported")]
    UnsupportedMechanism { mechanism: String },
}

impl UriError {
    /// Advice, if there is any beyond the message.
    pub fn hint(&self) -> Option<String> {
        match self {
            UriError::Scheme => Some("for example `mongodb://localhost:27017/ycsb`".into()),
            UriError::Socket => {
                Some("write `/` as `%2F`: `mongodb://%2Ftmp%2Fmongodb-27017.sock`".into())
            }
            UriError::UnescapedCredentials => Some(
                "write `@` as `%40`, `:` as `%3A`, `/` as `%2F`, `?` as `%3F`, `#` as `%23`, `%` as `%25`".into(),
            ),
            UriError::UnknownOption { nearest, .. } => nearest
                .as_ref()
                .map(|name| format!("did you mean `{name}`?")),
            UriError::UnsupportedOption { hint, .. } => Some((*hint).to_owned()),
            UriError::UnencryptedPassword => Some("add `tls=true`".into()),
            UriError::UnsupportedMechanism { .. } => {
                Some("use `SCRAM-SHA-256`, `SCRAM-SHA-1`, `MONGODB-X509`, `PLAIN`, `MONGODB-AWS` or `MONGODB-OIDC`".into())
            }
            UriError::Database { character: '.', .. } => {
                Some("name the collection in the plan, not in the connection string".into())
            }
            _ => None,
        }
    }
}
