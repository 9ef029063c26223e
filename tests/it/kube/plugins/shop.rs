//! Where plugins come from: a registry on loopback of a test's own, and the ways to push to it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use serde_json::{Value, json};
use weir_testkit::{
    binaries,
    registry::{Credentials, Format, Image, Layer, Registry, RegistryOptions, archive::Archive, pack},
    skipped,
};

use crate::kube::{install::Running, labs::Lab};

/// Texts by path.
pub(crate) type Files = BTreeMap<String, String>;

/// How an image is pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Made by umoci, pushed by skopeo with Docker's manifest.
    Docker,
    /// The same with OCI's manifest.
    Oci,
    /// Bare files, by oras.
    Oras,
    /// A layer on nothing, by crane.
    Crane,
    /// By our own pusher, which is the fastest.
    Raw,
}

impl Way {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Oci => "oci",
            Self::Oras => "oras",
            Self::Crane => "crane",
            Self::Raw => "raw",
        }
    }
}

/// A registry, and a directory for what is pushed to it.
pub(crate) struct Shop {
    pub(crate) registry: Registry,
    dir: PathBuf,
}

impl Shop {
    /// One that lets everybody in; says why where this machine cannot have it.
    pub(crate) fn open(lab: &Lab) -> Option<Self> {
        Self::start(lab, &RegistryOptions::default())
    }

    /// One with a user and a password.
    pub(crate) fn private(lab: &Lab) -> Option<Self> {
        let credentials = Some(Credentials::new("kong", "first-password"));
        Self::start(lab, &RegistryOptions { credentials, ..RegistryOptions::default() })
    }

    /// One with TLS, whose authority nobody trusts.
    pub(crate) fn encrypted(lab: &Lab) -> Option<Self> {
        Self::start(lab, &RegistryOptions { tls: true, ..RegistryOptions::default() })
    }

    fn start(lab: &Lab, options: &RegistryOptions) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        if let Some(reason) = Registry::missing() {
            skipped(&format!("kube {}", lab.ns.name.replace('-', " ")), &reason).unwrap();
            return None;
        }
        // Goes with the control plane.
        let dir = lab.cluster.run_dir.join(format!("shop-{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
        std::fs::create_dir_all(&dir).unwrap();
        Some(Self { registry: Registry::start(options).unwrap(), dir })
    }

    /// An operator that may pull from here: its own loopback is nobody's registry unless it is named.
    pub(crate) fn operator(&self, lab: &Lab, more: &[&str]) -> Running {
        let host = self.registry.host();
        lab.operator("weir", &[["--insecure-registry", host.as_str()].as_slice(), more].concat())
    }

    /// The ways that this machine has.
    pub(crate) fn ways(&self) -> Vec<Way> {
        let mut ways = vec![Way::Docker, Way::Oci, Way::Raw];
        match binaries::missing_tools() {
            None => ways.extend([Way::Oras, Way::Crane]),
            Some(reason) => skipped("kube plugins pushed by oras and crane", &reason).unwrap(),
        }
        ways
    }

    /// What an image of this registry is called.
    pub(crate) fn image(&self, repository: &str, tag: &str) -> String {
        self.registry.reference(repository, tag)
    }

    /// A directory that nobody else uses.
    pub(crate) fn scratch(&self) -> PathBuf {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let dir = self.dir.join(NUMBER.fetch_add(1, Ordering::Relaxed).to_string());
        std::fs::create_dir_all(&dir).unwrap();
        dir
    }

    /// Files in a directory.
    pub(crate) fn written(&self, files: &Files) -> PathBuf {
        let dir = self.scratch();
        for (path, text) in files {
            let file = dir.join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        dir
    }

    /// A pair of a slot and a settings file for it.
    pub(crate) fn settings(&self, slot: &str, settings: &Value) -> String {
        let file = self.scratch().join("settings.json");
        std::fs::write(&file, settings.to_string()).unwrap();
        format!("{slot}={}", file.display())
    }

    /// Pushes files as an image; the digest of its manifest.
    pub(crate) fn push(&self, way: Way, repository: &str, tag: &str, files: &Files) -> String {
        match way {
            Way::Docker => self.push_layers(Format::V2s2, repository, tag, &[Layer::new(self.written(files), "/")]),
            Way::Oci => self.push_layers(Format::Oci, repository, tag, &[Layer::new(self.written(files), "/")]),
            Way::Oras => {
                let paths: Vec<&str> = files.keys().map(String::as_str).collect();
                self.registry.oras_push(repository, tag, None, &self.written(files), &paths).unwrap();
                self.digest(repository, tag)
            }
            Way::Crane => {
                let layer = self.scratch().join("layer.tar");
                std::fs::write(&layer, archive(files)).unwrap();
                self.registry.crane_append(repository, tag, None, &[layer.as_path()]).unwrap();
                self.digest(repository, tag)
            }
            Way::Raw => {
                let raw = self.registry.raw(repository).unwrap();
                let layer = pack::gzip(&archive(files)).unwrap();
                let layer = raw.blob("application/vnd.oci.image.layer.v1.tar+gzip", &layer).unwrap();
                raw.image(tag, &[layer]).unwrap()
            }
        }
    }

    /// Pushes layers as an image; the digest of its manifest.
    pub(crate) fn push_layers(&self, format: Format, repository: &str, tag: &str, layers: &[Layer]) -> String {
        let image = Image::build(layers).unwrap();
        self.registry.skopeo_copy(&image.source(), repository, tag, Some(format), &[]).unwrap();
        self.digest(repository, tag)
    }

    fn digest(&self, repository: &str, tag: &str) -> String {
        self.registry.raw(repository).unwrap().pull_manifest(tag).unwrap().digest
    }

    /// A pull Secret with what the registry wants now.
    pub(crate) fn secret(&self, name: &str) -> Value {
        pull_secret(name, &self.registry.docker_config().unwrap().to_string())
    }

    /// A verification list: by prefix, the file of the one public key that has to have signed.
    pub(crate) fn list(&self, name: &str, entries: &[(&str, &Path)]) -> PathBuf {
        let path = self.scratch().join(name);
        self.list_at(&path, entries);
        path
    }

    /// The same in a file that is there.
    pub(crate) fn list_at(&self, path: &Path, entries: &[(&str, &Path)]) {
        let entry = |(prefix, key): &(&str, &Path)| json!({"prefix": prefix, "anyOf": [{"publicKey": {"file": key}}]});
        let list = json!({
            "apiVersion": "weir.dev/v1alpha1",
            "kind": "Verification",
            "entries": entries.iter().map(entry).collect::<Vec<_>>()
        });
        std::fs::write(path, list.to_string()).unwrap();
    }

    /// Requests that operators made so far.
    pub(crate) fn asked(&self) -> usize {
        self.registry.requests().unwrap().iter().filter(|request| request.agent.starts_with("weir/")).count()
    }
}

/// A pull Secret with any text.
pub(crate) fn pull_secret(name: &str, config: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": config}
    })
}

fn archive(files: &Files) -> Vec<u8> {
    files.iter().fold(Archive::new(), |archive, (path, text)| archive.file(path, text).unwrap()).finish()
}

/// A plugin of two files.
pub(crate) fn plugin(name: &str, version: &str) -> Files {
    Files::from([("handler.lua".to_owned(), handler("", version)), ("schema.lua".to_owned(), schema(name))])
}

/// A handler that does something before it is made.
pub(crate) fn handler(before: &str, version: &str) -> String {
    format!(
        "{before}local H = {{ PRIORITY = 1000, VERSION = \"{version}\" }}\nfunction H:access() kong.log.debug(\"{version}\") end\nreturn H\n"
    )
}

/// A schema without fields of its own.
pub(crate) fn schema(name: &str) -> String {
    format!("return {{ name = \"{name}\", fields = {{ {{ config = {{ type = \"record\", fields = {{}} }} }} }} }}\n")
}

/// The same files in a folder.
pub(crate) fn inside(folder: &str, files: &Files) -> Files {
    files.iter().map(|(path, text)| (format!("{folder}/{path}"), text.clone())).collect()
}
