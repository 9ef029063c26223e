//! Certificates of every shape that plugins are deployed with.

use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose};

type Error = rcgen::Error;

/// A certificate and its key, in PEM.
#[derive(Debug, Clone)]
pub struct Pair {
    /// `tls.crt`.
    pub cert: String,
    /// `tls.key`.
    pub key: String,
}

/// A certificate authority.
pub struct Authority {
    /// Its certificate, in PEM.
    pub cert: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// A new one.
    ///
    /// # Errors
    /// rcgen's.
    pub fn new() -> Result<Self, Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let cert = params.self_signed(&key)?.pem();
        Ok(Self { cert, issuer: Issuer::new(params, key) })
    }

    /// A leaf of it.
    ///
    /// # Errors
    /// rcgen's.
    pub fn issue(&self, params: &CertificateParams) -> Result<Pair, Error> {
        let key = KeyPair::generate()?;
        let cert = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Pair { cert, key: key.serialize_pem() })
    }
}

/// A server's certificate for these names, not yet signed.
///
/// # Errors
/// rcgen's.
pub fn server(names: &[&str]) -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())?;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok(params)
}

/// A client's certificate, not yet signed.
///
/// # Errors
/// rcgen's.
pub fn client() -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::new(vec!["operator".to_owned()])?;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    Ok(params)
}

/// Signed by itself.
///
/// # Errors
/// rcgen's.
pub fn self_signed(params: &CertificateParams) -> Result<Pair, Error> {
    let key = KeyPair::generate()?;
    let cert = params.self_signed(&key)?.pem();
    Ok(Pair { cert, key: key.serialize_pem() })
}
