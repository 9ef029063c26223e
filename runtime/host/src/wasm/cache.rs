//! The AOT cache: `<dir>/<compat-hash>/<sha256 of the wasm>.cwasm`. An optimisation only: every failure ends in compiling again.
//!
//! A file is 32 bytes of SHA-256 and the compiled code they are of: wasmtime itself checks little more than the header.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::SystemTime,
};

use sha2::{Digest, Sha256};
use wasmtime::{Engine, component::Component};

use super::{aot, text};

const EXTENSION: &str = "cwasm";
const SUM: usize = 32;

/// Why the cache cannot be used. The host then keeps compiled code in memory only.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory cannot be made or read.
    #[error("cache directory {}: {source}", .path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Somebody else could put native code there.
    #[error("cache directory {}: {why}; it must be owned by user {uid} and writable by nobody else (mode 0700)", .path.display())]
    Exposed {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
        /// The user of this process.
        uid: u32,
    },
}

/// An open cache.
#[derive(Debug)]
pub(super) struct Cache {
    root: PathBuf,
    version: PathBuf,
    most: u64,
}

impl Cache {
    /// Opens or makes the cache for code of `compatibility`, at most `most` bytes in all versions together.
    pub(super) fn open(root: &Path, compatibility: &str, most: u64) -> Result<Self, Error> {
        let version = root.join(compatibility);
        for dir in [root, &version] {
            private(dir)?;
        }
        Ok(Self { root: root.to_owned(), version, most })
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
        let outcome = read(&path).and_then(|code| match code {
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

    /// Keeps compiled code. A failure is logged and changes nothing.
    pub(super) fn store(&self, digest: &str, code: &[u8]) {
        let path = self.path(digest);
        if let Err(reason) = self.write(&path, code).and_then(|()| self.evict(&path)) {
            tracing::warn!(target: "weir::host", path = %path.display(), %reason, "compiled code is not cached");
        }
    }

    /// Temporary file, fsync, rename: a reader sees a whole file or none.
    fn write(&self, path: &Path, code: &[u8]) -> io::Result<()> {
        if code.len() as u64 > self.most {
            return Err(io::Error::other("larger than the whole cache may be"));
        }
        let mut file = tempfile::Builder::new().prefix(".tmp-").tempfile_in(&self.version)?;
        file.write_all(&Sha256::digest(code))?;
        file.write_all(code)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|e| e.error)?;
        File::open(&self.version)?.sync_all()
    }

    /// Deletes the files used longest ago, of whatever version, until the rest fits; never `keep`.
    fn evict(&self, keep: &Path) -> io::Result<()> {
        let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for version in fs::read_dir(&self.root)?.flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir())) {
            for file in fs::read_dir(version.path())?.flatten() {
                if let Ok(meta) = file.metadata()
                    && meta.is_file()
                {
                    files.push((meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), meta.len(), file.path()));
                }
            }
        }
        files.sort();
        let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
        for (_, size, path) in files.into_iter().filter(|(_, _, path)| path != keep) {
            if total <= self.most {
                break;
            }
            fs::remove_file(&path)?;
            total = total.saturating_sub(size);
        }
        Ok(())
    }
}

/// Makes `dir` with mode 0700 if it is not there, and refuses one that others could write to.
fn private(dir: &Path) -> Result<(), Error> {
    let io = |source| Error::Io { path: dir.to_owned(), source };
    match DirBuilder::new().recursive(true).mode(0o700).create(dir) {
        Ok(()) => {}
        Err(e) => return Err(io(e)),
    }
    // Follows a symbolic link: what counts is where the files end up.
    exposed(&fs::metadata(dir).map_err(io)?)
        .map_or(Ok(()), |why| Err(Error::Exposed { path: dir.to_owned(), why, uid: rustix::process::geteuid().as_raw() }))
}

/// What lets somebody else write, if anything does.
fn exposed(meta: &fs::Metadata) -> Option<String> {
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Some(format!("it is owned by user {}", meta.uid()));
    }
    (meta.mode() & 0o022 != 0).then(|| format!("it has mode {:04o}", meta.mode() & 0o7777))
}

/// The code in a cache file, `None` if there is no file.
fn read(path: &Path) -> Result<Option<Vec<u8>>, String> {
    // No symbolic link: the file's own owner and mode have to be what is checked.
    let flags = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default();
    let mut file = match File::options().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e.to_string()),
    };
    let meta = file.metadata().map_err(|e| e.to_string())?;
    if let Some(why) = exposed(&meta) {
        return Err(why);
    }
    let mut sum = [0_u8; SUM];
    let mut code = Vec::new();
    file.read_exact(&mut sum).and_then(|()| file.read_to_end(&mut code)).map_err(|e| e.to_string())?;
    if Sha256::digest(&code).as_slice() != sum.as_slice() {
        return Err("its checksum is wrong".into());
    }
    // Marks the use for `evict`; a read-only file system only makes eviction less clever.
    drop(file.set_modified(SystemTime::now()));
    Ok(Some(code))
}
