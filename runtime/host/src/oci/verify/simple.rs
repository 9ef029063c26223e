//! Simple signing: a small JSON document that names a digest, and annotations with its signature.

use std::collections::BTreeMap;

use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use serde::Deserialize;

use super::{
    super::text,
    encoding::{Bytes, Int, decode},
    signature::{COSIGN, Entry, Signature},
};

const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
const CERTIFICATE: &str = "dev.sigstore.cosign/certificate";
const CHAIN: &str = "dev.sigstore.cosign/chain";
const BUNDLE: &str = "dev.sigstore.cosign/bundle";
const STAMP: &str = "dev.sigstore.cosign/rfc3161timestamp";
/// What cosign calls its signatures in the document.
const KIND: &str = "cosign container image signature";
/// Certificates in an annotation; a chain has three.
const MAX_CHAIN: usize = 16;

#[derive(Deserialize)]
struct Payload {
    critical: Critical,
}

#[derive(Deserialize)]
struct Critical {
    image: Image,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct Image {
    #[serde(rename = "docker-manifest-digest")]
    digest: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Bundle {
    signed_entry_timestamp: Bytes,
    payload: Logged,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Logged {
    body: Bytes,
    integrated_time: Int,
    log_index: Int,
    #[serde(rename = "logID")]
    log: String,
}

#[derive(Deserialize)]
struct Stamp {
    #[serde(rename = "SignedRFC3161Timestamp")]
    signed: Bytes,
}

/// Reads a layer and its annotations.
pub(super) fn read(payload: &[u8], annotations: &BTreeMap<String, String>) -> Result<Signature, String> {
    let read: Payload =
        serde_json::from_slice(payload).map_err(|e| format!("its document is malformed: {}", text::said(&e.to_string())))?;
    let Critical { image, kind } = read.critical;
    if kind != KIND && kind != COSIGN {
        return Err(format!("its document is of type \"{}\", which is no signature of cosign", text::name(&kind)));
    }
    let signature = annotations.get(SIGNATURE).ok_or_else(|| format!("it has no annotation {SIGNATURE}"))?;
    let bytes = decode(signature).ok_or_else(|| format!("annotation {SIGNATURE} is no base64"))?;
    let certificates = |name: &str| annotations.get(name).map_or(Ok(Vec::new()), |pem| chain(name, pem));
    Ok(Signature {
        subjects: vec![image.digest],
        message: payload.to_vec(),
        logged: payload.to_vec(),
        bytes,
        certificate: certificates(CERTIFICATE)?.into_iter().next(),
        intermediates: certificates(CHAIN)?,
        entries: json::<Bundle>(annotations, BUNDLE)?.map(entry).transpose()?.into_iter().collect(),
        stamps: json::<Stamp>(annotations, STAMP)?.map(|stamp| stamp.signed.0).into_iter().collect(),
        ..Signature::default()
    })
}

fn chain(name: &str, pem: &str) -> Result<Vec<Vec<u8>>, String> {
    let certificates =
        CertificateDer::pem_slice_iter(pem.as_bytes()).take(MAX_CHAIN).map(|certificate| certificate.map(|der| der.to_vec()));
    certificates.collect::<Result<_, _>>().map_err(|_| format!("annotation {name} is no certificate in PEM form"))
}

/// The JSON in an annotation. cosign writes an empty text or `null` for none.
fn json<T: for<'de> Deserialize<'de>>(annotations: &BTreeMap<String, String>, name: &str) -> Result<Option<T>, String> {
    let Some(json) = annotations.get(name).filter(|json| !json.is_empty()) else { return Ok(None) };
    serde_json::from_str(json).map_err(|e| format!("annotation {name} is malformed: {}", text::said(&e.to_string())))
}

fn entry(Bundle { signed_entry_timestamp, payload }: Bundle) -> Result<Entry, String> {
    Ok(Entry {
        log: hex::decode(&payload.log).map_err(|_| format!("annotation {BUNDLE} names no log"))?,
        index: payload.log_index.0,
        time: payload.integrated_time.0,
        body: payload.body.0,
        promise: Some(signed_entry_timestamp.0),
        proof: None,
    })
}
