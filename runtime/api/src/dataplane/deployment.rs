//! `spec.deployment`: the pods and how a change reaches them.

#![allow(unreachable_pub, reason = "the derive makes a public copy of each struct inside a function")]

use std::collections::BTreeMap;

use k8s_openapi::api::{
    autoscaling::v2::{HorizontalPodAutoscalerBehavior, MetricSpec},
    core::v1::PodTemplateSpec,
};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rules;

/// The pods and how a change reaches them.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(rules::REPLICAS).message(rules::REPLICAS_MESSAGE))]
pub struct DeploymentOptions {
    /// Number of gateway pods. Defaults to 1 as long as `scaling` is not set either; cannot be set together with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Lets an autoscaler choose the number of pods. Off by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaling: Option<Scaling>,
    /// Laid over the pod template the operator makes: what is set here wins, lists merge by name. The gateway is the container `proxy`;
    /// its `image` has to be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template_spec: Option<PodTemplateSpec>,
    /// Labels for the Deployment itself, not for its pods; at most 64. Keys the operator needs for itself are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 64))]
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations for the Deployment itself, not for its pods; at most 64. Keys the operator needs for itself are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 64))]
    pub annotations: Option<BTreeMap<String, String>>,
    /// `enabled` tightens the pods' security settings: no root user, no added privileges, a read-only file system. Defaults to
    /// `disabled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "disabled"))]
    pub hardened: Option<Hardened>,
    /// How a change of the pods is brought in. By default they are replaced one after the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Rollout>,
}

/// Whether the pods' security settings are tightened.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hardened {
    /// Tightened.
    Enabled,
    /// As the image has them.
    #[default]
    Disabled,
}

impl Hardened {
    /// The value as it is written in a manifest.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::Disabled => "disabled",
        }
    }
}

/// How the number of pods follows the load.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Scaling {
    /// More or fewer pods of the same size, by a HorizontalPodAutoscaler. Off by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub horizontal: Option<HorizontalScaling>,
}

/// Bounds and measures of the autoscaler.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HorizontalScaling {
    /// Fewest pods. Defaults to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<i32>,
    /// Most pods; not below `minReplicas`.
    pub max_replicas: i32,
    /// What is measured, in the form of `autoscaling/v2`; the measure that asks for most pods wins. Without any, Kubernetes keeps the
    /// pods' CPU at 80 % of what they request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub metrics: Option<Vec<MetricSpec>>,
    /// How fast the number may change in either direction, in the form of `autoscaling/v2`. Defaults to Kubernetes' own pace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behavior: Option<HorizontalPodAutoscalerBehavior>,
}

/// How a change of the pods is brought in.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rollout {
    /// The way it is done.
    pub strategy: RolloutStrategy,
}

/// The way a change is brought in.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStrategy {
    /// A second set of pods comes up beside the one in use and takes over when it is told to. Off by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blue_green: Option<BlueGreenStrategy>,
}

/// A preview beside what is live.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlueGreenStrategy {
    /// When the preview takes over.
    pub promotion: Promotion,
    /// What becomes of the preview's own objects between two changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = {"plan": {"deployment": "ScaleDownOnPromotionScaleUpOnRollout"}}))]
    pub resources: Option<RolloutResources>,
}

/// When a preview takes over.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Promotion {
    /// `BreakBeforePromotion`, the default and only way: the preview waits until the DataPlane carries the annotation
    /// `gateway-operator.konghq.com/promote-when-ready: "true"`.
    #[serde(default)]
    pub strategy: PromotionStrategy,
}

/// What starts a promotion.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PromotionStrategy {
    /// The user's word.
    #[default]
    BreakBeforePromotion,
}

impl PromotionStrategy {
    /// The value as it is written in a manifest.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BreakBeforePromotion => "BreakBeforePromotion",
        }
    }
}

/// What becomes of a preview's objects.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RolloutResources {
    /// The plan for each sort of object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = {"deployment": "ScaleDownOnPromotionScaleUpOnRollout"}))]
    pub plan: Option<RolloutPlan>,
}

/// What becomes of each sort of object.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RolloutPlan {
    /// `ScaleDownOnPromotionScaleUpOnRollout`, the default and only plan: the preview's Deployment stays, with no pods while nothing is
    /// rolled out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "ScaleDownOnPromotionScaleUpOnRollout"))]
    pub deployment: Option<RolloutDeploymentPlan>,
}

/// What becomes of the preview's Deployment.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RolloutDeploymentPlan {
    /// Kept without pods between rollouts.
    #[default]
    ScaleDownOnPromotionScaleUpOnRollout,
}

impl RolloutDeploymentPlan {
    /// The value as it is written in a manifest.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ScaleDownOnPromotionScaleUpOnRollout => "ScaleDownOnPromotionScaleUpOnRollout",
        }
    }
}
