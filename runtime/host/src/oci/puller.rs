//! Reference to artifact.

use std::{future::Future, sync::Arc};

use super::{
    Artifact, Credentials, Error, Limits, Reference, Registries,
    auth::{Session, Tokens},
    digest,
    fetch::{DIGEST, Fetched, length, same},
    http::{Transport, content_type},
    manifest::{self, Descriptor, Document, Image, Index},
    retry::Patience,
    text,
    unpack::{Unpacked, Unpacker},
};

/// Settings that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PullerError {
    /// A CA bundle without certificates.
    #[error("CA bundle {number} of the registries holds no certificate in PEM form")]
    Ca {
        /// Position in the list, from 1.
        number: usize,
    },
    /// A proxy that is no URL. The URL may hold a password, so it is not told.
    #[error("the {0} proxy for registries is no URL; write http://host:port")]
    Proxy(&'static str),
    /// An exception that is nothing.
    #[error("\"{}\" is neither host, address nor range; write registry.example.com, 10.1.2.3 or 10.0.0.0/8", text::name(.0))]
    Listed(String),
    /// A user agent that HTTP cannot carry.
    #[error("the user agent for registries has characters that HTTP cannot carry")]
    UserAgent,
    /// The rest.
    #[error("the HTTP client for registries cannot be made: {0}")]
    Client(String),
}

/// What a reference points to now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// Digest of manifest or index. Of a tag it is the registry's word; pulling by it verifies it.
    pub digest: String,
    /// Type of manifest or index.
    pub media_type: String,
}

/// Pulls artifacts. Cheap to clone; clones share connections and tokens.
#[derive(Clone)]
pub struct Puller {
    inner: Arc<Inner>,
}

struct Inner {
    registries: Arc<Registries>,
    transport: Transport,
    tokens: Tokens,
}

impl std::fmt::Debug for Puller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Puller").field("registries", &self.inner.registries).finish_non_exhaustive()
    }
}

impl Puller {
    /// Reads the settings once.
    ///
    /// # Errors
    /// See [`PullerError`].
    pub fn new(registries: Registries) -> Result<Self, PullerError> {
        let registries = Arc::new(registries);
        let transport = Transport::new(registries.clone())?;
        Ok(Self { inner: Arc::new(Inner { registries, transport, tokens: Tokens::default() }) })
    }

    /// What `reference` points to now. Costs no pull where registries count those.
    ///
    /// # Errors
    /// See [`Error`]; whether it may pass by itself is [`Error::transient`].
    pub async fn resolve(&self, reference: &Reference, credentials: &Credentials) -> Result<Resolved, Error> {
        self.within(reference, self.call(reference, credentials)?.resolve()).await
    }

    /// The content that `reference` points to now, within `limits`.
    ///
    /// # Errors
    /// See [`Error`]; whether it may pass by itself is [`Error::transient`].
    pub async fn pull(&self, reference: &Reference, credentials: &Credentials, limits: &Limits) -> Result<Artifact, Error> {
        self.within(reference, self.call(reference, credentials)?.pull(limits)).await
    }

    fn call<'a>(&'a self, reference: &'a Reference, credentials: &'a Credentials) -> Result<Call<'a>, Error> {
        let inner = &*self.inner;
        if !inner.registries.permits(reference) {
            return Err(Error::NotAllowed { place: reference.place(), allowed: inner.registries.allowed.join(", ") });
        }
        let session = Session { transport: &inner.transport, tokens: &inner.tokens, reference, credentials };
        Ok(Call { session, patience: Patience::new(inner.registries.retries) })
    }

    async fn within<T>(&self, reference: &Reference, call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let limit = self.inner.registries.timeouts.total;
        let late = |_| Error::Timeout { what: format!("pulling {reference}"), limit };
        tokio::time::timeout(limit, call).await.unwrap_or_else(|elapsed| Err(late(elapsed)))
    }
}

/// One call of the puller.
struct Call<'a> {
    session: Session<'a>,
    patience: Patience,
}

impl Call<'_> {
    async fn resolve(mut self) -> Result<Resolved, Error> {
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

    async fn pull(mut self, limits: &Limits) -> Result<Artifact, Error> {
        let first = self.manifest(self.session.reference.version(), limits).await?;
        let (image, digest, index_digest) = match self.parse(&first, limits)? {
            Document::Image(image) => (image, first.digest, None),
            Document::Index(index) => {
                let (image, digest) = self.choose(&index, limits).await?;
                (image, digest, Some(first.digest))
            }
        };
        let (files, mut notes) = self.files(&image, limits).await?;
        if !self.session.credentials.is_anonymous() && self.session.authorization().await?.is_none() {
            notes.push(format!("{} asked for no credentials, so those given were not used", self.session.reference.registry()));
        }
        Ok(Artifact {
            reference: self.session.reference.to_string(),
            digest,
            index_digest,
            media_type: image.media_type,
            artifact_type: image.artifact_type,
            annotations: image.annotations,
            files,
            notes,
        })
    }

    async fn manifest(&mut self, version: &str, limits: &Limits) -> Result<Fetched, Error> {
        let session = &self.session;
        self.patience.attempt(|| session.manifest(version, limits.manifest_bytes)).await
    }

    fn parse(&self, fetched: &Fetched, limits: &Limits) -> Result<Document, Error> {
        Document::parse(&fetched.bytes, Some(&fetched.media_type), limits).map_err(|e| self.useless(e))
    }

    fn useless(&self, source: manifest::Error) -> Error {
        Error::Manifest { reference: self.session.reference.to_string(), source: Box::new(source) }
    }

    async fn choose(&mut self, index: &Index, limits: &Limits) -> Result<(Image, String), Error> {
        let candidates = index.candidates().map_err(|e| self.useless(e))?;
        let mut images = Vec::new();
        for entry in candidates {
            let fetched = self.manifest(&entry.digest, limits).await?;
            length(&format!("manifest {}", entry.digest), entry.size, fetched.bytes.len() as u64)?;
            let image = self.parse(&fetched, limits).and_then(|document| manifest::image(document).map_err(|e| self.useless(e)))?;
            images.push((entry, image, fetched.digest));
        }
        manifest::choose(images).map_err(|e| self.useless(e))
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
