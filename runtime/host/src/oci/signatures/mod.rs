//! Signatures that are carried along with an artifact: byte for byte, and without being judged, for whoever asks for them later does that.
//!
//! Both forms of cosign are known: the image below the tag `sha256-<digest>.sig`, and bundles that refer to what is signed, by the API of
//! referrers or by the tag that stands in for it.

mod fetch;
mod place;

use std::fmt;

use futures::FutureExt as _;
use serde::{Deserialize, Serialize};

pub(super) use self::fetch::check;
use super::{Credentials, Error, Puller, PushError, Reference, Upload, auth::Scope};

/// Signatures of one artifact that are carried.
pub(super) const MOST: usize = 32;

/// How a signature is found beside what it signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Below a tag that is made of the digest and ends in `.sig`. Several signatures may be there.
    Simple,
    /// It refers to what it signs.
    Bundle,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Simple => "simple",
            Self::Bundle => "bundle",
        })
    }
}

/// One manifest with signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// Digest of what is signed.
    pub of: String,
    /// How it is found.
    pub form: Form,
    /// What lists call it.
    pub artifact_type: Option<String>,
    /// Its manifest and blobs. A blob that several signatures name is there once.
    pub upload: Upload,
}

/// What was found beside an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Signatures {
    /// Signatures of the artifact and, of an index, of its images.
    pub all: Vec<Signature>,
    /// What may be a signature and cannot be carried, for people.
    pub problems: Vec<String>,
}

impl Upload {
    /// Digests of what a signature may be about: of the manifest or index, and of the images of an index.
    #[must_use]
    pub fn digests(&self) -> Vec<String> {
        std::iter::once(&self.digest).chain(self.images.iter().map(|image| &image.digest)).cloned().collect()
    }
}

impl Puller {
    /// Signatures of what `reference` leads to, whose digests these are; at most `most_bytes` of blobs. What cannot be read is a problem of
    /// the answer, and no error.
    ///
    /// # Errors
    /// When the registry does not answer, so that its silence is not taken for "not signed"; see [`Error`].
    pub async fn signatures(
        &self,
        reference: &Reference,
        credentials: &Credentials,
        digests: &[String],
        most_bytes: u64,
    ) -> Result<Signatures, Error> {
        let owned = digests.to_vec();
        self.somewhere(reference, credentials, |call| call.beside(owned.clone(), most_bytes).boxed()).await
    }

    /// Lays signatures beside what they sign in the repository of `reference`. What lies there already stays.
    ///
    /// # Errors
    /// See [`PushError`].
    pub async fn push_signatures(
        &self,
        reference: &Reference,
        credentials: &Credentials,
        signatures: &[Signature],
    ) -> Result<(), PushError> {
        if signatures.is_empty() {
            return Ok(());
        }
        let (call, limit) = self.direct(reference, credentials, Scope::Push)?;
        let late = |_| Err(Error::Timeout { what: format!("pushing signatures to {}", reference.place()), limit });
        Ok(tokio::time::timeout(limit, call.lay(signatures)).await.unwrap_or_else(late)?)
    }
}
