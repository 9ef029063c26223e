//! Layers on top of each other, as the OCI image specification has it.

use std::collections::{BTreeMap, BTreeSet};

use super::{EntryProblem, Error, path::parents};

/// Marks a removal.
const WHITEOUT: &str = ".wh.";
/// Removes everything in its directory that lower layers have.
const OPAQUE: &str = ".wh..wh..opq";
/// What aufs kept for itself.
const AUFS: &str = ".wh..wh.";

/// One layer.
#[derive(Debug, Default)]
pub(in crate::oci) struct Layer {
    files: BTreeMap<String, Vec<u8>>,
    /// Directories, those above files too.
    directories: BTreeSet<String>,
    removed: BTreeSet<String>,
    /// Directories that hide what lies below; empty for the root.
    opaque: BTreeSet<String>,
}

impl Layer {
    /// Adds a file. Two entries for one path would make the content depend on the reader.
    pub(super) fn file(&mut self, path: String, content: Vec<u8>) -> Result<(), Error> {
        if self.files.contains_key(&path) {
            return Err(Error::entry(path.as_bytes(), EntryProblem::Twice));
        }
        if self.directories.contains(&path) {
            return Err(Error::entry(path.as_bytes(), EntryProblem::Both));
        }
        self.above(&path)?;
        self.files.insert(path, content);
        Ok(())
    }

    /// Adds a directory.
    pub(super) fn directory(&mut self, path: String) -> Result<(), Error> {
        if self.files.contains_key(&path) {
            return Err(Error::entry(path.as_bytes(), EntryProblem::Both));
        }
        self.above(&path)?;
        self.directories.insert(path);
        Ok(())
    }

    /// Whether `path` is a removal, and takes note of it.
    pub(super) fn whiteout(&mut self, path: &str) -> Result<bool, Error> {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let Some(removed) = name.strip_prefix(WHITEOUT) else { return Ok(false) };
        if name == OPAQUE {
            self.opaque.insert(parent.to_owned());
        } else if !name.starts_with(AUFS) {
            if matches!(removed, "" | "." | "..") {
                return Err(Error::entry(path.as_bytes(), EntryProblem::NoName));
            }
            self.removed.insert(if parent.is_empty() { removed.to_owned() } else { format!("{parent}/{removed}") });
        }
        Ok(true)
    }

    fn above(&mut self, path: &str) -> Result<(), Error> {
        for parent in parents(path) {
            if self.files.contains_key(parent) {
                return Err(Error::entry(parent.as_bytes(), EntryProblem::Both));
            }
            if !self.directories.insert(parent.to_owned()) {
                break;
            }
        }
        Ok(())
    }

    fn hides(&self, path: &str) -> bool {
        let replaced = self.directories.contains(path) || self.removed.contains(path);
        // A file of this layer hides a directory of the same name, and all below it.
        replaced
            || self.opaque.contains("")
            || parents(path).any(|parent| self.removed.contains(parent) || self.opaque.contains(parent) || self.files.contains_key(parent))
    }
}

/// All layers so far.
#[derive(Debug, Default)]
pub(in crate::oci) struct Tree {
    files: BTreeMap<String, Vec<u8>>,
}

impl Tree {
    /// Puts `layer` on top.
    pub(in crate::oci) fn put(&mut self, layer: Layer) {
        self.files.retain(|path, _| !layer.hides(path));
        self.files.extend(layer.files);
    }

    pub(in crate::oci) fn into_files(self) -> BTreeMap<String, Vec<u8>> {
        self.files
    }
}
