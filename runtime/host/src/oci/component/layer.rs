//! Which layer of an image is the component.

use super::{Error, Layout};
use crate::oci::{
    manifest::{Descriptor, Image},
    text,
    unpack::{EMPTY, TITLE},
};

/// Layers that a message lists.
const LISTED: usize = 8;
/// Configs of container images.
const IMAGES: [&str; 2] = ["application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json"];
/// Other configs that come with components: wkg and wash; Kubewarden and wasm-to-oci; wasmCloud 1 and Istio; Spin; ORAS now and before.
const KNOWN: [&str; 6] = [
    "application/vnd.wasm.config.v0+json",
    "application/vnd.wasm.config.v1+json",
    "application/vnd.module.wasm.config.v1+json",
    "application/vnd.fermyon.spin.application.v1+config",
    EMPTY,
    "application/vnd.unknown.config.v1+json",
];

/// The layer to fetch.
#[derive(Debug, Clone)]
pub(in crate::oci) struct Chosen {
    /// Position, from 1.
    pub(in crate::oci) number: usize,
    pub(in crate::oci) layer: Descriptor,
    pub(in crate::oci) notes: Vec<String>,
}

impl Chosen {
    /// For messages.
    pub(in crate::oci) fn place(&self) -> String {
        format!("layer {} ({})", self.number, label(&self.layer))
    }
}

/// A layer of a type for Wasm, else one with the name of a Wasm file, else the only one, else the last one of a container image.
pub(in crate::oci) fn choose(image: &Image) -> Result<Chosen, Error> {
    let layers: Vec<Numbered<'_>> =
        image.layers.iter().enumerate().map(|(index, layer)| (index + 1, layer)).filter(|(_, layer)| layer.media_type != EMPTY).collect();
    let typed = distinct(&layers, |layer| Layout::of(&layer.media_type).is_some());
    let titled = distinct(&layers, |layer| layer.annotations.get(TITLE).is_some_and(|title| is_wasm(title)));
    let container = image.config_type.as_deref().is_some_and(|kind| IMAGES.contains(&kind));
    let candidates = if typed.is_empty() { titled } else { typed };
    match (candidates.as_slice(), layers.as_slice()) {
        ([one], _) | ([], [one]) => Ok(chosen(*one, image, &layers)),
        ([], []) => Err(Error::NoLayers),
        ([], [.., last]) if container => Ok(chosen(*last, image, &layers)),
        ([], [..]) => Err(Error::NoneKnown(list(&layers))),
        (several, _) => Err(Error::Several(list(several))),
    }
}

/// A layer with its position, from 1.
type Numbered<'a> = (usize, &'a Descriptor);

/// Whether a file is Wasm by its name.
pub(super) fn is_wasm(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, extension)| extension.eq_ignore_ascii_case("wasm"))
}

fn distinct<'a>(layers: &[Numbered<'a>], wanted: impl Fn(&Descriptor) -> bool) -> Vec<Numbered<'a>> {
    let mut found: Vec<Numbered<'a>> = Vec::new();
    for &(number, layer) in layers {
        if wanted(layer) && !found.iter().any(|(_, other)| other.digest == layer.digest) {
            found.push((number, layer));
        }
    }
    found
}

fn chosen((number, layer): Numbered<'_>, image: &Image, layers: &[Numbered<'_>]) -> Chosen {
    let mut notes = Vec::new();
    if let Some(kind) = image.config_type.as_deref().filter(|kind| !IMAGES.contains(kind) && !KNOWN.contains(kind)) {
        notes.push(format!("the config has type {}, which no tool for components writes; it is not looked at", text::name(kind)));
    }
    if layers.len() > 1 {
        notes.push(format!("of {} layers only layer {number} is looked at", layers.len()));
    }
    Chosen { number, layer: layer.clone(), notes }
}

fn list(layers: &[Numbered<'_>]) -> String {
    let mut names: Vec<String> =
        layers.iter().take(LISTED).map(|(number, layer)| format!("layer {number} ({}, {})", label(layer), layer.digest)).collect();
    if layers.len() > LISTED {
        names.push(format!("and {} more", layers.len() - LISTED));
    }
    names.join(", ")
}

/// Its file name, else its type.
fn label(layer: &Descriptor) -> String {
    text::name(layer.annotations.get(TITLE).unwrap_or(&layer.media_type))
}
