//! Example of slot object-hook: every object that the operator renders carries the labels and annotations of a company, and optionally
//! labels that the DataPlane itself has.
//!
//! A label that an object has already is its owner's and stays. Pods get the labels too, where the settings say so: that is a change of the
//! pod template, so it rolls them.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use weir_policy_sdk::{
    Finding, ObjectHook, Policy, Refusal, Severity, export_object_hook, finding,
    object_hook::{Answer, Input, Operation, Patch, pointer},
    refuse,
};

/// The settings document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Settings {
    /// Labels of every object.
    pub labels: BTreeMap<String, String>,
    /// Annotations of every object.
    pub annotations: BTreeMap<String, String>,
    /// Keys of labels that are copied from the DataPlane.
    pub copy_labels: Vec<String>,
    /// Whether pods get the labels as well.
    pub pods: bool,
    /// Labels that every DataPlane must have: one without is refused.
    pub require: Vec<String>,
}

/// The policy.
#[derive(Debug, Clone, Copy)]
pub struct Labels;

impl Policy for Labels {
    type Settings = Settings;

    fn schema() -> &'static str {
        include_str!("settings.schema.json")
    }

    fn validate(settings: &Settings) -> Vec<Finding> {
        let bad = settings.labels.iter().filter(|(_, value)| !is_label_value(value));
        let message = "a label has at most 63 letters, digits, `-`, `_` and `.`, and begins and ends with a letter or digit";
        bad.map(|(key, _)| finding(Severity::Error, "InvalidLabel", format!("labels.{key}"), message)).collect()
    }
}

impl ObjectHook for Labels {
    fn evaluate(input: Input, settings: Settings) -> Result<Answer, Refusal> {
        if let Operation::Delete | Operation::Other(_) = &input.operation {
            return Ok(Answer::default());
        }
        let own = &input.context.object.labels;
        if let Some(missing) = settings.require.iter().find(|key| !own.iter().any(|(have, _)| have == *key)) {
            return Err(refuse("LabelMissing", format!("the DataPlane has no label {missing}, which every one must have: set it")));
        }
        let object: Value =
            serde_json::from_str(&input.object).map_err(|_| refuse("UnreadableObject", "the object is no JSON; update the policy"))?;
        let copied = own.iter().filter(|(key, _)| settings.copy_labels.contains(key)).cloned();
        let mut labels: BTreeMap<String, String> = copied.collect();
        labels.extend(settings.labels);
        let mut patch = missing(Patch::new(), &object, &["metadata", "labels"], &labels);
        patch = missing(patch, &object, &["metadata", "annotations"], &settings.annotations);
        if settings.pods && input.kind == "Deployment" {
            patch = missing(patch, &object, &["spec", "template", "metadata", "labels"], &labels);
        }
        Ok(patch.answer())
    }
}

/// Adds what a map of the object does not have.
fn missing(patch: Patch, object: &Value, place: &[&str], wanted: &BTreeMap<String, String>) -> Patch {
    let there = object.pointer(&pointer(place));
    let lacks = |key: &str| there.is_none_or(|map| map.get(key).is_none());
    wanted.iter().filter(|(key, _)| lacks(key)).fold(patch, |patch, (key, value)| {
        let path = pointer(&[place, &[key.as_str()]].concat());
        patch.add(path, value.as_str())
    })
}

fn is_label_value(value: &str) -> bool {
    let ends = |c: char| c.is_ascii_alphanumeric();
    let inside = |c: char| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&c);
    value.is_empty() || (value.len() <= 63 && value.starts_with(ends) && value.ends_with(ends) && value.chars().all(inside))
}

export_object_hook!(Labels);
