//! A policy that allocates until it gets no more.

use weir_policy_sdk::{
    KonnectEnv, NO_SETTINGS_SCHEMA, NoSettings, Policy, Refusal, export_konnect_env,
    konnect_env::{Answer, Input},
};

struct MemoryGrower;

impl Policy for MemoryGrower {
    type Settings = NoSettings;

    fn schema() -> &'static str {
        NO_SETTINGS_SCHEMA
    }
}

impl KonnectEnv for MemoryGrower {
    fn evaluate(_input: Input, _settings: NoSettings) -> Result<Answer, Refusal> {
        let mut hoard: Vec<Vec<u8>> = Vec::new();
        loop {
            // Not zero: pages that are written are pages that count.
            hoard.push(std::hint::black_box(vec![1; 1 << 20]));
        }
    }
}

export_konnect_env!(MemoryGrower);
