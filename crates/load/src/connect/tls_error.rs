//! Error messages and hints for TLS: the library has only debug text for most causes.

use rustls::{AlertDescription, CertificateError, Error as TlsError, PeerIncompatible};
use std::error::Error;
use std::fmt;

/// Hint for certificates that must be replaced.
const REPLACE: &str = "replace the server's certificate, or add `tlsAllowInvalidCertificates=true`";
/// A command that creates an acceptable certificate.
const MAKE: &str = "`openssl req -x509 -newkey rsa:2048 -sha256 -nodes -days 365 -subj /CN=HOST -addext subjectAltName=DNS:HOST -addext basicConstraints=critical,CA:FALSE -keyout KEY -out CERTIFICATE`";

/// A TLS error. Its message names the problem and the side that has it.
#[derive(Clone, Debug)]
pub struct TlsFault(TlsError);

impl From<TlsError> for TlsFault {
    fn from(error: TlsError) -> Self {
        TlsFault(error)
    }
}

impl Error for TlsFault {}

impl fmt::Display for TlsFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            TlsError::InvalidCertificate(error) => formatter.write_str(&certificate(error)),
            TlsError::InvalidMessage(_) => {
                formatter.write_str("the server's answer is not a message of TLS")
            }
            TlsError::AlertReceived(alert) => formatter.write_str(&self::alert(*alert).0),
            TlsError::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13) => {
                formatter.write_str("the server supports neither TLS 1.2 nor TLS 1.3")
            }
            error => error.fmt(formatter),
        }
    }
}

impl TlsFault {
    /// How to solve the problem, if the message does not already say it.
    pub(super) fn hint(&self) -> Option<String> {
        let error = match &self.0 {
            TlsError::InvalidCertificate(error) => error,
            TlsError::InvalidMessage(_) => {
                let hint =
                    "if the server does not use TLS, remove `tls=true` from the connection string";
                return Some(hint.to_owned());
            }
            TlsError::AlertReceived(alert) => return self::alert(*alert).1.map(str::to_owned),
            _ => return None,
        };
        use CertificateError as Certificate;
        Some(match error {
            Certificate::UnknownIssuer | Certificate::BadSignature => {
                "set `tlsCAFile` to the file with the server's certificate authority".to_owned()
            }
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => {
                "connect by the name in the certificate, or add `tlsAllowInvalidHostnames=true`"
                    .to_owned()
            }
            _ if is_authority(error) => format!(
                "set `tlsCAFile` to the file with this certificate, or make one that is not an authority: {MAKE}"
            ),
            _ if needs_new(error) => format!("make another certificate for the server: {MAKE}"),
            _ => REPLACE.to_owned(),
        })
    }
}

/// Whether the server's certificate is marked as an authority.
pub(super) fn is_authority(error: &CertificateError) -> bool {
    other_name(error).is_some_and(|name| name == "CaUsedAsEndEntity")
}

/// Whether the form of the certificate is not accepted.
#[allow(deprecated, reason = "the library may still give the variant without context")]
fn needs_new(error: &CertificateError) -> bool {
    matches!(
        error,
        CertificateError::UnsupportedSignatureAlgorithm
            | CertificateError::UnsupportedSignatureAlgorithmContext { .. }
            | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. }
    ) || other_name(error).is_some()
}

/// Name of a cause without a variant in the library.
fn other_name(error: &CertificateError) -> Option<String> {
    match error {
        CertificateError::Other(other) => Some(other.0.to_string()),
        _ => None,
    }
}

#[allow(deprecated, reason = "the library may still give the variant without context")]
fn certificate(error: &CertificateError) -> String {
    use CertificateError as Certificate;
    const DAY_SECONDS: u64 = 24 * 60 * 60;
    let days = |later: u64, earlier: u64| match later.saturating_sub(earlier) / DAY_SECONDS {
        1 => "1 day".to_owned(),
        days => format!("{days} days"),
    };
    let text = match error {
        Certificate::BadEncoding => "the server's certificate is not a valid certificate",
        Certificate::Expired => "the server's certificate expired",
        Certificate::ExpiredContext { time, not_after } => {
            let ago = days(time.as_secs(), not_after.as_secs());
            return format!(
                "the server's certificate expired {ago} ago by the clock of this machine"
            );
        }
        Certificate::NotValidYet => "the server's certificate is not valid yet",
        Certificate::NotValidYetContext { time, not_before } => {
            let wait = days(not_before.as_secs(), time.as_secs());
            return format!(
                "the server's certificate is not valid yet: by the clock of this machine it will be in {wait}"
            );
        }
        Certificate::Revoked => "the server's certificate is revoked",
        Certificate::UnhandledCriticalExtension => {
            "the server's certificate has a critical extension that is not supported"
        }
        Certificate::UnknownIssuer => {
            "the server's certificate is signed by an authority that is not trusted"
        }
        Certificate::BadSignature => {
            "the signature of the server's certificate does not fit the authority of that name"
        }
        Certificate::UnsupportedSignatureAlgorithmContext { .. }
        | Certificate::UnsupportedSignatureAlgorithmForPublicKeyContext { .. }
        | Certificate::UnsupportedSignatureAlgorithm => {
            "the server's certificate, or one that signs it, is signed by an algorithm that is not accepted, such as SHA-1"
        }
        Certificate::NotValidForNameContext { expected, presented } => {
            let names = match presented.as_slice() {
                [] => "no name: it has no subjectAltName".to_owned(),
                names => names.join(", "),
            };
            return format!(
                "the server's certificate is not valid for `{}`; it is for {names}",
                expected.to_str()
            );
        }
        Certificate::NotValidForName => "the server's certificate is for another host name",
        Certificate::InvalidPurpose | Certificate::InvalidPurposeContext { .. } => {
            "the server's certificate is not for servers (extendedKeyUsage without serverAuth)"
        }
        other if is_authority(other) => {
            "the server's certificate is marked as an authority (basicConstraints CA:TRUE), which a server's must not be unless `tlsCAFile` holds it"
        }
        other => match other_name(other).as_deref() {
            Some("UnsupportedCertVersion") => "the server's certificate is not of X.509 version 3",
            Some(name) => return format!("the server's certificate is not accepted ({name})"),
            None => return format!("the server's certificate is not accepted: {other}"),
        },
    };
    text.to_owned()
}

/// Text of an alert, and how to solve its problem.
fn alert(alert: AlertDescription) -> (String, Option<&'static str>) {
    const ADD: &str = "add `tlsCertificateKeyFile=FILE` with the client's certificate and key to the connection string";
    const REPLACE: &str = "name in `tlsCertificateKeyFile` a certificate that an authority of the server's `--tlsCAFile` signed";
    const NO_CIPHER: &str = "the server and this client have no cipher in common, or the server demands a client certificate";
    let (text, hint) = match alert {
        AlertDescription::CertificateRequired => {
            ("the server demands a client certificate", Some(ADD))
        }
        AlertDescription::UnknownCA => {
            ("the server does not trust the authority of the client certificate", Some(REPLACE))
        }
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateUnknown => {
            ("the server does not accept the client certificate", Some(REPLACE))
        }
        AlertDescription::CertificateExpired => ("the client certificate expired", Some(REPLACE)),
        AlertDescription::CertificateRevoked => {
            ("the client certificate is revoked", Some(REPLACE))
        }
        AlertDescription::ProtocolVersion => {
            ("the server supports neither TLS 1.2 nor TLS 1.3", None)
        }
        AlertDescription::HandshakeFailure => (NO_CIPHER, Some(ADD)),
        AlertDescription::InsufficientSecurity => (NO_CIPHER, None),
        other => {
            return (format!("the server ended the TLS handshake with the alert {other:?}"), None);
        }
    };
    (text.to_owned(), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_a_certificate_is_debug_text() {
        let context = CertificateError::UnsupportedSignatureAlgorithmContext {
            signature_algorithm_id: vec![6, 9, 42, 134, 72, 134, 247, 13, 1, 1, 5, 5, 0],
            supported_algorithms: Vec::new(),
        };
        for error in [
            context,
            CertificateError::BadEncoding,
            CertificateError::UnknownIssuer,
            CertificateError::BadSignature,
            CertificateError::InvalidPurpose,
            CertificateError::UnhandledCriticalExtension,
            CertificateError::Expired,
        ] {
            let debug = format!("{error:?}");
            let fault = TlsFault(TlsError::InvalidCertificate(error));
            let text = fault.to_string();
            let name = debug.split([' ', '(']).next().unwrap();
            assert!(!text.contains(name) && !text.contains('['), "{text}");
            assert!(fault.hint().is_some(), "{text}");
        }
    }
}
