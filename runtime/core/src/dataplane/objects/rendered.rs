//! The objects of a pass as hooks see them: after rendering, before anything of the operator's own records is on them.

use k8s_openapi::api::{apps::v1::Deployment, core::v1::PodTemplateSpec};

use super::{admin_service, autoscaler, deployment, disruption_budget, ingress_service};
use crate::{
    dataplane::{
        decide::Decided,
        plan::{
            lookup::{self, Name},
            rollout,
        },
        snapshot::Child,
        validate::Validated,
    },
    plan::{ChildKind, HeldPart, Object},
    policy::{Pairs, object_hook::Operation},
};

/// One of them.
pub(crate) struct Rendered {
    /// Which one it is; for a Deployment its pod template.
    pub(crate) part: HeldPart,
    /// The object.
    pub(crate) object: Object,
    /// What is about to happen to it.
    pub(crate) operation: Operation,
}

impl Rendered {
    fn new(part: HeldPart, object: Object, exists: bool) -> Self {
        Self { part, object, operation: if exists { Operation::Patch } else { Operation::Create } }
    }
}

/// All that this pass renders, in the order in which they are applied. Secrets, certificates and content of plugins are none of them.
pub(crate) fn all(dp: &Validated<'_>, decided: &Decided, live: Option<&Child<Deployment>>) -> Vec<Rendered> {
    let held = |part| dp.holds(part) || decided.holds.iter().any(|hold| hold.what == part);
    let mut all = Vec::new();
    if let (false, Name::Use(name)) = (held(HeldPart::AdminService), &decided.admin_service) {
        let object = Object::Service(Box::new(admin_service::build(dp, name.clone())));
        all.push(Rendered::new(HeldPart::AdminService, object, lookup::live_service(dp, "admin").is_some()));
    }
    if let (false, Name::Use(name)) = (held(HeldPart::IngressService), lookup::ingress_service(dp)) {
        let exists = lookup::services(dp, "ingress").any(|child| child.object.metadata.name.as_deref() == Some(name.as_str()));
        let object = Object::Service(Box::new(ingress_service::build(dp, name)));
        all.push(Rendered::new(HeldPart::IngressService, object, exists));
    }
    if !held(HeldPart::PodTemplate) {
        all.extend(rollout::pending(dp, decided, live).and_then(|template| self::deployment(dp, template, live)));
    }
    let name = match lookup::deployment(dp) {
        Name::Use(name) => Some(name),
        Name::Wait(_) | Name::Taken(_) => None,
    };
    if let (false, Some(options), Some(deployment)) = (held(HeldPart::Autoscaler), autoscaler::options(dp), &name)
        && let (live, Name::Use(name)) = lookup::same_named(dp, ChildKind::HorizontalPodAutoscaler, &dp.snapshot.children.autoscalers)
    {
        let object = Object::HorizontalPodAutoscaler(Box::new(autoscaler::build(dp, name, deployment, options)));
        all.push(Rendered::new(HeldPart::Autoscaler, object, live.is_some()));
    }
    if let (false, Some(options)) = (held(HeldPart::DisruptionBudget), disruption_budget::options(dp))
        && let (live, Name::Use(name)) = lookup::same_named(dp, ChildKind::PodDisruptionBudget, &dp.snapshot.children.disruption_budgets)
    {
        let object = Object::PodDisruptionBudget(Box::new(disruption_budget::build(dp, name, options)));
        all.push(Rendered::new(HeldPart::DisruptionBudget, object, live.is_some()));
    }
    all
}

/// The Deployment with a template, without marks.
pub(crate) fn deployment(dp: &Validated<'_>, template: PodTemplateSpec, live: Option<&Child<Deployment>>) -> Option<Rendered> {
    let Name::Use(name) = lookup::deployment(dp) else { return None };
    let object = deployment::build(dp, name, template, rollout::replicas(dp, live), Pairs::new());
    Some(Rendered::new(HeldPart::PodTemplate, Object::Deployment(Box::new(object)), live.is_some()))
}
