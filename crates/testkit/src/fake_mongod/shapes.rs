//! Documented structure of every command that the fake `mongod` supports. Source: the command pages of MongoDB's
//! manual. Pure functions.

use bson::{Bson, Document};
use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::concerns;

/// Field types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    /// An integer of any type.
    Whole,
    /// A number.
    Number,
    Boolean,
    Object,
    List,
    Any,
}

use Kind::{Any, Boolean, List, Number, Object, Text, Whole};

/// Maximum number of writes per command. Source: MongoDB manual, `hello.maxWriteBatchSize`.
pub(super) const MOST_WRITES: usize = 100_000;

/// A field: name, type, whether it is required.
type Field = (&'static str, Kind, bool);

/// The type of a command's argument, and the command's other fields.
type Shape = (Kind, Vec<Field>);

/// Shapes by name, from `shapes.txt`.
static SHAPES: LazyLock<BTreeMap<&str, Shape>> = LazyLock::new(|| {
    let lines = include_str!("shapes.txt").lines();
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| shape(line).expect("every line has a shape")).collect()
});

fn shape(line: &'static str) -> Option<(&'static str, Shape)> {
    let mut words = line.split(' ');
    let (name, argument) = (words.next()?, kind(words.next()?)?);
    let fields = words.map(|word| {
        let (name, named) = word.split_once(':')?;
        Some((name, kind(named.trim_end_matches('!'))?, named.ends_with('!')))
    });
    Some((name, (argument, fields.collect::<Option<_>>()?)))
}

fn kind(name: &str) -> Option<Kind> {
    let kinds = [Text, Whole, Number, Boolean, Object, List, Any];
    kinds.into_iter().find(|kind| format!("{kind:?}") == name)
}

/// Fields of a part that several commands have.
fn fields_of(part: &str) -> &'static [Field] {
    &SHAPES[part].1
}

/// An error reply: code and message.
pub(super) type Refusal = (i32, String);

/// Error for an invalid value.
pub(super) fn bad(message: impl Into<String>) -> Refusal {
    (2, message.into())
}

/// Error of a router whose shard does not answer.
pub(super) fn unreachable(what: impl std::fmt::Display, error: &std::io::Error) -> Refusal {
    (6, format!("{what}: {error}"))
}

/// An integer of any type.
pub(super) fn whole(value: &Bson) -> Option<i64> {
    match value {
        Bson::Int32(number) => Some(i64::from(*number)),
        Bson::Int64(number) => Some(*number),
        Bson::Double(number) if number.fract() == 0.0 => Some(*number as i64),
        _ => None,
    }
}

/// Checks names and types of all fields.
pub(super) fn check(command: &Document) -> Result<(), Refusal> {
    let Some((name, argument)) = command.iter().next() else {
        return Err((9, "the command is empty".to_owned()));
    };
    // Names with a dot are parts of commands.
    let known = SHAPES.get(name.as_str()).filter(|_| !name.starts_with('.'));
    let Some((kind, fields)) = known else {
        return Err((59, format!("no such command: '{name}'")));
    };
    matches_kind(name, argument, *kind)?;
    let all: Vec<Field> = fields.iter().chain(fields_of(".generic")).copied().collect();
    // Fields select sections of the status by name, and unknown sections are accepted.
    let is_section =
        |field: &str| name == "serverStatus" && all.iter().all(|(known, _, _)| *known != field);
    let (sections, others): (Vec<_>, Vec<_>) =
        command.iter().skip(1).partition(|(field, _)| is_section(field));
    for (field, value) in sections {
        matches_kind(field, value, Kind::Any)?;
    }
    check_fields(others.into_iter(), &all)?;
    concerns::check(name, command)?;
    match name.as_str() {
        "replSetInitiate" | "fakeMongodJoin" => {
            check_configuration(argument.as_document().unwrap_or(&Document::new()))
        }
        "insert" => check_writes(command, "documents", None),
        "update" => check_writes(command, "updates", Some(".update")),
        "delete" => check_writes(command, "deletes", Some(".delete")),
        _ => Ok(()),
    }
}

/// Checks number and structure of the writes of a command.
fn check_writes(command: &Document, list: &str, part: Option<&str>) -> Result<(), Refusal> {
    let writes = command.get_array(list).map(Vec::as_slice);
    let writes = writes.unwrap_or_default();
    if !(1..=MOST_WRITES).contains(&writes.len()) {
        return Err((16, format!("Write batch sizes must be between 1 and {MOST_WRITES}")));
    }
    for write in writes {
        let write = write
            .as_document()
            .ok_or_else(|| (14, format!("a member of '{list}' is not an object")))?;
        if let Some(part) = part {
            check_fields(write.iter(), fields_of(part))?;
        }
    }
    Ok(())
}

fn check_configuration(configuration: &Document) -> Result<(), Refusal> {
    check_fields(configuration.iter(), fields_of(".configuration"))?;
    for member in configuration.get_array("members").into_iter().flatten() {
        let Some(member) = member.as_document() else {
            return Err((14, "a member is not an object".to_owned()));
        };
        check_fields(member.iter(), fields_of(".member"))?;
    }
    Ok(())
}

fn check_fields<'a>(
    fields: impl Iterator<Item = (&'a String, &'a Bson)>,
    known: &[Field],
) -> Result<(), Refusal> {
    let mut seen = Vec::new();
    for (name, value) in fields {
        let Some((_, kind, _)) = known.iter().find(|(known, _, _)| known == name) else {
            return Err((40415, format!("BSON field '{name}' is an unknown field")));
        };
        matches_kind(name, value, *kind)?;
        seen.push(name.as_str());
    }
    match known.iter().find(|(name, _, must)| *must && !seen.contains(name)) {
        Some((name, _, _)) => {
            Err((40414, format!("BSON field '{name}' is missing but a required field")))
        }
        None => Ok(()),
    }
}

fn matches_kind(name: &str, value: &Bson, kind: Kind) -> Result<(), Refusal> {
    let matches = match (kind, value) {
        (Any, _)
        | (Text, Bson::String(_))
        | (Boolean, Bson::Boolean(_))
        | (Object, Bson::Document(_))
        | (List, Bson::Array(_))
        | (Whole | Number, Bson::Int32(_) | Bson::Int64(_))
        | (Number, Bson::Double(_)) => true,
        (Whole, Bson::Double(number)) => number.fract() == 0.0,
        _ => false,
    };
    if matches {
        Ok(())
    } else {
        Err((14, format!("BSON field '{name}' is the wrong type, expected {kind:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    fn code(mut command: Document) -> i32 {
        command.insert("$db", "admin");
        check(&command).map_or_else(|(code, _)| code, |()| 0)
    }

    #[test]
    fn unknown_missing_and_mistyped_fields_have_their_own_errors() {
        assert_eq!(code(doc! { "addShard": "a/b:1", "name": "a" }), 0);
        assert_eq!(code(doc! { "addShard": "a/b:1", "nom": "a" }), 40415);
        assert_eq!(code(doc! { "addShard": 1 }), 14);
        assert_eq!(code(doc! { "shardCollection": "a.b" }), 40414);
        assert_eq!(code(doc! { "addShards": "a/b:1" }), 59);
        assert_eq!(check(&doc! { "ping": 1 }).unwrap_err().0, 40414);
        assert_eq!(check(&doc! {}).unwrap_err().0, 9);
    }

    #[test]
    fn writes_are_checked_one_by_one() {
        let update =
            |update: Document| code(doc! { "update": "c", "updates": [update], "ordered": true });
        assert_eq!(update(doc! { "q": {}, "u": {}, "upsert": true }), 0);
        assert_eq!(update(doc! { "q": {} }), 40414);
        assert_eq!(update(doc! { "q": {}, "u": {}, "upset": true }), 40415);
        let delete = |delete: Document| code(doc! { "delete": "c", "deletes": [delete] });
        assert_eq!(delete(doc! { "q": {}, "limit": 1 }), 0);
        assert_eq!(delete(doc! { "q": {} }), 40414);
        assert_eq!(code(doc! { "insert": "c", "documents": bson::Bson::Array(Vec::new()) }), 16);
        assert_eq!(code(doc! { "insert": "c", "documents": [1] }), 14);
    }

    #[test]
    fn a_configuration_is_checked_down_to_its_members() {
        let initiate = |member: Document| {
            code(doc! { "replSetInitiate": { "_id": "rs", "members": [member] } })
        };
        assert_eq!(initiate(doc! { "_id": 0, "host": "a:1" }), 0);
        assert_eq!(initiate(doc! { "_id": 0.5, "host": "a:1" }), 14);
        assert_eq!(initiate(doc! { "_id": 0 }), 40414);
        assert_eq!(initiate(doc! { "_id": 0, "host": "a:1", "arbiter": true }), 40415);
        assert_eq!(code(doc! { "replSetInitiate": { "_id": "rs", "members": 1 } }), 14);
    }
}
