//! What is pulled.

use std::collections::BTreeMap;

use super::digest;

/// The content of an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// The reference in its canonical form, or `file:` and a path.
    pub reference: String,
    /// Digest of the manifest (below an index: of the image that was taken); without a manifest [`listing`] of the files.
    pub digest: String,
    /// Digest of the index, when there was one.
    pub index_digest: Option<String>,
    /// Type of the manifest; empty without one.
    pub media_type: String,
    /// What kind of artifact it says it is.
    pub artifact_type: Option<String>,
    /// Annotations of the manifest.
    pub annotations: BTreeMap<String, String>,
    /// Content by path; paths are relative, with `/`, without `.` and `..`.
    pub files: BTreeMap<String, Vec<u8>>,
    /// What its author should know although it was taken.
    pub notes: Vec<String>,
}

/// The digest of a listing: of the lines `<digest of content> <length> <path>`, sorted by path.
#[must_use]
pub fn listing(files: &BTreeMap<String, Vec<u8>>) -> String {
    let lines: String = files.iter().map(|(path, content)| format!("{} {} {path}\n", digest::of(content), content.len())).collect();
    digest::of(lines.as_bytes())
}
