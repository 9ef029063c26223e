//! The AOT cache: `<dir>/<compat-hash>/<sha256 of the wasm>.cwasm`. An optimisation only: every failure ends in compiling again.
//!
//! A file is 32 bytes of SHA-256 and the compiled code they are of: wasmtime itself checks little more than the header.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use sha2::{Digest, Sha256};
use wasmtime::{Engine, component::Component};

use super::{aot, text};
/// Why the cache cannot be used. The host then keeps compiled code in memory only.
pub use crate::disk::Error;
use crate::disk::{self, Unread};

const EXTENSION: &str = "cwasm";
const SUM: usize = 32;

/// An open cache.
#[derive(Debug)]
pub(super) struct Cache {
    root: PathBuf,
    version: PathBuf,
    most: u64,
    /// The last write failed, and somebody was told.
    failing: AtomicBool,
}

impl Cache {
    /// Opens or makes the cache for code of `compatibility`, at most `most` bytes in all versions together.
    pub(super) fn open(root: &Path, compatibility: &str, most: u64) -> Result<Self, Error> {
        let version = root.join(compatibility);
        for dir in [root, &version] {
            disk::private(dir)?;
        }
        Ok(Self { root: root.to_owned(), version, most, failing: AtomicBool::new(false) })
    }

    /// Where the cache is.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    fn path(&self, digest: &str) -> PathBuf {
        self.version.join(format!("{digest}.{EXTENSION}"))
    }

    /// The component of a wasm digest (64 hexadecimal digits). A file that does not load is deleted and counts as absent.
    pub(super) fn load(&self, engine: &Engine, digest: &str) -> Option<Component> {
        let path = self.path(digest);
        let outcome = read(&path).map_err(|e| e.to_string()).and_then(|code| match code {
            None => Ok(None),
            Some(code) => aot::load(engine, &code).map(Some).map_err(|e| text::chain(&e)),
        });
        match outcome {
            Ok(component) => component,
            Err(reason) => {
                tracing::warn!(target: "weir::host", path = %path.display(), %reason, "cached code is not usable and is deleted");
                // If it cannot be deleted, the next load says so again; the check above stands either way.
                drop(fs::remove_file(&path));
                None
            }
        }
    }

    /// Keeps compiled code. A failure changes nothing, and is logged once: of a disk that takes nothing, every component would say the same.
    pub(super) fn store(&self, digest: &str, code: &[u8]) {
        let path = self.path(digest);
        match self.write(&path, code).and_then(|()| self.evict(&path)) {
            Ok(()) => self.failing.store(false, Ordering::Relaxed),
            Err(reason) if !self.failing.swap(true, Ordering::Relaxed) => {
                tracing::warn!(target: "weir::host", path = %path.display(), %reason, "compiled code is not cached and kept in memory only");
            }
            Err(reason) => tracing::debug!(target: "weir::host", path = %path.display(), %reason, "compiled code is not cached"),
        }
    }

    fn write(&self, path: &Path, code: &[u8]) -> io::Result<()> {
        if code.len() as u64 > self.most {
            return Err(io::Error::other("larger than the whole cache may be"));
        }
        disk::write(&self.version, path, &[&Sha256::digest(code), code])
    }

    /// Deletes the files used longest ago, of whatever version, until the rest fits; never `keep`.
    fn evict(&self, keep: &Path) -> io::Result<()> {
        let mut files = Vec::new();
        for version in fs::read_dir(&self.root)?.flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir())) {
            files.append(&mut disk::files(&version.path())?);
        }
        disk::evict(files, self.most, |path| path == keep).map(drop)
    }
}

/// The code in a cache file, `None` if there is no file.
fn read(path: &Path) -> Result<Option<Vec<u8>>, Unread> {
    let Some(mut file) = disk::open(path)? else { return Ok(None) };
    let mut sum = [0_u8; SUM];
    let mut code = Vec::new();
    file.read_exact(&mut sum)?;
    file.read_to_end(&mut code)?;
    if Sha256::digest(&code).as_slice() != sum.as_slice() {
        return Err(Unread::Spoilt("its checksum is wrong".into()));
    }
    disk::used(&file);
    Ok(Some(code))
}
