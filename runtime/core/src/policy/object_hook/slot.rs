//! The question and the answer of slot object-hook. Contract: `wit/0.1.1/object-hook.wit`.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::{Paths, Refused, apply, read, same};
use crate::{
    plan::{ChildKind, Object},
    policy::{Context, Finding, Slot, SlotName, limits},
};

/// The slot.
#[derive(Debug, Clone, Copy)]
pub struct ObjectHook;

/// What is about to happen to the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// It does not exist yet.
    Create,
    /// It exists.
    Patch,
    /// It is deleted.
    Delete,
    /// Nothing: somebody wants to see what would be.
    Evaluate,
}

/// The question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    /// Where and for whom: the object in it is the DataPlane.
    pub context: Context,
    /// What is about to happen.
    pub operation: Operation,
    /// `apiVersion` of the object.
    pub api_version: String,
    /// Kind of the object.
    pub kind: String,
    /// JSON of the object as it would be applied. A question that is written by hand may have the object itself here.
    #[serde(deserialize_with = "json")]
    pub object: String,
    /// JSON of the DataPlane, without status and managed fields.
    #[serde(deserialize_with = "json")]
    pub owner: String,
    /// The paths that may change.
    pub paths: Vec<String>,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// A JSON patch (RFC 6902); empty changes nothing.
    pub patch: String,
    /// For people.
    pub findings: Vec<Finding>,
}

impl Input {
    /// The question about `object`, which is rendered for the DataPlane that `context` and `owner` are of.
    #[must_use]
    pub fn new(context: Context, operation: Operation, object: &Object, owner: &str, allowed: &Paths) -> Self {
        let (api_version, kind) = object.kind().api();
        Self {
            context: Context { contract_version: SlotName::ObjectHook.contract().into(), ..context },
            operation,
            api_version: api_version.into(),
            kind: kind.into(),
            object: shown(object).to_string(),
            owner: owner.into(),
            paths: allowed.texts(object.kind()),
        }
    }

    /// The object after `patch`.
    ///
    /// # Errors
    /// Why the patch is not used.
    pub fn patched(&self, patch: &str) -> Result<Object, Refused> {
        let kind = same::kind(&self.api_version, &self.kind).ok_or_else(|| Refused::Unknown(limits::cut(&self.kind)))?;
        let malformed = |error: serde_json::Error| Refused::Invalid(limits::cut(&error.to_string()));
        let object = read(kind, serde_json::from_str(&self.object).map_err(malformed)?)?;
        apply(&object, patch, &Paths::parse(kind, &self.paths).map_err(|error| Refused::Malformed(error.to_string()))?)
    }

    /// Kind and name of the object.
    #[must_use]
    pub fn about(&self) -> String {
        let object: Value = serde_json::from_str(&self.object).unwrap_or_default();
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        format!("{} {}", limits::cut(&self.kind), limits::cut(name))
    }
}

/// The object as hooks see it: maps that they add to are there.
pub(super) fn shown(object: &Object) -> Value {
    let mut value = object.to_json();
    let places = if object.kind() == ChildKind::Deployment { same::KEYED.as_slice() } else { same::OF_ALL.as_slice() };
    for place in places {
        let Some((parent, key)) = place.rsplit_once('/') else { continue };
        let Some(Value::Object(parent)) = value.pointer_mut(parent) else { continue };
        let map = parent.entry(key).or_insert_with(|| Value::Object(Map::new()));
        if map.is_null() {
            *map = Value::Object(Map::new());
        }
    }
    value
}

impl Slot for ObjectHook {
    const NAME: SlotName = SlotName::ObjectHook;
    type Input = Input;
    type Answer = Answer;

    fn context(input: &Self::Input) -> &Context {
        &input.context
    }

    fn check(input: &Input, answer: &Answer) -> Result<(), String> {
        limits::findings(&answer.findings)?;
        input.patched(&answer.patch).map(|_| ()).map_err(|refused| refused.to_string())
    }

    /// The object that comes out: two patches that make the same of it say the same.
    fn document(input: &Input, answer: &Answer) -> Value {
        let object = input.patched(&answer.patch).map(|object| object.to_json()).unwrap_or_default();
        serde_json::json!({"object": object, "findings": answer.findings})
    }
}

/// Text that is JSON, or the JSON itself.
fn json<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::String(text) => text,
        value @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => value.to_string(),
    })
}
