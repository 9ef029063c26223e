//! Types that every slot shares; the Rust side of `wit/types.wit`.

use serde::{Deserialize, Serialize};

use super::Pairs;

/// The object a policy is asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub struct ObjectMeta {
    /// Kubernetes kind.
    pub kind: String,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Labels.
    pub labels: Pairs,
    /// Annotations, without kubectl's copy of the manifest and without Weir's own records.
    pub annotations: Pairs,
}

/// First field of every slot's input (semantics "Inputs").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub struct Context {
    /// Version of `weir:policy` the host speaks.
    pub contract_version: String,
    /// Version of the operator.
    pub operator_version: String,
    /// Name the cluster was given.
    pub cluster_name: String,
    /// Labels the cluster was given.
    pub cluster_labels: Pairs,
    /// The object.
    pub object: ObjectMeta,
    /// Labels of the object's namespace.
    pub namespace_labels: Pairs,
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know; no event.
    Info,
    /// Worth a look.
    Warning,
    /// Something does not work.
    Error,
}

/// Something a person should know (semantics "Words").
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// Upper camel case; finite per policy.
    pub code: String,
    /// Field it is about; may be empty.
    pub path: String,
    /// For a person.
    pub message: String,
}

/// A literal environment variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvVar {
    /// Name.
    pub name: String,
    /// Value.
    pub value: String,
}
