//! Access to a program over HTTP: credentials, which stay in files, and trusted certificates.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// Longest secret: common servers do not accept more in a request header.
const LONGEST_SECRET: usize = 4096;

/// The address of a program with its credentials and trusted certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Its URL, without credentials; `http` or `https`.
    pub url: String,
    /// `None` if the program requires no credentials.
    pub credentials: Option<Credentials>,
    /// File of trusted certificates (PEM) for `https`; `None` uses the system's certificates.
    pub ca_file: Option<PathBuf>,
}

impl Address {
    /// An address that requires no credentials.
    #[must_use]
    pub fn open(url: String) -> Address {
        Address { url, credentials: None, ca_file: None }
    }

    /// The URL without its query, which may hold a token.
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

/// Credentials of a program. The secret itself stays in its file, so no plan or record contains it,
/// and a secret that is renewed during the run takes effect at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// A bearer token, alone in this file.
    Token(PathBuf),
    /// HTTP Basic authentication.
    Password {
        /// Without `:`.
        user: String,
        /// A file that contains only the password.
        file: PathBuf,
    },
}

/// Why a program cannot be asked.
#[derive(Debug, Error)]
pub enum AccessError {
    /// A file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    /// A file has unusable content. The content is not shown because it may be a secret.
    #[error("`{}` {problem}", path.display())]
    Unfit { path: PathBuf, problem: String },
    /// The system has no trusted certificates.
    #[error(
        "this system has no trusted certificates (package `ca-certificates`), and `ca_file` is not set"
    )]
    NoRoots,
}

impl Credentials {
    /// The value of the header `Authorization`.
    ///
    /// # Errors
    /// The file cannot be read, is empty, or contains characters that a header may not.
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
    Err(unfit(path, "does not contain a token, which is one word of ASCII"))
}

/// Content of a file without the line end that editors add.
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

/// TLS configuration with the trusted certificates.
///
/// # Errors
/// The certificate file cannot be read or contains no certificate; or, for `https` without such a
/// file, the system has none.
pub(super) fn trust(address: &Address) -> Result<TlsConfig, AccessError> {
    let certificates = match &address.ca_file {
        Some(path) => certificates_of(path)?,
        None if address.is_encrypted() => system_certificates()?,
        None => Vec::new(),
    };
    let roots: Vec<_> =
        certificates.iter().map(|der| Certificate::from_der(der).to_owned()).collect();
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(roots)))
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
        .build())
}

fn certificates_of(path: &Path) -> Result<Vec<CertificateDer<'static>>, AccessError> {
    let bytes = std::fs::read(path).map_err(|source| unreadable(path, source))?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&bytes)
        .collect::<Result<_, _>>()
        .map_err(|error| unfit(path, format!("is not a file of certificates (PEM): {error}")))?;
    if certificates.is_empty() {
        return Err(unfit(path, "contains no certificate (PEM)"));
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
    AccessError::Unreadable { path: path.to_owned(), source }
}

fn unfit(path: &Path, problem: impl Into<String>) -> AccessError {
    AccessError::Unfit { path: path.to_owned(), problem: problem.into() }
}
