//! A person's word. Only the very digest of what waits is taken: a word that was said about another one changes nothing.

use weir_api::reconcile_policy::{Revision, Strategy};

use super::Pass;

/// Longest text of the annotation that is repeated: a layer and settings have 143 characters.
const MAX_SHOWN: usize = 160;

/// What a person has to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// What the annotation has to say.
    pub approve: String,
    /// What it says, where that is something else.
    pub stale: Option<String>,
}

impl Pass<'_> {
    /// What a person has to say before this takes over; none where nobody has to, or somebody did.
    pub(super) fn wait(&self, layer: &str) -> Option<Wait> {
        match self.policy.strategy {
            Strategy::Automatic => return None,
            Strategy::Manual => {}
        }
        let (active, settings) = (self.decided.active.as_ref(), self.policy.settings_digest.as_str());
        let full = format!("{layer}/{settings}");
        // Who approves a component with other settings has to have seen both.
        let approve = match active {
            Some(active) if active.settings_digest != settings => full.clone(),
            Some(_) | None => layer.to_owned(),
        };
        if self.policy.approved.is_some_and(|text| text == approve || text == full) {
            return None;
        }
        let is_old = |text: &&str| !text.is_empty() && !active.is_some_and(|active| names(active, text));
        let shown = |text: &str| text.chars().filter(|c| !c.is_control()).take(MAX_SHOWN).collect();
        Some(Wait { approve, stale: self.policy.approved.filter(is_old).map(shown) })
    }
}

/// Whether the annotation's text let this revision in.
fn names(revision: &Revision, text: &str) -> bool {
    text == revision.layer_digest || text.split_once('/') == Some((revision.layer_digest.as_str(), revision.settings_digest.as_str()))
}
