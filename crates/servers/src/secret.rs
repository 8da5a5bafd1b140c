//! Secrets created at run time, and their files.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use bson::{Document, doc};
use dyno_plan::uri::{Credentials, Mechanism};

/// Name of the user created for a run.
const USER: &str = "dyno";

/// 256 bits: the size of the hash of SCRAM-SHA-256.
const SECRET_BYTES: usize = 32;

/// A user with a random password, for the database `admin` and SCRAM-SHA-256.
///
/// # Errors
/// The kernel gives no random numbers.
pub fn random_credentials() -> io::Result<Credentials> {
    let mut credentials =
        Credentials::new(USER.to_owned(), random_text()?, Some("admin".to_owned()));
    credentials.mechanism = Some(Mechanism::ScramSha256);
    Ok(credentials)
}

/// The command that creates a user with all rights, for the database `admin` of a server without
/// users.
pub fn user_command(credentials: &Credentials) -> Document {
    doc! {
        "createUser": &credentials.username,
        "pwd": credentials.password(),
        "roles": [{ "role": "root", "db": "admin" }],
        "mechanisms": ["SCRAM-SHA-256"],
    }
}

/// Creates a file that only its owner can read or write, from its first byte on.
pub(crate) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?
        .write_all(text.as_bytes())
}

/// Creates a folder that only its owner can enter; its parents are created with normal permissions.
pub(crate) fn private_folder(path: &Path) -> io::Result<()> {
    if let Some(above) = path.parent() {
        fs::create_dir_all(above)?;
    }
    DirBuilder::new().mode(0o700).create(path)
}

/// 256 random bits from the kernel, in hexadecimal digits. Also valid for `--keyFile`: 6 to 1024
/// characters of base64.
///
/// # Errors
/// The kernel gives no random numbers.
pub fn random_text() -> io::Result<String> {
    let mut bytes = [0; SECRET_BYTES];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use tempfile::TempDir;

    #[test]
    fn passwords_differ_and_are_not_shown() {
        let first = random_credentials().unwrap();
        let second = random_credentials().unwrap();
        assert_ne!(first.password(), second.password());
        assert_eq!(first.password().len(), 2 * SECRET_BYTES);
        assert!(!format!("{first:?}").contains(first.password()));
    }

    #[test]
    fn key_file_is_private_and_never_overwritten() {
        let folder = TempDir::new().unwrap();
        let secrets = folder.path().join("deep/secrets");
        private_folder(&secrets).unwrap();
        let path = secrets.join("key");
        write_private(&path, &random_text().unwrap()).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&secrets)), (0o600, 0o700));
        let key = fs::read_to_string(&path).unwrap();
        assert!(key.len() == 64 && key.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert!(write_private(&path, "").is_err());
    }
}
