//! Conditions of an object: ours in place of the old ones, those of others kept as long as there is room.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// Conditions per object that Kong's schemas allow.
const MAX_CONDITIONS: usize = 8;
/// Longest message; the schema of a condition allows 32 KiB, nobody reads that.
const MAX_MESSAGE: usize = 4096;

/// What a condition says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) type_: &'static str,
    pub(crate) status: bool,
    pub(crate) reason: String,
    pub(crate) message: String,
}

pub(crate) fn say(type_: &'static str, status: bool, reason: impl Into<String>, message: impl Into<String>) -> Said {
    Said { type_, status, reason: reason.into(), message: message.into() }
}

/// The list after this pass. `ours` are all types this kind ever says, so that one that is not said any more goes.
pub(crate) fn merge(previous: Vec<Condition>, said: Vec<Said>, ours: &[&str], generation: Option<i64>, now: Timestamp) -> Vec<Condition> {
    let mut merged: Vec<Condition> = said.into_iter().map(|said| condition(said, &previous, generation, now)).collect();
    let room = MAX_CONDITIONS.saturating_sub(merged.len());
    merged.extend(previous.into_iter().filter(|c| !ours.contains(&c.type_.as_str())).take(room));
    merged
}

/// What the shell learned by writing, in place of what the pass said before it wrote. One that was not said comes first. `previous` are the
/// conditions of the live object.
pub(crate) fn overrule(conditions: &mut Vec<Condition>, said: Said, previous: &[Condition], generation: Option<i64>, now: Timestamp) {
    let condition = condition(said, previous, generation, now);
    match conditions.iter_mut().find(|c| c.type_ == condition.type_) {
        Some(there) => *there = condition,
        None => conditions.insert(0, condition),
    }
}

/// The transition time moves with the status only.
fn condition(said: Said, previous: &[Condition], generation: Option<i64>, now: Timestamp) -> Condition {
    let status = if said.status { "True" } else { "False" };
    let before = previous.iter().find(|c| c.type_ == said.type_ && c.status == status);
    Condition {
        type_: said.type_.into(),
        status: status.into(),
        reason: said.reason,
        message: said.message.chars().take(MAX_MESSAGE).collect(),
        observed_generation: generation,
        last_transition_time: before.map_or(Time(now), |c| c.last_transition_time.clone()),
    }
}
