//! Owner-held rollouts: the pods roll at once for their owner's own changes only (design section 7, semantics "Owner-held rollouts").

use k8s_openapi::api::{apps::v1::Deployment, core::v1::PodTemplateSpec};
use weir_api::{condition::reasons, keys};

use super::{
    Wanted, difference, marks,
    renewal::{is_renewal, staying},
    rollout::{Rollout, Template, annotation, approval, differs, stale},
};
use crate::{
    dataplane::{decide::Decided, objects::deployment::TEMPLATE_HASH, snapshot::Child, validate::Validated},
    events::Event,
    hash,
    plan::HeldPart,
};

/// Rolls what the owner changed or approved; everything else waits and says what it would change.
pub(super) fn manual<'a>(
    dp: &Validated<'_>,
    decided: &'a Decided,
    template: PodTemplateSpec,
    live: &'a Child<Deployment>,
    wanted: &mut Wanted,
) -> Template<'a> {
    wanted.rollout = Rollout::Manual;
    if !differs(&template, live) {
        return Template::Roll(Box::new(template));
    }
    let pending = hash::digest_json(&template);
    let approved = approval(dp);
    if approved == Some(pending.as_str()) {
        return Template::Roll(Box::new(template));
    }
    let own = decided.own.as_ref().map(|own| (own.template.clone(), own));
    let own = own.filter(|(rendered, own)| own.due || is_own(dp, live) || is_renewal(dp, rendered, live));
    let Some((own_template, own)) = own else {
        wait(wanted, pending, approved, &staying(dp, decided, live).template, &template, live);
        return Template::Keep(live);
    };
    if differs(&own_template, live) {
        let version = rides_along(dp, live).then(|| format!("operator {}", dp.snapshot.operator.version));
        let message = "A change from elsewhere could not be separated from the owner's own and rolled with it";
        let rode = version.into_iter().chain(own.rides.iter().cloned());
        wanted.events.extend(rode.map(|what| Event::normal("ChangeRodeAlong", message, what)));
    }
    if hash::digest_json(&own_template) == pending {
        return Template::Roll(Box::new(template));
    }
    wait(wanted, pending, approved, &own_template, &template, live);
    Template::Own(Box::new(own_template), own)
}

/// Whether the owner has changed what the spec says about the pods since the template was rendered. Scaling is no such change.
fn is_own(dp: &Validated<'_>, live: &Child<Deployment>) -> bool {
    if let Some(rolled) = annotation(live, keys::ROLLED_SPEC) {
        return *rolled != marks::spec(dp);
    }
    let generation = dp.snapshot.data_plane.metadata.generation.unwrap_or_default().to_string();
    annotation(live, keys::ROLLED_GENERATION).is_none_or(|rolled| *rolled != generation)
}

/// Whether another version of the operator rendered the template: its rendering cannot be told from the owner's change.
fn rides_along(dp: &Validated<'_>, live: &Child<Deployment>) -> bool {
    annotation(live, keys::OPERATOR_VERSION).is_some_and(|version| *version != dp.snapshot.operator.version)
}

fn wait(
    wanted: &mut Wanted,
    pending: String,
    approved: Option<&str>,
    from: &PodTemplateSpec,
    to: &PodTemplateSpec,
    live: &Child<Deployment>,
) {
    let what = difference::between(from, to);
    let message = cure(&pending, &what, approved);
    let from = annotation(live, TEMPLATE_HASH).cloned().unwrap_or_default();
    wanted.hold(HeldPart::Answer, reasons::FOREIGN_CHANGE, message);
    wanted.rollout = Rollout::Foreign { pending, from, what, approved: approved.map(String::from) };
}

/// What the owner of a waiting change can do.
pub(crate) fn cure(pending: &str, what: &str, approved: Option<&str>) -> String {
    let key = keys::APPROVED_ROLLOUT;
    format!("a change from elsewhere waits ({what}); annotation {key}: {pending} lets it go{}", stale(approved))
}
