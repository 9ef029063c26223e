//! An image layout in a tar archive, for where no registry can be reached. `local::whole` reads it, and so do skopeo and oras.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use serde::Serialize;
use tar::{Builder, EntryType, Header};

use super::{Form, Signature, Upload, manifest::OCI_INDEX};

/// Beside `index.json`: signatures. Tools that take one image of a layout would not know which one is meant if they stood in there.
pub(super) const SIGNATURES: &str = "weir-signatures.json";
/// Digest of what is signed.
pub(super) const SIGNATURE_OF: &str = "weir.dev/signature-of";
/// How it is found.
pub(super) const SIGNATURE_FORM: &str = "weir.dev/signature-form";
/// Where tools look for the tag.
const REF_NAME: &str = "org.opencontainers.image.ref.name";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Index<'a> {
    schema_version: u8,
    media_type: &'static str,
    manifests: Vec<Entry<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    media_type: &'a str,
    digest: &'a str,
    size: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact_type: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<&'static str, &'a str>,
}

/// Writes `upload` and its `signatures` as an archive, the same bytes every time. `tag` is what it is called there.
///
/// # Errors
/// When `out` takes no more.
pub fn save(upload: &Upload, tag: Option<&str>, signatures: &[Signature], out: impl Write) -> io::Result<()> {
    let root = Entry {
        media_type: &upload.media_type,
        digest: &upload.digest,
        size: upload.manifest.len(),
        artifact_type: None,
        annotations: tag.map(|tag| (REF_NAME, tag)).into_iter().collect(),
    };
    let index = list(vec![root])?;
    let signed = || signatures.iter().map(|signature| &signature.upload);
    let manifests = upload.images.iter().chain([upload]).chain(signed()).map(|image| (&image.digest, image.manifest.as_slice()));
    let blobs = upload.all_blobs().chain(signed().flat_map(|s| s.all_blobs())).map(|blob| (&blob.digest, blob.bytes.as_slice()));
    let content: BTreeMap<String, &[u8]> =
        manifests.chain(blobs).map(|(digest, bytes)| (format!("blobs/{}", digest.replacen(':', "/", 1)), bytes)).collect();
    let mut archive = Builder::new(out);
    file(&mut archive, "oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    file(&mut archive, "index.json", &index)?;
    if !signatures.is_empty() {
        file(&mut archive, SIGNATURES, &list(signatures.iter().map(entry).collect())?)?;
    }
    for (path, bytes) in content {
        file(&mut archive, &path, bytes)?;
    }
    archive.into_inner()?.flush()
}

fn list(manifests: Vec<Entry<'_>>) -> io::Result<Vec<u8>> {
    Ok(serde_json::to_vec(&Index { schema_version: 2, media_type: OCI_INDEX, manifests })?)
}

fn entry(signature: &Signature) -> Entry<'_> {
    let form = match signature.form {
        Form::Simple => "simple",
        Form::Bundle => "bundle",
    };
    Entry {
        media_type: &signature.upload.media_type,
        digest: &signature.upload.digest,
        size: signature.upload.manifest.len(),
        artifact_type: signature.artifact_type.as_deref(),
        annotations: BTreeMap::from([(SIGNATURE_OF, signature.of.as_str()), (SIGNATURE_FORM, form)]),
    }
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
