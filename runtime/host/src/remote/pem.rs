//! Certificates and keys from Secrets, parsed once: what is in a [`Spec`](super::Spec) can be used.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use sha2::{Digest, Sha256};
use x509_cert::{Certificate, der::Decode};

/// Most bytes of one PEM document.
const MAX_PEM: usize = 256 << 10;
/// Most certificates of one PEM document.
const MAX_CERTIFICATES: usize = 64;

/// What is wrong with a Secret's content. Never quotes it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PemError {
    /// Over the bound.
    #[error("{field} has over {MAX_PEM} bytes or {MAX_CERTIFICATES} certificates")]
    TooLarge {
        /// Key of the Secret.
        field: &'static str,
    },
    /// No certificate in it.
    #[error("{field} has no PEM certificate")]
    NoCertificate {
        /// Key of the Secret.
        field: &'static str,
    },
    /// A block that is no certificate of X.509.
    #[error("certificate {number} of {field} cannot be read")]
    Certificate {
        /// Key of the Secret.
        field: &'static str,
        /// Counted from 1.
        number: usize,
    },
    /// No key, or none that TLS can use.
    #[error("tls.key has no private key that can be used (PKCS#8, PKCS#1 or SEC1 in PEM)")]
    Key,
    /// Certificate and key of two pairs.
    #[error("tls.key is not the key of the first certificate of tls.crt")]
    Mismatch,
}

/// When a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Validity {
    /// From.
    pub not_before: SystemTime,
    /// Until.
    pub not_after: SystemTime,
}

impl Validity {
    /// Of a certificate's bytes; none if they cannot be read.
    #[must_use]
    pub(super) fn of(der: &CertificateDer<'_>) -> Option<Self> {
        let validity = Certificate::from_der(der).ok()?;
        let validity = validity.tbs_certificate().validity();
        let time = |since: Duration| UNIX_EPOCH.checked_add(since);
        Some(Self { not_before: time(validity.not_before.to_unix_duration())?, not_after: time(validity.not_after.to_unix_duration())? })
    }

    /// Whether `now` is in it.
    #[must_use]
    pub fn contains(&self, now: SystemTime) -> bool {
        self.not_before <= now && now <= self.not_after
    }
}

/// The operator's certificate and key for a plugin: `tls.crt` and `tls.key` of the client Secret.
pub struct ClientIdentity {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
    validity: Validity,
    digest: [u8; 32],
}

impl ClientIdentity {
    /// Parses the pair and checks that the two belong together.
    ///
    /// # Errors
    /// Names the key of the Secret.
    pub fn parse(tls_crt: &[u8], tls_key: &[u8]) -> Result<Self, PemError> {
        let chain = certificates("tls.crt", tls_crt)?;
        let first = chain.first().ok_or(PemError::NoCertificate { field: "tls.crt" })?;
        let validity = Validity::of(first).ok_or(PemError::Certificate { field: "tls.crt", number: 1 })?;
        if tls_key.len() > MAX_PEM {
            return Err(PemError::TooLarge { field: "tls.key" });
        }
        let key = PrivateKeyDer::from_pem_slice(tls_key).map_err(|_| PemError::Key)?;
        let signing = rustls::crypto::aws_lc_rs::sign::any_supported_type(&key).map_err(|_| PemError::Key)?;
        rustls::sign::CertifiedKey::new(chain.clone(), signing).keys_match().map_err(|_| PemError::Mismatch)?;
        let digest = digest(&[tls_crt, tls_key]);
        Ok(Self { chain, key, validity, digest })
    }

    /// When the certificate is valid.
    #[must_use]
    pub fn validity(&self) -> Validity {
        self.validity
    }

    /// Hash of both, to tell changes.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }
}

/// Never shows the key.
impl std::fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientIdentity").field("validity", &self.validity).finish_non_exhaustive()
    }
}

/// Which certificates of a plugin are trusted: the very ones in `tls.crt` of the server Secret, and what one of `tls.crt` or `ca.crt`
/// issued. A certificate authority in `tls.crt` vouches for its own, as CNPG-I has it.
#[derive(Clone)]
pub struct ServerTrust {
    /// `tls.crt`, then `ca.crt`.
    pub(super) certificates: Vec<(CertificateDer<'static>, Validity)>,
    /// How many of them are `tls.crt`.
    pub(super) pins: usize,
    digest: [u8; 32],
}

impl ServerTrust {
    /// Parses both.
    ///
    /// # Errors
    /// Names the key of the Secret.
    pub fn parse(tls_crt: &[u8], ca_crt: Option<&[u8]>) -> Result<Self, PemError> {
        let mut all = with_validity("tls.crt", tls_crt)?;
        let pins = all.len();
        // cert-manager writes an empty ca.crt for issuers without one.
        if let Some(ca_crt) = ca_crt.filter(|ca| !ca.trim_ascii().is_empty()) {
            all.extend(with_validity("ca.crt", ca_crt)?);
        }
        Ok(Self { certificates: all, pins, digest: digest(&[tls_crt, ca_crt.unwrap_or_default()]) })
    }

    /// When the first certificate of `tls.crt` is valid, which is the plugin's own by convention.
    #[must_use]
    pub fn validity(&self) -> Option<Validity> {
        self.certificates.first().map(|(_, validity)| *validity)
    }

    /// The last moment at which any of it is valid.
    #[must_use]
    pub fn not_after(&self) -> Option<SystemTime> {
        self.certificates.iter().map(|(_, validity)| validity.not_after).max()
    }

    /// Hash of both documents, to tell changes.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }
}

impl std::fmt::Debug for ServerTrust {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerTrust").field("certificates", &self.certificates.len()).field("pins", &self.pins).finish_non_exhaustive()
    }
}

fn with_validity(field: &'static str, pem: &[u8]) -> Result<Vec<(CertificateDer<'static>, Validity)>, PemError> {
    let read = |(at, certificate): (usize, CertificateDer<'static>)| match Validity::of(&certificate) {
        Some(validity) => Ok((certificate, validity)),
        None => Err(PemError::Certificate { field, number: at.saturating_add(1) }),
    };
    certificates(field, pem)?.into_iter().enumerate().map(read).collect()
}

fn certificates(field: &'static str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, PemError> {
    if pem.len() > MAX_PEM {
        return Err(PemError::TooLarge { field });
    }
    let mut found = Vec::new();
    for (at, certificate) in CertificateDer::pem_slice_iter(pem).enumerate() {
        if at >= MAX_CERTIFICATES {
            return Err(PemError::TooLarge { field });
        }
        found.push(certificate.map_err(|_| PemError::Certificate { field, number: at.saturating_add(1) })?);
    }
    if found.is_empty() { Err(PemError::NoCertificate { field }) } else { Ok(found) }
}

fn digest(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(Sha256::digest(part));
    }
    hash.finalize().into()
}
