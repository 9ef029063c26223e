//! A directory per module and version, written once.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::module::Module;
use super::{Progress, go};

/// `control-plane/` below the user's cache directory. Shared by every checkout on the machine.
pub(super) struct Cache {
    root: PathBuf,
}

impl Cache {
    /// The user's cache, by the rules of the desktop specification.
    pub(super) fn open() -> Result<Self> {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let cache = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
        let cache = cache.context("neither XDG_CACHE_HOME nor HOME names a directory to keep the control plane's programs in")?;
        Ok(Self { root: cache.join("weir").join("control-plane") })
    }

    /// Where a module's products are, or would be.
    pub(super) fn dir(&self, module: &Module) -> PathBuf {
        // A key fails only when go.mod is broken, and then nothing of it was ever written.
        self.root.join(module.key().unwrap_or_else(|_| module.name.to_owned()))
    }

    /// Whether a module was built.
    pub(super) fn has(&self, module: &Module) -> bool {
        self.dir(module).is_dir()
    }

    /// Builds a module unless it is there. One build at a time on a machine: two would take turns on the same processors, and the
    /// second one finds most of its work done.
    pub(super) fn ensure(&self, module: &Module, progress: &mut Progress<'_>) -> Result<()> {
        if self.has(module) {
            return Ok(());
        }
        fs::create_dir_all(&self.root).with_context(|| format!("cannot create {}", self.root.display()))?;
        let _lock = self.lock(progress)?;
        if self.has(module) {
            return Ok(());
        }
        let staging = tempfile::Builder::new().prefix(".building-").tempdir_in(&self.root)?;
        let (source, out) = (staging.path().join("source"), staging.path().join("out"));
        fs::create_dir_all(&out)?;
        go::build(module, &source, &out, progress)?;
        let dir = self.dir(module);
        fs::rename(&out, &dir).with_context(|| format!("cannot move the build to {}", dir.display()))
    }

    fn lock(&self, progress: &mut Progress<'_>) -> Result<File> {
        let path: &Path = &self.root.join("lock");
        let lock = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(fs::TryLockError::WouldBlock) => progress("another process is building the control plane; waiting for it …"),
            Err(fs::TryLockError::Error(error)) => return Err(error).with_context(|| format!("cannot lock {}", path.display())),
        }
        lock.lock().with_context(|| format!("cannot lock {}", path.display()))?;
        Ok(lock)
    }
}
