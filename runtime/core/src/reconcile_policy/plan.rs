//! Status and events: the only effects of a pass. What takes over is what the status says; every replica follows it.

use weir_api::{
    condition::{Condition, types},
    reconcile_policy::ReconcilePolicyStatus,
};

use super::{
    decide::{Decided, ROLLED_BACK, Standing, Swap},
    snapshot::Work,
    status,
    validate::{Stop, Validated},
};
use crate::{
    events::Event,
    plan::{self, Plan},
    policy::Finding,
};

/// Reason of the event that says that what the spec asks for took over.
pub const ACTIVATED: &str = "Activated";

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
    let mut events = swaps(decided);
    events.extend(look(policy, decided));
    if status_changed {
        events.extend(news(policy, decided, &status));
    }
    Plan {
        changes: plan::checked(&object.metadata).filter(|_| is_answered(policy, decided)).into_iter().collect(),
        status: Some(status),
        status_changed,
        events,
        findings: policy.findings.clone(),
        policies: Vec::new(),
        holds: Vec::new(),
    }
}

/// Whether a look that somebody asked for is over: when something is known. During a pause nothing but the status is written.
fn is_answered(policy: &Validated<'_>, decided: &Decided) -> bool {
    match &decided.standing {
        Standing::Stopped(Stop::NotServed(..)) => true,
        Standing::Stopped(Stop::Paused | Stop::Deleting) | Standing::Coming(_) => false,
        Standing::InForce | Standing::Failed { .. } | Standing::Waiting(_) | Standing::RolledBack(_) => match policy.snapshot.work {
            Work::None | Work::Busy { .. } => policy.unusable.is_some() || decided.is_plugin(policy),
            Work::Failed { .. } | Work::Ready { .. } => true,
        },
    }
}

fn swaps(decided: &Decided) -> Vec<Event> {
    let event = |swap: &Swap| match swap {
        Swap::Activated => {
            let active = decided.active.as_ref().map(status::revision).unwrap_or_default();
            Event::normal(ACTIVATED, "A revision took over", active)
        }
        Swap::RolledBack(to, why) => {
            Event::warning(ROLLED_BACK, "The revision in force failed too often; a former one took over", format!("back to {to}: {why}"))
        }
    };
    decided.swaps.iter().map(event).collect()
}

/// A look that somebody asked for and that found nothing, where the status goes on about something else.
fn look(policy: &Validated<'_>, decided: &Decided) -> Option<Event> {
    let failed = match &policy.snapshot.work {
        Work::Failed { failure, .. } if policy.asked => failure,
        Work::Failed { .. } | Work::None | Work::Busy { .. } | Work::Ready { .. } => return None,
    };
    match &decided.standing {
        Standing::Waiting(_) | Standing::RolledBack(_) => {
            Some(Event::warning("LookFailed", "A look that was asked for failed", format!("{}: {}", failed.reason, failed.message)))
        }
        Standing::InForce | Standing::Coming(_) | Standing::Failed { .. } | Standing::Stopped(_) => None,
    }
}

/// What people should hear about. Once: while nothing changes, nothing is repeated.
fn news(policy: &Validated<'_>, decided: &Decided, status: &ReconcilePolicyStatus) -> Vec<Event> {
    let mut events = Vec::new();
    let before = policy.snapshot.policy.status.as_ref();
    let conditions = before.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let same = |a: &Condition, b: &Condition| (&a.type_, &a.status, &a.reason, &a.message) == (&b.type_, &b.status, &b.reason, &b.message);
    let new = |type_: &str| {
        let said = status.conditions.iter().flatten().find(|c| c.type_ == type_ && c.status == "True");
        said.filter(|said| !conditions.iter().any(|c| same(c, said)))
    };
    if let Some(stalled) = new(types::STALLED) {
        events.extend(trouble(policy, decided, stalled));
    }
    if let Some(held) = new(types::HELD) {
        let message = match &decided.standing {
            Standing::Stopped(_) => "Nothing takes over",
            Standing::InForce | Standing::Coming(_) | Standing::Failed { .. } | Standing::Waiting(_) | Standing::RolledBack(_) => {
                "A revision waits"
            }
        };
        events.push(Event::normal(&held.reason, message, held.message.clone()));
    }
    if let Some(differs) = new(types::SHADOW_DIFFERS) {
        events.push(Event::normal(types::SHADOW_DIFFERS, "A policy in shadow mode says something else", differs.message.clone()));
    }
    // They are about what somebody wrote: said when it is read for the first time. An annotation has no generation.
    let is_spec_new = before.and_then(|status| status.observed_generation) != policy.snapshot.policy.metadata.generation;
    let ready = conditions.iter().find(|c| c.type_ == types::READY).map(|c| c.message.as_str()).unwrap_or_default();
    let is_new = |finding: &&Finding| is_spec_new || !ready.contains(&status::warning(finding));
    events.extend(policy.findings.iter().filter(is_new).filter_map(Event::of_finding));
    events
}

/// What does not come right by itself.
fn trouble(policy: &Validated<'_>, decided: &Decided, stalled: &Condition) -> Option<Event> {
    let warning = |reason: &str, message| Some(Event::warning(reason, message, stalled.message.clone()));
    let is_back = decided.swaps.iter().any(|swap| matches!(swap, Swap::RolledBack(..)));
    match &decided.standing {
        Standing::InForce | Standing::Failed { harmless: true, .. } | Standing::Waiting(_) | Standing::RolledBack(_)
            if decided.failing(policy).is_some() =>
        {
            warning("NoRevisionLeft", "The revision in force fails, and no former one can take over")
        }
        // The swap has said so.
        Standing::RolledBack(_) if is_back => None,
        Standing::RolledBack(_) => warning("NotTakenAgain", "A revision that failed in use is asked for again"),
        Standing::InForce | Standing::Coming(_) | Standing::Failed { .. } | Standing::Waiting(_) | Standing::Stopped(_) => {
            warning(&stalled.reason, "The policy cannot take over")
        }
    }
}
