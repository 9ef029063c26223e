//! What to send, given what is there.

use std::collections::BTreeSet;

use semver::Version;
use serde_json::{Value, json};
use weir_api::keys;

/// Helm's mark on what a release made from a template.
const RELEASE_NAME: &str = "meta.helm.sh/release-name";
const RELEASE_NAMESPACE: &str = "meta.helm.sh/release-namespace";
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// What becomes of one CRD.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// This is sent.
    Apply(Value),
    /// A newer Weir made it; it knows fields that this one would take away.
    Newer {
        /// That version.
        version: String,
    },
    /// Somebody else's.
    Foreign {
        /// Who.
        owner: String,
        /// Versions of ours that it does not serve.
        lacks: Vec<String>,
    },
}

/// Decides.
pub(super) fn step(live: Option<&Value>, wanted: &Value, take_over: bool) -> Step {
    let Some(live) = live else { return Step::Apply(wanted.clone()) };
    if !take_over && let Some(owner) = foreign(live) {
        return Step::Foreign { owner, lacks: lacks(live, wanted) };
    }
    match newer(live, wanted) {
        Some(version) if !take_over => Step::Newer { version },
        Some(_) | None => Step::Apply(with_versions_of(live, wanted)),
    }
}

/// Who else made it. Ours has our mark; a kind of our own group without it is from before there were marks.
pub(super) fn foreign(live: &Value) -> Option<String> {
    let annotation = |key: &str| live.pointer("/metadata/annotations")?.get(key)?.as_str();
    if let Some(release) = annotation(RELEASE_NAME) {
        return Some(format!("Helm release {}/{release}", annotation(RELEASE_NAMESPACE).unwrap_or_default()));
    }
    let own_group = live.pointer("/spec/group").and_then(Value::as_str) == Some(keys::WEIR_GROUP);
    if annotation(keys::CRDS).is_some() || own_group {
        return None;
    }
    let label = live.pointer("/metadata/labels").and_then(|labels| labels.get(MANAGED_BY)?.as_str());
    Some(label.map_or_else(|| "somebody else".to_owned(), |label| format!("{label:?} (its label {MANAGED_BY})")))
}

/// The version that made it, if that is newer than the one that made `wanted`.
fn newer(live: &Value, wanted: &Value) -> Option<String> {
    let version = |crd: &Value| crd.pointer("/metadata/annotations")?.get(keys::CRDS)?.as_str().map(str::to_owned);
    let (live, wanted) = (version(live)?, version(wanted)?);
    let (theirs, ours) = (Version::parse(&live).ok()?, Version::parse(&wanted).ok()?);
    (theirs > ours).then_some(live)
}

fn versions(crd: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let list = crd.pointer("/spec/versions").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(|version| Some((version.get("name")?.as_str()?, version)))
}

fn is(version: &Value, what: &str) -> bool {
    version.get(what).and_then(Value::as_bool) == Some(true)
}

/// Versions of ours that a CRD does not serve.
fn lacks(live: &Value, wanted: &Value) -> Vec<String> {
    let served: BTreeSet<&str> = versions(live).filter(|(_, version)| is(version, "served")).map(|(name, _)| name).collect();
    versions(wanted).map(|(name, _)| name.to_owned()).filter(|name| !served.contains(name.as_str())).collect()
}

/// What is wanted, with every version that is served or that objects are stored in. The list is one value to the API server: what is not
/// sent is gone. The conversion is not sent at all, so it stays as somebody has set it.
fn with_versions_of(live: &Value, wanted: &Value) -> Value {
    let mut object = wanted.clone();
    let ours: BTreeSet<&str> = versions(wanted).map(|(name, _)| name).collect();
    let stored: BTreeSet<&str> =
        live.pointer("/status/storedVersions").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let kept: Vec<Value> = versions(live)
        .filter(|(name, version)| !ours.contains(name) && (is(version, "served") || stored.contains(name)))
        .map(|(_, version)| version.clone())
        .collect();
    let stores_elsewhere = kept.iter().any(|version| is(version, "storage"));
    if let Some(list) = object.pointer_mut("/spec/versions").and_then(Value::as_array_mut) {
        for version in list.iter_mut().filter(|_| stores_elsewhere) {
            // Objects in that version may have fields that ours does not know.
            if let Some(version) = version.as_object_mut() {
                version.insert("storage".to_owned(), json!(false));
            }
        }
        list.extend(kept);
    }
    object
}

fn condition<'a>(live: &'a Value, type_: &str) -> Option<&'a Value> {
    live.pointer("/status/conditions")?.as_array()?.iter().find(|condition| condition.get("type").is_some_and(|t| t == type_))
}

fn status(condition: &Value) -> Option<&str> {
    condition.get("status")?.as_str()
}

/// Whether the kind is served.
pub(super) fn is_established(live: &Value) -> bool {
    condition(live, "Established").and_then(status) == Some("True")
}

/// Why its names are not accepted.
pub(super) fn refused(live: &Value) -> Option<String> {
    let names = condition(live, "NamesAccepted").filter(|names| status(names) == Some("False"))?;
    Some(names.get("message").and_then(Value::as_str).unwrap_or_default().to_owned())
}
