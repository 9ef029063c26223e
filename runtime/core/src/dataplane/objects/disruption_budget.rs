//! The PodDisruptionBudget, named like the DataPlane (facts/kong-operator.md 1.3.6).

use k8s_openapi::{
    api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec},
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use weir_api::dataplane;

use super::{labels, meta, selector};
use crate::dataplane::validate::Validated;

/// The user's block, where there is one.
#[must_use]
pub fn options<'a>(dp: &'a Validated<'_>) -> Option<&'a dataplane::PodDisruptionBudgetSpec> {
    dp.spec().resources.as_ref()?.pod_disruption_budget.as_ref()?.spec.as_ref()
}

/// Builds the budget.
#[must_use]
pub fn build(dp: &Validated<'_>, name: String, spec: &dataplane::PodDisruptionBudgetSpec) -> PodDisruptionBudget {
    PodDisruptionBudget {
        metadata: meta(dp, name, labels(dp, &[])),
        spec: Some(PodDisruptionBudgetSpec {
            max_unavailable: spec.max_unavailable.clone(),
            min_available: spec.min_available.clone(),
            unhealthy_pod_eviction_policy: spec.unhealthy_pod_eviction_policy.clone(),
            selector: Some(LabelSelector { match_labels: Some(selector(dp)), match_expressions: None }),
        }),
        status: None,
    }
}
