//! Example of slot conflict-resolution: first come, first served.
//!
//! An installation belongs to the gateway that claimed it first, and a plugin's name to the installation that brought it first. The others
//! are left out, and a finding tells them who has it. Annotation `example.com/owner` (`namespace/name`) on the object that is asked about
//! names another owner: so ownership is handed over on purpose and not by deleting things in the right order. Everything else is the default
//! policy's business.

use conflict_resolution::resolve;
use serde::Deserialize;
use weir_policy_sdk::{
    ConflictResolution, Finding, Policy, Refusal, Severity,
    conflict_resolution::{Answer, Conflict, Input, Resolution, SubjectKind, Verdict, resolution},
    cut, export_conflict_resolution, finding,
};

/// The settings document.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Settings {
    /// The annotation that names an owner.
    pub annotation: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self { annotation: "example.com/owner".to_owned() }
    }
}

/// The policy.
#[derive(Debug, Clone, Copy)]
pub struct FirstOwner;

impl Policy for FirstOwner {
    type Settings = Settings;

    fn schema() -> &'static str {
        include_str!("settings.schema.json")
    }

    fn validate(_settings: &Settings) -> Vec<Finding> {
        Vec::new()
    }
}

impl ConflictResolution for FirstOwner {
    fn evaluate(input: Input, settings: Settings) -> Result<Answer, Refusal> {
        let annotations = &input.context.object.annotations;
        let named = annotations.iter().find(|(key, _)| *key == settings.annotation).map(|(_, owner)| owner.as_str());
        let base = conflict_resolution::Settings {
            plugin_installations: conflict_resolution::InstallationRule::FirstOwner,
            ..conflict_resolution::Settings::default()
        };
        let decide = |conflict: &Conflict| {
            let owned = matches!(conflict.kind, SubjectKind::PluginInstallation | SubjectKind::PluginName);
            let handed_over = named.filter(|_| owned).and_then(|owner| hand_over(conflict, owner));
            handed_over.unwrap_or_else(|| resolve(conflict, &input.context, &base))
        };
        Ok(Answer { resolutions: input.conflicts.iter().map(decide).collect(), extensions: Vec::new() })
    }
}

/// The claim of the named owner wins, if there is one: a name that claims nothing takes nothing from anybody.
fn hand_over(conflict: &Conflict, owner: &str) -> Option<Resolution> {
    let index = conflict.claims.iter().position(|claim| claim.who == owner)?;
    let message = format!("{}: {} is named as its owner", cut(&conflict.subject, 100), cut(owner, 200));
    let said = finding(Severity::Info, "OwnerNamed", "", message);
    Some(resolution(Verdict::Keep(u32::try_from(index).ok()?), vec![said]))
}

export_conflict_resolution!(FirstOwner);
