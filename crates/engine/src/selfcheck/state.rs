//! Keeps the result of a selfcheck for later runs on the same machine.

use super::{Machine, SCHEMA_VERSION, Selfcheck};
use crate::error::{Error, Kind, OrFault};
use crate::files::write_file;
use crate::observer::SharedObserver;
use std::path::{Path, PathBuf};

const FILE: &str = "selfcheck.json";

/// Writes a result.
///
/// # Errors
/// [`Kind::Environment`] if others used the machine during the measurement, or the file cannot be
/// written.
pub fn write(folder: &Path, selfcheck: &Selfcheck) -> Result<PathBuf, Error> {
    if let Some(busy) = selfcheck.caveat() {
        let text = format!("the result is not kept: {}", busy.found);
        return Err(Error::new(Kind::Environment, text).with_hint(
            "stop the other programs and repeat, or pass `--no-save` to only print the result",
        ));
    }
    std::fs::create_dir_all(folder)
        .or_fault(Kind::Environment, || format!("cannot make the folder `{}`", folder.display()))
        .with_hint("choose another one with `--state-dir`, or pass `--no-save`")?;
    let path = folder.join(FILE);
    write_file(&path, &selfcheck.to_json())?;
    Ok(path)
}

/// The kept result from this machine in the form for a run, if there is one.
pub fn read(folder: &Path, observer: &dyn SharedObserver) -> Option<serde_json::Value> {
    let path = folder.join(FILE);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => {
            observer.warning(&format!("cannot read `{}`: {error}", path.display()));
            return None;
        }
    };
    match usable(&text, &Machine::this()) {
        Ok(selfcheck) => serde_json::to_value(selfcheck).ok(),
        Err(reason) => {
            let place = path.display();
            observer.warning(&format!(
                "cannot use the selfcheck in `{place}`: {reason}; repeat it with `dyno selfcheck`"
            ));
            None
        }
    }
}

fn usable(text: &str, machine: &Machine) -> Result<Selfcheck, String> {
    let selfcheck: Selfcheck =
        serde_json::from_str(text).map_err(|error| format!("it cannot be parsed ({error})"))?;
    if selfcheck.schema_version != SCHEMA_VERSION {
        return Err(format!(
            "it has version {}, but version {SCHEMA_VERSION} is needed",
            selfcheck.schema_version
        ));
    }
    if selfcheck.machine != *machine {
        return Err("it belongs to another machine or kernel".into());
    }
    Ok(selfcheck)
}

#[cfg(test)]
mod tests {
    use super::super::{ClosedLoop, ConstantRate, StartDelay};
    use super::*;
    use dyno_record::verdict::{CheckName, Level, Verdict};

    fn selfcheck() -> Selfcheck {
        Selfcheck {
            schema_version: SCHEMA_VERSION,
            dyno_version: "0.1.0".into(),
            measured_at: "2026-08-22T10:15:00Z".into(),
            machine: Machine { hostname: Some("bench".into()), ..Machine::default() },
            max_rate_per_core_per_s: 100_000.0,
            closed_loop: ClosedLoop {
                connections: 32,
                duration_s: 3.0,
                rate_per_s: 90_000.0,
                cpu_us_per_operation: 10.0,
                cpu_user_us_per_operation: 1.0,
                cpu_system_us_per_operation: 9.0,
                core_busy_ratio: 0.9,
                max_rss_bytes: 1 << 24,
            },
            constant_rates: vec![ConstantRate {
                offered_rate_per_s: 1_000.0,
                achieved_rate_per_s: 1_000.0,
                achieved_ratio: 1.0,
                dropped_arrivals: 0,
                start_delay_us: StartDelay { p50: 1.0, p99: 9.0, max: 50.0 },
            }],
            other_load: None,
        }
    }

    #[test]
    fn result_of_a_busy_machine_is_not_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let busy = |level| Selfcheck {
            other_load: Some(Verdict {
                check: CheckName::OtherLoad,
                level,
                found: "others used 1.00 of 2 CPUs".into(),
                advised: "an idle machine".into(),
                why: String::new(),
                change: None,
            }),
            ..selfcheck()
        };
        let refused = write(folder.path(), &busy(Level::Fail)).expect_err("the machine is busy");
        assert_eq!(refused.kind, Kind::Environment);
        assert!(refused.to_string().contains("others used 1.00 of 2 CPUs"), "{refused}");
        assert!(!folder.path().join(FILE).exists());
        write(folder.path(), &busy(Level::Warn)).expect("it can be written");
    }

    #[test]
    fn kept_result_is_used_only_on_the_same_machine() {
        let folder = tempfile::tempdir().expect("a folder");
        let path =
            write(&folder.path().join("new/state"), &selfcheck()).expect("it can be written");
        let text = std::fs::read_to_string(path).expect("it is there");
        assert_eq!(usable(&text, &selfcheck().machine), Ok(selfcheck()));
        let other = Machine { hostname: Some("laptop".into()), ..Machine::default() };
        assert!(usable(&text, &other).expect_err("another machine").contains("another machine"));
    }

    #[test]
    fn a_file_of_another_version_or_kind_is_not_used() {
        let mut old = selfcheck();
        old.schema_version = 0;
        let text = serde_json::to_string(&old).expect("it is plain data");
        assert!(usable(&text, &old.machine).expect_err("too old").contains("version 0"));
        let parsed = serde_json::from_str::<Selfcheck>("{").expect_err("no document");
        let refused = usable("{", &old.machine).expect_err("no document");
        assert!(refused.contains(&parsed.to_string()), "{refused}");
    }

    #[test]
    fn result_has_the_key_that_the_analysis_reads() {
        let value = serde_json::to_value(selfcheck()).expect("it is plain data");
        assert_eq!(value["max_rate_per_core_per_s"], 100_000.0);
    }
}
