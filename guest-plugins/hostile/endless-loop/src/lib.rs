//! A policy that never answers.

use weir_policy_sdk::{
    KonnectEnv, NO_SETTINGS_SCHEMA, NoSettings, Policy, Refusal, export_konnect_env,
    konnect_env::{Answer, Input},
};

struct EndlessLoop;

impl Policy for EndlessLoop {
    type Settings = NoSettings;

    fn schema() -> &'static str {
        NO_SETTINGS_SCHEMA
    }
}

impl KonnectEnv for EndlessLoop {
    fn evaluate(_input: Input, _settings: NoSettings) -> Result<Answer, Refusal> {
        loop {
            std::hint::black_box(());
        }
    }
}

export_konnect_env!(EndlessLoop);
