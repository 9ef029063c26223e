//! The default policy of slot conflict-resolution.
//!
//! | conflict about | without settings |
//! |---|---|
//! | a variable | the user's claim wins; without one, the strongest origin (policy, generated, default) |
//! | `KONG_PLUGINS`, `KONG_LUA_PACKAGE_PATH` | the claims are merged without duplicates, the user's entries first |
//! | a volume, a mount path | as a variable |
//! | a plugin's name | the oldest claim wins |
//! | a bundled plugin's name | the installation wins, with a warning |
//! | an installation | all gateways that claim it share it |
//! | anything else | hold |
//!
//! Every decision that leaves a claim out says so in a finding. Findings name parties, never values: a value may be a secret that
//! somebody wrote in the wrong place.

mod about;
mod choose;
mod installations;
mod instant;
mod merge;
mod settings;
#[cfg(test)]
mod tests;

use weir_policy_sdk::{
    ConflictResolution, Context, Finding, Policy, Refusal, Severity,
    conflict_resolution::{Answer, Conflict, Input, Origin, Resolution, SubjectKind, Verdict, resolution},
    finding,
};

use about::{path, subject};
use choose::{Choice, index_of, oldest, others, strongest_not};
pub use settings::{InstallationRule, Rule, SCHEMA, Settings};

/// The policy.
#[derive(Debug, Clone, Copy)]
pub struct DefaultPolicy;

impl Policy for DefaultPolicy {
    type Settings = Settings;

    fn schema() -> &'static str {
        SCHEMA
    }

    fn validate(settings: &Settings) -> Vec<Finding> {
        settings.validate()
    }
}

impl ConflictResolution for DefaultPolicy {
    fn evaluate(input: Input, settings: Settings) -> Result<Answer, Refusal> {
        let resolutions = input.conflicts.iter().map(|conflict| resolve(conflict, &input.context, &settings)).collect();
        Ok(Answer { resolutions, extensions: Vec::new() })
    }
}

/// Resolves one conflict; for policies that decide some conflicts themselves.
#[must_use]
pub fn resolve(conflict: &Conflict, context: &Context, settings: &Settings) -> Resolution {
    if conflict.kind == SubjectKind::PluginInstallation {
        return installations::resolve(conflict, &context.object.namespace, settings.plugin_installations);
    }
    let Some(rule) = settings.rule(conflict) else {
        return resolution(Verdict::Hold(about::unknown_kind(conflict)), Vec::new());
    };
    match rule {
        Rule::KeepUser => keep_user(conflict),
        Rule::KeepGenerated => keep_generated(conflict),
        Rule::KeepOldest => keep_oldest(conflict),
        Rule::Merge => merged(conflict),
        Rule::Reject => resolution(Verdict::Reject(about::rejected(conflict)), Vec::new()),
        Rule::Hold => resolution(Verdict::Hold(about::held(conflict)), Vec::new()),
    }
}

fn keep_user(conflict: &Conflict) -> Resolution {
    let Some(choice) = index_of(conflict, Origin::User) else { return keep_strongest(conflict) };
    if conflict.kind == SubjectKind::BundledPlugin {
        return shadows(conflict, choice);
    }
    let only_defaults = others(conflict, choice).all(|claim| claim.origin == Origin::Default);
    // A default is there to be overridden. A volume or a mount is not: something generated will miss it.
    let severity = if only_defaults && conflict.kind == SubjectKind::EnvVar { Severity::Info } else { Severity::Warning };
    kept(conflict, choice, severity, "UserOverride", "the user's claim wins")
}

/// Nobody's own words are at stake: the claims come strongest first.
fn keep_strongest(conflict: &Conflict) -> Resolution {
    let Some(choice) = strongest_not(conflict, Origin::Default).or_else(|| choose::first(conflict)) else { return empty(conflict) };
    if conflict.kind == SubjectKind::BundledPlugin {
        return shadows(conflict, choice);
    }
    kept(conflict, choice, Severity::Info, "StrongestKept", "the strongest claim wins")
}

/// What Kong bundles is a claim of origin default, and an installation is a stronger wish than that.
fn shadows(conflict: &Conflict, choice: Choice<'_>) -> Resolution {
    kept(conflict, choice, Severity::Warning, "ShadowsBundled", "the installation replaces the plugin that Kong bundles")
}

fn keep_generated(conflict: &Conflict) -> Resolution {
    let Some(choice) = strongest_not(conflict, Origin::User) else { return keep_strongest(conflict) };
    let overruled = others(conflict, choice).any(|claim| claim.origin == Origin::User);
    if overruled {
        return kept(conflict, choice, Severity::Warning, "UserOverruled", "the rule of this policy puts the operator's claim first");
    }
    kept(conflict, choice, Severity::Info, "StrongestKept", "the strongest claim wins")
}

fn keep_oldest(conflict: &Conflict) -> Resolution {
    let Some(choice) = oldest(conflict) else { return empty(conflict) };
    kept(conflict, choice, Severity::Warning, "OldestKept", "the oldest claim wins")
}

fn merged(conflict: &Conflict) -> Resolution {
    match merge::merge(conflict) {
        merge::Merged::Value { text, left_out } => {
            let message = format!("the claims are merged{}", about::left_out(left_out.into_iter()));
            resolution(Verdict::Merge(text), vec![finding(Severity::Info, "Merged", path(conflict), message)])
        }
        // One claim is the whole result: the merge is no different from keeping it.
        merge::Merged::Single => keep_user(conflict),
        merge::Merged::Impossible(why) => {
            let user = index_of(conflict, Origin::User).or_else(|| choose::first(conflict));
            let Some(choice) = user else { return empty(conflict) };
            kept(conflict, choice, Severity::Warning, "CannotMerge", why)
        }
    }
}

/// Keeps one claim and names the others.
fn kept(conflict: &Conflict, choice: Choice<'_>, severity: Severity, code: &str, why: &str) -> Resolution {
    let message =
        format!("{}: {why}: {} is kept{}", subject(conflict), about::party(choice.claim), about::left_out(others(conflict, choice)));
    resolution(Verdict::Keep(choice.index), vec![finding(severity, code, path(conflict), message)])
}

/// The contract promises two claims; without any there is no index to name.
fn empty(conflict: &Conflict) -> Resolution {
    resolution(Verdict::Hold(format!("{}: the question has no claims; this is a bug of the operator", subject(conflict))), Vec::new())
}
