//! Digests as registries write them: `sha256:` or `sha512:` and lower-case hexadecimal digits.

use sha2::{Digest as _, Sha256, Sha512};

/// Whether `text` is a digest that can be checked. Everything that names a blob passes here before it becomes a path or a URL.
pub(super) fn valid(text: &str) -> bool {
    let digits = match text.split_once(':') {
        Some(("sha256", hex)) if hex.len() == 64 => hex,
        Some(("sha512", hex)) if hex.len() == 128 => hex,
        Some(_) | None => return false,
    };
    digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// The SHA-256 digest of `bytes`.
pub(super) fn of(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

/// The digest of `bytes` in the algorithm of `like`.
pub(super) fn same_kind(bytes: &[u8], like: &str) -> String {
    match like.split_once(':') {
        Some(("sha512", _)) => format!("sha512:{}", hex::encode(Sha512::digest(bytes))),
        Some(_) | None => of(bytes),
    }
}
