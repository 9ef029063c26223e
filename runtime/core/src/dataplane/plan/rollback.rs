//! An undone rollout: somebody went back to a former pod template (`kubectl rollout undo`), and it stays (ADR 9).
//!
//! What shows it is a number: each template of ours has a higher one, in an annotation that the Deployment controller copies to the ReplicaSet
//! and that is brought back with the template. A live number below that of a ReplicaSet means that somebody went back. Who writes values of
//! ours and leaves the number alone is another writer, and is repaired.

use std::fmt;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::PodTemplateSpec};
use weir_api::{condition::reasons, keys};

use super::{
    Wanted, difference, lookup, marks, renewal,
    rollout::{Rollout, Template, annotation, approval, differs, stale},
};
use crate::{
    dataplane::{decide::Decided, objects::deployment::TEMPLATE_HASH, snapshot::Child, validate::Validated},
    hash,
    plan::HeldPart,
};

/// A template that was in force later than the live one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Later {
    number: u64,
    /// What the spec said about the pods then.
    spec: Option<String>,
}

impl fmt::Display for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.number, self.spec.as_deref().unwrap_or_default())
    }
}

impl Later {
    fn parse(text: &str) -> Option<Self> {
        let (number, spec) = text.split_once(' ')?;
        Some(Self { number: number.parse().ok()?, spec: Some(spec.to_owned()).filter(|spec| !spec.is_empty()) })
    }
}

/// The latest template that somebody went back from, whatever the owner has done since.
pub(crate) fn later(dp: &Validated<'_>) -> Option<Later> {
    let live = lookup::live_deployment(dp)?;
    let (uid, hash) = (live.object.metadata.uid.as_ref()?, annotation(live, TEMPLATE_HASH));
    // Of the same template it is no other one: somebody removed our number.
    let sets = dp.snapshot.children.replica_sets.iter().filter(|s| s.deployment.as_ref() == Some(uid) && s.template_hash.as_ref() != hash);
    let sets = sets.map(|set| Later { number: set.number, spec: set.rolled_spec.clone() });
    let noted = annotation(live, keys::ROLLED_BACK).and_then(|text| Later::parse(text));
    sets.chain(noted).filter(|later| later.number > number(live)).max_by_key(|later| later.number)
}

/// The same, until the owner changes what the spec says about the pods.
pub(crate) fn standing(dp: &Validated<'_>) -> Option<Later> {
    later(dp).filter(|later| later.spec.as_ref().is_none_or(|spec| *spec == marks::spec(dp)))
}

fn number(live: &Child<Deployment>) -> u64 {
    annotation(live, keys::TEMPLATE_NUMBER).and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Number of a template that goes into the Deployment: above all that were there, unless it is there.
pub(super) fn next(dp: &Validated<'_>, template: &PodTemplateSpec, live: Option<&Child<Deployment>>) -> u64 {
    let Some(live) = live else { return 1 };
    match later(dp) {
        Some(later) => later.number.saturating_add(1),
        None if differs(template, live) => number(live).saturating_add(1),
        None => number(live),
    }
}

/// Whether the template waits because somebody went back from it. An approval of this very step forward is used up by it: the same word that
/// once let the template go does not bring it back.
pub(super) fn waiting<'a>(
    dp: &Validated<'_>,
    decided: &Decided,
    template: &PodTemplateSpec,
    live: &'a Child<Deployment>,
    wanted: &mut Wanted,
) -> Option<Template<'a>> {
    let later = standing(dp).filter(|_| differs(template, live))?;
    let pending = hash::digest_json(&("rolled back", later.number, template));
    let approved = approval(dp);
    if approved == Some(pending.as_str()) {
        if dp.manual() {
            wanted.rollout = Rollout::Manual;
        }
        return Some(Template::Roll(Box::new(template.clone())));
    }
    let what = difference::between(&renewal::staying(dp, decided, live).template, template);
    let approved = approved.map(String::from);
    wanted.hold(HeldPart::PodTemplate, reasons::ROLLED_BACK, cure(&pending, &what, approved.as_deref()));
    wanted.rollout = Rollout::RolledBack { pending, what, approved };
    Some(Template::Keep(live))
}

/// What the owner of undone pods can do.
pub(crate) fn cure(pending: &str, what: &str, approved: Option<&str>) -> String {
    let key = keys::APPROVED_ROLLOUT;
    format!(
        "a rollout was undone, and the pods stay so; going forward ({what}) waits for a change of the pods in the spec; annotation {key}: \
         {pending} lets it go{}",
        stale(approved)
    )
}
