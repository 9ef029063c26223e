//! That a certificate was logged before it was issued, so that who runs the authority cannot issue one in secret.

use der::{Any, Decode as _, Encode as _, Tag, TagNumber, Tagged as _, asn1::ObjectIdentifier};
use rustls::pki_types::CertificateDer;
use sha2::{Digest as _, Sha256};
use webpki::EndEntityCert;
use x509_cert::{
    Certificate,
    ext::{Extension, pkix::SignedCertificateTimestampList, pkix::sct::SignedCertificateTimestamp},
};

use super::trust::TrustRoot;

/// The extension that holds the promises of logs. What they sign is the certificate without it.
const PROMISES: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.11129.2.4.2");
const EXTENSIONS: Tag = Tag::ContextSpecific { constructed: true, number: TagNumber(3) };
/// Promises that are tried.
const MAX_PROMISES: usize = 8;

/// Checks that a log of `trust` promised to take the certificate, if `trust` names logs. `issuers` are certificates that may be its
/// issuer's; the promise says which it is.
///
/// # Errors
/// Why not.
pub(super) fn logged(certificate: &[u8], issuers: &[&[u8]], trust: &TrustRoot) -> Result<(), String> {
    if trust.certificate_logs.is_empty() {
        return Ok(());
    }
    let missing = "its certificate is in no log of certificates, and the trust root names one";
    let promises = promises(certificate).ok_or(missing)?;
    let precertificate = without_promises(certificate).map_err(|_| "its certificate is malformed")?;
    let issuers: Vec<[u8; 32]> = issuers.iter().filter_map(|issuer| key_hash(issuer)).collect();
    for promise in promises.iter().take(MAX_PROMISES) {
        let logs = trust.certificate_logs.iter().filter(|log| log.id == promise.log_id.key_id && log.valid.holds(promise.timestamp / 1000));
        for log in logs {
            let signed = |issuer| log.key.signed(&message(promise, issuer, &precertificate), promise.signature.signature.as_slice());
            if issuers.iter().any(signed) {
                return Ok(());
            }
        }
    }
    Err("no log of certificates in the trust root promised to take its certificate".to_owned())
}

fn promises(certificate: &[u8]) -> Option<Vec<SignedCertificateTimestamp>> {
    let certificate = Certificate::from_der(certificate).ok()?;
    let (_, list) = certificate.tbs_certificate().get_extension::<SignedCertificateTimestampList>().ok()??;
    list.parse_timestamps().ok()?.iter().map(|promise| promise.parse_timestamp().ok()).collect()
}

/// The part of a certificate that is signed, without the promises. All else stays as it is, byte for byte.
fn without_promises(certificate: &[u8]) -> der::Result<Vec<u8>> {
    let parts = Vec::<Any>::from_der(certificate)?;
    let mut fields: Vec<Any> = parts.first().ok_or_else(|| Tag::Sequence.value_error())?.decode_as()?;
    for field in fields.iter_mut().filter(|field| field.tag() == EXTENSIONS) {
        let mut kept = Vec::new();
        for extension in Vec::<Any>::from_der(field.value())? {
            if extension.decode_as::<Extension>()?.extn_id != PROMISES {
                kept.push(extension);
            }
        }
        *field = Any::new(EXTENSIONS, kept.to_der()?)?;
    }
    fields.to_der()
}

fn key_hash(certificate: &[u8]) -> Option<[u8; 32]> {
    let der = CertificateDer::from(certificate);
    EndEntityCert::try_from(&der).ok().map(|issuer| Sha256::digest(issuer.subject_public_key_info()).into())
}

/// What a log signs (RFC 6962, 3.2): version 1, a time stamp of a certificate, an entry without promises.
fn message(promise: &SignedCertificateTimestamp, issuer: &[u8; 32], precertificate: &[u8]) -> Vec<u8> {
    let length = u32::try_from(precertificate.len()).unwrap_or(u32::MAX).to_be_bytes();
    let extensions = promise.extensions.as_slice();
    let extensions_length = u16::try_from(extensions.len()).unwrap_or(u16::MAX).to_be_bytes();
    let mut message = vec![0, 0];
    message.extend(promise.timestamp.to_be_bytes());
    message.extend([0, 1]);
    message.extend(issuer);
    message.extend(length.iter().skip(1));
    message.extend(precertificate);
    message.extend(extensions_length);
    message.extend(extensions);
    message
}
