//! The operator's image: two layers, what the binary stands on and the binary.

use anyhow::{Context, Result};
use flate2::Compression;
use serde_json::{Value, json};

use crate::{Base, Blob, Image, Layer, Program, base, rfc3339};

/// Where the binary is. The operator starts itself again to compile large components, by this very name.
pub const ENTRYPOINT: &str = "/usr/local/bin/weir";
/// The user of the process; no name in the cluster is bound to it.
const USER: &str = "65532:65532";

/// What goes into it.
pub struct Parts<'a> {
    /// Name with a tag.
    pub name: &'a str,
    /// The binary.
    pub program: &'a Program,
    /// What it stands on, see [`base::of`].
    pub base: Base,
    /// Files beside the binary, by path: the licence, the list of contents.
    pub documents: Vec<(&'a str, Vec<u8>)>,
    /// Variables beside the two that every process of ours gets, `NAME=value`.
    pub env: Vec<String>,
    /// The commit it was built from; empty if nobody knows.
    pub revision: &'a str,
    /// When it was made, seconds since 1970.
    pub created: u64,
    /// How hard layers are compressed.
    pub compression: Compression,
}

/// The image, and how large it is on a node.
pub struct Operator {
    /// The image.
    pub image: Image,
    /// Bytes of its files.
    pub unpacked: usize,
}

impl Operator {
    /// Puts it together.
    ///
    /// # Errors
    /// Two files with one path, or a time that is none.
    pub fn new(parts: Parts<'_>) -> Result<Self> {
        let Parts { name, program, base, documents, env, revision, created, compression } = parts;
        let mut upper = Layer::new(created);
        upper.file(ENTRYPOINT, 0o755, program.bytes.clone())?;
        for (path, bytes) in documents {
            upper.file(path, 0o644, bytes)?;
        }
        let mut ground = Layer::new(created);
        for (path, mode, bytes) in base.files {
            ground.file(&path, mode, bytes)?;
        }
        ground.directory("/tmp", 0o1777);
        ground.directory("/var/cache/weir", 0o777);
        let (ground, upper) = (ground.finish(compression)?, upper.finish(compression)?);
        let config = config(program.architecture, env, revision, created, &[&ground.diff_id, &upper.diff_id])?;
        let unpacked = ground.unpacked.saturating_add(upper.unpacked);
        let layers = vec![ground.blob, upper.blob];
        let image = Image { name: name.to_owned(), architecture: program.architecture, config: Blob::new(config), layers };
        Ok(Self { image, unpacked })
    }
}

/// The image's configuration.
fn config(architecture: &str, more: Vec<String>, revision: &str, created: u64, diff_ids: &[&str]) -> Result<Vec<u8>> {
    let created = rfc3339(created)?;
    let mut labels = json!({
        "org.opencontainers.image.title": "weir",
        "org.opencontainers.image.description": "A Kubernetes operator for Kong gateways whose policies are WebAssembly components.",
        "org.opencontainers.image.version": env!("CARGO_PKG_VERSION"),
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.created": created,
    });
    if let (Some(labels), false) = (labels.as_object_mut(), revision.is_empty()) {
        labels.insert("org.opencontainers.image.revision".into(), Value::from(revision));
    }
    let env = ["PATH=/usr/local/bin".to_owned(), format!("SSL_CERT_FILE={}", base::CERTIFICATES)];
    let env: Vec<String> = env.into_iter().chain(more).collect();
    let config = json!({
        "created": created,
        "architecture": architecture,
        "os": "linux",
        "config": {
            "User": USER,
            "WorkingDir": "/",
            "Entrypoint": [ENTRYPOINT],
            "Env": env,
            "ExposedPorts": {"8080/tcp": {}, "8081/tcp": {}},
            "StopSignal": "SIGTERM",
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": diff_ids},
        "history": [
            {"created": created, "created_by": "cargo xtask image: C library, CA certificates, user"},
            {"created": created, "created_by": "cargo xtask image: weir"},
        ],
    });
    serde_json::to_vec(&config).context("cannot write the image's configuration")
}
