//! Write a policy for Weir in Rust.
//!
//! A policy is a WebAssembly component that answers one question of the operator, a *slot*. The contract is the WIT package
//! `weir:policy`; this crate is that contract as Rust, with the parts every policy needs: settings from JSON, findings,
//! refusals, log lines, and a panic message in the operator's log instead of a bare trap.
//!
//! A policy is one type. It says what its settings are ([`Policy`]) and answers a slot ([`KonnectEnv`],
//! [`ConflictResolution`], [`PluginPackaging`], [`ObjectHook`]); a macro exports it.
//!
//! ```
//! use serde::Deserialize;
//! use weir_policy_sdk::{KonnectEnv, Policy, Refusal, env_var, export_konnect_env, konnect_env, refuse};
//!
//! #[derive(Debug, Default, Deserialize)]
//! #[serde(default, deny_unknown_fields, rename_all = "camelCase")]
//! struct Settings {
//!     log_level: Option<String>,
//! }
//!
//! struct Example;
//!
//! impl Policy for Example {
//!     type Settings = Settings;
//!
//!     fn schema() -> &'static str {
//!         r#"{"type": "object", "additionalProperties": false, "properties": {"logLevel": {"type": "string"}}}"#
//!     }
//! }
//!
//! impl KonnectEnv for Example {
//!     fn evaluate(input: konnect_env::Input, settings: Settings) -> Result<konnect_env::Answer, Refusal> {
//!         if input.endpoints.telemetry.is_empty() {
//!             return Err(refuse("MissingEndpoint", "the control plane has no telemetry endpoint yet; wait until it has one"));
//!         }
//!         let level = settings.log_level.unwrap_or_else(|| "notice".to_owned());
//!         Ok(konnect_env::Answer { env: vec![env_var("KONG_LOG_LEVEL", level)], ..Default::default() })
//!     }
//! }
//!
//! export_konnect_env!(Example);
//! ```
//!
//! Such a crate has `crate-type = ["cdylib", "rlib"]`, is built for `wasm32-unknown-unknown` and then turned into a component
//! (`cargo xtask guests`, or `wasm-tools component new`). A component may serve several slots: [`export_policy`].
//!
//! The logic stays ordinary Rust: natively the macros export nothing, log lines go to standard error, and [`sample`] has inputs
//! to test with.

pub mod bindings;
pub mod conflict_resolution;
mod finding;
pub mod konnect_env;
pub mod log;
mod macros;
pub mod object_hook;
pub mod plugin_packaging;
mod policy;
pub mod sample;

pub use self::{
    bindings::base::weir::policy::types::{Context, EnvVar, Finding, ObjectMeta, Refusal, Severity},
    conflict_resolution::ConflictResolution,
    finding::{MAX_MESSAGE, cut, env_var, finding, is_env_name, refuse},
    konnect_env::KonnectEnv,
    object_hook::ObjectHook,
    plugin_packaging::PluginPackaging,
    policy::{INVALID_SETTINGS, NO_SETTINGS_SCHEMA, NoSettings, Policy, parse_settings},
};

/// String pairs of the contract: labels, annotations, extensions.
pub type Pairs = Vec<(String, String)>;
