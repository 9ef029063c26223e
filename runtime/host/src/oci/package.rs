//! A component as an artifact to push. The same component gives the same bytes every time, whoever packs it and when.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    manifest::OCI_IMAGE,
    push::{Blob, Upload},
    unpack::TITLE,
};
use crate::wasm::inspect::{self, Interfaces};

/// The layout of the CNCF: what says that an artifact is Wasm.
pub(super) const CNCF_CONFIG: &str = "application/vnd.wasm.config.v0+json";
const CNCF_LAYER: &str = "application/wasm";
/// The layout before it.
const LEGACY_CONFIG: &str = "application/vnd.wasm.config.v1+json";
const LEGACY_LAYER: &str = "application/vnd.wasm.content.layer.v1+wasm";
/// Most annotations; readers take no more.
const MAX_ANNOTATIONS: usize = 256;
/// Most bytes of annotations: registries take manifests of 4 MiB, and nobody reads as much.
const MAX_ANNOTATION_BYTES: usize = 64 << 10;

/// Why a component cannot be packed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackageError {
    /// It is no component.
    #[error(transparent)]
    Component(#[from] inspect::Error),
    /// An annotation without a name.
    #[error("an annotation has no name; write NAME=VALUE")]
    NoName,
    /// Too many annotations, or too large ones.
    #[error(
        "there are {count} annotations of {bytes} bytes together, at most {MAX_ANNOTATIONS} of {MAX_ANNOTATION_BYTES} bytes are allowed"
    )]
    Annotations {
        /// How many.
        count: usize,
        /// Their bytes, names included.
        bytes: usize,
    },
}

/// A component to publish.
#[derive(Debug, Clone)]
pub struct Package<'a> {
    /// The component.
    pub wasm: &'a [u8],
    /// Its file name, for whoever unpacks it.
    pub title: &'a str,
    /// Annotations of the manifest.
    pub annotations: BTreeMap<String, String>,
    /// When it was made: `SOURCE_DATE_EPOCH`, else 1970. The time of the push would give every push another digest.
    pub created: jiff::Timestamp,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Manifest<'a> {
    schema_version: u8,
    media_type: &'static str,
    config: Descriptor<'a>,
    layers: [Descriptor<'a>; 1],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: &'a BTreeMap<String, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor<'a> {
    media_type: &'a str,
    digest: &'a str,
    size: usize,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<&'static str, &'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Config<'a> {
    created: String,
    architecture: &'static str,
    os: &'static str,
    layer_digests: [&'a str; 1],
    component: Interfaces,
}

impl<'a> Descriptor<'a> {
    fn of(blob: &'a Blob) -> Self {
        Self { media_type: &blob.media_type, digest: &blob.digest, size: blob.bytes.len(), annotations: BTreeMap::new() }
    }
}

impl<'a> Package<'a> {
    /// A component without annotations, made in 1970.
    #[must_use]
    pub fn new(wasm: &'a [u8], title: &'a str) -> Self {
        Self { wasm, title, annotations: BTreeMap::new(), created: jiff::Timestamp::UNIX_EPOCH }
    }

    /// In the layout of the CNCF, which says what the component imports and exports.
    ///
    /// # Errors
    /// When the bytes are no component, or the annotations too many.
    pub fn cncf(&self) -> Result<Upload, PackageError> {
        let component = self.checked()?;
        let layer = Blob::new(CNCF_LAYER, self.wasm.to_vec());
        let config = Config {
            created: self.created.to_string(),
            architecture: "wasm",
            // Every component, whatever it imports; `wasip1` stands for core modules.
            os: "wasip2",
            layer_digests: [&layer.digest],
            component,
        };
        let config = Blob::new(CNCF_CONFIG, json(&config));
        Ok(self.upload(config, layer))
    }

    /// In the layout of wasm-to-oci, for registries that refuse the other.
    ///
    /// # Errors
    /// As [`cncf`](Self::cncf).
    pub fn legacy(&self) -> Result<Upload, PackageError> {
        self.checked()?;
        Ok(self.upload(Blob::new(LEGACY_CONFIG, b"{}".to_vec()), Blob::new(LEGACY_LAYER, self.wasm.to_vec())))
    }

    fn checked(&self) -> Result<Interfaces, PackageError> {
        if self.annotations.contains_key("") {
            return Err(PackageError::NoName);
        }
        let (count, bytes) = (self.annotations.len(), self.annotations.iter().map(|(name, value)| name.len() + value.len()).sum());
        if count > MAX_ANNOTATIONS || bytes > MAX_ANNOTATION_BYTES {
            return Err(PackageError::Annotations { count, bytes });
        }
        Ok(inspect::interfaces(self.wasm, crate::wasm::MAX_COMPONENT)?)
    }

    fn upload(&self, config: Blob, layer: Blob) -> Upload {
        let manifest = Manifest {
            schema_version: 2,
            media_type: OCI_IMAGE,
            config: Descriptor::of(&config),
            layers: [Descriptor { annotations: BTreeMap::from([(TITLE, self.title)]), ..Descriptor::of(&layer) }],
            annotations: &self.annotations,
        };
        let manifest = json(&manifest);
        Upload::new(OCI_IMAGE, manifest, vec![config, layer])
    }
}

/// Field by field in the order of the struct, so that no map of a crate decides about digests.
fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}
