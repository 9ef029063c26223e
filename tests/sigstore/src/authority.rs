//! Certificates for people and machines that could log in somewhere.

use std::time::Duration;

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CustomExtension, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PublicKeyData, SanType, SerialNumber, SigningKey as _,
};
use sha2::{Digest as _, Sha256};

use crate::{Log, der};

/// As long as certificates of Fulcio last.
const LIFE: Duration = Duration::from_secs(600);

/// Who a certificate is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Where they logged in.
    pub issuer: String,
    /// Who they are there: a URL, else an e-mail address.
    pub subject: String,
}

impl Identity {
    /// Somebody.
    pub fn new(issuer: &str, subject: &str) -> Self {
        Self { issuer: issuer.to_owned(), subject: subject.to_owned() }
    }
}

/// A root and an authority below it.
#[derive(Debug)]
pub struct Authority {
    root: Vec<u8>,
    own: Vec<u8>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Result<Self> {
        let root_key = KeyPair::generate()?;
        let mut params = authority("root of sigstore.test");
        let root = params.self_signed(&root_key)?.der().to_vec();
        let issuer = Issuer::new(params, root_key);
        let key = KeyPair::generate()?;
        params = authority("authority of sigstore.test");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::CodeSigning];
        let own = params.signed_by(&key, &issuer)?.der().to_vec();
        Ok(Self { root, own, issuer: Issuer::new(params, key) })
    }

    /// Its certificates; the last one is the root.
    pub fn chain(&self) -> [Vec<u8>; 2] {
        [self.own.clone(), self.root.clone()]
    }

    /// A certificate, valid for ten minutes from `time`, promised by `log` if there is one.
    pub fn issue(&self, key: &impl PublicKeyData, identity: &Identity, time: u64, log: Option<&Log>) -> Result<Vec<u8>> {
        let mut params = leaf(identity, time)?;
        let unlogged = self.sign(&params, key)?;
        let Some(log) = log else { return Ok(unlogged.der().to_vec()) };
        let signed = *der::parts(unlogged.der())?.first().context("no certificate")?;
        let promise = log.promise(time * 1000, &self.key_hash(), signed)?;
        let mut promises = CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 11129, 2, 4, 2], der::value(der::OCTETS, &[&promise]));
        promises.set_criticality(false);
        params.custom_extensions.push(promises);
        Ok(self.sign(&params, key)?.der().to_vec())
    }

    fn sign(&self, params: &CertificateParams, key: &impl PublicKeyData) -> Result<Certificate> {
        Ok(params.signed_by(key, &self.issuer)?)
    }

    fn key_hash(&self) -> [u8; 32] {
        Sha256::digest(self.issuer.key().subject_public_key_info()).into()
    }
}

pub(crate) fn authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params
}

fn leaf(identity: &Identity, time: u64) -> Result<CertificateParams> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    let start = rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(time);
    (params.not_before, params.not_after) = (start, start + LIFE);
    // Both signings of a logged certificate need the same.
    params.serial_number = Some(SerialNumber::from(time));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::CodeSigning];
    let subject = identity.subject.as_str().try_into()?;
    params.subject_alt_names = vec![if identity.subject.contains("://") { SanType::URI(subject) } else { SanType::Rfc822Name(subject) }];
    let extension = |last, content: Vec<u8>| CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 57264, 1, last], content);
    params.custom_extensions =
        vec![extension(1, identity.issuer.clone().into_bytes()), extension(8, der::value(der::UTF8, &[identity.issuer.as_bytes()]))];
    Ok(params)
}

/// ECDSA on P-256 with SHA-256, as everything here signs.
pub(crate) fn sign(key: &KeyPair, message: &[u8]) -> Result<Vec<u8>> {
    Ok(key.sign(message)?)
}
