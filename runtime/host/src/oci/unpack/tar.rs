//! Entries of a tar archive. The dialects (ustar, PAX, GNU long names) are the `tar` crate's business; what may be in is ours.

use std::{cell::Cell, io::Read};

use ::tar::{Archive, Entry, EntryType};

use super::{EntryProblem, Error, Layer, Limits, path};
use crate::oci::text;

/// What is left of the limits, over all layers of an artifact.
#[derive(Debug)]
pub(in crate::oci) struct Room {
    limits: Limits,
    bytes: u64,
    entries: usize,
    global_headers: usize,
}

impl Room {
    pub(in crate::oci) fn new(limits: &Limits) -> Self {
        Self { limits: *limits, bytes: 0, entries: 0, global_headers: 0 }
    }

    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    pub(super) fn take_notes(&mut self) -> Vec<String> {
        let count = std::mem::take(&mut self.global_headers);
        (count > 0).then(|| format!("{count} global PAX headers are ignored")).into_iter().collect()
    }

    /// Counts an entry and cleans its name.
    pub(in crate::oci) fn entry(&mut self, name: &[u8]) -> Result<Option<String>, Error> {
        self.entries += 1;
        if self.entries > self.limits.files {
            return Err(Error::Files { most: self.limits.files });
        }
        path::clean(name, &self.limits).map_err(|problem| Error::entry(name, problem))
    }

    /// Counts the content of a file before it is read.
    pub(in crate::oci) fn file(&mut self, path: &str, size: u64) -> Result<(), Error> {
        if size > self.limits.file_bytes {
            return Err(Error::entry(path.as_bytes(), EntryProblem::Large { found: size, most: self.limits.file_bytes }));
        }
        self.bytes = self.bytes.saturating_add(size);
        if self.bytes > self.limits.unpacked_bytes {
            return Err(Error::Total { name: path.to_owned(), most: self.limits.unpacked_bytes });
        }
        Ok(())
    }
}

/// What is done with an entry.
enum Kind {
    File,
    Directory,
    /// Says something of the whole archive, such as the commit that `git archive` writes.
    Global,
    Refused(&'static str),
}

fn kind(of: EntryType, name: &[u8]) -> Kind {
    if of.is_dir() || ((of.is_file() || of.is_contiguous()) && name.ends_with(b"/")) {
        // Archives older than ustar mark directories by their name only.
        Kind::Directory
    } else if of.is_file() || of.is_contiguous() {
        Kind::File
    } else if of.is_pax_global_extensions() {
        Kind::Global
    } else if of.is_symlink() {
        Kind::Refused("symbolic link")
    } else if of.is_hard_link() {
        Kind::Refused("hard link")
    } else if of.is_character_special() || of.is_block_special() {
        Kind::Refused("device")
    } else if of.is_fifo() {
        Kind::Refused("named pipe")
    } else if of.is_gnu_sparse() {
        Kind::Refused("sparse file")
    } else {
        Kind::Refused("file of an unknown type")
    }
}

/// Reads all entries.
pub(super) fn read(reader: &mut dyn Read, room: &mut Room) -> Result<Layer, Error> {
    let broken = |e: std::io::Error| Error::Broken { what: "tar archive", problem: text::said(&e.to_string()) };
    let real = Cell::new(0);
    let mut padded = Padded { inner: reader, real: &real, zeros: None };
    let reader: &mut dyn Read = &mut padded;
    let mut archive = Archive::new(reader);
    let mut layer = Layer::default();
    for entry in archive.entries().map_err(broken)? {
        one(&mut entry.map_err(broken)?, room, &real, &mut layer)?;
    }
    Ok(layer)
}

/// Bytes of a block.
const BLOCK: u64 = 512;

/// An archive that ends right after the content of its last file, as umoci's `insert` writes it, with the zeros that belong there.
struct Padded<'a> {
    inner: &'a mut dyn Read,
    /// Bytes that came from the archive itself.
    real: &'a Cell<u64>,
    /// Zeros that are still to be given; none before the archive has ended.
    zeros: Option<u64>,
}

impl Read for Padded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.zeros.is_none() && !buffer.is_empty() {
            let read = self.inner.read(buffer)?;
            self.real.set(self.real.get().saturating_add(read as u64));
            if read > 0 {
                return Ok(read);
            }
            self.zeros = Some((BLOCK - self.real.get() % BLOCK) % BLOCK);
        }
        let left = self.zeros.unwrap_or(0);
        let given = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        buffer.iter_mut().take(given).for_each(|byte| *byte = 0);
        self.zeros = self.zeros.map(|_| left - given as u64);
        Ok(given)
    }
}

fn one(entry: &mut Entry<'_, &mut dyn Read>, room: &mut Room, real: &Cell<u64>, layer: &mut Layer) -> Result<(), Error> {
    let name = entry.path_bytes().into_owned();
    let refuse = |problem| Err(Error::entry(&name, problem));
    let kind = kind(entry.header().entry_type(), &name);
    if let Kind::Global = kind {
        room.global_headers += 1;
        return Ok(());
    }
    let path = room.entry(&name)?;
    let size = entry.size();
    match kind {
        Kind::Global => Ok(()),
        Kind::Refused(what) => refuse(EntryProblem::Kind(what)),
        Kind::Directory if size > 0 => refuse(EntryProblem::Both),
        Kind::Directory => path.map_or(Ok(()), |path| layer.directory(path)),
        Kind::File if sparse(entry) => refuse(EntryProblem::Kind("sparse file")),
        Kind::File => {
            let Some(path) = path else { return refuse(EntryProblem::NoName) };
            if layer.whiteout(&path)? {
                return Ok(());
            }
            room.file(&path, size)?;
            let begin = entry.raw_file_position();
            let content = content(entry, size).map_err(|e| Error::Broken { what: "tar archive", problem: text::said(&e.to_string()) })?;
            // What came after the archive's end is no content.
            let found = (content.len() as u64).min(real.get().saturating_sub(begin));
            if found != size {
                return refuse(EntryProblem::Short { found, declared: size });
            }
            layer.file(path, content)
        }
    }
}

/// `size` is within the limits here.
fn content(entry: &mut Entry<'_, &mut dyn Read>, size: u64) -> std::io::Result<Vec<u8>> {
    const FIRST: u64 = 64 << 10;
    let mut content = Vec::with_capacity(usize::try_from(size.min(FIRST)).unwrap_or(0));
    entry.take(size).read_to_end(&mut content)?;
    content.shrink_to_fit();
    Ok(content)
}

/// Sparse files in the PAX dialect are files to everything but GNU tar.
fn sparse(entry: &mut Entry<'_, &mut dyn Read>) -> bool {
    let Ok(Some(extensions)) = entry.pax_extensions() else { return false };
    extensions.flatten().any(|extension| extension.key_bytes().starts_with(b"GNU.sparse."))
}
