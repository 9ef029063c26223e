//! Bytes and numbers as JSON of sigstore carries them: base64, and 64-bit numbers as texts.

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use serde::{Deserialize, Deserializer, de::Error as _};

/// Go writes padding; other writers of the same JSON do not.
const LENIENT: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent));

/// Bytes of a base64 text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Bytes(pub(super) Vec<u8>);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        decode(&text).map(Self).ok_or_else(|| D::Error::custom("it is no base64"))
    }
}

/// A number, or a number in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Int(pub(super) i64);

impl<'de> Deserialize<'de> for Int {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Number(i64),
            Text(String),
        }
        match Either::deserialize(from)? {
            Either::Number(number) => Ok(Self(number)),
            Either::Text(text) => text.parse().map(Self).map_err(|_| D::Error::custom("it is no number")),
        }
    }
}

/// Base64 of a text that may be broken into lines.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let joined: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
    LENIENT.decode(joined).ok()
}
