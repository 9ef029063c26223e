//! What a reference leads to, byte for byte: nothing is unpacked or chosen from.

use std::collections::BTreeSet;

use futures::FutureExt as _;
use serde::Deserialize;

use super::{
    Blob, Credentials, Error, Limits, ManifestError, Puller, Reference, Upload, bounded,
    call::Call,
    digest,
    fetch::length,
    manifest::{Descriptor, OCI_IMAGE, OCI_INDEX},
    text,
};

/// What a manifest or an index names.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Links {
    #[serde(default)]
    media_type: Option<String>,
    #[serde(default)]
    config: Option<Descriptor>,
    #[serde(default, alias = "blobs", deserialize_with = "bounded::list")]
    layers: Option<Vec<Descriptor>>,
    #[serde(default, deserialize_with = "bounded::list")]
    manifests: Option<Vec<Descriptor>>,
}

impl Links {
    /// Reads them; every digest can be checked.
    pub(super) fn parse(manifest: &[u8], limits: &Limits) -> Result<Self, ManifestError> {
        let links: Self = serde_json::from_slice(manifest).map_err(|e| ManifestError::Malformed(text::said(&e.to_string())))?;
        if links.manifests.is_some() && (links.layers.is_some() || links.config.is_some()) {
            return Err(ManifestError::Ambiguous);
        }
        for (what, list, most) in [("layers", &links.layers, limits.layers), ("entries", &links.manifests, limits.index_entries)] {
            let found = list.as_ref().map_or(0, Vec::len);
            if found > most {
                return Err(ManifestError::Many { what, found, most });
            }
        }
        let wrong = links.blobs().chain(links.images()).find(|entry| !digest::valid(&entry.digest)).map(|entry| entry.digest.clone());
        wrong.map_or(Ok(links), |digest| Err(ManifestError::Digest(digest)))
    }

    /// Its own type, else the one it was served as or is named with, else what it looks like.
    pub(super) fn media_type(&self, named: &str) -> String {
        let own = self.media_type.as_deref().filter(|kind| !kind.is_empty());
        let named = named.split(';').next().map(str::trim).filter(|kind| kind.starts_with("application/vnd."));
        own.or(named).unwrap_or(if self.manifests.is_some() { OCI_INDEX } else { OCI_IMAGE }).to_owned()
    }

    /// Config and layers.
    pub(super) fn blobs(&self) -> impl Iterator<Item = &Descriptor> {
        self.config.iter().chain(self.layers.iter().flatten())
    }

    /// The entries of an index.
    pub(super) fn images(&self) -> impl Iterator<Item = &Descriptor> {
        self.manifests.iter().flatten()
    }
}

/// What was taken already, and how much may still come.
pub(super) struct Room {
    seen: BTreeSet<String>,
    most: u64,
    left: u64,
}

impl Room {
    pub(super) fn new(most: u64) -> Self {
        Self { seen: BTreeSet::new(), most, left: most }
    }

    /// The blobs that are still to be taken. They fit.
    pub(super) fn missing<'a>(&mut self, links: &'a Links) -> Result<Vec<&'a Descriptor>, ManifestError> {
        let mut missing = Vec::new();
        for blob in links.blobs() {
            if !self.seen.insert(blob.digest.clone()) {
                continue;
            }
            let what = || "the sum of all blobs".to_owned();
            let found = || self.most.saturating_sub(self.left).saturating_add(blob.size);
            self.left =
                self.left.checked_sub(blob.size).ok_or_else(|| ManifestError::Large { what: what(), found: found(), most: self.most })?;
            missing.push(blob);
        }
        Ok(missing)
    }
}

/// The entries of an index, each once.
pub(super) fn distinct(links: &Links) -> Vec<&Descriptor> {
    let mut seen = BTreeSet::new();
    links.images().filter(|entry| seen.insert(&entry.digest)).collect()
}

/// Limits for everything of at most `most` bytes.
pub(super) fn limits(most: u64) -> Limits {
    Limits { layer_bytes: most, download_bytes: most, unpacked_bytes: most, ..Limits::PLUGIN }
}

impl Puller {
    /// All that `reference` leads to, byte for byte: manifest and blobs, of an index all images with theirs; at most `most_bytes` of
    /// blobs.
    ///
    /// # Errors
    /// See [`Error`]; whether it may pass by itself is [`Error::transient`].
    pub async fn whole(&self, reference: &Reference, credentials: &Credentials, most_bytes: u64) -> Result<Upload, Error> {
        self.somewhere(reference, credentials, |call| call.whole(most_bytes).boxed()).await
    }
}

impl Call<'_> {
    async fn whole(mut self, most: u64) -> Result<Upload, Error> {
        let limits = limits(most);
        let mut room = Room::new(most);
        let first = self.manifest(self.session.reference.version(), &limits).await?;
        let links = Links::parse(&first.bytes, &limits).map_err(|e| self.useless(e))?;
        let mut images = Vec::new();
        for entry in distinct(&links) {
            let fetched = self.manifest(&entry.digest, &limits).await?;
            length(&format!("manifest {}", entry.digest), entry.size, fetched.bytes.len() as u64)?;
            let below = Links::parse(&fetched.bytes, &limits).map_err(|e| self.useless(e))?;
            if below.images().next().is_some() {
                return Err(self.useless(ManifestError::Nested));
            }
            let blobs = self.blobs(&below, &mut room).await?;
            let media_type = below.media_type(&entry.media_type);
            images.push(Upload { media_type, digest: fetched.digest, manifest: fetched.bytes, blobs, images: Vec::new() });
        }
        let blobs = self.blobs(&links, &mut room).await?;
        Ok(Upload { media_type: links.media_type(&first.media_type), digest: first.digest, manifest: first.bytes, blobs, images })
    }

    pub(super) async fn blobs(&mut self, links: &Links, room: &mut Room) -> Result<Vec<Blob>, Error> {
        let mut blobs = Vec::new();
        for blob in room.missing(links).map_err(|e| self.useless(e))? {
            let session = &self.session;
            let bytes = self.patience.attempt(|| session.blob(blob)).await?;
            blobs.push(Blob { media_type: blob.media_type.clone(), digest: blob.digest.clone(), bytes });
        }
        Ok(blobs)
    }
}
