//! What differs between two pod templates, in a few words for a condition.

use k8s_openapi::api::core::v1::{PodSpec, PodTemplateSpec};
use serde_json::Value;

use crate::{
    dataplane::{objects::proxy::CLUSTER_CERTIFICATE_VOLUME, validate::PROXY},
    live,
};

/// Parts that a message names.
const NAMED: usize = 12;

/// Names of what differs: values may be secrets that somebody wrote in the wrong place.
pub(super) fn between(from: &PodTemplateSpec, to: &PodTemplateSpec) -> String {
    let mut names = Vec::new();
    let (before, after) = (from.spec.as_ref(), to.spec.as_ref());
    compare(&mut names, "image", images(before), images(after));
    compare(&mut names, "env", env(before), env(after));
    compare(&mut names, "volume", volumes(before), volumes(after));
    compare(&mut names, "annotation", annotations(from), annotations(to));
    if names.is_empty() {
        return "other parts of the pod template".into();
    }
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let named = names.join(", ");
    if more > 0 { format!("{named} and {more} more") } else { named }
}

fn annotations(template: &PodTemplateSpec) -> Vec<(String, Value)> {
    let all = template.metadata.iter().flat_map(|m| m.annotations.iter().flatten());
    all.map(|(key, value)| (key.clone(), value.clone().into())).collect()
}

fn images(spec: Option<&PodSpec>) -> Vec<(String, Value)> {
    let all = spec.into_iter().flat_map(|s| s.containers.iter().chain(s.init_containers.iter().flatten()));
    all.map(|c| (c.name.clone(), c.image.clone().into())).collect()
}

fn env(spec: Option<&PodSpec>) -> Vec<(String, Value)> {
    let proxy = spec.and_then(|s| s.containers.iter().find(|c| c.name == PROXY));
    let vars = proxy.and_then(|c| c.env.as_ref()).into_iter().flatten();
    vars.map(|v| (v.name.clone(), serde_json::to_value(v).unwrap_or_default())).collect()
}

/// Volumes by what they mount: the server adds modes to the rest.
fn volumes(spec: Option<&PodSpec>) -> Vec<(String, Value)> {
    let all = spec.and_then(|s| s.volumes.as_ref()).into_iter().flatten();
    let sources = |v: &k8s_openapi::api::core::v1::Volume| {
        let secret = v.secret.as_ref().and_then(|s| s.secret_name.clone());
        let maps =
            v.projected.iter().flat_map(|p| p.sources.iter().flatten()).filter_map(|s| s.config_map.as_ref().map(|c| c.name.clone()));
        let map = v.config_map.as_ref().map(|c| c.name.clone());
        secret.into_iter().chain(maps).chain(map).collect::<Vec<_>>().join(",")
    };
    all.map(|v| (if v.name == CLUSTER_CERTIFICATE_VOLUME { "admin certificate".into() } else { v.name.clone() }, sources(v).into()))
        .collect()
}

fn compare(names: &mut Vec<String>, kind: &str, before: Vec<(String, Value)>, after: Vec<(String, Value)>) {
    let (before, after) =
        (before.into_iter().collect::<std::collections::BTreeMap<_, _>>(), after.into_iter().collect::<std::collections::BTreeMap<_, _>>());
    let gone = before.keys().filter(|name| !after.contains_key(*name)).map(|name| format!("{kind} {name} removed"));
    let new = after.iter().filter_map(|(name, value)| match before.get(name) {
        None => Some(format!("{kind} {name} added")),
        Some(old) if !equal(old, value) => Some(format!("{kind} {name} changed")),
        Some(_) => None,
    });
    names.extend(gone.chain(new));
}

/// What the server fills in is no difference; what is text has to be the same to the letter.
fn equal(before: &Value, after: &Value) -> bool {
    let text = |value: &Value| value.as_str().or_else(|| value.get("value")?.as_str()).unwrap_or_default().to_owned();
    text(before) == text(after) && live::defaulted::same(before, after)
}
