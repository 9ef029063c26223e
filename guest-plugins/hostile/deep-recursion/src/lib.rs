//! A policy that exhausts the stack.

use weir_policy_sdk::{
    KonnectEnv, NO_SETTINGS_SCHEMA, NoSettings, Policy, Refusal, export_konnect_env,
    konnect_env::{Answer, Input},
};

struct DeepRecursion;

impl Policy for DeepRecursion {
    type Settings = NoSettings;

    fn schema() -> &'static str {
        NO_SETTINGS_SCHEMA
    }
}

impl KonnectEnv for DeepRecursion {
    fn evaluate(input: Input, _settings: NoSettings) -> Result<Answer, Refusal> {
        let depth = down(input.image.len() as u64);
        Err(weir_policy_sdk::refuse("NeverReached", depth.to_string()))
    }
}

export_konnect_env!(DeepRecursion);

/// Not in tail position, and with a step back that is neither associative nor commutative: the optimiser cannot make a loop of it.
/// A frame is small, so that the stack of calls ends before the stack in linear memory.
#[inline(never)]
#[allow(unconditional_recursion, reason = "this is what the guest is for")]
fn down(n: u64) -> u64 {
    if n == u64::MAX {
        return n;
    }
    down(n.wrapping_add(1)).wrapping_mul(3).rotate_left(5) ^ n
}
