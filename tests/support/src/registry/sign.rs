//! Signing with cosign, which asks nobody outside of this machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{
    Registry,
    push::{run, say},
};
use crate::binaries;

/// A key pair of cosign's, in files.
#[derive(Debug, Clone)]
pub struct KeyFiles {
    /// For signing.
    pub private: PathBuf,
    /// For checking.
    pub public: PathBuf,
}

impl Registry {
    /// `cosign generate-key-pair` into `dir`, with a name for the files.
    pub fn cosign_key(&self, dir: &Path, name: &str) -> Result<KeyFiles> {
        let prefix = dir.join(name);
        self.cosign(&["generate-key-pair", "--output-key-prefix", &prefix.display().to_string()])?;
        Ok(KeyFiles { private: prefix.with_extension("key"), public: prefix.with_extension("pub") })
    }

    /// `cosign sign` as it is by default: a bundle that refers to the image. `config` and `root` are files: the services to ask, and
    /// what to check the signature with afterwards; without them cosign would ask the sigstore of the world.
    pub fn cosign_sign(&self, image: &str, config: &Path, root: &Path, more: &[&str]) -> Result<()> {
        let (config, root) = (config.display().to_string(), root.display().to_string());
        let args = [&["sign", "--yes", "--signing-config", &config, "--trusted-root", &root], more, &[image]].concat();
        self.cosign(&args).map(drop)
    }

    /// `cosign sign` as it was before version 3: an image tagged with the digest.
    pub fn cosign_sign_simple(&self, image: &str, key: &KeyFiles) -> Result<()> {
        let key = key.private.display().to_string();
        let old = ["--use-signing-config=false", "--tlog-upload=false", "--new-bundle-format=false"];
        self.cosign(&[&["sign", "--yes", "--key", &key], old.as_slice(), &[image]].concat()).map(drop)
    }

    /// `cosign` with any arguments; what it wrote to its standard output. Keys have no password.
    pub fn cosign(&self, args: &[&str]) -> Result<String> {
        let home = self.clients.path();
        let mut cosign = Command::new(binaries::cosign(&mut |line| say(line))?);
        cosign.current_dir(home).env("COSIGN_PASSWORD", "").env("HOME", home).env("TUF_ROOT", home.join("tuf")).env("DOCKER_CONFIG", home);
        if self.ca_pem().is_some() {
            cosign.env("SSL_CERT_FILE", home.join("certs/ca.crt"));
        }
        run(cosign.args(args)).context("cosign")
    }
}
