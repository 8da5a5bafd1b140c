//! Common properties of the commands of a [`CommandSet`](super::CommandSet): names, concerns, and the elements that
//! these add to a command.

use crate::bson::ElementWriter;
use thiserror::Error;

/// Common properties of the commands of a [`CommandSet`](super::CommandSet).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandOptions {
    /// Sent as `$db`.
    pub database: String,
    pub collection: String,
    /// Sent with every write if set.
    pub write_concern: Option<WriteConcern>,
    /// Sent with every find if set (`local`, `majority`, …).
    pub read_concern_level: Option<String>,
    /// Mode of the read preference, sent with every find and `getMore` if set (`primaryPreferred`, …).
    pub read_preference: Option<String>,
    /// Field names, to which operations refer by index.
    pub field_names: Vec<String>,
    /// Scanned indexes with their fields in order; the first field is one of `field_names`.
    pub indexes: Vec<Vec<String>>,
    /// Whether writes have room for a session and a number, so that a server applies a write once even if it is sent
    /// twice. See [`CommandSet::set_transaction`](super::CommandSet::set_transaction).
    pub retryable_writes: bool,
}

/// When a write is acknowledged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteConcern {
    /// Members that must have the write; absent for the server's default.
    pub w: Option<Acknowledgement>,
    /// Whether the write must be in the journal; absent for the server's default.
    pub journal: Option<bool>,
    /// Maximum wait for the other members in milliseconds; absent for no limit.
    pub wtimeout_ms: Option<u64>,
}

/// Members that must have a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acknowledgement {
    /// At least 1.
    Number(u32),
    /// More than half of the voting members.
    Majority,
    /// The members of a named rule of the replica set.
    Tag(String),
}

/// Why the options are invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CommandError {
    /// A name contains a zero byte, or is empty although it must not be.
    #[error("{what} `{}` is empty or has a zero byte", name.escape_debug())]
    Name {
        /// Purpose of the name.
        what: &'static str,
        name: String,
    },
    /// An index does not start with a field of the documents.
    #[error("the index `{0}` cannot be scanned: it does not begin with a field of the documents")]
    Index(String),
    /// With `w: 0`, the server does not answer, so nothing can be measured.
    #[error("write concern `w: 0` is not supported: its writes have no reply to measure")]
    Unacknowledged,
}

impl CommandOptions {
    /// Rejects options that cannot be encoded or measured.
    pub(super) fn check(&self) -> Result<(), CommandError> {
        let names = [("database", &self.database), ("collection", &self.collection)];
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
