//! One file: an image layout in a tar archive, what `docker save` writes, or an archive of plugin files.

use std::{cell::Cell, collections::BTreeMap, io::Read, path::Path};

use serde::Deserialize;
use tar::Archive;

use super::{Error, LAYOUT, file, layout, plain};
use crate::oci::{Artifact, Component, Limits, text, unpack};

/// More entries than an archive of images for some platforms.
const MAX_ENTRIES: usize = 4_096;
const INDEX: &str = "index.json";
/// What `docker save` lists its images in.
const MANIFEST: &str = "manifest.json";

/// Largest archive, bytes: compressed or unpacked layers, and their manifests.
pub(super) fn most(limits: &Limits) -> u64 {
    limits.download_bytes.saturating_add(limits.unpacked_bytes).saturating_add(limits.manifest_bytes)
}

/// What is read to know what an archive is.
fn wanted(name: &str) -> bool {
    name == LAYOUT || name == INDEX || name == MANIFEST
}

pub(super) fn read(path: &Path, bytes: &[u8], limits: &Limits) -> Result<Artifact, Error> {
    let Ok(names) = files(path, bytes, limits, wanted) else {
        // It may be an archive of plugin files that is refused for a reason; that reason is the better one.
        return content(path, bytes, limits);
    };
    if names.contains_key(LAYOUT) && names.contains_key(INDEX) {
        let files = files(path, bytes, limits, |_| true)?;
        return layout::read(path, &layout::Blobs::Archive(&files), limits);
    }
    match names.get(MANIFEST).and_then(|manifest| serde_json::from_slice::<Vec<Saved>>(manifest).ok()) {
        Some(images) => saved(path, bytes, &images, limits),
        None => content(path, bytes, limits),
    }
}

/// The Wasm component of an archive that holds an image.
pub(super) fn component(path: &Path, bytes: &[u8], most: u64) -> Result<Component, Error> {
    let limits = Limits::component(most);
    let names = match files(path, bytes, &limits, wanted) {
        // Compressed, and no tar archive.
        Err(Error::Broken { .. }) => return Err(Error::NoImage { path: path.to_owned() }),
        names => names?,
    };
    if names.contains_key(LAYOUT) && names.contains_key(INDEX) {
        let files = files(path, bytes, &limits, |_| true)?;
        return layout::component(path, &layout::Blobs::Archive(&files), most);
    }
    let images = names.get(MANIFEST).and_then(|manifest| serde_json::from_slice::<Vec<Saved>>(manifest).ok());
    let Some(images) = images else { return Err(Error::NoImage { path: path.to_owned() }) };
    let image = only(path, &images)?;
    let Some(last) = image.layers.last() else { return Err(Error::NoImage { path: path.to_owned() }) };
    let blob = files(path, bytes, &limits, |name| name == last)?.remove(last);
    let blob = blob.ok_or_else(|| Error::Missing { path: path.to_owned(), name: last.clone() })?;
    file(path, &format!("layer {}", image.layers.len()), blob, most)
}

fn content(path: &Path, bytes: &[u8], limits: &Limits) -> Result<Artifact, Error> {
    match unpack::Unpacker::new(limits).archive_only(bytes) {
        Ok((files, notes)) => Ok(plain(path, files, notes)),
        Err(_) if !unpack::archive(bytes) => Err(Error::Unknown { path: path.to_owned() }),
        Err(source) => Err(Error::Content { path: path.to_owned(), number: None, source: Box::new(source) }),
    }
}

/// An image in the list of `docker save`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Saved {
    layers: Vec<String>,
}

fn only<'a>(path: &Path, images: &'a [Saved]) -> Result<&'a Saved, Error> {
    let [image] = images else { return Err(Error::Images { path: path.to_owned(), count: images.len() }) };
    Ok(image)
}

fn saved(path: &Path, bytes: &[u8], images: &[Saved], limits: &Limits) -> Result<Artifact, Error> {
    let image = only(path, images)?;
    if image.layers.len() > limits.layers {
        let source = crate::oci::ManifestError::Many { what: "layers", found: image.layers.len(), most: limits.layers };
        return Err(Error::Manifest { path: path.to_owned(), source: Box::new(source) });
    }
    let blobs = files(path, bytes, limits, |name| image.layers.iter().any(|layer| layer == name))?;
    let mut unpacker = unpack::Unpacker::new(limits);
    for (index, name) in image.layers.iter().enumerate() {
        let layer = blobs.get(name).ok_or_else(|| Error::Missing { path: path.to_owned(), name: name.clone() })?;
        let refused = |source| Error::Content { path: path.to_owned(), number: Some(index + 1), source: Box::new(source) };
        unpacker.layer(index + 1, "", &BTreeMap::new(), layer).map_err(refused)?;
    }
    let (files, notes) = unpacker.finish();
    Ok(plain(path, files, notes))
}

/// The plain files of an archive whose names are `wanted`. Others, such as the links that `docker save` makes for old readers, are
/// left out: nobody unpacks this.
pub(super) fn files(path: &Path, bytes: &[u8], limits: &Limits, wanted: impl Fn(&str) -> bool) -> Result<BTreeMap<String, Vec<u8>>, Error> {
    let broken =
        |e: std::io::Error| Error::Broken { path: path.to_owned(), name: "archive".to_owned(), problem: text::said(&e.to_string()) };
    let too_large = || Error::TooLarge { path: path.to_owned(), most: most(limits) };
    let window = Cell::new(None);
    // One byte more than allowed: a full reader is then known from one that ends.
    let mut archive = Archive::new(unpack::stream(bytes, limits.zstd_window, &window).take(most(limits).saturating_add(1)));
    let mut files = BTreeMap::new();
    for (count, entry) in archive.entries().map_err(broken)?.enumerate() {
        let mut entry = entry.map_err(broken)?;
        if count >= MAX_ENTRIES || entry.size() > most(limits) {
            return Err(too_large());
        }
        let name = unpack::clean(&entry.path_bytes(), limits).ok().flatten().filter(|name| wanted(name));
        let Some(name) = name.filter(|_| entry.header().entry_type().is_file()) else { continue };
        let size = entry.size();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).map_err(broken)?;
        if content.len() as u64 != size {
            return Err(too_large());
        }
        files.insert(name, content);
    }
    Ok(files)
}
