//! What runs, what waits, and what ran before.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;

/// What became of the policy.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReconcilePolicyStatus {
    /// Generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How things stand, one entry per type. `Active` says whether a revision answers; `Ready`, `Reconciling` and `Stalled` are for tools
    /// that wait for a rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// Where the component comes from, in short: an image, `builtin`, or `remote:` and a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The revision that answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<Revision>,
    /// The revision that would take over, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Candidate>,
    /// Former revisions, the latest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10))]
    pub history: Option<Vec<Revision>>,
    /// What one question may cost, as it is in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<EffectiveLimits>,
    /// Objects it answers for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<i32>,
    /// With mode `Shadow`: how its answers compare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shadow: Option<Shadow>,
}

/// A component with its settings.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Revision {
    /// The reference it was found under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Digest of its manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_digest: Option<String>,
    /// Digest of the component itself.
    pub layer_digest: String,
    /// Digest of the settings.
    pub settings_digest: String,
    /// Who signed it, where a signature was wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
    /// Version that the artifact says it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Digest of the signatures that were wanted of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<String>,
    /// What one question to it may cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<EffectiveLimits>,
    /// Settings it runs with, so that it can take over again. Large ones of former revisions are not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::source::any_object")]
    pub settings: Option<serde_json::Value>,
    /// When it took over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// Why it does not answer any more; empty for the active one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A revision on its way.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    /// The reference it was found under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Digest of its manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_digest: Option<String>,
    /// Digest of the component itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer_digest: Option<String>,
    /// Digest of the settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings_digest: Option<String>,
    /// Who signed it, where a signature was wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
    /// With strategy `Manual`: what annotation `weir.dev/approved-digest` has to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve: Option<String>,
    /// What it would change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impact: Option<Impact>,
}

/// What a candidate would change, found by asking it about objects that are there.
#[derive(KubeSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Impact {
    /// Questions it was asked.
    pub evaluated: i32,
    /// Objects that it would answer for.
    pub matching: i32,
    /// Answers that differ from those in force.
    pub changed: i32,
    /// Answers that are a refusal.
    pub refused: i32,
    /// Questions without an answer.
    pub failed: i32,
    /// Objects whose pods would roll.
    pub rolls: i32,
}

/// What one question may cost, as it is in force.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EffectiveLimits {
    /// Time for one answer.
    pub timeout: String,
    /// Memory for one answer.
    pub memory: String,
}

/// How the answers of a shadow compare with those in force.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Shadow {
    /// Questions it was asked since it took this form.
    pub evaluated: i64,
    /// Answers that differed.
    pub differing: i64,
    /// Questions without an answer.
    pub failed: i64,
    /// Questions it was not asked, because it was busy.
    pub dropped: i64,
}
