//! `spec.network`: how traffic reaches the pods, and how the pods show themselves to Konnect.

#![allow(unreachable_pub, reason = "the derive makes a public copy of each struct inside a function")]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rules;

/// How traffic reaches the pods, and how the pods show themselves to Konnect.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkOptions {
    /// Settings of the Services in front of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub services: Option<NetworkServices>,
    /// Has cert-manager issue the client certificate the pods show to Konnect. Off by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub konnect_certificate: Option<KonnectCertificate>,
}

/// Settings of the Services in front of the pods.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkServices {
    /// The Service that takes traffic for the gateway. It exists with or without this block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress: Option<IngressService>,
}

/// The Service that takes traffic for the gateway.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(rules::NODE_PORT).message(rules::NODE_PORT_MESSAGE))]
#[x_kube(validation = Rule::new(rules::EXTERNAL_TRAFFIC).message(rules::EXTERNAL_TRAFFIC_MESSAGE))]
pub struct IngressService {
    /// Where the Service can be reached from. Defaults to `LoadBalancer`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "LoadBalancer"))]
    pub type_: Option<ServiceType>,
    /// Name of the Service. By default one is made from the name of the DataPlane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Annotations for the Service, for example what a cloud's load balancer reads. Removed from it when they are removed here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
    /// Labels for the Service beside the operator's own; at most 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 64))]
    pub labels: Option<BTreeMap<String, String>>,
    /// Which nodes pass on traffic from outside: `Cluster` any, `Local` only those that run a gateway pod, which keeps the client's
    /// address. Not for type `ClusterIP`. Defaults to Kubernetes' own choice, `Cluster`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_traffic_policy: Option<TrafficPolicy>,
    /// Which gateway pods take traffic from inside the cluster: `Cluster` any, `Local` only those on the caller's node. Defaults to
    /// Kubernetes' own choice, `Cluster`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub internal_traffic_policy: Option<TrafficPolicy>,
    /// Prefers gateway pods close to the caller while there are any. By default distance does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_distribution: Option<TrafficDistribution>,
    /// Ports of the Service, at most 64. Defaults to 80 for HTTP and 443 for HTTPS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub ports: Option<Vec<ServicePort>>,
}

/// One port of the Service.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServicePort {
    /// Name of the port, different from those of all others. Needed as soon as there is more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Port number callers connect to, 1 to 65535.
    pub port: i32,
    /// Number or name of the pods' port that takes the traffic. Defaults to 8000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_port: Option<IntOrString>,
    /// Port number opened on every node. By default the cluster picks a free one. Not for type `ClusterIP`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_port: Option<i32>,
    /// Transport protocol. Defaults to `TCP`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "TCP"))]
    pub protocol: Option<Protocol>,
}

/// Where a Service can be reached from.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ServiceType {
    /// From outside, at an address the cluster's environment assigns.
    #[default]
    LoadBalancer,
    /// From outside, at a port of every node.
    NodePort,
    /// From inside the cluster only.
    ClusterIP,
}

impl ServiceType {
    /// The value as it is written in a manifest.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LoadBalancer => "LoadBalancer",
            Self::NodePort => "NodePort",
            Self::ClusterIP => "ClusterIP",
        }
    }
}

/// Which pods are candidates for a connection.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TrafficPolicy {
    /// All pods of the Service.
    #[default]
    Cluster,
    /// The pods on the node where the connection arrives.
    Local,
}

impl TrafficPolicy {
    /// The value as it is written in a manifest.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "Cluster",
            Self::Local => "Local",
        }
    }
}

/// Which pods are preferred for a connection.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TrafficDistribution {
    /// Those in the zone of the caller.
    PreferSameZone,
    /// Those on the node of the caller, then those in its zone.
    PreferSameNode,
}

impl TrafficDistribution {
    /// The value as it is written in a manifest.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PreferSameZone => "PreferSameZone",
            Self::PreferSameNode => "PreferSameNode",
        }
    }
}

/// Transport protocol of a port.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Protocol {
    /// TCP.
    #[default]
    #[serde(rename = "TCP")]
    Tcp,
    /// UDP.
    #[serde(rename = "UDP")]
    Udp,
}

impl Protocol {
    /// The value as it is written in a manifest.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        }
    }
}

/// A client certificate for Konnect, issued by cert-manager.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KonnectCertificate {
    /// The cert-manager issuer that signs it.
    pub issuer: IssuerRef,
}

/// Names a cert-manager issuer.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IssuerRef {
    /// Name of the issuer.
    pub name: String,
    /// Namespace of an `Issuer`. Left out, `name` is that of a `ClusterIssuer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}
