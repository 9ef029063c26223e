//! A layer: a tar stream that is the same for the same files, wherever and whenever it is written.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::{Context, Result, bail};
use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

use crate::Blob;

/// Files and directories by path, without the leading `/`.
pub struct Layer {
    entries: BTreeMap<String, Entry>,
    created: u64,
}

enum Entry {
    Directory { mode: u32 },
    File { mode: u32, bytes: Vec<u8> },
    Link { target: String },
}

/// A finished layer.
pub struct Finished {
    /// Compressed.
    pub blob: Blob,
    /// Digest of the tar stream before it was compressed.
    pub diff_id: String,
    /// Its size before it was compressed, bytes.
    pub unpacked: usize,
}

impl Layer {
    /// An empty one, made `created` seconds after 1970.
    pub fn new(created: u64) -> Self {
        Self { entries: BTreeMap::new(), created }
    }

    /// Adds a file, and the directories above it.
    ///
    /// # Errors
    /// A path that leaves the image, or is taken.
    pub fn file(&mut self, path: &str, mode: u32, bytes: Vec<u8>) -> Result<()> {
        let path = path.trim_start_matches('/');
        if path.is_empty() || path.split('/').any(|part| part.is_empty() || part == "." || part == "..") {
            bail!("{path:?} is no path of a file in an image");
        }
        let mut above = String::new();
        for part in path.rsplit_once('/').map(|(above, _)| above).unwrap_or_default().split('/').filter(|part| !part.is_empty()) {
            above.push_str(part);
            self.entries.entry(above.clone()).or_insert(Entry::Directory { mode: 0o755 });
            above.push('/');
        }
        if self.entries.contains_key(path) {
            bail!("two files want the path /{path} in the image");
        }
        self.entries.insert(path.to_owned(), Entry::File { mode, bytes });
        Ok(())
    }

    /// Adds a symbolic link, and the directories above it.
    ///
    /// # Errors
    /// A path that leaves the image, or is taken.
    pub fn link(&mut self, path: &str, target: &str) -> Result<()> {
        self.file(path, 0o777, Vec::new())?;
        self.entries.insert(path.trim_start_matches('/').to_owned(), Entry::Link { target: target.to_owned() });
        Ok(())
    }

    /// Adds a directory, or gives one that is there another mode.
    pub fn directory(&mut self, path: &str, mode: u32) {
        let path = path.trim_matches('/');
        let mut above = String::new();
        for part in path.split('/') {
            above.push_str(part);
            self.entries.entry(above.clone()).or_insert(Entry::Directory { mode: 0o755 });
            above.push('/');
        }
        self.entries.insert(path.to_owned(), Entry::Directory { mode });
    }

    /// Owned by root; sorted by path, so that a directory precedes what is in it.
    ///
    /// # Errors
    /// A file that no layer has room for.
    pub fn finish(self, compression: Compression) -> Result<Finished> {
        let mut tar = Builder::new(Vec::new());
        for (path, entry) in &self.entries {
            let mut header = Header::new_gnu();
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(self.created);
            let (mode, bytes): (u32, &[u8]) = match entry {
                Entry::Directory { mode } => (*mode, &[]),
                Entry::File { mode, bytes } => (*mode, bytes),
                Entry::Link { .. } => (0o777, &[]),
            };
            header.set_mode(mode);
            header.set_size(u64::try_from(bytes.len()).context("a file is too large for an image")?);
            let path = match entry {
                Entry::Directory { .. } => {
                    header.set_entry_type(EntryType::Directory);
                    format!("{path}/")
                }
                Entry::Link { target } => {
                    header.set_entry_type(EntryType::Symlink);
                    tar.append_link(&mut header, path, target).with_context(|| format!("cannot put /{path} into the image"))?;
                    continue;
                }
                Entry::File { .. } => path.clone(),
            };
            tar.append_data(&mut header, &path, bytes).with_context(|| format!("cannot put /{path} into the image"))?;
        }
        let stream = tar.into_inner().context("cannot write a layer")?;
        // No name and no time in gzip's own header.
        let mut gzip = GzBuilder::new().mtime(0).write(Vec::new(), compression);
        gzip.write_all(&stream).context("cannot compress a layer")?;
        let blob = Blob::new(gzip.finish().context("cannot compress a layer")?);
        Ok(Finished { blob, diff_id: format!("sha256:{}", hex::encode(Sha256::digest(&stream))), unpacked: stream.len() })
    }
}
