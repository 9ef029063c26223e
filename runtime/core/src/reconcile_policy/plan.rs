//! Status and events: the only effects of a pass. What takes over is what the status says; every replica follows it.

use weir_api::{
    condition::types,
    reconcile_policy::{ReconcilePolicyStatus, Revision},
};

use super::{
    decide::{Decided, Standing, Swap},
    status,
    validate::{Stop, Validated},
};
use crate::{
    events::Event,
    plan::{self, Plan},
};

/// What a pass wants.
#[must_use]
pub fn plan(policy: &Validated<'_>, decided: &Decided) -> Plan<ReconcilePolicyStatus> {
    if policy.stop == Some(Stop::Deleting) {
        return Plan {
            changes: Vec::new(),
            status: None,
            status_changed: false,
            events: Vec::new(),
            findings: Vec::new(),
            policies: Vec::new(),
            holds: Vec::new(),
        };
    }
    let object = &policy.snapshot.policy;
    let status = status::build(policy, decided);
    let status_changed = object.status.as_ref() != Some(&status);
    let events = events(policy, decided, &status, status_changed);
    // A look that somebody asked for is answered when something is known.
    let answered = !matches!(decided.standing, Standing::Coming(_));
    Plan {
        changes: plan::checked(&object.metadata).filter(|_| answered).into_iter().collect(),
        status: Some(status),
        status_changed,
        events,
        findings: policy.findings.clone(),
        policies: Vec::new(),
        holds: Vec::new(),
    }
}

fn events(policy: &Validated<'_>, decided: &Decided, status: &ReconcilePolicyStatus, status_changed: bool) -> Vec<Event> {
    let mut events = Vec::new();
    let active = |revision: &Option<Revision>| revision.as_ref().map(|r| r.layer_digest.clone()).unwrap_or_default();
    match &decided.swap {
        Some(Swap::Activated) => events.push(Event::normal("Activated", "A revision took over", active(&decided.active))),
        Some(Swap::RolledBack(why)) => {
            let data = format!("back to {}: {why}", active(&decided.active));
            events.push(Event::warning("RolledBack", "The revision in force failed too often; a former one took over", data));
        }
        None => {}
    }
    if !status_changed {
        return events;
    }
    let before = policy.snapshot.policy.status.as_ref().and_then(|status| status.conditions.as_ref());
    let news = |type_: &str| {
        let now = status.conditions.iter().flatten().find(|c| c.type_ == type_ && c.status == "True")?;
        let said = before
            .into_iter()
            .flatten()
            .any(|c| c.type_ == type_ && c.status == "True" && c.reason == now.reason && c.message == now.message);
        (!said).then_some(now)
    };
    if let Some(stalled) = news(types::STALLED) {
        events.push(Event::warning(&stalled.reason, "The policy cannot take over", stalled.message.clone()));
    }
    if let Some(held) = news(types::HELD) {
        events.push(Event::normal(&held.reason, "A revision waits", held.message.clone()));
    }
    events.extend(policy.findings.iter().filter_map(Event::of_finding));
    events
}
