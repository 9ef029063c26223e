//! Artifact to reference: what the registry does not have yet is sent, content first, names last.

use reqwest::{Method, header::LOCATION};

use super::{
    Credentials, Error, Puller, Reference,
    auth::{Scope, Session},
    call::Call,
    digest,
    fetch::{DIGEST, same},
    http::{Content, Request, place},
    package::CNCF_CONFIG,
    text,
};

/// Where a registry with the API of referrers says what a manifest refers to.
const SUBJECT: &str = "oci-subject";
/// Type of what has none.
const BYTES: &str = "application/octet-stream";
/// What registries say of manifests whose types they do not know.
const INVALID: [&str; 2] = ["MANIFEST_INVALID", "UNSUPPORTED"];

/// Why a push fails.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// A digest is what a push results in.
    #[error("{0} names a digest, which follows from what is pushed; write registry/repository:tag")]
    Pinned(Reference),
    /// The registry does not know the layout.
    #[error("{source}; the registry may not know configs of type {CNCF_CONFIG}: try `--layout legacy`")]
    Layout {
        /// Its answer.
        source: Box<Error>,
    },
    /// Anything else.
    #[error(transparent)]
    Registry(#[from] Error),
}

/// Content under its digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// Type of its descriptor.
    pub media_type: String,
    /// Digest of `bytes`.
    pub digest: String,
    /// The content.
    pub bytes: Vec<u8>,
}

/// All that a reference leads to, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    /// Type of the manifest or index.
    pub media_type: String,
    /// Digest of `manifest`.
    pub digest: String,
    /// The manifest or index.
    pub manifest: Vec<u8>,
    /// What a manifest names. A blob that several images name is there once.
    pub blobs: Vec<Blob>,
    /// What an index names.
    pub images: Vec<Upload>,
}

/// What a push did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pushed {
    /// The reference with the digest: what stays the same when the tag moves.
    pub reference: Reference,
    /// Digest of the manifest or index.
    pub digest: String,
    /// Blobs that were sent.
    pub sent: usize,
    /// Blobs that were there already.
    pub present: usize,
}

impl Blob {
    /// Content with its SHA-256 digest.
    #[must_use]
    pub fn new(media_type: &str, bytes: Vec<u8>) -> Self {
        Self { media_type: media_type.to_owned(), digest: digest::of(&bytes), bytes }
    }
}

impl Upload {
    /// A manifest and what it names.
    #[must_use]
    pub fn new(media_type: &str, manifest: Vec<u8>, blobs: Vec<Blob>) -> Self {
        Self { media_type: media_type.to_owned(), digest: digest::of(&manifest), manifest, blobs, images: Vec::new() }
    }

    /// All blobs, those of images included.
    pub fn all_blobs(&self) -> impl Iterator<Item = &Blob> {
        self.images.iter().flat_map(|image| &image.blobs).chain(&self.blobs)
    }

    /// Bytes of all blobs.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.all_blobs().map(|blob| blob.bytes.len() as u64).sum()
    }
}

impl Puller {
    /// Sends what the registry does not have of `upload` and puts it under the tag of `reference`. Mirrors are not asked: a push goes to
    /// the registry itself.
    ///
    /// # Errors
    /// See [`PushError`]. What was sent before a failure stays in the registry, without a name.
    pub async fn push(&self, reference: &Reference, credentials: &Credentials, upload: &Upload) -> Result<Pushed, PushError> {
        if reference.digest().is_some() {
            return Err(PushError::Pinned(reference.clone()));
        }
        let (call, limit) = self.direct(reference, credentials, Scope::Push)?;
        let late = |_| Err(Error::Timeout { what: format!("pushing {reference}"), limit });
        tokio::time::timeout(limit, call.push(upload)).await.unwrap_or_else(late).map_err(|error| {
            let invalid = matches!(&error, Error::Status { code, .. } if INVALID.contains(&code.as_str()));
            if invalid && cncf(upload) { PushError::Layout { source: Box::new(error) } } else { error.into() }
        })
    }

    /// Copies what `from` leads to, byte for byte, so that its digests stay what they are; of an index all images. Everything is in
    /// memory between the two registries, at most `most_bytes`.
    ///
    /// # Errors
    /// See [`PushError`].
    pub async fn copy(
        &self,
        from: (&Reference, &Credentials),
        to: (&Reference, &Credentials),
        most_bytes: u64,
    ) -> Result<Pushed, PushError> {
        if to.0.digest().is_some() {
            return Err(PushError::Pinned(to.0.clone()));
        }
        let upload = self.whole(from.0, from.1, most_bytes).await?;
        self.push(to.0, to.1, &upload).await
    }
}

fn cncf(upload: &Upload) -> bool {
    upload.all_blobs().any(|blob| blob.media_type == CNCF_CONFIG)
}

impl Call<'_> {
    async fn push(mut self, upload: &Upload) -> Result<Pushed, Error> {
        let (sent, present) = self.give(upload).await?;
        let session = &self.session;
        for image in &upload.images {
            self.patience.attempt(|| session.put(&image.digest, image)).await?;
        }
        self.patience.attempt(|| session.put(session.reference.version(), upload)).await?;
        let reference = session.reference.with_digest(&upload.digest).unwrap_or_else(|_| session.reference.clone());
        Ok(Pushed { reference, digest: upload.digest.clone(), sent, present })
    }

    /// Sends the blobs that the registry does not have: how many were sent, and how many were there.
    pub(super) async fn give(&mut self, upload: &Upload) -> Result<(usize, usize), Error> {
        let (mut sent, mut present) = (0, 0);
        for blob in upload.all_blobs() {
            let session = &self.session;
            if self.patience.attempt(|| session.has(blob)).await? {
                present += 1;
            } else {
                self.patience.attempt(|| session.send(blob)).await?;
                sent += 1;
            }
        }
        Ok((sent, present))
    }
}

impl Session<'_> {
    /// Whether the registry has a blob. One that does not know the question, or does not answer it to everybody, is sent the blob.
    async fn has(&self, blob: &Blob) -> Result<bool, Error> {
        let url = self.url("blobs", &blob.digest)?;
        let what = format!("blob {} of {}", blob.digest, self.reference.place());
        match self.ask(&Method::HEAD, &url, "*/*", &what, &what).await {
            Ok(response) => {
                let length = response.headers().get(reqwest::header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
                // Of a length that is not ours there is no use.
                Ok(length.and_then(|length| length.parse::<usize>().ok()).is_none_or(|length| length == blob.bytes.len()))
            }
            Err(Error::NotFound { .. } | Error::Denied { .. }) => Ok(false),
            Err(error @ Error::Status { .. }) if !error.transient() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Sends a blob in one piece to where the registry wants it.
    async fn send(&self, blob: &Blob) -> Result<(), Error> {
        let what = format!("blob {} of {}", blob.digest, self.reference.place());
        let size = blob.bytes.len() as u64;
        let begin = Content { media_type: BYTES, bytes: &[] };
        let begin = Request { content: Some(begin), ..Request::new(Method::POST, self.url("blobs/uploads", "")?, "*/*") };
        let begun = self.exchange(&begin, &format!("an upload to {}", self.reference.place()), &self.reference.place()).await?;
        let at = place(begun.url());
        let location = begun.headers().get(LOCATION).and_then(|location| begun.url().join(location.to_str().ok()?).ok());
        let mut url = location.ok_or_else(|| Error::NotRegistry {
            at: at.clone(),
            what: "an upload".to_owned(),
            kind: "no place to upload to".to_owned(),
        })?;
        self.transport.downgrade(&at, &url)?;
        url.query_pairs_mut().append_pair("digest", &blob.digest);
        self.moved(&what, 0, size);
        let content = Content { media_type: BYTES, bytes: &blob.bytes };
        let stored = self.exchange(&Request { content: Some(content), ..Request::new(Method::PUT, url, "*/*") }, &what, &what).await?;
        self.moved(&what, size, size);
        self.stored(&what, &blob.digest, &stored)
    }

    /// Puts a manifest under a tag or its digest. Whether the registry says that it knows what the manifest refers to, and lists it there.
    pub(super) async fn put(&self, version: &str, upload: &Upload) -> Result<bool, Error> {
        let what = format!("the manifest of {}", self.reference);
        let content = Content { media_type: &upload.media_type, bytes: &upload.manifest };
        let request = Request { content: Some(content), ..Request::new(Method::PUT, self.url("manifests", version)?, "*/*") };
        let stored = self.exchange(&request, &what, &self.reference.place()).await?;
        self.stored(&what, &upload.digest, &stored)?;
        Ok(stored.headers().contains_key(SUBJECT))
    }

    /// Whether what the registry says it stored is what was sent. Not every registry says it.
    fn stored(&self, what: &str, sent: &str, response: &reqwest::Response) -> Result<(), Error> {
        let found = response.headers().get(DIGEST).and_then(|found| found.to_str().ok()).filter(|found| digest::valid(found));
        // A registry may know the same content by another algorithm.
        match found.filter(|found| found.split(':').next() == sent.split(':').next()) {
            Some(found) => same(&text::name(what), sent, found),
            None => Ok(()),
        }
    }
}
