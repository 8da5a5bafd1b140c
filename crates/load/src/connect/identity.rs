//! The client's certificate and key, from one PEM file. The key may be encrypted as PKCS#8.

use super::error::ConnectError;
use super::tls::{CERTIFICATE_KEY_FILE, file, read_certificates};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use pkcs8::EncryptedPrivateKeyInfoRef;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::path::Path;
use thiserror::Error;

/// Chain of certificates and the key of the first one.
pub(super) type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

const ENCRYPTED_BEGIN: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";
const ENCRYPTED_END: &str = "-----END ENCRYPTED PRIVATE KEY-----";
/// Header of keys that OpenSSL encrypts without PKCS#8.
const TRADITIONAL: &str = "Proc-Type: 4,ENCRYPTED";

/// Why a file gives no certificates or no key.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum FileFault {
    #[error("the file holds no PEM block")]
    NoPem,
    #[error("the file holds no certificate")]
    NoCertificate,
    #[error("the file holds no private key")]
    NoKey,
    #[error("the private key in it is encrypted, and no password is given")]
    Encrypted,
    #[error("the password does not decrypt the private key in it")]
    WrongPassword,
    #[error("the private key in it is encrypted in OpenSSL's traditional format")]
    Traditional,
    #[error("the encryption of the private key in it is not supported: {0}")]
    Encryption(String),
    #[error("the private key in it does not belong to the certificate")]
    Mismatch,
    #[error("the private key in it is of a kind that is not supported")]
    KeyKind,
}

impl FileFault {
    pub(super) fn hint(&self) -> String {
        match self {
            FileFault::NoPem => "convert it: `openssl x509 -inform der -in FILE -out NEW` for a certificate, `openssl pkcs12 -in FILE -nodes -out NEW` for PKCS#12",
            FileFault::NoCertificate => "name a file with a block `BEGIN CERTIFICATE`",
            FileFault::NoKey => "put the client's certificate and its key into one file: `cat client.crt client.key > client.pem`",
            FileFault::Encrypted => "add `tlsCertificateKeyFilePassword=PASSWORD` to the connection string",
            FileFault::WrongPassword => "check `tlsCertificateKeyFilePassword`, whose value is percent-encoded in a connection string",
            FileFault::Traditional | FileFault::Encryption(_) => "encrypt the key as PKCS#8: `openssl pkcs8 -topk8 -v2 aes-256-cbc -in FILE -out NEW`, and put the certificate beside it",
            FileFault::Mismatch => "compare the output of `openssl x509 -in FILE -noout -pubkey` and `openssl pkey -in FILE -pubout`",
            FileFault::KeyKind => "use RSA with 2048 bits or more, ECDSA with P-256 or P-384, or Ed25519",
        }
        .to_owned()
    }
}

/// Reads the file of `tlsCertificateKeyFile`. A password for a key that is not encrypted is of no effect.
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

/// Whether a PEM text has a key that is encrypted as PKCS#8.
fn is_encrypted(text: &str) -> bool {
    text.contains(ENCRYPTED_BEGIN)
}

/// Whether a file has such a key; not if it cannot be read.
pub(crate) fn has_encrypted_key(path: &Path) -> bool {
    let bytes = std::fs::read(path).unwrap_or_default();
    is_encrypted(&String::from_utf8_lossy(&bytes))
}

fn decrypt(text: &str, password: &str) -> Result<PrivateKeyDer<'static>, FileFault> {
    let unreadable = |error: &dyn std::fmt::Display| FileFault::Encryption(error.to_string());
    let block = text
        .split_once(ENCRYPTED_BEGIN)
        .and_then(|(_, rest)| rest.split_once(ENCRYPTED_END));
    let (block, _) = block.ok_or(FileFault::NoKey)?;
    let block: String = block.split_whitespace().collect();
    let der = BASE64.decode(block).map_err(|error| unreadable(&error))?;
    let info =
        EncryptedPrivateKeyInfoRef::try_from(&der[..]).map_err(|error| unreadable(&error))?;
    let key = info.decrypt(password).map_err(|error| match error {
        pkcs8::Error::EncryptedPrivateKey(pkcs8::pkcs5::Error::DecryptFailed) => {
            FileFault::WrongPassword
        }
        // A wrong password may give bytes that are padded by chance.
        pkcs8::Error::Asn1(_) => FileFault::WrongPassword,
        error => unreadable(&error),
    })?;
    Ok(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec()).into())
}
