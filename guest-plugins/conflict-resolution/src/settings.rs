//! What users can change: the rule of each kind of conflict.

use std::collections::BTreeMap;

use serde::Deserialize;
use weir_policy_sdk::{
    Finding, Severity,
    conflict_resolution::{Conflict, SubjectKind},
    cut, finding, is_env_name,
};

/// JSON Schema of [`Settings`].
pub const SCHEMA: &str = include_str!("settings.schema.json");

/// Variables that are lists to which several parties add.
const MERGED: [&str; 2] = ["KONG_LUA_PACKAGE_PATH", "KONG_PLUGINS"];

/// Most findings about the settings; the host takes 64.
const MAX_FINDINGS: usize = 32;

/// How a conflict ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Rule {
    /// The user's claim; without one, the strongest.
    KeepUser,
    /// The strongest claim that is not the user's.
    KeepGenerated,
    /// All of them; variables only.
    Merge,
    /// The oldest; between equals the first by name.
    KeepOldest,
    /// None: somebody has to change something.
    Reject,
    /// None yet: the last accepted answer stays.
    Hold,
}

/// How a conflict about an installation ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum InstallationRule {
    /// Every gateway that claims it has it.
    #[default]
    Shared,
    /// The gateway whose claim is the oldest has it alone; between equals the first by name.
    FirstOwner,
    /// The gateways of the installation's own namespace have it.
    SameNamespace,
    /// None has it: somebody has to change something.
    Reject,
    /// None yet: the last accepted answer stays.
    Hold,
}

/// The settings document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Settings {
    /// For variables, volumes and mounts without a rule of their own; `keepUser`.
    pub default: Option<Rule>,
    /// By name, or by prefix with a trailing `*`; the exact name first, then the longest prefix.
    pub env: BTreeMap<String, Rule>,
    /// For volumes; `default`.
    pub volumes: Option<Rule>,
    /// For mount paths; `default`.
    pub mounts: Option<Rule>,
    /// For names of two installations' plugins; `keepOldest`.
    pub plugin_names: Option<Rule>,
    /// For names of bundled plugins; `keepUser`: the installation.
    pub bundled_plugins: Option<Rule>,
    /// For installations claimed by several gateways.
    pub plugin_installations: InstallationRule,
}

impl Settings {
    /// The rule for a conflict; none for an unknown kind and for an installation, which has an [`InstallationRule`].
    #[must_use]
    pub fn rule(&self, conflict: &Conflict) -> Option<Rule> {
        let default = self.default.unwrap_or(Rule::KeepUser);
        match &conflict.kind {
            SubjectKind::EnvVar => Some(self.env_rule(&conflict.subject).unwrap_or(default)),
            SubjectKind::Volume => Some(self.volumes.unwrap_or(default)),
            SubjectKind::VolumeMount => Some(self.mounts.unwrap_or(default)),
            SubjectKind::PluginName => Some(self.plugin_names.unwrap_or(Rule::KeepOldest)),
            SubjectKind::BundledPlugin => Some(self.bundled_plugins.unwrap_or(Rule::KeepUser)),
            SubjectKind::PluginInstallation | SubjectKind::Other(_) => None,
        }
    }

    fn env_rule(&self, name: &str) -> Option<Rule> {
        let prefix = || {
            let matching = self.env.iter().filter_map(|(pattern, rule)| Some((pattern.strip_suffix('*')?, *rule)));
            matching.filter(|(prefix, _)| name.starts_with(prefix)).max_by_key(|(prefix, _)| prefix.len()).map(|(_, rule)| rule)
        };
        let merged = || MERGED.contains(&name).then_some(Rule::Merge);
        self.env.get(name).copied().or_else(prefix).or_else(merged)
    }

    /// What is wrong with them.
    #[must_use]
    pub fn validate(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (field, rule) in [
            ("default", self.default),
            ("volumes", self.volumes),
            ("mounts", self.mounts),
            ("pluginNames", self.plugin_names),
            ("bundledPlugins", self.bundled_plugins),
        ] {
            if rule == Some(Rule::Merge) {
                findings.push(finding(Severity::Error, "IllegalRule", field, "merge is only possible for entries of env"));
            }
        }
        for pattern in self.env.keys().filter(|pattern| !is_pattern(pattern)) {
            let message = "not the name of a variable, nor the beginning of one followed by `*`";
            findings.push(finding(Severity::Error, "InvalidPattern", format!("env.{}", cut(pattern, 80)), message));
        }
        findings.truncate(MAX_FINDINGS);
        findings
    }
}

fn is_pattern(pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => prefix.is_empty() || is_env_name(prefix),
        None => is_env_name(pattern),
    }
}
