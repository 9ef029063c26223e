//! The Deployment (facts/kong-operator.md 1.3.4, 1.4).

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment},
        core::v1::{PodSpec, PodTemplateSpec},
    },
    apimachinery::pkg::{
        apis::meta::v1::{LabelSelector, ObjectMeta},
        util::intstr::IntOrString,
    },
};
use weir_api::keys;

use super::{labels, meta, overlay::overlay, proxy, selector};
use crate::{
    dataplane::{
        conflicts::Settled,
        validate::{Validated, is_reserved},
    },
    policy::Pairs,
};

/// Annotation on the Deployment: hash of the pod template in force. What an owner-held rollout compares and approves.
pub const TEMPLATE_HASH: &str = "weir.dev/template-hash";

/// Renders the pod template.
#[must_use]
pub fn template(dp: &Validated<'_>, settled: &Settled, readiness_path: Option<&str>, konnect_certificate: Option<&str>) -> PodTemplateSpec {
    let base = PodTemplateSpec {
        metadata: Some(ObjectMeta::default()),
        spec: Some(PodSpec {
            containers: vec![proxy::container(proxy::hardened(dp), readiness_path.unwrap_or("/status"))],
            termination_grace_period_seconds: Some(30),
            dns_policy: Some("ClusterFirst".into()),
            restart_policy: Some("Always".into()),
            scheduler_name: Some("default-scheduler".into()),
            ..PodSpec::default()
        }),
    };
    let mut template = overlay(base, dp.template());
    if let Some(spec) = &mut template.spec {
        spec.volumes = Some(settled.volumes.clone());
        if let Some(container) = spec.containers.iter_mut().find(|c| c.name == super::super::validate::PROXY) {
            container.env = Some(settled.env.clone());
            container.volume_mounts = Some(settled.mounts.clone());
        }
    }
    let meta = template.metadata.get_or_insert_default();
    // The selector's labels cannot be the user's: the Deployment would not select its own pods.
    let own = meta.labels.get_or_insert_default();
    own.retain(|key, _| !is_reserved(key));
    own.extend(selector(dp));
    if let Some(digest) = konnect_certificate {
        meta.annotations.get_or_insert_default().insert(keys::KONNECT_CERTIFICATE_DIGEST.into(), digest.to_owned());
    }
    template
}

/// Builds the Deployment around a template. `replicas` none leaves the field to another manager; `marks` are annotations of ours.
#[must_use]
pub fn build(dp: &Validated<'_>, name: String, template: PodTemplateSpec, replicas: Option<i32>, marks: Pairs) -> Deployment {
    let options = dp.spec().deployment.as_ref();
    let given = |map: Option<&Pairs>| {
        map.into_iter().flatten().filter(|(k, _)| !is_reserved(k)).map(|(k, v)| (k.clone(), v.clone())).collect::<Pairs>()
    };
    let mut all = given(options.and_then(|o| o.labels.as_ref()));
    all.extend(labels(dp, &[(keys::DATAPLANE_DEPLOYMENT_STATE, "live"), (keys::SELECTOR, &dp.selector)]));
    let mut metadata = meta(dp, name, all);
    let mut annotations = given(options.and_then(|o| o.annotations.as_ref()));
    annotations.extend(marks);
    metadata.annotations = Some(annotations);
    Deployment {
        metadata,
        spec: Some(DeploymentSpec {
            replicas,
            selector: LabelSelector { match_labels: Some(selector(dp)), match_expressions: None },
            strategy: Some(DeploymentStrategy {
                type_: Some("RollingUpdate".into()),
                rolling_update: Some(RollingUpdateDeployment {
                    max_unavailable: Some(IntOrString::Int(0)),
                    max_surge: Some(IntOrString::Int(1)),
                }),
            }),
            template,
            ..DeploymentSpec::default()
        }),
        status: None,
    }
}
