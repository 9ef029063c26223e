//! What users can change: which files, which names, how much.

use serde::Deserialize;
use weir_policy_sdk::{Finding, Severity, cut, finding};

use crate::{glob, name};

/// JSON Schema of [`Settings`].
pub const SCHEMA: &str = include_str!("settings.schema.json");

/// Lua, and what Lua modules commonly read.
const ALLOWED: [&str; 8] = ["**/*.lua", "**/*.json", "**/*.yaml", "**/*.yml", "**/*.proto", "**/*.html", "**/*.txt", "**/*.pem"];

/// What repositories of plugins have besides the plugin: documents, rockspecs, tests in busted's layout, and hidden files.
const IGNORED: [&str; 13] = [
    "**/README*",
    "**/LICENSE*",
    "**/LICENCE*",
    "**/COPYING*",
    "**/NOTICE*",
    "**/CHANGELOG*",
    "**/*.md",
    "**/*.rst",
    "**/*.rockspec",
    "**/spec/**",
    "**/*_spec.lua",
    "**/.*",
    "**/.*/**",
];

/// Bytes of a ConfigMap.
const MAX_BYTES: u64 = 1024 * 1024;
/// Most entries of a list: every file is compared with every pattern.
const MAX_ENTRIES: usize = 64;
/// Most findings about the settings; the host takes 64.
const MAX_FINDINGS: usize = 32;

/// The settings document.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Settings {
    /// Patterns of paths below a plugin's folder.
    pub allowed_files: Vec<String>,
    /// Patterns of paths in the artifact; they count first.
    pub ignored_files: Vec<String>,
    /// How names begin.
    pub name_prefix: NamePrefix,
    /// Most bytes of all placed files together.
    pub max_bytes: u64,
    /// Whether a plugin may have the name of a bundled one.
    pub allow_bundled_names: bool,
}

/// How names of plugins begin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct NamePrefix {
    /// With one of these; none means anything.
    pub require: Vec<String>,
    /// With none of these.
    pub forbid: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            allowed_files: ALLOWED.map(str::to_owned).into(),
            ignored_files: IGNORED.map(str::to_owned).into(),
            name_prefix: NamePrefix::default(),
            max_bytes: MAX_BYTES,
            allow_bundled_names: true,
        }
    }
}

impl Settings {
    /// What is wrong with them.
    #[must_use]
    pub fn validate(&self) -> Vec<Finding> {
        let pattern = "not a pattern: a relative path of names with `*` and `?`, and of `**` for any number of folders, at most 128 bytes";
        let prefix = "no name begins with it: at most 120 letters, digits, `_` and `-`, a letter or digit first";
        let mut findings = Vec::new();
        for (field, entries) in [("allowedFiles", &self.allowed_files), ("ignoredFiles", &self.ignored_files)] {
            list(&mut findings, field, entries, glob::is_pattern, ("InvalidPattern", pattern));
        }
        for (field, entries) in [("namePrefix.require", &self.name_prefix.require), ("namePrefix.forbid", &self.name_prefix.forbid)] {
            list(&mut findings, field, entries, name::is_well_formed, ("InvalidPrefix", prefix));
        }
        if self.max_bytes == 0 {
            let message = "no plugin fits into 0 bytes; leave it out for 1 MiB, or give the size of the largest plugin";
            findings.push(finding(Severity::Error, "InvalidSize", "maxBytes", message));
        }
        findings.truncate(MAX_FINDINGS);
        findings
    }

    pub(crate) fn ignores(&self, path: &str) -> bool {
        self.ignored_files.iter().any(|pattern| glob::matches(pattern, path))
    }

    pub(crate) fn allows(&self, target: &str) -> bool {
        self.allowed_files.iter().any(|pattern| glob::matches(pattern, target))
    }
}

/// Checks the entries of a list, and how many there are.
fn list(findings: &mut Vec<Finding>, field: &str, entries: &[String], good: fn(&str) -> bool, (code, message): (&str, &str)) {
    if entries.len() > MAX_ENTRIES {
        let message = format!("{} entries, at most {MAX_ENTRIES} are allowed", entries.len());
        findings.push(finding(Severity::Error, "TooManyEntries", field, message));
        return;
    }
    let wrong = entries.iter().enumerate().filter(|(_, entry)| !good(entry));
    findings.extend(wrong.map(|(at, entry)| {
        let message = format!("{:?} is {message}", cut(entry, 80));
        finding(Severity::Error, code, format!("{field}[{at}]"), message)
    }));
}
