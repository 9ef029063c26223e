//! `spec.resources`: objects kept beside the Deployment.

#![allow(unreachable_pub, reason = "the derive makes a public copy of each struct inside a function")]

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::rules;

/// Objects kept beside the Deployment.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceOptions {
    /// Limits how many gateway pods a drain may take away at once, by a PodDisruptionBudget. None by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_disruption_budget: Option<PodDisruptionBudgetOptions>,
}

/// The disruption budget of the gateway pods.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodDisruptionBudgetOptions {
    /// What the budget grants. Its selector is the operator's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<PodDisruptionBudgetSpec>,
}

/// What a disruption budget grants: exactly one of the two bounds.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(rules::BUDGET).message(rules::BUDGET_MESSAGE))]
pub struct PodDisruptionBudgetSpec {
    /// How many pods may be missing after an eviction: a number, or a share of all pods such as `25%`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<IntOrString>,
    /// How many pods have to be left after an eviction: a number, or a share of all pods such as `75%`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_available: Option<IntOrString>,
    /// When pods that run but are not ready may be evicted: `IfHealthyBudget`, as long as the budget holds, or `AlwaysAllow`. Defaults
    /// to Kubernetes' own choice, `IfHealthyBudget`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unhealthy_pod_eviction_policy: Option<String>,
}
