//! What cosign leaves in a registry.

use anyhow::Result;
use rcgen::KeyPair;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::{Generation, authority::sign, json::base64};

const STATEMENT: &str = "application/vnd.in-toto+json";

/// A statement and its signature, in an envelope. Whoever wants to spoil it changes the JSON that comes out.
#[derive(Debug, Clone)]
pub struct Signed {
    payload: Vec<u8>,
    /// The signature.
    pub signature: Vec<u8>,
    certificate: Option<Vec<u8>>,
}

impl Signed {
    /// Says, as `cosign sign` does, that an artifact is signed; with the certificate of the key, or without for a mere key.
    pub fn new(key: &KeyPair, digest: &str, certificate: Option<Vec<u8>>) -> Result<Self> {
        Self::statement(key, digest, "https://sigstore.dev/cosign/sign/v1", certificate)
    }

    /// States something of another type.
    pub fn statement(key: &KeyPair, digest: &str, kind: &str, certificate: Option<Vec<u8>>) -> Result<Self> {
        let (algorithm, hex) = digest.split_once(':').unwrap_or(("sha256", digest));
        let mut digests = Map::new();
        digests.insert(algorithm.to_owned(), json!(hex));
        let subject = json!([{ "digest": digests, "annotations": {} }]);
        let statement = json!({ "_type": "https://in-toto.io/Statement/v1", "subject": subject, "predicateType": kind, "predicate": {} });
        let payload = statement.to_string().into_bytes();
        let signature = sign(key, &encoded(&payload))?;
        Ok(Self { payload, signature, certificate })
    }

    /// What a log has of it.
    pub fn body(&self, generation: Generation) -> Value {
        let certificate = self.certificate.as_deref().unwrap_or_default();
        match generation {
            Generation::First => json!({ "apiVersion": "0.0.1", "kind": "dsse", "spec": {
                "envelopeHash": { "algorithm": "sha256", "value": hex::encode(Sha256::digest(self.envelope().to_string())) },
                "payloadHash": { "algorithm": "sha256", "value": hex::encode(Sha256::digest(&self.payload)) },
                "signatures": [{ "signature": base64(&self.signature), "verifier": base64(pem(certificate).as_bytes()) }],
            }}),
            Generation::Second => json!({ "apiVersion": "0.0.2", "kind": "hashedrekord", "spec": { "hashedRekordV002": {
                "data": { "algorithm": "SHA2_256", "digest": base64(&Sha256::digest(encoded(&self.payload))) },
                "signature": { "content": base64(&self.signature), "verifier": {
                    "keyDetails": "PKIX_ECDSA_P256_SHA_256", "x509Certificate": { "rawBytes": base64(certificate) },
                }},
            }}}),
        }
    }

    /// The bundle, with entries of logs and time stamps.
    pub fn bundle(&self, entries: &[Value], stamps: &[Vec<u8>]) -> Value {
        let mut material = match &self.certificate {
            Some(der) => json!({ "certificate": { "rawBytes": base64(der) } }),
            None => json!({ "publicKey": { "hint": "of a test" } }),
        };
        if let Value::Object(material) = &mut material {
            material.insert("tlogEntries".to_owned(), json!(entries));
            let stamps: Vec<Value> = stamps.iter().map(|stamp| json!({ "signedTimestamp": base64(stamp) })).collect();
            material.insert("timestampVerificationData".to_owned(), json!({ "rfc3161Timestamps": stamps }));
        }
        json!({
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json", "verificationMaterial": material, "dsseEnvelope": self.envelope(),
        })
    }

    fn envelope(&self) -> Value {
        json!({ "payload": base64(&self.payload), "payloadType": STATEMENT, "signatures": [{ "sig": base64(&self.signature) }] })
    }
}

/// What is signed of an envelope.
fn encoded(payload: &[u8]) -> Vec<u8> {
    [format!("DSSEv1 {} {STATEMENT} {} ", STATEMENT.len(), payload.len()).as_bytes(), payload].concat()
}

/// A simple signature's document.
pub fn payload(digest: &str) -> Vec<u8> {
    let identity = json!({ "docker-reference": "registry.test/x" });
    json!({
        "critical": { "identity": identity, "image": { "docker-manifest-digest": digest }, "type": "cosign container image signature" },
        "optional": null,
    })
    .to_string()
    .into_bytes()
}

/// The annotations of the document's layer. With a certificate: it, and what a log has of the signature.
pub fn signature_annotations(key: &KeyPair, payload: &[u8], certificate: Option<&[u8]>) -> Result<(Value, Value)> {
    let signature = sign(key, payload)?;
    let mut annotations = json!({ "dev.cosignproject.cosign/signature": base64(&signature) });
    let pem = certificate.map(pem).unwrap_or_default();
    if let (Value::Object(annotations), false) = (&mut annotations, pem.is_empty()) {
        annotations.insert("dev.sigstore.cosign/certificate".to_owned(), json!(pem));
    }
    let body = json!({ "apiVersion": "0.0.1", "kind": "hashedrekord", "spec": {
        "data": { "hash": { "algorithm": "sha256", "value": hex::encode(Sha256::digest(payload)) } },
        "signature": { "content": base64(&signature), "publicKey": { "content": base64(pem.as_bytes()) } },
    }});
    Ok((annotations, body))
}

/// A certificate as text.
pub(crate) fn pem(der: &[u8]) -> String {
    let text = base64(der);
    let mut pem = "-----BEGIN CERTIFICATE-----\n".to_owned();
    for line in text.as_bytes().chunks(64) {
        pem.push_str(&String::from_utf8_lossy(line));
        pem.push('\n');
    }
    pem + "-----END CERTIFICATE-----\n"
}
