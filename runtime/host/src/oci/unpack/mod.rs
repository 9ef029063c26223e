//! Layers to files: what it is, what is in it, and how layers lie on top of each other. Nothing is written anywhere.

mod decode;
mod error;
mod path;
mod tar;
mod tree;

use std::collections::BTreeMap;

use self::decode::{Format, Packed};
pub(super) use self::{
    decode::{archive, stream},
    path::clean,
    tar::Room,
    tree::{Layer, Tree},
};
pub use error::{EntryProblem, Error};

use super::{Limits, text};

/// The file name of a layer that is a file, as ORAS writes it.
pub(super) const TITLE: &str = "org.opencontainers.image.title";
/// Set to `true` by ORAS on a layer that is a directory.
const UNPACK: &str = "io.deis.oras.content.unpack";
/// Content of an artifact that has none.
pub(super) const EMPTY: &str = "application/vnd.oci.empty.v1+json";

/// Files by path, and notes.
pub(super) type Unpacked = (BTreeMap<String, Vec<u8>>, Vec<String>);

/// Takes layers in order.
#[derive(Debug)]
pub(super) struct Unpacker {
    room: Room,
    tree: Tree,
    notes: Vec<String>,
}

impl Unpacker {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { room: Room::new(limits), tree: Tree::default(), notes: Vec::new() }
    }

    /// Puts layer `number` (from 1) on top. Its bytes decide what it is, not its type; where they differ there is a note.
    pub(super) fn layer(
        &mut self,
        number: usize,
        media_type: &str,
        annotations: &BTreeMap<String, String>,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let directory = annotations.get(UNPACK).is_some_and(|unpack| unpack == "true");
        let title = annotations.get(TITLE).filter(|title| !title.is_empty() && !directory);
        let declared = Declared::of(media_type);
        let found = decode::sniff(bytes);
        if media_type == EMPTY && title.is_none() {
            return Ok(());
        }
        let layer = match found {
            Format::Archive(packed) => {
                self.compare(number, media_type, declared, packed);
                self.archive(bytes)?
            }
            Format::Blank if title.is_none() => Layer::default(),
            Format::Blank | Format::Other => {
                let name = match title {
                    Some(title) => title.clone(),
                    None if bytes.starts_with(b"\0asm") => format!("layer-{number}.wasm"),
                    None => return Err(Error::NotArchive { media_type: media_type.to_owned() }),
                };
                if let Declared::Archive(_) = declared {
                    self.notes.push(format!(
                        "layer {number} is a plain file although its type is {}; it is taken as {}",
                        text::name(media_type),
                        text::name(&name)
                    ));
                }
                self.bare(&name, bytes)?
            }
        };
        self.tree.put(layer);
        Ok(())
    }

    /// Files of an archive without layers around it.
    pub(super) fn archive_only(mut self, bytes: &[u8]) -> Result<Unpacked, Error> {
        let layer = self.archive(bytes)?;
        self.tree.put(layer);
        Ok(self.finish())
    }

    /// Whether a type promises an archive of an image.
    pub(super) fn promises_archive(media_type: &str) -> bool {
        matches!(Declared::of(media_type), Declared::Archive(_))
    }

    /// The files and the notes.
    pub(super) fn finish(mut self) -> Unpacked {
        self.notes.append(&mut self.room.take_notes());
        (self.tree.into_files(), self.notes)
    }

    fn archive(&mut self, bytes: &[u8]) -> Result<Layer, Error> {
        let limits = self.room.limits();
        decode::read(bytes, &limits, |reader| tar::read(reader, &mut self.room))
    }

    fn bare(&mut self, name: &str, bytes: &[u8]) -> Result<Layer, Error> {
        let mut layer = Layer::default();
        let path = self.room.entry(name.as_bytes())?;
        let Some(path) = path.filter(|_| !name.ends_with('/')) else {
            return Err(Error::entry(name.as_bytes(), EntryProblem::NoName));
        };
        self.room.file(&path, bytes.len() as u64)?;
        layer.file(path, bytes.to_vec())?;
        Ok(layer)
    }

    fn compare(&mut self, number: usize, media_type: &str, declared: Declared, found: Packed) {
        let same = match declared {
            Declared::Archive(packed) => packed == found,
            // Custom types say nothing of their form, so that they cannot be wrong.
            Declared::Custom => true,
        };
        if !same {
            self.notes.push(format!("layer {number} is {found} although its type is {}", text::name(media_type)));
        }
    }
}

/// What a media type promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Declared {
    Archive(Packed),
    Custom,
}

impl Declared {
    fn of(media_type: &str) -> Self {
        let Some((_, form)) = media_type.rsplit_once(".tar").filter(|(kind, _)| kind.contains("layer") || kind.contains("rootfs")) else {
            return Self::Custom;
        };
        match form {
            "" => Self::Archive(Packed::Plain),
            "+gzip" | ".gzip" => Self::Archive(Packed::Gzip),
            "+zstd" | ".zstd" => Self::Archive(Packed::Zstd),
            _ => Self::Custom,
        }
    }
}
