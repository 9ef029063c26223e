//! Status: whether the artifact can be used, and what keeps a newer one. Accepted never dips on a pass that only looks again
//! (semantics "GitOps").

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use weir_api::{
    condition::{reasons, types},
    keys,
    plugin_installation::KongPluginInstallationStatus,
};

use super::{
    claims::Settled,
    content::{self, Content},
    decide::{Decided, Progress, cure},
    snapshot::Fetch,
    validate::{Rollout, Validated},
};
use crate::{
    conditions::{self, Said, say},
    policy::Severity,
};

/// Condition types this kind says; a stale one goes.
const OURS: [&str; 4] = [types::ACCEPTED, types::READY, types::ROLLOUT_HELD, types::POLICIES_APPLIED];
/// Reason of what a pause holds.
pub(super) const PAUSED: &str = "Paused";

/// DataPlanes without a grant that a message names.
const NAMED_WAITING: usize = 3;

/// Why nothing is done during a pause.
pub(super) fn paused() -> String {
    format!("annotation {} is \"true\": nothing but the status is written", keys::PAUSED)
}

/// Builds the status.
pub(super) fn build(installation: &Validated<'_>, decided: &Decided) -> KongPluginInstallationStatus {
    let object = &installation.snapshot.installation;
    let previous = object.status.clone().unwrap_or_default();
    let mut said = vec![accepted(installation, decided)];
    said.extend(rollout_held(installation, decided));
    said.extend(policies_applied(installation, decided));
    said.insert(1, ready(installation, decided, &said));
    let conditions = previous.conditions.unwrap_or_default();
    let named = decided.content(installation).map(|content| content::own_name(installation.name, &content.hash, 0));
    KongPluginInstallationStatus {
        conditions: Some(conditions::merge(conditions, said, &OURS, object.metadata.generation, installation.snapshot.now)),
        underlying_config_map_name: named.or(previous.underlying_config_map_name),
    }
}

/// What the last pass over this very spec said.
fn said_before(installation: &Validated<'_>, type_: &'static str) -> Option<Said> {
    let object = &installation.snapshot.installation;
    let conditions = object.status.as_ref().and_then(|status| status.conditions.as_ref());
    let before: &Condition = conditions?.iter().find(|c| c.type_ == type_)?;
    let is_same_spec = before.observed_generation == object.metadata.generation;
    is_same_spec.then(|| say(type_, before.status == "True", before.reason.clone(), before.message.clone()))
}

fn accepted(installation: &Validated<'_>, decided: &Decided) -> Said {
    let image = installation.image;
    let in_force = installation.in_force();
    let yes = |message: String| say(types::ACCEPTED, true, reasons::READY, message);
    let stays = |what: String, old: &Content| yes(format!("{what}; {} of {} stays in force", old.digest, old.image));
    let pending = |message: String| say(types::ACCEPTED, false, reasons::PENDING, message);
    match &decided.progress {
        Progress::Accepted { content, .. } => yes(installed(content)),
        Progress::Settled => yes(in_force.map(installed).unwrap_or_default()),
        Progress::Pending | Progress::Paused => {
            let before = said_before(installation, types::ACCEPTED);
            if let Some(before) = before.filter(|s| if s.status { in_force.is_some() } else { s.reason == reasons::FAILED }) {
                return before;
            }
            let what = if decided.progress == Progress::Paused { "is not fetched while paused" } else { on_its_way(installation) };
            match in_force {
                Some(old) if old.image == image => yes(installed(old)),
                Some(old) => stays(format!("{image} {what}"), old),
                None => pending(format!("{image} {what}")),
            }
        }
        Progress::Waiting(content) => {
            let what = format!("{} of {image} waits, see {}", content.digest, types::ROLLOUT_HELD);
            match in_force {
                Some(old) => stays(what, old),
                None => pending(what),
            }
        }
        Progress::Failed { message, harmless: true, .. } => {
            in_force.map_or_else(|| failed(None, message), |old| stays(message.clone(), old))
        }
        Progress::Failed { message, harmless: false, .. } | Progress::Refused { message } => failed(in_force, message),
        Progress::Unanswered { message, .. } => match in_force.filter(|old| old.image == image) {
            Some(old) => stays(message.clone(), old),
            None => failed(in_force, message),
        },
    }
}

/// How far it is. Without a number: a status must not be written for every step of a queue.
fn on_its_way(installation: &Validated<'_>) -> &'static str {
    match &installation.snapshot.fetch {
        Fetch::Queued => "is queued behind other pulls",
        Fetch::NotAsked | Fetch::Pending | Fetch::Failed { .. } | Fetch::Resolved(_) | Fetch::Fetched(_) => "is being fetched",
    }
}

fn failed(in_force: Option<&Content>, message: &str) -> Said {
    let last = in_force.map(|old| format!("; the last good content ({}, {}) stays on every DataPlane", old.image, old.digest));
    say(types::ACCEPTED, false, reasons::FAILED, format!("{message}{}", last.unwrap_or_default()))
}

fn installed(content: &Content) -> String {
    let named = |p: &content::Plugin| p.version.as_ref().map_or_else(|| p.name.clone(), |version| format!("{} {version}", p.name));
    let plugins: Vec<String> = content.plugins.iter().map(named).collect();
    format!("{} of {}: {}", content.digest, content.image, plugins.join(", "))
}

fn rollout_held(installation: &Validated<'_>, decided: &Decided) -> Option<Said> {
    match &decided.progress {
        Progress::Paused => {
            return Some(say(types::ROLLOUT_HELD, true, PAUSED, paused()));
        }
        Progress::Waiting(content) => {
            return Some(say(types::ROLLOUT_HELD, true, reasons::AWAITING_APPROVAL, cure(installation, content)));
        }
        Progress::Pending => {
            let before = said_before(installation, types::ROLLOUT_HELD).filter(|s| s.reason == reasons::AWAITING_APPROVAL);
            if let (Some(before), Rollout::Manual) = (before, installation.rollout) {
                return Some(before);
            }
        }
        Progress::Settled
        | Progress::Accepted { .. }
        | Progress::Failed { .. }
        | Progress::Refused { .. }
        | Progress::Unanswered { .. } => {}
    }
    match installation.rollout {
        Rollout::Automatic => None,
        Rollout::Manual => Some(say(types::ROLLOUT_HELD, false, reasons::NOTHING_HELD, "")),
    }
}

/// False with what a policy holds back; true, and said, when another policy stood in; absent when no policy has answered anything about this
/// object yet.
fn policies_applied(installation: &Validated<'_>, decided: &Decided) -> Option<Said> {
    let mut troubles: Vec<(String, String)> = Vec::new();
    match &decided.progress {
        Progress::Refused { message } => troubles.push(("Refused".into(), message.clone())),
        Progress::Unanswered { reason, message } => troubles.push(((*reason).into(), message.clone())),
        Progress::Paused => return said_before(installation, types::POLICIES_APPLIED),
        Progress::Pending | Progress::Settled | Progress::Accepted { .. } | Progress::Waiting(_) | Progress::Failed { .. } => {}
    }
    troubles.extend(decided.claims.as_ref().and_then(|claims| claims.trouble.clone()));
    let mut fell_back = decided.fell_back.clone();
    if troubles.is_empty() && decided.progress == Progress::Pending {
        // Nobody was asked about the artifact again: what was said of it is still so.
        let of_claims = |s: &Said| s.reason == reasons::HELD || s.reason == reasons::REJECTED;
        match said_before(installation, types::POLICIES_APPLIED) {
            Some(before) if before.status && before.reason == reasons::FELL_BACK && fell_back.is_empty() => fell_back.push(before.message),
            Some(before) if !before.status && !of_claims(&before) => troubles.push((before.reason, before.message)),
            Some(_) | None => {}
        }
    }
    let Some((reason, _)) = troubles.first() else {
        let answered = installation.in_force().is_some() || !decided.policies.is_empty();
        let reason = if fell_back.is_empty() { reasons::APPLIED } else { reasons::FELL_BACK };
        return answered.then(|| say(types::POLICIES_APPLIED, true, reason, fell_back.join("; ")));
    };
    let messages: Vec<&str> = troubles.iter().map(|(_, message)| message.as_str()).chain(fell_back.iter().map(String::as_str)).collect();
    Some(say(types::POLICIES_APPLIED, false, reason.clone(), messages.join("; ")))
}

fn ready(installation: &Validated<'_>, decided: &Decided, others: &[Said]) -> Said {
    let no = |reason: &str, message: String| say(types::READY, false, reason, message);
    let held = others.iter().find(|s| s.type_ == types::ROLLOUT_HELD && s.status);
    if let Some(other) = held.or_else(|| others.iter().find(|s| s.type_ == types::ACCEPTED && !s.status)) {
        return no(&other.reason, other.message.clone());
    }
    if others.iter().any(|s| s.type_ == types::POLICIES_APPLIED && !s.status) {
        return no(reasons::DEPENDENCIES_NOT_READY, format!("not true: {}", types::POLICIES_APPLIED));
    }
    if decided.progress == Progress::Pending && installation.current().is_none() {
        return no(reasons::PENDING, format!("{} {}", installation.image, on_its_way(installation)));
    }
    // What its owner wrote and nobody can read is here as well: it is no failure, and it must not be missed.
    let warnings = installation.findings.iter().filter(|f| f.severity != Severity::Info).map(|f| format!("{}: {}", f.path, f.message));
    let message: Vec<String> = decided.claims.iter().flat_map(users).chain(warnings).collect();
    say(types::READY, true, reasons::READY, message.join("; "))
}

/// How many may use it, and who waits for what.
fn users(settled: &Settled) -> Vec<String> {
    let all = settled.claims.len() + settled.outside.len();
    if all == 0 {
        return Vec::new();
    }
    let granted = settled.claims.iter().filter(|claim| claim.granted).count();
    let mut said = vec![format!("{granted} of {all} DataPlanes that name it may use it")];
    let waiting = settled.claims.iter().filter(|claim| !claim.granted).chain(&settled.outside);
    said.extend(waiting.take(NAMED_WAITING).map(|claim| {
        let why = claim.message.as_deref().unwrap_or("nobody has decided yet");
        format!("{} waits: {why}", claim.who())
    }));
    match all.saturating_sub(granted).saturating_sub(NAMED_WAITING) {
        0 => {}
        more => said.push(format!("{more} more wait")),
    }
    said
}
