//! Where a component comes from, and whose signature it needs.

use kube::KubeSchema;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

const ONE_SOURCE: &str = "(has(self.oci) ? 1 : 0) + (has(self.remote) ? 1 : 0) + (has(self.builtin) ? 1 : 0) == 1";
const ONE_SOURCE_MESSAGE: &str = "exactly one of oci, remote and builtin has to be set";

const ONE_VERSION: &str = "!has(self.semver) || !self.image.contains('@')";
const ONE_VERSION_MESSAGE: &str = "semver chooses a tag, so image cannot name a digest";

const ONE_VERIFIER: &str = "has(self.publicKey) != has(self.keyless)";
const ONE_VERIFIER_MESSAGE: &str = "exactly one of publicKey and keyless has to be set";

const VERIFIERS: &str = "(has(self.anyOf) && size(self.anyOf) > 0) || (has(self.allOf) && size(self.allOf) > 0)";
const VERIFIERS_MESSAGE: &str = "name at least one verifier in anyOf or allOf, or leave verify out";

/// An object whose fields the API server does not look at.
pub(super) fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// Where a component comes from.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(ONE_SOURCE).message(ONE_SOURCE_MESSAGE))]
pub struct Source {
    /// An artifact in an OCI registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci: Option<OciSource>,
    /// A remote plugin: a gRPC server behind a labelled Service in a plugin namespace of the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<RemoteSource>,
    /// The component that ships inside of the operator: `{}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builtin: Option<AnyObject>,
}

/// An object without fields.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnyObject {}

/// An artifact in an OCI registry.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(ONE_VERSION).message(ONE_VERSION_MESSAGE))]
pub struct OciSource {
    /// `registry/repository:tag`, `…@sha256:digest` or both. What a tag points to is looked up, and its digest runs.
    #[schemars(length(min = 1, max = 512))]
    pub image: String,
    /// Takes the newest version among the tags of the repository that this range allows, such as `^1.2`. Replaces the tag of `image`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub semver: Option<String>,
    /// A pull Secret in the namespace of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_secret_ref: Option<PullSecretRef>,
    /// A CA that the registry's certificate may come from, beside those of the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_bundle_ref: Option<CaBundleRef>,
    /// Plain HTTP is spoken. Only to registries that the operator allows it for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insecure: Option<bool>,
    /// Whose signature it needs, beside what the operator wants of every artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Verify>,
}

/// Names a Secret of type `kubernetes.io/dockerconfigjson` or `kubernetes.io/dockercfg`.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullSecretRef {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Names a key of a ConfigMap that holds certificates in PEM form.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaBundleRef {
    /// Name of the ConfigMap.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its key. Defaults to `ca.crt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "ca.crt"), length(min = 1, max = 253))]
    pub key: Option<String>,
}

/// Whose signature an artifact needs. With both lists, both have to be content.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(VERIFIERS).message(VERIFIERS_MESSAGE))]
pub struct Verify {
    /// One of these is enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8))]
    pub any_of: Option<Vec<Verifier>>,
    /// All of these are needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8))]
    pub all_of: Option<Vec<Verifier>>,
}

/// One signer.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(ONE_VERIFIER).message(ONE_VERIFIER_MESSAGE))]
pub struct Verifier {
    /// A key pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_key: Option<PublicKey>,
    /// An identity that a certificate authority vouched for when the artifact was signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyless: Option<Keyless>,
}

/// The public half of a key pair.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PublicKey {
    /// A Secret in the namespace of the policy that holds it in PEM form.
    pub secret_ref: SecretKeyRef,
}

/// Names a key of a Secret.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretKeyRef {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its key. Defaults to `cosign.pub`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "cosign.pub"), length(min = 1, max = 253))]
    pub key: Option<String>,
}

/// An identity that a certificate authority vouched for.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keyless {
    /// Issuer of the identity token, such as `https://token.actions.githubusercontent.com`.
    #[schemars(length(min = 1, max = 512))]
    pub issuer: String,
    /// The identity: a mail address or a URI, word for word.
    #[schemars(length(min = 1, max = 512))]
    pub subject: String,
}

/// A plugin that is reached through a Service.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemoteSource {
    /// Name of the plugin: the value of label `weir.dev/plugin-name` of its Service.
    #[schemars(length(min = 1, max = 253))]
    pub plugin_name: String,
}
