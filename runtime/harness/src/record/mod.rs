//! What an operator sees of one object, as a case directory that `weir policy test` replays.
//!
//! A recording is manifests: what a user applied, what is in the cluster, and what an operator knows beside them. It is redacted first, and what
//! is expected of it is what a pass over the redacted objects gives.

pub(crate) mod facts;
mod limit;
mod redact;
mod seen;
mod settle;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};
use weir_api::manifest::Source;
use weir_core::policy::{Identity, Policies, SlotName};

pub use self::{
    facts::{Ca, CaKey, OperatorFacts},
    limit::{Folder, Limits},
    seen::{Seen, of_snapshot},
};
use crate::{
    exit::{Exit, Failure},
    pass::{self, Artifacts, Kinds, Manifests, Options, Report},
    snapshot,
};

/// Largest recording, bytes.
pub const MAX_BYTES: usize = 8 << 20;

/// A component that a recorded case needs, and its settings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Component {
    /// As a suite writes it: `{file: …}`, `{ref: …}`, or a name. None for the built-in one.
    pub source: Option<Value>,
    /// Its settings; null for none.
    pub settings: Value,
}

/// What is recorded.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    /// Name of the case.
    pub name: String,
    /// Where it comes from, for people.
    pub description: String,
    /// What users applied.
    pub desired: Vec<Value>,
    /// What is there.
    pub observed: Vec<Value>,
    /// What the pass knew beside manifests.
    pub options: Options,
    /// Components by slot.
    pub components: BTreeMap<SlotName, Component>,
    /// Further files, such as components: by name.
    pub files: BTreeMap<String, Vec<u8>>,
}

/// The files of a case directory, by path.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Makes a case directory. `policies` answer what the pass asks.
///
/// # Errors
/// A recording that is too large, or that no pass can be made over.
pub fn files(mut recording: Recording, kinds: &Kinds, policies: &Policies) -> Result<Files, Failure> {
    recording.redact();
    let size: usize = recording.desired.iter().chain(&recording.observed).map(|object| object.to_string().len()).sum();
    if size > MAX_BYTES {
        return Err(Failure::usage(format!("{}: has over {} MiB of objects", recording.name, MAX_BYTES >> 20)));
    }
    let report = settle::settle(&mut recording, kinds, policies)?;
    let internal = |error: &dyn std::fmt::Display| Failure { exit: Exit::Internal, message: error.to_string() };
    let mut all = Files::new();
    let output = serde_json::to_value(&report).map_err(|error| internal(&error))?;
    let expected = serde_saphyr::to_string(&snapshot::steady(&output, policies)).map_err(|error| internal(&error))?;
    let case = serde_saphyr::to_string(&recording.case(&report, policies)).map_err(|error| internal(&error))?;
    all.insert("case.yaml".into(), case.into_bytes());
    all.insert("expected.yaml".into(), expected.into_bytes());
    all.insert("input/manifests.yaml".into(), documents(&recording.desired).map_err(|error| internal(&error))?);
    if !recording.observed.is_empty() {
        all.insert("observed/live.yaml".into(), documents(&recording.observed).map_err(|error| internal(&error))?);
    }
    all.append(&mut recording.files);
    Ok(all)
}

fn documents(objects: &[Value]) -> Result<Vec<u8>, serde_saphyr::ser::Error> {
    let mut text = String::new();
    for object in objects {
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(object)?);
    }
    Ok(text.into_bytes())
}

impl Recording {
    fn redact(&mut self) {
        self.desired.iter_mut().chain(&mut self.observed).for_each(redact::object);
        self.desired.iter_mut().for_each(as_applied);
        for component in self.components.values_mut() {
            redact::value(&mut component.settings);
        }
        if let Some(facts) = &mut self.options.operator {
            facts.certificate_problem = facts.certificate_problem.as_deref().map(redact::text);
        }
    }

    /// What a pass reads.
    pub(crate) fn manifests(&self) -> Manifests {
        Manifests { desired: list("input", &self.desired), observed: list("observed", &self.observed) }
    }

    /// Makes the pass.
    pub(crate) fn pass(&self, kinds: &Kinds, policies: &Policies) -> Result<Report, Failure> {
        pass::pass(&self.manifests(), &Artifacts::default(), &self.options, kinds, policies)
    }

    /// The suite of one case.
    fn case(&self, report: &Report, policies: &Policies) -> Value {
        let targets = |all: &[weir_core::plan::Target]| {
            all.iter().map(|target| format!("{} {}", target.kind.api().1, target.name)).collect::<Vec<_>>()
        };
        let mut expect = Map::from_iter([("exit".to_owned(), json!(report.exit().number()))]);
        for (name, all) in [("deletions", targets(&report.deletions)), ("takeovers", targets(&report.takeovers))] {
            if !all.is_empty() {
                expect.insert(name.to_owned(), json!(all));
            }
        }
        let mut case = Map::from_iter([
            ("apiVersion".to_owned(), json!("test.weir.dev/v1alpha1")),
            ("kind".to_owned(), json!("PolicyTest")),
            ("metadata".to_owned(), json!({"name": self.name, "description": self.describe(policies)})),
            ("given".to_owned(), self.given()),
            ("expect".to_owned(), Value::Object(expect)),
            // What was met in a cluster need not be at rest: children are on their way, others wait for a word.
            ("except".to_owned(), json!({"settles": "recorded while the cluster was at work"})),
        ]);
        let sources: BTreeMap<SlotName, &Value> =
            self.components.iter().filter_map(|(slot, c)| Some((*slot, c.source.as_ref()?))).collect();
        let settings: BTreeMap<SlotName, &Value> =
            self.components.iter().filter(|(_, c)| !c.settings.is_null()).map(|(slot, c)| (*slot, &c.settings)).collect();
        for (name, value) in [("policies", filled(&sources)), ("settings", filled(&settings))] {
            case.extend(value.map(|value| (name.to_owned(), value)));
        }
        Value::Object(case)
    }

    /// Where it comes from, and who answered that a suite cannot name.
    fn describe(&self, policies: &Policies) -> String {
        let mut text = self.description.clone();
        for (slot, who) in identities(policies) {
            let named = self.components.get(&slot).is_some_and(|component| component.source.is_some());
            if !named && who.source != weir_host::wasm::BUILTIN_SOURCE {
                text.push_str(&format!(
                    " Slot {slot} was answered by {}, which is not part of the case: name its component under policies.",
                    who.source
                ));
            }
        }
        text
    }

    fn given(&self) -> Value {
        let usual = Options::default();
        let options = &self.options;
        let mut given = Map::from_iter([("now".to_owned(), json!(options.now.to_string()))]);
        let mut put = |name: &str, value: Value, differs: bool| {
            if differs {
                given.insert(name.to_owned(), value);
            }
        };
        put("validateImages", json!(options.validate_images), options.validate_images != usual.validate_images);
        let cross = options.allow_cross_namespace_plugins;
        put("allowCrossNamespacePlugins", json!(cross), cross != usual.allow_cross_namespace_plugins);
        put("clusterName", json!(options.cluster_name), !options.cluster_name.is_empty());
        put("clusterLabels", json!(options.cluster_labels), !options.cluster_labels.is_empty());
        put("operator", json!(options.operator), options.operator.is_some());
        Value::Object(given)
    }
}

/// Which policy has which slot.
pub(crate) fn identities(policies: &Policies) -> [(SlotName, &Identity); 3] {
    [
        (SlotName::KonnectEnv, policies.konnect_env.identity()),
        (SlotName::ConflictResolution, policies.conflict_resolution.identity()),
        (SlotName::PluginPackaging, policies.plugin_packaging.identity()),
    ]
}

fn filled<T: Serialize>(map: &BTreeMap<SlotName, T>) -> Option<Value> {
    (!map.is_empty()).then(|| json!(map))
}

fn list(name: &str, objects: &[Value]) -> Vec<Source> {
    if objects.is_empty() {
        return Vec::new();
    }
    vec![Source { name: name.to_owned(), text: json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string() }]
}

/// A live object as its manifest: the status is a subresource, and the version is the server's.
fn as_applied(object: &mut Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        meta.remove("resourceVersion");
    }
}
