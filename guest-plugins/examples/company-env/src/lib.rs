//! Example of one rule in two slots: the variables that a company sets for all of its gateways.
//!
//! Slot konnect-env adds them to what a gateway of Konnect gets. Slot conflict-resolution keeps them: whoever else claims one of them, the
//! owner of a DataPlane included, is rejected with a message that says where the value comes from. Everything else is the default policies'
//! business. Point one ReconcilePolicy per slot at this component, with the same settings.

use std::collections::BTreeMap;

use conflict_resolution::resolve;
use serde::Deserialize;
use weir_policy_sdk::{
    ConflictResolution, Finding, KonnectEnv, Policy, Refusal, Severity,
    conflict_resolution::{self as conflicts, Answer, Conflict, Origin, Resolution, SubjectKind, Verdict, resolution},
    env_var, export_policy, finding, is_env_name, konnect_env as konnect,
};

/// The settings document.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Settings {
    /// What every gateway has, by name.
    pub env: BTreeMap<String, String>,
    /// Whom to ask for an exception; part of every rejection.
    pub contact: String,
}

/// The policy.
#[derive(Debug, Clone, Copy)]
pub struct CompanyEnv;

impl Policy for CompanyEnv {
    type Settings = Settings;

    fn schema() -> &'static str {
        include_str!("settings.schema.json")
    }

    fn validate(settings: &Settings) -> Vec<Finding> {
        let own = |name: &str| konnect_env::OWN_VARIABLES.contains(&name);
        let problem = |name: &String| {
            if !is_env_name(name) {
                Some(finding(Severity::Error, "InvalidName", format!("env.{name}"), "not a C identifier"))
            } else if own(name) {
                let message = "set from the Konnect extension, which this policy does not replace: remove it here";
                Some(finding(Severity::Error, "ReservedName", format!("env.{name}"), message))
            } else {
                None
            }
        };
        settings.env.keys().filter_map(problem).take(32).collect()
    }
}

impl KonnectEnv for CompanyEnv {
    fn evaluate(input: konnect::Input, settings: Settings) -> Result<konnect::Answer, Refusal> {
        let mut answer = konnect_env::evaluate(&input, &konnect_env::Settings::default())?;
        answer.env.extend(settings.env.into_iter().map(|(name, value)| env_var(name, value)));
        answer.env.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(answer)
    }
}

impl ConflictResolution for CompanyEnv {
    fn evaluate(input: conflicts::Input, settings: Settings) -> Result<Answer, Refusal> {
        let base = conflict_resolution::Settings::default();
        let decide = |conflict: &Conflict| kept(conflict, &settings).unwrap_or_else(|| resolve(conflict, &input.context, &base));
        Ok(Answer { resolutions: input.conflicts.iter().map(decide).collect(), extensions: Vec::new() })
    }
}

/// What becomes of a conflict about a variable of the company; nothing about any other.
fn kept(conflict: &Conflict, settings: &Settings) -> Option<Resolution> {
    if conflict.kind != SubjectKind::EnvVar || !settings.env.contains_key(&conflict.subject) {
        return None;
    }
    if conflict.claims.iter().any(|claim| claim.origin == Origin::User) {
        let ask = if settings.contact.is_empty() { String::new() } else { format!(", or ask {} for an exception", settings.contact) };
        let message = format!("{} is set for all gateways of the company: remove it from the DataPlane{ask}", conflict.subject);
        return Some(resolution(Verdict::Reject(message), Vec::new()));
    }
    // Against a default: a policy's claim is the company's.
    let company = conflict.claims.iter().position(|claim| claim.origin == Origin::Policy)?;
    Some(resolution(Verdict::Keep(u32::try_from(company).ok()?), Vec::new()))
}

export_policy!(CompanyEnv: konnect_env, conflict_resolution);
