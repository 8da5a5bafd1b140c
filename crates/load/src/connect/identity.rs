//! Certificates and keys from PEM files. The client's key may be encrypted as PKCS#8.

use super::error::ConnectError;
use super::file_fault::FileFault;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use pkcs8::EncryptedPrivateKeyInfoRef;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::path::Path;

/// Certificate chain, and the key of its first certificate.
pub(super) type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

pub(super) const CERTIFICATE_KEY_FILE: &str = "tlsCertificateKeyFile";
const ENCRYPTED_BEGIN: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";
const ENCRYPTED_END: &str = "-----END ENCRYPTED PRIVATE KEY-----";
/// Header of keys that OpenSSL encrypts without PKCS#8.
const TRADITIONAL: &str = "Proc-Type: 4,ENCRYPTED";

/// Reads the file of `tlsCertificateKeyFile`. A password for an unencrypted key is ignored.
pub(super) fn read(path: &Path, password: Option<&str>) -> Result<Identity, ConnectError> {
    let failed = |fault: FileFault| file(CERTIFICATE_KEY_FILE, path, fault);
    let bytes = std::fs::read(path).map_err(|error| file(CERTIFICATE_KEY_FILE, path, error))?;
    let text = String::from_utf8_lossy(&bytes);
    if !text.contains("-----BEGIN ") {
        return Err(failed(FileFault::NoPem));
    }
    let key = if is_encrypted(&text) {
        decrypt(&text, password.ok_or_else(|| failed(FileFault::Encrypted))?).map_err(failed)?
    } else if text.contains(TRADITIONAL) {
        return Err(failed(FileFault::Traditional));
    } else {
        PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| match error {
            pem::Error::NoItemsFound => failed(FileFault::NoKey),
            error => file(CERTIFICATE_KEY_FILE, path, error),
        })?
    };
    Ok((read_certificates(CERTIFICATE_KEY_FILE, path)?, key))
}

/// Whether a PEM text contains a PKCS#8-encrypted key.
fn is_encrypted(text: &str) -> bool {
    text.contains(ENCRYPTED_BEGIN)
}

/// Whether a file contains such a key; false if it cannot be read.
pub(crate) fn has_encrypted_key(path: &Path) -> bool {
    let bytes = std::fs::read(path).unwrap_or_default();
    is_encrypted(&String::from_utf8_lossy(&bytes))
}

fn decrypt(text: &str, password: &str) -> Result<PrivateKeyDer<'static>, FileFault> {
    let unreadable = |error: &dyn std::fmt::Display| FileFault::Encryption(error.to_string());
    let block =
        text.split_once(ENCRYPTED_BEGIN).and_then(|(_, rest)| rest.split_once(ENCRYPTED_END));
    let (block, _) = block.ok_or(FileFault::NoKey)?;
    let block: String = block.split_whitespace().collect();
    let der = BASE64.decode(block).map_err(|error| unreadable(&error))?;
    let info =
        EncryptedPrivateKeyInfoRef::try_from(&der[..]).map_err(|error| unreadable(&error))?;
    let key = info.decrypt(password).map_err(|error| match error {
        pkcs8::Error::EncryptedPrivateKey(pkcs8::pkcs5::Error::DecryptFailed) => {
            FileFault::WrongPassword
        }
        // A wrong password may yield bytes with valid padding by chance.
        pkcs8::Error::Asn1(_) => FileFault::WrongPassword,
        error => unreadable(&error),
    })?;
    Ok(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec()).into())
}

/// The certificates in a PEM file, at least one.
pub(super) fn read_certificates(
    option: &'static str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, ConnectError> {
    let bytes = std::fs::read(path).map_err(|error| file(option, path, error))?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&bytes)
        .collect::<Result<_, _>>()
        .map_err(|error| file(option, path, error))?;
    if !certificates.is_empty() {
        return Ok(certificates);
    }
    let is_pem = String::from_utf8_lossy(&bytes).contains("-----BEGIN ");
    let fault = if is_pem { FileFault::NoCertificate } else { FileFault::NoPem };
    Err(file(option, path, fault))
}

/// An unusable file that an option of the connection string names.
pub(super) fn file(
    option: &'static str,
    path: &Path,
    source: impl Into<super::error::Source>,
) -> ConnectError {
    ConnectError::TlsFile { path: path.to_owned(), option, source: source.into() }
}
