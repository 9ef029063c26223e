//! The directory of one control plane. A lock in it says whether somebody lives there.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::component::alive;

const LOCK: &str = "lock";
/// How long the watchdog of a killed owner may take to clean up.
const SETTLE: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(50);

/// A directory that is ours as long as the lock is held.
#[derive(Debug)]
pub(super) struct RunDir {
    path: PathBuf,
    lock: File,
}

impl RunDir {
    /// A new directory, or `wanted`: it may be empty, missing, or left behind by an earlier control plane.
    pub(super) fn open(wanted: Option<&Path>) -> Result<Self> {
        let path = match wanted {
            Some(path) => std::path::absolute(path)?,
            None => tempfile::Builder::new().prefix("weir-kube-").tempdir().context("cannot create a run directory")?.keep(),
        };
        // A look at the lock takes it for a moment, and a directory may be removed between two steps: so it is tried again.
        let end = Instant::now() + SETTLE;
        while Instant::now() < end {
            if let Some(run_dir) = Self::try_open(&path).with_context(|| format!("cannot use {} as run directory", path.display()))? {
                return Ok(run_dir);
            }
            if let Some(pid) = running(&path)? {
                bail!("a control plane is running already in {} (process {pid})", path.display());
            }
            std::thread::sleep(PAUSE);
        }
        bail!("{} is held by others all the time", path.display())
    }

    fn try_open(path: &Path) -> Result<Option<Self>> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        // Keys and tokens are below it.
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        let place = path.join(LOCK);
        if !place.exists() && fs::read_dir(path)?.next().is_some() {
            bail!("it is not empty, and no control plane left it behind; name another one");
        }
        let mut lock = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&place)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error).context("cannot lock it"),
        }
        // Whoever held the lock before may have removed the directory after we opened the file.
        if !is_at(&lock, &place)? {
            return Ok(None);
        }
        clear(path)?;
        lock.set_len(0)?;
        lock.seek(SeekFrom::Start(0))?;
        write!(lock, "{}", std::process::id())?;
        Ok(Some(Self { path: path.to_owned(), lock }))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A second handle on the lock: it is held until both are closed.
    pub(super) fn lock(&self) -> Result<File> {
        self.lock.try_clone().context("cannot share the lock of the run directory")
    }
}

/// Removes a run directory, the lock last: without it the rest would look like somebody else's. What cannot be removed is not
/// reported, because this is the end of the owner; the next start in the same directory clears it.
pub(super) fn remove(dir: &Path) {
    let removed = clear(dir).and_then(|()| Ok(fs::remove_file(dir.join(LOCK))?)).and_then(|()| Ok(fs::remove_dir(dir)?));
    drop(removed);
}

/// The process that runs a control plane in a directory, if one does. When it was killed a moment ago, this waits for the end of
/// the cleaning.
pub fn running(dir: &Path) -> Result<Option<u32>> {
    let path = dir.join(LOCK);
    let end = Instant::now() + SETTLE;
    while Instant::now() < end {
        let lock = match File::open(&path) {
            Ok(lock) => lock,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        match lock.try_lock_shared() {
            Ok(()) => return Ok(None),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error).with_context(|| format!("cannot lock {}", path.display())),
        }
        // Nobody, when it has just been taken and its owner has not said yet who it is.
        let owner = fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok());
        if let Some(pid) = owner.filter(|pid| alive(*pid)) {
            return Ok(Some(pid));
        }
        std::thread::sleep(PAUSE);
    }
    bail!("{} is locked, and its owner is gone", path.display())
}

fn is_at(file: &File, path: &Path) -> Result<bool> {
    let held = file.metadata()?;
    Ok(fs::metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == (held.dev(), held.ino())))
}

/// Everything but the lock.
fn clear(dir: &Path) -> Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name() == LOCK {
            continue;
        }
        if entry.file_type()?.is_dir() { fs::remove_dir_all(entry.path())? } else { fs::remove_file(entry.path())? }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_in_use_is_refused_and_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b");
        assert_eq!(running(&path).unwrap(), None);
        let first = RunDir::open(Some(&path)).unwrap();
        assert_eq!(running(&path).unwrap(), Some(std::process::id()));
        let error = RunDir::open(Some(&path)).unwrap_err().to_string();
        assert!(error.contains("running already"), "{error}");
        let second_handle = first.lock().unwrap();
        drop(first);
        assert!(running(&path).unwrap().is_some());
        drop(second_handle);
        assert_eq!(running(&path).unwrap(), None);
    }

    #[test]
    fn what_an_earlier_one_left_is_cleared_and_what_others_have_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run");
        drop(RunDir::open(Some(&path)).unwrap());
        fs::create_dir(path.join("etcd")).unwrap();
        fs::write(path.join("etcd/db"), "old").unwrap();
        let run_dir = RunDir::open(Some(&path)).unwrap();
        assert!(!path.join("etcd").exists());
        fs::write(path.join("log"), "").unwrap();
        remove(run_dir.path());
        assert!(!path.exists());

        fs::write(dir.path().join("mine"), "").unwrap();
        let error = format!("{:#}", RunDir::open(Some(dir.path())).unwrap_err());
        assert!(error.contains("not empty"), "{error}");
        assert!(dir.path().join("mine").exists());
    }
}
