//! Comparing what we want with what is there.

use serde_json::Value;
use weir_api::{keys, quantity};

use crate::plan::Object;

/// Stamps an object with the hash of what is sent (annotation `weir.dev/applied`) and returns the hash.
pub fn stamp(object: &mut Object) -> String {
    if let Some(annotations) = object.meta_mut().annotations.as_mut() {
        annotations.remove(keys::APPLIED);
    }
    let applied = object.digest();
    object.meta_mut().annotations.get_or_insert_default().insert(keys::APPLIED.into(), applied.clone());
    applied
}

/// Whether a write is needed: the hash of what we send differs from the one on the live object, or somebody changed a value at one of
/// our paths since the server's answer to our last apply (design section 4, "Write only on change"). Without a remembered answer the
/// live object is compared with what we want.
#[must_use]
pub fn needs_write(wanted: &Value, live: &Value, answered: Option<&Value>) -> bool {
    let applied = |v: &Value| v.pointer("/metadata/annotations").and_then(|a| a.get(keys::APPLIED)).cloned();
    if applied(wanted) != applied(live) {
        return true;
    }
    match answered {
        Some(answer) => !same_at_paths(wanted, answer, live),
        None => !covers(live, wanted),
    }
}

/// Whether `a` and `b` agree at every path that `shape` has.
fn same_at_paths(shape: &Value, a: &Value, b: &Value) -> bool {
    match shape {
        Value::Object(map) => map.iter().all(|(key, inner)| {
            let (left, right) = (a.get(key).unwrap_or(&Value::Null), b.get(key).unwrap_or(&Value::Null));
            same_at_paths(inner, left, right)
        }),
        Value::Array(items) => items.iter().enumerate().all(|(index, inner)| match (element(a, inner, index), element(b, inner, index)) {
            (Some(left), Some(right)) => same_at_paths(inner, left, right),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => a == b,
    }
}

/// Whether `live` has everything that `wanted` says; more is allowed. Quantities compare by value.
#[must_use]
pub fn covers(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => wanted.iter().all(|(key, value)| match live.get(key) {
            Some(found) => covers(found, value),
            None => is_empty(value),
        }),
        (Value::Array(_), Value::Array(items)) => {
            items.iter().enumerate().all(|(index, item)| element(live, item, index).is_some_and(|found| covers(found, item)))
        }
        (Value::String(a), Value::String(b)) => a == b || matches!((quantity::parse(a), quantity::parse(b)), (Some(a), Some(b)) if a == b),
        (a, b) => a == b,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.values().all(is_empty),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Keys by which lists of objects are merged by the API server, most specific first.
const MERGE_KEYS: [&[&str]; 6] = [&["containerPort", "protocol"], &["port", "protocol"], &["mountPath"], &["uid"], &["name"], &["type"]];

/// The element of `list` that stands for `item`: by merge key where the item has one, else by position.
fn element<'a>(list: &'a Value, item: &Value, index: usize) -> Option<&'a Value> {
    let items = list.as_array()?;
    let keys = MERGE_KEYS.iter().find(|keys| keys.first().is_some_and(|key| item.get(key).is_some()));
    match keys {
        Some(keys) => items.iter().find(|found| keys.iter().all(|key| item.get(key).is_none() || item.get(key) == found.get(key))),
        None => items.get(index),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn more_is_allowed_and_quantities_compare_by_value() {
        let live =
            json!({"spec": {"replicas": 2, "extra": true, "cpu": "1", "list": [{"name": "b", "v": 2}, {"name": "a", "v": 1, "w": 0}]}});
        assert!(covers(&live, &json!({"spec": {"cpu": "1000m", "list": [{"name": "a", "v": 1}]}})));
        assert!(!covers(&live, &json!({"spec": {"list": [{"name": "a", "v": 2}]}})));
        assert!(!covers(&live, &json!({"spec": {"missing": 1}})));
        assert!(covers(&live, &json!({"spec": {"missing": {}}})));
    }

    #[test]
    fn a_webhooks_change_is_accepted_once_answered() {
        let wanted = json!({"metadata": {"annotations": {"weir.dev/applied": "h"}}, "spec": {"replicas": 2}});
        let changed = json!({"metadata": {"annotations": {"weir.dev/applied": "h"}}, "spec": {"replicas": 3, "webhook": 1}});
        assert!(needs_write(&wanted, &changed, None));
        assert!(!needs_write(&wanted, &changed, Some(&changed)));
        let drifted = json!({"metadata": {"annotations": {"weir.dev/applied": "h"}}, "spec": {"replicas": 9}});
        assert!(needs_write(&wanted, &drifted, Some(&changed)));
    }
}
