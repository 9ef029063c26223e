//! A real registry on this machine, and everything that pushes to it: skopeo, umoci, oras, crane, cosign, and a pusher of ours for
//! what none of them would push.

mod access;
pub mod archive;
mod files;
mod image;
pub mod pack;
mod push;
mod raw;
mod sign;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

pub use access::Request;
pub use image::{Image, Layer};
pub use push::Format;
pub use raw::{Descriptor, Pulled, Raw};
pub use sign::KeyFiles;

use crate::binaries::{DOCKER_REGISTRY, HTPASSWD, SKOPEO, UMOCI, not_installed};
use crate::server::{Ready, Server};
use files::Authority;

/// With TLS the server says that a request without TLS is a bad one; without, that it serves or wants a password.
const PLAIN: Ready = Ready { target: "/v2/", statuses: &[200, 401] };
const TLS: Ready = Ready { target: "/v2/", statuses: &[400] };

/// How to run a registry.
#[derive(Debug, Clone, Default)]
pub struct RegistryOptions {
    /// HTTPS with a certificate of an authority of its own, see [`Registry::ca_pem`].
    pub tls: bool,
    /// Who may push and pull; nobody else may then.
    pub credentials: Option<Credentials>,
}

/// A user of a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The name.
    pub user: String,
    /// The password.
    pub password: String,
}

impl Credentials {
    /// A user with a password.
    pub fn new(user: &str, password: &str) -> Self {
        Self { user: user.to_owned(), password: password.to_owned() }
    }
}

/// Debian's `docker-registry` on a loopback port, with storage of its own and deletion allowed. Dropping it kills it and removes
/// everything.
#[derive(Debug)]
pub struct Registry {
    server: Server,
    credentials: Option<Credentials>,
    authority: Option<Authority>,
    /// Where clients that read `config.json` or a directory of certificates find theirs.
    clients: tempfile::TempDir,
}

impl Registry {
    /// Why this machine cannot run a registry and push to it with skopeo and umoci, in one line; `None` if it can.
    pub fn missing() -> Option<String> {
        not_installed(&[DOCKER_REGISTRY, HTPASSWD, SKOPEO, UMOCI])
    }

    /// Starts one and waits until it answers.
    pub fn start(options: &RegistryOptions) -> Result<Self> {
        let authority = options.tls.then(Authority::new).transpose()?;
        let ready = if options.tls { TLS } else { PLAIN };
        let credentials = options.credentials.as_ref();
        let server = Server::start("docker-registry", ready, &mut |dir, port| {
            files::write(dir, port, credentials, authority.as_ref())?;
            command(dir)
        })?;
        let registry = Self {
            server,
            credentials: options.credentials.clone(),
            authority,
            clients: tempfile::Builder::new().prefix("weir-").tempdir()?,
        };
        registry.write_for_clients()?;
        Ok(registry)
    }

    /// Kills it. Its storage and its port stay for [`resume`](Self::resume).
    pub fn stop(&mut self) {
        self.server.stop();
    }

    /// Starts it again after [`stop`](Self::stop).
    pub fn resume(&mut self) -> Result<()> {
        self.server.resume(&mut |dir, _| command(dir))
    }

    /// Another password for the same user, from now on the only one; our own pushes use it too.
    pub fn set_password(&mut self, password: &str) -> Result<()> {
        let credentials = self.credentials.as_mut().context("this registry has no user")?;
        credentials.password = password.to_owned();
        files::write_passwords(self.server.dir(), credentials)?;
        self.write_for_clients()?;
        self.stop();
        self.resume()
    }

    /// `127.0.0.1:PORT`.
    pub fn host(&self) -> String {
        self.server.host()
    }

    /// Its port, for those who call it `localhost`.
    pub fn port(&self) -> u16 {
        self.server.port()
    }

    /// What an image is called: `tag` is a tag, or a digest with its algorithm.
    pub fn reference(&self, repository: &str, tag: &str) -> String {
        let separator = if tag.contains(':') { '@' } else { ':' };
        format!("{}/{repository}{separator}{tag}", self.host())
    }

    /// The authority that signed its certificate, if it has one.
    pub fn ca_pem(&self) -> Option<&str> {
        self.authority.as_ref().map(|authority| authority.ca_pem.as_str())
    }

    /// Who may push and pull, if not everybody.
    pub fn credentials(&self) -> Option<&Credentials> {
        self.credentials.as_ref()
    }

    /// What a pull secret of type `kubernetes.io/dockerconfigjson` holds; without credentials, one that names no registry.
    pub fn docker_config(&self) -> Result<serde_json::Value> {
        files::docker_config(&self.host(), self.credentials.as_ref())
    }

    /// Every request so far that has been answered, in order, over all runs.
    pub fn requests(&self) -> Result<Vec<Request>> {
        access::read(&self.server.log())
    }

    /// The file that holds a blob or a manifest: for tests that spoil it behind the registry's back.
    pub fn blob_file(&self, digest: &str) -> Result<PathBuf> {
        let hex = digest.strip_prefix("sha256:").with_context(|| format!("{digest} is not a digest"))?;
        let start = hex.get(..2).with_context(|| format!("{digest} is not a digest"))?;
        let file = files::storage(self.server.dir()).join("docker/registry/v2/blobs/sha256").join(start).join(hex).join("data");
        if !file.is_file() {
            bail!("{digest} was not pushed");
        }
        Ok(file)
    }

    /// Our own pusher and puller for a repository. It speaks no TLS.
    pub fn raw(&self, repository: &str) -> Result<Raw> {
        if self.authority.is_some() {
            bail!("this registry speaks TLS, and the raw pusher does not");
        }
        Raw::new(self.host(), repository, self.credentials.as_ref())
    }

    fn write_for_clients(&self) -> Result<()> {
        std::fs::write(self.clients.path().join("config.json"), self.docker_config()?.to_string())?;
        let certs = self.clients.path().join("certs");
        std::fs::create_dir_all(&certs)?;
        self.ca_pem().map_or(Ok(()), |pem| Ok(std::fs::write(certs.join("ca.crt"), pem)?))
    }
}

fn command(dir: &Path) -> Result<Command> {
    let mut command = Command::new(DOCKER_REGISTRY.find()?);
    // Variables named REGISTRY_… override the configuration.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("REGISTRY_")) {
        command.env_remove(name);
    }
    command.arg("serve").arg(files::config(dir));
    Ok(command)
}
