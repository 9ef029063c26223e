//! Transparency logs: that a signature was entered into one that the trust root names, and when.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use serde_json::Value;
use sha2::{Digest as _, Sha256, Sha384, Sha512};
use sigstore::rekor::models::{InclusionProof, checkpoint::SignedCheckpoint};

use super::{
    encoding::decode,
    signature::{Entry, Proof, Signature},
    trust::{Log, TrustRoot},
};

/// Signatures below a checkpoint that are tried: the log's and its witnesses'.
const MAX_WITNESSES: usize = 8;
/// Entries of one signature that are tried.
const MAX_ENTRIES: usize = 4;

/// The times that logs vouch for, of those entries of `signature` that are true. Newer logs vouch for none.
///
/// # Errors
/// Why no entry is true.
pub(super) fn logged(signature: &Signature, trust: &TrustRoot) -> Result<Vec<u64>, String> {
    let mut times = Vec::new();
    let mut problem = "it is in no transparency log, and the trust root names one".to_owned();
    let mut any = false;
    for entry in signature.entries.iter().take(MAX_ENTRIES) {
        match checked(entry, signature, trust) {
            Ok(time) => {
                any = true;
                times.extend(time);
            }
            Err(wrong) => problem = wrong,
        }
    }
    if any { Ok(times) } else { Err(problem) }
}

fn checked(entry: &Entry, signature: &Signature, trust: &TrustRoot) -> Result<Option<u64>, String> {
    let log = trust.logs.iter().find(|log| log.id == entry.log).ok_or("its transparency log is not in the trust root")?;
    let time = match &entry.promise {
        Some(promise) => Some(promised(entry, promise, log)?),
        None => None,
    };
    match &entry.proof {
        Some(proof) => included(entry, proof, log)?,
        None if time.is_none() => return Err("its log entry has neither promise nor proof".to_owned()),
        None => {}
    }
    let logged = Logged::read(&entry.body).ok_or("its log entry is of a kind that is not read here")?;
    if !logged.is(signature) {
        return Err("its log entry is about another signature".to_owned());
    }
    Ok(time)
}

/// The time at which the log says, with its signature, that it took the entry.
fn promised(entry: &Entry, promise: &[u8], log: &Log) -> Result<u64, String> {
    // Canonical JSON: the keys in this order, no blanks, and nothing in the values that needs an escape.
    let said = format!(
        r#"{{"body":"{}","integratedTime":{},"logID":"{}","logIndex":{}}}"#,
        STANDARD.encode(&entry.body),
        entry.time,
        hex::encode(&entry.log),
        entry.index
    );
    if !log.key.signed(said.as_bytes(), promise) {
        return Err("the promise of its log entry is not signed by that log".to_owned());
    }
    let time = u64::try_from(entry.time).map_err(|_| "its log entry is from before 1970")?;
    if log.valid.holds(time) {
        Ok(time)
    } else {
        Err("its log entry is from a time at which the trust root does not trust that log".to_owned())
    }
}

/// Whether the entry is in the tree whose root the log signed. A witness may have signed before or after the log, and the crate
/// reads one signature, so each is tried by itself.
fn included(entry: &Entry, proof: &Proof, log: &Log) -> Result<(), String> {
    let broken = || "the proof of its log entry is malformed".to_owned();
    let hash = |bytes: &Vec<u8>| <[u8; 32]>::try_from(bytes.as_slice()).map_err(|_| broken());
    let (root, hashes) = (hash(&proof.root)?, proof.hashes.iter().map(hash).collect::<Result<Vec<_>, _>>()?);
    let size = u64::try_from(proof.size).map_err(|_| broken())?;
    if !(0..proof.size).contains(&proof.index) {
        return Err(broken());
    }
    let (note, signatures) = proof.checkpoint.split_once("\n\n").ok_or_else(broken)?;
    let proves = |line: &str| {
        let checkpoint = serde_json::from_value::<SignedCheckpoint>(Value::String(format!("{note}\n\n{line}\n"))).ok();
        let proof = InclusionProof::new(proof.index, root, size, hashes.clone(), checkpoint);
        proof.verify(&entry.body, log.key.inner()).is_ok()
    };
    if signatures.lines().filter(|line| !line.is_empty()).take(MAX_WITNESSES).any(proves) {
        return Ok(());
    }
    Err("its log entry is not proven to be in that log".to_owned())
}

/// What a log knows of a signature.
struct Logged {
    /// Digest of what was signed.
    digest: Vec<u8>,
    algorithm: String,
    /// Whether it is of what is inside of the envelope that was signed.
    inside: bool,
    signature: Vec<u8>,
    /// DER.
    certificate: Vec<u8>,
}

impl Logged {
    /// Whether it is this signature: the same bytes, by the same certificate, of the same content.
    fn is(&self, signature: &Signature) -> bool {
        let content = if self.inside { &signature.logged } else { &signature.message };
        self.signature == signature.bytes
            && signature.certificate.as_ref() == Some(&self.certificate)
            && hash(&self.algorithm, content).is_some_and(|digest| digest == self.digest)
    }

    /// Reads an entry: of the first generation of logs, which writes PEM in base64 and digests in hexadecimal digits, or the second.
    fn read(body: &[u8]) -> Option<Self> {
        let body: Value = serde_json::from_slice(body).ok()?;
        let text = |path: &str| body.pointer(path).and_then(Value::as_str);
        let bytes = |path: String| text(&path).and_then(decode);
        let first = |hashed: &str, signed: &str, key: &str, inside: bool| {
            Some(Self {
                digest: hex::decode(text(&format!("/spec/{hashed}/value"))?).ok()?,
                algorithm: text(&format!("/spec/{hashed}/algorithm"))?.to_owned(),
                inside,
                signature: bytes(format!("/spec/{signed}"))?,
                certificate: pem(&bytes(format!("/spec/{key}"))?)?,
            })
        };
        let second = |hashed: &str, signed: &str, inside: bool| {
            Some(Self {
                digest: bytes(format!("/spec/{hashed}/digest"))?,
                algorithm: text(&format!("/spec/{hashed}/algorithm"))?.to_owned(),
                inside,
                signature: bytes(format!("/spec/{signed}/content"))?,
                certificate: bytes(format!("/spec/{signed}/verifier/x509Certificate/rawBytes"))?,
            })
        };
        match (text("/kind")?, text("/apiVersion")?) {
            ("hashedrekord", "0.0.1") => first("data/hash", "signature/content", "signature/publicKey/content", false),
            ("dsse", "0.0.1") => first("payloadHash", "signatures/0/signature", "signatures/0/verifier", true),
            ("hashedrekord", "0.0.2") => second("hashedRekordV002/data", "hashedRekordV002/signature", false),
            ("dsse", "0.0.2") => second("dsseV002/payloadHash", "dsseV002/signatures/0", true),
            _ => None,
        }
    }
}

fn hash(algorithm: &str, content: &[u8]) -> Option<Vec<u8>> {
    match algorithm {
        "sha256" | "SHA2_256" => Some(Sha256::digest(content).to_vec()),
        "sha384" | "SHA2_384" => Some(Sha384::digest(content).to_vec()),
        "sha512" | "SHA2_512" => Some(Sha512::digest(content).to_vec()),
        _ => None,
    }
}

fn pem(pem: &[u8]) -> Option<Vec<u8>> {
    CertificateDer::from_pem_slice(pem).ok().map(|der| der.to_vec())
}
