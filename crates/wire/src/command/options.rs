//! What the commands of a [`CommandSet`](super::CommandSet) have in common: names, concerns, and the
//! elements that these add to a command.

use crate::bson::ElementWriter;
use thiserror::Error;

/// What all commands of a [`CommandSet`](super::CommandSet) have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandOptions {
    /// Database, sent as `$db`.
    pub database: String,
    /// Collection.
    pub collection: String,
    /// Sent with every write when given.
    pub write_concern: Option<WriteConcern>,
    /// Sent with every find when given (`local`, `majority`, …).
    pub read_concern_level: Option<String>,
    /// Mode of the read preference, sent with every find and `getMore` when given (`primaryPreferred`, …).
    pub read_preference: Option<String>,
    /// Names of the fields that operations refer to by index.
    pub field_names: Vec<String>,
    /// Indexes that are scanned, each as its fields in their order; the first is one of `field_names`.
    pub indexes: Vec<Vec<String>>,
    /// Writes have room for a session and a number, so that a server applies a write once however often it is sent. See
    /// [`CommandSet::set_transaction`](super::CommandSet::set_transaction).
    pub retryable_writes: bool,
}

/// When a write counts as done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteConcern {
    /// Members that must have the write; the server's default when absent.
    pub w: Option<Acknowledgement>,
    /// Whether it must be in the journal; the server's default when absent.
    pub journal: Option<bool>,
    /// Longest wait for the other members in milliseconds; no limit when absent.
    pub wtimeout_ms: Option<u64>,
}

/// How many members must have a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acknowledgement {
    /// This number of members, at least 1.
    Number(u32),
    /// More than half of the voting members.
    Majority,
    /// The members of a named rule of the replica set.
    Tag(String),
}

/// Why no commands can be made from the options.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CommandError {
    /// A name holds a zero byte, or is empty where it must not be.
    #[error("{what} `{}` is empty or has a zero byte", name.escape_debug())]
    Name {
        /// What the name is for.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// An index does not begin with a field whose values are known.
    #[error("the index `{0}` cannot be scanned: it does not begin with a field of the documents")]
    Index(String),
    /// With `w: 0` the server does not answer, so nothing can be measured.
    #[error("write concern `w: 0` is not supported: its writes have no reply to measure")]
    Unacknowledged,
}

impl CommandOptions {
    /// Refuses what no command can hold or what leaves nothing to measure.
    pub(super) fn check(&self) -> Result<(), CommandError> {
        let names = [
            ("database", &self.database),
            ("collection", &self.collection),
        ];
        let fields = self.field_names.iter().map(|name| ("field", name));
        let indexed = self.indexes.iter().flatten().map(|name| ("field", name));
        for (what, name) in names.into_iter().chain(fields).chain(indexed) {
            if name.is_empty() || name.contains('\0') {
                let name = name.clone();
                return Err(CommandError::Name { what, name });
            }
        }
        let concern = self.write_concern.as_ref();
        if concern.and_then(|concern| concern.w.as_ref()) == Some(&Acknowledgement::Number(0)) {
            return Err(CommandError::Unacknowledged);
        }
        Ok(())
    }
}

pub(super) fn write_write_concern(writer: &mut ElementWriter<'_>, concern: &WriteConcern) {
    if *concern == WriteConcern::default() {
        return;
    }
    writer.document("writeConcern", |writer| {
        match &concern.w {
            Some(Acknowledgement::Number(number)) => writer.i64("w", i64::from(*number)),
            Some(Acknowledgement::Majority) => writer.string("w", "majority"),
            Some(Acknowledgement::Tag(name)) => writer.string("w", name),
            None => writer,
        };
        if let Some(journal) = concern.journal {
            writer.boolean("j", journal);
        }
        if let Some(wtimeout_ms) = concern.wtimeout_ms {
            writer.i64("wtimeout", i64::try_from(wtimeout_ms).unwrap_or(i64::MAX));
        }
    });
}

/// Read concern and read preference of a find.
pub(super) fn write_read_options(writer: &mut ElementWriter<'_>, options: &CommandOptions) {
    write_read_preference(writer, options);
    if let Some(level) = &options.read_concern_level {
        writer.document("readConcern", |writer| {
            writer.string("level", level);
        });
    }
}

pub(super) fn write_read_preference(writer: &mut ElementWriter<'_>, options: &CommandOptions) {
    if let Some(mode) = &options.read_preference {
        writer.document("$readPreference", |writer| {
            writer.string("mode", mode);
        });
    }
}
