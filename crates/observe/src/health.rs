//! Whether something could be read, and the reason if not: missing values are reported, never
//! guessed.

use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// Why a value is missing, from best to worst.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Health {
    /// This machine does not have it, which is not a fault: for example no CPU governor in a
    /// virtual machine.
    Unsupported { reason: String },
    /// Only a part was read, or the content was not understood.
    Degraded { reason: String },
    /// It exists but could not be read.
    Failed { reason: String },
}

/// A value, or why it is missing.
pub type Reading<T> = Result<T, Health>;

impl Health {
    /// Health of a file that could not be read: unsupported if it does not exist, otherwise failed.
    pub(crate) fn from_io(path: &Path, error: &io::Error) -> Health {
        let reason = format!("`{}`: {error}", path.display());
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                Health::Unsupported { reason }
            }
            _ => Health::Failed { reason },
        }
    }

    /// This machine does not have it.
    pub(crate) fn unsupported(reason: impl Into<String>) -> Health {
        Health::Unsupported { reason: reason.into() }
    }

    /// Health of a file whose content was not understood.
    pub(crate) fn not_understood(path: &Path, what: &str) -> Health {
        Health::Degraded { reason: format!("`{}` has no {what}", path.display()) }
    }

    /// For people.
    pub fn reason(&self) -> &str {
        match self {
            Health::Unsupported { reason }
            | Health::Degraded { reason }
            | Health::Failed { reason } => reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_file_is_unsupported_and_forbidden_one_failed() {
        let path = Path::new("/x");
        let missing = Health::from_io(path, &io::Error::from(io::ErrorKind::NotFound));
        assert!(matches!(missing, Health::Unsupported { .. }));
        let forbidden = Health::from_io(path, &io::Error::from(io::ErrorKind::PermissionDenied));
        assert!(matches!(forbidden, Health::Failed { .. }));
        assert!(forbidden.reason().starts_with("`/x`: "));
    }
}
