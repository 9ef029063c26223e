//! What has to be the same before and after, whichever paths are listed.

use serde_json::{Map, Value};

use crate::plan::ChildKind;

/// Parts of an object that make it the one it is, and the operator's.
const FIXED: [&str; 15] = [
    "/apiVersion",
    "/kind",
    "/metadata/name",
    "/metadata/namespace",
    "/metadata/uid",
    "/metadata/generateName",
    "/metadata/resourceVersion",
    "/metadata/generation",
    "/metadata/creationTimestamp",
    "/metadata/deletionTimestamp",
    "/metadata/managedFields",
    "/metadata/ownerReferences",
    "/metadata/finalizers",
    "/spec/selector",
    "/status",
];
/// Maps some keys of which are the operator's: by them children are found, and told apart.
pub(super) const KEYED: [&str; 4] =
    ["/metadata/labels", "/metadata/annotations", "/spec/template/metadata/labels", "/spec/template/metadata/annotations"];
/// Those of them that objects without pods have.
pub(super) const OF_ALL: [&str; 2] = ["/metadata/labels", "/metadata/annotations"];
/// Domains of keys that are the operator's or Kong's operator's.
const DOMAINS: [&str; 3] = ["weir.dev", "gateway-operator.konghq.com", "konghq.com"];

/// The first of them that differs.
pub(super) fn changed(before: &Value, after: &Value) -> Option<String> {
    let fixed = FIXED.iter().find(|path| before.pointer(path) != after.pointer(path));
    fixed.map(|path| (*path).to_owned()).or_else(|| KEYED.iter().find_map(|path| key(path, before, after)))
}

fn key(path: &str, before: &Value, after: &Value) -> Option<String> {
    let empty = Map::new();
    let map = |object: &Value| object.pointer(path).and_then(Value::as_object).cloned().unwrap_or_else(|| empty.clone());
    let (before, after) = (map(before), map(after));
    let differs = before.keys().chain(after.keys()).find(|key| is_ours(key) && before.get(*key) != after.get(*key));
    differs.map(|key| format!("{path}/{}", key.replace('~', "~0").replace('/', "~1")))
}

/// Kinds that hooks are asked about.
pub(super) const KINDS: [ChildKind; 4] =
    [ChildKind::Service, ChildKind::Deployment, ChildKind::HorizontalPodAutoscaler, ChildKind::PodDisruptionBudget];

/// The kind of an object, where it is one of them.
pub(super) fn kind(api_version: &str, kind: &str) -> Option<ChildKind> {
    KINDS.into_iter().find(|known| known.api() == (api_version, kind))
}

/// Takes away the maps that were only there to be added to.
pub(super) fn without_empty(object: &mut Value) {
    for place in KEYED {
        let Some((parent, key)) = place.rsplit_once('/') else { continue };
        if let Some(Value::Object(parent)) = object.pointer_mut(parent)
            && parent.get(key).is_some_and(is_empty)
        {
            parent.remove(key);
        }
    }
}

fn is_ours(key: &str) -> bool {
    key == weir_api::keys::APP || key.split_once('/').is_some_and(|(domain, _)| DOMAINS.contains(&domain))
}

/// The first path of `wanted` whose value did not survive being read as its type.
pub(super) fn lost(wanted: &Value, read: &Value) -> Option<String> {
    let inside = |part: String, found: Option<String>| found.map(|path| format!("/{part}{path}"));
    match (wanted, read) {
        (Value::Object(wanted), Value::Object(read)) => wanted.iter().find_map(|(key, value)| {
            let part = || key.replace('~', "~0").replace('/', "~1");
            match read.get(key) {
                Some(there) => inside(part(), lost(value, there)),
                // Left out because it is empty, which is the same.
                None if is_empty(value) => None,
                None => Some(format!("/{}", part())),
            }
        }),
        (Value::Array(wanted), Value::Array(read)) if wanted.len() == read.len() => {
            wanted.iter().zip(read).enumerate().find_map(|(at, (value, there))| inside(at.to_string(), lost(value, there)))
        }
        (wanted, read) if wanted == read || (is_empty(wanted) && is_empty(read)) => None,
        (_, _) => Some(String::new()),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
