//! Wasm policy components out of images and artifacts, in every layout that tools push. What is taken is decided by bytes; types and
//! names only say which layer to fetch.

mod content;
mod error;
mod layer;
mod pull;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::error::Error;
pub(super) use self::{
    content::{Content, content, fits},
    layer::{Chosen, choose},
};
use super::manifest::Image;

/// A component and where it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Component {
    /// The reference in its canonical form, or `file:` and a path.
    pub reference: String,
    /// Digest of the manifest of the image; without a manifest, that of the component.
    pub manifest_digest: String,
    /// Digest of the index, when there was one.
    pub index_digest: Option<String>,
    /// SHA-256 of `bytes`: what people approve, and what stays the same when equal content is pushed again.
    pub layer_digest: String,
    /// Digest of the blob that it was in: of the archive, where there is one.
    pub blob_digest: String,
    /// How it was packed.
    pub layout: Layout,
    /// What kind of artifact the manifest says it is: its artifact type, else the type of its config.
    pub artifact_type: Option<String>,
    /// Annotations of the manifest.
    pub annotations: BTreeMap<String, String>,
    /// The component: the bytes start as one does. Whether it is valid and fits the host is for the host to say.
    pub bytes: Vec<u8>,
    /// What its author should know although it was taken.
    pub notes: Vec<String>,
}

/// How a component is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// `application/wasm`, as wkg, wash and cargo-component push it.
    Cncf,
    /// `application/vnd.wasm.content.layer.v1+wasm`, as Spin, Kubewarden and wasm-to-oci push it.
    Krustlet,
    /// `application/vnd.module.wasm.content.layer.v1+wasm`, as wasmCloud 1 pushes it, and Istio reads it.
    WasmModule,
    /// A container image: one `*.wasm` in the tar archive of its last layer.
    Image,
    /// The file itself under another type, as ORAS pushes it; or a file on disk.
    Bare,
}

impl Layout {
    /// Its name in a status or a log.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cncf => "cncf",
            Self::Krustlet => "krustlet",
            Self::WasmModule => "wasm-module",
            Self::Image => "image",
            Self::Bare => "bare",
        }
    }

    /// What a type promises, if it promises Wasm.
    fn of(media_type: &str) -> Option<Self> {
        match media_type.split(';').next().unwrap_or_default().trim() {
            "application/wasm" => Some(Self::Cncf),
            "application/vnd.wasm.content.layer.v1+wasm" => Some(Self::Krustlet),
            "application/vnd.module.wasm.content.layer.v1+wasm" => Some(Self::WasmModule),
            _ => None,
        }
    }
}

impl Component {
    /// Of an image whose chosen layer held `content`.
    pub(super) fn of_image(reference: String, digests: (String, Option<String>), image: Image, chosen: Chosen, content: Content) -> Self {
        Self {
            reference,
            manifest_digest: digests.0,
            index_digest: digests.1,
            layer_digest: content.digest,
            blob_digest: chosen.layer.digest,
            layout: content.layout,
            artifact_type: image.artifact_type,
            annotations: image.annotations,
            bytes: content.bytes,
            notes: [chosen.notes, content.notes].concat(),
        }
    }

    /// Of something without a manifest.
    pub(super) fn of_file(reference: String, blob_digest: String, content: Content) -> Self {
        Self {
            reference,
            manifest_digest: content.digest.clone(),
            index_digest: None,
            layer_digest: content.digest,
            blob_digest,
            layout: content.layout,
            artifact_type: None,
            annotations: BTreeMap::new(),
            bytes: content.bytes,
            notes: content.notes,
        }
    }
}
