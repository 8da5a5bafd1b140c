//! Certificates that are made on the fly: an authority, a server certificate for this host and a
//! client certificate, as PEM files that only their owner can read.

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
    /// Certificate of the server and its key in one file, as `mongod` takes them. It is valid for a
    /// client as well: members of a deployment connect to each other with it.
    pub server: PathBuf,
    /// Certificate of the server alone, as the embedded server takes it.
    pub server_certificate: PathBuf,
    /// Key of the server alone.
    pub server_key: PathBuf,
    /// Certificate of a client and its key in one file, as for `tlsCertificateKeyFile`.
    pub client: PathBuf,
}

/// Makes an authority and certificates signed by it, and writes them to the existing `folder` with
/// mode 0600. The server certificate is valid for 127.0.0.1, ::1, `localhost` and `host_name`.
/// The key of the authority is not written: nobody can sign more.
///
/// # Errors
/// [`ServerError::Tls`] when a certificate cannot be made or written, as with a file that exists.
pub fn make_tls_files(folder: &Path, host_name: Option<&str>) -> Result<TlsFiles, ServerError> {
    let files = TlsFiles {
        ca: folder.join("ca.pem"),
        server: folder.join("server.pem"),
        server_certificate: folder.join("server-certificate.pem"),
        server_key: folder.join("server-key.pem"),
        client: folder.join("client.pem"),
    };
    let made = make(host_name).map_err(|error| failed(folder, io::Error::other(error)))?;
    let server_both = format!("{}{}", made.server.certificate, made.server.key);
    let client_both = format!("{}{}", made.client.certificate, made.client.key);
    for (path, text) in [
        (&files.ca, &made.ca),
        (&files.server, &server_both),
        (&files.server_certificate, &made.server.certificate),
        (&files.server_key, &made.server.key),
        (&files.client, &client_both),
    ] {
        write_private(path, text).map_err(|source| failed(path, source))?;
    }
    Ok(files)
}

fn failed(path: &Path, source: io::Error) -> ServerError {
    ServerError::Tls {
        path: path.to_owned(),
        source,
    }
}

struct Made {
    ca: String,
    server: Signed,
    client: Signed,
}

struct Signed {
    certificate: String,
    key: String,
}

fn make(host_name: Option<&str>) -> Result<Made, rcgen::Error> {
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.distinguished_name = named("dyno authority");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;

    let mut names: Vec<String> = LOCAL_NAMES.map(str::to_owned).to_vec();
    names.extend(host_name.map(str::to_owned));
    let both = [
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    let server = sign(&authority, names, "dyno server", &both)?;
    let client = sign(&authority, Vec::new(), "dyno client", &both[1..])?;
    Ok(Made {
        ca: authority.pem(),
        server,
        client,
    })
}

fn sign(
    authority: &CertifiedIssuer<'_, KeyPair>,
    names: Vec<String>,
    subject: &str,
    usages: &[ExtendedKeyUsagePurpose],
) -> Result<Signed, rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut parameters = CertificateParams::new(names)?;
    parameters.distinguished_name = named(subject);
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    parameters.extended_key_usages = usages.to_vec();
    let certificate = parameters.signed_by(&key, authority)?;
    Ok(Signed {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}

/// The organization must be the same for all members: `mongod` compares it.
fn named(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::OrganizationName, "mongodyno");
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
        let files = make_tls_files(folder.path(), Some("bench.example")).unwrap();
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
    fn an_existing_file_is_an_error_that_names_it() {
        let folder = TempDir::new().unwrap();
        make_tls_files(folder.path(), None).unwrap();
        let error = make_tls_files(folder.path(), None).unwrap_err();
        assert!(
            matches!(&error, ServerError::Tls { path, .. } if path.ends_with("ca.pem")),
            "{error:?}"
        );
    }
}
