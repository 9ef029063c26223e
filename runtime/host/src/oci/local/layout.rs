//! OCI image layouts, as a directory or inside of an archive.

use std::{collections::BTreeMap, path::Path};

use super::{Error, bytes};
use crate::oci::{
    Artifact, Component, Limits, component, digest,
    manifest::{self, Descriptor, Document, Image},
    unpack::Unpacker,
};

/// Where the files of a layout are.
pub(super) enum Blobs<'a> {
    Directory(&'a Path),
    Archive(&'a BTreeMap<String, Vec<u8>>),
}

impl Blobs<'_> {
    pub(super) fn get(&self, path: &Path, name: &str, most: u64) -> Result<Vec<u8>, Error> {
        let missing = || Error::Missing { path: path.to_owned(), name: name.to_owned() };
        match self {
            Self::Directory(root) => {
                let file = root.join(name);
                let plain = std::fs::symlink_metadata(&file).is_ok_and(|file| file.is_file());
                if plain { bytes(&file, most) } else { Err(missing()) }
            }
            Self::Archive(files) => {
                let found = files.get(name).ok_or_else(missing)?;
                if found.len() as u64 > most { Err(Error::TooLarge { path: path.join(name), most }) } else { Ok(found.clone()) }
            }
        }
    }

    /// A blob, checked against its descriptor.
    pub(super) fn blob(&self, path: &Path, descriptor: &Descriptor, most: u64) -> Result<Vec<u8>, Error> {
        let name = format!("blobs/{}", descriptor.digest.replacen(':', "/", 1));
        let found = self.get(path, &name, most)?;
        let broken = |problem| Err(Error::Broken { path: path.to_owned(), name: name.clone(), problem });
        if found.len() as u64 != descriptor.size {
            return broken(format!("has {} bytes instead of {}", found.len(), descriptor.size));
        }
        if digest::same_kind(&found, &descriptor.digest) != descriptor.digest {
            return broken("does not have the digest it is named after".to_owned());
        }
        Ok(found)
    }
}

/// Digests of an image and of the index it was found in.
type Digests = (String, Option<String>);

pub(super) fn read(path: &Path, blobs: &Blobs<'_>, limits: &Limits) -> Result<Artifact, Error> {
    let images = images(path, blobs, limits)?;
    let images = images.iter().map(|(entry, image, digests)| (entry, image.clone(), digests.clone())).collect();
    let (image, digests) = manifest::choose(images, manifest::Error::Platforms).map_err(|source| useless(path, source))?;
    artifact(path, blobs, image, digests, limits)
}

/// The Wasm component of a layout.
pub(super) fn component(path: &Path, blobs: &Blobs<'_>, most: u64) -> Result<Component, Error> {
    let limits = Limits::component(most).one_layer();
    let useless = |source| useless(path, source);
    let images = images(path, blobs, &limits)?;
    let meant = manifest::wasm(&images.iter().map(|(entry, ..)| entry).collect::<Vec<_>>()).map_err(useless)?;
    let wanted = images.iter().filter(|(entry, ..)| meant.is_none_or(|meant| entry.digest == meant.digest));
    let images = wanted.map(|(entry, image, digests)| (entry, image.clone(), digests.clone())).collect();
    let (image, digests) = manifest::choose(images, manifest::Error::NoWasm).map_err(useless)?;
    let refused = |source| Error::Component { path: path.to_owned(), source: Box::new(source) };
    let chosen = component::choose(&image).and_then(|chosen| component::fits(&chosen, most).map(|()| chosen)).map_err(refused)?;
    let blob = blobs.blob(path, &chosen.layer, chosen.layer.size)?;
    let content = component::content(&chosen.place(), chosen.number, &chosen.layer.media_type, blob, most).map_err(refused)?;
    Ok(Component::of_image(format!("file:{}", path.display()), digests, image, chosen, content))
}

fn useless(path: &Path, source: manifest::Error) -> Error {
    Error::Manifest { path: path.to_owned(), source: Box::new(source) }
}

/// All images of a layout, each with the entry that leads to it.
fn images(path: &Path, blobs: &Blobs<'_>, limits: &Limits) -> Result<Vec<(Descriptor, Image, Digests)>, Error> {
    let useless = |source| useless(path, source);
    let entry = blobs.get(path, "index.json", limits.manifest_bytes)?;
    let Document::Index(index) = Document::parse(&entry, None, limits).map_err(useless)? else {
        return Err(useless(manifest::Error::Neither("index.json".to_owned())));
    };
    let document = |entry: &Descriptor| {
        let bytes = blobs.blob(path, entry, limits.manifest_bytes)?;
        Document::parse(&bytes, Some(&entry.media_type), limits).map_err(useless)
    };
    let mut images: Vec<(Descriptor, Image, Digests)> = Vec::new();
    for entry in index.candidates().map_err(useless)? {
        match document(entry)? {
            Document::Image(image) => images.push((entry.clone(), image, (entry.digest.clone(), None))),
            // A layout's own index only lists names; an index of platforms is one below.
            Document::Index(below) => {
                for child in below.candidates().map_err(useless)? {
                    let image = manifest::image(document(child)?).map_err(useless)?;
                    images.push((child.clone(), image, (child.digest.clone(), Some(entry.digest.clone()))));
                }
            }
        }
    }
    Ok(images)
}

fn artifact(path: &Path, blobs: &Blobs<'_>, image: Image, (digest, index_digest): Digests, limits: &Limits) -> Result<Artifact, Error> {
    let mut unpacker = Unpacker::new(limits);
    for (index, layer) in image.layers.iter().enumerate() {
        let bytes = blobs.blob(path, layer, limits.layer_bytes)?;
        let refused = |source| Error::Content { path: path.to_owned(), number: Some(index + 1), source: Box::new(source) };
        unpacker.layer(index + 1, &layer.media_type, &layer.annotations, &bytes).map_err(refused)?;
    }
    let (files, notes) = unpacker.finish();
    Ok(Artifact {
        reference: format!("file:{}", path.display()),
        digest,
        index_digest,
        media_type: image.media_type,
        artifact_type: image.artifact_type,
        annotations: image.annotations,
        files,
        notes,
    })
}
