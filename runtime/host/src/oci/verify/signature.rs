//! A signature, whatever form it came in.

use super::{
    bundle,
    find::{Content, Found},
    simple,
};

/// What cosign says an artifact's signature is; a statement about an artifact (a scan, a list of parts) is none.
pub(super) const COSIGN: &str = "https://sigstore.dev/cosign/sign/v1";

/// A signature that was read; nothing of it is true before it is checked.
#[derive(Debug, Default)]
pub(super) struct Signature {
    /// For messages: where it was.
    pub(super) place: String,
    /// Digests of what it says is signed.
    pub(super) subjects: Vec<String>,
    /// The bytes that were signed.
    pub(super) message: Vec<u8>,
    /// What the log knows the digest of: the message, or what is inside of its envelope.
    pub(super) logged: Vec<u8>,
    /// The signature itself.
    pub(super) bytes: Vec<u8>,
    /// Whose key it is, DER; none where a key is a key.
    pub(super) certificate: Option<Vec<u8>>,
    /// Certificates between that one and a root, DER.
    pub(super) intermediates: Vec<Vec<u8>>,
    /// Entries in transparency logs.
    pub(super) entries: Vec<Entry>,
    /// Time stamps, DER.
    pub(super) stamps: Vec<Vec<u8>>,
}

/// An entry in a transparency log.
#[derive(Debug, Default)]
pub(super) struct Entry {
    /// Identifies the log.
    pub(super) log: Vec<u8>,
    pub(super) index: i64,
    /// Seconds since 1970; only a promise makes it true.
    pub(super) time: i64,
    /// What is logged, JSON.
    pub(super) body: Vec<u8>,
    /// The log's signature over all of the above.
    pub(super) promise: Option<Vec<u8>>,
    pub(super) proof: Option<Proof>,
}

/// That an entry is in the tree of a log.
#[derive(Debug, Default)]
pub(super) struct Proof {
    pub(super) index: i64,
    pub(super) root: Vec<u8>,
    pub(super) size: i64,
    pub(super) hashes: Vec<Vec<u8>>,
    /// The root and size, signed by the log: a signed note.
    pub(super) checkpoint: String,
}

impl Signature {
    /// Reads what was found.
    pub(super) fn read(found: &Found) -> Result<Self, String> {
        let read = match &found.content {
            Content::Simple { payload, annotations } => simple::read(payload, annotations),
            Content::Bundle(json) => bundle::read(json),
        };
        read.map(|signature| Self { place: found.place.clone(), ..signature }).map_err(|problem| format!("{}: {problem}", found.place))
    }
}
