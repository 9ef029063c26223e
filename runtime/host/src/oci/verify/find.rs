//! Fetches what may be signatures. What cannot be read is noted and passed over, so that nobody hides a signature behind rubbish; a
//! registry that does not answer is an error, so that its silence is not taken for "not signed".

use std::collections::{BTreeMap, BTreeSet};

use super::super::{
    Error, Limits,
    call::Call,
    manifest::{Descriptor, Document, Image},
    referrers::{Referrer, tag},
    text,
};

/// Signatures that are read, and manifests that are opened for them.
const MAX_SIGNATURES: usize = 32;
/// One signature, bytes.
pub(in super::super) const MAX_BYTES: u64 = 1 << 20;
/// Layers of other artifacts are only looked past, so their sizes are not limited here.
pub(in super::super) const LIMITS: Limits =
    Limits { manifest_bytes: 4 << 20, index_entries: 256, layers: 256, layer_bytes: u64::MAX, download_bytes: u64::MAX, ..Limits::PLUGIN };
const SIMPLE: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle";
/// What a list calls an artifact of cosign; the last ones are what tools fall back to.
const KINDS: [&str; 4] = [
    BUNDLE,
    "application/vnd.dev.cosign.artifact.sig.v1+json",
    "application/vnd.oci.empty.v1+json",
    "application/vnd.oci.image.config.v1+json",
];

/// What may be a signature.
#[derive(Debug)]
pub(super) struct Found {
    /// For messages.
    pub(super) place: String,
    pub(super) content: Content,
}

/// As it came.
#[derive(Debug)]
pub(super) enum Content {
    /// A document and the annotations of its layer.
    Simple { payload: Vec<u8>, annotations: BTreeMap<String, String> },
    /// A bundle, JSON.
    Bundle(Vec<u8>),
}

/// All that was found.
#[derive(Debug, Default)]
pub(super) struct Search {
    pub(super) found: Vec<Found>,
    /// What could not be fetched for good.
    pub(super) problems: Vec<String>,
    /// Every place that was looked at.
    pub(super) looked_for: Vec<String>,
    /// Manifests opened so far.
    opened: BTreeSet<String>,
}

impl Call<'_> {
    /// Everything that may be a signature of one of `digests`.
    pub(super) async fn signatures(&mut self, digests: &[&str]) -> Result<Search, Error> {
        let mut search = Search::default();
        for digest in digests {
            if let Some(tag) = tag(digest, ".sig") {
                search.looked_for.push(format!("tag {tag}"));
                self.open(&tag, &format!("tag {tag}"), false, &mut search).await?;
            }
            search
                .looked_for
                .push(format!("referrers of {digest}{}", tag(digest, "").map(|tag| format!(" (tag {tag})")).unwrap_or_default()));
            let referrers = self.referrers(digest, &LIMITS).await;
            for referrer in fetched(&mut search.problems, referrers)?.map(likely).unwrap_or_default() {
                let place = format!("referrer {}", referrer.digest);
                self.open(&referrer.digest, &place, true, &mut search).await?;
            }
        }
        Ok(search)
    }

    /// The signatures of one manifest, which somebody says is there or which may be there.
    async fn open(&mut self, version: &str, place: &str, listed: bool, search: &mut Search) -> Result<(), Error> {
        if search.opened.contains(version) {
            return Ok(());
        }
        if search.opened.len() >= MAX_SIGNATURES || search.found.len() >= MAX_SIGNATURES {
            note(&mut search.problems, format!("only the first {MAX_SIGNATURES} are read; delete old signatures"));
            return Ok(());
        }
        let manifest = match self.manifest(version, &LIMITS).await {
            // Most artifacts have signatures of one form only; what is listed should be there.
            Err(Error::NotFound { .. }) if !listed => return Ok(()),
            fetched => fetched,
        };
        search.opened.insert(version.to_owned());
        let Some(manifest) = fetched(&mut search.problems, manifest)? else { return Ok(()) };
        match Document::parse(&manifest.bytes, Some(&manifest.media_type), &LIMITS) {
            Ok(Document::Image(image)) => self.layers(image, place, search).await,
            Ok(Document::Index(_)) => {
                note(&mut search.problems, format!("{place} is an index, which is no signature"));
                Ok(())
            }
            Err(error) => {
                note(&mut search.problems, format!("{place}: {error}"));
                Ok(())
            }
        }
    }

    async fn layers(&mut self, image: Image, place: &str, search: &mut Search) -> Result<(), Error> {
        for layer in image.layers {
            if !is_signature(&layer.media_type) {
                continue;
            }
            let bundle = layer.media_type.starts_with(BUNDLE);
            if search.found.len() >= MAX_SIGNATURES {
                note(&mut search.problems, format!("only the first {MAX_SIGNATURES} are read; delete old signatures"));
                break;
            }
            if layer.size > MAX_BYTES {
                note(
                    &mut search.problems,
                    format!("{place}: a signature of {}; at most {} are read", text::bytes(layer.size), text::bytes(MAX_BYTES)),
                );
                continue;
            }
            let bytes = self.signature(&layer).await;
            let Some(bytes) = fetched(&mut search.problems, bytes)? else { continue };
            let content = if bundle { Content::Bundle(bytes) } else { Content::Simple { payload: bytes, annotations: layer.annotations } };
            search.found.push(Found { place: place.to_owned(), content });
        }
        Ok(())
    }

    async fn signature(&mut self, layer: &Descriptor) -> Result<Vec<u8>, Error> {
        let session = &self.session;
        self.patience.attempt(|| session.blob(layer)).await
    }
}

/// What was fetched, if it was; an error that is about this content only is noted.
pub(in super::super) fn fetched<T>(problems: &mut Vec<String>, fetched: Result<T, Error>) -> Result<Option<T>, Error> {
    match fetched {
        Ok(fetched) => Ok(Some(fetched)),
        Err(error) if is_of_content(&error) => {
            note(problems, error.to_string());
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Notes a problem, once.
pub(in super::super) fn note(problems: &mut Vec<String>, problem: String) {
    if !problems.contains(&problem) {
        problems.push(problem);
    }
}

/// Whether a layer of this type is a signature.
pub(in super::super) fn is_signature(media_type: &str) -> bool {
    media_type.starts_with(BUNDLE) || media_type == SIMPLE
}

/// Whether an error is about this content only, and says nothing of the registry.
fn is_of_content(error: &Error) -> bool {
    matches!(
        error,
        Error::NotFound { .. }
            | Error::NotRegistry { .. }
            | Error::Digest { .. }
            | Error::TooLarge { .. }
            | Error::TooShort { .. }
            | Error::Manifest { .. }
    )
}

/// Those that may be signatures, bundles first.
pub(in super::super) fn likely(referrers: Vec<Referrer>) -> Vec<Referrer> {
    let rank = |referrer: &Referrer| {
        let kind = referrer.artifact_type.as_deref().unwrap_or_default();
        if kind.is_empty() { Some(KINDS.len()) } else { KINDS.iter().position(|known| kind.starts_with(known)) }
    };
    let mut likely: Vec<_> = referrers.into_iter().filter_map(|referrer| rank(&referrer).map(|rank| (rank, referrer))).collect();
    likely.sort_by_key(|(rank, _)| *rank);
    likely.into_iter().map(|(_, referrer)| referrer).collect()
}
