//! Manifests and indexes: what they say, and which entry of an index is meant.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Limits, bounded, digest, text};

/// What is asked for, in order of preference.
pub(super) const ACCEPT: &str = concat!(
    "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, ",
    "application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json, ",
    "application/vnd.oci.artifact.manifest.v1+json"
);
pub(super) const OCI_IMAGE: &str = "application/vnd.oci.image.manifest.v1+json";
pub(super) const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
const OCI_ARTIFACT: &str = "application/vnd.oci.artifact.manifest.v1+json";
const DOCKER_IMAGE: &str = "application/vnd.docker.distribution.manifest.v2+json";
const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
const SCHEMA_1: [&str; 2] =
    ["application/vnd.docker.distribution.manifest.v1+json", "application/vnd.docker.distribution.manifest.v1+prettyjws"];
/// Marks what buildx adds to an index beside the images.
const REFERENCE_TYPE: &str = "vnd.docker.reference.type";

/// A manifest that is of no use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Not JSON of the right shape.
    #[error("the manifest is malformed: {0}")]
    Malformed(String),
    /// Docker schema 1.
    #[error("the manifest is of Docker's schema 1, which registries and builders gave up; push the image again with a current tool")]
    Schema1,
    /// Says two things at once.
    #[error("the manifest has both `layers` and `manifests` (or says so in its type), so that readers differ in what it is; push it again")]
    Ambiguous,
    /// Neither image nor index.
    #[error("the manifest (type \"{}\") has neither `layers` nor `manifests`; push an image or an OCI artifact", text::name(.0))]
    Neither(String),
    /// Descriptor with a digest that cannot be checked.
    #[error("\"{}\" in the manifest is no digest", text::name(.0))]
    Digest(String),
    /// Too many.
    #[error("it has {found} {what}, at most {most} are allowed")]
    Many {
        /// Layers or entries.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many may be.
        most: usize,
    },
    /// Too large.
    #[error("{what} has {}, at most {} are allowed", text::bytes(*.found), text::bytes(*.most))]
    Large {
        /// Which layer, or all of them.
        what: String,
        /// Bytes declared.
        found: u64,
        /// Bytes allowed.
        most: u64,
    },
    /// Nothing to choose from.
    #[error("the index holds no image")]
    Empty,
    /// An index below an index.
    #[error("the index leads to another index; name the digest of the image instead")]
    Nested,
    /// Several that differ.
    #[error(
        "the index holds different content for {0}; name one by its digest, or build a single image, since plugins do not depend on a platform"
    )]
    Platforms(String),
    /// Several that differ, and none for WebAssembly.
    #[error(
        "the index holds different content for {0}, and nothing for wasm with wasip2, wasip1 or wasi; push one image (as `docker buildx build --platform wasi/wasm` does), or name one by its digest"
    )]
    NoWasm(String),
    /// Several for WebAssembly.
    #[error("the index holds several images for WebAssembly: {0}; name one by its digest, or push an index with one of them")]
    Wasm(String),
}

/// A reference to content.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    pub(super) media_type: String,
    pub(super) digest: String,
    pub(super) size: u64,
    #[serde(default, deserialize_with = "bounded::annotations")]
    pub(super) annotations: BTreeMap<String, String>,
    #[serde(default)]
    platform: Option<Platform>,
}

impl Descriptor {
    /// Of content for any platform.
    pub(super) fn new(media_type: String, digest: String, size: u64) -> Self {
        Self { media_type, digest, size, annotations: BTreeMap::new(), platform: None }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Platform {
    #[serde(default)]
    os: String,
    #[serde(default)]
    architecture: String,
    #[serde(default)]
    variant: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    #[serde(default)]
    schema_version: Option<u32>,
    #[serde(default)]
    media_type: Option<String>,
    #[serde(default)]
    artifact_type: Option<String>,
    #[serde(default)]
    config: Option<Descriptor>,
    // `blobs` is what the short-lived artifact manifest of OCI 1.1-rc calls them.
    #[serde(default, alias = "blobs", deserialize_with = "bounded::list")]
    layers: Option<Vec<Descriptor>>,
    #[serde(default, deserialize_with = "bounded::list")]
    manifests: Option<Vec<Descriptor>>,
    #[serde(default, deserialize_with = "bounded::annotations")]
    annotations: BTreeMap<String, String>,
}

/// What a reference leads to.
#[derive(Debug)]
pub(super) enum Document {
    Image(Image),
    Index(Index),
}

/// An image or an artifact.
#[derive(Debug, Clone)]
pub(super) struct Image {
    pub(super) media_type: String,
    pub(super) artifact_type: Option<String>,
    /// Type of its config.
    pub(super) config_type: Option<String>,
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) layers: Vec<Descriptor>,
}

/// Images by platform.
#[derive(Debug)]
pub(super) struct Index {
    entries: Vec<Descriptor>,
}

impl Document {
    /// Reads a manifest. `served_as` is the type the registry gave it, for manifests that do not say their own.
    pub(super) fn parse(bytes: &[u8], served_as: Option<&str>, limits: &Limits) -> Result<Self, Error> {
        let served_as = served_as.and_then(|kind| kind.split(';').next()).map(str::trim);
        if served_as.is_some_and(|kind| SCHEMA_1.contains(&kind)) {
            return Err(Error::Schema1);
        }
        let raw: Raw = serde_json::from_slice(bytes).map_err(|e| Error::Malformed(text::said(&e.to_string())))?;
        if raw.schema_version == Some(1) {
            return Err(Error::Schema1);
        }
        let says = raw.media_type.as_deref().or(served_as).unwrap_or_default();
        let says_index = [OCI_INDEX, DOCKER_INDEX].contains(&says);
        let says_image = [OCI_IMAGE, DOCKER_IMAGE, OCI_ARTIFACT].contains(&says);
        let media_type = if says_image { says } else { OCI_IMAGE }.to_owned();
        match (raw.layers, raw.manifests) {
            (Some(_), Some(_)) => Err(Error::Ambiguous),
            (Some(_), None) if says_index => Err(Error::Ambiguous),
            (None, Some(_)) if says_image => Err(Error::Ambiguous),
            (None, None) if !says_image => Err(Error::Neither(says.to_owned())),
            (None, Some(entries)) => Index::new(entries, limits).map(Self::Index),
            (layers, None) => {
                let layers = layers.unwrap_or_default();
                check_layers(&layers, limits)?;
                // As OCI: an image's own type, else that of its config.
                let config_type = raw.config.as_ref().map(|config| config.media_type.clone());
                let artifact_type = raw.artifact_type.filter(|kind| !kind.is_empty()).or_else(|| config_type.clone());
                Ok(Self::Image(Image { media_type, artifact_type, config_type, annotations: raw.annotations, layers }))
            }
        }
    }
}

fn check_layers(layers: &[Descriptor], limits: &Limits) -> Result<(), Error> {
    if layers.len() > limits.layers {
        return Err(Error::Many { what: "layers", found: layers.len(), most: limits.layers });
    }
    let mut total = 0_u64;
    for (index, layer) in layers.iter().enumerate() {
        if !digest::valid(&layer.digest) {
            return Err(Error::Digest(layer.digest.clone()));
        }
        if layer.size > limits.layer_bytes {
            return Err(Error::Large { what: format!("layer {}", index + 1), found: layer.size, most: limits.layer_bytes });
        }
        total = total.saturating_add(layer.size);
    }
    if total > limits.download_bytes {
        return Err(Error::Large { what: "the sum of all layers".to_owned(), found: total, most: limits.download_bytes });
    }
    Ok(())
}

impl Index {
    fn new(entries: Vec<Descriptor>, limits: &Limits) -> Result<Self, Error> {
        if entries.len() > limits.index_entries {
            return Err(Error::Many { what: "entries", found: entries.len(), most: limits.index_entries });
        }
        if let Some(wrong) = entries.iter().find(|entry| !digest::valid(&entry.digest)) {
            return Err(Error::Digest(wrong.digest.clone()));
        }
        if let Some(large) = entries.iter().find(|entry| entry.size > limits.manifest_bytes) {
            return Err(Error::Large { what: format!("manifest {}", large.digest), found: large.size, most: limits.manifest_bytes });
        }
        Ok(Self { entries })
    }

    /// The images, without what describes other entries, each digest once. Never empty.
    pub(super) fn candidates(&self) -> Result<Vec<&Descriptor>, Error> {
        let mut images: Vec<&Descriptor> = Vec::new();
        for entry in self.entries.iter().filter(|entry| !entry.annotations.contains_key(REFERENCE_TYPE)) {
            if !images.iter().any(|image| image.digest == entry.digest) {
                images.push(entry);
            }
        }
        if images.is_empty() { Err(Error::Empty) } else { Ok(images) }
    }
}

/// The systems of WebAssembly, the preferred first.
const WASM_SYSTEMS: [&str; 3] = ["wasip2", "wasip1", "wasi"];

/// The entry that is meant for WebAssembly, if one is.
pub(super) fn wasm<'a>(entries: &[&'a Descriptor]) -> Result<Option<&'a Descriptor>, Error> {
    for system in WASM_SYSTEMS {
        let meant = |entry: &&&Descriptor| entry.platform.as_ref().is_some_and(|p| p.architecture == "wasm" && p.os == system);
        let found: Vec<&Descriptor> = entries.iter().filter(meant).copied().collect();
        match found.as_slice() {
            [] => {}
            [one] => return Ok(Some(*one)),
            several => return Err(Error::Wasm(names(several.iter().copied()))),
        }
    }
    Ok(None)
}

/// The first of `images` (with their entries in the index), if all hold the same layers; else what `differ` makes of their names.
pub(super) fn choose<T>(images: Vec<(&Descriptor, Image, T)>, differ: fn(String) -> Error) -> Result<(Image, T), Error> {
    let layers = |image: &Image| image.layers.iter().map(|layer| layer.digest.clone()).collect::<Vec<_>>();
    let mut contents = images.iter().map(|(_, image, _)| layers(image));
    let first = contents.next();
    if contents.any(|other| Some(other) != first) {
        return Err(differ(names(images.iter().map(|(entry, ..)| *entry))));
    }
    images.into_iter().next().map(|(_, image, more)| (image, more)).ok_or(Error::Empty)
}

fn names<'a>(entries: impl Iterator<Item = &'a Descriptor>) -> String {
    entries.map(|entry| format!("{} ({})", platform(entry), entry.digest)).collect::<Vec<_>>().join(", ")
}

fn platform(entry: &Descriptor) -> String {
    let Some(platform) = &entry.platform else { return "no platform".to_owned() };
    let parts = [Some(platform.os.as_str()), Some(platform.architecture.as_str()), platform.variant.as_deref()];
    text::name(&parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/"))
}

/// The only image of a document that may not be an index.
pub(super) fn image(document: Document) -> Result<Image, Error> {
    match document {
        Document::Image(image) => Ok(image),
        Document::Index(_) => Err(Error::Nested),
    }
}
