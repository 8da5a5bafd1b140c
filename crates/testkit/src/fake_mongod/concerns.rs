//! Read and write concerns: their documented structure, the commands that accept them, and how often each one arrived.
//! Source: MongoDB manual, "Read Concern" and "Write Concern".

use std::collections::BTreeMap;

use bson::{Bson, Document};

use super::shapes::{Refusal, whole};

/// Commands that accept a write concern; `READS` accept a read concern.
const WRITES: [&str; 6] = ["create", "createUser", "delete", "drop", "insert", "update"];
const READS: [&str; 3] = ["aggregate", "count", "find"];

const LEVELS: [&str; 5] = ["local", "available", "majority", "linearizable", "snapshot"];

/// Validates the concerns of a command.
pub(super) fn check(name: &str, command: &Document) -> Result<(), Refusal> {
    let invalid = |what: &str| (72, format!("{name} does not support {what} concern"));
    if let Ok(concern) = command.get_document("writeConcern") {
        if !WRITES.contains(&name) {
            return Err(invalid("write"));
        }
        check_write(concern)?;
    }
    if let Ok(concern) = command.get_document("readConcern") {
        if !READS.contains(&name) {
            return Err(invalid("read"));
        }
        check_read(concern)?;
    }
    Ok(())
}

fn check_write(concern: &Document) -> Result<(), Refusal> {
    for (field, value) in concern {
        let fits = match (field.as_str(), value) {
            ("w", Bson::Int32(_) | Bson::Int64(_)) => {
                whole(value).is_some_and(|w| (0..=50).contains(&w))
            }
            ("w", Bson::String(_)) | ("j", Bson::Boolean(_)) => true,
            ("wtimeout", Bson::Int32(_) | Bson::Int64(_)) => whole(value) >= Some(0),
            _ => false,
        };
        if !fits {
            return Err((9, format!("no write concern has {field}: {value}")));
        }
    }
    Ok(())
}

fn check_read(concern: &Document) -> Result<(), Refusal> {
    for (field, value) in concern {
        let fits = match (field.as_str(), value) {
            ("level", Bson::String(level)) => LEVELS.contains(&level.as_str()),
            ("afterClusterTime", Bson::Timestamp(_)) => true,
            _ => false,
        };
        if !fits {
            return Err((9, format!("no read concern has {field}: {value}")));
        }
    }
    Ok(())
}

/// Conditions for write concerns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fulfilment {
    /// Whether the server is a member of a replica set.
    pub(super) in_set: bool,
    /// Members with data.
    pub(super) holders: usize,
}

impl Fulfilment {
    /// Rejects concerns that are invalid for this kind of server.
    pub(super) fn permit(self, command: &Document) -> Result<(), Refusal> {
        if self.in_set {
            return Ok(());
        }
        let level = command.get_document("readConcern");
        let level = level.and_then(|concern| concern.get_str("level"));
        if level.is_ok_and(|level| level == "linearizable") {
            return Err((123, "node needs to be a replica set member".to_owned()));
        }
        let wanted = command.get_document("writeConcern");
        let wanted = wanted.ok().and_then(|concern| concern.get("w"));
        match wanted {
            Some(w) if whole(w) > Some(1) => {
                Err((2, "cannot use 'w' > 1 when a host is not replicated".to_owned()))
            }
            Some(Bson::String(name)) if name != "majority" => Err((
                2,
                format!("cannot use non-majority 'w' mode {name} when a host is not replicated"),
            )),
            _ => Ok(()),
        }
    }

    /// Code and message if the writes of `command` cannot be as durable as requested.
    pub(super) fn failure(self, command: &Document) -> Option<Refusal> {
        let concern = command.get_document("writeConcern").ok()?;
        match concern.get("w")? {
            Bson::String(name) if name != "majority" => {
                Some((79, format!("No write concern mode named '{name}' found")))
            }
            w if whole(w) > i64::try_from(self.holders.max(1)).ok() => {
                Some((100, "Not enough data-bearing nodes".to_owned()))
            }
            _ => None,
        }
    }
}

/// How often each command had each concern.
#[derive(Debug, Default)]
pub(super) struct Tally(BTreeMap<(String, String), u64>);

impl Tally {
    /// Counts a command.
    pub(super) fn count(&mut self, name: &str, command: &Document) {
        let concern = command.get("writeConcern").or_else(|| command.get("readConcern"));
        let concern = concern.map_or_else(|| "none".to_owned(), ToString::to_string);
        *self.0.entry((name.to_owned(), concern)).or_default() += 1;
    }

    /// `COMMAND COUNT CONCERN` of each.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|((name, concern), count)| format!("{name} {count} {concern}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    fn code(command: Document) -> i32 {
        let name = command.keys().next().cloned().unwrap_or_default();
        check(&name, &command).map_or_else(|(code, _)| code, |()| 0)
    }

    #[test]
    fn concerns_of_another_shape_or_on_other_commands_are_refused() {
        let write = |concern: Document| code(doc! { "insert": "c", "writeConcern": concern });
        assert_eq!(write(doc! { "w": "majority", "j": true, "wtimeout": 5 }), 0);
        assert_eq!(write(doc! { "w": 51 }), 9);
        assert_eq!(write(doc! { "j": 1 }), 9);
        assert_eq!(write(doc! { "wtimeoutMS": 1 }), 9);
        let read = |concern: Document| code(doc! { "find": "c", "readConcern": concern });
        assert_eq!(read(doc! { "level": "majority" }), 0);
        assert_eq!(read(doc! { "level": "most" }), 9);
        assert_eq!(code(doc! { "find": "c", "writeConcern": { "w": 1 } }), 72);
        assert_eq!(code(doc! { "update": "c", "readConcern": { "level": "local" } }), 72);
    }

    #[test]
    fn unsatisfiable_concerns_are_refused() {
        let alone = Fulfilment { in_set: false, holders: 0 };
        let set = Fulfilment { in_set: true, holders: 2 };
        let write = |w: Bson| doc! { "insert": "c", "writeConcern": { "w": w } };
        assert!(alone.permit(&write(2.into())).is_err());
        assert!(alone.permit(&write("majority".into())).is_ok());
        assert!(set.permit(&write(3.into())).is_ok());
        assert_eq!(set.failure(&write(3.into())).map(|it| it.0), Some(100));
        assert_eq!(set.failure(&write(2.into())), None);
        assert_eq!(set.failure(&write("paris".into())).map(|it| it.0), Some(79));
    }

    #[test]
    fn each_concern_is_counted_on_its_own() {
        let mut tally = Tally::default();
        for _ in 0..2 {
            tally.count("find", &doc! { "readConcern": { "level": "majority" } });
        }
        tally.count("find", &doc! {});
        let lines: Vec<_> = tally.lines().collect();
        assert_eq!(lines, ["find 1 none", r#"find 2 { "level": "majority" }"#]);
    }
}
