//! Digests. One place, so that every hash in names, annotations and keys is made the same way.

use serde::Serialize;
use sha2::{Digest, Sha256};

/// `sha256:` and 64 hexadecimal digits of `bytes`.
#[must_use]
pub fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

/// The digest of a value's JSON. Field order is the declaration's and maps are sorted, so equal values have equal digests.
/// A value that JSON cannot hold (none of ours) digests as its error text.
#[must_use]
pub fn digest_json<T: Serialize + ?Sized>(value: &T) -> String {
    match serde_json::to_vec(value) {
        Ok(bytes) => digest(&bytes),
        Err(error) => digest(error.to_string().as_bytes()),
    }
}

/// The first `digits` hexadecimal digits of the digest of `bytes`: for names.
#[must_use]
pub fn short(bytes: &[u8], digits: usize) -> String {
    hex::encode(Sha256::digest(bytes)).chars().take(digits).collect()
}
