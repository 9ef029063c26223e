//! `KongPluginInstallation`, `gateway-operator.konghq.com/v1alpha1`: a custom Kong plugin that is delivered as a container image.

#![allow(unreachable_pub, reason = "the derive makes a public copy of each struct inside a function")]

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::condition::Condition;

/// Where the plugin comes from.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "gateway-operator.konghq.com",
    version = "v1alpha1",
    kind = "KongPluginInstallation",
    plural = "kongplugininstallations",
    namespaced,
    status = "KongPluginInstallationStatus",
    derive = "Default",
    derive = "PartialEq",
    shortname = "kpi",
    category = "kong",
    doc = "A custom Kong plugin that is delivered as a container image.",
    printcolumn(name = "Accepted", type_ = "string", json_path = ".status.conditions[?(@.type=='Accepted')].status")
)]
#[serde(rename_all = "camelCase")]
pub struct KongPluginInstallationSpec {
    /// Reference of the image that holds the plugin's files, with a tag or a digest.
    pub image: String,
    /// Secret with the registry's credentials. Left out, the image is fetched without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_secret_ref: Option<ImagePullSecretRef>,
}

/// Names the Secret with a registry's credentials.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImagePullSecretRef {
    /// API group of the object. Defaults to the empty text, the group of Secrets.
    #[serde(default)]
    #[schemars(length(max = 253), regex(pattern = r"^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"))]
    pub group: String,
    /// Kind of the object. Defaults to `Secret`, the only kind that is read.
    #[serde(default = "default_kind")]
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$"))]
    pub kind: String,
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of the Secret. Defaults to the namespace of the installation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub namespace: Option<String>,
}

fn default_kind() -> String {
    "Secret".to_owned()
}

impl Default for ImagePullSecretRef {
    fn default() -> Self {
        Self { group: String::new(), kind: default_kind(), name: String::new(), namespace: None }
    }
}

/// What became of the plugin.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KongPluginInstallationStatus {
    /// How things stand, one entry per type, at most 8. `Accepted` says whether the plugin can be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// Name of the ConfigMap that holds the plugin's files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub underlying_config_map_name: Option<String>,
}
