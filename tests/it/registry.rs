//! `weir_host::oci` against a real registry, filled by the tools that people use and, with what no tool would push, by a pusher of ours.

mod access;
mod forms;
mod hostile;
mod signatures;
mod tools;

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use libtest_mimic::Trial;
use tokio::runtime::Runtime;
use weir_host::oci::{Artifact, Credentials, Error, Limits, Puller, Reference, Registries, Resolved, Retries};
use weir_testkit::{
    registry::{Registry, RegistryOptions, archive::Archive},
    skipped,
};

pub(crate) use hostile::as_puller;

const OCI: &str = "application/vnd.oci.image.manifest.v1+json";
const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
const DOCKER: &str = "application/vnd.docker.distribution.manifest.v2+json";
const TAR: &str = "application/vnd.oci.image.layer.v1.tar";
const TAR_GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const TAR_ZSTD: &str = "application/vnd.oci.image.layer.v1.tar+zstd";

const HANDLER: &str = "return { VERSION = \"1.0.0\", PRIORITY = 10 }\n";
const SCHEMA: &str = "return { name = \"x\", fields = {} }\n";

pub(crate) fn tests() -> Vec<Trial> {
    [tools::tests(), forms::tests(), access::tests(), hostile::tests(), signatures::tests()].into_iter().flatten().collect()
}

/// Starts one, or says that this machine cannot.
pub(crate) fn registry(test: &str, options: &RegistryOptions) -> Option<Registry> {
    if let Some(reason) = Registry::missing() {
        skipped(test, &reason).unwrap();
        return None;
    }
    Some(Registry::start(options).unwrap())
}

/// A puller and what it runs on.
struct Client {
    runtime: Runtime,
    puller: Puller,
}

impl Client {
    fn new(registries: Registries) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { runtime, puller: Puller::new(registries).unwrap() }
    }

    fn pull(&self, reference: &str) -> Result<Artifact, Error> {
        self.pull_as(reference, &Credentials::Anonymous)
    }

    fn pull_as(&self, reference: &str, credentials: &Credentials) -> Result<Artifact, Error> {
        let reference = Reference::parse(reference).unwrap();
        self.runtime.block_on(self.puller.pull(&reference, credentials, &Limits::PLUGIN))
    }

    fn resolve(&self, reference: &str) -> Result<Resolved, Error> {
        let reference = Reference::parse(reference).unwrap();
        self.runtime.block_on(self.puller.resolve(&reference, &Credentials::Anonymous))
    }
}

/// Nobody waits long for a registry that a test has stopped.
fn settings() -> Registries {
    let retries = Retries { tries: 2, pause: Duration::from_millis(10), total: Duration::from_secs(1) };
    Registries { retries, ..Registries::default() }
}

/// A directory that goes with its test.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("weir-registry-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(name);
        fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    /// With the plugin in [`folder`](Self::folder).
    fn plugin() -> Self {
        let dir = Self::new();
        for (path, text) in plugin() {
            dir.write(&format!("plugin/{path}"), text);
        }
        dir
    }

    fn folder(&self) -> PathBuf {
        self.0.join("plugin")
    }

    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn plugin() -> BTreeMap<&'static str, &'static str> {
    BTreeMap::from([("handler.lua", HANDLER), ("schema.lua", SCHEMA)])
}

fn plugin_archive() -> Archive {
    Archive::new().file("handler.lua", HANDLER).unwrap().file("schema.lua", SCHEMA).unwrap()
}

fn files(artifact: &Artifact) -> BTreeMap<&str, &str> {
    artifact.files.iter().map(|(path, content)| (path.as_str(), std::str::from_utf8(content).unwrap())).collect()
}
