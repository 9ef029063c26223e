//! `KonnectExtension`, `gateway-operator.konghq.com/v1alpha1`: joins a DataPlane to a Konnect control plane by its id and a client
//! certificate that is registered there already. No token for Konnect's API is involved.

#![allow(unreachable_pub, reason = "the derive makes a public copy of each struct inside a function")]

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::condition::Condition;

const REF_KEPT: &str = "self.controlPlaneRef == oldSelf.controlPlaneRef";
const REF_KEPT_MESSAGE: &str = "controlPlaneRef cannot change: pods would move to another control plane; make a new extension instead";

const ID_GIVEN: &str = "self.type != 'konnectID' || (has(self.konnectID) && self.konnectID != '')";
const ID_GIVEN_MESSAGE: &str = "a reference of type konnectID needs konnectID, the id of the control plane";

/// Which control plane to join, and with what.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "gateway-operator.konghq.com",
    version = "v1alpha1",
    kind = "KonnectExtension",
    plural = "konnectextensions",
    namespaced,
    status = "KonnectExtensionStatus",
    derive = "Default",
    derive = "PartialEq",
    category = "kong",
    doc = "Joins a DataPlane to a Konnect control plane by its id and a client certificate, without a token.",
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type=='Ready')].status"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(REF_KEPT).message(REF_KEPT_MESSAGE))]
pub struct KonnectExtensionSpec {
    /// The control plane. Cannot change once the extension exists.
    pub control_plane_ref: ControlPlaneRef,
    /// Konnect's region, the part of its host names after the control plane's id: one DNS label such as `us`, `eu` or `au`. Defaults to
    /// `us`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "us"), length(min = 1, max = 63), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub control_plane_region: Option<String>,
    /// Domain of Konnect's host names. Defaults to `konghq.com`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "konghq.com"), length(min = 1, max = 253))]
    #[schemars(regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"))]
    pub server_hostname: Option<String>,
    /// What the pods identify themselves with.
    #[serde(default, rename = "konnectControlPlaneAPIAuthConfiguration", skip_serializing_if = "Option::is_none")]
    pub konnect_control_plane_api_auth_configuration: Option<ApiAuthConfiguration>,
    /// Labels Konnect shows for the pods, for example to tell environments apart. None by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_data_plane_labels: Option<BTreeMap<String, String>>,
}

/// Names a control plane.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(ID_GIVEN).message(ID_GIVEN_MESSAGE))]
pub struct ControlPlaneRef {
    /// Form of the reference: `konnectID`, the only one that needs no token.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["konnectID"]))]
    pub type_: String,
    /// Id of the control plane as Konnect shows it.
    #[serde(default, rename = "konnectID", skip_serializing_if = "Option::is_none")]
    pub konnect_id: Option<String>,
}

/// What the pods identify themselves with.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiAuthConfiguration {
    /// Secret of type `kubernetes.io/tls` with the client certificate, in the namespace of the extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_certificate_secret_ref: Option<SecretRef>,
}

/// Names a Secret.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretRef {
    /// Name of the Secret. Without it the extension is reported as unusable.
    // Not required by the schema: extensions without a name exist in clusters, and a condition on the DataPlane reaches more people than
    // a refused write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// What the operator found out about an extension.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KonnectExtensionStatus {
    /// The DataPlanes that use the extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_plane_refs: Option<Vec<DataPlaneRef>>,
    /// How things stand, one entry per type, at most 8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
}

/// Names a DataPlane.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DataPlaneRef {
    /// Name of the DataPlane, up to 253 characters.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of the DataPlane. Left out for the namespace of the extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub namespace: Option<String>,
}
