//! From what was decided to what has to be done. Pure and total: one pass wants everything that can be known in that pass.

mod contents;
mod difference;
pub(crate) mod held;
pub mod lookup;
pub(crate) mod marks;
pub(crate) mod prune;
mod renewal;
pub(crate) mod rollback;
pub(crate) mod rollout;
pub(crate) mod takeover;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use weir_api::{condition::reasons, dataplane::DataPlaneStatus, keys};

use self::{lookup::Name, rollout::Rollout};
use super::{
    decide::Decided,
    objects::{admin_service, autoscaler, disruption_budget, ingress_service, konnect_certificate},
    snapshot::Child,
    status,
    validate::Validated,
};
use crate::{
    events::Event,
    live,
    plan::{self, Change, ChildKind, HeldPart, Hold, Object, Plan, Target},
};

/// What the pass wants, while it is being put together.
pub(crate) struct Wanted {
    pub(crate) changes: Vec<Change>,
    pub(crate) holds: Vec<Hold>,
    /// Name of the ingress Service in force.
    pub(crate) ingress: Option<String>,
    pub(crate) rollout: Rollout,
    /// What is said besides changes and holds.
    pub(crate) events: Vec<Event>,
}

impl Wanted {
    fn hold(&mut self, what: HeldPart, reason: &str, message: impl Into<String>) {
        self.holds.push(Hold { what, reason: reason.into(), message: message.into() });
    }

    /// Nothing but the status is written.
    fn stop(&mut self, dp: &Validated<'_>, rollout: Rollout, reason: &str, message: String) {
        self.changes.clear();
        self.ingress = lookup::live_service(dp, "ingress").and_then(|c| c.object.metadata.name.clone());
        self.rollout = rollout;
        self.hold(HeldPart::Everything, reason, message);
    }

    /// The usable name, or a hold that says why there is none.
    fn name(&mut self, part: HeldPart, kind: ChildKind, name: &Name) -> Option<String> {
        match name {
            Name::Use(name) => Some(name.clone()),
            Name::Wait(name) => {
                self.hold(
                    part,
                    reasons::WAITING_FOR_OLD_CHILD,
                    format!("{} {name:?} of a former object is still being deleted; it is made again when it is gone", kind.api().1),
                );
                None
            }
            Name::Taken(name) => {
                self.hold(
                    part,
                    reasons::NAME_TAKEN,
                    format!("{} {name:?} belongs to somebody else: choose another name or delete it", kind.api().1),
                );
                None
            }
        }
    }

    /// Applies an object when it has to be written. A child of Kong's operator is taken over first.
    fn apply<T: Serialize>(&mut self, mut object: Object, live: Option<&Child<T>>) {
        live::stamp(&mut object);
        let Some(child) = live else {
            self.changes.push(Change::Apply { object, first: true });
            return;
        };
        let current = serde_json::to_value(&child.object).unwrap_or_default();
        let uid = current.pointer("/metadata/uid").and_then(|u| u.as_str()).map(String::from);
        let annotations = current.pointer("/metadata/annotations");
        if takeover::is_kongs(|key| annotations.is_some_and(|all| all.get(key).is_some())) {
            let meta = object.meta();
            self.take_over(Target {
                kind: object.kind(),
                namespace: meta.namespace.clone().unwrap_or_default(),
                name: meta.name.clone().unwrap_or_default(),
                uid: uid.clone().unwrap_or_default(),
            });
        }
        if live::needs_write(&object.to_json(), &current, child.answered.as_deref()) {
            object.meta_mut().uid = uid;
            self.changes.push(Change::Apply { object, first: false });
        }
    }

    /// Takes a child over, once per pass.
    fn take_over(&mut self, target: Target) {
        let change = Change::TakeOver(target);
        if !self.changes.contains(&change) {
            self.changes.push(change);
        }
    }
}

/// Plans the pass.
#[must_use]
pub fn plan(dp: &Validated<'_>, decided: &Decided) -> Plan<DataPlaneStatus> {
    let mut wanted = Wanted { changes: Vec::new(), holds: problems(dp), ingress: None, rollout: Rollout::None, events: Vec::new() };
    let kept_by = takeover::kept_by(dp);
    if !dp.holds(HeldPart::Everything) && kept_by.is_none() {
        wanted.holds.extend(decided.holds.iter().cloned());
        children(dp, decided, &mut wanted);
    }
    if dp.snapshot.data_plane.metadata.deletion_timestamp.is_some() {
        // Garbage collection takes the children; making them again would fight it.
        wanted.changes.clear();
        wanted.holds.clear();
        takeover::release_all(dp, &mut wanted);
    }
    wanted.changes.extend(plan::checked(&dp.snapshot.data_plane.metadata));
    if dp.annotation(keys::PAUSED) == Some("true") {
        let message = format!("annotation {} is \"true\": nothing but the status is written", keys::PAUSED);
        wanted.stop(dp, Rollout::Paused, "Paused", message);
    } else if let Some(holder) = kept_by {
        let rollout = Rollout::KongOperator { holder: holder.to_owned() };
        wanted.stop(dp, rollout, reasons::KONG_OPERATOR_LIVE, takeover::running(holder));
    }
    let status = status::build(dp, decided, &wanted);
    if !matches!(wanted.rollout, Rollout::Paused | Rollout::KongOperator { .. }) {
        wanted.changes.extend(status::machine_readable(dp, decided, &wanted.rollout));
    }
    let status_changed = dp.snapshot.data_plane.status.as_ref() != Some(&status);
    let mut events: Vec<Event> = decided.findings.iter().filter_map(Event::of_finding).collect();
    // What is only not known yet is nothing to warn of.
    let told = wanted.holds.iter().filter(|h| h.reason != reasons::PENDING);
    events.extend(told.map(|h| Event::warning(&h.reason, "A part of this object is held back", h.message.clone())));
    events.extend(wanted.changes.iter().filter_map(change_event));
    events.append(&mut wanted.events);
    Plan {
        changes: wanted.changes,
        status: Some(status),
        status_changed,
        events,
        findings: decided.findings.clone(),
        policies: decided.policies.clone(),
        holds: wanted.holds,
    }
}

/// A live child as the target of a change.
fn target(dp: &Validated<'_>, kind: ChildKind, meta: &ObjectMeta) -> Target {
    Target { kind, namespace: dp.namespace.clone(), name: meta.name.clone().unwrap_or_default(), uid: meta.uid.clone().unwrap_or_default() }
}

pub(crate) fn problems(dp: &Validated<'_>) -> Vec<Hold> {
    let hold = |p: &super::validate::Problem| Hold {
        what: p.part,
        reason: reasons::VALIDATION_FAILED.into(),
        message: format!("{}: {}", p.path, p.message),
    };
    dp.problems.iter().map(hold).collect()
}

fn change_event(change: &Change) -> Option<Event> {
    Some(match change {
        Change::Apply { object, first } => {
            let reason = if *first { "Created" } else { "Updated" };
            let name = object.meta().name.as_deref().unwrap_or_default();
            Event::normal(reason, "A child was applied", format!("{} {name}", object.kind().api().1))
        }
        Change::MintCertificate(request) => Event::normal(
            "CertificateMinted",
            "An admin certificate was made",
            format!("Secret {}", request.metadata.name.as_deref().unwrap_or_default()),
        ),
        Change::Delete(target) => {
            Event::normal("Deleted", "A child that is not wanted any more was deleted", format!("{} {}", target.kind.api().1, target.name))
        }
        Change::TakeOver(target) => {
            Event::normal("TakenOver", "A child of Kong's operator was taken over", format!("{} {}", target.kind.api().1, target.name))
        }
        Change::Reclaim(target) => Event::normal(
            "Reclaimed",
            "What an undone rollout brought back was made ours",
            format!("{} {}", target.kind.api().1, target.name),
        ),
        Change::ProvideContent(request) => Event::normal(
            "PluginProvided",
            "The content of a plugin was stored in this namespace",
            format!("{}/{}", request.installation.0, request.installation.1),
        ),
        Change::ReleaseContent { target, owner: _ } => {
            Event::normal("PluginReleased", "Content of a plugin that no pod can use any more was released", target.name.clone())
        }
        Change::SetFinalizer { key, present: true } => Event::normal("FinalizerSet", "A finalizer was set", key.clone()),
        Change::SetFinalizer { key, present: false } => Event::normal("FinalizerRemoved", "A finalizer was removed", key.clone()),
        // What the operator reports for machines is no news to people.
        Change::SetAnnotation { key, value: _ } if key == keys::PLUGINS => return None,
        Change::RemoveAnnotation { key } if key == keys::PLUGINS => return None,
        Change::SetAnnotation { key, value: _ } => Event::normal("InstructionAnswered", "A one-time annotation was answered", key.clone()),
        Change::RemoveAnnotation { key } => {
            Event::normal("InstructionDone", "A one-time annotation was carried out and removed", key.clone())
        }
    })
}

/// Children in apply order: what others refer to comes first.
fn children(dp: &Validated<'_>, decided: &Decided, wanted: &mut Wanted) {
    if !dp.holds(HeldPart::AdminService)
        && !decided.holds(HeldPart::AdminService)
        && let Some(name) = wanted.name(HeldPart::AdminService, ChildKind::Service, &decided.admin_service)
    {
        let object = Object::Service(Box::new(admin_service::build(dp, name)));
        wanted.apply(decided.after_hooks(HeldPart::AdminService, object), lookup::live_service(dp, "admin"));
    }
    ingress(dp, decided, wanted);
    if let Some(options) = konnect_certificate::options(dp).filter(|o| !o.issuer.name.is_empty()) {
        let (live, name) = lookup::certificate(dp);
        wanted.apply(Object::Certificate(Box::new(konnect_certificate::build(dp, name, options))), live);
    }
    let deployment = rollout::deployment(dp, decided, wanted);
    if let Some(deployment) = &deployment {
        scaling(dp, decided, deployment, wanted);
    }
    budget(dp, decided, wanted);
    takeover::release(dp, wanted);
    prune::prune(dp, decided, deployment.as_deref(), wanted);
}

fn ingress(dp: &Validated<'_>, decided: &Decided, wanted: &mut Wanted) {
    wanted.ingress = lookup::live_service(dp, "ingress").and_then(|c| c.object.metadata.name.clone());
    if dp.holds(HeldPart::IngressService) || decided.holds(HeldPart::IngressService) {
        return;
    }
    let Some(name) = wanted.name(HeldPart::IngressService, ChildKind::Service, &lookup::ingress_service(dp)) else { return };
    let live = lookup::services(dp, "ingress").find(|c| c.object.metadata.name.as_deref() == Some(name.as_str()));
    let object = Object::Service(Box::new(ingress_service::build(dp, name.clone())));
    wanted.apply(decided.after_hooks(HeldPart::IngressService, object), live);
    wanted.ingress = Some(name);
}

fn scaling(dp: &Validated<'_>, decided: &Decided, deployment: &str, wanted: &mut Wanted) {
    let held = dp.holds(HeldPart::Autoscaler) || decided.holds(HeldPart::Autoscaler);
    let Some(options) = autoscaler::options(dp).filter(|_| !held) else { return };
    let (live, name) = lookup::same_named(dp, ChildKind::HorizontalPodAutoscaler, &dp.snapshot.children.autoscalers);
    if let Some(name) = wanted.name(HeldPart::Autoscaler, ChildKind::HorizontalPodAutoscaler, &name) {
        let object = Object::HorizontalPodAutoscaler(Box::new(autoscaler::build(dp, name, deployment, options)));
        wanted.apply(decided.after_hooks(HeldPart::Autoscaler, object), live);
    }
}

fn budget(dp: &Validated<'_>, decided: &Decided, wanted: &mut Wanted) {
    let held = dp.holds(HeldPart::DisruptionBudget) || decided.holds(HeldPart::DisruptionBudget);
    let Some(options) = disruption_budget::options(dp).filter(|_| !held) else { return };
    let (live, name) = lookup::same_named(dp, ChildKind::PodDisruptionBudget, &dp.snapshot.children.disruption_budgets);
    if let Some(name) = wanted.name(HeldPart::DisruptionBudget, ChildKind::PodDisruptionBudget, &name) {
        let object = Object::PodDisruptionBudget(Box::new(disruption_budget::build(dp, name, options)));
        wanted.apply(decided.after_hooks(HeldPart::DisruptionBudget, object), live);
    }
}
