//! Components on disk, so that a restart needs no registry: `components/<sha256>.wasm`, and in `manifests/` what a manifest led to.
//!
//! Nothing is believed because of where it lies: components are hashed again when they are read, records carry a checksum, and what
//! does not pass is deleted and pulled again. Everything here blocks on the file system.

mod error;
mod record;

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

pub use self::{error::Error, record::Known};
use super::digest;
use crate::disk::{self, Unread};

/// Records kept. With [`record::MAX`] this bounds their bytes.
const MAX_RECORDS: u64 = 512;

/// An open store. One per directory and process: eviction of two would count each other's files, but not each other's [`Store::keep`].
#[derive(Debug)]
pub struct Store {
    components: PathBuf,
    manifests: PathBuf,
    most: u64,
    /// Digests of layers that stay. Held while files are added, so that two threads do not use the same room.
    kept: Mutex<BTreeSet<String>>,
}

impl Store {
    /// Opens or makes the store in `dir`, of at most `most_bytes` of components. The directory belongs to this user alone (mode 0700).
    ///
    /// # Errors
    /// When the directory cannot be made, or others could write there.
    pub fn open(dir: &Path, most_bytes: u64) -> Result<Self, Error> {
        let (components, manifests) = (dir.join("components"), dir.join("manifests"));
        for dir in [dir, &components, &manifests] {
            disk::private(dir)?;
        }
        Ok(Self { components, manifests, most: most_bytes, kept: Mutex::default() })
    }

    /// The layers that are never evicted, and the records that lead to them, until this is called again.
    pub fn keep(&self, layer_digests: &BTreeSet<String>) {
        self.kept().clone_from(layer_digests);
    }

    /// The component with this digest. One that has another is deleted and counts as none.
    #[must_use]
    pub fn get(&self, layer_digest: &str) -> Option<Vec<u8>> {
        let path = self.component(layer_digest).ok()?;
        read(&path, self.most, |bytes| {
            if digest::of(&bytes) == layer_digest { Ok(bytes) } else { Err("it does not have the digest it is named after".to_owned()) }
        })
    }

    /// Keeps a component, and makes room for it by deleting those that were used longest ago.
    ///
    /// # Errors
    /// See [`Error`]. The component can be used all the same, and is pulled again after a restart.
    pub fn put(&self, layer_digest: &str, bytes: &[u8]) -> Result<(), Error> {
        let path = self.component(layer_digest)?;
        let found = digest::of(bytes);
        if found != layer_digest {
            return Err(Error::Content { expected: layer_digest.to_owned(), found });
        }
        let size = bytes.len() as u64;
        let Some(room) = self.most.checked_sub(size) else {
            return Err(Error::TooLarge { digest: layer_digest.to_owned(), found: size, most: self.most });
        };
        let io = |source| Error::Io { path: path.clone(), source };
        let kept = self.kept();
        // What is there under this name is replaced, so it takes no room.
        let others = disk::files(&self.components).map_err(io)?.into_iter().filter(|file| file.path != path).collect();
        let left = disk::evict(others, room, |file| self.is_kept(file, &kept)).map_err(io)?;
        if left > room {
            return Err(Error::Full { digest: layer_digest.to_owned(), size, kept: left, most: self.most });
        }
        disk::write(&self.components, &path, &[bytes]).map_err(io)
    }

    /// Writes down what a manifest led to.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn remember(&self, manifest_digest: &str, known: &Known) -> Result<(), Error> {
        let path = self.record(manifest_digest)?;
        let io = |source| Error::Io { path: path.clone(), source };
        let text = record::write(manifest_digest, known)?;
        let kept = self.kept();
        let others: Vec<_> = disk::files(&self.manifests).map_err(io)?.into_iter().filter(|file| file.path != path).collect();
        if others.len() as u64 >= MAX_RECORDS {
            // Each counts as one.
            let others = others.into_iter().map(|file| disk::Entry { size: 1, ..file }).collect();
            disk::evict(others, MAX_RECORDS - 1, |file| leads_to(file, &kept)).map_err(io)?;
        }
        disk::write(&self.manifests, &path, &[text.as_bytes()]).map_err(io)
    }

    /// What the manifest led to, if it was ever written down. A record that is damaged is deleted and counts as none.
    #[must_use]
    pub fn recall(&self, manifest_digest: &str) -> Option<Known> {
        let path = self.record(manifest_digest).ok()?;
        read(&path, record::MAX, |bytes| record::read(manifest_digest, &bytes)).flatten()
    }

    fn kept(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_kept(&self, file: &Path, kept: &BTreeSet<String>) -> bool {
        kept.iter().any(|digest| self.component(digest).is_ok_and(|path| path == file))
    }

    fn component(&self, layer_digest: &str) -> Result<PathBuf, Error> {
        match layer_digest.strip_prefix("sha256:").filter(|_| digest::valid(layer_digest)) {
            Some(hex) => Ok(self.components.join(format!("{hex}.wasm"))),
            None => Err(Error::Digest(layer_digest.to_owned())),
        }
    }

    fn record(&self, manifest_digest: &str) -> Result<PathBuf, Error> {
        if !digest::valid(manifest_digest) {
            return Err(Error::Digest(manifest_digest.to_owned()));
        }
        Ok(self.manifests.join(format!("{}.json", manifest_digest.replace(':', "-"))))
    }
}

/// Whether a record is of a layer that stays.
fn leads_to(file: &Path, kept: &BTreeSet<String>) -> bool {
    let text = disk::open(file).ok().flatten().and_then(|mut file| bounded(&mut file, record::MAX).ok());
    text.and_then(|text| record::layer(&text)).is_some_and(|layer| kept.contains(&layer))
}

/// The file at `path`, as `check` finds it. One that is spoilt is deleted; one that cannot be read now may be read later.
fn read<T>(path: &Path, most: u64, check: impl FnOnce(Vec<u8>) -> Result<T, String>) -> Option<T> {
    let outcome = disk::open(path).and_then(|file| {
        let Some(mut file) = file else { return Ok(None) };
        let checked = check(bounded(&mut file, most)?).map_err(Unread::Spoilt)?;
        disk::used(&file);
        Ok(Some(checked))
    });
    match outcome {
        Ok(found) => found,
        Err(Unread::Spoilt(reason)) => {
            tracing::warn!(target: "weir::host", path = %path.display(), %reason, "a stored file is not usable and is deleted");
            // If it cannot be deleted, the next read says so again.
            drop(fs::remove_file(path));
            None
        }
        Err(Unread::Io(error)) => {
            tracing::warn!(target: "weir::host", path = %path.display(), %error, "a stored file cannot be read");
            None
        }
    }
}

fn bounded(file: &mut File, most: u64) -> Result<Vec<u8>, Unread> {
    let length = file.metadata()?.len();
    if length > most {
        return Err(Unread::Spoilt(format!("it has {length} bytes, at most {most} are kept")));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}
