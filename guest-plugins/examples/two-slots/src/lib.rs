//! Example of one component for two slots: both default policies with one settings document, so that a platform team publishes and
//! signs one artifact.

use conflict_resolution::DefaultPolicy;
use serde::Deserialize;
use weir_policy_sdk::{
    ConflictResolution, Finding, KonnectEnv, Policy, Refusal, conflict_resolution as conflicts, export_policy, konnect_env as konnect,
};

/// The settings document: one part per slot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Settings {
    /// Settings of the default konnect-env policy.
    pub konnect_env: konnect_env::Settings,
    /// Settings of the default conflict-resolution policy.
    pub conflict_resolution: conflict_resolution::Settings,
}

/// The policy.
#[derive(Debug, Clone, Copy)]
pub struct TwoSlots;

impl Policy for TwoSlots {
    type Settings = Settings;

    fn schema() -> &'static str {
        r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","additionalProperties":false,"properties":{"konnectEnv":{"type":"object","default":{}},"conflictResolution":{"type":"object","default":{}}}}"#
    }

    fn validate(settings: &Settings) -> Vec<Finding> {
        let mut findings = settings.konnect_env.validate("konnectEnv.");
        findings.extend(settings.conflict_resolution.validate().into_iter().map(|mut finding| {
            finding.path.insert_str(0, "conflictResolution.");
            finding
        }));
        findings
    }
}

impl KonnectEnv for TwoSlots {
    fn evaluate(input: konnect::Input, settings: Settings) -> Result<konnect::Answer, Refusal> {
        konnect_env::evaluate(&input, &settings.konnect_env)
    }
}

impl ConflictResolution for TwoSlots {
    fn evaluate(input: conflicts::Input, settings: Settings) -> Result<conflicts::Answer, Refusal> {
        <DefaultPolicy as ConflictResolution>::evaluate(input, settings.conflict_resolution)
    }
}

export_policy!(TwoSlots: konnect_env, conflict_resolution);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_name_the_part() {
        let document = r#"{"konnectEnv": {"extraEnv": {"KONG_ROLE": ""}}, "conflictResolution": {"volumes": "merge"}}"#;
        let findings = weir_policy_sdk::parse_settings::<TwoSlots>(document).unwrap_err();
        let paths: Vec<_> = findings.into_iter().map(|f| f.path).collect();
        assert_eq!(paths, ["konnectEnv.extraEnv.KONG_ROLE", "conflictResolution.volumes"]);
    }
}
