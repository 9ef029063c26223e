//! A component out of a registry.

use super::{Chosen, Component, Content, choose, content, fits};
use crate::oci::{
    Error, Limits,
    call::Call,
    manifest::{self, Document, Image, Index},
};

impl Call<'_> {
    /// The component that the reference leads to.
    pub(in crate::oci) async fn component(mut self, most: u64) -> Result<Component, Error> {
        let limits = Limits::component(most).one_layer();
        let first = self.manifest(self.session.reference.version(), &limits).await?;
        let (image, digest, index) = match self.parse(&first, &limits)? {
            Document::Image(image) => (image, first.digest, None),
            Document::Index(index) => {
                let (image, digest) = self.wasm(&index, &limits).await?;
                (image, digest, Some(first.digest))
            }
        };
        let chosen = choose(&image).and_then(|chosen| fits(&chosen, most).map(|()| chosen)).map_err(|e| self.no_component(e))?;
        let session = &self.session;
        let blob = self.patience.attempt(|| session.blob(&chosen.layer)).await?;
        let content = self.content(&chosen, blob, most).await?;
        let mut component = Component::of_image(self.asked.to_string(), (digest, index), image, chosen, content);
        component.notes.extend(self.unused().await?);
        Ok(component)
    }

    fn no_component(&self, source: super::Error) -> Error {
        Error::Component { reference: self.session.reference.to_string(), source: Box::new(source) }
    }

    /// The entry for Wasm, else the only image, else any if all hold the same.
    async fn wasm(&mut self, index: &Index, limits: &Limits) -> Result<(Image, String), Error> {
        let entries = index.candidates().map_err(|e| self.useless(e))?;
        let meant = manifest::wasm(&entries).map_err(|e| self.useless(e))?;
        self.images(meant.map_or(entries, |entry| vec![entry]), limits, manifest::Error::NoWasm).await
    }

    /// Hashing and decompression are work for a processor, not for the threads that wait for networks.
    async fn content(&self, chosen: &Chosen, blob: Vec<u8>, most: u64) -> Result<Content, Error> {
        let (place, number, media_type) = (chosen.place(), chosen.number, chosen.layer.media_type.clone());
        match tokio::task::spawn_blocking(move || content(&place, number, &media_type, blob, most)).await {
            Ok(done) => done.map_err(|e| self.no_component(e)),
            // A panic of a decoder ends here.
            Err(_) => Err(Error::Decoder { reference: self.session.reference.to_string(), number: chosen.number }),
        }
    }
}
