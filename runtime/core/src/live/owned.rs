//! What our field manager owns of a live object, by `metadata.managedFields`. A pod template that is held is applied again as it is; without
//! this we would claim the server's defaults and other people's fields with it, for instance the time that `kubectl rollout restart` sets.
//!
//! An undone rollout puts a former template of ours in the place of another, and what differs is recorded as the undoer's. It counts as ours:
//! otherwise nobody would ever remove what only the former template had.

use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::PodTemplateSpec},
    apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta},
};
use serde_json::{Map, Value};
use weir_api::keys;

/// How a record of fields names annotation `weir.dev/template-hash`.
pub const TEMPLATE_HASH_FIELD: &str = "f:weir.dev/template-hash";

/// The part of a live Deployment's pod template that our applies own. None where that is not known: the object was read without its managed
/// fields, was never applied by us, or what they say is no such record.
#[must_use]
pub fn template(live: &Deployment) -> Option<PodTemplateSpec> {
    let entries = || live.metadata.managed_fields.iter().flatten();
    let (ours, others): (Vec<_>, Vec<_>) = entries().partition(|entry| is_ours(entry) || is_undoing(entry));
    if ours.iter().filter(|entry| is_ours(entry)).count() != 1 {
        return None;
    }
    let mut fields = Map::new();
    for part in ours.into_iter().filter_map(of_template) {
        merge(&mut fields, part.as_object()?);
    }
    let others: Vec<&Value> = others.into_iter().filter_map(of_template).collect();
    let template = serde_json::to_value(&live.spec.as_ref()?.template).ok()?;
    let fields = Some(fields).filter(|fields| !fields.is_empty())?;
    serde_json::from_value(extract(&template, &fields.into(), &others)?).ok()
}

/// Labels and annotations of a live object that our applies own and `built` does not have: what hooks gave it stays while nobody can ask them.
pub fn keep_metadata(live: &ObjectMeta, built: &mut ObjectMeta) {
    let ours = || live.managed_fields.iter().flatten().filter(|entry| is_ours(entry)).filter_map(|entry| entry.fields_v1.as_ref());
    for (record, from, into) in [
        ("/f:metadata/f:labels", live.labels.as_ref(), built.labels.get_or_insert_default()),
        ("/f:metadata/f:annotations", live.annotations.as_ref(), built.annotations.get_or_insert_default()),
    ] {
        let owned = |key: &str| ours().any(|fields| fields.0.pointer(record).is_some_and(|all| all.get(format!("f:{key}")).is_some()));
        // Our own records are those of this pass.
        let others = |key: &str| !key.starts_with("weir.dev/") && owned(key);
        for (key, value) in from.into_iter().flatten().filter(|(key, _)| others(key)) {
            into.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
}

/// Whether somebody who undid a rollout is recorded as the owner of what is ours: fields that only our next apply can remove have to be handed
/// back before it.
#[must_use]
pub fn is_undone(live: &Deployment) -> bool {
    live.metadata.managed_fields.iter().flatten().any(is_undoing)
}

/// Whoever wrote the hash of our template wrote the template with it: `kubectl rollout undo` replaces both, and nobody else writes the hash.
fn is_undoing(entry: &ManagedFieldsEntry) -> bool {
    let updates = entry.operation.as_deref() == Some("Update") && entry.manager.as_deref() != Some(keys::FIELD_MANAGER);
    let hash = || entry.fields_v1.as_ref()?.0.get("f:metadata")?.get("f:annotations")?.get(TEMPLATE_HASH_FIELD);
    updates && is_whole(entry) && hash().is_some()
}

fn is_whole(entry: &ManagedFieldsEntry) -> bool {
    entry.subresource.as_deref().unwrap_or_default().is_empty()
}

/// Adds the fields of one record to those of another.
pub fn merge(into: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (key, value) in from {
        match (into.get_mut(key).and_then(Value::as_object_mut), value.as_object()) {
            (Some(there), Some(more)) => merge(there, more),
            (_, _) => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

fn is_ours(entry: &ManagedFieldsEntry) -> bool {
    entry.manager.as_deref() == Some(keys::FIELD_MANAGER) && entry.operation.as_deref() == Some("Apply") && is_whole(entry)
}

fn of_template(entry: &ManagedFieldsEntry) -> Option<&Value> {
    entry.fields_v1.as_ref()?.0.get("f:spec")?.get("f:template")
}

/// What of `live` stands at the paths of `fields`. `others` are the same place in the records of other managers. None when `fields` is
/// malformed or does not fit the object.
fn extract(live: &Value, fields: &Value, others: &[&Value]) -> Option<Value> {
    let fields = fields.as_object()?;
    if !has_parts(fields) {
        // A value without recorded parts is owned whole, unless others own parts of it: then it is only ours that it is there at all. So it
        // is with `.`, which is recorded beside parts that have gone since.
        let parted = others.iter().filter_map(|other| other.as_object()).any(has_parts);
        return Some(if parted || fields.contains_key(".") { empty(live) } else { live.clone() });
    }
    match live {
        Value::Object(map) => members(map, fields, others),
        Value::Array(items) => elements(items, fields, others),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn has_parts(fields: &Map<String, Value>) -> bool {
    fields.keys().any(|key| key != ".")
}

/// The same kind of value with nothing in it.
fn empty(value: &Value) -> Value {
    match value {
        Value::Object(_) => Value::Object(Map::new()),
        Value::Array(_) => Value::Array(Vec::new()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn members(live: &Map<String, Value>, fields: &Map<String, Value>, others: &[&Value]) -> Option<Value> {
    let mut owned = Map::new();
    for (key, inner) in fields.iter().filter(|(key, _)| *key != ".") {
        let name = key.strip_prefix("f:")?;
        if let Some(value) = live.get(name) {
            owned.insert(name.to_owned(), extract(value, inner, &within(others, key))?);
        }
    }
    Some(Value::Object(owned))
}

/// Elements in the order they have in the live list: the order of containers and variables is part of the template.
fn elements(live: &[Value], fields: &Map<String, Value>, others: &[&Value]) -> Option<Value> {
    let selectors: Vec<(Selector, &String, &Value)> = fields
        .iter()
        .filter(|(key, _)| *key != ".")
        .map(|(key, inner)| Selector::parse(key).map(|selector| (selector, key, inner)))
        .collect::<Option<_>>()?;
    let mut owned = Vec::new();
    for item in live {
        let Some((selector, key, inner)) = selectors.iter().find(|(selector, _, _)| selector.matches(item)) else { continue };
        owned.push(match selector {
            Selector::Value(value) => value.clone(),
            Selector::Key(keys) => {
                let mut part = extract(item, inner, &within(others, key))?;
                // Without its keys an element is nobody.
                part.as_object_mut()?.extend(keys.clone());
                part
            }
        });
    }
    Some(Value::Array(owned))
}

fn within<'a>(others: &[&'a Value], key: &str) -> Vec<&'a Value> {
    others.iter().filter_map(|other| other.get(key)).collect()
}

/// Which element of a list is meant.
enum Selector {
    /// `k:{…}`: the one that has these values.
    Key(Map<String, Value>),
    /// `v:…`: this very value.
    Value(Value),
}

impl Selector {
    fn parse(key: &str) -> Option<Self> {
        if let Some(keys) = key.strip_prefix("k:") {
            return serde_json::from_str(keys).ok().map(Self::Key);
        }
        serde_json::from_str(key.strip_prefix("v:")?).ok().map(Self::Value)
    }

    fn matches(&self, item: &Value) -> bool {
        match self {
            Self::Key(keys) => keys.iter().all(|(name, value)| item.get(name) == Some(value)),
            Self::Value(value) => value == item,
        }
    }
}

#[cfg(test)]
mod tests;
