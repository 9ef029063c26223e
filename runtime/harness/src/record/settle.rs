//! Makes a recording give the answer that its operator gave, although values were taken out of it.
//!
//! A child carries a hash of what was sent to it. Where a value was redacted, or the seal of an answer removed, the hash of the replay is another
//! one, and a replay would write the child for that reason alone. Such a child gets the hash of the replay.

use serde_json::{Map, Value};
use weir_api::keys;
use weir_core::{dataplane::objects::deployment::TEMPLATE_HASH, live, policy::Policies};

use super::{Recording, facts::Recorded};
use crate::{
    exit::Failure,
    pass::{Kinds, Report},
};

/// Hashes of other hashes: of the template, then of the number that counts templates, then of the object.
const ROUNDS: usize = 4;
/// Annotations that are hashes of the rest.
const HASHES: [&str; 3] = [keys::APPLIED, TEMPLATE_HASH, keys::ROLLED_SPEC];
/// Annotations that follow from them: not compared, and right by themselves once the hashes are.
const FOLLOWING: [&str; 2] = [keys::DECISIONS, keys::TEMPLATE_NUMBER];

/// The pass over the recording, after hashes of redacted children were replaced.
pub(super) fn settle(recording: &mut Recording, kinds: &Kinds, policies: &Policies) -> Result<Report, Failure> {
    let mut report = recording.pass(kinds, policies)?;
    for _ in 0..ROUNDS {
        let mut replaced = Vec::new();
        for child in &mut recording.observed {
            if let Some(wanted) = report.objects.iter().find(|wanted| same(wanted, child))
                && live::covers(child, &without_hashes(wanted))
            {
                replaced.append(&mut rehash(child, wanted));
            }
        }
        if replaced.is_empty() {
            break;
        }
        // A ReplicaSet carries the hashes of its Deployment's template.
        for set in recording.observed.iter_mut().filter(|object| object.get("kind").and_then(Value::as_str) == Some("ReplicaSet")) {
            for value in annotations(set).into_iter().flat_map(Map::values_mut) {
                if let Some((_, new)) = replaced.iter().find(|(old, _)| old == value) {
                    *value = new.clone();
                }
            }
        }
        report = recording.pass(kinds, policies)?;
    }
    Ok(report)
}

fn same(a: &Value, b: &Value) -> bool {
    ["/kind", "/metadata/namespace", "/metadata/name"].iter().all(|path| a.pointer(path) == b.pointer(path))
}

fn annotations(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.pointer_mut("/metadata/annotations")?.as_object_mut()
}

fn without_hashes(wanted: &Value) -> Value {
    let mut wanted = wanted.clone();
    if let Some(annotations) = annotations(&mut wanted) {
        HASHES.iter().chain(&FOLLOWING).for_each(|key| drop(annotations.remove(*key)));
    }
    if let Some(meta) = wanted.get_mut("metadata").and_then(Value::as_object_mut) {
        meta.remove("resourceVersion");
    }
    wanted
}

/// Takes hashes and record from what is wanted. What was replaced by what.
fn rehash(child: &mut Value, wanted: &Value) -> Vec<(Value, Value)> {
    let mut replaced = Vec::new();
    let Some(mine) = annotations(child) else { return replaced };
    for key in HASHES.into_iter().chain([keys::DECISIONS]) {
        let Some(new) = wanted.pointer("/metadata/annotations").and_then(|all| all.get(key)) else { continue };
        let old = mine.insert(key.to_owned(), new.clone()).unwrap_or(Value::Null);
        if old != *new {
            replaced.push((old, new.clone()));
        }
    }
    // The server's answer was to the object with its secrets.
    let meta = child.get("metadata").and_then(|meta| serde_json::from_value(meta.clone()).ok()).unwrap_or_default();
    let mut recorded = Recorded::of(&meta);
    if recorded.answered.take().is_some() {
        if let Some(annotations) = annotations(child) {
            annotations.remove(super::facts::RECORDED);
        }
        recorded.put(child);
    }
    replaced
}
