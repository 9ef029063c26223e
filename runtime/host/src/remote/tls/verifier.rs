//! Pin or chain: a plugin's certificate is good if it is one of `tls.crt` byte for byte, or if one of `tls.crt` or `ca.crt` issued it. Either
//! way its dates, its usage and its name must fit too. rustls' own verifier alone refuses what CNPG-I deployments use: self-signed
//! certificates that are authorities, and leaves of a CA that nobody handed out.

use std::{
    sync::Arc,
    time::{Duration, Instant, UNIX_EPOCH},
};

use rustls::{
    CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_cert_signed_by_trust_anchor, verify_server_name,
    },
    crypto::{CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::ParsedCertificate,
};
use x509_cert::{
    Certificate,
    der::{Decode, oid::ObjectIdentifier},
    ext::pkix::ExtendedKeyUsage,
};

use super::material::Dated;
use crate::remote::{ServerTrust, Validity};

/// `serverAuth` and `anyExtendedKeyUsage` (RFC 5280, 4.2.1.12).
const SERVER_USES: [ObjectIdentifier; 2] = [ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.1"), ObjectIdentifier::new_unwrap("2.5.29.37.0")];

pub(super) struct Verifier {
    names: Arc<[ServerName<'static>]>,
    trusts: Vec<Dated<ServerTrust>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    pub(super) fn new(names: Arc<[ServerName<'static>]>, trusts: Vec<Dated<ServerTrust>>, provider: &CryptoProvider) -> Self {
        Self { names, trusts, algorithms: provider.signature_verification_algorithms }
    }
}

impl std::fmt::Debug for Verifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Verifier").field("names", &self.names).finish_non_exhaustive()
    }
}

impl ServerCertVerifier for Verifier {
    /// The name that was dialled is one of ours; all of ours are as good.
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _dialled: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let moment = Instant::now();
        let mut first = None;
        for trust in self.trusts.iter().filter(|trust| trust.is_good(moment)) {
            match judge(&trust.what, &self.names, leaf, intermediates, now) {
                Ok(()) => return Ok(ServerCertVerified::assertion()),
                // What the trust in force says is what a person can act on.
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(first.unwrap_or(Error::InvalidCertificate(CertificateError::UnknownIssuer)))
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
        verify_tls13_signature(message, leaf, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Whether `trust` is enough for this chain.
pub(super) fn judge(
    trust: &ServerTrust,
    names: &[ServerName<'_>],
    leaf: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    now: UnixTime,
) -> Result<(), Error> {
    let parsed = ParsedCertificate::try_from(leaf)?;
    let moment = UNIX_EPOCH.checked_add(Duration::from_secs(now.as_secs())).ok_or(Error::FailedToGetCurrentTime)?;
    if trust.certificates.iter().take(trust.pins).any(|(pin, _)| pin.as_ref() == leaf.as_ref()) {
        dates(leaf, moment)?;
        usage(leaf)?;
    } else {
        chain(trust, &parsed, intermediates, now, moment)?;
    }
    let mut wrong = None;
    for name in names {
        match verify_server_name(&parsed, name) {
            Ok(()) => return Ok(()),
            Err(error) => wrong = wrong.or(Some(error)),
        }
    }
    Err(wrong.unwrap_or(Error::InvalidCertificate(CertificateError::NotValidForName)))
}

/// Issued by one of the certificates that is itself still valid: nobody looks at the dates of an anchor otherwise.
fn chain(
    trust: &ServerTrust,
    leaf: &ParsedCertificate<'_>,
    intermediates: &[CertificateDer<'_>],
    now: UnixTime,
    moment: std::time::SystemTime,
) -> Result<(), Error> {
    let mut roots = RootCertStore::empty();
    let valid = trust.certificates.iter().filter(|(_, validity)| validity.contains(moment));
    let (_added, _ignored) = roots.add_parsable_certificates(valid.map(|(certificate, _)| certificate.clone()));
    let algorithms = aws_lc_rs::default_provider().signature_verification_algorithms;
    verify_server_cert_signed_by_trust_anchor(leaf, &roots, intermediates, now, algorithms.all)
}

fn dates(leaf: &CertificateDer<'_>, now: std::time::SystemTime) -> Result<(), Error> {
    let validity = Validity::of(leaf).ok_or(Error::InvalidCertificate(CertificateError::BadEncoding))?;
    if now < validity.not_before {
        return Err(Error::InvalidCertificate(CertificateError::NotValidYet));
    }
    if now > validity.not_after {
        return Err(Error::InvalidCertificate(CertificateError::Expired));
    }
    Ok(())
}

/// Absent usages allow every use, as for chains.
fn usage(leaf: &CertificateDer<'_>) -> Result<(), Error> {
    let bad = || Error::InvalidCertificate(CertificateError::BadEncoding);
    let certificate = Certificate::from_der(leaf).map_err(|_| bad())?;
    let usages = certificate.tbs_certificate().get_extension::<ExtendedKeyUsage>().map_err(|_| bad())?;
    match usages {
        Some((_, usages)) if !usages.0.iter().any(|usage| SERVER_USES.contains(usage)) => {
            Err(Error::InvalidCertificate(CertificateError::InvalidPurpose))
        }
        Some(_) | None => Ok(()),
    }
}
