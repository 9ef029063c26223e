//! Makes certificates: the CA itself, and leaves.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, DnValue, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, SanType, SerialNumber,
};
use weir_core::plan::{CertificateRequest, KeyAlgorithm};

use super::{Ca, Error, Pem};

const CA_DAYS: i64 = 3_650;
/// Clocks of nodes differ; a certificate that begins "now" is not yet valid on some of them.
const SKEW: SignedDuration = SignedDuration::from_mins(5);

/// A certificate the CA signed, as the keys of its Secret. Its `Debug` does not print the key.
pub struct Leaf {
    /// Key `ca.crt`: what its peers have to trust.
    pub ca_crt: String,
    /// Key `tls.crt`: the certificate, and the intermediates up to a root, if there are any.
    pub tls_crt: String,
    /// Key `tls.key`: PKCS#8.
    pub tls_key: String,
    /// End of its validity, for the annotation from which the core knows when to renew.
    pub ends: Timestamp,
}

impl std::fmt::Debug for Leaf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Leaf").field("tls_crt", &self.tls_crt).field("ends", &self.ends).finish_non_exhaustive()
    }
}

/// Makes a cluster CA of ten years that signs leaves only.
///
/// # Errors
/// [`Error::Crypto`].
pub fn generate_ca(key: KeyAlgorithm, now: Timestamp) -> Result<Pem, Error> {
    let crypto = |e: rcgen::Error| Error::Crypto(e.to_string());
    let pair = key_pair(key)?;
    let mut params = CertificateParams::default();
    params.distinguished_name = name("Weir cluster CA", "Kong, Inc.", "US").map_err(crypto)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.serial_number = Some(serial()?);
    set_validity(&mut params, before(now, SKEW), after(now, SignedDuration::from_hours(CA_DAYS * 24)));
    let certificate = params.self_signed(&pair).map_err(crypto)?;
    Ok(Pem { certificate: certificate.pem(), key: pair.serialize_pem() })
}

impl Ca {
    /// Makes the certificate of `request` with a new key. It ends with the CA at the latest.
    ///
    /// # Errors
    /// The CA is not valid at `now`, or the request cannot be put into a certificate.
    pub fn mint(&self, request: &CertificateRequest, now: Timestamp) -> Result<Leaf, Error> {
        if now < self.begins {
            return Err(Error::NotYetValid { begins: self.begins });
        }
        if now >= self.ends {
            return Err(Error::Expired { ends: self.ends });
        }
        let bad = |problem: String| Error::Request { common_name: request.common_name.clone(), problem };
        if request.ttl_seconds <= 0 {
            return Err(bad(format!("a lifetime of {} seconds is none", request.ttl_seconds)));
        }
        let ends = whole_seconds(after(now, SignedDuration::from_secs(request.ttl_seconds)).min(self.ends));
        let mut params = CertificateParams::default();
        params.distinguished_name = name(&request.common_name, &request.organization, &request.country).map_err(|e| bad(e.to_string()))?;
        for dns_name in &request.dns_names {
            params.subject_alt_names.push(SanType::DnsName(dns_name.as_str().try_into().map_err(|e: rcgen::Error| bad(e.to_string()))?));
        }
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = self.identified;
        params.serial_number = Some(serial()?);
        set_validity(&mut params, before(now, SKEW).max(self.begins), ends);
        let pair = key_pair(request.key)?;
        let certificate = params.signed_by(&pair, &self.issuer).map_err(|e| Error::Crypto(e.to_string()))?;
        Ok(Leaf {
            ca_crt: self.trust.clone(),
            tls_crt: format!("{}{}", certificate.pem(), self.intermediates),
            tls_key: pair.serialize_pem(),
            ends,
        })
    }
}

fn key_pair(key: KeyAlgorithm) -> Result<KeyPair, Error> {
    let algorithm = match key {
        KeyAlgorithm::EcdsaP256 => &PKCS_ECDSA_P256_SHA256,
        // rcgen's size for a new RSA key is 2048 bits.
        KeyAlgorithm::Rsa2048 => &PKCS_RSA_SHA256,
    };
    KeyPair::generate_for(algorithm).map_err(|e| Error::Crypto(e.to_string()))
}

fn name(common_name: &str, organization: &str, country: &str) -> Result<DistinguishedName, rcgen::Error> {
    let mut name = DistinguishedName::new();
    // X.520 allows a country as PrintableString only.
    name.push(DnType::CountryName, DnValue::PrintableString(country.try_into()?));
    name.push(DnType::OrganizationName, organization);
    name.push(DnType::CommonName, common_name);
    Ok(name)
}

/// 126 random bits, positive and never shorter than 16 bytes.
fn serial() -> Result<SerialNumber, Error> {
    let mut bytes = [0_u8; 16];
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.secure_random.fill(&mut bytes).map_err(|_| Error::Crypto("no random numbers".into()))?;
    let [first, ..] = &mut bytes;
    *first = (*first & 0x3f) | 0x40;
    Ok(SerialNumber::from_slice(&bytes))
}

/// Times before 1970 become 1970: no CA of a cluster is older, and rcgen's time type is not ours to name.
fn set_validity(params: &mut CertificateParams, begins: Timestamp, ends: Timestamp) {
    let seconds = |time: Timestamp| Duration::from_secs(u64::try_from(time.as_second()).unwrap_or(0));
    params.not_before = rcgen::date_time_ymd(1970, 1, 1) + seconds(begins);
    params.not_after = rcgen::date_time_ymd(1970, 1, 1) + seconds(ends);
}

fn after(time: Timestamp, span: SignedDuration) -> Timestamp {
    time.checked_add(span).unwrap_or(Timestamp::MAX)
}

fn before(time: Timestamp, span: SignedDuration) -> Timestamp {
    time.checked_sub(span).unwrap_or(Timestamp::MIN)
}

/// A certificate has no fractions of a second; the annotation must not claim more than it says.
fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
