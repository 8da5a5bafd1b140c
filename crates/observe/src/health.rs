//! Whether something could be read, and the reason if not: missing values are reported, never
//! guessed.

use dyno_record::model::{Caveat, CaveatKind};
use dyno_record::statement;
use dyno_record::statement::Statement;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// State of one probe, from best to worst.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Health {
    Healthy,
    /// This machine does not have it, which is not a fault: for example no CPU governor in a
    /// virtual machine.
    Unsupported {
        reason: String,
    },
    /// Only a part was read, or the content was not understood.
    Degraded {
        reason: String,
    },
    /// It exists but could not be read.
    Failed {
        reason: String,
    },
}

/// Health of a probe with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeHealth {
    /// Name of the field in the run document, for example `cpu_governor`.
    pub name: &'static str,
    pub health: Health,
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

    /// Health of a file whose content was not understood.
    pub(crate) fn not_understood(path: &Path, what: &str) -> Health {
        Health::Degraded { reason: format!("`{}` has no {what}", path.display()) }
    }

    /// The reason, unless it is healthy.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Health::Healthy => None,
            Health::Unsupported { reason }
            | Health::Degraded { reason }
            | Health::Failed { reason } => Some(reason),
        }
    }
}

/// The worst state of all probes; healthy without probes.
pub fn roll_up(probes: &[ProbeHealth]) -> Health {
    let healths = probes.iter().map(|probe| &probe.health);
    healths.max().cloned().unwrap_or(Health::Healthy)
}

/// The caveat about probes that failed or were not understood. A feature that the machine does not
/// have is not a reason to doubt a result.
pub fn caveat(probes: &[ProbeHealth]) -> Option<Caveat> {
    let is_doubtful = |probe: &&ProbeHealth| {
        matches!(probe.health, Health::Degraded { .. } | Health::Failed { .. })
    };
    let probes: Vec<Statement> = probes
        .iter()
        .filter(is_doubtful)
        .filter_map(|probe| {
            let reason = probe.health.reason()?;
            Some(statement!("probe", probe = probe.name, reason = reason))
        })
        .collect();
    (!probes.is_empty()).then(|| {
        let statement = statement!("probes-not-read", probes = probes);
        Caveat::of_run(CaveatKind::ProbeUnavailable, statement)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(name: &'static str, health: Health) -> ProbeHealth {
        ProbeHealth { name, health }
    }

    fn unsupported() -> Health {
        Health::Unsupported { reason: "none".into() }
    }

    fn failed() -> Health {
        Health::Failed { reason: "permission denied".into() }
    }

    #[test]
    fn worst_probe_decides() {
        assert_eq!(roll_up(&[]), Health::Healthy);
        let probes = [probe("a", Health::Healthy), probe("b", failed()), probe("c", unsupported())];
        assert_eq!(roll_up(&probes), failed());
        assert_eq!(roll_up(&probes[..1]), Health::Healthy);
        assert_eq!(
            roll_up(&[probe("a", Health::Healthy), probe("c", unsupported())]),
            unsupported()
        );
    }

    #[test]
    fn only_failed_probes_become_a_caveat() {
        assert_eq!(caveat(&[probe("a", Health::Healthy), probe("c", unsupported())]), None);
        let caveat = caveat(&[probe("cpu_governor", failed()), probe("c", unsupported())]).unwrap();
        assert_eq!(caveat.kind, CaveatKind::ProbeUnavailable);
        assert_eq!(
            caveat.statement.to_string(),
            "probes-not-read (probes: [probe (probe: cpu_governor, reason: permission denied)])"
        );
    }

    #[test]
    fn missing_file_is_unsupported_and_forbidden_one_failed() {
        let path = Path::new("/x");
        let missing = Health::from_io(path, &io::Error::from(io::ErrorKind::NotFound));
        assert!(matches!(missing, Health::Unsupported { .. }));
        let forbidden = Health::from_io(path, &io::Error::from(io::ErrorKind::PermissionDenied));
        assert!(matches!(forbidden, Health::Failed { .. }));
        assert!(forbidden.reason().unwrap().starts_with("`/x`: "));
    }
}
