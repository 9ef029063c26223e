//! An image layout in a tar archive, for where no registry can be reached. `local::whole` reads it, and so do skopeo and oras.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use serde::Serialize;
use tar::{Builder, EntryType, Header};

use super::{Upload, manifest::OCI_INDEX};

/// Where tools look for the tag.
const REF_NAME: &str = "org.opencontainers.image.ref.name";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Index<'a> {
    schema_version: u8,
    media_type: &'static str,
    manifests: [Entry<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    media_type: &'a str,
    digest: &'a str,
    size: usize,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<&'static str, &'a str>,
}

/// Writes `upload` as an archive, the same bytes every time. `tag` is what it is called there.
///
/// # Errors
/// When `out` takes no more.
pub fn save(upload: &Upload, tag: Option<&str>, out: impl Write) -> io::Result<()> {
    let root = Entry {
        media_type: &upload.media_type,
        digest: &upload.digest,
        size: upload.manifest.len(),
        annotations: tag.map(|tag| (REF_NAME, tag)).into_iter().collect(),
    };
    let index = serde_json::to_vec(&Index { schema_version: 2, media_type: OCI_INDEX, manifests: [root] })?;
    let manifests = upload.images.iter().chain([upload]).map(|image| (&image.digest, image.manifest.as_slice()));
    let blobs = upload.all_blobs().map(|blob| (&blob.digest, blob.bytes.as_slice()));
    let content: BTreeMap<String, &[u8]> =
        manifests.chain(blobs).map(|(digest, bytes)| (format!("blobs/{}", digest.replacen(':', "/", 1)), bytes)).collect();
    let mut archive = Builder::new(out);
    file(&mut archive, "oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    file(&mut archive, "index.json", &index)?;
    for (path, bytes) in content {
        file(&mut archive, &path, bytes)?;
    }
    archive.into_inner()?.flush()
}

/// Nothing of the machine goes into a header.
fn file(archive: &mut Builder<impl Write>, path: &str, bytes: &[u8]) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    archive.append_data(&mut header, path, bytes)
}
