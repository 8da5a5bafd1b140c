//! The connection string: `mongodb.url` combined with the options that YCSB stores in separate
//! properties.

use super::reader::Reader;
use super::words::in_ycsb_words;
use crate::problem::Problem;
use crate::uri::{self, Credentials, Target, UnsupportedOption, has_option, with_option};

/// Default address of YCSB's MongoDB binding.
pub(super) const DEFAULT_URL: &str = "mongodb://localhost:27017/ycsb?w=1";
/// Default address if `mongodb.database` names the database.
const DEFAULT_SERVER: &str = "mongodb://localhost:27017/?w=1";

/// Properties that add to `mongodb.url`.
const ADDITIONS: [&str; 6] = [
    "mongodb.database",
    "mongodb.writeConcern",
    "mongodb.readPreference",
    "mongodb.maxconnections",
    "mongodb.username",
    "mongodb.password",
];

/// A validated connection string. The text may contain credentials.
pub(super) struct Address {
    pub(super) text: String,
    pub(super) target: Target,
    /// Options from properties other than `mongodb.url`.
    added: Vec<&'static str>,
}

impl Address {
    /// Options that the wire backend does not support, by the names of their properties.
    pub(super) fn unsupported_by_wire(&self, reader: &Reader<'_>) -> Vec<Problem> {
        self.target.unsupported_by_wire.iter().map(|option| self.problem(option, reader)).collect()
    }

    fn problem(&self, option: &UnsupportedOption, reader: &Reader<'_>) -> Problem {
        let hint = in_ycsb_words(&option.hint);
        let Some(name) = self.added.iter().find(|name| **name == option.name) else {
            let message = format!("`mongodb.url`: {option}");
            return reader.at("mongodb.url", message).with_hint(hint);
        };
        let source = property_of_option(name).unwrap_or(name);
        let value = reader.text(source).unwrap_or_default();
        let hint = match *name {
            "w" => "use `acknowledged`".to_owned(),
            _ => hint,
        };
        let message = format!("`{source}` is `{value}`: {}", option.reason);
        reader.at(source, message).with_hint(hint)
    }
}

/// Reads `mongodb.url`, or `default` if it is absent, and merges the other properties into it.
/// `None` if there is neither, or if there is a problem, which is added to the reader.
pub(super) fn read(reader: &mut Reader<'_>, default: Option<&str>) -> Option<Address> {
    const NAME: &str = "mongodb.url";
    let database = reader.text("mongodb.database");
    let default = default.map(|url| database.map_or(url, |_| DEFAULT_SERVER));
    let Some(url) = reader.text(NAME).or(default) else {
        for name in ADDITIONS {
            if reader.is_given(name) {
                let message = format!("`{name}` adds to `mongodb.url`, which is not given");
                reader.problem(
                    name,
                    message,
                    "set `mongodb.url`, or write the option into `--uri`",
                );
            }
        }
        return None;
    };
    if url.contains('|') {
        let hint = "use one connection string with all hosts, separated by commas";
        reader.problem(NAME, "`mongodb.url` holds several connection strings", hint);
        return None;
    }
    // Checked before anything is added, so that messages quote only the user's text.
    let (target, credentials) = parsed(reader, url)?;
    let mut text = match database {
        Some(_) if target.database.is_some() => {
            let reason = "the database in `mongodb.url` takes precedence";
            reader.warn_unused("mongodb.database", reason);
            url.to_owned()
        }
        Some(database) => uri::with_database(url, database),
        None => url.to_owned(),
    };
    let mut added = Vec::new();
    for (name, value) in options(reader) {
        if has_option(url, name) {
            let source = property_of_option(name).unwrap_or(name);
            reader.warn_unused(
                source,
                &format!("`mongodb.url` already has `{name}`, which takes precedence"),
            );
        } else {
            text = with_option(&text, name, &value);
            added.push(name);
        }
    }
    text = with_credentials(reader, text, credentials.as_ref())?;
    if text == url {
        return Some(Address { text, target, added });
    }
    let (target, _) = parsed(reader, &text)?;
    Some(Address { text, target, added })
}

fn parsed(reader: &mut Reader<'_>, url: &str) -> Option<(Target, Option<Credentials>)> {
    match uri::parse(url) {
        Ok(parsed) => Some(parsed),
        Err(error) => {
            let hint = error
                .hint()
                .unwrap_or_else(|| "see the manual of MongoDB's connection strings".into());
            reader.problem("mongodb.url", format!("`mongodb.url`: {error}"), &hint);
            None
        }
    }
}

/// Options of connection strings for the given properties.
fn options(reader: &mut Reader<'_>) -> Vec<(&'static str, String)> {
    let mut options = Vec::new();
    let write_concern = reader.choice_in_any_case(
        "mongodb.writeConcern",
        &[
            ("acknowledged", ("w", "1")),
            ("journaled", ("journal", "true")),
            ("majority", ("w", "majority")),
            ("replica_acknowledged", ("w", "2")),
            ("unacknowledged", ("w", "0")),
            ("errors_ignored", ("w", "0")),
        ],
    );
    let read_preference = reader.choice_in_any_case(
        "mongodb.readPreference",
        &[
            ("primary", ("readPreference", "primary")),
            ("primary_preferred", ("readPreference", "primaryPreferred")),
            ("secondary", ("readPreference", "secondary")),
            ("secondary_preferred", ("readPreference", "secondaryPreferred")),
            ("nearest", ("readPreference", "nearest")),
        ],
    );
    for (name, value) in [write_concern, read_preference].into_iter().flatten() {
        options.push((name, value.to_owned()));
    }
    if let Some(connections) = reader.count::<u32>("mongodb.maxconnections") {
        options.push(("maxPoolSize", connections.to_string()));
    }
    options
}

/// The property that adds an option to the connection string.
pub fn property_of_option(option: &str) -> Option<&'static str> {
    match option {
        "readPreference" => Some("mongodb.readPreference"),
        "maxPoolSize" => Some("mongodb.maxconnections"),
        "w" | "journal" => Some("mongodb.writeConcern"),
        _ => None,
    }
}

/// Adds user and password to a connection string without them.
fn with_credentials(
    reader: &mut Reader<'_>,
    url: String,
    given: Option<&Credentials>,
) -> Option<String> {
    let user = reader.exact_text("mongodb.username").filter(|user| !user.is_empty());
    let password = reader.exact_text("mongodb.password").filter(|password| !password.is_empty());
    let Some(user) = user else {
        if password.is_some() {
            let message = "`mongodb.password` is given without `mongodb.username`";
            reader.problem(
                "mongodb.password",
                message,
                "set both, or write them into `mongodb.url`",
            );
            return None;
        }
        return Some(url);
    };
    if given.is_some() {
        reader.warnings.push(
            "`mongodb.username` has no effect: the user in `mongodb.url` takes precedence".into(),
        );
        return Some(url);
    }
    let (scheme, rest) = url.split_once("://")?;
    let (user, password) = (uri::encode(user), uri::encode(password.unwrap_or_default()));
    Some(format!("{scheme}://{user}:{password}@{rest}"))
}
