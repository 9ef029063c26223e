//! Slot plugin-packaging: what a plugin artifact contains and where its files go. Contract: `wit/plugin-packaging.wit`.
//! Nothing asks it yet: the installation controller comes with its own issue; the contract stands so that all slots fit together.

use serde::{Deserialize, Serialize};

use super::{Context, EnvVar, Finding, Pairs, Slot, SlotName, limits};

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
    /// Kong's name of it.
    pub name: String,
    /// Version, where the handler says one.
    pub version: Option<String>,
    /// Priority, where the handler says one.
    pub priority: Option<i64>,
    /// Its files.
    pub placements: Vec<Placement>,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// At least one.
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

    fn check(input: &Input, answer: &Answer) -> Result<(), String> {
        limits::env(&answer.env)?;
        limits::findings(&answer.findings)?;
        if answer.plugins.is_empty() {
            return Err("no plugin; an artifact without one has to be refused".into());
        }
        limits::count("plugins", answer.plugins.len(), limits::MAX_VOLUMES)?;
        limits::unique("plugin", answer.plugins.iter().map(|p| p.name.as_str()))?;
        for plugin in &answer.plugins {
            limits::count("placements", plugin.placements.len(), input.files.len())?;
            limits::unique("target", plugin.placements.iter().map(|p| p.target.as_str()))?;
            for placement in &plugin.placements {
                check_placement(input, placement)?;
            }
        }
        Ok(())
    }
}

fn check_placement(input: &Input, placement: &Placement) -> Result<(), String> {
    if !input.files.iter().any(|f| f.path == placement.source) {
        return Err(format!("placement of {:?}, which the artifact does not have", limits::cut(&placement.source)));
    }
    let normal = placement.target.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
    if !normal || !limits::printable(&placement.target, 512) {
        return Err(format!("target {:?} is not a relative path below the plugin", limits::cut(&placement.target)));
    }
    Ok(())
}
