//! `KonnectExtension`, `konnect.konghq.com/v1alpha2`: made by users, filled in by Kong's operator, which talks to Konnect for it. Weir reads it
//! and never writes it.
//!
//! Only what is read has a field, and every field may be missing: an odd object is reported by name, not dropped as unreadable. The CRD is
//! Kong's, so none is made of these types.

#![allow(unreachable_pub, reason = "the derive makes a public copy of each struct inside a function")]

use std::collections::BTreeMap;

use kube::CustomResource;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;

/// What its owner asks for.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "konnect.konghq.com",
    version = "v1alpha2",
    kind = "KonnectExtension",
    plural = "konnectextensions",
    namespaced,
    schema = "disabled",
    status = "KonnectExtensionStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Joins a DataPlane to a Konnect control plane that Kong's operator manages."
)]
#[serde(rename_all = "camelCase")]
pub struct KonnectExtensionSpec {
    /// The Konnect side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub konnect: Option<Konnect>,
}

/// The Konnect side of an extension.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Konnect {
    /// What pods tell Konnect about themselves. The control plane is not read here: the status has it resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_plane: Option<KonnectDataPlane>,
}

/// What pods tell Konnect about themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KonnectDataPlane {
    /// Labels Konnect shows for the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
}

/// What Kong's operator found out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KonnectExtensionStatus {
    /// How things stand. `Ready` decides whether the rest may be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// The control plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub konnect: Option<KonnectStatus>,
    /// What pods identify themselves with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_plane_client_auth: Option<DataPlaneClientAuth>,
}

/// A control plane, as Konnect describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KonnectStatus {
    /// Its id.
    #[serde(default, rename = "controlPlaneID", skip_serializing_if = "Option::is_none")]
    pub control_plane_id: Option<String>,
    /// `ControlPlane`, `ControlPlaneGroup` or `K8SIngressController`. A text: Kong may add words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_type: Option<String>,
    /// Where it is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Endpoints>,
}

/// Addresses as Konnect's API gives them: host names, with or without `https://`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoints {
    /// Configuration endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<String>,
    /// Telemetry endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<String>,
}

/// What pods identify themselves with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DataPlaneClientAuth {
    /// Secret with the client certificate, in the namespace of the extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_secret_ref: Option<CertificateSecretRef>,
}

/// Names a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateSecretRef {
    /// Name of the Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}
