//! The typed bag of objects.

use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    autoscaling::v2::HorizontalPodAutoscaler,
    core::v1::{Namespace, Secret, Service},
    policy::v1::PodDisruptionBudget,
};
use kube::Resource;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    problem::SourceRef,
    sealed::Sealed,
    typed::{TypeError, typed},
};
use crate::{dataplane::DataPlane, konnect_extension::KonnectExtension, konnect_v2, plugin_installation::KongPluginInstallation};

/// An object and where it was read from.
#[derive(Debug, Clone, PartialEq)]
pub struct Sourced<T> {
    /// The object, defaulted if it is of a kind with a known schema.
    pub object: T,
    /// The line its manifest starts in.
    pub source: SourceRef,
}

/// All objects that were read and found right, each kind in the order of the sources.
#[derive(Debug, Default)]
pub struct Objects {
    /// `gateway-operator.konghq.com` DataPlanes.
    pub data_planes: Vec<Sourced<DataPlane>>,
    /// `gateway-operator.konghq.com` KonnectExtensions.
    pub konnect_extensions: Vec<Sourced<KonnectExtension>>,
    /// `konnect.konghq.com/v1alpha2` KonnectExtensions. Their schema is Kong's, so nothing is checked but the types of what is read.
    pub konnect_v2_extensions: Vec<Sourced<konnect_v2::KonnectExtension>>,
    /// `gateway-operator.konghq.com` KongPluginInstallations.
    pub plugin_installations: Vec<Sourced<KongPluginInstallation>>,
    /// Secrets, sealed.
    pub secrets: Vec<Sourced<Sealed<Secret>>>,
    /// Namespaces.
    pub namespaces: Vec<Sourced<Namespace>>,
    /// `apps/v1` Deployments.
    pub deployments: Vec<Sourced<Deployment>>,
    /// Services.
    pub services: Vec<Sourced<Service>>,
    /// `autoscaling/v2` HorizontalPodAutoscalers.
    pub horizontal_pod_autoscalers: Vec<Sourced<HorizontalPodAutoscaler>>,
    /// `policy/v1` PodDisruptionBudgets.
    pub pod_disruption_budgets: Vec<Sourced<PodDisruptionBudget>>,
    /// `apps/v1` ReplicaSets.
    pub replica_sets: Vec<Sourced<ReplicaSet>>,
    /// Objects of every other kind, as they are.
    pub others: Vec<Sourced<Value>>,
}

impl Objects {
    /// How many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.data_planes.len()
            + self.konnect_extensions.len()
            + self.konnect_v2_extensions.len()
            + self.plugin_installations.len()
            + self.secrets.len()
            + self.namespaces.len()
            + self.deployments.len()
            + self.services.len()
            + self.horizontal_pod_autoscalers.len()
            + self.pod_disruption_budgets.len()
            + self.replica_sets.len()
            + self.others.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an object under its kind.
    pub(super) fn add(&mut self, api_version: &str, kind: &str, object: Value, source: SourceRef) -> Result<(), TypeError> {
        let is = |own: (String, String)| own.0 == api_version && own.1 == kind;
        if is(names::<DataPlane>()) {
            return put(&mut self.data_planes, &object, source);
        }
        if is(names::<KonnectExtension>()) {
            return put(&mut self.konnect_extensions, &object, source);
        }
        if is(names::<konnect_v2::KonnectExtension>()) {
            return put(&mut self.konnect_v2_extensions, &object, source);
        }
        if is(names::<KongPluginInstallation>()) {
            return put(&mut self.plugin_installations, &object, source);
        }
        match (api_version, kind) {
            ("v1", "Secret") => {
                let object = Sealed::new(typed(&object).map_err(without_value)?);
                self.secrets.push(Sourced { object, source });
                Ok(())
            }
            ("v1", "Namespace") => put(&mut self.namespaces, &object, source),
            ("v1", "Service") => put(&mut self.services, &object, source),
            ("apps/v1", "Deployment") => put(&mut self.deployments, &object, source),
            ("apps/v1", "ReplicaSet") => put(&mut self.replica_sets, &object, source),
            ("autoscaling/v2", "HorizontalPodAutoscaler") => put(&mut self.horizontal_pod_autoscalers, &object, source),
            ("policy/v1", "PodDisruptionBudget") => put(&mut self.pod_disruption_budgets, &object, source),
            _ => {
                self.others.push(Sourced { object, source });
                Ok(())
            }
        }
    }
}

/// Whether a kind without a known schema lives in namespaces; `None` if that is not known.
pub(super) fn core_is_namespaced(api_version: &str, kind: &str) -> Option<bool> {
    match (api_version, kind) {
        ("v1", "Namespace") => Some(false),
        ("v1", "Secret" | "Service" | "ConfigMap" | "ServiceAccount" | "Pod")
        | ("apps/v1", "Deployment" | "ReplicaSet")
        | ("autoscaling/v2", "HorizontalPodAutoscaler")
        | ("policy/v1", "PodDisruptionBudget")
        | ("konnect.konghq.com/v1alpha2", "KonnectExtension") => Some(true),
        _ => None,
    }
}

fn names<T: Resource<DynamicType = ()>>() -> (String, String) {
    (T::api_version(&()).into_owned(), T::kind(&()).into_owned())
}

fn put<T: DeserializeOwned>(list: &mut Vec<Sourced<T>>, object: &Value, source: SourceRef) -> Result<(), TypeError> {
    list.push(Sourced { object: typed(object)?, source });
    Ok(())
}

/// serde repeats the value it could not read; of a Secret nothing may be repeated.
fn without_value(error: TypeError) -> TypeError {
    let message = "the value has the wrong type: `data` takes texts in base64, `stringData` texts as they are";
    TypeError { message: message.to_owned(), ..error }
}
