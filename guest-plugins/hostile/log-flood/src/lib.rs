//! A policy that writes 20,000 log lines, far over what the host keeps, and then answers well.

use weir_policy_sdk::{
    KonnectEnv, NO_SETTINGS_SCHEMA, NoSettings, Policy, Refusal, export_konnect_env,
    konnect_env::{Answer, Input},
};

struct LogFlood;

impl Policy for LogFlood {
    type Settings = NoSettings;

    fn schema() -> &'static str {
        NO_SETTINGS_SCHEMA
    }
}

impl KonnectEnv for LogFlood {
    fn evaluate(_input: Input, _settings: NoSettings) -> Result<Answer, Refusal> {
        for line in 0..20_000_u32 {
            weir_policy_sdk::log::info(&format!("line {line} {}", "x".repeat(200)));
        }
        Ok(Answer { env: vec![weir_policy_sdk::env_var("KONG_ROLE", "data_plane")], ..Answer::default() })
    }
}

export_konnect_env!(LogFlood);
