//! Reads the CA's Secret.

use jiff::Timestamp;
use rcgen::{Issuer, KeyPair, PKCS_RSA_SHA256, PublicKeyData};
use weir_core::{dataplane::snapshot::CaFacts, hash, plan::KeyAlgorithm};
use x509_parser::{
    certificate::X509Certificate,
    extensions::ParsedExtension,
    pem::Pem as Block,
    prelude::{FromDer, X509Name},
};

use super::Error;

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// The cluster CA, ready to sign.
pub struct Ca {
    pub(super) issuer: Issuer<'static, KeyPair>,
    /// Where the CA has no key identifier of its own, a leaf must not name one.
    pub(super) identified: bool,
    /// What a peer trusts: the certificates of `tls.crt`, and nothing else that may stand there (a combined PEM holds the key).
    pub(super) trust: String,
    /// What a server sends along with a leaf: the certificates of the chain that are not roots.
    pub(super) intermediates: String,
    pub(super) begins: Timestamp,
    pub(super) ends: Timestamp,
    facts: CaFacts,
}

impl std::fmt::Debug for Ca {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ca").field("facts", &self.facts).field("begins", &self.begins).field("ends", &self.ends).finish_non_exhaustive()
    }
}

impl Ca {
    /// Reads the two values of the Secret. Whether the CA is valid now is asked when it signs: an expired CA still has facts.
    ///
    /// # Errors
    /// Says which of the two is wrong, and what to do.
    pub fn read(tls_crt: &[u8], tls_key: &[u8]) -> Result<Self, Error> {
        let blocks = certificates(tls_crt)?;
        let first = blocks.first().ok_or(Error::NoCertificate)?;
        let (_, certificate) = X509Certificate::from_der(&first.der).map_err(|e| Error::BadCertificate(e.to_string()))?;
        may_sign(&certificate)?;
        repeatable(certificate.subject())?;
        let key = private_key(tls_key)?;
        if key.der_bytes() != &*certificate.public_key().subject_public_key.data {
            return Err(Error::KeyMismatch);
        }
        let algorithm = if key.algorithm() == &PKCS_RSA_SHA256 { KeyAlgorithm::Rsa2048 } else { KeyAlgorithm::EcdsaP256 };
        let issuer = Issuer::from_ca_cert_der(&first.der.as_slice().into(), key).map_err(|e| Error::BadCertificate(e.to_string()))?;
        let ends = time(certificate.validity().not_after.timestamp());
        Ok(Self {
            issuer,
            identified: certificate.iter_extensions().any(|e| matches!(e.parsed_extension(), ParsedExtension::SubjectKeyIdentifier(_))),
            trust: blocks.iter().map(|b| b.text.as_str()).collect(),
            intermediates: blocks.iter().filter(|b| b.intermediate).map(|b| b.text.as_str()).collect(),
            begins: time(certificate.validity().not_before.timestamp()),
            ends,
            facts: CaFacts { digest: hash::digest(tls_crt), key: algorithm, ends: Some(ends) },
        })
    }

    /// What the core knows about it.
    #[must_use]
    pub fn facts(&self) -> CaFacts {
        self.facts.clone()
    }

    /// Start of its validity.
    #[must_use]
    pub fn begins(&self) -> Timestamp {
        self.begins
    }

    /// End of its validity.
    #[must_use]
    pub fn ends(&self) -> Timestamp {
        self.ends
    }
}

/// One certificate of the chain.
struct Certificate {
    text: String,
    der: Vec<u8>,
    intermediate: bool,
}

/// The PEM certificates in `text`, in order. Comments and other blocks are left out.
fn certificates(text: &[u8]) -> Result<Vec<Certificate>, Error> {
    let text = str::from_utf8(text).map_err(|_| Error::NoCertificate)?;
    let mut texts: Vec<String> = Vec::new();
    let mut open: Option<String> = None;
    for line in text.lines().map(str::trim) {
        if line == BEGIN {
            open = Some(String::new());
        }
        let Some(block) = open.as_mut() else { continue };
        block.push_str(line);
        block.push('\n');
        if line == END {
            texts.extend(open.take());
        }
    }
    let read = |text: String| {
        let (_, block) = x509_parser::pem::parse_x509_pem(text.as_bytes()).map_err(|e| Error::BadCertificate(e.to_string()))?;
        // A later one that cannot be read still belongs to what the owner of the Secret wants trusted.
        let parsed = X509Certificate::from_der(&block.contents);
        let intermediate = parsed.is_ok_and(|(_, c)| c.subject().as_raw() != c.issuer().as_raw());
        Ok(Certificate { text, der: block.contents, intermediate })
    };
    texts.into_iter().map(read).collect()
}

fn may_sign(certificate: &X509Certificate<'_>) -> Result<(), Error> {
    let bad = |e: x509_parser::error::X509Error| Error::BadCertificate(e.to_string());
    let ca = certificate.basic_constraints().map_err(bad)?.is_some_and(|c| c.value.ca);
    let signs = certificate.key_usage().map_err(bad)?.is_none_or(|u| u.value.key_cert_sign());
    if ca && signs { Ok(()) } else { Err(Error::NotCa) }
}

/// rcgen keeps a subject as a map: an attribute that comes twice would be lost, and the leaf's issuer would be another name.
fn repeatable(subject: &X509Name<'_>) -> Result<(), Error> {
    let mut seen = std::collections::BTreeSet::new();
    for part in subject.iter() {
        let mut attributes = part.iter();
        let (Some(only), None) = (attributes.next(), attributes.next()) else { return Err(Error::Subject) };
        if !seen.insert(only.attr_type().to_id_string()) {
            return Err(Error::Subject);
        }
    }
    Ok(())
}

/// The first private key: OpenSSL writes a block of curve parameters before it.
fn private_key(text: &[u8]) -> Result<KeyPair, Error> {
    // The old way of encrypting has no label of its own but a header, which the parser takes for damage. base64 has no hyphen.
    if text.windows(10).any(|w| w == b"Proc-Type:") {
        return Err(Error::EncryptedKey);
    }
    let key = Block::iter_from_buffer(text).filter_map(Result::ok).find(|b| b.label.ends_with("PRIVATE KEY")).ok_or(Error::NoKey)?;
    if key.label.starts_with("ENCRYPTED") {
        return Err(Error::EncryptedKey);
    }
    KeyPair::try_from(key.contents.as_slice()).map_err(|_| Error::BadKey)
}

/// A certificate may say a time that is later than jiff's last one: "never".
fn time(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap_or(if seconds < 0 { Timestamp::MIN } else { Timestamp::MAX })
}

/// When the first certificate in a text ends: the one that is presented.
#[must_use]
pub fn end(tls_crt: &[u8]) -> Option<Timestamp> {
    let first = certificates(tls_crt).ok()?.into_iter().next()?;
    let (_, certificate) = X509Certificate::from_der(&first.der).ok()?;
    Some(time(certificate.validity().not_after.timestamp()))
}

/// When each certificate in a text can be used, in their order.
///
/// # Errors
/// Which of them is none.
pub fn validity(pem: &[u8]) -> Result<Vec<(Timestamp, Timestamp)>, String> {
    let read = |(at, one): (usize, Certificate)| {
        let wrong = || format!("certificate {} of it cannot be read: store PEM certificates there", at.saturating_add(1));
        let (_, certificate) = X509Certificate::from_der(&one.der).map_err(|_| wrong())?;
        let validity = certificate.validity();
        Ok((time(validity.not_before.timestamp()), time(validity.not_after.timestamp())))
    };
    let all = certificates(pem).map_err(|_| "it holds no certificate in PEM form: store one there".to_owned())?;
    all.into_iter().enumerate().map(read).collect()
}

/// Why two values are no certificate and its key. A kind of key that cannot be read here may still be one that others read.
#[must_use]
pub fn unusable_pair(tls_crt: &[u8], tls_key: &[u8]) -> Option<String> {
    let no_certificate = "tls.crt holds no certificate in PEM form: store the client certificate there";
    let Ok(Some(first)) = certificates(tls_crt).map(|all| all.into_iter().next()) else { return Some(no_certificate.into()) };
    let Ok((_, certificate)) = X509Certificate::from_der(&first.der) else { return Some(no_certificate.into()) };
    match private_key(tls_key) {
        Ok(key) if key.der_bytes() != &*certificate.public_key().subject_public_key.data => {
            Some("tls.key is not the key of the certificate in tls.crt: store both of one issue".into())
        }
        Ok(_) | Err(Error::BadKey) => None,
        Err(_) => Some("tls.key holds no private key in PEM form, or an encrypted one: store the plain key of the certificate".into()),
    }
}
