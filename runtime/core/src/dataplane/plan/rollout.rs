//! The Deployment: whether its pod template moves or stays as it is, and how many replicas it asks for.

use k8s_openapi::api::{apps::v1::Deployment, core::v1::PodTemplateSpec};
use weir_api::{condition::reasons, keys};

use super::{
    Wanted, contents, held, lookup, marks,
    renewal::{self, is_renewal},
    rollback, takeover, target,
};
use crate::{
    dataplane::{
        decide::{Decided, Own},
        objects::{
            autoscaler,
            deployment::{self, TEMPLATE_HASH},
        },
        snapshot::Child,
        validate::Validated,
    },
    hash, live,
    plan::{Change, ChildKind, HeldPart, Object},
    policy::Pairs,
};

/// Whether the pod template waits for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rollout {
    /// Nothing waits, and nothing is said.
    None,
    /// Blue/green is asked for and nothing waits.
    BlueGreen,
    /// A change of the pod template waits for `promote-when-ready` (semantics "Blue/green until previews exist").
    AwaitingPromotion {
        /// Hash of the pending template.
        pending: String,
    },
    /// Our pod template differs from the one of Kong's operator, and that waits (semantics "Takeover never rolls").
    Takeover {
        /// Hash of our template.
        pending: String,
        /// An approval that is there and names another one.
        approved: Option<String>,
    },
    /// A change that comes from elsewhere waits (semantics "Owner-held rollouts").
    Foreign {
        /// Hash of the pending template.
        pending: String,
        /// Hash of the template in force.
        from: String,
        /// What differs, by name.
        what: String,
        /// An approval that is there and names another one.
        approved: Option<String>,
    },
    /// Somebody undid a rollout, and going forward waits (ADR 9).
    RolledBack {
        /// Word that lets it go.
        pending: String,
        /// What differs, by name.
        what: String,
        /// An approval that is there and names something else.
        approved: Option<String>,
    },
    /// The owner holds changes from elsewhere, and none waits.
    Manual,
    /// The object is paused.
    Paused,
    /// Kong's operator runs, and the object is its.
    KongOperator {
        /// Who holds its Lease.
        holder: String,
    },
}

/// Plans the Deployment. Returns its name where it exists or will exist.
pub(crate) fn deployment(dp: &Validated<'_>, decided: &Decided, wanted: &mut Wanted) -> Option<String> {
    let live = lookup::live_deployment(dp);
    let name = wanted.name(HeldPart::PodTemplate, ChildKind::Deployment, &lookup::deployment(dp))?;
    if let Some(hold) = &decided.certificate.blocked {
        wanted.holds.push(hold.clone());
    }
    let held = dp.holds(HeldPart::PodTemplate) || wanted.holds.iter().any(|h| h.what == HeldPart::PodTemplate);
    let hooked = decided.deployment_after_hooks();
    let after_hooks = || hooked.and_then(|after| after.spec.as_ref()).map(|spec| spec.template.clone());
    let pending = Some(()).filter(|()| !held).and_then(|()| after_hooks().or_else(|| pending(dp, decided, live)));
    let template = match (pending, live) {
        (None, None) => {
            mint(decided, wanted);
            return None;
        }
        (None, Some(live)) => Template::Keep(live),
        (Some(template), None) => {
            if blue_green(dp) {
                promoted(dp, wanted);
            }
            Template::Roll(Box::new(template))
        }
        (Some(template), Some(live)) => gate(dp, decided, template, live, wanted),
    };
    contents::provide(dp, decided, &template, wanted);
    let object = match template {
        Template::Roll(template) => {
            mint(decided, wanted);
            let extension = extension(dp, decided, live);
            let in_force = marks::InForce { decisions: decided.decisions.as_ref(), extension: extension.as_ref() };
            let marks = marks::rendered(dp, &template, live, &in_force);
            dressed(hooked, deployment::build(dp, name.clone(), *template, replicas(dp, live), marks.clone()), &marks)
        }
        Template::Own(template, own) => {
            if own.certificate == decided.certificate.secret {
                mint(decided, wanted);
            }
            let in_force = marks::InForce { decisions: own.decisions.as_ref(), extension: own.extension.as_ref() };
            let marks = marks::rendered(dp, &template, live, &in_force);
            dressed(hooked, deployment::build(dp, name.clone(), *template, replicas(dp, live), marks.clone()), &marks)
        }
        Template::Keep(live) => keep(dp, decided, name.clone(), live, wanted),
    };
    if let Some(live) = live.filter(|live| live::owned::is_undone(&live.object)) {
        wanted.changes.push(Change::Reclaim(target(dp, ChildKind::Deployment, &live.object.metadata)));
    }
    wanted.apply(Object::Deployment(Box::new(object)), live);
    Some(name)
}

/// The pod template that this pass renders, before any hook; none without what all parties want in it.
pub(crate) fn pending(dp: &Validated<'_>, decided: &Decided, live: Option<&Child<Deployment>>) -> Option<PodTemplateSpec> {
    let path = decided.konnect.as_ref().and_then(|k| k.readiness_path.as_deref());
    let digest = renewal::certificate_digest(dp, decided, live);
    Some(deployment::template(dp, decided.settled.as_ref()?, path, digest.as_deref()))
}

/// A Deployment with what hooks said of everything but its pod template. Our marks are not theirs to change.
fn dressed(hooked: Option<&Deployment>, built: Deployment, marks: &Pairs) -> Deployment {
    let (Some(mut after), Some(built_spec)) = (hooked.cloned(), built.spec.clone()) else { return built };
    after.metadata.annotations.get_or_insert_default().extend(marks.clone());
    if let Some(spec) = &mut after.spec {
        spec.template = built_spec.template;
    }
    after
}

/// The extension that the answer of this pass is of: an older answer is of the one that was named then.
fn extension(dp: &Validated<'_>, decided: &Decided, live: Option<&Child<Deployment>>) -> Option<String> {
    decided.konnect.as_ref()?;
    let older = live.filter(|_| decided.konnect_kept).and_then(|live| annotation(live, keys::KONNECT_EXTENSION));
    older.cloned().or_else(|| marks::extension(dp))
}

pub(super) enum Template<'a> {
    /// With the answers of this pass.
    Roll(Box<PodTemplateSpec>),
    /// An own change of the owner, with the answers in force.
    Own(Box<PodTemplateSpec>, &'a Own),
    Keep(&'a Child<Deployment>),
}

/// With blue/green every change of the template waits for a promotion, which then rolls in place.
fn gate<'a>(
    dp: &Validated<'_>,
    decided: &'a Decided,
    template: PodTemplateSpec,
    live: &'a Child<Deployment>,
    wanted: &mut Wanted,
) -> Template<'a> {
    let promote = dp.annotation(keys::PROMOTE_WHEN_READY) == Some("true");
    if !blue_green(dp)
        && let Some(undone) = rollback::waiting(dp, decided, &template, live, wanted)
    {
        return undone;
    }
    // A promotion is the owner's word too.
    if let Some(waiting) = takeover::waiting(dp, &template, live).filter(|_| !(blue_green(dp) && promote)) {
        if let Rollout::Takeover { pending, approved } = &waiting {
            wanted.hold(HeldPart::PodTemplate, reasons::TAKEOVER, takeover::cure(pending, approved.as_deref()));
        }
        wanted.rollout = waiting;
        return Template::Keep(live);
    }
    let differs = differs(&template, live);
    if blue_green(dp) && differs && !promote && !is_renewal(dp, &template, live) {
        let pending = hash::digest_json(&template);
        let message = format!(
            "the pod template waits for annotation {}: \"true\"; it then rolls in place, since a preview is not offered yet",
            keys::PROMOTE_WHEN_READY
        );
        wanted.hold(HeldPart::PodTemplate, reasons::AWAITING_PROMOTION, message);
        wanted.rollout = Rollout::AwaitingPromotion { pending };
        return Template::Keep(live);
    }
    if blue_green(dp) {
        promoted(dp, wanted);
        return Template::Roll(Box::new(template));
    }
    if dp.manual() { held::manual(dp, decided, template, live, wanted) } else { Template::Roll(Box::new(template)) }
}

/// Nothing waits. An instruction that stands is used up, so that it does not promote a later change that nobody asked for.
fn promoted(dp: &Validated<'_>, wanted: &mut Wanted) {
    wanted.rollout = Rollout::BlueGreen;
    if dp.annotation(keys::PROMOTE_WHEN_READY) == Some("true") {
        wanted.changes.push(Change::RemoveAnnotation { key: keys::PROMOTE_WHEN_READY.into() });
    }
}

/// The certificate comes before the Deployment that mounts it.
fn mint(decided: &Decided, wanted: &mut Wanted) {
    if let Some(request) = &decided.certificate.request {
        wanted.changes.push(Change::MintCertificate(Box::new(request.clone())));
    }
}

fn blue_green(dp: &Validated<'_>) -> bool {
    dp.spec().deployment.as_ref().and_then(|d| d.rollout.as_ref()).is_some_and(|r| r.strategy.blue_green.is_some())
}

pub(super) fn annotation<'a>(live: &'a Child<Deployment>, key: &str) -> Option<&'a String> {
    live.object.metadata.annotations.as_ref()?.get(key)
}

/// The owner's approval of a template that waits.
pub(super) fn approval<'a>(dp: &'a Validated<'_>) -> Option<&'a str> {
    dp.annotation(keys::APPROVED_ROLLOUT)
}

/// What is said of an approval that names something else than what waits.
pub(super) fn stale(approved: Option<&str>) -> String {
    let Some(approved) = approved else { return String::new() };
    let approved: String = approved.chars().filter(|c| !c.is_control()).take(80).collect();
    format!("; {} names {approved:?}, which does not wait, and changes nothing", keys::APPROVED_ROLLOUT)
}

pub(super) fn differs(template: &PodTemplateSpec, live: &Child<Deployment>) -> bool {
    if let Some(in_force) = annotation(live, TEMPLATE_HASH) {
        return *in_force != hash::digest_json(template);
    }
    let current = live.object.spec.as_ref().map(|s| serde_json::to_value(&s.template).unwrap_or_default()).unwrap_or_default();
    !live::defaulted::same(&current, &serde_json::to_value(template).unwrap_or_default())
}

/// The Deployment with the template it has: only scaling, labels and certificates that near their end move.
fn keep(dp: &Validated<'_>, decided: &Decided, name: String, live: &Child<Deployment>, wanted: &mut Wanted) -> Deployment {
    let staying = renewal::staying(dp, decided, live);
    if staying.has_certificate {
        mint(decided, wanted);
    }
    let marks = marks::kept(dp, &staying.template, live);
    let mut built = deployment::build(dp, name, staying.template, replicas(dp, Some(live)), marks.clone());
    let hooked = decided.deployment_after_hooks();
    if hooked.is_none() && decided.has_hooks {
        live::owned::keep_metadata(&live.object.metadata, &mut built.metadata);
    }
    dressed(hooked, built, &marks)
}

/// Replicas to ask for; none leaves the field to the manager that has it. With an autoscaler the live count is applied until another manager
/// owns the field, so that switching it on or off never dips. A count that is refused changes nothing.
pub(crate) fn replicas(dp: &Validated<'_>, live: Option<&Child<Deployment>>) -> Option<i32> {
    let current = live.map(|l| l.object.spec.as_ref().and_then(|s| s.replicas).unwrap_or(1));
    let given = dp.spec().deployment.as_ref().and_then(|d| d.replicas);
    let Some(scaling) = autoscaler::options(dp) else { return given.filter(|r| *r >= 0).or(given.and(current)).or(Some(1)) };
    if live.is_some_and(foreign_replicas) {
        return None;
    }
    let least = if dp.holds(HeldPart::Autoscaler) { 1 } else { scaling.min_replicas.unwrap_or(1).max(0) };
    match current {
        None => Some(least),
        Some(current) if dp.holds(HeldPart::Autoscaler) => Some(current),
        Some(current) => Some(current.max(least)),
    }
}

fn foreign_replicas(live: &Child<Deployment>) -> bool {
    // What Kong's operator owns is handed to us: leaving its count out would drop it.
    let kongs = takeover::is_kongs(|key| annotation(live, key).is_some());
    !kongs
        && live.object.metadata.managed_fields.iter().flatten().any(|entry| {
            let owns = entry.fields_v1.as_ref().is_some_and(|f| f.0.pointer("/f:spec/f:replicas").is_some());
            owns && entry.manager.as_deref() != Some(keys::FIELD_MANAGER)
        })
}
