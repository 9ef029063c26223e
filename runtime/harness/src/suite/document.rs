//! A suite as it is written. Unknown fields are errors: a misspelt expectation would never fail.

use std::{collections::BTreeMap, path::PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use weir_core::policy::SlotName;

use crate::record::OperatorFacts;

/// Tests of policies. Either `cases`, or one case whose `given`, `steps` and `expect` stand in the document itself.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicyTest {
    /// Version of this format.
    #[serde(rename = "apiVersion")]
    pub api_version: ApiVersion,
    /// What the document is.
    pub kind: Kind,
    /// What the tests are about.
    pub metadata: Metadata,
    /// Components by slot. A slot that is not here has the built-in policy.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, ComponentSchema>")]
    pub policies: BTreeMap<SlotName, Component>,
    /// Settings by slot.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Value>")]
    pub settings: BTreeMap<SlotName, Value>,
    /// What one call may use; the operator's own limits where nothing is said.
    #[serde(default)]
    pub limits: Option<Limits>,
    /// Time of one call, milliseconds: a short form of `limits.timeout`.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// A question to this slot alone, instead of manifests.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub slot: Option<SlotName>,
    /// What every case is given unless it says otherwise.
    #[serde(default)]
    pub given: Given,
    /// Further passes after the first one.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// What has to come of it. Makes the document one case.
    #[serde(default)]
    pub expect: Option<Expect>,
    /// Cases.
    #[serde(default)]
    pub cases: Option<Vec<CaseDocument>>,
    /// Invariants that do not hold for these cases, each with the reason.
    #[serde(default)]
    pub except: BTreeMap<Invariant, String>,
}

/// One case of a suite.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CaseDocument {
    /// What has to hold, in a few words. One of its kind in the suite.
    pub name: String,
    /// Why the case is there.
    #[serde(default)]
    pub description: Option<String>,
    /// Components by slot, beside those of the suite.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, ComponentSchema>")]
    pub policies: BTreeMap<SlotName, Component>,
    /// Settings by slot: they replace those of the suite for that slot.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Value>")]
    pub settings: BTreeMap<SlotName, Value>,
    /// What one call may use.
    #[serde(default)]
    pub limits: Option<Limits>,
    /// A question to this slot alone, instead of manifests.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub slot: Option<SlotName>,
    /// What the case is given.
    #[serde(default)]
    pub given: Given,
    /// Further passes after the first one.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// What has to come of it.
    pub expect: Expect,
    /// Invariants that do not hold here, each with the reason.
    #[serde(default)]
    pub except: BTreeMap<Invariant, String>,
}

/// Version of the format.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
pub enum ApiVersion {
    /// The first one.
    #[serde(rename = "test.weir.dev/v1alpha1")]
    V1alpha1,
}

/// Kind of the document.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
pub enum Kind {
    /// Tests of policies.
    PolicyTest,
}

/// What the tests are about.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Metadata {
    /// Name of the suite.
    pub name: String,
    /// Why it is there.
    #[serde(default)]
    pub description: Option<String>,
}

/// Where a component comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "Value")]
pub enum Component {
    /// The one that ships inside of the operator.
    Builtin,
    /// A file, relative to the suite.
    File(PathBuf),
    /// An artifact of a registry.
    Ref(String),
    /// `NAME.wasm` in the directory of `--components`.
    Name(String),
}

/// The same as JSON has it.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum ComponentSchema {
    /// `NAME.wasm` in the directory of `--components`.
    Name(String),
    /// Exactly one of its fields.
    From(ComponentFields),
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ComponentFields {
    /// A file, relative to the suite.
    file: Option<PathBuf>,
    /// An artifact of a registry: `registry/repository:tag`, better with `@sha256:…`.
    #[serde(rename = "ref")]
    reference: Option<String>,
    /// The one that ships inside of the operator: `{}`.
    builtin: Option<Empty>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Empty {}

impl TryFrom<Value> for Component {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        if let Value::String(name) = value {
            return Ok(Self::Name(name));
        }
        let fields: ComponentFields = serde_json::from_value(value).map_err(|error| error.to_string())?;
        match fields {
            ComponentFields { file: Some(file), reference: None, builtin: None } => Ok(Self::File(file)),
            ComponentFields { file: None, reference: Some(reference), builtin: None } => Ok(Self::Ref(reference)),
            ComponentFields { file: None, reference: None, builtin: Some(Empty {}) } => Ok(Self::Builtin),
            ComponentFields { .. } => Err("a component has exactly one of file, ref and builtin".into()),
        }
    }
}

/// What one call may use, in the words of a ReconcilePolicy.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// `1ms` to `10s`; the operator's default is `200ms`.
    #[serde(default)]
    pub timeout: Option<String>,
    /// `1Mi` to `64Mi`; the operator's default is `32Mi`.
    #[serde(default)]
    pub memory: Option<String>,
}

/// What a pass is given. Paths are relative to the suite and stay below the folder that the suite is in, or below a folder above it that has
/// the manifests of a project.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Given {
    /// Manifests: files or folders. A case without any has the folder `input/`, if it is there.
    #[serde(default)]
    pub manifests: Vec<PathBuf>,
    /// Manifests that stand in the suite itself.
    #[serde(default)]
    pub objects: Vec<Value>,
    /// What is in the cluster: files or folders. A case without any has the folder `observed/`, if it is there.
    #[serde(default)]
    pub observed: Vec<PathBuf>,
    /// What is in the cluster, in the suite itself.
    #[serde(default)]
    pub observed_objects: Vec<Value>,
    /// The question, for a case with `slot`: the input of the slot as JSON has it.
    #[serde(default)]
    pub input: Option<Value>,
    /// A file with the question. A case without any has `input/input.yaml`, if it is there.
    #[serde(default)]
    pub input_file: Option<PathBuf>,
    /// The time of the pass (RFC 3339).
    #[serde(default)]
    pub now: Option<String>,
    /// Whether images below Kong 3.0.0 are refused; the default is `true`.
    #[serde(default)]
    pub validate_images: Option<bool>,
    /// What `spec.image` of installations leads to: by reference, files or folders.
    #[serde(default)]
    pub artifacts: BTreeMap<String, PathBuf>,
    /// Whether DataPlanes use installations of other namespaces without a ReferenceGrant.
    #[serde(default)]
    pub allow_cross_namespace_plugins: Option<bool>,
    /// Name of the cluster, as policies see it.
    #[serde(default)]
    pub cluster_name: Option<String>,
    /// Labels of the cluster, as policies see them.
    #[serde(default)]
    pub cluster_labels: BTreeMap<String, String>,
    /// What an operator knew about itself when a case was recorded.
    #[serde(default)]
    pub operator: Option<OperatorFacts>,
}

/// A further pass: it meets what the one before it left behind.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// What the step is about.
    #[serde(default)]
    pub name: Option<String>,
    /// Manifests that are applied before the pass, and what else changes.
    #[serde(default)]
    pub given: Given,
    /// Objects that are deleted before the pass: `Kind name` or `Kind namespace/name`.
    #[serde(default)]
    pub delete: Vec<String>,
    /// What others change in the cluster before the pass.
    #[serde(default)]
    pub observe: Vec<Observe>,
    /// Settings by slot, from here on.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Value>")]
    pub settings: BTreeMap<SlotName, Value>,
    /// Components by slot, from here on.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, ComponentSchema>")]
    pub policies: BTreeMap<SlotName, Component>,
    /// What has to come of it.
    pub expect: Expect,
}

/// A change that somebody else makes to an object in the cluster.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Observe {
    /// `Kind name` or `Kind namespace/name`.
    pub object: String,
    /// Merged into it; `null` removes a field.
    pub merge: Value,
}

/// What has to come of a pass, or of a question.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expect {
    /// How asking the policies ends: of several the worst. Without it, and without `exit`, every policy has to answer.
    #[serde(default)]
    pub outcome: Option<Ending>,
    /// Exit code that `weir plan` would have. Not looked at for a question.
    #[serde(default)]
    pub exit: Option<u8>,
    /// Objects that have to be written.
    #[serde(default)]
    pub objects: Vec<ExpectObject>,
    /// What must not be written: a kind, or a kind with a name.
    #[serde(default)]
    #[schemars(with = "Vec<AbsentSchema>")]
    pub none: Vec<Absent>,
    /// Conditions.
    #[serde(default)]
    pub conditions: Vec<ExpectCondition>,
    /// Codes of findings that have to be there.
    #[serde(default)]
    pub findings: Vec<String>,
    /// Codes of findings that must not be there.
    #[serde(default)]
    pub no_findings: Vec<String>,
    /// Texts that have to occur in findings, conditions, or what a refusal says.
    #[serde(default)]
    pub messages: Vec<String>,
    /// What is deleted, all of it: `Kind name`.
    #[serde(default)]
    pub deletions: Vec<String>,
    /// Children of Kong's operator that are taken over, all of them: `Kind name`.
    #[serde(default)]
    pub takeovers: Vec<String>,
    /// Reasons of events that have to be there.
    #[serde(default)]
    pub events: Vec<String>,
    /// Environment of the proxy container: a value, or null for "is not there".
    #[serde(default)]
    pub env: BTreeMap<String, Option<String>>,
    /// A part of the answer to a question.
    #[serde(default)]
    pub answer: Option<Value>,
    /// JSON pointers that the answer to a question does not have.
    #[serde(default)]
    pub lacks: Vec<String>,
    /// Code of the refusal of a question.
    #[serde(default)]
    pub code: Option<String>,
    /// Texts that the policy has to log.
    #[serde(default)]
    pub logs: Vec<String>,
    /// The policy has to refuse its settings, with these texts in what it says. Nothing is asked then.
    #[serde(default)]
    pub settings_refused: Option<Vec<String>>,
    /// Whether the whole output has to be that of the snapshot. The default is `true` for a document of one case, else `false`.
    #[serde(default)]
    pub snapshot: Option<bool>,
}

/// Objects that have to be written: found by kind and name.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpectObject {
    /// Kind.
    pub kind: String,
    /// Name. Without it the first one of the kind is looked at.
    #[serde(default)]
    pub name: Option<String>,
    /// A part of it: lists of things with a name by name, quantities by value.
    #[serde(default)]
    pub has: Value,
    /// JSON pointers that it does not have.
    #[serde(default)]
    pub lacks: Vec<String>,
    /// How many there have to be of that kind, that name and with what it `has`.
    #[serde(default)]
    pub count: Option<usize>,
}

/// What must not be written.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub struct Absent {
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum AbsentSchema {
    /// A kind.
    Kind(String),
    /// A kind and a name.
    Object(AbsentFields),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AbsentFields {
    kind: String,
    name: Option<String>,
}

impl TryFrom<Value> for Absent {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        if let Value::String(kind) = value {
            return Ok(Self { kind, name: None });
        }
        let AbsentFields { kind, name } = serde_json::from_value(value).map_err(|error| error.to_string())?;
        Ok(Self { kind, name })
    }
}

/// A condition of an object of the pass.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpectCondition {
    /// Type.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False`, `Unknown`, or `Absent`.
    pub status: String,
    /// Reason.
    #[serde(default)]
    pub reason: Option<String>,
    /// A part of the message.
    #[serde(default)]
    pub message: Option<String>,
    /// Name of the DataPlane or installation; the first one when absent.
    #[serde(default)]
    pub object: Option<String>,
}

/// How asking ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Ending {
    /// With an answer.
    #[serde(alias = "accepted", alias = "answered")]
    Accepted,
    /// With a refusal.
    #[serde(alias = "refused")]
    Refused,
    /// Out of time.
    #[serde(alias = "timeout", alias = "deadline")]
    Deadline,
    /// Out of memory.
    #[serde(alias = "memory")]
    Memory,
    /// With a trap.
    #[serde(alias = "trap")]
    Trap,
    /// It could not be asked.
    #[serde(alias = "unavailable")]
    Unavailable,
    /// With an answer that breaks the rules.
    #[serde(alias = "badOutput")]
    BadOutput,
    /// It is no component for the slot.
    #[serde(alias = "incompatible")]
    Incompatible,
}

/// What holds for every case without being asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Invariant {
    /// The same again gives the same.
    Deterministic,
    /// A second pass over what the first one left writes nothing.
    Settles,
    /// What is written fits its schema, has a name that can be one, and stands in the namespace of its owner.
    Valid,
    /// No call runs out of time or memory, unless that is expected.
    Budget,
}
