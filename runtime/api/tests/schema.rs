//! Our CRDs against the schemas Kong Operator serves, path by path.
//!
//! The fixtures are facts about its CRDs (types, bounds, defaults, counts of rules), without a word of its text. Below
//! `podTemplateSpec` neither side is expanded: that is Kubernetes' own type.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Map, Value, json};
use weir_api::crds;

/// What is compared at each path, beside whether it is required and how many rules it has.
const ATTRIBUTES: [&str; 17] = [
    "type",
    "format",
    "default",
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
];

/// Where ours is meant to differ: kind, path, attribute, why.
const MEANT: [(&str, &str, &str, &str); 1] = [(
    "KongPluginInstallation",
    "spec",
    "required",
    "the reference lets an installation without a spec into the store, where one typed list call of any namespace would fail on it",
)];

type Paths = BTreeMap<String, Map<String, Value>>;

fn fixture(file: &str) -> Value {
    let path = format!("{}/../../tests/fixtures/schema/{file}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn crd(kind: &str) -> CustomResourceDefinition {
    crds::all().into_iter().find(|crd| crd.spec.names.kind == kind).unwrap()
}

fn schema(crd: &CustomResourceDefinition) -> Value {
    serde_json::to_value(crd.spec.versions[0].schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap()).unwrap()
}

fn rules(node: &Value) -> usize {
    node.get("x-kubernetes-validations").map_or(0, |rules| rules.as_array().unwrap().len())
}

/// Numbers without a difference between `0` and `0.0`.
fn plain(value: &Value) -> Value {
    match value.as_f64() {
        Some(number) => json!(number),
        None => value.clone(),
    }
}

fn walk(node: &Value, path: &str, required: bool, paths: &mut Paths) {
    let known = |key: &str| {
        ATTRIBUTES.contains(&key)
            || ["properties", "items", "additionalProperties", "required", "description", "x-kubernetes-validations"].contains(&key)
    };
    if let Some(unknown) = node.as_object().unwrap().keys().find(|key| !known(key)) {
        panic!("{path}: {unknown} is not compared");
    }
    if !path.is_empty() {
        let mut found: Map<String, Value> =
            ATTRIBUTES.iter().filter_map(|name| Some(((*name).to_owned(), plain(node.get(*name)?)))).collect();
        if required {
            found.insert("required".into(), json!(true));
        }
        if rules(node) > 0 {
            found.insert("rules".into(), plain(&json!(rules(node))));
        }
        paths.insert(path.to_owned(), found);
    }
    if path.ends_with(".podTemplateSpec") {
        return;
    }
    let required: Vec<&str> =
        node.get("required").into_iter().flat_map(|list| list.as_array().unwrap()).filter_map(Value::as_str).collect();
    for (name, field) in node.get("properties").into_iter().flat_map(|fields| fields.as_object().unwrap()) {
        let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        walk(field, &below, required.contains(&name.as_str()), paths);
    }
    for (child, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
        if let Some(child) = node.get(child) {
            walk(child, &format!("{path}{mark}"), false, paths);
        }
    }
}

fn meant(kind: &str, path: &str, attribute: &str) -> bool {
    MEANT.iter().any(|(k, p, a, _)| (*k, *p, *a) == (kind, path, attribute))
}

fn differences(kind: &str, version: &str, file: &str) -> Vec<String> {
    let (crd, fixture) = (crd(kind), fixture(file));
    let (ours, reference) = (serde_json::to_value(&crd).unwrap(), &fixture["versions"][version]);
    let served = &ours["spec"]["versions"][0];
    let mut wrong = Vec::new();
    let mut same = |what: &str, ours: &Value, reference: &Value| {
        if ours != reference {
            wrong.push(format!("{what}: {ours} instead of {reference}"));
        }
    };
    assert_eq!(crd.spec.versions.len(), 1);
    same("group", &ours["spec"]["group"], &fixture["group"]);
    same("names", &ours["spec"]["names"], &fixture["names"]);
    same("scope", &ours["spec"]["scope"], &fixture["scope"]);
    same("version", &served["name"], &json!(version));
    for name in ["served", "storage", "subresources"] {
        same(name, &served[name], &reference[name]);
    }
    same("printer columns", &served["additionalPrinterColumns"], &reference["printerColumns"]);
    same("rules of the object", &json!(rules(&schema(&crd))), &reference["rootRules"]);

    let mut found = Paths::new();
    walk(&schema(&crd), "", false, &mut found);
    let expected = reference["paths"].as_object().unwrap();
    for (path, wanted) in expected {
        let Some(found) = found.get(path) else {
            wrong.push(format!("{path}: missing"));
            continue;
        };
        let wanted: Map<String, Value> =
            wanted.as_object().unwrap().iter().filter(|(key, _)| *key != "note").map(|(key, value)| (key.clone(), plain(value))).collect();
        for key in found.keys().chain(wanted.keys().filter(|key| !found.contains_key(*key))) {
            if found.get(key) != wanted.get(key) && !meant(kind, path, key) {
                wrong.push(format!("{path}: {key} is {:?} instead of {:?}", found.get(key), wanted.get(key)));
            }
        }
    }
    wrong.extend(found.keys().filter(|path| !expected.contains_key(*path)).map(|path| format!("{path}: not in the reference")));
    for (k, path, attribute, _) in MEANT {
        let differs = found.get(path).and_then(|found| found.get(attribute)) != expected.get(path).and_then(|wanted| wanted.get(attribute));
        if k == kind && !differs {
            wrong.push(format!("{path}: {attribute} is the same; remove it from MEANT"));
        }
    }
    wrong
}

#[test]
fn data_plane_is_the_reference() {
    assert_eq!(differences("DataPlane", "v1beta1", "dataplanes"), Vec::<String>::new());
}

#[test]
fn plugin_installation_is_the_reference() {
    assert_eq!(differences("KongPluginInstallation", "v1alpha1", "kongplugininstallations"), Vec::<String>::new());
}

#[test]
fn files_are_named_by_group_and_plural() {
    let names: Vec<String> = crds::all().iter().map(crds::file_name).collect();
    assert_eq!(
        names,
        [
            "gateway-operator.konghq.com_dataplanes.yaml",
            "gateway-operator.konghq.com_konnectextensions.yaml",
            "gateway-operator.konghq.com_kongplugininstallations.yaml",
            "weir.dev_reconcilepolicies.yaml"
        ]
    );
    assert_eq!(crds::all(), crds::all());
}

/// Every node of every schema with its path and its parent's required fields.
fn every(node: &Value, path: &str, visit: &mut impl FnMut(&str, &Value)) {
    visit(path, node);
    for (name, field) in node.get("properties").into_iter().flat_map(|fields| fields.as_object().unwrap()) {
        every(field, &format!("{path}.{name}"), visit);
    }
    for (child, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
        if let Some(child) = node.get(child) {
            every(child, &format!("{path}{mark}"), visit);
        }
    }
}

#[test]
fn schemas_are_structural() {
    for crd in crds::all() {
        every(&schema(&crd), "", &mut |path, node| {
            for word in ["nullable", "title", "anyOf", "oneOf", "allOf", "not", "$ref", "const", "uniqueItems"] {
                assert!(node.get(word).is_none(), "{path}: {word}");
            }
            let typed = node.get("type").is_some() || node.get("x-kubernetes-int-or-string") == Some(&json!(true));
            assert!(typed, "{path}: no type");
            let format = node.get("format").and_then(Value::as_str).unwrap_or("int32");
            assert!(["int32", "int64", "date-time"].contains(&format), "{path}: format {format}");
            for key in node.get("x-kubernetes-list-map-keys").into_iter().flat_map(|keys| keys.as_array().unwrap()) {
                let item = &node["items"];
                let required = item["required"].as_array().is_some_and(|required| required.contains(key));
                assert!(required || item["properties"][key.as_str().unwrap()].get("default").is_some(), "{path}: key {key} may be absent");
            }
            for name in node.get("required").into_iter().flat_map(|names| names.as_array().unwrap()) {
                assert!(node["properties"].get(name.as_str().unwrap()).is_some(), "{path}: {name} is required but unknown");
            }
        });
    }
}

#[test]
fn everything_of_ours_is_described() {
    for crd in crds::all() {
        every(&schema(&crd), "", &mut |path, node| {
            let kubernetes = [".podTemplateSpec.", ".metrics[]", ".behavior.", ".namespaceSelector.", ".selector."]
                .iter()
                .any(|part| path.contains(part));
            let named = !path.ends_with(']') && !path.ends_with('}') || path.ends_with("conditions[]");
            assert!(kubernetes || !named || node.get("description").is_some(), "{path} has no description");
            assert!(!kubernetes || node.get("description").is_none(), "{path} repeats Kubernetes' own documentation");
        });
    }
}

#[test]
fn a_client_side_apply_can_keep_its_copy() {
    for crd in crds::all() {
        assert!(serde_json::to_vec(&crd).unwrap().len() < 200 * 1024, "{}", crds::file_name(&crd));
    }
}

#[test]
fn lists_of_the_pod_template_merge_as_in_a_deployment() {
    let schema = schema(&crd("DataPlane"));
    let pod =
        &schema["properties"]["spec"]["properties"]["deployment"]["properties"]["podTemplateSpec"]["properties"]["spec"]["properties"];
    let container = &pod["containers"]["items"]["properties"];
    for (list, keys) in [
        (&pod["containers"], json!(["name"])),
        (&pod["volumes"], json!(["name"])),
        (&pod["topologySpreadConstraints"], json!(["topologyKey", "whenUnsatisfiable"])),
        (&container["env"], json!(["name"])),
        (&container["ports"], json!(["containerPort", "protocol"])),
        (&container["volumeMounts"], json!(["mountPath"])),
    ] {
        assert_eq!((&list["x-kubernetes-list-type"], &list["x-kubernetes-list-map-keys"]), (&json!("map"), &keys));
    }
    assert_eq!(pod["tolerations"]["x-kubernetes-list-type"], "atomic");
    assert_eq!(pod["nodeSelector"]["x-kubernetes-map-type"], "atomic");
    assert_eq!(container["ports"]["items"]["properties"]["protocol"]["default"], "TCP");
    assert!(container["resources"]["properties"]["limits"]["additionalProperties"]["pattern"].is_string());
    let probe = &container["readinessProbe"]["properties"]["httpGet"]["properties"]["port"];
    assert_eq!(*probe, json!({"x-kubernetes-int-or-string": true}));
}
