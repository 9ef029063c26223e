//! Directories of our own: nobody else writes there, files appear whole or not at all, and the oldest go first when there are too
//! many. What is read is still checked by whoever reads it.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::SystemTime,
};

/// What unfinished files are called.
const UNFINISHED: &str = ".tmp-";

/// Why a directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be made or read.
    #[error("directory {}: {source}", .path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Somebody else could write there.
    #[error("directory {}: {why}; it must be owned by user {uid} and writable by nobody else (mode 0700)", .path.display())]
    Exposed {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
        /// The user of this process.
        uid: u32,
    },
}

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unread {
    /// What it is says that it is not ours.
    #[error("{0}")]
    Spoilt(String),
    /// It may be read another time.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Makes `dir` with mode 0700 if it is not there, and refuses one that others could write to.
pub(crate) fn private(dir: &Path) -> Result<(), Error> {
    let io = |source| Error::Io { path: dir.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(io)?;
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

/// Opens a file of ours, `None` if there is none.
pub(crate) fn open(path: &Path) -> Result<Option<File>, Unread> {
    // No symbolic link: the file's own owner and mode have to be what is checked.
    let flags = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default();
    let file = match File::options().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(_) if fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink()) => {
            return Err(Unread::Spoilt("it is a symbolic link".into()));
        }
        Err(e) => return Err(e.into()),
    };
    exposed(&file.metadata()?).map_or(Ok(Some(file)), |why| Err(Unread::Spoilt(why)))
}

/// Marks a use for [`evict`]; a read-only file system only makes eviction less clever.
pub(crate) fn used(file: &File) {
    drop(file.set_modified(SystemTime::now()));
}

/// Temporary file, fsync, rename: a reader sees a whole file or none. `path` is a file of `dir`.
pub(crate) fn write(dir: &Path, path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(dir)?;
    for part in parts {
        file.write_all(part)?;
    }
    file.as_file().sync_all()?;
    file.persist(path).map_err(|e| e.error)?;
    File::open(dir)?.sync_all()
}

/// A file that may go.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    /// When it was used last.
    pub(crate) used: SystemTime,
    /// Bytes.
    pub(crate) size: u64,
    /// Where.
    pub(crate) path: PathBuf,
}

/// The files of `dir`, unfinished ones too.
pub(crate) fn files(dir: &Path) -> io::Result<Vec<Entry>> {
    let files = fs::read_dir(dir)?.flatten().filter_map(|file| {
        let meta = file.metadata().ok().filter(fs::Metadata::is_file)?;
        Some(Entry { used: meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), size: meta.len(), path: file.path() })
    });
    Ok(files.collect())
}

/// Deletes the files used longest ago until the rest has at most `most` bytes; never those that `keep` wants. Returns the bytes left.
pub(crate) fn evict(mut files: Vec<Entry>, most: u64, keep: impl Fn(&Path) -> bool) -> io::Result<u64> {
    files.sort();
    let mut total: u64 = files.iter().map(|file| file.size).sum();
    for file in files.into_iter().filter(|file| !keep(&file.path)) {
        if total <= most {
            break;
        }
        match fs::remove_file(&file.path) {
            Ok(()) => {}
            // Another process was quicker.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
        total = total.saturating_sub(file.size);
    }
    Ok(total)
}
