//! Pushes what no tool would push, and pulls it back as it is.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Credentials, files};
use crate::http::{self, Request, Response};

/// What a manifest says of a blob or of another manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptor {
    /// What it claims to be.
    pub media_type: String,
    /// With its algorithm.
    pub digest: String,
    /// In bytes.
    pub size: usize,
}

impl Descriptor {
    /// Describes bytes without pushing them.
    pub fn of(media_type: &str, bytes: &[u8]) -> Self {
        let digest = format!("sha256:{}", hex::encode(Sha256::digest(bytes)));
        Self { media_type: media_type.to_owned(), digest, size: bytes.len() }
    }

    /// As it stands in a manifest.
    pub fn json(&self) -> Value {
        json!({ "mediaType": self.media_type, "digest": self.digest, "size": self.size })
    }
}

/// What a registry answers for a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pulled {
    /// Its `Content-Type`.
    pub media_type: String,
    /// Its `Docker-Content-Digest`.
    pub digest: String,
    /// The manifest, byte for byte.
    pub bytes: Vec<u8>,
}

/// A repository, spoken to without tools and without TLS.
#[derive(Debug, Clone)]
pub struct Raw {
    host: String,
    repository: String,
    authorization: Option<String>,
}

impl Raw {
    pub(super) fn new(host: String, repository: &str, credentials: Option<&Credentials>) -> Result<Self> {
        let authorization = credentials.map(|credentials| files::basic(credentials).map(|basic| format!("Basic {basic}")));
        Ok(Self { host, repository: repository.to_owned(), authorization: authorization.transpose()? })
    }

    /// Pushes a blob in one piece.
    pub fn blob(&self, media_type: &str, bytes: &[u8]) -> Result<Descriptor> {
        let descriptor = Descriptor::of(media_type, bytes);
        let begun = self.ask("POST", "blobs/uploads/", &[], &[], 202)?;
        let location = begun.header("location").context("no place to upload to")?;
        let target = location.strip_prefix(&format!("http://{}", self.host)).unwrap_or(location);
        let separator = if target.contains('?') { '&' } else { '?' };
        let target = format!("{target}{separator}digest={}", descriptor.digest);
        let headers = [("Content-Type", "application/octet-stream")];
        self.ask_at("PUT", &target, &headers, bytes, 201)?;
        Ok(descriptor)
    }

    /// Pushes a manifest under a tag or its digest, which is the answer. The registry refuses one that names blobs it does not have,
    /// and media types it does not know.
    pub fn manifest(&self, reference: &str, media_type: &str, bytes: &[u8]) -> Result<String> {
        self.ask("PUT", &format!("manifests/{reference}"), &[("Content-Type", media_type)], bytes, 201)?;
        Ok(Descriptor::of(media_type, bytes).digest)
    }

    /// Pushes an OCI manifest of layers that are there already, with an empty configuration.
    pub fn image(&self, reference: &str, layers: &[Descriptor]) -> Result<String> {
        const TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
        let config = self.blob("application/vnd.oci.image.config.v1+json", b"{}")?;
        let layers: Vec<Value> = layers.iter().map(Descriptor::json).collect();
        let manifest = json!({ "schemaVersion": 2, "mediaType": TYPE, "config": config.json(), "layers": layers });
        self.manifest(reference, TYPE, manifest.to_string().as_bytes())
    }

    /// Pulls a manifest of any media type.
    pub fn pull_manifest(&self, reference: &str) -> Result<Pulled> {
        let accept = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
                      application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json";
        let answer = self.ask("GET", &format!("manifests/{reference}"), &[("Accept", accept)], &[], 200)?;
        let header = |name: &str| answer.header(name).map(str::to_owned).with_context(|| format!("the registry sends no {name}"));
        Ok(Pulled { media_type: header("content-type")?, digest: header("docker-content-digest")?, bytes: answer.body })
    }

    /// Pulls a blob.
    pub fn pull_blob(&self, digest: &str) -> Result<Vec<u8>> {
        Ok(self.ask("GET", &format!("blobs/{digest}"), &[], &[], 200)?.body)
    }

    /// Deletes a manifest by its digest; its blobs stay until somebody collects garbage.
    pub fn delete_manifest(&self, digest: &str) -> Result<()> {
        self.ask("DELETE", &format!("manifests/{digest}"), &[], &[], 202).map(drop)
    }

    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8], wanted: u16) -> Result<Response> {
        self.ask_at(method, &format!("/v2/{}/{path}", self.repository), headers, body, wanted)
    }

    fn ask_at(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8], wanted: u16) -> Result<Response> {
        let mut all: Vec<(&str, String)> = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        all.extend(self.authorization.iter().map(|value| ("Authorization", value.clone())));
        let answer = http::ask(&self.host, &Request { method, target, headers: all, body })?;
        if answer.status != wanted {
            bail!("{method} {target}: status {}: {}", answer.status, answer.text().trim());
        }
        Ok(answer)
    }
}
