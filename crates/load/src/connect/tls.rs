//! TLS settings from the options of a connection string: whom to trust, and who we are.

use super::error::ConnectError;
use dyno_plan::uri::{Host, TargetOptions};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use std::path::Path;
use std::sync::Arc;

/// The settings; `None` if the connection is not to be encrypted.
pub(super) fn client_config(
    options: &TargetOptions,
) -> Result<Option<Arc<ClientConfig>>, ConnectError> {
    if !options.tls {
        return Ok(None);
    }
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(setup)?
        .dangerous()
        .with_custom_certificate_verifier(verifier(options, &provider)?);
    let config = match &options.tls_certificate_key_file {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let (chain, key) = read_identity(path)?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| file(path, error))?
        }
    };
    Ok(Some(Arc::new(config)))
}

/// The name that the server's certificate must be for.
pub(super) fn server_name(endpoint: &Host) -> Result<ServerName<'static>, ConnectError> {
    match endpoint {
        Host::Tcp { host, .. } => ServerName::try_from(host.clone()).map_err(setup),
        // A socket has no name; the server behind it is on this machine.
        Host::Unix(_) => ServerName::try_from("localhost").map_err(setup),
    }
}

fn verifier(
    options: &TargetOptions,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, ConnectError> {
    let lenient = |verifier| {
        Arc::new(LenientVerifier {
            provider: Arc::clone(provider),
            verifier,
        })
    };
    if options.tls_insecure || options.tls_allow_invalid_certificates {
        return Ok(lenient(None));
    }
    let roots = Arc::new(roots(options.tls_ca_file.as_deref())?);
    let verifier = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(provider))
        .build()
        .map_err(setup)?;
    if options.tls_allow_invalid_hostnames {
        return Ok(lenient(Some(verifier)));
    }
    Ok(verifier)
}

fn roots(ca_file: Option<&Path>) -> Result<RootCertStore, ConnectError> {
    let mut roots = RootCertStore::empty();
    let Some(path) = ca_file else {
        let native = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(native.certs);
        if roots.is_empty() {
            return Err(setup(
                "no trusted certificates on this system; name a file by `tlsCAFile`",
            ));
        }
        return Ok(roots);
    };
    for certificate in read_certificates(path)? {
        roots.add(certificate).map_err(|error| file(path, error))?;
    }
    Ok(roots)
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ConnectError> {
    let certificates: Vec<_> = CertificateDer::pem_file_iter(path)
        .map_err(|error| file(path, error))?
        .collect::<Result<_, _>>()
        .map_err(|error| file(path, error))?;
    if certificates.is_empty() {
        return Err(file(path, "the file holds no certificate"));
    }
    Ok(certificates)
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn read_identity(path: &Path) -> Result<Identity, ConnectError> {
    let key = PrivateKeyDer::from_pem_file(path).map_err(|error| file(path, error))?;
    Ok((read_certificates(path)?, key))
}

fn file(path: &Path, source: impl Into<super::error::Source>) -> ConnectError {
    ConnectError::TlsFile {
        path: path.to_owned(),
        source: source.into(),
    }
}

fn setup(source: impl Into<super::error::Source>) -> ConnectError {
    ConnectError::TlsSetup {
        source: source.into(),
    }
}

/// Accepts certificates for every name, but still demands that the peer owns its own.
#[derive(Debug)]
struct LenientVerifier {
    provider: Arc<CryptoProvider>,
    /// Verifies everything but the name; every certificate is accepted without it.
    verifier: Option<Arc<WebPkiServerVerifier>>,
}

impl ServerCertVerifier for LenientVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(verifier) = &self.verifier else {
            return Ok(ServerCertVerified::assertion());
        };
        let verified = verifier.verify_server_cert(certificate, intermediates, name, ocsp, now);
        match verified {
            // The name is looked at last, when the chain has been found to be good.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
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
