//! Status: the steps of what the spec asks for, what answers, and words that tools read as health (semantics "GitOps").

use weir_api::{
    condition::{reasons, types},
    keys,
    reconcile_policy::{Mode, ReconcilePolicyStatus, Revision, Strategy},
};

use super::{
    decide::{Decided, Standing, effective},
    snapshot::{Failure, Reach, Step, Work},
    validate::{Stop, Validated},
};
use crate::conditions::{self, Said, say};

/// Condition types this kind says; a stale one goes.
const OURS: [&str; 9] = [
    types::READY,
    types::RECONCILING,
    types::STALLED,
    types::ACTIVE,
    types::HELD,
    types::RESOLVED,
    types::VERIFIED,
    types::COMPATIBLE,
    types::SETTINGS_VALID,
];

/// Builds the status.
pub(super) fn build(policy: &Validated<'_>, decided: &Decided) -> ReconcilePolicyStatus {
    let object = &policy.snapshot.policy;
    let previous = object.status.clone().unwrap_or_default();
    let health = health(policy, decided);
    let mut said = vec![ready(policy, decided, &health)];
    match &health {
        Health::Good => {}
        Health::Coming(reason, message) => said.push(say(types::RECONCILING, true, *reason, message.clone())),
        Health::Bad(reason, message) => said.push(say(types::STALLED, true, reason.clone(), message.clone())),
        // Waiting for a person is neither progress nor failure: a pipeline that waits for health must not give up on it.
        Health::Held(reason, message) => said.push(say(types::RECONCILING, true, *reason, message.clone())),
    }
    said.push(active(policy, decided));
    said.extend(held(policy, decided));
    said.extend(steps(policy, decided));
    let conditions = previous.conditions.unwrap_or_default();
    ReconcilePolicyStatus {
        observed_generation: object.metadata.generation,
        conditions: Some(conditions::merge(conditions, said, &OURS, object.metadata.generation, policy.snapshot.now)),
        source: Some(policy.source.clone()),
        limits: Some(decided.active.as_ref().and_then(|a| a.limits.clone()).unwrap_or_else(|| effective(policy.cost))),
        active: decided.active.clone(),
        candidate: decided.candidate.clone(),
        history: (!decided.history.is_empty()).then(|| decided.history.clone()),
        objects: i32::try_from(policy.snapshot.reach.objects).ok(),
        shadow: policy.snapshot.shadow.clone(),
    }
}

/// What the object looks like to somebody who only asks whether all is well.
enum Health {
    Good,
    Coming(&'static str, String),
    Held(&'static str, String),
    Bad(String, String),
}

fn health(policy: &Validated<'_>, decided: &Decided) -> Health {
    let stays = decided.active.as_ref().map_or_else(
        || "; until then the next policy in line, or the built-in one, answers".to_owned(),
        |active| format!("; {} stays in force", short(&active.layer_digest)),
    );
    match &decided.standing {
        Standing::InForce => match &policy.snapshot.tripped {
            Some(tripped) if decided.swap.is_none() && decided.is_of(tripped) && !policy.asked => {
                let message = format!("{}; there is no former revision to go back to, so objects keep their last answers", tripped.message);
                Health::Bad(tripped.reason.clone(), message)
            }
            Some(_) | None => match &policy.snapshot.not_running {
                Some(why) => Health::Coming("NotRunning", why.clone()),
                None => Health::Good,
            },
        },
        Standing::Coming(step) => Health::Coming(reasons::PENDING, format!("{}: {}{stays}", policy.source, doing(*step))),
        Standing::Failed { harmless: true, .. } => Health::Good,
        Standing::Failed { failure, harmless: false } if failure.transient => {
            Health::Coming("Retrying", format!("{}; it is tried again by itself{stays}", failure.message))
        }
        Standing::Failed { failure, harmless: false } => Health::Bad(failure.reason.clone(), format!("{}{stays}", failure.message)),
        Standing::Waiting { approve, stale } => Health::Held(reasons::AWAITING_APPROVAL, waits(approve, stale.as_deref())),
        Standing::RolledBack(layer) => {
            let message = format!(
                "{} failed in use and was taken out{stays}: publish another one, change the settings, or set annotation {} to a new value to \
                 try it again",
                short(layer),
                keys::CHECK_AT
            );
            Health::Bad("RolledBack".into(), message)
        }
        Standing::Stopped(Stop::NotServed(reason, message)) => Health::Bad((*reason).into(), message.clone()),
        Standing::Stopped(Stop::Paused) => Health::Held("Paused", paused()),
        Standing::Stopped(Stop::Deleting) => Health::Coming("Deleting", "the object is being deleted".into()),
    }
}

fn paused() -> String {
    format!("annotation {} is \"true\": what answers stays, whatever the spec says", keys::PAUSED)
}

fn waits(approve: &str, stale: Option<&str>) -> String {
    let key = keys::APPROVED_DIGEST;
    let stale = stale.map(|text| format!("; the annotation says {text:?}, which is not what waits")).unwrap_or_default();
    format!("a revision waits: set annotation {key} to {approve}{stale}")
}

fn doing(step: Step) -> &'static str {
    match step {
        Step::Resolved => "it is looked up and fetched",
        Step::Verified => "its signatures are looked for",
        Step::Compatible => "it is compiled",
        Step::SettingsValid => "its settings are checked",
        Step::Answers => "it is tried on objects that are there",
    }
}

fn ready(policy: &Validated<'_>, decided: &Decided, health: &Health) -> Said {
    match health {
        Health::Good => {
            let word = match policy.mode {
                Mode::Enforce => answers(&policy.snapshot.reach),
                Mode::Shadow => "it is asked beside the policy in force".to_owned(),
            };
            let warnings = policy.findings.iter().map(|f| format!("{}: {}", f.path, f.message));
            let outdated = match &decided.standing {
                Standing::Failed { failure, .. } => Some(failure.message.clone()),
                Standing::InForce | Standing::Coming(_) | Standing::Waiting { .. } | Standing::RolledBack(_) | Standing::Stopped(_) => None,
            };
            let all: Vec<String> = std::iter::once(word).chain(warnings).chain(outdated).collect();
            say(types::READY, true, reasons::READY, all.join("; "))
        }
        Health::Coming(reason, message) | Health::Held(reason, message) => say(types::READY, false, *reason, message.clone()),
        Health::Bad(reason, message) => say(types::READY, false, reason.clone(), message.clone()),
    }
}

/// What is asked of it.
fn answers(reach: &Reach) -> String {
    let mut text = format!("it answers for {} objects", reach.objects);
    if let Some(other) = reach.lost_to.as_ref().filter(|_| reach.lost > 0) {
        text.push_str(&format!("; of those it selects, {} are answered for by policy {other}", reach.lost));
    }
    if !reach.ambiguous.is_empty() {
        text.push_str(&format!("; policy {} has the same priority: give them different ones", reach.ambiguous.join(", ")));
    }
    text
}

fn active(policy: &Validated<'_>, decided: &Decided) -> Said {
    let no = |reason: &str, message: String| say(types::ACTIVE, false, reason, message);
    match (&decided.active, &decided.standing) {
        (_, Standing::Stopped(Stop::NotServed(reason, message))) => no(reason, message.clone()),
        (Some(active), _) => {
            let words = revision(active);
            match policy.mode {
                Mode::Enforce => say(types::ACTIVE, true, "Active", words),
                Mode::Shadow => no("Shadow", format!("{words} is asked, and its answers are compared and not used")),
            }
        }
        (None, Standing::Failed { failure, .. }) => no(&failure.reason, failure.message.clone()),
        (None, Standing::Waiting { approve, .. }) => no(reasons::AWAITING_APPROVAL, waits(approve, None)),
        (None, Standing::InForce | Standing::Coming(_) | Standing::RolledBack(_) | Standing::Stopped(_)) => {
            no(reasons::PENDING, "no revision has passed every step yet".into())
        }
    }
}

fn held(policy: &Validated<'_>, decided: &Decided) -> Option<Said> {
    match &decided.standing {
        Standing::Waiting { approve, stale } => Some(say(types::HELD, true, reasons::AWAITING_APPROVAL, waits(approve, stale.as_deref()))),
        Standing::Stopped(Stop::Paused) => Some(say(types::HELD, true, "Paused", paused())),
        Standing::InForce | Standing::Coming(_) | Standing::Failed { .. } | Standing::RolledBack(_) | Standing::Stopped(_) => {
            (policy.strategy == Strategy::Manual).then(|| say(types::HELD, false, reasons::NOTHING_HELD, ""))
        }
    }
}

/// One condition per step, up to the one that has not passed: of what is on its way, else of what answers.
fn steps(policy: &Validated<'_>, decided: &Decided) -> Vec<Said> {
    let failure = match &decided.standing {
        Standing::Failed { failure, .. } => Some(failure),
        Standing::InForce | Standing::Coming(_) | Standing::Waiting { .. } | Standing::RolledBack(_) | Standing::Stopped(_) => None,
    };
    let reached = match (&decided.standing, &policy.snapshot.work) {
        (Standing::Failed { failure, .. }, _) => failure.step,
        (Standing::Coming(step), _) => *step,
        (Standing::Stopped(_), _) if decided.active.is_none() => Step::Resolved,
        (Standing::InForce | Standing::Waiting { .. } | Standing::RolledBack(_) | Standing::Stopped(_), _) => Step::Answers,
    };
    let signer = decided.active.as_ref().and_then(|active| active.signer.clone());
    let verified = signer.map_or(("NotRequired", String::new()), |signer| ("Signed", signer));
    let passed = |step, type_, reason: &str, message: String| (reached > step).then(|| say(type_, true, reason, message));
    let failed =
        |step: Step, type_| failure.filter(|f| f.step == step).map(|f: &Failure| say(type_, false, f.reason.clone(), f.message.clone()));
    let mut all = Vec::new();
    all.extend(passed(Step::Resolved, types::RESOLVED, "Resolved", String::new()).or_else(|| failed(Step::Resolved, types::RESOLVED)));
    all.extend(passed(Step::Verified, types::VERIFIED, verified.0, verified.1).or_else(|| failed(Step::Verified, types::VERIFIED)));
    all.extend(
        passed(Step::Compatible, types::COMPATIBLE, "Compatible", String::new()).or_else(|| failed(Step::Compatible, types::COMPATIBLE)),
    );
    // Answering is what settings are for: one word for both.
    let settings = findings(&policy.snapshot.work);
    all.extend(
        passed(Step::SettingsValid, types::SETTINGS_VALID, "Valid", settings)
            .or_else(|| failed(Step::SettingsValid, types::SETTINGS_VALID)),
    );
    all
}

/// What the component says about settings that it takes.
fn findings(work: &Work) -> String {
    match work {
        Work::Ready { findings, .. } => findings.iter().map(|f| format!("{}: {}", f.path, f.message)).collect::<Vec<_>>().join("; "),
        Work::None | Work::Busy { .. } | Work::Failed { .. } => String::new(),
    }
}

fn revision(revision: &Revision) -> String {
    let of = revision.image.as_deref().map(|image| format!(" of {image}")).unwrap_or_default();
    let version = revision.version.as_deref().map(|version| format!(" ({version})")).unwrap_or_default();
    format!("{}{of}{version}", short(&revision.layer_digest))
}

/// Enough of a digest for people.
fn short(digest: &str) -> String {
    digest.chars().take("sha256:".len() + 12).collect()
}
