//! Annotation `weir.dev/artifact`: what is in force, for machines. The status schema is Kong's and has no room for it.

use serde::{Deserialize, Serialize};
use weir_api::{keys, plugin_installation::KongPluginInstallation};

use super::content::Content;

/// What the annotation says. No time is in it: what has not changed is not written.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Report {
    /// `spec.image` when what is in force was fetched.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// Digest of the manifest in force.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// Hash of the content in force.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub content: String,
    /// Plugins in force.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plugins: Vec<PluginReport>,
    /// DataPlanes that may use it.
    pub consumers: usize,
    /// What was seen and is not in force: waiting, refused or failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Candidate>,
}

/// One plugin in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginReport {
    /// Kong's name of it.
    pub name: String,
    /// Version, where the handler says one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Priority, where the handler says one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
}

/// Something newer that is not in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// `spec.image`.
    pub image: String,
    /// Digest of its manifest.
    pub digest: String,
}

/// The report after a pass; none when there is nothing to say.
pub(super) fn build(content: Option<&Content>, consumers: usize, candidate: Option<Candidate>) -> Option<Report> {
    let Some(content) = content else {
        return candidate.map(|candidate| Report { consumers, candidate: Some(candidate), ..Report::default() });
    };
    let plugins = content.plugins.iter();
    Some(Report {
        image: content.image.clone(),
        digest: content.digest.clone(),
        content: content.hash.clone(),
        plugins: plugins.map(|p| PluginReport { name: p.name.clone(), version: p.version.clone(), priority: p.priority }).collect(),
        consumers,
        candidate,
    })
}

impl Report {
    /// The annotation's text.
    #[must_use]
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Digest of what was seen of the image that the spec names and is not in force. It only says what is fetched, by digest, from the
/// repository the spec names: who can write it can write the spec.
pub(super) fn candidate(installation: &KongPluginInstallation) -> Option<String> {
    let text = super::annotation(installation, keys::ARTIFACT)?;
    let candidate = serde_json::from_str::<Report>(text).ok()?.candidate?;
    (candidate.image == installation.spec.image).then_some(candidate.digest)
}
