//! What [`save`](crate::oci::save) writes, or another tool that writes image layouts, byte for byte.

use std::path::Path;

use super::{Error, LAYOUT, archive, bytes, layout::Blobs};
use crate::oci::{
    Blob, Limits, ManifestError, Upload,
    manifest::Descriptor,
    unpack,
    whole::{Links, Room, distinct, limits},
};

/// All of the one image or index in an image layout, directory or archive; at most `most_bytes` of blobs. Digests are verified. Blocks
/// on the file system.
///
/// # Errors
/// See [`Error`].
pub fn whole(path: &Path, most_bytes: u64) -> Result<Upload, Error> {
    let unreadable = |source| Error::Read { path: path.to_owned(), source };
    let limits = limits(most_bytes);
    let read = |blobs: &Blobs<'_>| Reader { path, blobs, limits, room: Room::new(most_bytes) }.root();
    if std::fs::metadata(path).map_err(unreadable)?.is_dir() {
        return if path.join(LAYOUT).is_file() { read(&Blobs::Directory(path)) } else { Err(Error::NoLayout { path: path.to_owned() }) };
    }
    let bytes = bytes(path, archive::most(&limits))?;
    if !unpack::archive(&bytes) {
        return Err(Error::Unknown { path: path.to_owned() });
    }
    let files = archive::files(path, &bytes, &limits, |_| true)?;
    if files.contains_key(LAYOUT) { read(&Blobs::Archive(&files)) } else { Err(Error::NoImage { path: path.to_owned() }) }
}

struct Reader<'a> {
    path: &'a Path,
    blobs: &'a Blobs<'a>,
    limits: Limits,
    room: Room,
}

impl Reader<'_> {
    fn root(mut self) -> Result<Upload, Error> {
        let index = self.links(&self.blobs.get(self.path, "index.json", self.limits.manifest_bytes)?)?;
        let [entry] = distinct(&index)[..] else {
            return Err(Error::Images { path: self.path.to_owned(), count: distinct(&index).len() });
        };
        let (mut root, links) = self.image(entry)?;
        for entry in distinct(&links) {
            let (image, below) = self.image(entry)?;
            if below.images().next().is_some() {
                return Err(self.useless(ManifestError::Nested));
            }
            root.images.push(image);
        }
        Ok(root)
    }

    /// What an entry of an index leads to.
    fn image(&mut self, entry: &Descriptor) -> Result<(Upload, Links), Error> {
        let manifest = self.blobs.blob(self.path, entry, self.limits.manifest_bytes)?;
        let links = self.links(&manifest)?;
        let mut blobs = Vec::new();
        for blob in self.room.missing(&links).map_err(|e| self.useless(e))? {
            let bytes = self.blobs.blob(self.path, blob, self.limits.layer_bytes)?;
            blobs.push(Blob { media_type: blob.media_type.clone(), digest: blob.digest.clone(), bytes });
        }
        let media_type = links.media_type(&entry.media_type);
        Ok((Upload { media_type, digest: entry.digest.clone(), manifest, blobs, images: Vec::new() }, links))
    }

    fn links(&self, manifest: &[u8]) -> Result<Links, Error> {
        Links::parse(manifest, &self.limits).map_err(|e| self.useless(e))
    }

    fn useless(&self, source: ManifestError) -> Error {
        Error::Manifest { path: self.path.to_owned(), source: Box::new(source) }
    }
}
