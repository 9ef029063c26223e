//! A policy that panics; its message reaches the log, the host sees `unreachable`.

use weir_policy_sdk::{
    KonnectEnv, NO_SETTINGS_SCHEMA, NoSettings, Policy, Refusal, export_konnect_env,
    konnect_env::{Answer, Input},
};

struct Trap;

impl Policy for Trap {
    type Settings = NoSettings;

    fn schema() -> &'static str {
        NO_SETTINGS_SCHEMA
    }
}

impl KonnectEnv for Trap {
    #[allow(clippy::panic, reason = "this is what the guest is for")]
    fn evaluate(input: Input, _settings: NoSettings) -> Result<Answer, Refusal> {
        panic!("on purpose, about {}", input.context.object.name)
    }
}

export_konnect_env!(Trap);
