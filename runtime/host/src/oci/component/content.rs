//! From the bytes of a blob to those of the component. Work for a processor: not for the threads that wait for networks.

use std::collections::BTreeMap;

use super::{Chosen, Error, Layout, layer::is_wasm};
use crate::{
    oci::{
        Limits, digest, text,
        unpack::{self, Unpacker},
    },
    wasm::sniff,
};

/// Files that a message lists.
const LISTED: usize = 8;

/// What was in a blob.
#[derive(Debug)]
pub(in crate::oci) struct Content {
    pub(in crate::oci) layout: Layout,
    /// SHA-256 of `bytes`.
    pub(in crate::oci) digest: String,
    pub(in crate::oci) bytes: Vec<u8>,
    pub(in crate::oci) notes: Vec<String>,
}

/// Whether the chosen layer may be fetched, by the size that its manifest declares.
pub(in crate::oci) fn fits(chosen: &Chosen, most: u64) -> Result<(), Error> {
    let most = if Layout::of(&chosen.layer.media_type).is_some() { most } else { Limits::component(most).layer_bytes };
    if chosen.layer.size <= most {
        return Ok(());
    }
    Err(Error::Large { place: chosen.place(), found: chosen.layer.size, most })
}

/// The component in a blob of type `media_type` (empty: unknown). `place` and `number` are for messages.
pub(in crate::oci) fn content(place: &str, number: usize, media_type: &str, blob: Vec<u8>, most: u64) -> Result<Content, Error> {
    let promised = Layout::of(media_type);
    let mut notes = Vec::new();
    let mut place = place.to_owned();
    let (layout, bytes) = match (promised, unpack::archive(&blob)) {
        // A type of Wasm says that nothing is around it; an archive is then somebody's mistake, and named as such below.
        (Some(layout), _) => (layout, blob),
        (None, true) => {
            let (name, bytes) = unpacked(&place, number, media_type, &blob, most, &mut notes)?;
            place = format!("{} in {place}", text::name(&name));
            (Layout::Image, bytes)
        }
        (None, false) => {
            if Unpacker::promises_archive(media_type) {
                notes.push(format!("layer {number} is a plain file although its type is {}", text::name(media_type)));
            }
            (Layout::Bare, blob)
        }
    };
    if bytes.len() as u64 > most {
        return Err(Error::Large { place, found: bytes.len() as u64, most });
    }
    sniff::component(&bytes).map_err(|kind| Error::Foreign { place, kind })?;
    Ok(Content { layout, digest: digest::of(&bytes), bytes, notes })
}

/// The one Wasm file of an archive.
fn unpacked(
    place: &str,
    number: usize,
    media_type: &str,
    blob: &[u8],
    most: u64,
    notes: &mut Vec<String>,
) -> Result<(String, Vec<u8>), Error> {
    let mut unpacker = Unpacker::new(&Limits::component(most));
    unpacker
        .layer(number, media_type, &BTreeMap::new(), blob)
        .map_err(|source| Error::Archive { place: place.to_owned(), source: Box::new(source) })?;
    let (files, mut said) = unpacker.finish();
    notes.append(&mut said);
    let (mut wasm, others): (Vec<_>, Vec<_>) = files.into_iter().partition(|(name, _)| is_wasm(name));
    match (wasm.pop(), wasm.as_slice()) {
        (Some(one), []) => Ok(one),
        (Some(last), [..]) => {
            let names = wasm.iter().map(|(name, _)| name).chain([&last.0]);
            Err(Error::Files { place: place.to_owned(), found: list(names) })
        }
        (None, _) if others.is_empty() => Err(Error::NoFile { place: place.to_owned(), found: "it is empty".to_owned() }),
        (None, _) => Err(Error::NoFile { place: place.to_owned(), found: list(others.iter().map(|(name, _)| name)) }),
    }
}

fn list<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<String> = names.map(|name| text::name(name)).collect();
    let shown = names.iter().take(LISTED).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > LISTED { format!("{shown} and {} more", names.len() - LISTED) } else { shown }
}
