//! What a manifest led to, in a file: a line with the SHA-256 of the rest, then JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Error;
use crate::oci::{Layout, digest};

/// Largest record, bytes.
pub(super) const MAX: u64 = 64 << 10;
/// Changes when a record of before would be misread.
const FORMAT: u32 = 1;

/// What a manifest led to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Known {
    /// SHA-256 of the component: what [`get`](super::Store::get) finds it by.
    pub layer_digest: String,
    /// Digest of the blob that it was in.
    pub blob_digest: String,
    /// How it was packed.
    pub layout: Layout,
    /// Annotations of the manifest.
    pub annotations: BTreeMap<String, String>,
    /// The version that people know it by, such as the tag it was resolved from.
    pub version: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Record {
    format: u32,
    /// The file's name says it too; a file under another name must not count.
    manifest: String,
    known: Known,
}

/// The text of a record.
pub(super) fn write(manifest: &str, known: &Known) -> Result<String, Error> {
    let record = Record { format: FORMAT, manifest: manifest.to_owned(), known: known.clone() };
    // Text, numbers and a map of texts: JSON can hold them.
    let json = serde_json::to_string(&record).unwrap_or_default();
    let text = format!("{}\n{json}", digest::of(json.as_bytes()));
    let found = text.len() as u64;
    if found > MAX {
        return Err(Error::Record { manifest: manifest.to_owned(), found, most: MAX });
    }
    Ok(text)
}

/// What a record says of `manifest`; nothing if another version of this program wrote it.
///
/// # Errors
/// What is wrong with it.
pub(super) fn read(manifest: &str, bytes: &[u8]) -> Result<Option<Known>, String> {
    let json = checked(bytes).ok_or("its checksum is wrong")?;
    let Ok(record) = serde_json::from_slice::<Record>(json) else { return Ok(None) };
    if record.format != FORMAT {
        return Ok(None);
    }
    if record.manifest != manifest {
        return Err(format!("it is the record of manifest {}", record.manifest));
    }
    Ok(Some(record.known))
}

/// The layer that a record leads to, whatever its manifest.
pub(super) fn layer(bytes: &[u8]) -> Option<String> {
    serde_json::from_slice::<Record>(checked(bytes)?).ok().map(|record| record.known.layer_digest)
}

fn checked(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let (sum, json) = (bytes.get(..end)?, bytes.get(end + 1..)?);
    (digest::of(json).as_bytes() == sum).then_some(json)
}
