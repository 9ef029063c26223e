//! Lists of a pod whose elements have a name: the API server takes none twice, and says so only when everything is sent.

use std::collections::BTreeSet;

use serde_json::Value;

const POD: &str = "/spec/template/spec";
/// The container that a DataPlane is.
const PROXY: &str = "proxy";

/// What is wrong with the lists of a Deployment's pod template.
pub(super) fn problem(object: &Value) -> Option<String> {
    let pod = object.pointer(POD)?;
    let containers = || list(pod, "containers").iter().chain(list(pod, "initContainers"));
    if !list(pod, "containers").iter().any(|container| text(container, "name") == PROXY) {
        return Some(format!("path {POD}/containers: container {PROXY:?} is not in it any more"));
    }
    twice(containers(), "name").map(|name| format!("path {POD}/containers: container {name:?} is there twice")).or_else(|| {
        let volumes = list(pod, "volumes");
        let known: BTreeSet<&str> = volumes.iter().map(|volume| text(volume, "name")).collect();
        let double = twice(volumes.iter(), "name").map(|name| format!("path {POD}/volumes: volume {name:?} is there twice"));
        double.or_else(|| containers().find_map(|container| of_container(container, &known)))
    })
}

fn of_container(container: &Value, volumes: &BTreeSet<&str>) -> Option<String> {
    let name = text(container, "name");
    let (env, mounts) = (list(container, "env"), list(container, "volumeMounts"));
    let double = |field: &str, what: &str| format!("path {POD}/containers: {what} {field:?} of container {name:?} is there twice");
    let absent = mounts.iter().map(|mount| text(mount, "name")).find(|volume| !volumes.contains(volume));
    twice(env.iter(), "name")
        .map(|variable| double(variable, "variable"))
        .or_else(|| twice(mounts.iter(), "mountPath").map(|path| double(path, "mount path")))
        .or_else(|| {
            absent.map(|volume| format!("path {POD}/containers: container {name:?} mounts volume {volume:?}, which the pod does not have"))
        })
}

fn list<'a>(of: &'a Value, key: &str) -> &'a [Value] {
    of.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn text<'a>(of: &'a Value, key: &str) -> &'a str {
    of.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn twice<'a>(all: impl Iterator<Item = &'a Value>, key: &str) -> Option<&'a str> {
    let mut seen = BTreeSet::new();
    all.map(|element| text(element, key)).find(|name| !seen.insert(*name))
}
