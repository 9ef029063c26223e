//! What a policy in shadow mode says differently.

use weir_api::{
    condition::{Condition, types},
    reconcile_policy::Mode,
};

use super::super::{decide::Decided, snapshot::Compared, validate::Validated};
use crate::conditions::{Said, say};

/// It was asked, and says what the policy in force says.
const AGREES: &str = "Agrees";
/// It was not asked anything yet.
const NOT_ASKED: &str = "NotAsked";

/// The condition; none of a policy that is no shadow, or of which nothing runs.
pub(super) fn differs(policy: &Validated<'_>, decided: &Decided) -> Option<Said> {
    match policy.mode {
        Mode::Enforce => return None,
        Mode::Shadow => {}
    }
    decided.active.as_ref()?;
    match &policy.snapshot.shadow {
        Some(Compared { sample: Some(sample), counts: _ }) => {
            let message = format!("{}: {}", sample.object, sample.difference);
            Some(say(types::SHADOW_DIFFERS, true, sample.difference.grade().as_str(), message))
        }
        Some(Compared { sample: None, counts }) if counts.evaluated > 0 => Some(say(types::SHADOW_DIFFERS, false, AGREES, "")),
        // A process that has just begun has asked nothing yet: what was found stands.
        Some(_) | None => Some(before(policy, decided).unwrap_or_else(|| say(types::SHADOW_DIFFERS, false, NOT_ASKED, ""))),
    }
}

fn before(policy: &Validated<'_>, decided: &Decided) -> Option<Said> {
    let status = policy.snapshot.policy.status.as_ref()?;
    let is_it = |c: &&Condition| c.type_ == types::SHADOW_DIFFERS;
    let said = status.conditions.iter().flatten().find(is_it).filter(|_| decided.swaps.is_empty())?;
    Some(say(types::SHADOW_DIFFERS, said.status == "True", said.reason.clone(), said.message.clone()))
}
