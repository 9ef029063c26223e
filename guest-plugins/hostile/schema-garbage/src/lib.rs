//! A policy whose schema is not JSON; its answers are good.

use weir_policy_sdk::{
    KonnectEnv, NoSettings, Policy, Refusal, export_konnect_env,
    konnect_env::{Answer, Input},
};

struct SchemaGarbage;

impl Policy for SchemaGarbage {
    type Settings = NoSettings;

    fn schema() -> &'static str {
        "{\"type\": object, \u{0}"
    }
}

impl KonnectEnv for SchemaGarbage {
    fn evaluate(_input: Input, _settings: NoSettings) -> Result<Answer, Refusal> {
        Ok(Answer::default())
    }
}

export_konnect_env!(SchemaGarbage);
