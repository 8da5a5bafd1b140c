//! TLS settings from the options of a connection string: trusted authorities, and the client certificate.

use super::error::ConnectError;
use super::file_fault::FileFault;
use super::identity::{self, CERTIFICATE_KEY_FILE, file, read_certificates};
use super::tls_error::{TlsFault, is_authority};
use dyno_plan::uri::{Host, TargetOptions};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use std::path::Path;
use std::sync::Arc;

const CA_FILE: &str = "tlsCAFile";

/// The settings; `None` if the connection is not encrypted. `key_password` decrypts the client's key.
pub(super) fn client_config(
    options: &TargetOptions,
    key_password: Option<&str>,
) -> Result<Option<Arc<ClientConfig>>, ConnectError> {
    if !options.tls {
        return Ok(None);
    }
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(setup)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Verifier::new(options, provider)?));
    let config = match &options.tls_certificate_key_file {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let (chain, key) = identity::read(path, key_password)?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| match error {
                    Error::InconsistentKeys(_) => FileFault::Mismatch,
                    Error::InvalidCertificate(_) => FileFault::CertificateKind,
                    _ => FileFault::KeyKind,
                })
                .map_err(|fault| file(CERTIFICATE_KEY_FILE, path, fault))?
        }
    };
    Ok(Some(Arc::new(config)))
}

/// Expected name in the server's certificate.
pub(super) fn server_name(endpoint: &Host) -> Result<ServerName<'static>, ConnectError> {
    match endpoint {
        Host::Tcp { host, .. } => ServerName::try_from(host.clone()).map_err(setup),
        // A socket has no name; its server is on this machine.
        Host::Unix(_) => ServerName::try_from("localhost").map_err(setup),
    }
}

fn roots(
    ca_file: Option<&Path>,
) -> Result<(RootCertStore, Vec<CertificateDer<'static>>), ConnectError> {
    let mut roots = RootCertStore::empty();
    let Some(path) = ca_file else {
        let native = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(native.certs);
        if roots.is_empty() {
            return Err(setup("no trusted certificates on this system; set `tlsCAFile`"));
        }
        return Ok((roots, Vec::new()));
    };
    let certificates = read_certificates(CA_FILE, path)?;
    for certificate in &certificates {
        let added = roots.add(certificate.clone());
        added.map_err(|error| file(CA_FILE, path, TlsFault::from(error)))?;
    }
    Ok((roots, certificates))
}

fn setup(source: impl Into<super::error::Source>) -> ConnectError {
    ConnectError::TlsSetup { source: source.into() }
}

/// Verifies like clients with OpenSSL: a certificate in `tlsCAFile` itself needs no other signature and may be marked
/// as an authority. Other leniency depends on the connection string, but the peer must always own its certificate.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    /// Verifies chain and name; without it, every certificate is accepted.
    chain: Option<Arc<WebPkiServerVerifier>>,
    /// Certificates of `tlsCAFile`.
    trusted: Vec<CertificateDer<'static>>,
    accepts_any_name: bool,
}

impl Verifier {
    fn new(options: &TargetOptions, provider: Arc<CryptoProvider>) -> Result<Self, ConnectError> {
        let mut verifier = Verifier {
            provider,
            chain: None,
            trusted: Vec::new(),
            accepts_any_name: options.tls_allow_invalid_hostnames,
        };
        if options.tls_insecure || options.tls_allow_invalid_certificates {
            return Ok(verifier);
        }
        let (roots, trusted) = roots(options.tls_ca_file.as_deref())?;
        let provider = Arc::clone(&verifier.provider);
        let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        verifier.chain = Some(chain.build().map_err(setup)?);
        verifier.trusted = trusted;
        Ok(verifier)
    }

    /// Whether an unaccepted chain does not matter, because the certificate itself is trusted.
    fn needs_no_chain(&self, certificate: &CertificateDer<'_>, error: &Error) -> bool {
        // The library has checked the dates before it returns one of these errors.
        let is_about_chain = match error {
            Error::InvalidCertificate(
                CertificateError::UnknownIssuer
                | CertificateError::BadSignature
                | CertificateError::UnsupportedSignatureAlgorithmContext { .. }
                | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. },
            ) => true,
            Error::InvalidCertificate(error) => is_authority(error),
            _ => false,
        };
        is_about_chain && self.trusted.contains(certificate)
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else {
            return Ok(ServerCertVerified::assertion());
        };
        let mut verified = chain.verify_server_cert(certificate, intermediates, name, ocsp, now);
        if let Err(error) = &verified
            && self.needs_no_chain(certificate, error)
        {
            verified = verify_server_name(&ParsedCertificate::try_from(certificate)?, name)
                .map(|()| ServerCertVerified::assertion());
        }
        match verified {
            // The name is checked last, after the chain was accepted.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.accepts_any_name => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}
