//! A policy that imports `wasi:cli/environment`: the sealed profile must say so before it compiles anything, and the profile with
//! stub WASI must show it an empty environment.

use weir_policy_sdk::{
    KonnectEnv, NO_SETTINGS_SCHEMA, NoSettings, Policy, Refusal, env_var, export_konnect_env,
    konnect_env::{Answer, Input},
};

#[allow(missing_docs, unsafe_code, unreachable_pub, clippy::all, reason = "generated code")]
mod bindings {
    wit_bindgen::generate!({ path: "wit", world: "weir:hostile/wasi", generate_all });
}

struct WasiImporter;

impl Policy for WasiImporter {
    type Settings = NoSettings;

    fn schema() -> &'static str {
        NO_SETTINGS_SCHEMA
    }
}

impl KonnectEnv for WasiImporter {
    fn evaluate(_input: Input, _settings: NoSettings) -> Result<Answer, Refusal> {
        let seen = bindings::wasi::cli::environment::get_environment();
        Ok(Answer { env: vec![env_var("SEEN", seen.len().to_string())], ..Answer::default() })
    }
}

export_konnect_env!(WasiImporter);
