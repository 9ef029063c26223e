//! Keyless signatures: whose certificate it is, and that somebody whom the trust root names issued it at the time of the signature.

use std::{fmt, time::Duration};

use der::{
    Decode as _,
    asn1::{ObjectIdentifier, Utf8StringRef},
};
use rustls::pki_types::{CertificateDer, UnixTime};
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, KeyUsage};
use x509_cert::{
    Certificate,
    ext::pkix::{SubjectAltName, name::GeneralName},
};

use super::{
    super::text,
    key::Key,
    log, sct,
    signature::Signature,
    stamp,
    trust::{Authority, TrustRoot},
};

/// Who logged the signer in: as a bare text, and as DER.
const ISSUER: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.57264.1.1");
const ISSUER_2: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.57264.1.8");
/// A name that is neither an address nor a URL.
const OTHER_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.57264.1.7");
/// id-kp-codeSigning, as DER has it.
const CODE_SIGNING: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 3];
/// Time stamps of one signature, and times that a certificate is checked at.
const MAX_TIMES: usize = 4;
/// Certificates beside one's own that are tried; a chain has two.
const MAX_GIVEN: usize = 8;

/// Who a certificate is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) issuer: String,
    pub(super) subjects: Vec<String>,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subjects: Vec<String> = self.subjects.iter().map(|subject| text::name(subject)).collect();
        write!(f, "{} {}", text::name(&self.issuer), subjects.join(" or "))
    }
}

impl Identity {
    /// What the certificate says; true only if somebody vouches for it.
    pub(super) fn claimed(der: &[u8]) -> Result<Self, String> {
        let malformed = |_| "its certificate is malformed".to_owned();
        let certificate = Certificate::from_der(der).map_err(malformed)?;
        let extensions = certificate.tbs_certificate().extensions().map(Vec::as_slice).unwrap_or_default();
        let value = |oid| extensions.iter().find(|extension| extension.extn_id == oid).map(|extension| extension.extn_value.as_bytes());
        let issuer = match (value(ISSUER_2), value(ISSUER)) {
            (Some(der), _) => Utf8StringRef::from_der(der).map_err(malformed)?.as_str().to_owned(),
            (None, Some(text)) => std::str::from_utf8(text).map_err(|_| "the issuer in its certificate is no text")?.to_owned(),
            (None, None) => return Err("its certificate does not say who logged the signer in".to_owned()),
        };
        let names = certificate.tbs_certificate().get_extension::<SubjectAltName>().map_err(malformed)?;
        let subjects: Vec<String> = names.map(|(_, names)| names.0).unwrap_or_default().iter().filter_map(subject).collect();
        if subjects.is_empty() {
            return Err("its certificate does not say who the signer is".to_owned());
        }
        Ok(Self { issuer, subjects })
    }
}

fn subject(name: &GeneralName) -> Option<String> {
    match name {
        GeneralName::Rfc822Name(name) => Some(name.to_string()),
        GeneralName::UniformResourceIdentifier(name) => Some(name.to_string()),
        GeneralName::OtherName(name) if name.type_id == OTHER_NAME => {
            name.value.decode_as::<Utf8StringRef<'_>>().ok().map(|name| name.as_str().to_owned())
        }
        GeneralName::OtherName(_)
        | GeneralName::DnsName(_)
        | GeneralName::DirectoryName(_)
        | GeneralName::EdiPartyName(_)
        | GeneralName::IpAddress(_)
        | GeneralName::RegisteredId(_) => None,
    }
}

/// Checks that the holder of `certificate` made `signature`, while the certificate was valid.
///
/// # Errors
/// Why not.
pub(super) fn vouched(certificate: &[u8], signature: &Signature, trust: &TrustRoot) -> Result<(), String> {
    let der = CertificateDer::from(certificate);
    let leaf = EndEntityCert::try_from(&der).map_err(|_| "its certificate is malformed")?;
    let key = Key::from_der(&leaf.subject_public_key_info()).map_err(|problem| format!("the key of its certificate: {problem}"))?;
    if !key.signed(&signature.message, &signature.bytes) {
        return Err("it is not made by the holder of its certificate".to_owned());
    }
    let mut times = if trust.logs.is_empty() { Vec::new() } else { log::logged(signature, trust)? };
    let mut problem = "nobody in the trust root says when it was made: neither a log nor a time stamp".to_owned();
    for stamp in signature.stamps.iter().take(MAX_TIMES) {
        match stamp::time(stamp, &signature.bytes, trust) {
            Ok(time) => times.push(time),
            Err(wrong) => problem = wrong,
        }
    }
    for time in times.into_iter().take(MAX_TIMES) {
        match issued(&leaf, signature, trust, time) {
            Ok(issuers) => return sct::logged(certificate, &issuers, trust),
            Err(wrong) => problem = wrong,
        }
    }
    Err(problem)
}

/// Whether somebody in the trust root issued the certificate and it was valid at `time`; the certificates that may be its issuer.
fn issued<'a>(leaf: &EndEntityCert<'_>, signature: &'a Signature, trust: &'a TrustRoot, time: u64) -> Result<Vec<&'a [u8]>, String> {
    let mut problem = "no authority of the trust root was valid when it was made".to_owned();
    let given: Vec<&[u8]> = signature.intermediates.iter().take(MAX_GIVEN).map(Vec::as_slice).collect();
    for authority in trust.authorities.iter().filter(|authority| authority.valid.holds(time)) {
        match chained(leaf, authority, &given, CODE_SIGNING, time) {
            Ok(()) => return Ok(authority.chain.iter().map(|certificate| &**certificate).chain(given).collect()),
            Err(error) => problem = format!("its certificate is not of an authority in the trust root ({error})"),
        }
    }
    Err(problem)
}

/// Whether `leaf` leads to the root of `authority` at `time`, and is for `usage`.
pub(super) fn chained(
    leaf: &EndEntityCert<'_>,
    authority: &Authority,
    given: &[&[u8]],
    usage: &'static [u8],
    time: u64,
) -> Result<(), webpki::Error> {
    let own = authority.chain.iter().map(|certificate| CertificateDer::from(&**certificate));
    let intermediates: Vec<CertificateDer<'_>> = own.chain(given.iter().map(|der| CertificateDer::from(*der))).collect();
    let time = UnixTime::since_unix_epoch(Duration::from_secs(time));
    let anchors = std::slice::from_ref(&authority.anchor);
    leaf.verify_for_usage(ALL_VERIFICATION_ALGS, anchors, &intermediates, time, KeyUsage::required(usage), None, None).map(|_| ())
}
