//! A policy that answers more than anybody wants: `{"shape": …}` in the settings says how.

#![allow(unsafe_code, reason = "one string in many places is what makes an answer larger than the guest's memory")]

use serde::Deserialize;
use weir_policy_sdk::{
    EnvVar, KonnectEnv, Policy, Refusal, env_var, export_konnect_env,
    konnect_env::{Answer, Input},
};

const MANY: u32 = 700_000;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Shape {
    /// As many variables as fit into 64 MiB: in the guest each takes some 76 bytes, half of that while it is lowered.
    #[default]
    Many,
    /// 64 variables whose values are the same 8 MiB: 512 MiB for a host that copies.
    Aliased,
    /// One value of 24 MiB.
    Long,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    shape: Shape,
}

struct GiantOutput;

impl Policy for GiantOutput {
    type Settings = Settings;

    fn schema() -> &'static str {
        r#"{"type":"object","additionalProperties":false,"properties":{"shape":{"enum":["many","aliased","long"],"default":"many"}}}"#
    }
}

impl KonnectEnv for GiantOutput {
    fn evaluate(_input: Input, settings: Settings) -> Result<Answer, Refusal> {
        Ok(Answer { env: variables(settings.shape), ..Answer::default() })
    }
}

fn variables(shape: Shape) -> Vec<EnvVar> {
    match shape {
        Shape::Many => {
            let mut env = Vec::with_capacity(MANY as usize);
            env.extend((0..MANY).map(|n| env_var(format!("A{n}"), "")));
            env
        }
        Shape::Aliased => {
            let value = String::from_utf8(vec![b'x'; 8 << 20]).unwrap_or_default();
            let mut value = std::mem::ManuallyDrop::new(value);
            let (start, length) = (value.as_mut_ptr(), value.len());
            // SAFETY: none. The strings share their bytes and the clean-up after the call frees them many times over: by then the host
            // has read the answer, and this guest is here to do harm.
            (0..64).map(|n| env_var(format!("A{n}"), unsafe { String::from_raw_parts(start, length, length) })).collect()
        }
        Shape::Long => vec![env_var("A", "x".repeat(24 << 20))],
    }
}

export_konnect_env!(GiantOutput);
