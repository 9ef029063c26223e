//! Owner-held rollouts: the pods roll at once for their owner's own changes only (design section 7, semantics "Owner-held rollouts").

use k8s_openapi::api::core::v1::{PodSpec, PodTemplateSpec};
use serde_json::Value;
use weir_api::{condition::reasons, keys};

use super::{
    Wanted,
    rollout::{Rollout, Template, annotation, differs, mounted_certificate, renew},
};
use crate::{
    dataplane::{
        decide::{Decided, Own},
        objects::{
            certificate,
            deployment::{self, TEMPLATE_HASH},
            proxy::CLUSTER_CERTIFICATE_VOLUME,
        },
        snapshot::Child,
        validate::{PROXY, Validated},
    },
    events::Event,
    hash, live as live_objects,
    plan::HeldPart,
};
use k8s_openapi::api::apps::v1::Deployment;

/// Parts that a message names.
const NAMED: usize = 12;

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
    let approved = dp.annotation(keys::APPROVED_ROLLOUT);
    if approved == Some(pending.as_str()) {
        return Template::Roll(Box::new(template));
    }
    let own = decided.own.as_ref().map(|own| (render(dp, own), own));
    let own = own.filter(|(rendered, own)| is_own(dp, live) || is_renewal(dp, rendered, &own.certificate, live));
    let Some((own_template, own)) = own else {
        let mut stays = live_objects::owned::template(&live.object).or_else(|| live.object.spec.as_ref().map(|s| s.template.clone()));
        if let Some(stays) = &mut stays {
            renew(dp, decided, stays);
        }
        wait(wanted, pending, approved, stays.as_ref(), &template, live);
        return Template::Keep(live);
    };
    if differs(&own_template, live) {
        let version = rides_along(dp, live).then(|| format!("operator {}", dp.snapshot.operator.version));
        let message = "A change from elsewhere could not be separated from the owner's own and rolled with it";
        let rode = version.into_iter().chain(own.rides.clone());
        wanted.events.extend(rode.map(|what| Event::normal("ChangeRodeAlong", message, what)));
    }
    if hash::digest_json(&own_template) == pending {
        return Template::Roll(Box::new(template));
    }
    wait(wanted, pending, approved, Some(&own_template), &template, live);
    Template::Own(Box::new(own_template), own)
}

fn render(dp: &Validated<'_>, own: &Own) -> PodTemplateSpec {
    let path = own.konnect.as_ref().and_then(|k| k.readiness_path.as_deref());
    deployment::template(dp, &own.settled, path, own.konnect_certificate.as_deref())
}

/// Whether the owner has changed the spec since the template was rendered.
fn is_own(dp: &Validated<'_>, live: &Child<Deployment>) -> bool {
    let generation = dp.snapshot.data_plane.metadata.generation.unwrap_or_default().to_string();
    annotation(live, keys::ROLLED_GENERATION).is_none_or(|rolled| *rolled != generation)
}

/// Whether the place of a certificate that nears its end is all that a rendering changes.
pub(super) fn is_renewal(dp: &Validated<'_>, rendered: &PodTemplateSpec, secret: &str, live: &Child<Deployment>) -> bool {
    let Some(mut template) = live.object.spec.as_ref().map(|s| s.template.clone()) else { return false };
    let Some(mounted) = mounted_certificate(&mut template).cloned() else { return false };
    if mounted == secret || !certificate::ends(dp, &mounted) {
        return false;
    }
    let mut before = rendered.clone();
    if let Some(name) = mounted_certificate(&mut before) {
        *name = mounted;
    }
    annotation(live, TEMPLATE_HASH) == Some(&hash::digest_json(&before))
}

/// Whether another version of the operator rendered the template: its rendering cannot be told from the owner's change.
fn rides_along(dp: &Validated<'_>, live: &Child<Deployment>) -> bool {
    annotation(live, keys::OPERATOR_VERSION).is_some_and(|version| *version != dp.snapshot.operator.version)
}

fn wait(
    wanted: &mut Wanted,
    pending: String,
    approved: Option<&str>,
    from: Option<&PodTemplateSpec>,
    to: &PodTemplateSpec,
    live: &Child<Deployment>,
) {
    let what = difference(from, to);
    let message = cure(&pending, &what, approved);
    let from = annotation(live, TEMPLATE_HASH).cloned().unwrap_or_default();
    wanted.hold(HeldPart::Answer, reasons::FOREIGN_CHANGE, message);
    wanted.rollout = Rollout::Foreign { pending, from, what, approved: approved.map(String::from) };
}

/// What the owner of a waiting change can do.
pub(crate) fn cure(pending: &str, what: &str, approved: Option<&str>) -> String {
    let key = keys::APPROVED_ROLLOUT;
    let mut text = format!("a change from elsewhere waits ({what}); annotation {key}: {pending} lets it go");
    if let Some(approved) = approved {
        let approved: String = approved.chars().filter(|c| !c.is_control()).take(80).collect();
        text.push_str(&format!("; {key} names {approved:?}, which does not wait, and changes nothing"));
    }
    text
}

/// Names of what differs: values may be secrets that somebody wrote in the wrong place.
fn difference(from: Option<&PodTemplateSpec>, to: &PodTemplateSpec) -> String {
    let mut names = Vec::new();
    let (before, after) = (from.and_then(|t| t.spec.as_ref()), to.spec.as_ref());
    compare(&mut names, "env", env(before), env(after));
    compare(&mut names, "volume", volumes(before), volumes(after));
    let annotation = |t: Option<&PodTemplateSpec>| {
        let all = t.and_then(|t| t.metadata.as_ref()).and_then(|m| m.annotations.clone()).unwrap_or_default();
        all.into_iter().map(|(key, value)| (key, value.into())).collect::<Vec<_>>()
    };
    compare(&mut names, "annotation", annotation(from), annotation(Some(to)));
    if names.is_empty() {
        return "other parts of the pod template".into();
    }
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let named = names.join(", ");
    if more > 0 { format!("{named} and {more} more") } else { named }
}

fn env(spec: Option<&PodSpec>) -> Vec<(String, Value)> {
    let proxy = spec.and_then(|s| s.containers.iter().find(|c| c.name == PROXY));
    let vars = proxy.and_then(|c| c.env.as_ref()).into_iter().flatten();
    vars.map(|v| (v.name.clone(), serde_json::to_value(v).unwrap_or_default())).collect()
}

/// Volumes by what they mount: the server adds modes to the rest.
fn volumes(spec: Option<&PodSpec>) -> Vec<(String, Value)> {
    let all = spec.and_then(|s| s.volumes.as_ref()).into_iter().flatten();
    let sources = |v: &k8s_openapi::api::core::v1::Volume| {
        let secret = v.secret.as_ref().and_then(|s| s.secret_name.clone());
        let maps =
            v.projected.iter().flat_map(|p| p.sources.iter().flatten()).filter_map(|s| s.config_map.as_ref().map(|c| c.name.clone()));
        let map = v.config_map.as_ref().map(|c| c.name.clone());
        secret.into_iter().chain(maps).chain(map).collect::<Vec<_>>().join(",")
    };
    all.map(|v| (if v.name == CLUSTER_CERTIFICATE_VOLUME { "admin certificate".into() } else { v.name.clone() }, sources(v).into()))
        .collect()
}

fn compare(names: &mut Vec<String>, kind: &str, before: Vec<(String, Value)>, after: Vec<(String, Value)>) {
    let (before, after) =
        (before.into_iter().collect::<std::collections::BTreeMap<_, _>>(), after.into_iter().collect::<std::collections::BTreeMap<_, _>>());
    let gone = before.keys().filter(|name| !after.contains_key(*name)).map(|name| format!("{kind} {name} removed"));
    let new = after.iter().filter_map(|(name, value)| match before.get(name) {
        None => Some(format!("{kind} {name} added")),
        Some(old) if !equal(old, value) => Some(format!("{kind} {name} changed")),
        Some(_) => None,
    });
    names.extend(gone.chain(new));
}

/// What the server fills in is no difference; what is text has to be the same to the letter.
fn equal(before: &Value, after: &Value) -> bool {
    let text = |value: &Value| value.as_str().or_else(|| value.get("value")?.as_str()).unwrap_or_default().to_owned();
    text(before) == text(after) && live_objects::defaulted::same(before, after)
}
