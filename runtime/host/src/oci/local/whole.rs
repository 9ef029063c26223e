//! What [`save`](crate::oci::save) writes, or another tool that writes image layouts, byte for byte.

use std::{collections::BTreeMap, path::Path};

use serde::Deserialize;

use super::{Error, LAYOUT, archive, bytes, layout::Blobs};
use crate::oci::{
    Blob, Form, Limits, ManifestError, Signature, Upload, bounded, digest,
    manifest::Descriptor,
    save::{SIGNATURE_FORM, SIGNATURE_OF, SIGNATURES},
    signatures::{MOST, check},
    text, unpack,
    whole::{Links, Room, distinct, limits},
};

/// All of the one image or index in an image layout, directory or archive; at most `most_bytes` of blobs. Digests are verified. Blocks
/// on the file system.
///
/// # Errors
/// See [`Error`].
pub fn whole(path: &Path, most_bytes: u64) -> Result<Upload, Error> {
    opened(path, most_bytes, |reader| reader.root())
}

/// The signatures that were saved with it, none where none were; at most `most_bytes` of blobs. Digests are verified, nobody's word is
/// judged. Blocks on the file system.
///
/// # Errors
/// See [`Error`].
pub fn signatures(path: &Path, most_bytes: u64) -> Result<Vec<Signature>, Error> {
    opened(path, most_bytes, |reader| reader.signatures())
}

fn opened<T>(path: &Path, most_bytes: u64, then: impl FnOnce(Reader<'_>) -> Result<T, Error>) -> Result<T, Error> {
    let unreadable = |source| Error::Read { path: path.to_owned(), source };
    let limits = limits(most_bytes);
    let read = |blobs: &Blobs<'_>| then(Reader { path, blobs, limits, room: Room::new(most_bytes) });
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

/// The list of signatures.
#[derive(Deserialize)]
struct List {
    #[serde(default, deserialize_with = "bounded::list")]
    manifests: Option<Vec<Entry>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    media_type: String,
    digest: String,
    size: u64,
    #[serde(default, deserialize_with = "bounded::annotations")]
    annotations: BTreeMap<String, String>,
    #[serde(default)]
    artifact_type: Option<String>,
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

    fn signatures(mut self) -> Result<Vec<Signature>, Error> {
        let list = match self.blobs.get(self.path, SIGNATURES, self.limits.manifest_bytes) {
            Ok(list) => list,
            Err(Error::Missing { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let malformed = |problem: String| self.useless(ManifestError::Malformed(problem));
        let list: List = serde_json::from_slice(&list).map_err(|error| malformed(text::said(&error.to_string())))?;
        let entries = list.manifests.unwrap_or_default();
        if entries.len() > MOST {
            return Err(self.useless(ManifestError::Many { what: "signatures", found: entries.len(), most: MOST }));
        }
        let mut all = Vec::new();
        for Entry { media_type, digest, size, annotations, artifact_type } in entries {
            let of = annotations.get(SIGNATURE_OF).filter(|of| digest::valid(of)).cloned();
            let form = match annotations.get(SIGNATURE_FORM).map(String::as_str) {
                Some("simple") => Some(Form::Simple),
                Some("bundle") => Some(Form::Bundle),
                Some(_) | None => None,
            };
            let (Some(of), Some(form), true) = (of, form, digest::valid(&digest)) else {
                return Err(self.useless(ManifestError::Malformed(format!("{SIGNATURES}: an entry does not say what it signs, and how"))));
            };
            let descriptor = Descriptor::new(media_type, digest, size);
            let (upload, links) = self.image(&descriptor)?;
            check(&links).map_err(|e| self.useless(e))?;
            all.push(Signature { of, form, artifact_type, upload });
        }
        Ok(all)
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
