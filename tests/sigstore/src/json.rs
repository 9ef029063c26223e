//! Bytes in JSON.

use ::base64::{Engine as _, engine::general_purpose::STANDARD};

/// Base64 as Go writes it.
pub(crate) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}
