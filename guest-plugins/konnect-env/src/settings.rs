//! What users can change about the default policy.

use std::collections::BTreeMap;

use serde::Deserialize;
use weir_policy_sdk::{Finding, Severity, cut, finding, is_env_name};

use crate::OWN_VARIABLES;

/// JSON Schema of [`Settings`].
pub const SCHEMA: &str = include_str!("settings.schema.json");

/// Most entries of `extraEnv`; the host takes 256 variables in all.
const MAX_EXTRA: usize = 128;
/// Longest value, bytes; the host's limit.
const MAX_VALUE: usize = 32 * 1024;

/// The settings document.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Settings {
    /// Further variables of the proxy container.
    pub extra_env: BTreeMap<String, String>,
    /// Whether Kong reports Vitals; Konnect has its own analytics.
    pub vitals: bool,
    /// Whether a data plane fetches changes instead of whole configurations.
    pub incremental_sync: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { extra_env: BTreeMap::new(), vitals: false, incremental_sync: true }
    }
}

impl Settings {
    /// What is wrong with them. `at` is the path of the settings in a larger document, ending in a dot, or empty.
    #[must_use]
    pub fn validate(&self, at: &str) -> Vec<Finding> {
        let mut findings = Vec::new();
        if self.extra_env.len() > MAX_EXTRA {
            let message = format!("{} variables, at most {MAX_EXTRA} are allowed", self.extra_env.len());
            return vec![finding(Severity::Error, "TooManyVariables", format!("{at}extraEnv"), message)];
        }
        for (name, value) in &self.extra_env {
            let problem = if !is_env_name(name) {
                Some(("InvalidName", "not a C identifier: letters, digits and `_`, no digit first"))
            } else if OWN_VARIABLES.contains(&name.as_str()) {
                Some(("ReservedName", "this policy sets it from the Konnect extension; remove it here"))
            } else if value.len() > MAX_VALUE || value.contains('\0') {
                Some(("InvalidValue", "the value is over 32 KiB or has a NUL"))
            } else {
                None
            };
            if let Some((code, message)) = problem {
                findings.push(finding(Severity::Error, code, format!("{at}extraEnv.{}", cut(name, 80)), message));
            }
        }
        // The host takes 64 findings; the rest shows when these are mended.
        findings.truncate(32);
        findings
    }
}
