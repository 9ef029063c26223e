//! A sigstore for tests: an authority that issues certificates for names, a log of signatures, a log of certificates and a clock, each
//! with keys of its own; what cosign makes of them, so that every part of it can be spoilt; and [servers](Servers) for real cosign.
//!
//! Nothing here checks anything. Errors are `anyhow`: whoever uses this crate is a test.

mod authority;
mod bundle;
mod clock;
mod der;
mod json;
mod log;
mod server;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use rcgen::KeyPair;
use serde_json::{Value, json};

pub use authority::{Authority, Identity};
pub use bundle::{Signed, payload, signature_annotations};
pub use clock::Clock;
pub use log::{Generation, Log};
pub use server::Servers;

use json::base64;

/// Everything that a trust root names.
#[derive(Debug)]
pub struct Sigstore {
    /// Issues certificates.
    pub authority: Authority,
    /// Logs signatures.
    pub log: Log,
    /// Logs certificates.
    pub certificates: Log,
    /// Tells the time.
    pub clock: Clock,
}

/// What a trust root names beside its authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    /// The log of signatures.
    pub log: bool,
    /// The log of certificates.
    pub certificates: bool,
    /// The clock.
    pub clock: bool,
}

impl Named {
    /// All.
    pub const ALL: Self = Self { log: true, certificates: true, clock: true };
    /// A private sigstore without logs.
    pub const CLOCK: Self = Self { log: false, certificates: false, clock: true };
}

impl Sigstore {
    /// A new one, trusted from now on.
    pub fn new() -> Result<Self> {
        Ok(Self {
            authority: Authority::new()?,
            log: Log::new("log.sigstore.test")?,
            certificates: Log::new("ct.sigstore.test")?,
            clock: Clock::new()?,
        })
    }

    /// Its `trusted_root.json`.
    pub fn trusted_root(&self, named: Named) -> Value {
        let chain = |certificates: &[Vec<u8>]| {
            let certificates: Vec<Value> = certificates.iter().map(|der| json!({ "rawBytes": base64(der) })).collect();
            json!({ "certificates": certificates })
        };
        let valid = json!({ "start": "2020-01-01T00:00:00.000Z" });
        let log = |log: &Log| {
            json!({
                "baseUrl": format!("https://{}", log.name()), "hashAlgorithm": "SHA2_256", "logId": { "keyId": base64(&log.id()) },
                "publicKey": { "rawBytes": base64(&log.public_key()), "keyDetails": "PKIX_ECDSA_P256_SHA_256", "validFor": valid },
            })
        };
        let mut root = json!({
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "certificateAuthorities": [{ "subject": { "commonName": "root" }, "uri": "https://fulcio.sigstore.test",
                "certChain": chain(&self.authority.chain()), "validFor": valid }],
        });
        for (wanted, name, value) in [
            (named.log, "tlogs", json!([log(&self.log)])),
            (named.certificates, "ctlogs", json!([log(&self.certificates)])),
            (
                named.clock,
                "timestampAuthorities",
                json!([{ "subject": { "commonName": "clock" }, "certChain": chain(&self.clock.chain()), "validFor": valid }]),
            ),
        ] {
            if wanted && let Value::Object(root) = &mut root {
                root.insert(name.to_owned(), value);
            }
        }
        root
    }
}

/// A key pair as cosign makes them.
pub fn key() -> Result<KeyPair> {
    Ok(KeyPair::generate()?)
}

/// The time, seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}
