//! Signatures of every form, true and false, in a registry of some lines.

mod carry;
mod error;
mod find;
mod keyless;
mod keys;

use rcgen::KeyPair;
use serde_json::{Value, json};
use weir_sigstore::{Signed, payload, signature_annotations};

use super::registry::{IMAGE, INDEX, Server, Shelf, puller};
use crate::oci::{Credentials, Requirement, Signer, TrustRoot, Verified, VerifyError};

const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
const SIMPLE: &str = "application/vnd.dev.cosign.simplesigning.v1+json";

/// A registry with one artifact, and what is left beside it.
struct Place {
    shelf: Shelf,
    digest: String,
    /// Bundles by descriptor, for the list of referrers.
    bundles: Vec<Value>,
}

impl Place {
    fn new() -> Self {
        let mut shelf = Shelf::default();
        let digest = shelf.image("1", &[b"content".to_vec()])["digest"].as_str().unwrap().to_owned();
        Self { shelf, digest, bundles: Vec::new() }
    }

    fn tag(&self, ending: &str) -> String {
        format!("{}{ending}", self.digest.replace(':', "-"))
    }

    /// Layers of the manifest of simple signatures, each with its annotations.
    fn simple(&mut self, signatures: &[(Vec<u8>, Value)]) {
        let layers: Vec<Value> = signatures
            .iter()
            .map(|(payload, annotations)| {
                let mut layer = self.shelf.blob(SIMPLE, payload);
                layer["annotations"] = annotations.clone();
                layer
            })
            .collect();
        self.shelf.manifest(&self.tag(".sig"), IMAGE, &json!({"schemaVersion": 2, "mediaType": IMAGE, "layers": layers}));
    }

    /// A bundle that refers to the artifact, as a list of referrers names it.
    fn bundle(&mut self, bundle: &Value) {
        self.listed(BUNDLE, BUNDLE, bundle.to_string().as_bytes());
    }

    fn listed(&mut self, listed_as: &str, layer: &str, content: &[u8]) {
        let layer = self.shelf.blob(layer, content);
        let manifest = json!({"schemaVersion": 2, "mediaType": IMAGE, "artifactType": listed_as, "layers": [layer]});
        let mut descriptor = self.shelf.manifest("unused", IMAGE, &manifest);
        descriptor["artifactType"] = json!(listed_as);
        self.bundles.push(descriptor);
        self.shelf.manifest(&self.tag(""), INDEX, &json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": self.bundles}));
    }

    async fn serve(self) -> (Server, String) {
        (Server::start(self.shelf, |_, _| None).await, self.digest)
    }

    /// What comes of it.
    async fn verify(self, requirements: &[Requirement], trust: Option<&TrustRoot>) -> Result<Verified, VerifyError> {
        let (server, digest) = self.serve().await;
        verify(&server, &[&digest], requirements, trust).await
    }
}

async fn verify(
    server: &Server,
    digests: &[&str],
    requirements: &[Requirement],
    trust: Option<&TrustRoot>,
) -> Result<Verified, VerifyError> {
    puller().verify(&server.reference(":1"), &Credentials::Anonymous, digests, requirements, trust).await
}

fn signer(name: &str, key: &KeyPair) -> Signer {
    Signer::Key { name: name.to_owned(), pem: key.public_key_pem().into_bytes() }
}

fn any_of(signers: &[&Signer]) -> Requirement {
    Requirement { any_of: signers.iter().map(|signer| (*signer).clone()).collect(), all_of: Vec::new() }
}

fn all_of(signers: &[&Signer]) -> Requirement {
    Requirement { any_of: Vec::new(), all_of: signers.iter().map(|signer| (*signer).clone()).collect() }
}

/// A bundle by a mere key, without a log.
fn by_key(key: &KeyPair, digest: &str) -> Value {
    Signed::new(key, digest, None).unwrap().bundle(&[], &[])
}

/// A simple signature by a mere key.
fn simple_by_key(key: &KeyPair, digest: &str) -> (Vec<u8>, Value) {
    let payload = payload(digest);
    let (annotations, _) = signature_annotations(key, &payload, None).unwrap();
    (payload, annotations)
}

fn found(error: &VerifyError) -> String {
    let VerifyError::NotBy { found, .. } = error else { panic!("{error}") };
    found.join("; ")
}
