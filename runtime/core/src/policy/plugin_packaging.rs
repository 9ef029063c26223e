//! Slot plugin-packaging: what a plugin artifact contains and where its files go. Contract: `wit/plugin-packaging.wit`.

mod check;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::{Context, EnvVar, Finding, Pairs, Slot, SlotName};

pub use check::{
    MAX_LUA_PACKAGE_PATH, MAX_NAME, MAX_PLUGINS, MAX_PRIORITY, MAX_TARGET, MAX_VERSION, MIN_PRIORITY, REQUIRED, RESERVED_NAMES, is_name,
};

/// The slot.
#[derive(Debug, Clone, Copy)]
pub struct PluginPackaging;

/// A file of the artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// Relative, slash separated, normal.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// `sha256:…`.
    pub digest: String,
    /// Content of small UTF-8 files.
    pub text: Option<String>,
}

/// The question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// The object is the installation.
    pub context: Context,
    /// As written by the user.
    pub reference: String,
    /// Resolved manifest digest.
    pub digest: String,
    /// Annotations of the artifact.
    pub annotations: Pairs,
    /// Verified signers; empty means not verified.
    pub signers: Vec<String>,
    /// What the artifact contains.
    pub files: Vec<File>,
    /// Names of the plugins that Kong bundles.
    pub bundled: Vec<String>,
}

/// Where one file goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// A path of the input.
    pub source: String,
    /// Path below the plugin's folder.
    pub target: String,
}

/// One plugin of the artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plugin {
    /// Kong's name of it; see [`is_name`].
    pub name: String,
    /// Version, where the handler says one.
    pub version: Option<String>,
    /// Priority, where the handler says one.
    pub priority: Option<i64>,
    /// Its files, `handler.lua` and `schema.lua` among them.
    pub placements: Vec<Placement>,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// At least one, at most [`MAX_PLUGINS`].
    pub plugins: Vec<Plugin>,
    /// Template for KONG_LUA_PACKAGE_PATH.
    pub lua_package_path: Option<String>,
    /// Further variables of the proxy container.
    pub env: Vec<EnvVar>,
    /// For people.
    pub findings: Vec<Finding>,
}

impl Slot for PluginPackaging {
    const NAME: SlotName = SlotName::PluginPackaging;
    type Input = Input;
    type Answer = Answer;

    fn context(input: &Self::Input) -> &Context {
        &input.context
    }

    fn check(input: &Input, answer: &Answer) -> Result<(), String> {
        check::answer(input, answer)
    }
}
