//! Children of a DataPlane, one file each. Pure functions from what was validated and decided to Kubernetes objects.

pub mod admin_service;
pub mod autoscaler;
pub mod certificate;
pub mod client_certificate;
pub mod deployment;
pub mod disruption_budget;
pub mod env;
pub mod ingress_service;
pub mod konnect_certificate;
pub mod overlay;
pub mod proxy;
pub(crate) mod rendered;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use weir_api::keys;

use super::validate::Validated;
use crate::policy::Pairs;

/// Labels every child has (facts/kong-operator.md 1.3).
pub(crate) fn labels(dp: &Validated<'_>, more: &[(&str, &str)]) -> Pairs {
    let mut labels = Pairs::from([(keys::APP.into(), dp.name.clone()), (keys::MANAGED_BY.into(), "dataplane".into())]);
    labels.extend(more.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    labels
}

/// What selects the pods of the live Deployment.
pub(crate) fn selector(dp: &Validated<'_>) -> Pairs {
    Pairs::from([(keys::APP.into(), dp.name.clone()), (keys::SELECTOR.into(), dp.selector.clone())])
}

/// What both Services select: the pods, or what the user says instead.
pub(crate) fn service_selector(dp: &Validated<'_>) -> Pairs {
    dp.selector_override.clone().unwrap_or_else(|| selector(dp))
}

/// The DataPlane as one owner among others: of plugin content, which lives as long as anybody uses it.
pub(crate) fn plain_owner(dp: &Validated<'_>) -> OwnerReference {
    OwnerReference {
        api_version: format!("{}/v1beta1", keys::GATEWAY_OPERATOR_GROUP),
        kind: "DataPlane".into(),
        name: dp.name.clone(),
        uid: dp.uid.clone(),
        controller: None,
        block_owner_deletion: None,
    }
}

/// Metadata of a child: controller-owned by the DataPlane, without blockOwnerDeletion.
pub(crate) fn meta(dp: &Validated<'_>, name: String, labels: Pairs) -> ObjectMeta {
    ObjectMeta {
        name: Some(name),
        namespace: Some(dp.namespace.clone()),
        labels: Some(labels),
        owner_references: Some(vec![OwnerReference {
            api_version: format!("{}/v1beta1", keys::GATEWAY_OPERATOR_GROUP),
            kind: "DataPlane".into(),
            name: dp.name.clone(),
            uid: dp.uid.clone(),
            controller: Some(true),
            block_owner_deletion: None,
        }]),
        ..ObjectMeta::default()
    }
}
