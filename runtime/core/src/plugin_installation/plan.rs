//! From what was decided to what has to be done. Content first, then the record that names it: a crash in between loses nothing.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use weir_api::{
    condition::{Condition, reasons, types},
    keys,
    plugin_installation::KongPluginInstallationStatus,
};

use super::{
    annotation, claims,
    content::{self, Content, Files},
    decide::{Decided, Progress, cure},
    objects,
    report::{self, Candidate},
    status,
    validate::{Stop, Validated},
};
use crate::{
    events::Event,
    live,
    plan::{self, Change, ChildKind, HeldPart, Hold, Object, Plan, Target},
};

/// Plans the pass.
#[must_use]
pub fn plan(installation: &Validated<'_>, decided: &Decided) -> Plan<KongPluginInstallationStatus> {
    match installation.stop {
        // Garbage collection, or Kong's operator, has the object: two operators that word one condition would write it for ever.
        Some(Stop::Deleting | Stop::KongOperator) => return nothing(),
        Some(Stop::Paused) | None => {}
    }
    let changes = if installation.stop.is_none() { changes(installation, decided) } else { Vec::new() };
    let status = status::build(installation, decided);
    let status_changed = installation.snapshot.installation.status.as_ref() != Some(&status);
    Plan {
        events: events(installation, decided, &status, status_changed),
        changes,
        status: Some(status),
        status_changed,
        findings: decided.findings.clone(),
        policies: decided.policies.clone(),
        holds: holds(installation, decided),
    }
}

fn nothing() -> Plan<KongPluginInstallationStatus> {
    Plan {
        changes: Vec::new(),
        status: None,
        status_changed: false,
        events: Vec::new(),
        findings: Vec::new(),
        policies: Vec::new(),
        holds: Vec::new(),
    }
}

fn changes(installation: &Validated<'_>, decided: &Decided) -> Vec<Change> {
    let mut changes = Vec::new();
    if let Progress::Accepted { content, files, decisions } = &decided.progress {
        store(installation, content, files, &mut changes);
        changes.extend(set(installation, keys::DECISIONS, Some(decisions.clone())));
    }
    let claims = decided.claims.as_ref().map(|settled| settled.claims.as_slice()).unwrap_or_default();
    changes.extend(set(installation, keys::CLAIMS, claims::text(claims)));
    let granted = claims.iter().filter(|claim| claim.granted).count();
    let candidate = decided.candidate.clone().map(|digest| Candidate { image: installation.image.into(), digest });
    let report = report::build(decided.content(installation), granted, candidate);
    changes.extend(set(installation, keys::ARTIFACT, report.map(|report| report.text())));
    changes.extend(plan::checked(&installation.snapshot.installation.metadata));
    prune(installation, decided, &mut changes);
    changes
}

/// ConfigMaps that are not there yet. What is there never changes: its name is the hash of what is in it.
fn store(installation: &Validated<'_>, content: &Content, files: &[Files], changes: &mut Vec<Change>) {
    let maps = objects::config_maps(installation, content, files).into_iter();
    let missing = maps.filter(|map| !map.metadata.name.as_deref().is_some_and(|name| installation.has(name, content)));
    changes.extend(missing.map(|map| {
        let mut object = Object::ConfigMap(Box::new(map));
        live::stamp(&mut object);
        Change::Apply { object, first: true }
    }));
}

/// The write of an annotation, where it is not as it should be.
fn set(installation: &Validated<'_>, key: &str, wanted: Option<String>) -> Option<Change> {
    match (annotation(&installation.snapshot.installation, key), wanted) {
        (None, None) => None,
        (Some(_), None) => Some(Change::RemoveAnnotation { key: key.into() }),
        (Some(live), Some(wanted)) if live == wanted => None,
        (Some(_) | None, Some(value)) => Some(Change::SetAnnotation { key: key.into(), value }),
    }
}

/// Deletes older sets, and the ConfigMap that Kong's operator kept for itself: only once the record that a crash would leave names another
/// set, which is there. Nobody mounts any of them.
fn prune(installation: &Validated<'_>, decided: &Decided, changes: &mut Vec<Change>) {
    let (Some(recorded), Some(content)) = (installation.in_force(), decided.content(installation)) else { return };
    if recorded.hash != content.hash || !installation.is_complete(content) {
        return;
    }
    let wanted = content::own_names(installation.name, content);
    let is_old = |meta: &&ObjectMeta| {
        let label = |key: &str| meta.labels.as_ref().and_then(|labels| labels.get(key)).map(String::as_str);
        let is_ours = label(keys::PLUGIN_CONTENT).is_some() || label(keys::MANAGED_BY) == Some(objects::MANAGED_BY_INSTALLATION);
        is_ours && meta.deletion_timestamp.is_none() && !meta.name.as_ref().is_some_and(|name| wanted.contains(name))
    };
    changes.extend(installation.snapshot.config_maps.iter().filter(is_old).map(|meta| {
        Change::Delete(Target {
            kind: ChildKind::ConfigMap,
            namespace: installation.namespace.into(),
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
        })
    }));
}

fn holds(installation: &Validated<'_>, decided: &Decided) -> Vec<Hold> {
    let hold = |what, reason: &str, message: &str| Hold { what, reason: reason.into(), message: message.into() };
    let artifact = match &decided.progress {
        Progress::Settled | Progress::Pending | Progress::Accepted { .. } | Progress::Failed { harmless: true, .. } => None,
        Progress::Waiting(content) => Some(hold(HeldPart::Plugin, reasons::AWAITING_APPROVAL, &cure(installation, content))),
        Progress::Failed { reason, message, harmless: false } => Some(hold(HeldPart::Plugin, reason, message)),
        Progress::Refused { message } => Some(hold(HeldPart::Answer, "Refused", message)),
        Progress::Unanswered { reason, message } => Some(hold(HeldPart::Answer, reason, message)),
        Progress::Paused => Some(hold(HeldPart::Everything, status::PAUSED, &status::paused())),
    };
    let claims = decided.claims.as_ref().and_then(|claims| claims.trouble.as_ref());
    artifact.into_iter().chain(claims.map(|(reason, message)| hold(HeldPart::Answer, reason, message))).collect()
}

/// What people should hear about. Once: while nothing changes, nothing is repeated.
fn events(installation: &Validated<'_>, decided: &Decided, status: &KongPluginInstallationStatus, status_changed: bool) -> Vec<Event> {
    let mut events = Vec::new();
    let new = decided.content(installation).filter(|content| installation.in_force() != Some(content));
    if let Some(content) = new {
        let data = format!("{} of {}", content.digest, content.image);
        events.push(Event::normal(reasons::INSTALLED, "The plugin was fetched and is in force", data));
    }
    if !status_changed {
        return events;
    }
    let said = |type_: &str, status_: &str| {
        let conditions = status.conditions.iter().flatten();
        conditions.into_iter().find(|c| c.type_ == type_ && c.status == status_).filter(|c| !was_said(installation, c))
    };
    if let Some(accepted) = said(types::ACCEPTED, "False").filter(|c| c.reason == reasons::FAILED) {
        events.push(Event::warning(&accepted.reason, "The plugin cannot be installed", accepted.message.clone()));
    }
    if let Some(held) = said(types::ROLLOUT_HELD, "True") {
        events.push(Event::normal(&held.reason, "The plugin waits for its owner", held.message.clone()));
    }
    if let Some(policies) = said(types::POLICIES_APPLIED, "False") {
        events.push(Event::warning(&policies.reason, "The answer of a policy is not used", policies.message.clone()));
    }
    events.extend(decided.findings.iter().filter_map(Event::of_finding));
    events
}

/// Whether a condition stood there before, word for word.
fn was_said(installation: &Validated<'_>, condition: &Condition) -> bool {
    let before = installation.snapshot.installation.status.as_ref().and_then(|status| status.conditions.as_ref());
    before.into_iter().flatten().any(|c| {
        (&c.type_, &c.status, &c.reason, &c.message) == (&condition.type_, &condition.status, &condition.reason, &condition.message)
    })
}
