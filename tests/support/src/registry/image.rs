//! Images made by umoci, the way a user without a container engine makes one.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::push::run;
use crate::binaries::{SKOPEO, UMOCI};

/// What one layer holds: a file or a directory of this machine, and where it is in the image.
#[derive(Debug, Clone)]
pub struct Layer {
    /// On this machine.
    pub from: PathBuf,
    /// In the image; `/` puts a directory's content at the top.
    pub to: String,
}

impl Layer {
    /// A layer of something at a place.
    pub fn new(from: impl Into<PathBuf>, to: &str) -> Self {
        Self { from: from.into(), to: to.to_owned() }
    }
}

/// An OCI layout with one tagged image.
#[derive(Debug)]
pub struct Image {
    dir: tempfile::TempDir,
}

impl Image {
    /// An image of layers, the first one at the bottom, by `umoci repack`. Layers are tar, compressed with gzip; what a layer before
    /// has already is not in the next one again.
    pub fn build(layers: &[Layer]) -> Result<Self> {
        let image = Self::empty()?;
        let bundle = image.dir.path().join("bundle");
        run(image.umoci("unpack")?.arg(&bundle))?;
        for layer in layers {
            copy(layer, &bundle.join("rootfs"))?;
            run(image.umoci("repack")?.arg("--refresh-bundle").arg(&bundle))?;
        }
        Ok(image)
    }

    /// The same by `umoci insert`. Up to 0.4.7, which Debian has, such layers end after the last byte of their last file, without
    /// what ends an archive (umoci's issue 436): GNU tar refuses them, container engines take them, registries are full of them.
    pub fn insert(layers: &[Layer]) -> Result<Self> {
        let image = Self::empty()?;
        for layer in layers {
            run(image.umoci("insert")?.arg(&layer.from).arg(&layer.to))?;
        }
        Ok(image)
    }

    fn empty() -> Result<Self> {
        let image = Self { dir: tempfile::Builder::new().prefix("weir-").tempdir()? };
        run(Command::new(UMOCI.find()?).args(["init", "--layout"]).arg(image.layout()))?;
        run(Command::new(UMOCI.find()?).args(["new", "--image", &image.tagged()]))?;
        Ok(image)
    }

    /// A command on the image. Who is not root cannot own what others own.
    fn umoci(&self, command: &str) -> Result<Command> {
        let mut umoci = Command::new(UMOCI.find()?);
        umoci.arg(command);
        // A bundle remembers how it was unpacked.
        if command != "repack" && !rustix::process::geteuid().is_root() {
            umoci.arg("--rootless");
        }
        umoci.args(["--image", &self.tagged()]);
        Ok(umoci)
    }

    fn tagged(&self) -> String {
        format!("{}:latest", self.layout().display())
    }

    /// The layout's directory.
    pub fn layout(&self) -> PathBuf {
        self.dir.path().join("image")
    }

    /// What skopeo calls it.
    pub fn source(&self) -> String {
        format!("oci:{}", self.tagged())
    }

    /// Writes it as `docker save` would, and returns what skopeo calls that.
    pub fn docker_archive(&self, file: &Path) -> Result<String> {
        let target = format!("docker-archive:{}", file.display());
        let mut skopeo = Command::new(SKOPEO.find()?);
        run(skopeo.args(["--insecure-policy", "copy", "--quiet"]).arg(self.source()).arg(format!("{target}:weir/test:latest")))?;
        Ok(target)
    }
}

/// By `cp`, which copies links as links.
fn copy(layer: &Layer, rootfs: &Path) -> Result<()> {
    let to = rootfs.join(layer.to.trim_start_matches('/'));
    let parent = if layer.from.is_dir() { Some(to.as_path()) } else { to.parent() };
    parent.map_or(Ok(()), std::fs::create_dir_all)?;
    let from = if layer.from.is_dir() { layer.from.join(".") } else { layer.from.clone() };
    run(Command::new("cp").arg("-R").arg(from).arg(to)).map(drop)
}
