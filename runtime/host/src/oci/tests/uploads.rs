//! A registry that takes pushes: a hook for [`Server`](super::registry::Server).

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use serde_json::Value;

use super::registry::{Asked, Reply, status};
use crate::oci::digest;

/// Type and bytes, by path.
type Pushed = BTreeMap<String, (String, Vec<u8>)>;

/// What was pushed.
#[derive(Clone, Default)]
pub(super) struct Uploads(Arc<Mutex<Pushed>>);

impl Uploads {
    /// As a hook: everything but `/v2/` is answered.
    pub(super) fn reply(&self, asked: &Asked) -> Option<Reply> {
        if asked.path == "/v2/" {
            return None;
        }
        Some(match asked.method.as_str() {
            "POST" if asked.path.ends_with("/blobs/uploads/") => begun(&format!("{}1?state=a%2Fb", asked.path)),
            "PUT" if asked.path.contains("/blobs/uploads/") => self.blob(asked),
            "PUT" => self.manifest(asked),
            _ => self.get(&asked.path),
        })
    }

    pub(super) fn held(&self, path: &str) -> Option<Vec<u8>> {
        self.0.lock().unwrap().get(path).map(|(_, bytes)| bytes.clone())
    }

    fn get(&self, path: &str) -> Reply {
        match self.0.lock().unwrap().get(path) {
            Some((kind, bytes)) => {
                Reply::Full(200, vec![("content-type", kind.clone()), ("docker-content-digest", digest::of(bytes))], bytes.clone())
            }
            None => status(404, r#"{"errors": [{"code": "BLOB_UNKNOWN", "message": "blob unknown"}]}"#),
        }
    }

    fn blob(&self, asked: &Asked) -> Reply {
        let (place, query) = asked.path.split_once("/uploads/1?state=a%2Fb&digest=").expect("the place that was named");
        let named = query.replace("%3A", ":");
        if named != digest::of(&asked.bytes) {
            return status(400, r#"{"errors": [{"code": "DIGEST_INVALID", "message": "provided digest did not match"}]}"#);
        }
        self.keep(format!("{place}/{named}"), "application/octet-stream", &asked.bytes)
    }

    /// As registries do: a manifest names nothing that is not there.
    fn manifest(&self, asked: &Asked) -> Reply {
        let (place, version) = asked.path.split_once("/manifests/").expect("a manifest");
        let manifest: Value = serde_json::from_slice(&asked.bytes).expect("JSON");
        let list = |key: &str| manifest[key].as_array().cloned().unwrap_or_default();
        let blobs = list("layers").into_iter().chain(manifest.get("config").cloned()).map(|blob| ("blobs", blob));
        for (kind, named) in blobs.chain(list("manifests").into_iter().map(|image| ("manifests", image))) {
            if self.held(&format!("{place}/{kind}/{}", named["digest"].as_str().unwrap())).is_none() {
                return status(400, r#"{"errors": [{"code": "MANIFEST_BLOB_UNKNOWN", "message": "blob unknown to registry"}]}"#);
            }
        }
        let kind = asked.content_type.clone().unwrap_or_default();
        self.keep(format!("{place}/manifests/{}", digest::of(&asked.bytes)), &kind, &asked.bytes);
        self.keep(format!("{place}/manifests/{version}"), &kind, &asked.bytes)
    }

    fn keep(&self, path: String, kind: &str, bytes: &[u8]) -> Reply {
        self.0.lock().unwrap().insert(path, (kind.to_owned(), bytes.to_vec()));
        Reply::Full(201, vec![("docker-content-digest", digest::of(bytes))], Vec::new())
    }
}

/// An upload that goes on at `location`.
pub(super) fn begun(location: &str) -> Reply {
    Reply::Full(202, vec![("location", location.to_owned())], Vec::new())
}
