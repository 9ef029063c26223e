//! `ReconcilePolicy`, `weir.dev/v1alpha1`: which component answers a slot, for which objects, and how a new one takes over (design
//! section 6).

#![allow(unreachable_pub, reason = "the derive makes a public copy of each struct inside a function")]
#![allow(clippy::duplicated_attributes, reason = "several columns are of one type, which the lint takes for a slip")]

mod source;
mod status;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::{
    source::{AnyObject, CaBundleRef, Keyless, OciSource, PublicKey, PullSecretRef, RemoteSource, SecretKeyRef, Source, Verifier, Verify},
    status::{Candidate, EffectiveLimits, Impact, ReconcilePolicyStatus, Revision, Shadow},
};

const SLOT_KEPT: &str = "self.slot == oldSelf.slot";
const SLOT_KEPT_MESSAGE: &str = "slot cannot change: objects would keep answers of another kind; make a new ReconcilePolicy instead";

/// Which component answers a slot, for which objects, and how a new one takes over.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "weir.dev",
    version = "v1alpha1",
    kind = "ReconcilePolicy",
    plural = "reconcilepolicies",
    shortname = "rpol",
    namespaced,
    status = "ReconcilePolicyStatus",
    derive = "Default",
    derive = "PartialEq",
    category = "weir",
    doc = "Names the component that answers a slot of the operator, and the objects it is asked about.",
    printcolumn(name = "Slot", type_ = "string", json_path = ".spec.slot"),
    printcolumn(name = "Source", type_ = "string", json_path = ".status.source"),
    printcolumn(name = "Digest", type_ = "string", json_path = ".status.active.layerDigest"),
    printcolumn(name = "Active", type_ = "string", json_path = ".status.conditions[?(@.type=='Active')].status"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type=='Ready')].status"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(SLOT_KEPT).message(SLOT_KEPT_MESSAGE))]
pub struct ReconcilePolicySpec {
    /// The question it answers. Cannot change.
    pub slot: PolicySlot,
    /// Where the component comes from: exactly one of its fields.
    pub source: Source,
    /// Settings of the component, at most 64 KiB. The component's own schema and its own check decide what they may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "source::any_object")]
    pub settings: Option<Value>,
    /// The objects it is asked about. Left out: every object of the namespaces it serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<Targets>,
    /// Of several policies for one object and slot, the highest number answers; of equal ones the oldest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 0), range(min = -1_000_000, max = 1_000_000))]
    pub priority: Option<i32>,
    /// In the operator's namespace: policies of other namespaces may take over for objects of their own. Without it they never do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_override: Option<bool>,
    /// `Enforce`: its answers are used. `Shadow`: it is asked beside the policy in force, and the differences are reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Enforce"))]
    pub mode: Option<Mode>,
    /// How a new component, or other settings, take over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Rollout>,
    /// What one question may cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<PolicyLimits>,
    /// What holds for an object while the policy fails. `KeepLast` keeps its last accepted answer; an object without one waits. `Fallback`
    /// asks the operator's built-in policy instead: it fails open, so a rule that only this policy knows does not hold meanwhile. `Block`
    /// leaves what the answer shapes as it is in the cluster. A refusal is an answer and no failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "KeepLast"))]
    pub on_failure: Option<OnFailure>,
}

/// A question of the operator that policies answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub enum PolicySlot {
    /// How Konnect settings become environment, volumes and mounts.
    #[default]
    KonnectEnv,
    /// Who wins when two parties claim one thing.
    ConflictResolution,
    /// Where the files of a plugin artifact go.
    PluginPackaging,
    /// How a rendered object is changed before it is written. Not supported by this version.
    ObjectHook,
}

/// Whether answers are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub enum Mode {
    /// They are.
    #[default]
    Enforce,
    /// They are compared with those of the policy in force.
    Shadow,
}

/// What holds while the policy fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub enum OnFailure {
    /// The last accepted answer.
    #[default]
    KeepLast,
    /// The answer of the built-in policy.
    Fallback,
    /// What is in the cluster.
    Block,
}

/// The objects a policy is asked about. Both selectors have to match.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Targets {
    /// Labels of the object's namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
    /// Labels of the object: a DataPlane; for `PluginPackaging` a KongPluginInstallation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}

/// How a new component, or other settings, take over.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rollout {
    /// `Automatic`: as soon as every check has passed. `Manual`: when annotation `weir.dev/approved-digest` names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Automatic"))]
    pub strategy: Option<Strategy>,
    /// How many former revisions are kept, compiled and ready to take over again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 3), range(min = 0, max = 10))]
    pub history_limit: Option<i32>,
    /// How often a tag is looked up again, such as `60s` or `10m`; at least `10s`, `0s` for never. A reference with a digest never is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "60s"), length(min = 1, max = 16), regex(pattern = "^(0|0s|([0-9]{1,4}h)?([0-9]{1,4}m)?([0-9]{1,5}s)?)$"))]
    pub resync: Option<String>,
}

/// Who lets a candidate take over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub enum Strategy {
    /// The checks.
    #[default]
    Automatic,
    /// A person.
    Manual,
}

/// What one question may cost.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyLimits {
    /// Time for one answer: `1ms` to `10s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "200ms"), regex(pattern = "^([1-9][0-9]{0,3}ms|[1-9]s|10s)$"))]
    pub timeout: Option<String>,
    /// Memory for one answer: `1Mi` to `64Mi`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "32Mi"), regex(pattern = "^([1-9]|[1-5][0-9]|6[0-4])Mi$"))]
    pub memory: Option<String>,
}
