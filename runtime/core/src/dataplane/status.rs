//! Status: conditions, addresses, counts. Derived from the live children and from what is held, never from wishes.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use weir_api::{
    condition::{reasons, types},
    dataplane::DataPlaneStatus,
    keys,
};

use super::{
    addresses::{addresses, ingress, is_load_balancer},
    decide::Decided,
    plan::{Wanted, held, lookup, rollback, rollout::Rollout, takeover},
    plugins,
    validate::{Konnect, Validated},
};
use crate::{
    conditions::{self, Said, say},
    plan::{Change, HeldPart, Hold},
    policy::SlotName,
};

/// Condition types a DataPlane's pass says; a stale one goes.
const OURS: [&str; 6] = [
    types::READY,
    types::ACCEPTED_EXTENSIONS,
    types::KONNECT_EXTENSION_APPLIED,
    types::PLUGINS_INSTALLED,
    types::POLICIES_APPLIED,
    types::ROLLOUT_HELD,
];

/// Builds the status.
pub(crate) fn build(dp: &Validated<'_>, decided: &Decided, wanted: &Wanted) -> DataPlaneStatus {
    let previous = dp.snapshot.data_plane.status.clone().unwrap_or_default();
    if let (Rollout::KongOperator { .. }, true) = (&wanted.rollout, is_kongs(dp)) {
        // Two operators that word one condition each in their own way would write it for ever.
        let generation = dp.snapshot.data_plane.metadata.generation;
        let held = rollout(wanted).into_iter().collect();
        let conditions =
            conditions::merge(previous.conditions.unwrap_or_default(), held, &[types::ROLLOUT_HELD], generation, dp.snapshot.now);
        return DataPlaneStatus { conditions: Some(conditions), ..previous };
    }
    let mut said: Vec<Said> = [accepted(dp), konnect(dp, decided), plugins(dp, decided, wanted), policies(decided), rollout(wanted)]
        .into_iter()
        .flatten()
        .collect();
    said.insert(0, ready(dp, wanted, &said));
    let live = lookup::live_deployment(dp).and_then(|c| c.object.status.as_ref());
    let ingress = lookup::live_service(dp, "ingress").map(|c| &c.object);
    // A promotion that another operator began would freeze the spec for ever (semantics "Blue/green until previews exist").
    let stuck = |c: &Condition| c.type_ == "RolledOut" && c.reason == "PromotionInProgress";
    let rollout = previous.rollout.filter(|r| !r.conditions.iter().flatten().any(stuck));
    DataPlaneStatus {
        conditions: Some(conditions::merge(
            previous.conditions.unwrap_or_default(),
            said,
            &OURS,
            dp.snapshot.data_plane.metadata.generation,
            dp.snapshot.now,
        )),
        service: wanted.ingress.clone().or(previous.service),
        addresses: ingress.map(addresses).filter(|a| !a.is_empty()),
        selector: Some(dp.selector.clone()),
        ready_replicas: live.and_then(|s| s.ready_replicas).unwrap_or(0),
        replicas: live.and_then(|s| s.replicas).unwrap_or(0),
        rollout,
    }
}

/// Whether Kong's operator speaks for the object: it is recorded as the one who wrote Ready.
fn is_kongs(dp: &Validated<'_>) -> bool {
    dp.snapshot.data_plane.metadata.managed_fields.iter().flatten().any(|entry| {
        let conditions = entry.fields_v1.as_ref().and_then(|fields| fields.0.pointer("/f:status/f:conditions"));
        entry.manager.as_deref() != Some(keys::FIELD_MANAGER) && conditions.is_some_and(|c| c.get(r#"k:{"type":"Ready"}"#).is_some())
    })
}

fn accepted(dp: &Validated<'_>) -> Option<Said> {
    match &dp.konnect {
        Konnect::None => None,
        Konnect::NotAccepted { message } => {
            Some(say(types::ACCEPTED_EXTENSIONS, false, reasons::NOT_SUPPORTED_EXTENSIONS, message.clone()))
        }
        Konnect::Blocked { .. } | Konnect::Ready { .. } => Some(say(types::ACCEPTED_EXTENSIONS, true, reasons::ACCEPTED_EXTENSIONS, "")),
    }
}

fn konnect(dp: &Validated<'_>, decided: &Decided) -> Option<Said> {
    match &dp.konnect {
        Konnect::None | Konnect::NotAccepted { .. } => None,
        Konnect::Blocked { reason, message } => Some(say(types::KONNECT_EXTENSION_APPLIED, false, *reason, message.clone())),
        Konnect::Ready { .. } if decided.konnect.is_some() && !decided.konnect_kept => {
            Some(say(types::KONNECT_EXTENSION_APPLIED, true, reasons::KONNECT_EXTENSION_APPLIED, ""))
        }
        Konnect::Ready { .. } => {
            let reason = decided.unanswered.iter().find(|(slot, _)| *slot == SlotName::KonnectEnv).map(|(_, reason)| *reason);
            let message = "the konnect-env policy gave no usable answer; see PoliciesApplied";
            Some(say(types::KONNECT_EXTENSION_APPLIED, false, reason.unwrap_or(reasons::KONNECT_EXTENSION_NOT_READY), message))
        }
    }
}

/// Whether what every installation gives is in the Deployment, and how far it is rolled out.
fn plugins(dp: &Validated<'_>, decided: &Decided, wanted: &Wanted) -> Option<Said> {
    let standing = standing(dp, decided, &wanted.rollout);
    if standing.is_empty() {
        return None;
    }
    let first = standing.iter().find_map(|s| s.missing.clone());
    let lines: Vec<String> = standing.iter().map(plugins::Standing::line).collect();
    let mut message = lines.join("; ");
    for hold in wanted.holds.iter().filter(|h| h.what == HeldPart::Plugin || h.reason == reasons::PENDING) {
        if !message.contains(&hold.message) {
            message.push_str(&format!("; {}", hold.message));
        }
    }
    Some(match first {
        Some(reason) => say(types::PLUGINS_INSTALLED, false, reason, message),
        None => say(types::PLUGINS_INSTALLED, true, reasons::INSTALLED, message),
    })
}

/// How every installation stands: after an undone rollout by what that brought back.
fn standing(dp: &Validated<'_>, decided: &Decided, rollout: &Rollout) -> Vec<plugins::Standing> {
    let undone = matches!(rollout, Rollout::RolledBack { .. });
    plugins::standing(dp, decided, if undone { &decided.restored } else { &[] })
}

/// The annotation that says the same to machines. An object that is on its way out gets none.
pub(super) fn machine_readable(dp: &Validated<'_>, decided: &Decided, rollout: &Rollout) -> Option<Change> {
    if dp.snapshot.data_plane.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let present = dp.annotation(keys::PLUGINS);
    let standing = standing(dp, decided, rollout);
    if standing.is_empty() {
        return present.map(|_| Change::RemoveAnnotation { key: keys::PLUGINS.into() });
    }
    let value = serde_json::to_string(&standing).unwrap_or_default();
    (present != Some(value.as_str())).then(|| Change::SetAnnotation { key: keys::PLUGINS.into(), value })
}

/// False with the first thing a policy holds back; absent when no policy was asked. That another policy stood in is true, and said.
fn policies(decided: &Decided) -> Option<Said> {
    if decided.policies.is_empty() {
        return None;
    }
    let failed = decided.unanswered.first().map(|(_, reason)| *reason);
    let of_verdict = |h: &&Hold| h.reason == reasons::REJECTED || h.reason == reasons::HELD;
    let reason = failed.or_else(|| decided.holds.iter().find(of_verdict).map(|h| h.reason.as_str()));
    // All of them: one reason, but nothing is kept from the reader.
    let of_policies = |h: &&Hold| of_verdict(h) || decided.unanswered.iter().any(|(_, reason)| *reason == h.reason);
    let held = decided.holds.iter().filter(of_policies).map(text);
    let message = join(held.chain(decided.fell_back.iter().cloned()));
    Some(match reason {
        Some(reason) => say(types::POLICIES_APPLIED, false, reason, message),
        None if decided.fell_back.is_empty() => say(types::POLICIES_APPLIED, true, reasons::APPLIED, ""),
        None => say(types::POLICIES_APPLIED, true, reasons::FELL_BACK, message),
    })
}

fn rollout(wanted: &Wanted) -> Option<Said> {
    match &wanted.rollout {
        Rollout::None => None,
        Rollout::BlueGreen => {
            let message = "no change waits; a preview is not offered yet: a change of the pod template waits for promote-when-ready and then rolls in place";
            Some(say(types::ROLLOUT_HELD, false, reasons::NOTHING_HELD, message))
        }
        Rollout::AwaitingPromotion { pending } => {
            let message = format!(
                "the pod template {pending} waits for promote-when-ready: \"true\"; a preview is not offered yet, it then rolls in place"
            );
            Some(say(types::ROLLOUT_HELD, true, reasons::AWAITING_PROMOTION, message))
        }
        Rollout::Takeover { pending, approved } => {
            Some(say(types::ROLLOUT_HELD, true, reasons::TAKEOVER, takeover::cure(pending, approved.as_deref())))
        }
        Rollout::KongOperator { holder } => Some(say(types::ROLLOUT_HELD, true, reasons::KONG_OPERATOR_LIVE, takeover::running(holder))),
        Rollout::Manual => {
            let message = "no change waits; changes that come from elsewhere wait for annotation weir.dev/approved-rollout";
            Some(say(types::ROLLOUT_HELD, false, reasons::NOTHING_HELD, message))
        }
        Rollout::Foreign { pending, from, what, approved } => {
            let message = format!("{}; the pod template in force is {from}", held::cure(pending, what, approved.as_deref()));
            Some(say(types::ROLLOUT_HELD, true, reasons::FOREIGN_CHANGE, message))
        }
        Rollout::RolledBack { pending, what, approved } => {
            Some(say(types::ROLLOUT_HELD, true, reasons::ROLLED_BACK, rollback::cure(pending, what, approved.as_deref())))
        }
        Rollout::Paused => {
            Some(say(types::ROLLOUT_HELD, true, "Paused", "annotation weir.dev/paused is \"true\": nothing but this status is written"))
        }
    }
}

fn ready(dp: &Validated<'_>, wanted: &Wanted, others: &[Said]) -> Said {
    let no = |reason: &str, message: String| say(types::READY, false, reason, message);
    if !dp.problems.is_empty() {
        return no(reasons::VALIDATION_FAILED, join(wanted.holds.iter().filter(|h| h.reason == reasons::VALIDATION_FAILED).map(text)));
    }
    let makes_no_child = [reasons::NAME_TAKEN, reasons::WAITING_FOR_OLD_CHILD, reasons::UNABLE_TO_PROVISION];
    if let Some(hold) = wanted.holds.iter().find(|h| makes_no_child.contains(&h.reason.as_str())) {
        return no(&hold.reason, hold.message.clone());
    }
    if let Some(plugins) = others.iter().find(|s| s.type_ == types::PLUGINS_INSTALLED && !s.status) {
        return no(reasons::REFERENCED_RESOURCES_NOT_AVAILABLE, plugins.message.clone());
    }
    let failing: Vec<&str> = others.iter().filter(|s| !s.status && s.type_ != types::ROLLOUT_HELD).map(|s| s.type_).collect();
    if !failing.is_empty() {
        return no(reasons::DEPENDENCIES_NOT_READY, format!("not true: {}", failing.join(", ")));
    }
    match waiting(dp) {
        Some(message) => no(reasons::WAITING_TO_BECOME_READY, message),
        None => say(types::READY, true, reasons::READY, ""),
    }
}

/// What the DataPlane waits for before it is ready (facts/kong-operator.md 1.6).
fn waiting(dp: &Validated<'_>) -> Option<String> {
    let Some(live) = lookup::live_deployment(dp) else { return Some("the Deployment does not exist yet".into()) };
    let name = live.object.metadata.name.as_deref().unwrap_or_default();
    let status = live.object.status.clone().unwrap_or_default();
    let wanted = live.object.spec.as_ref().and_then(|s| s.replicas).unwrap_or(1);
    let observed = status.observed_generation.zip(live.object.metadata.generation);
    if observed.is_some_and(|(seen, current)| seen < current) {
        return Some(format!("Deployment {name}: its newest generation is not observed yet"));
    }
    let spec = live.object.spec.as_ref();
    if spec.and_then(|s| s.paused) == Some(true) {
        return Some(format!("Deployment {name} is paused: its pods follow no change until `kubectl rollout resume`"));
    }
    let (replicas, available) = (status.replicas.unwrap_or(0), status.available_replicas.unwrap_or(0));
    if replicas == 0 || available < wanted {
        // The Deployment controller knows why pods cannot be made: a quota, a limit range, an admission webhook.
        let failure = status.conditions.iter().flatten().find(|c| c.type_ == "ReplicaFailure" && c.status == "True");
        let why = failure.and_then(|c| c.message.as_deref()).map(|m| format!("; {m}")).unwrap_or_default();
        return Some(format!("Deployment {name}: {available} of {wanted} replicas are available{why}"));
    }
    match lookup::live_service(dp, "ingress").map(|c| &c.object) {
        None => Some("the ingress Service does not exist yet".into()),
        Some(service) if is_load_balancer(service) && ingress(service).next().is_none() => {
            Some(format!("Service {} has no load balancer address yet", service.metadata.name.as_deref().unwrap_or_default()))
        }
        Some(_) => None,
    }
}

fn text(hold: &Hold) -> String {
    if hold.what == HeldPart::Answer { hold.message.clone() } else { format!("{} ({} held)", hold.message, part(hold.what)) }
}

/// Several messages in one condition, each once.
fn join(messages: impl Iterator<Item = String>) -> String {
    let mut parts: Vec<String> = Vec::new();
    for message in messages {
        if !parts.contains(&message) {
            parts.push(message);
        }
    }
    parts.join("; ")
}

fn part(part: HeldPart) -> &'static str {
    match part {
        HeldPart::Everything => "everything",
        HeldPart::PodTemplate => "pod template",
        HeldPart::Answer => "answer",
        HeldPart::AdminService => "admin Service",
        HeldPart::IngressService => "ingress Service",
        HeldPart::Plugin => "plugin",
        HeldPart::Autoscaler => "autoscaler",
        HeldPart::DisruptionBudget => "disruption budget",
    }
}
