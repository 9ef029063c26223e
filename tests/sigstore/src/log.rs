//! Transparency logs, of signatures and of certificates.

use anyhow::{Context, Result};
use rcgen::{KeyPair, PKCS_ED25519, PublicKeyData as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{authority::sign, json::base64};

/// Which logs there are: the first one promises entries with a time, the second one only proves them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// Rekor.
    First,
    /// Rekor on tiles.
    Second,
}

/// A log.
#[derive(Debug)]
pub struct Log {
    name: String,
    key: KeyPair,
}

impl Log {
    pub(crate) fn new(name: &str) -> Result<Self> {
        Ok(Self { name: name.to_owned(), key: KeyPair::generate()? })
    }

    /// One of the second generation, which signs with another kind of key.
    pub fn tiled(name: &str) -> Result<Self> {
        Ok(Self { name: name.to_owned(), key: KeyPair::generate_for(&PKCS_ED25519)? })
    }

    /// Its host.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its key, DER.
    pub fn public_key(&self) -> Vec<u8> {
        self.key.subject_public_key_info()
    }

    /// What entries call it.
    pub fn id(&self) -> [u8; 32] {
        Sha256::digest(self.public_key()).into()
    }

    /// An entry of a bundle. `time` is what the first generation promises.
    pub fn entry(&self, generation: Generation, body: &Value, time: u64) -> Result<Value> {
        let body = body.to_string();
        let index = 7_u64;
        let mut entry = json!({
            "logIndex": index.to_string(), "logId": { "keyId": base64(&self.id()) }, "canonicalizedBody": base64(body.as_bytes()),
            "inclusionProof": self.proof(generation, body.as_bytes())?,
        });
        if generation == Generation::First
            && let Value::Object(fields) = &mut entry
        {
            fields.insert("integratedTime".to_owned(), json!(time.to_string()));
            fields
                .insert("inclusionPromise".to_owned(), json!({ "signedEntryTimestamp": base64(&self.entry_promise(&body, time, index)?) }));
        }
        Ok(entry)
    }

    /// An entry as the annotation beside a simple signature holds it.
    pub fn annotation(&self, body: &Value, time: u64) -> Result<Value> {
        let body = body.to_string();
        Ok(json!({
            "SignedEntryTimestamp": base64(&self.entry_promise(&body, time, 7)?),
            "Payload": { "body": base64(body.as_bytes()), "integratedTime": time, "logIndex": 7, "logID": hex::encode(self.id()) },
        }))
    }

    fn entry_promise(&self, body: &str, time: u64, index: u64) -> Result<Vec<u8>> {
        let (body, id) = (base64(body.as_bytes()), hex::encode(self.id()));
        sign(&self.key, format!(r#"{{"body":"{body}","integratedTime":{time},"logID":"{id}","logIndex":{index}}}"#).as_bytes())
    }

    /// That `body` is the second of three leaves. A witness signs below the log in the second generation.
    fn proof(&self, generation: Generation, body: &[u8]) -> Result<Value> {
        let leaf = |content: &[u8]| hash(0, &[content]);
        let (first, third) = (leaf(b"first"), leaf(b"third"));
        let root = hash(1, &[&hash(1, &[&first, &leaf(body)]), &third]);
        let origin = if generation == Generation::First { format!("{} - 1", self.name) } else { self.name.clone() };
        let note = format!("{origin}\n3\n{}\n", base64(&root));
        let id = self.id();
        let signature = [id.get(..4).context("an id of a log")?, &sign(&self.key, note.as_bytes())?].concat();
        let witness = match generation {
            Generation::First => String::new(),
            Generation::Second => format!("\u{2014} witness.test {}\n", base64(&[0x5a; 76])),
        };
        let envelope = format!("{note}\n{witness}\u{2014} {} {}\n", self.name, base64(&signature));
        Ok(json!({
            "logIndex": "1", "treeSize": "3", "rootHash": base64(&root), "hashes": [base64(&first), base64(&third)],
            "checkpoint": { "envelope": envelope },
        }))
    }

    /// A list with one promise to take a certificate (RFC 6962, 3.3). `signed` is the part of the certificate that is signed.
    pub(crate) fn promise(&self, milliseconds: u64, issuer: &[u8; 32], signed: &[u8]) -> Result<Vec<u8>> {
        let time = milliseconds.to_be_bytes();
        let length = u32::try_from(signed.len())?.to_be_bytes();
        let entry = [&[0, 0], time.as_slice(), &[0, 1], issuer, length.get(1..).context("a length")?, signed, &[0, 0]].concat();
        let signature = sign(&self.key, &entry)?;
        // Version 1, the log, the time, no extensions, SHA-256 with ECDSA.
        let promise = [&[0], self.id().as_slice(), &time, &[0, 0, 4, 3], two(signature.len())?.as_slice(), &signature].concat();
        let promise = [two(promise.len())?.as_slice(), &promise].concat();
        Ok([two(promise.len())?.as_slice(), &promise].concat())
    }
}

fn two(length: usize) -> Result<[u8; 2]> {
    Ok(u16::try_from(length)?.to_be_bytes())
}

fn hash(kind: u8, parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new_with_prefix([kind]);
    parts.iter().for_each(|part| hash.update(part));
    hash.finalize().into()
}
