//! A policy that never ends checking its settings.

use weir_policy_sdk::{
    Finding, KonnectEnv, NO_SETTINGS_SCHEMA, NoSettings, Policy, Refusal, export_konnect_env,
    konnect_env::{Answer, Input},
};

struct SettingsLoop;

impl Policy for SettingsLoop {
    type Settings = NoSettings;

    fn schema() -> &'static str {
        NO_SETTINGS_SCHEMA
    }

    fn validate(_settings: &NoSettings) -> Vec<Finding> {
        loop {
            std::hint::black_box(());
        }
    }
}

impl KonnectEnv for SettingsLoop {
    fn evaluate(_input: Input, _settings: NoSettings) -> Result<Answer, Refusal> {
        Ok(Answer::default())
    }
}

export_konnect_env!(SettingsLoop);
