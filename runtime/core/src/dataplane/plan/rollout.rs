//! The Deployment: whether its pod template moves or stays as it is, and how many replicas it asks for.

use k8s_openapi::api::{apps::v1::Deployment, core::v1::PodTemplateSpec};
use weir_api::{condition::reasons, keys};

use super::{Wanted, held, lookup, takeover};
use crate::{
    dataplane::{
        decide::{Decided, Own},
        objects::{
            autoscaler, certificate,
            deployment::{self, TEMPLATE_HASH},
            plain_owner,
            proxy::CLUSTER_CERTIFICATE_VOLUME,
        },
        plugins::{self, Used},
        snapshot::Child,
        validate::{Konnect, Validated},
    },
    hash, live,
    plan::{Change, ChildKind, ContentRequest, HeldPart, Object},
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
    let pending = decided.settled.as_ref().filter(|_| !held).map(|settled| {
        let path = decided.konnect.as_ref().and_then(|k| k.readiness_path.as_deref());
        deployment::template(dp, settled, path, certificate_digest(dp, decided, live).as_deref())
    });
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
    contents(dp, decided, &template, wanted);
    let object = match template {
        Template::Roll(template) => {
            mint(decided, wanted);
            deployment::build(dp, name.clone(), *template, replicas(dp, live), decided.decisions.clone())
        }
        Template::Own(template, own) => {
            if own.certificate == decided.certificate.secret {
                mint(decided, wanted);
            }
            deployment::build(dp, name.clone(), *template, replicas(dp, live), own.decisions.clone())
        }
        Template::Keep(live) => keep(dp, decided, name.clone(), live, wanted),
    };
    wanted.apply(Object::Deployment(Box::new(object)), live);
    Some(name)
}

pub(super) enum Template<'a> {
    /// With the answers of this pass.
    Roll(Box<PodTemplateSpec>),
    /// An own change of the owner, with the answers in force.
    Own(Box<PodTemplateSpec>, &'a Own),
    Keep(&'a Child<Deployment>),
}

/// The content that the template mounts stands in the namespace before the Deployment does. What pods have already is seen to as well: somebody
/// may have deleted it.
fn contents(dp: &Validated<'_>, decided: &Decided, template: &Template<'_>, wanted: &mut Wanted) {
    let used: Vec<&Used> = match template {
        Template::Roll(_) => decided.plugins.iter().collect(),
        Template::Own(_, own) => own.plugins.iter().collect(),
        Template::Keep(live) => {
            let maps = plugins::mounted_maps(&live.object);
            let mounted = |used: &&Used| plugins::map_names([&*used.content]).any(|name| maps.contains(&name));
            let own = decided.own.iter().flat_map(|own| &own.plugins).filter(|used| !decided.plugins.contains(used));
            decided.plugins.iter().chain(own).filter(mounted).collect()
        }
    };
    let mine =
        |name: &String| dp.snapshot.children.contents.iter().any(|map| map.name == *name && !map.leaving && map.owners.contains(&dp.uid));
    for used in used {
        if plugins::map_names([&*used.content]).all(|name| mine(&name)) {
            continue;
        }
        let (namespace, name) = used.reference.split_once('/').unwrap_or_default();
        wanted.changes.push(Change::ProvideContent(Box::new(ContentRequest {
            namespace: dp.namespace.clone(),
            hash: used.content.hash.clone(),
            maps: used.content.maps,
            installation: (namespace.to_owned(), name.to_owned()),
            owner: plain_owner(dp),
        })));
    }
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
    // A promotion is the owner's word too.
    if let Some(waiting) = takeover::waiting(dp, &template, live).filter(|_| !(blue_green(dp) && promote)) {
        if let Rollout::Takeover { pending, approved } = &waiting {
            wanted.hold(HeldPart::PodTemplate, reasons::TAKEOVER, takeover::cure(pending, approved.as_deref()));
        }
        wanted.rollout = waiting;
        return Template::Keep(live);
    }
    let differs = differs(&template, live);
    if blue_green(dp) && differs && !promote && !held::is_renewal(dp, &template, &decided.certificate.secret, live) {
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

pub(super) fn differs(template: &PodTemplateSpec, live: &Child<Deployment>) -> bool {
    if let Some(in_force) = annotation(live, TEMPLATE_HASH) {
        return *in_force != hash::digest_json(template);
    }
    let current = live.object.spec.as_ref().map(|s| serde_json::to_value(&s.template).unwrap_or_default()).unwrap_or_default();
    !live::defaulted::same(&current, &serde_json::to_value(template).unwrap_or_default())
}

/// The Deployment with the template it has: only scaling, labels and a certificate of ours that nears its end move. Of the template only what
/// is ours is sent again; all of it where that is not known.
fn keep(dp: &Validated<'_>, decided: &Decided, name: String, live: &Child<Deployment>, wanted: &mut Wanted) -> Deployment {
    let whole = || live.object.spec.as_ref().map(|s| s.template.clone()).unwrap_or_default();
    let mut template = live::owned::template(&live.object).unwrap_or_else(whole);
    if renew(dp, decided, &mut template) {
        mint(decided, wanted);
    }
    let decisions = annotation(live, keys::DECISIONS).cloned();
    let mut object = deployment::build(dp, name, template, replicas(dp, Some(live)), decisions);
    if let Some(annotations) = object.metadata.annotations.as_mut() {
        // The hash is of what was sent; the live template has the server's defaults too.
        annotations.remove(TEMPLATE_HASH);
        // Nor is it rendered anew: whose change it was is still to be found out.
        for key in [keys::ROLLED_GENERATION, keys::OPERATOR_VERSION] {
            annotations.remove(key);
            annotations.extend(annotation(live, key).map(|value| (key.to_owned(), value.clone())));
        }
        match annotation(live, TEMPLATE_HASH) {
            Some(in_force) => annotations.extend([(TEMPLATE_HASH.to_owned(), in_force.clone())]),
            None => {
                let since = takeover::since(dp, &live.object.metadata);
                annotations.extend(since.map(|generation| (keys::TAKEOVER_GENERATION.to_owned(), generation)));
            }
        }
    }
    object
}

/// Secret of the admin certificate in a template.
pub(super) fn mounted_certificate(template: &mut PodTemplateSpec) -> Option<&mut String> {
    let volumes = template.spec.as_mut()?.volumes.as_mut()?;
    volumes.iter_mut().find(|v| v.name == CLUSTER_CERTIFICATE_VOLUME)?.secret.as_mut()?.secret_name.as_mut()
}

/// Puts the certificate in force in the place of one that nears its end. False while the template has another one, which stays.
pub(super) fn renew(dp: &Validated<'_>, decided: &Decided, template: &mut PodTemplateSpec) -> bool {
    let in_force = &decided.certificate.secret;
    match mounted_certificate(template).filter(|name| *name == in_force || certificate::ends(dp, name)) {
        Some(name) => {
            name.clone_from(in_force);
            true
        }
        None => false,
    }
}

/// Digest of the Konnect certificate on the template: the Secret's, or the one in force while the answer in force is an older one.
fn certificate_digest(dp: &Validated<'_>, decided: &Decided, live: Option<&Child<Deployment>>) -> Option<String> {
    decided.konnect.as_ref()?;
    let in_force =
        || live?.object.spec.as_ref()?.template.metadata.as_ref()?.annotations.as_ref()?.get(keys::KONNECT_CERTIFICATE_DIGEST).cloned();
    match &dp.konnect {
        Konnect::Ready { certificate_digest: Some(digest), .. } if !decided.konnect_kept => Some(digest.clone()),
        Konnect::Ready { .. } | Konnect::None | Konnect::NotAccepted { .. } | Konnect::Blocked { .. } => in_force(),
    }
}

/// Replicas to ask for; none leaves the field to the manager that has it. With an autoscaler the live count is applied until another manager
/// owns the field, so that switching it on or off never dips. A count that is refused changes nothing.
fn replicas(dp: &Validated<'_>, live: Option<&Child<Deployment>>) -> Option<i32> {
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
