//! Bundles: one JSON document with a signed statement and everything that is needed to check it.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{
    super::{bounded, text},
    encoding::{Bytes, Int},
    signature::{COSIGN, Entry, Proof, Signature},
};

/// Beginnings of the types of versions that are known; 0.1 and 0.2 differ in what they must hold, not in what it means.
const VERSIONS: [&str; 4] = [
    "application/vnd.dev.sigstore.bundle.v0.3+json",
    "application/vnd.dev.sigstore.bundle+json;version=0.3",
    "application/vnd.dev.sigstore.bundle+json;version=0.2",
    "application/vnd.dev.sigstore.bundle+json;version=0.1",
];
const STATEMENT: &str = "application/vnd.in-toto+json";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bundle {
    media_type: String,
    verification_material: Material,
    #[serde(default)]
    dsse_envelope: Option<Envelope>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Material {
    #[serde(default)]
    certificate: Option<Raw>,
    #[serde(default)]
    x509_certificate_chain: Option<Chain>,
    #[serde(default, deserialize_with = "bounded::list")]
    tlog_entries: Option<Vec<Logged>>,
    #[serde(default)]
    timestamp_verification_data: Option<Stamps>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Raw {
    pub(super) raw_bytes: Bytes,
}

#[derive(Deserialize)]
struct Chain {
    #[serde(default, deserialize_with = "bounded::list")]
    certificates: Option<Vec<Raw>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stamps {
    #[serde(default, deserialize_with = "bounded::list")]
    rfc3161_timestamps: Option<Vec<Stamp>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stamp {
    signed_timestamp: Bytes,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LogId {
    pub(super) key_id: Bytes,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Logged {
    #[serde(default)]
    log_index: Int,
    log_id: LogId,
    #[serde(default)]
    integrated_time: Int,
    #[serde(default)]
    inclusion_promise: Option<Promise>,
    #[serde(default)]
    inclusion_proof: Option<Included>,
    canonicalized_body: Bytes,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Promise {
    signed_entry_timestamp: Bytes,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Included {
    #[serde(default)]
    log_index: Int,
    root_hash: Bytes,
    tree_size: Int,
    #[serde(default, deserialize_with = "bounded::list")]
    hashes: Option<Vec<Bytes>>,
    checkpoint: Checkpoint,
}

#[derive(Deserialize)]
struct Checkpoint {
    envelope: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    payload: Bytes,
    payload_type: String,
    #[serde(default, deserialize_with = "bounded::list")]
    signatures: Option<Vec<Signed>>,
}

#[derive(Deserialize)]
struct Signed {
    sig: Bytes,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Statement {
    #[serde(default, deserialize_with = "bounded::list")]
    subject: Option<Vec<Subject>>,
    predicate_type: String,
}

#[derive(Deserialize)]
struct Subject {
    #[serde(default, deserialize_with = "bounded::annotations")]
    digest: BTreeMap<String, String>,
}

/// Reads a bundle.
pub(super) fn read(json: &[u8]) -> Result<Signature, String> {
    let bundle: Bundle = serde_json::from_slice(json).map_err(|e| format!("the bundle is malformed: {}", text::said(&e.to_string())))?;
    if !VERSIONS.contains(&bundle.media_type.as_str()) {
        return Err(format!("the bundle is of type \"{}\"; versions 0.1 to 0.3 are known", text::name(&bundle.media_type)));
    }
    let Some(envelope) = bundle.dsse_envelope else {
        return Err("the bundle holds a signature of a file, not of an artifact; sign with `cosign sign`".to_owned());
    };
    let (subjects, bytes) = statement(&envelope)?;
    let Material { certificate, x509_certificate_chain: chain, tlog_entries: entries, timestamp_verification_data: stamps } =
        bundle.verification_material;
    let mut chain =
        certificate.into_iter().chain(chain.and_then(|chain| chain.certificates).unwrap_or_default()).map(|raw| raw.raw_bytes.0);
    Ok(Signature {
        subjects,
        message: encoded(&envelope.payload_type, &envelope.payload.0),
        logged: envelope.payload.0,
        bytes,
        certificate: chain.next(),
        intermediates: chain.collect(),
        entries: entries.unwrap_or_default().into_iter().map(entry).collect(),
        stamps: stamps
            .and_then(|stamps| stamps.rfc3161_timestamps)
            .unwrap_or_default()
            .into_iter()
            .map(|stamp| stamp.signed_timestamp.0)
            .collect(),
        ..Signature::default()
    })
}

/// What the statement is about, and its signature.
fn statement(envelope: &Envelope) -> Result<(Vec<String>, Vec<u8>), String> {
    if envelope.payload_type != STATEMENT {
        return Err(format!("the bundle signs \"{}\", which is no statement", text::name(&envelope.payload_type)));
    }
    let statement: Statement =
        serde_json::from_slice(&envelope.payload.0).map_err(|e| format!("its statement is malformed: {}", text::said(&e.to_string())))?;
    if statement.predicate_type != COSIGN {
        return Err(format!("it is a statement of type \"{}\", not a signature", text::name(&statement.predicate_type)));
    }
    let [Signed { sig }] = envelope.signatures.as_deref().unwrap_or_default() else {
        return Err("its statement has not exactly one signature".to_owned());
    };
    let digests = statement.subject.unwrap_or_default().into_iter().flat_map(|subject| subject.digest);
    Ok((digests.map(|(algorithm, hex)| format!("{algorithm}:{hex}")).collect(), sig.0.clone()))
}

/// What is signed of an envelope: its pre-authentication encoding.
fn encoded(kind: &str, payload: &[u8]) -> Vec<u8> {
    [format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len()).as_bytes(), payload].concat()
}

fn entry(logged: Logged) -> Entry {
    let proof = logged.inclusion_proof.map(|included| Proof {
        index: included.log_index.0,
        root: included.root_hash.0,
        size: included.tree_size.0,
        hashes: included.hashes.unwrap_or_default().into_iter().map(|hash| hash.0).collect(),
        checkpoint: included.checkpoint.envelope,
    });
    Entry {
        log: logged.log_id.key_id.0,
        index: logged.log_index.0,
        time: logged.integrated_time.0,
        body: logged.canonicalized_body.0,
        promise: logged.inclusion_promise.map(|promise| promise.signed_entry_timestamp.0),
        proof,
    }
}
