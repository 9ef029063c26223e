//! The manifests against the API server's own schemas, those of our CRDs among them, by kubeconform.

use std::{collections::BTreeSet, path::Path, process::Command};

use libtest_mimic::Trial;
use serde_json::{Value, json};
use weir_testkit::binaries;

use super::{
    Bed, bed,
    helm::{text, values},
};
use crate::kube::{
    api::{self, JSON},
    install,
};

/// Kinds of the Prometheus operator and of cert-manager, whose schemas nobody here serves.
const FOREIGN: &str = "ServiceMonitor,PrometheusRule,Certificate";

pub(super) fn tests() -> Vec<Trial> {
    vec![bed("conforms to the schemas of the API server", conforms)]
}

async fn conforms(bed: Bed) {
    // Our kinds are served as soon as their CRDs are there.
    for crd in weir_api::crds::all() {
        let crd = install::typed(&crd, "apiextensions.k8s.io/v1", "CustomResourceDefinition");
        api::apply(&bed.cluster.client, "", &crd, "test", true).await.map_err(String::from).unwrap();
    }
    install::established(&bed.cluster.client).await;
    let dir = bed.cluster.run_dir.join("schemas");
    std::fs::create_dir_all(&dir).unwrap();
    let kubeconform = binaries::kubeconform(&mut |line| eprintln!("     {line}")).unwrap();
    let mut known = BTreeSet::new();
    for file in values() {
        let all = bed.helm.template(&file, &["--include-crds"]);
        for object in &all {
            let (version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
            if !FOREIGN.split(',').any(|foreign| foreign == kind) && known.insert((version.to_owned(), kind.to_owned())) {
                write_schema(&bed, &dir, version, kind).await;
            }
        }
        let manifests = dir.join("manifests.yaml");
        let stream: Vec<String> = all.iter().map(|object| serde_json::to_string(object).unwrap()).collect();
        std::fs::write(&manifests, stream.join("\n---\n")).unwrap();
        assert_eq!(conform(&kubeconform, &dir, &manifests), Ok(()), "{}", file.display());
    }
    // It would have noticed.
    let wrong = dir.join("wrong.yaml");
    let object = json!({"apiVersion": "weir.dev/v1alpha1", "kind": "ReconcilePolicy", "metadata": {"name": "a"},
                        "spec": {"slot": "KonnectEnv", "source": {"builtin": {}}, "modus": "Shadow"}});
    std::fs::write(&wrong, object.to_string()).unwrap();
    let said = conform(&kubeconform, &dir, &wrong).unwrap_err();
    assert!(said.contains("modus"), "{said}");
}

fn conform(kubeconform: &Path, dir: &Path, manifests: &Path) -> Result<(), String> {
    let schemas = format!("{}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json", text(dir));
    let output = Command::new(kubeconform)
        .args(["-strict", "-summary", "-verbose", "-skip", FOREIGN, "-schema-location", &schemas])
        .arg(manifests)
        .output()
        .unwrap();
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
    }
}

/// The schema of a kind where kubeconform looks for it, closed against fields that it does not name.
async fn write_schema(bed: &Bed, dir: &Path, version: &str, kind: &str) {
    let (group, short) = version.split_once('/').unwrap_or(("", version));
    let place = if group.is_empty() { format!("api/{short}") } else { format!("apis/{group}/{short}") };
    let path = format!("/openapi/v3/{place}");
    let document = api::call(&bed.cluster.client, "GET", &path, JSON, &Value::Null).await;
    let mut schemas = document.map_err(String::from).unwrap()["components"]["schemas"].take();
    let is_it = |schema: &Value| {
        let kinds = schema["x-kubernetes-group-version-kind"].as_array();
        kinds.is_some_and(|kinds| kinds.iter().any(|k| k["kind"] == kind && k["version"] == short && k["group"] == group))
    };
    let all = schemas.as_object_mut().unwrap();
    let name = all.iter().find(|(_, schema)| is_it(schema)).map(|(name, _)| name.clone());
    let name = name.unwrap_or_else(|| panic!("{version} {kind} is not served"));
    all.values_mut().for_each(close);
    let schema = json!({"$ref": format!("#/components/schemas/{name}"), "components": {"schemas": schemas}});
    // As kubeconform spells it: the first label of the group, then the version.
    let suffix = if group.is_empty() { short.to_owned() } else { format!("{}-{short}", group.split('.').next().unwrap()) };
    std::fs::write(dir.join(format!("{}-{suffix}.json", kind.to_lowercase())), schema.to_string()).unwrap();
}

fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let open = fields.get("x-kubernetes-preserve-unknown-fields").is_some_and(|open| open == true);
            // A property may itself be called `properties`: then its value is a schema, and has a type.
            let object = fields.get("properties").is_some_and(|properties| properties.get("type").is_none_or(Value::is_object));
            fields.values_mut().for_each(close);
            if object && !open && !fields.contains_key("additionalProperties") && fields.get("type").is_none_or(|t| t == "object") {
                fields.insert("additionalProperties".into(), json!(false));
            }
        }
        Value::Array(list) => list.iter_mut().for_each(close),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
