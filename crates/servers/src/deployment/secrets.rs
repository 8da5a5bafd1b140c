//! The secrets of one deployment and the folder that they are in.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use dyno_plan::uri::Credentials;

use super::options::{DeploymentOptions, Encryption};
use crate::ServerError;
use crate::secret::{private_folder, random_credentials, write_key_file};
use crate::tls::{TlsFiles, make_tls_files};
use crate::watchdog::Watchdog;

/// Secrets that go away with the deployment, also when we are killed.
#[derive(Debug)]
pub(super) struct Secrets {
    pub(super) tls: Option<TlsFiles>,
    pub(super) key_file: Option<PathBuf>,
    pub(super) credentials: Option<Credentials>,
    /// The folder and the watchdog over it; `None` when nothing had to be written.
    folder: Option<(PathBuf, Watchdog)>,
}

impl Secrets {
    /// Makes what the options ask for. A key file is needed where several members authenticate.
    pub(super) fn make(
        options: &DeploymentOptions,
        needs_key_file: bool,
    ) -> Result<Secrets, ServerError> {
        let mut secrets = Secrets {
            tls: None,
            key_file: None,
            credentials: None,
            folder: None,
        };
        let failed = |path: &PathBuf, source| ServerError::Tls {
            path: path.clone(),
            source,
        };
        let key_file = options.server.auth && needs_key_file;
        if options.encryption != Encryption::Off || key_file {
            let path = std::path::absolute(&options.secrets_dir)
                .map_err(|source| failed(&options.secrets_dir, source))?;
            private_folder(&path).map_err(|source| failed(&path, source))?;
            let watchdog = Watchdog::start(Some(&path), None, Duration::ZERO);
            let watchdog = watchdog.map_err(|source| {
                let _ = fs::remove_dir(&path);
                failed(&path, source)
            })?;
            secrets.folder = Some((path.clone(), watchdog));
            if options.encryption != Encryption::Off {
                secrets.tls = Some(make_tls_files(&path, options.host_name.as_deref())?);
            }
            if key_file {
                let file = path.join("members.key");
                write_key_file(&file).map_err(|source| failed(&file, source))?;
                secrets.key_file = Some(file);
            }
        }
        if options.server.auth {
            let made = random_credentials();
            secrets.credentials =
                Some(made.map_err(|source| failed(&PathBuf::from("/dev/urandom"), source))?);
        }
        Ok(secrets)
    }

    /// Removes the folder. The servers must be gone.
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

impl Drop for Secrets {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            tracing::warn!(%error, "secrets left behind");
        }
    }
}
