//! `status` of a DataPlane: what the operator found and did.

#![allow(unreachable_pub, reason = "the derive makes a public copy of each struct inside a function")]

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;

/// What the operator found and did.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DataPlaneStatus {
    /// How things stand, one entry per type, at most 8. `Ready` sums the others up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 8))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// Name of the Service that takes traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// Where that Service can be reached: load balancer first, then cluster addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<Vec<Address>>,
    /// Value of the label `gateway-operator.konghq.com/selector` on the pods in use; chosen once, 8 to 512 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 8, max = 512))]
    pub selector: Option<String>,
    /// Number of gateway pods that take traffic. Starts at 0.
    #[serde(default)]
    pub ready_replicas: i32,
    /// Number of gateway pods. Starts at 0.
    #[serde(default)]
    pub replicas: i32,
    /// The change being rolled out beside what is in use, if blue/green rollouts are on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutStatus>,
}

/// One address of a Service.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Address {
    /// Form of the address: `IPAddress`, the default, or `Hostname`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "IPAddress"), regex(pattern = "^IPAddress|Hostname$"))]
    pub type_: Option<String>,
    /// The address itself, up to 253 characters.
    #[schemars(length(min = 1, max = 253))]
    pub value: String,
    /// What the address belongs to and who can reach it: `PublicLoadBalancer`, `PrivateLoadBalancer`, `PublicIP` or `PrivateIP`.
    #[schemars(regex(pattern = "^PublicLoadBalancer|PrivateLoadBalancer|PublicIP|PrivateIP$"))]
    pub source_type: String,
}

/// The change being rolled out.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStatus {
    /// The Services in front of the preview.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub services: Option<RolloutServices>,
    /// The preview's Deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<RolloutDeployment>,
    /// How the rollout stands, one entry per type, at most 8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 8))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
}

/// The Services in front of a preview.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RolloutServices {
    /// The Service that takes traffic for the preview.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress: Option<RolloutService>,
    /// The Service of the preview's admin API.
    #[serde(default, rename = "adminAPI", skip_serializing_if = "Option::is_none")]
    pub admin_api: Option<RolloutService>,
}

/// One Service in front of a preview.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RolloutService {
    /// Name of the Service.
    pub name: String,
    /// Where the Service can be reached, at most 16 addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub addresses: Option<Vec<Address>>,
}

/// The Deployment of a preview.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RolloutDeployment {
    /// Value of the label `gateway-operator.konghq.com/selector` on the preview's pods, 8 to 512 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 8, max = 512))]
    pub selector: Option<String>,
}
