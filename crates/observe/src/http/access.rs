//! What a program wants to see before it answers: credentials, which stay in files, and whom to trust.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// Longest secret: more does not fit into the header of a request that common servers take.
const LONGEST_SECRET: usize = 4096;

/// Where a program answers, and with what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Its URL, without credentials; `http` or `https`.
    pub url: String,
    /// Who asks; `None`: anybody.
    pub credentials: Option<Credentials>,
    /// File of certificates (PEM) that one of `https` is trusted by; `None`: those of this system.
    pub ca_file: Option<PathBuf>,
}

impl Address {
    /// That of a program that answers anybody.
    #[must_use]
    pub fn open(url: String) -> Address {
        Address {
            url,
            credentials: None,
            ca_file: None,
        }
    }

    /// The URL as it may be shown: its query may hold a token.
    pub(crate) fn shown(&self) -> String {
        match self.url.split_once('?') {
            Some((address, _)) => format!("{address}?***"),
            None => self.url.clone(),
        }
    }

    /// Whether connections to it are encrypted.
    fn is_encrypted(&self) -> bool {
        let scheme = self.url.get(..8);
        scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"))
    }
}

/// Who asks. The secret itself stays in its file, so that no plan and no record can hold it, and so that one that is
/// renewed while the load runs is used from then on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// A bearer token, alone in this file.
    Token(PathBuf),
    /// HTTP Basic authentication.
    Password {
        /// Name of the user, without `:`.
        user: String,
        /// The password is alone in this file.
        file: PathBuf,
    },
}

/// Why a program cannot be asked.
#[derive(Debug, Error)]
pub enum AccessError {
    /// A file that cannot be read.
    #[error("cannot read `{}`", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file that is not what it should be. What it holds is not shown, as it may be a secret.
    #[error("`{}` {problem}", path.display())]
    Unfit {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A system that trusts nobody.
    #[error(
        "this system has no trusted certificates (package `ca-certificates`), and `ca_file` is not set"
    )]
    NoRoots,
}

impl Credentials {
    /// The value of the header `Authorization`.
    ///
    /// # Errors
    /// The file cannot be read, is empty, or holds what no header may.
    pub(crate) fn header(&self) -> Result<String, AccessError> {
        match self {
            Credentials::Token(path) => Ok(format!("Bearer {}", token(path)?)),
            Credentials::Password { user, file } => {
                let pair = format!("{user}:{}", secret(file)?);
                Ok(format!("Basic {}", STANDARD.encode(pair)))
            }
        }
    }
}

fn token(path: &Path) -> Result<String, AccessError> {
    let token = secret(path)?;
    if token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(token);
    }
    Err(unfit(path, "is not a token, which is one word of ASCII"))
}

/// What is in a file, without the end of line that editors put there.
fn secret(path: &Path) -> Result<String, AccessError> {
    let text = std::fs::read_to_string(path).map_err(|source| unreadable(path, source))?;
    let secret = text.trim_end_matches(['\n', '\r']);
    match secret.len() {
        0 => Err(unfit(path, "is empty")),
        length if length > LONGEST_SECRET => {
            let problem = format!("is longer than {LONGEST_SECRET} bytes");
            Err(unfit(path, problem))
        }
        _ => Ok(secret.to_owned()),
    }
}

/// Whom to trust.
///
/// # Errors
/// A file of certificates that cannot be read or holds none; with `https` and without a file, a system without any.
pub(super) fn trust(address: &Address) -> Result<TlsConfig, AccessError> {
    let certificates = match &address.ca_file {
        Some(path) => certificates_of(path)?,
        None if address.is_encrypted() => system_certificates()?,
        None => Vec::new(),
    };
    let roots: Vec<_> = certificates
        .iter()
        .map(|der| Certificate::from_der(der).to_owned())
        .collect();
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(roots)))
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
        .build())
}

fn certificates_of(path: &Path) -> Result<Vec<CertificateDer<'static>>, AccessError> {
    let bytes = std::fs::read(path).map_err(|source| unreadable(path, source))?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&bytes)
        .collect::<Result<_, _>>()
        .map_err(|error| {
            unfit(
                path,
                format!("is not a file of certificates (PEM): {error}"),
            )
        })?;
    if certificates.is_empty() {
        return Err(unfit(path, "holds no certificate (PEM)"));
    }
    Ok(certificates)
}

fn system_certificates() -> Result<Vec<CertificateDer<'static>>, AccessError> {
    let certificates = rustls_native_certs::load_native_certs().certs;
    if certificates.is_empty() {
        return Err(AccessError::NoRoots);
    }
    Ok(certificates)
}

fn unreadable(path: &Path, source: std::io::Error) -> AccessError {
    AccessError::Unreadable {
        path: path.to_owned(),
        source,
    }
}

fn unfit(path: &Path, problem: impl Into<String>) -> AccessError {
    AccessError::Unfit {
        path: path.to_owned(),
        problem: problem.into(),
    }
}
