//! The secrets of one deployment and their folder.

use std::fmt;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

use dyno_plan::model::Encryption;
use dyno_plan::uri::Credentials;

use super::options::DeploymentOptions;
use crate::ServerError;
use crate::address::certificate_names;
use crate::secret::{private_folder, random_credentials, random_text, write_private};
use crate::tls::{Certificates, TlsFiles, make_certificates};
use crate::watchdog::Watchdog;

/// Secrets of servers on several hosts that trust each other: created once, and given to all of
/// them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenSecrets {
    /// The user to create.
    pub credentials: Option<Credentials>,
    /// Certificates; the server's certificate is for the names of this host.
    pub certificates: Option<Certificates>,
    /// The key by which members trust each other, 6 to 1024 characters of base64.
    pub key: Option<MemberKey>,
}

/// The content of a key file. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct MemberKey(String);

impl MemberKey {
    /// Creates a key from a known text.
    pub fn new(text: impl Into<String>) -> Self {
        MemberKey(text.into())
    }

    /// Creates a random key.
    ///
    /// # Errors
    /// The kernel gives no random numbers.
    pub fn random() -> io::Result<Self> {
        random_text().map(MemberKey)
    }

    /// The text, which is a secret.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for MemberKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

/// Secrets that are removed with the deployment, even if this process is killed.
#[derive(Debug)]
pub(super) struct Secrets {
    pub(super) tls: Option<TlsFiles>,
    pub(super) key_file: Option<PathBuf>,
    pub(super) credentials: Option<Credentials>,
    /// The folder and its watchdog; `None` if no secret needs a file.
    folder: Option<(PathBuf, Watchdog)>,
}

impl Secrets {
    /// Creates the secrets that the options require. A key file is needed if several members
    /// authenticate.
    pub(super) fn make(
        options: &DeploymentOptions,
        needs_key_file: bool,
    ) -> Result<Secrets, ServerError> {
        let mut secrets = Secrets { tls: None, key_file: None, credentials: None, folder: None };
        let failed = |path: &PathBuf, source| ServerError::Tls { path: path.clone(), source };
        let given = options.secrets.as_ref();
        let plan = &options.server.plan;
        let key_file = plan.auth && needs_key_file;
        if plan.encryption != Encryption::Off || key_file {
            let path = std::path::absolute(&options.secrets_dir)
                .map_err(|source| failed(&options.secrets_dir, source))?;
            private_folder(&path).map_err(|source| failed(&path, source))?;
            let watchdog = Watchdog::of_folder(&path);
            let watchdog = watchdog.map_err(|source| {
                let _ = fs::remove_dir(&path);
                failed(&path, source)
            })?;
            secrets.folder = Some((path.clone(), watchdog));
            if plan.encryption != Encryption::Off {
                secrets.tls = Some(certificates(options)?.write(&path)?);
            }
            if key_file {
                let file = path.join("members.key");
                let key = given.and_then(|given| given.key.clone());
                key.map_or_else(MemberKey::random, Ok)
                    .and_then(|key| write_private(&file, key.reveal()))
                    .map_err(|source| failed(&file, source))?;
                secrets.key_file = Some(file);
            }
        }
        if plan.auth {
            let made = given.and_then(|given| given.credentials.clone());
            let made = made.map_or_else(random_credentials, Ok);
            secrets.credentials =
                Some(made.map_err(|source| failed(&PathBuf::from("/dev/urandom"), source))?);
        }
        Ok(secrets)
    }

    /// Removes the folder. The servers must have ended.
    pub(super) fn remove(&mut self) -> Result<(), ServerError> {
        let Some((path, _watchdog)) = self.folder.take() else {
            return Ok(());
        };
        match fs::remove_dir_all(&path) {
            Err(source) if source.kind() != ErrorKind::NotFound => {
                Err(ServerError::Remove { path, source })
            }
            _ => Ok(()),
        }
    }
}

/// The given certificates, or new ones for the names of this host.
fn certificates(options: &DeploymentOptions) -> Result<Certificates, ServerError> {
    let given = options.secrets.as_ref();
    if let Some(certificates) = given.and_then(|given| given.certificates.clone()) {
        return Ok(certificates);
    }
    let names = certificate_names(&options.server, options.host_name.as_deref());
    make_certificates(&names.map_err(|source| ServerError::Certificate { source })?)
}

impl Drop for Secrets {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            tracing::warn!(%error, "secrets left behind");
        }
    }
}
