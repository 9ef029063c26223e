//! One call of the puller at one place: the registry that was asked for, or a mirror.

use super::{
    Artifact, Error, Limits, Reference,
    auth::Session,
    digest,
    fetch::{DIGEST, Fetched, length, same},
    http::content_type,
    manifest::{self, Descriptor, Document, Image},
    puller::Resolved,
    retry::Patience,
    unpack::{Unpacked, Unpacker},
};

/// One call at one place.
pub(super) struct Call<'a> {
    /// What the caller asked for. The session's reference is where it is asked.
    pub(super) asked: &'a Reference,
    pub(super) session: Session<'a>,
    pub(super) patience: Patience,
}

impl Call<'_> {
    pub(super) async fn resolve(mut self) -> Result<Resolved, Error> {
        let session = &self.session;
        let version = session.reference.version();
        let head = self.patience.attempt(|| session.head(version)).await?;
        let found = head.get(DIGEST).and_then(|digest| digest.to_str().ok()).filter(|digest| digest::valid(digest));
        let (Some(digest), false) = (found, content_type(&head).is_empty()) else {
            let fetched = self.manifest(version, &Limits::PLUGIN).await?;
            return Ok(Resolved { digest: fetched.digest, media_type: fetched.media_type });
        };
        // A registry may know the same content by another algorithm.
        let expected = session.reference.digest().filter(|expected| expected.split(':').next() == digest.split(':').next());
        same(&format!("{}", session.reference), expected.unwrap_or(digest), digest)?;
        Ok(Resolved { digest: session.reference.digest().unwrap_or(digest).to_owned(), media_type: content_type(&head).to_owned() })
    }

    pub(super) async fn pull(mut self, limits: &Limits) -> Result<Artifact, Error> {
        let first = self.manifest(self.session.reference.version(), limits).await?;
        let (image, digest, index_digest) = match self.parse(&first, limits)? {
            Document::Image(image) => (image, first.digest, None),
            Document::Index(index) => {
                let entries = index.candidates().map_err(|e| self.useless(e))?;
                let (image, digest) = self.images(entries, limits, manifest::Error::Platforms).await?;
                (image, digest, Some(first.digest))
            }
        };
        let (files, mut notes) = self.files(&image, limits).await?;
        notes.extend(self.unused().await?);
        Ok(Artifact {
            reference: self.asked.to_string(),
            digest,
            index_digest,
            media_type: image.media_type,
            artifact_type: image.artifact_type,
            annotations: image.annotations,
            files,
            notes,
        })
    }

    /// A note when credentials were given and nobody wanted them.
    pub(super) async fn unused(&self) -> Result<Option<String>, Error> {
        if self.session.credentials.is_anonymous() || self.session.authorization().await?.is_some() {
            return Ok(None);
        }
        Ok(Some(format!("{} asked for no credentials, so those given were not used", self.session.reference.registry())))
    }

    pub(super) async fn manifest(&mut self, version: &str, limits: &Limits) -> Result<Fetched, Error> {
        let session = &self.session;
        self.patience.attempt(|| session.manifest(version, limits.manifest_bytes)).await
    }

    pub(super) fn parse(&self, fetched: &Fetched, limits: &Limits) -> Result<Document, Error> {
        Document::parse(&fetched.bytes, Some(&fetched.media_type), limits).map_err(|e| self.useless(e))
    }

    pub(super) fn useless(&self, source: manifest::Error) -> Error {
        Error::Manifest { reference: self.session.reference.to_string(), source: Box::new(source) }
    }

    /// The image of these entries of an index, if all hold the same; else what `differ` makes of their names.
    pub(super) async fn images(
        &mut self,
        entries: Vec<&Descriptor>,
        limits: &Limits,
        differ: fn(String) -> manifest::Error,
    ) -> Result<(Image, String), Error> {
        let mut images = Vec::new();
        for entry in entries {
            let fetched = self.manifest(&entry.digest, limits).await?;
            length(&format!("manifest {}", entry.digest), entry.size, fetched.bytes.len() as u64)?;
            let image = self.parse(&fetched, limits).and_then(|document| manifest::image(document).map_err(|e| self.useless(e)))?;
            images.push((entry, image, fetched.digest));
        }
        manifest::choose(images, differ).map_err(|e| self.useless(e))
    }

    /// One layer at a time, so that no more than one is in memory.
    async fn files(&mut self, image: &Image, limits: &Limits) -> Result<Unpacked, Error> {
        let mut unpacker = Unpacker::new(limits);
        for (index, layer) in image.layers.iter().enumerate() {
            let session = &self.session;
            let bytes = self.patience.attempt(|| session.blob(layer)).await?;
            unpacker = self.unpack(unpacker, index + 1, layer, bytes).await?;
        }
        Ok(unpacker.finish())
    }

    /// Decompression is work for a processor, not for the threads that wait for networks.
    async fn unpack(&self, mut unpacker: Unpacker, number: usize, layer: &Descriptor, bytes: Vec<u8>) -> Result<Unpacker, Error> {
        let Descriptor { media_type, annotations, .. } = layer.clone();
        let done = tokio::task::spawn_blocking(move || unpacker.layer(number, &media_type, &annotations, &bytes).map(|()| unpacker)).await;
        let reference = || self.session.reference.to_string();
        match done {
            Ok(done) => done.map_err(|source| Error::Layer { reference: reference(), number, source: Box::new(source) }),
            // A panic of a decoder ends here.
            Err(_) => Err(Error::Decoder { reference: reference(), number }),
        }
    }
}
