//! Why a text is not a usable connection string, and what to do about it.

/// Why a text is not a usable connection string. No variant holds a password.
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
    /// A host that is no host.
    #[error("`{host}` is not a host: {reason}")]
    Host {
        /// The host as given.
        host: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The path of a Unix-domain socket with slashes.
    #[error("the path of a Unix-domain socket must be percent-encoded")]
    Socket,
    /// A database name that MongoDB does not allow.
    #[error("`{database}` is not a database name: it holds `{character}`")]
    Database {
        /// The name, decoded.
        database: String,
        /// The first forbidden character.
        character: char,
    },
    /// A piece after `?` that is not `name=value`.
    #[error("`{text}` in the connection string is not `name=value`")]
    OptionSyntax {
        /// The piece.
        text: String,
    },
    /// Bad percent-encoding outside the credentials.
    #[error("`{text}` is not valid percent-encoding of UTF-8")]
    PercentEncoding {
        /// The piece.
        text: String,
    },
    /// A name that no version of MongoDB's drivers knows.
    #[error("unknown option `{name}` in the connection string")]
    UnknownOption {
        /// The name as given.
        name: String,
        /// The nearest known name, if one is near.
        nearest: Option<String>,
    },
    /// A value of the wrong type or out of range.
    #[error("option `{name}` of the connection string is `{value}`, expected {expected}")]
    OptionValue {
        /// Canonical name.
        name: &'static str,
        /// Value as given; `***` where it is a secret.
        value: String,
        /// What would be right.
        expected: String,
    },
    /// An option that neither backend honours.
    #[error("option `{name}={value}` of the connection string is not supported: {reason}")]
    UnsupportedOption {
        /// Canonical name.
        name: &'static str,
        /// Value as given; `***` where it is a secret.
        value: String,
        /// Why.
        reason: &'static str,
        /// What to do instead.
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
    Conflict {
        /// One of them.
        first: &'static str,
        /// The other one.
        second: &'static str,
    },
    /// An option that means nothing without another part.
    #[error("option `{name}` needs {needs}")]
    Needs {
        /// Canonical name.
        name: &'static str,
        /// What is missing.
        needs: &'static str,
    },
    /// An authentication mechanism that neither backend speaks.
    #[error("authentication mechanism `{mechanism}` is not supported")]
    UnsupportedMechanism {
        /// The mechanism as given.
        mechanism: String,
    },
}

impl UriError {
    /// What to do about it, if there is more to say than the message.
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
            UriError::UnsupportedMechanism { .. } => {
                Some("use `SCRAM-SHA-256`, `SCRAM-SHA-1` or `MONGODB-X509`".into())
            }
            UriError::Database { character: '.', .. } => {
                Some("name the collection in the plan, not in the connection string".into())
            }
            _ => None,
        }
    }
}
