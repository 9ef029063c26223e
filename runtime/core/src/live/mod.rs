//! Comparing what we want with what is there.

pub mod defaulted;
mod missing;
pub mod owned;

pub use self::missing::{Missing, missing};

use serde::{Serialize, Serializer};
use serde_json::Value;
use weir_api::{keys, quantity};

use crate::{hash, plan::Object};

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
/// live object is compared with what we want. `answered` is an [`answer_digest`].
#[must_use]
pub fn needs_write(wanted: &Value, live: &Value, answered: Option<&str>) -> bool {
    let applied = |v: &Value| v.pointer("/metadata/annotations").and_then(|a| a.get(keys::APPLIED)).cloned();
    if applied(wanted) != applied(live) {
        return true;
    }
    match answered {
        Some(answered) => answered != answer_digest(wanted, live),
        None => !covers(live, wanted),
    }
}

/// Digest of the values an object has at the paths of what was sent: what the shell remembers of the server's answer to an apply. Values at
/// other paths are somebody else's. The UID and the resource version make an apply conditional; they are no values of ours.
#[must_use]
pub fn answer_digest(sent: &Value, answer: &Value) -> String {
    hash::digest_json(&AtPaths { sent, answer, depth: Depth::Object })
}

/// What of `answer` stands at the paths of `sent`, written out without a tree in between.
struct AtPaths<'a> {
    sent: &'a Value,
    answer: &'a Value,
    depth: Depth,
}

/// How deep in the object: only its own metadata has fields that are left out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Object,
    Metadata,
    Deeper,
}

impl Serialize for AtPaths<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.sent {
            Value::Object(map) => serializer.collect_map(map.iter().filter_map(|(key, sent)| {
                let depth = match (self.depth, key.as_str()) {
                    (Depth::Metadata, "uid" | "resourceVersion") => return None,
                    (Depth::Object, "metadata") => Depth::Metadata,
                    (Depth::Object | Depth::Metadata | Depth::Deeper, _) => Depth::Deeper,
                };
                Some((key, AtPaths { sent, answer: self.answer.get(key).unwrap_or(&Value::Null), depth }))
            })),
            Value::Array(items) => serializer.collect_seq(items.iter().enumerate().map(|(index, sent)| {
                let answer = element(self.answer, sent, index).unwrap_or(&Value::Null);
                AtPaths { sent, answer, depth: Depth::Deeper }
            })),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => self.answer.serialize(serializer),
        }
    }
}

/// Whether `live` has everything that `wanted` says; more is allowed. Quantities compare by value.
#[must_use]
pub fn covers(live: &Value, wanted: &Value) -> bool {
    covers_in(live, wanted, false)
}

fn covers_in(live: &Value, wanted: &Value, quantities: bool) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => wanted.iter().all(|(key, value)| match live.get(key) {
            Some(found) => covers_in(found, value, quantities || has_quantities(key)),
            None => is_empty(value),
        }),
        (Value::Array(_), Value::Array(items)) => {
            items.iter().enumerate().all(|(index, item)| element(live, item, index).is_some_and(|found| covers_in(found, item, quantities)))
        }
        (Value::String(a), Value::String(b)) => same_text(a, b, quantities),
        (a, b) => a == b,
    }
}

/// Fields below which texts are quantities, which the server writes in its own way. Elsewhere `1` and `1000m` are different words.
const QUANTITIES: [&str; 6] = ["limits", "requests", "sizeLimit", "divisor", "averageValue", "target"];

fn has_quantities(key: &str) -> bool {
    QUANTITIES.contains(&key)
}

fn same_text(a: &str, b: &str, quantities: bool) -> bool {
    a == b || (quantities && matches!((quantity::parse(a), quantity::parse(b)), (Some(a), Some(b)) if a == b))
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
        let live = json!({"spec": {"replicas": 2, "extra": true, "limits": {"cpu": "1"}, "list": [{"name": "b", "v": 2}, {"name": "a", "v": 1, "w": 0}]}});
        assert!(covers(&live, &json!({"spec": {"limits": {"cpu": "1000m"}, "list": [{"name": "a", "v": 1}]}})));
        assert!(!covers(&live, &json!({"spec": {"list": [{"name": "a", "v": 2}]}})));
        assert!(!covers(&live, &json!({"spec": {"missing": 1}})));
        assert!(covers(&live, &json!({"spec": {"missing": {}}})));
    }

    #[test]
    fn an_answer_is_remembered_at_the_paths_of_what_was_sent() {
        let sent = json!({
            "metadata": {"name": "d", "uid": "u", "resourceVersion": "3"},
            "spec": {"uid": "a field of this name", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}], "args": ["x"]},
        });
        let mut again = sent.clone();
        again["metadata"] = json!({"name": "d"});
        let live = json!({
            "metadata": {"name": "d", "uid": "u", "resourceVersion": "9", "labels": {"of": "others"}},
            "spec": {"uid": "a field of this name", "args": ["x"],
                "env": [{"name": "INJECTED", "value": "0"}, {"name": "B", "value": "2"}, {"name": "A", "value": "1"}]},
        });
        let answered = answer_digest(&sent, &live);
        assert_eq!(answered, answer_digest(&again, &live), "what makes an apply conditional is no value of ours");
        let changed = |path: &str, value: Value| {
            let mut live = live.clone();
            *live.pointer_mut(path).unwrap() = value;
            answer_digest(&again, &live) != answered
        };
        assert!(!changed("/metadata/resourceVersion", json!("10")));
        assert!(!changed("/metadata/labels/of", json!("somebody")));
        assert!(!changed("/spec/env/0/value", json!("3")));
        assert!(changed("/spec/env/1/value", json!("3")));
        assert!(changed("/spec/env", json!([{"name": "A", "value": "1"}])), "an element of ours is gone");
        assert!(changed("/spec/args", json!([])));
        assert!(changed("/spec/uid", json!("another")));
    }

    #[test]
    fn a_webhooks_change_is_accepted_once_answered() {
        let wanted = json!({"metadata": {"annotations": {"weir.dev/applied": "h"}}, "spec": {"replicas": 2}});
        let changed = json!({"metadata": {"annotations": {"weir.dev/applied": "h"}}, "spec": {"replicas": 3, "webhook": 1}});
        assert!(needs_write(&wanted, &changed, None));
        let answered = answer_digest(&wanted, &changed);
        assert!(!needs_write(&wanted, &changed, Some(&answered)));
        let drifted = json!({"metadata": {"annotations": {"weir.dev/applied": "h"}}, "spec": {"replicas": 9}});
        assert!(needs_write(&wanted, &drifted, Some(&answered)));
    }
}
