//! The server's side of TLS, as the Go plugins have it: files are read with every handshake, clients are verified by the certificates in one
//! file, which may be theirs or their issuers'.

use std::sync::{Arc, Mutex, PoisonError};

use rustls::{
    DigitallySignedStruct, DistinguishedName, Error, RootCertStore, ServerConfig, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{CryptoProvider, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, UnixTime, pem::PemObject},
    server::{
        WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
    version::TLS13,
};

/// What the plugin reads with every handshake.
#[derive(Debug, Clone)]
pub struct Files {
    /// Its certificate chain.
    pub cert: String,
    /// Its key.
    pub key: String,
    /// Certificates that clients are verified by.
    pub clients: String,
}

/// Shared, so that it can be replaced while the plugin runs.
#[derive(Debug, Clone)]
pub(crate) struct Current(Arc<Mutex<Files>>);

impl Current {
    pub(crate) fn new(files: Files) -> Self {
        Self(Arc::new(Mutex::new(files)))
    }

    pub(crate) fn replace(&self, files: Files) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = files;
    }

    pub(crate) fn config(&self) -> anyhow::Result<ServerConfig> {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let clients: Vec<CertificateDer<'static>> = certificates(&files.clients)?;
        let mut roots = RootCertStore::empty();
        let _counts = roots.add_parsable_certificates(clients.iter().cloned());
        let chain = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build()?;
        let verifier = PinOrChain { pins: clients, chain, provider: Arc::clone(&provider) };
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(Arc::new(verifier))
            .with_single_cert(certificates(&files.cert)?, PrivateKeyDer::from_pem_slice(files.key.as_bytes())?)?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(config)
    }
}

fn certificates(pem: &str) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    Ok(CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>()?)
}

/// Go takes a leaf as a root.
#[derive(Debug)]
struct PinOrChain {
    pins: Vec<CertificateDer<'static>>,
    chain: Arc<dyn ClientCertVerifier>,
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for PinOrChain {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.chain.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        if self.pins.iter().any(|pin| pin.as_ref() == leaf.as_ref()) {
            return Ok(ClientCertVerified::assertion());
        }
        self.chain.verify_client_cert(leaf, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.2 is not offered".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, leaf, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
