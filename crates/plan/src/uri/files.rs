//! Adapts a connection string to another host: its files belong to one machine, and its secrets are
//! sent separately.

use super::credentials::{SESSION_TOKEN, TOKEN_FILE};
use super::{Credentials, Mechanism, Target, encode, options, with_option};
use std::path::{Path, PathBuf};

/// Options whose values are files of the connecting machine.
const FILES: [&str; 2] = ["tlsCAFile", "tlsCertificateKeyFile"];

impl Target {
    /// The same target with other files or none: trusted certificates (`tlsCAFile`), and the
    /// client's certificate with its key (`tlsCertificateKeyFile`). Whether connections are
    /// encrypted stays the same.
    #[must_use]
    pub fn with_files(mut self, ca: Option<&Path>, client: Option<&Path>) -> Self {
        self.options.tls_ca_file = ca.map(PathBuf::from);
        self.options.tls_certificate_key_file = client.map(PathBuf::from);
        self.parameters.retain(|(name, _)| !FILES.contains(name));
        if self.options.tls && !self.parameters.iter().any(|(name, _)| *name == "tls") {
            // A single file option implied encryption.
            self.parameters.push(("tls", "true".to_owned()));
        }
        for (name, file) in FILES.into_iter().zip([ca, client]) {
            let file = file.map(|file| (name, file.display().to_string()));
            self.parameters.extend(file);
        }
        self
    }

    /// Whether it names files of the connecting machine.
    pub fn names_files(&self) -> bool {
        self.options.tls_ca_file.is_some() || self.options.tls_certificate_key_file.is_some()
    }

    /// Whether it accepts invalid certificates or certificates of other hosts.
    pub fn is_lenient(&self) -> bool {
        let options = &self.options;
        options.tls_insecure
            || options.tls_allow_invalid_certificates
            || options.tls_allow_invalid_hostnames
    }

    /// Whether it contains secrets in addition to user and password, such as the password of a key.
    pub fn has_secret_options(&self) -> bool {
        !self.secrets.0.is_empty()
    }

    /// Password of the key in `tlsCertificateKeyFile`. Must not appear in messages or files.
    pub fn certificate_key_password(&self) -> Option<&str> {
        let found =
            self.secrets.0.iter().find(|(name, _)| *name == "tlsCertificateKeyFilePassword");
        found.map(|(_, password)| password.as_str())
    }

    /// The complete connection string with all secrets. Must not appear in messages or files.
    pub fn to_secret_uri(&self, credentials: Option<&Credentials>) -> String {
        let mut uri = self.to_driver_uri();
        let Some(credentials) = credentials else {
            return uri;
        };
        let mut user = encode(&credentials.username);
        if !user.is_empty() && credentials.mechanism != Some(Mechanism::X509) {
            user.push(':');
            user.push_str(&encode(credentials.password()));
        }
        if !user.is_empty()
            && let Some((scheme, rest)) = uri.split_once("://")
        {
            uri = format!("{scheme}://{user}@{rest}");
        }
        if let Some(source) =
            credentials.source.as_deref().filter(|_| credentials.source_is_explicit)
        {
            uri = with_option(&uri, "authSource", &options::encode_value(source));
        }
        if let Some(mechanism) = credentials.mechanism {
            uri = with_option(&uri, "authMechanism", mechanism.name());
        }
        let properties = match credentials.session_token() {
            Some(token) => format!("{SESSION_TOKEN}{token}"),
            None if credentials.mechanism == Some(Mechanism::Oidc) => TOKEN_FILE.to_owned(),
            None => return uri,
        };
        with_option(&uri, "authMechanismProperties", &options::encode_value(&properties))
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    #[test]
    fn files_are_replaced_and_the_encryption_stays() {
        let (target, _) = parse("mongodb://h/?tlsCAFile=%2Fa%20b&w=majority").unwrap();
        assert!(target.names_files());
        let bare = target.clone().with_files(None, None);
        assert_eq!(bare.to_string(), "mongodb://h:27017/?w=majority&tls=true");
        assert!(bare.options.tls && !bare.names_files());
        let (again, _) = parse(&bare.to_string()).unwrap();
        assert_eq!(again, bare);
        let other = bare.with_files(Some(Path::new("/c&d")), Some(Path::new("/e")));
        let (read, _) = parse(&other.to_string()).unwrap();
        assert_eq!(read, other);
        assert_eq!(read.options.tls_ca_file.as_deref(), Some(Path::new("/c&d")));
        let (plain, _) = parse("mongodb://h/?w=1").unwrap();
        let plain = plain.with_files(None, None);
        assert_eq!(plain.to_string(), "mongodb://h:27017/?w=1");
    }

    #[test]
    fn secret_uri_means_the_same_target() {
        for text in [
            "mongodb://u%40x:p%3A%2F%3F@a,b:7/db?replicaSet=rs&authSource=s%26t",
            "mongodb://u:p@h/db?authMechanism=SCRAM-SHA-1",
            "mongodb://CN%3Da%2COU%3Db@h/db?authMechanism=MONGODB-X509&tlsCertificateKeyFile=%2Fk",
            "mongodb://h/db?authMechanism=MONGODB-X509&authSource=$external&tlsCertificateKeyFile=%2Fk",
            "mongodb+srv://u:p@c.example.com/db",
            "mongodb://u:p@h/?authMechanism=PLAIN&tls=true",
            "mongodb://key:s%2Fcret@h/?authMechanism=MONGODB-AWS&authMechanismProperties=AWS_SESSION_TOKEN:a%2Bb%3D%3D",
            "mongodb://h/?authMechanism=MONGODB-AWS",
            "mongodb://h/?authMechanism=MONGODB-OIDC&authMechanismProperties=ENVIRONMENT:k8s",
            "mongodb://h/?tls=true&tlsCertificateKeyFile=%2Fk&tlsCertificateKeyFilePassword=x%26y",
        ] {
            let (target, credentials) = parse(text).unwrap();
            let again = target.to_secret_uri(credentials.as_ref());
            let (target_again, credentials_again) = parse(&again).unwrap();
            assert_eq!(target_again, target, "{again}");
            assert_eq!(credentials_again, credentials, "{again}");
            assert_eq!(target_again.to_driver_uri(), target.to_driver_uri());
        }
    }
}
