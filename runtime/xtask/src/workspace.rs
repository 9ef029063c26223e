//! Where things are in the source tree. Every path a task uses is named here.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The source tree this xtask belongs to.
pub(crate) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// The tree that holds this crate: two levels above its manifest. Cargo names the manifest at run time, so a checkout that was
    /// moved after the build still finds itself; the compiled-in path serves a direct call of the binary.
    pub(crate) fn find() -> Result<Self> {
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = manifest.ancestors().nth(2).filter(|root| root.join("Cargo.toml").is_file());
        let root = root.context("cannot find the workspace; call this task as `cargo xtask …` inside the source tree")?;
        Ok(Self { root: root.to_path_buf() })
    }

    /// The directory of the workspace's Cargo.toml.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// A path below the root.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// Cargo's target directory of the main workspace; honours `CARGO_TARGET_DIR` as cargo does.
    pub(crate) fn target(&self) -> PathBuf {
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| self.path("target"), |dir| self.root.join(dir))
    }

    /// The workspace of the guests.
    pub(crate) fn guest_plugins(&self) -> PathBuf {
        self.path("guest-plugins")
    }

    /// Where finished guests go. Not moved by `CARGO_TARGET_DIR`: weir-host's build script looks here.
    pub(crate) fn guests_out(&self) -> PathBuf {
        self.path("target/guests")
    }

    /// A path as a person in the root directory would type it.
    pub(crate) fn show(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }
}
