//! Annotations that owners write on objects of any kind, and what is said of a word that nobody knows.

use weir_api::keys;

use crate::policy::{Finding, Severity, limits};

/// What is wrong with annotation `weir.dev/paused`. Only its one word stops anything.
#[must_use]
pub fn paused(value: Option<&str>) -> Option<Finding> {
    let value = value.filter(|value| !["true", "false"].contains(value))?;
    let message = format!(
        "{:?} pauses nothing: write \"true\" in quotes to stop every write besides the status, or remove the annotation",
        limits::cut(value)
    );
    Some(warning("InvalidPaused", keys::PAUSED, message))
}

/// Whether annotation `weir.dev/rollout` makes changes wait. A word that nobody knows does: it is easier to let something go than to take
/// it back.
#[must_use]
pub fn is_manual(value: Option<&str>) -> bool {
    value.is_some_and(|value| value != "Automatic")
}

/// What is wrong with annotation `weir.dev/rollout`.
#[must_use]
pub fn rollout(value: Option<&str>) -> Option<Finding> {
    let value = value.filter(|value| !["Manual", "Automatic"].contains(value))?;
    let message = format!("{:?} is neither Manual nor Automatic and counts as Manual: write one of the two", limits::cut(value));
    Some(warning("InvalidRollout", keys::ROLLOUT, message))
}

/// A warning about an annotation.
#[must_use]
pub fn warning(code: &str, key: &str, message: String) -> Finding {
    Finding { severity: Severity::Warning, code: code.into(), path: format!("metadata.annotations[{key}]"), message }
}
