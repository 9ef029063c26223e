//! The HorizontalPodAutoscaler, named like the DataPlane (facts/kong-operator.md 1.3.5).

use k8s_openapi::api::autoscaling::v2::{CrossVersionObjectReference, HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec};
use weir_api::dataplane::HorizontalScaling;

use super::{labels, meta};
use crate::dataplane::validate::Validated;

/// The user's block, where there is one.
#[must_use]
pub fn options<'a>(dp: &'a Validated<'_>) -> Option<&'a HorizontalScaling> {
    dp.spec().deployment.as_ref()?.scaling.as_ref()?.horizontal.as_ref()
}

/// Builds the autoscaler of a Deployment.
#[must_use]
pub fn build(dp: &Validated<'_>, name: String, deployment: &str, scaling: &HorizontalScaling) -> HorizontalPodAutoscaler {
    HorizontalPodAutoscaler {
        metadata: meta(dp, name, labels(dp, &[])),
        spec: HorizontalPodAutoscalerSpec {
            scale_target_ref: CrossVersionObjectReference {
                api_version: Some("apps/v1".into()),
                kind: "Deployment".into(),
                name: deployment.to_owned(),
            },
            min_replicas: scaling.min_replicas,
            max_replicas: scaling.max_replicas,
            metrics: scaling.metrics.clone(),
            behavior: scaling.behavior.clone(),
        },
        status: None,
    }
}
