//! Status: the steps of what the spec asks for, what answers, and words that tools read as health (semantics "GitOps").

mod health;
mod shadow;

use weir_api::{
    condition::{Condition, reasons, types},
    reconcile_policy::{Mode, ReconcilePolicyStatus, Revision, Strategy},
};

use self::health::{Health, health, paused, ready, waits};
use super::{
    decide::{Decided, Standing, effective},
    snapshot::{Failure, Step, Work},
    validate::{Stop, Validated},
};
use crate::conditions::{self, Said, say};

pub(super) use self::health::{RETRYING, warning};

/// Condition types this kind says; a stale one goes.
const OURS: [&str; 10] = [
    types::READY,
    types::RECONCILING,
    types::STALLED,
    types::ACTIVE,
    types::HELD,
    types::RESOLVED,
    types::VERIFIED,
    types::COMPATIBLE,
    types::SETTINGS_VALID,
    types::SHADOW_DIFFERS,
];
/// Nothing answers in this process, whatever the status says.
const NOT_RUNNING: &str = "NotRunning";

/// Builds the status.
pub(super) fn build(policy: &Validated<'_>, decided: &Decided) -> ReconcilePolicyStatus {
    let object = &policy.snapshot.policy;
    let health = health(policy, decided);
    let mut said = vec![ready(policy, decided, &health)];
    match &health {
        Health::Good => {}
        Health::Coming(reason, message) => said.push(say(types::RECONCILING, true, *reason, message.clone())),
        Health::Bad(reason, message) => said.push(say(types::STALLED, true, reason.clone(), message.clone())),
    }
    said.push(active(policy, decided));
    said.extend(held(policy, decided));
    said.extend(steps(policy, decided));
    said.extend(shadow::differs(policy, decided));
    let previous = object.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    ReconcilePolicyStatus {
        observed_generation: object.metadata.generation,
        conditions: Some(conditions::merge(previous, said, &OURS, object.metadata.generation, policy.snapshot.now)),
        source: Some(policy.source.clone()),
        limits: Some(decided.active.as_ref().and_then(|a| a.limits.clone()).unwrap_or_else(|| effective(policy.cost))),
        active: decided.active.clone(),
        candidate: decided.candidate.clone(),
        history: (!decided.history.is_empty()).then(|| decided.history.clone()),
        objects: i32::try_from(policy.snapshot.reach.objects).ok(),
        shadow: policy.snapshot.shadow.as_ref().map(|compared| compared.counts.clone()),
    }
}

fn active(policy: &Validated<'_>, decided: &Decided) -> Said {
    let no = |reason: &str, message: String| say(types::ACTIVE, false, reason, message);
    match (&decided.active, &decided.standing) {
        (_, Standing::Stopped(Stop::NotServed(reason, message))) => no(reason, message.clone()),
        (Some(active), _) => match (policy.not_running(decided.active.as_ref()), policy.mode) {
            (Some(why), _) => no(NOT_RUNNING, why),
            (None, Mode::Enforce) => say(types::ACTIVE, true, "Active", revision(active)),
            (None, Mode::Shadow) => no("Shadow", format!("{} is asked, and its answers are compared and not used", revision(active))),
        },
        (None, Standing::Failed { failure, .. }) => no(&failure.reason, failure.message.clone()),
        (None, Standing::Waiting(wait)) => no(reasons::AWAITING_APPROVAL, waits(wait)),
        (None, Standing::InForce | Standing::Coming(_) | Standing::RolledBack(_) | Standing::Stopped(_)) => {
            no(reasons::PENDING, "no revision has passed every step yet".into())
        }
    }
}

fn held(policy: &Validated<'_>, decided: &Decided) -> Option<Said> {
    match &decided.standing {
        Standing::Waiting(wait) => Some(say(types::HELD, true, reasons::AWAITING_APPROVAL, waits(wait))),
        Standing::Stopped(Stop::Paused) => Some(say(types::HELD, true, "Paused", paused())),
        Standing::InForce | Standing::Coming(_) | Standing::Failed { .. } | Standing::RolledBack(_) | Standing::Stopped(_) => {
            (policy.strategy == Strategy::Manual).then(|| say(types::HELD, false, reasons::NOTHING_HELD, ""))
        }
    }
}

/// The condition that speaks of a step. Answering is what settings are for: one word for both.
pub(super) fn condition(step: Step) -> &'static str {
    match step {
        Step::Resolved => types::RESOLVED,
        Step::Verified => types::VERIFIED,
        Step::Compatible => types::COMPATIBLE,
        Step::SettingsValid | Step::Answers => types::SETTINGS_VALID,
    }
}

/// Which steps are true, and which one is not.
struct Steps<'a> {
    /// The steps before this one have passed; none when all have.
    next: Option<Step>,
    failure: Option<&'a Failure>,
    signer: Option<&'a str>,
}

/// One condition per step, up to the one that has not passed: of what is on its way, else of what answers.
fn steps(policy: &Validated<'_>, decided: &Decided) -> Vec<Said> {
    let answering = decided.active.as_ref().and_then(|active| active.signer.as_deref());
    let coming = decided.candidate.as_ref().and_then(|candidate| candidate.signer.as_deref());
    let steps = match &decided.standing {
        Standing::InForce => Steps { next: None, failure: None, signer: answering },
        Standing::Waiting(_) | Standing::RolledBack(_) => Steps { next: None, failure: None, signer: coming },
        Standing::Coming(step) => Steps { next: Some(*step), failure: None, signer: coming },
        Standing::Failed { failure, harmless: false } => Steps { next: Some(failure.step), failure: Some(failure), signer: coming },
        Standing::Failed { failure, harmless: true } => Steps { next: None, failure: Some(failure), signer: answering },
        Standing::Stopped(_) if decided.active.is_none() => return Vec::new(),
        Standing::Stopped(_) => Steps { next: None, failure: None, signer: answering },
    };
    let said = |step: Step, reason: &str, message: String| {
        let type_ = condition(step);
        match steps.failure.filter(|failure| condition(failure.step) == type_) {
            Some(failure) => Some(say(type_, false, failure.reason.clone(), failure.message.clone())),
            None => steps.next.is_none_or(|next| condition(next) != type_ && next > step).then(|| say(type_, true, reason, message)),
        }
    };
    let verified = if steps.signer.is_some() { "Signed" } else { "NotRequired" };
    let all = [
        said(Step::Resolved, "Resolved", String::new()),
        said(Step::Verified, verified, steps.signer.unwrap_or_default().to_owned()),
        said(Step::Compatible, "Compatible", String::new()),
        said(Step::SettingsValid, "Valid", findings(policy, decided)),
    ];
    all.into_iter().flatten().collect()
}

/// What the component says about settings that it takes; what it said before, while it is looked at again.
fn findings(policy: &Validated<'_>, decided: &Decided) -> String {
    let status = policy.snapshot.policy.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let is_same = |c: &&Condition| {
        let generation = policy.snapshot.policy.metadata.generation;
        c.type_ == types::SETTINGS_VALID && c.status == "True" && c.observed_generation == generation && decided.swaps.is_empty()
    };
    match &policy.snapshot.work {
        Work::Ready { findings, .. } => findings.iter().map(|f| format!("{}: {}", f.path, f.message)).collect::<Vec<_>>().join("; "),
        Work::None | Work::Busy { .. } | Work::Failed { .. } => {
            conditions.iter().find(is_same).map(|c| c.message.clone()).unwrap_or_default()
        }
    }
}

/// A revision for people.
pub(super) fn revision(revision: &Revision) -> String {
    let of = revision.image.as_deref().map(|image| format!(" of {image}")).unwrap_or_default();
    let version = revision.version.as_deref().map(|version| format!(" ({version})")).unwrap_or_default();
    format!("{}{of}{version}", short(&revision.layer_digest))
}

/// Enough of a digest for people.
fn short(digest: &str) -> String {
    digest.chars().take("sha256:".len() + 12).collect()
}
