//! Faults of files with certificates or keys.

use thiserror::Error;

/// Why a file has no usable certificates or key.
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
    #[error("the certificate in it is malformed, or of version 1")]
    CertificateKind,
}

impl FileFault {
    pub(super) fn hint(&self) -> String {
        match self {
            FileFault::NoPem => "convert it: `openssl x509 -inform der -in FILE -out NEW` for a certificate, `openssl pkcs12 -in FILE -nodes -out NEW` for PKCS#12",
            FileFault::NoCertificate => "name a file with a block `BEGIN CERTIFICATE`",
            FileFault::NoKey => "put the client's certificate and its key into one file: `cat client.crt client.key > client.pem`",
            FileFault::Encrypted => "add `tlsCertificateKeyFilePassword=PASSWORD` to the connection string",
            FileFault::WrongPassword => "check `tlsCertificateKeyFilePassword`, whose value is percent-encoded in a connection string",
            FileFault::Traditional | FileFault::Encryption(_) => "encrypt the key as PKCS#8: `openssl pkcs8 -topk8 -v2 aes-256-cbc -in FILE -out NEW`, and put the certificate into the same file",
            FileFault::Mismatch => "compare the output of `openssl x509 -in FILE -noout -pubkey` and `openssl pkey -in FILE -pubout`",
            FileFault::CertificateKind => "make a certificate of version 3: `openssl x509 -req` does so with `-extfile FILE`, a file with `basicConstraints=CA:FALSE`",
            FileFault::KeyKind => "use RSA with 2048 bits or more, ECDSA with P-256 or P-384, or Ed25519",
        }
        .to_owned()
    }
}
