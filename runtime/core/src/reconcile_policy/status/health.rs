//! Health: what the object looks like to somebody who only asks whether all is well. Never both on its way and stuck, and ready only when
//! neither (kstatus).

use weir_api::{
    condition::{reasons, types},
    keys,
    reconcile_policy::Mode,
};

use super::{
    super::{
        decide::{Decided, ROLLED_BACK, Standing, Wait},
        snapshot::{Reach, Step, Tripped},
        validate::{Stop, Validated},
    },
    NOT_RUNNING, short,
};
use crate::{
    conditions::{Said, say},
    policy::Finding,
};

/// A step failed and is tried again by itself.
pub(crate) const RETRYING: &str = "Retrying";

/// How all is.
pub(super) enum Health {
    Good,
    /// Waiting for a person is here too: it is no failure, and a pipeline that waits for health must not give up on it.
    Coming(&'static str, String),
    Bad(String, String),
}

pub(super) fn health(policy: &Validated<'_>, decided: &Decided) -> Health {
    let failing = decided.failing(policy);
    let stays = stays(decided, failing);
    match &decided.standing {
        Standing::InForce | Standing::Failed { harmless: true, .. } => match (failing, policy.not_running(decided.active.as_ref())) {
            (Some(tripped), _) => Health::Bad(tripped.reason.clone(), format!("the revision in force fails{stays}")),
            (None, Some(why)) => Health::Coming(NOT_RUNNING, why),
            (None, None) => Health::Good,
        },
        Standing::Coming(step) => Health::Coming(reasons::PENDING, format!("{}: {}{stays}", policy.source, doing(*step))),
        Standing::Failed { failure, harmless: false } if failure.transient => {
            Health::Coming(RETRYING, format!("{}; it is tried again by itself{stays}", failure.message))
        }
        Standing::Failed { failure, harmless: false } => Health::Bad(failure.reason.clone(), format!("{}{stays}", failure.message)),
        Standing::Waiting(wait) => match failing {
            Some(tripped) => Health::Bad(tripped.reason.clone(), format!("{}{stays}", waits(wait))),
            None => Health::Coming(reasons::AWAITING_APPROVAL, waits(wait)),
        },
        Standing::RolledBack(layer) => {
            let message = format!(
                "{} failed in use and was taken out{stays}: publish another one, change the settings, or set annotation {} to a new value to \
                 try it again",
                short(layer),
                keys::CHECK_AT
            );
            Health::Bad(ROLLED_BACK.into(), message)
        }
        Standing::Stopped(Stop::NotServed(reason, message)) => Health::Bad((*reason).into(), message.clone()),
        Standing::Stopped(Stop::Paused) => Health::Coming("Paused", paused()),
        Standing::Stopped(Stop::Deleting) => Health::Coming("Deleting", "the object is being deleted".into()),
    }
}

/// What answers meanwhile.
fn stays(decided: &Decided, failing: Option<&Tripped>) -> String {
    match (&decided.active, failing) {
        (None, _) => "; until then the next policy in line, or the built-in one, answers".into(),
        (Some(active), None) => format!("; {} stays in force", short(&active.layer_digest)),
        (Some(active), Some(tripped)) => format!(
            "; {} stays in force, for there is no former revision to go back to, and objects keep their last answers: {}",
            short(&active.layer_digest),
            tripped.message
        ),
    }
}

pub(super) fn paused() -> String {
    format!("annotation {} is \"true\": what answers stays, whatever the spec says", keys::PAUSED)
}

pub(super) fn waits(wait: &Wait) -> String {
    let stale = wait.stale.as_ref().map(|text| format!("; the annotation says {text:?}, which is not what waits, and changes nothing"));
    format!("a revision waits: set annotation {} to {}{}", keys::APPROVED_DIGEST, wait.approve, stale.unwrap_or_default())
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

pub(super) fn ready(policy: &Validated<'_>, decided: &Decided, health: &Health) -> Said {
    match health {
        Health::Good => {
            let word = match policy.mode {
                Mode::Enforce => answers(&policy.snapshot.reach),
                Mode::Shadow => "it is asked beside the policy in force".to_owned(),
            };
            let outdated = match &decided.standing {
                Standing::Failed { failure, .. } => Some(failure.message.clone()),
                Standing::InForce | Standing::Coming(_) | Standing::Waiting(_) | Standing::RolledBack(_) | Standing::Stopped(_) => None,
            };
            let all: Vec<String> = std::iter::once(word).chain(warnings(policy)).chain(outdated).collect();
            say(types::READY, true, reasons::READY, all.join("; "))
        }
        Health::Coming(reason, message) => say(types::READY, false, *reason, warned(policy, message)),
        Health::Bad(reason, message) => say(types::READY, false, reason.clone(), warned(policy, message)),
    }
}

/// What its owner should know of the object, however it stands.
fn warnings(policy: &Validated<'_>) -> impl Iterator<Item = String> {
    policy.findings.iter().map(warning)
}

fn warned(policy: &Validated<'_>, message: &str) -> String {
    std::iter::once(message.to_owned()).chain(warnings(policy)).collect::<Vec<_>>().join("; ")
}

/// A finding as condition Ready has it.
pub(crate) fn warning(finding: &Finding) -> String {
    format!("{}: {}", finding.path, finding.message)
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
