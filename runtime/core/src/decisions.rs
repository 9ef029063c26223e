//! The last good answers: annotation `weir.dev/decisions` on the Deployment (design section 4, semantics "Last answers").
//!
//! Users can edit annotations, so each record carries an HMAC over the object's UID, the slot and the record. An unverified record counts
//! as none. The key never enters a snapshot: it is given to the functions here.

use std::collections::BTreeMap;

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::Sha256;

use crate::policy::{Identity, SlotName};

/// Most bytes the annotation may have.
pub const MAX_BYTES: usize = 128 * 1024;

/// Who may write records that are believed.
pub enum Sealing {
    /// No key: records are neither sealed nor verified. For `weir plan` without a cluster.
    Open,
    /// The operator's key.
    Key(SealingKey),
}

/// Key material. Has no Debug and no Serialize.
pub struct SealingKey(Vec<u8>);

impl SealingKey {
    /// A key of any length; 32 random bytes are right.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

/// One slot's answer in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record<A> {
    /// Who answered.
    pub policy: Identity,
    /// Digest of the input it was asked with.
    pub input: String,
    /// The answer.
    pub answer: A,
    /// The policy that was chosen and failed, where `policy` answered in its place (`onFailure: Fallback`).
    #[serde(default, rename = "fallbackFor", skip_serializing_if = "Option::is_none")]
    pub fallback_for: Option<Identity>,
    /// HMAC-SHA256, hexadecimal; empty when not sealed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub mac: String,
}

/// What was read from the annotation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Stored {
    raw: BTreeMap<String, serde_json::Value>,
    /// The annotation is there but is not what we write.
    pub malformed: bool,
}

/// A record that was looked up.
#[derive(Debug, Clone, PartialEq)]
pub enum Found<A> {
    /// There is none.
    None,
    /// There is one, and it cannot be believed.
    Unverified,
    /// There is one.
    Record(Record<A>),
}

impl Stored {
    /// Reads the annotation's text.
    #[must_use]
    pub fn parse(text: Option<&str>) -> Self {
        let Some(text) = text else { return Self::default() };
        if text.len() > MAX_BYTES {
            return Self { malformed: true, ..Self::default() };
        }
        match serde_json::from_str(text) {
            Ok(raw) => Self { raw, malformed: false },
            Err(_) => Self { malformed: true, ..Self::default() },
        }
    }

    /// The record of a slot, verified.
    #[must_use]
    pub fn get<A: Serialize + DeserializeOwned>(&self, slot: SlotName, uid: &str, sealing: &Sealing) -> Found<A> {
        let Some(value) = self.raw.get(slot.as_str()) else {
            return if self.malformed { Found::Unverified } else { Found::None };
        };
        match Record::<A>::deserialize(value) {
            Ok(record) if verified(&record, slot, uid, sealing) => Found::Record(record),
            Ok(_) | Err(_) => Found::Unverified,
        }
    }
}

/// The annotation's new text, made slot by slot.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Writer {
    records: BTreeMap<String, serde_json::Value>,
}

impl Writer {
    /// Adds a slot's record, sealed where there is a key.
    pub fn put<A: Serialize>(&mut self, slot: SlotName, uid: &str, mut record: Record<A>, sealing: &Sealing) {
        record.mac = match sealing {
            Sealing::Open => String::new(),
            Sealing::Key(key) => hex::encode(mac(key, uid, slot, &record).finalize().into_bytes()),
        };
        if let Ok(value) = serde_json::to_value(&record) {
            self.records.insert(slot.as_str().to_owned(), value);
        }
    }

    /// The text; none when there is nothing to keep, an error when it is over the cap.
    ///
    /// # Errors
    /// The size, when it is over [`MAX_BYTES`].
    pub fn text(&self) -> Result<Option<String>, usize> {
        if self.records.is_empty() {
            return Ok(None);
        }
        let text = serde_json::to_string(&self.records).unwrap_or_default();
        if text.len() > MAX_BYTES { Err(text.len()) } else { Ok(Some(text)) }
    }
}

fn mac<A: Serialize>(key: &SealingKey, uid: &str, slot: SlotName, record: &Record<A>) -> Hmac<Sha256> {
    // HMAC takes keys of any length; the fallback only keeps this total.
    let mut mac =
        Hmac::<Sha256>::new_from_slice(&key.0).unwrap_or_else(|_| Hmac::<Sha256>::new(&hmac::digest::Key::<Hmac<Sha256>>::default()));
    let body = (uid, slot.as_str(), &record.policy, &record.input, &record.answer);
    // A record without a stand-in is sealed as it always was.
    let body = match &record.fallback_for {
        None => serde_json::to_vec(&body),
        Some(failed) => serde_json::to_vec(&(body, failed)),
    };
    mac.update(&body.unwrap_or_default());
    mac
}

fn verified<A: Serialize>(record: &Record<A>, slot: SlotName, uid: &str, sealing: &Sealing) -> bool {
    match sealing {
        Sealing::Open => true,
        Sealing::Key(key) => hex::decode(&record.mac).is_ok_and(|tag| mac(key, uid, slot, record).verify_slice(&tag).is_ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record<String> {
        let policy = Identity { source: "builtin".into(), digest: "d".into(), settings_digest: "s".into() };
        Record { policy, input: "i".into(), answer: "a".into(), fallback_for: None, mac: String::new() }
    }

    #[test]
    fn a_record_is_believed_only_for_its_object_slot_and_key() {
        let key = Sealing::Key(SealingKey::new(vec![7; 32]));
        let mut writer = Writer::default();
        writer.put(SlotName::KonnectEnv, "uid", record(), &key);
        let text = writer.text().unwrap().unwrap();
        let stored = Stored::parse(Some(&text));
        assert!(matches!(stored.get::<String>(SlotName::KonnectEnv, "uid", &key), Found::Record(_)));
        assert_eq!(stored.get::<String>(SlotName::KonnectEnv, "other", &key), Found::Unverified);
        assert_eq!(stored.get::<String>(SlotName::ConflictResolution, "uid", &key), Found::None);
        let other = Sealing::Key(SealingKey::new(vec![8; 32]));
        assert_eq!(stored.get::<String>(SlotName::KonnectEnv, "uid", &other), Found::Unverified);
        let stands_in =
            text.replace("\"answer\"", "\"fallbackFor\":{\"source\":\"s\",\"digest\":\"d\",\"settingsDigest\":\"s\"},\"answer\"");
        assert_ne!(stands_in, text);
        let stands_in = Stored::parse(Some(&stands_in));
        assert_eq!(stands_in.get::<String>(SlotName::KonnectEnv, "uid", &key), Found::Unverified, "who failed is sealed as well");
        let edited = Stored::parse(Some(&text.replace("\"a\"", "\"b\"")));
        assert_eq!(edited.get::<String>(SlotName::KonnectEnv, "uid", &key), Found::Unverified);
        assert!(matches!(edited.get::<String>(SlotName::KonnectEnv, "uid", &Sealing::Open), Found::Record(_)));
    }

    #[test]
    fn garbage_is_unverified() {
        for text in ["", "[]", "{\"konnect-env\": 3}"] {
            assert_eq!(Stored::parse(Some(text)).get::<String>(SlotName::KonnectEnv, "u", &Sealing::Open), Found::Unverified, "{text}");
        }
    }
}
