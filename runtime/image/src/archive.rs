//! The archive: an OCI image layout in a tar, which also has the file that Docker's own format is read by.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tar::{Builder, Header};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// Bytes and what they are called by.
pub struct Blob {
    /// The content.
    pub bytes: Vec<u8>,
    /// Hexadecimal SHA-256.
    hash: String,
}

impl Blob {
    /// Named by its digest.
    pub fn new(bytes: Vec<u8>) -> Self {
        let hash = hex::encode(Sha256::digest(&bytes));
        Self { bytes, hash }
    }

    fn descriptor(&self, media_type: &str) -> Value {
        json!({"mediaType": media_type, "digest": format!("sha256:{}", self.hash), "size": self.bytes.len()})
    }

    fn path(&self) -> String {
        format!("blobs/sha256/{}", self.hash)
    }
}

/// An image for one platform.
pub struct Image {
    /// With a tag.
    pub name: String,
    /// As images call it.
    pub architecture: &'static str,
    /// Its configuration, JSON.
    pub config: Blob,
    /// Compressed, the lowest first.
    pub layers: Vec<Blob>,
}

impl Image {
    fn manifest(&self) -> Result<Blob> {
        let layers: Vec<Value> = self.layers.iter().map(|layer| layer.descriptor(LAYER)).collect();
        let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": self.config.descriptor(CONFIG), "layers": layers});
        Ok(Blob::new(serde_json::to_vec(&manifest).context("cannot write the image's manifest")?))
    }

    /// Digest of the manifest: what `image.digest` of the chart takes.
    ///
    /// # Errors
    /// What cannot be written as JSON.
    pub fn digest(&self) -> Result<String> {
        Ok(format!("sha256:{}", self.manifest()?.hash))
    }

    /// Bytes that a pull fetches.
    ///
    /// # Errors
    /// What cannot be written as JSON.
    pub fn size(&self) -> Result<usize> {
        let parts = [self.manifest()?.bytes.len(), self.config.bytes.len()];
        Ok(parts.into_iter().chain(self.layers.iter().map(|layer| layer.bytes.len())).sum())
    }

    /// The whole archive, `created` seconds after 1970.
    ///
    /// # Errors
    /// A layer that no archive has room for.
    pub fn archive(&self, created: u64) -> Result<Vec<u8>> {
        let manifest = self.manifest()?;
        let mut entry = manifest.descriptor(MANIFEST);
        if let Some(entry) = entry.as_object_mut() {
            entry.insert("platform".into(), json!({"architecture": self.architecture, "os": "linux"}));
            // The first is read by containerd, the second by everybody else.
            let names = json!({"io.containerd.image.name": self.name, "org.opencontainers.image.ref.name": self.name});
            entry.insert("annotations".into(), names);
        }
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]});
        let docker: Vec<String> = self.layers.iter().map(Blob::path).collect();
        let docker = json!([{"Config": self.config.path(), "RepoTags": [self.name], "Layers": docker}]);
        let mut files = vec![
            ("index.json".to_owned(), index.to_string().into_bytes()),
            ("manifest.json".to_owned(), docker.to_string().into_bytes()),
            ("oci-layout".to_owned(), json!({"imageLayoutVersion": "1.0.0"}).to_string().into_bytes()),
        ];
        files.extend(self.layers.iter().chain([&self.config, &manifest]).map(|blob| (blob.path(), blob.bytes.clone())));
        files.sort();
        files.dedup();
        let mut tar = Builder::new(Vec::new());
        for (path, bytes) in files {
            let mut header = Header::new_gnu();
            header.set_mode(0o644);
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(created);
            header.set_size(u64::try_from(bytes.len()).context("a layer is too large")?);
            tar.append_data(&mut header, &path, bytes.as_slice()).with_context(|| format!("cannot put {path} into the archive"))?;
        }
        tar.into_inner().context("cannot write the archive")
    }
}
