//! Certificates created at run time: an authority, server certificates for the names of their hosts
//! and a client certificate, as PEM files that only their owner can read.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
};

use crate::ServerError;
use crate::secret::write_private;

/// Names that every server certificate is valid for.
const LOCAL_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Paths of the PEM files of one deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificate of the authority that signed the others.
    pub ca: PathBuf,
    /// Certificate of the server and its key in one file, as `mongod` expects them. Also valid for
    /// a client, because members of a deployment connect to each other with it.
    pub server: PathBuf,
    /// Certificate of the server alone, as the embedded server expects it.
    pub server_certificate: PathBuf,
    /// Key of the server alone.
    pub server_key: PathBuf,
    /// Certificate of a client and its key in one file, as for `tlsCertificateKeyFile`.
    pub client: PathBuf,
}

/// A certificate and its key, both as PEM. `Debug` shows neither.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    pub certificate: String,
    /// A secret.
    pub key: String,
}

impl Identity {
    /// Certificate and key in one text, as `mongod` and drivers expect them. The text is a secret.
    pub fn both(&self) -> String {
        format!("{}{}", self.certificate, self.key)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Identity(***)")
    }
}

/// The certificates of a server and of its clients, and the authority that signed both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificates {
    /// Certificate of the authority as PEM.
    pub ca: String,
    pub server: Identity,
    pub client: Identity,
}

impl Certificates {
    /// Writes the certificates and keys to the existing `folder` with mode 0600.
    ///
    /// # Errors
    /// [`ServerError::Tls`] if one cannot be written, for example because it exists.
    pub(crate) fn write(&self, folder: &Path) -> Result<TlsFiles, ServerError> {
        let files = TlsFiles {
            ca: folder.join("ca.pem"),
            server: folder.join("server.pem"),
            server_certificate: folder.join("server-certificate.pem"),
            server_key: folder.join("server-key.pem"),
            client: folder.join("client.pem"),
        };
        for (path, text) in [
            (&files.ca, &self.ca),
            (&files.server, &self.server.both()),
            (&files.server_certificate, &self.server.certificate),
            (&files.server_key, &self.server.key),
            (&files.client, &self.client.both()),
        ] {
            write_private(path, text).map_err(|source| failed(path, source))?;
        }
        Ok(files)
    }
}

/// Signs the certificates of one deployment. Its key exists only in memory, so no one else can sign
/// more.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl fmt::Debug for Authority {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Authority(***)")
    }
}

impl Authority {
    /// Creates an authority.
    ///
    /// # Errors
    /// [`ServerError::Certificate`] if the system does not provide enough random numbers for a key.
    pub fn new() -> Result<Authority, ServerError> {
        let made = CertificateParams::new(Vec::new()).and_then(|mut parameters| {
            parameters.distinguished_name = named("dyno authority", ORGANIZATION);
            parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
            CertifiedIssuer::self_signed(parameters, KeyPair::generate()?)
        });
        made.map(Authority).map_err(not_made)
    }

    /// The authority's certificate as PEM, which clients need to trust servers.
    pub fn certificate(&self) -> String {
        self.0.pem()
    }

    /// Creates an identity of a server, which is also valid for a client, because members of a
    /// deployment connect to each other with it. The certificate is valid for `names` (names and
    /// addresses), 127.0.0.1, ::1 and `localhost`.
    ///
    /// # Errors
    /// [`ServerError::Certificate`] if a certificate cannot contain one of the names.
    pub fn sign_server(&self, names: &[String]) -> Result<Identity, ServerError> {
        let mut all: Vec<String> = LOCAL_NAMES.map(str::to_owned).to_vec();
        for name in names {
            if !all.contains(name) {
                all.push(name.clone());
            }
        }
        let usages = [ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(all, "dyno server", ORGANIZATION, &usages)
    }

    /// Creates an identity of clients.
    ///
    /// # Errors
    /// [`ServerError::Certificate`], as for [`new`](Authority::new).
    pub fn sign_client(&self) -> Result<Identity, ServerError> {
        let usages = [ExtendedKeyUsagePurpose::ClientAuth];
        // Of another organization, so that `mongod` does not take clients for members.
        self.sign(Vec::new(), "dyno client", "dyno clients", &usages)
    }

    fn sign(
        &self,
        names: Vec<String>,
        subject: &str,
        organization: &str,
        usages: &[ExtendedKeyUsagePurpose],
    ) -> Result<Identity, ServerError> {
        let signed = KeyPair::generate().and_then(|key| {
            let mut parameters = CertificateParams::new(names)?;
            parameters.distinguished_name = named(subject, organization);
            parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            parameters.extended_key_usages = usages.to_vec();
            let certificate = parameters.signed_by(&key, &self.0)?;
            Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
        });
        signed.map_err(not_made)
    }
}

/// Creates an authority and certificates signed by it, for a server with these `names`.
pub(crate) fn make_certificates(names: &[String]) -> Result<Certificates, ServerError> {
    let authority = Authority::new()?;
    Ok(Certificates {
        ca: authority.certificate(),
        server: authority.sign_server(names)?,
        client: authority.sign_client()?,
    })
}

fn not_made(source: rcgen::Error) -> ServerError {
    ServerError::Certificate { source: io::Error::other(source) }
}

fn failed(path: &Path, source: io::Error) -> ServerError {
    ServerError::Tls { path: path.to_owned(), source }
}

/// The same for all members, because `mongod` compares it.
const ORGANIZATION: &str = "mongodyno";

fn named(common_name: &str, organization: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::OrganizationName, organization);
    name.push(DnType::CommonName, common_name);
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use tempfile::TempDir;

    #[test]
    fn all_files_are_private_and_complete() {
        let folder = TempDir::new().unwrap();
        let files = make_certificates(&["bench.example".to_owned()])
            .and_then(|made| made.write(folder.path()))
            .unwrap();
        for (path, certificates, keys) in [
            (&files.ca, 1, 0),
            (&files.server, 1, 1),
            (&files.server_certificate, 1, 0),
            (&files.server_key, 0, 1),
            (&files.client, 1, 1),
        ] {
            let text = fs::read_to_string(path).unwrap();
            assert_eq!(text.matches("BEGIN CERTIFICATE").count(), certificates);
            assert_eq!(text.matches("BEGIN PRIVATE KEY").count(), keys);
            let mode = fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "{}", path.display());
        }
    }

    #[test]
    fn key_is_never_shown() {
        let made = make_certificates(&[]).unwrap();
        let shown = format!("{made:?} {:?}", Authority::new().unwrap());
        assert!(!shown.contains("PRIVATE KEY"), "{shown}");
    }

    #[test]
    fn existing_file_is_an_error_that_names_it() {
        let folder = TempDir::new().unwrap();
        let made = make_certificates(&[]).unwrap();
        made.write(folder.path()).unwrap();
        let error = made.write(folder.path()).unwrap_err();
        assert!(
            matches!(&error, ServerError::Tls { path, .. } if path.ends_with("ca.pem")),
            "{error:?}"
        );
    }
}
