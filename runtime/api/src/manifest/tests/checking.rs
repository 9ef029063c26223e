//! Schemas, defaults and rules.

use super::*;

fn defaulted(spec: Value) -> Value {
    let mut object = json!({ "apiVersion": "example.org/v1", "kind": "Gateway", "metadata": { "name": "gw" }, "spec": spec });
    schemas().get("example.org/v1", "Gateway").unwrap().default(&mut object);
    object["spec"].take()
}

#[test]
fn defaults_are_those_of_the_api_server() {
    assert_eq!(defaulted(json!({})), json!({ "deployment": { "replicas": 1 } }), "defaults below a default");
    assert_eq!(defaulted(json!({ "deployment": null })), json!({ "deployment": { "replicas": 1 } }), "null is missing");
    assert_eq!(defaulted(json!({ "timeout": null, "mode": null })), json!({ "timeout": null, "deployment": { "replicas": 1 } }));
    assert_eq!(
        defaulted(json!({ "deployment": { "replicas": 3, "containers": [{ "name": "a" }, { "name": "b", "port": null }, null] } })),
        json!({ "deployment": { "replicas": 3, "containers": [{ "name": "a", "port": 80 }, { "name": "b", "port": 80 }, null] } }),
    );
    assert_eq!(defaulted(json!({ "config": { "a": null, "level": null } }))["config"], json!({ "a": null }), "unknown nulls stay");
}

#[test]
fn right_objects_pass() {
    for spec in [
        "{}",
        "{timeout: null}",
        "{timeout: 5s}",
        "{target: 5}",
        "{target: '50%'}",
        "{config: {any: [1, {x: off}]}}",
        "{share: 1.0}",
        "{mode: 'off'}",
        "{since: 2026-01-31T12:00:00Z}",
        "{ref: {id: a}}",
        "{deployment: {labels: {a.b/c: x}, containers: [{name: a}]}}",
    ] {
        assert_eq!(gateway(spec), [], "{spec}");
    }
}

#[test]
fn unknown_fields_name_the_known_ones() {
    assert_eq!(
        refused("deployment:\n  replica: 2"),
        "f:6: Gateway default/gw: spec.deployment.replica: unknown field `replica`: did you mean `replicas`?"
    );
    assert!(
        refused("deployment: {containers: [{name: a, Image: b}]}")
            .contains("spec.deployment.containers[0].Image: unknown field `Image`: did you mean `image`?")
    );
    assert!(refused("deployment: {something: 1}").contains("use one of containers, labels, replicas"));
    assert!(refused("something: 1").ends_with("remove it or correct its name"));
    let two = gateway("one: 1\nanother: 1");
    assert_eq!(two.iter().map(|problem| problem.line).collect::<Vec<_>>(), [5, 6]);
    let text = "apiVersion: example.org/v1\nkind: Gateway\nmetadata:\n  name: gw\n  label: {a: b}\nspec: {}\nextra: 1\n";
    let problems = read(&[("f", text)]).problems;
    assert!(problems[0].to_string().starts_with("f:5: Gateway default/gw: metadata.label: unknown field `label`: did you mean `labels`?"));
    assert!(problems[1].to_string().starts_with("f:7: Gateway default/gw: extra: unknown field"));
}

#[test]
fn values_are_explained() {
    let prefix = "f:5: Gateway default/gw: spec.";
    for (spec, message) in [
        ("mode: aut", "mode: `aut` is not allowed: use one of on, off, auto (did you mean `auto`?)"),
        ("timeout: 5m", "timeout: `5m` does not match the pattern ^[0-9]+s$"),
        ("timeout: 5", "timeout: expected a text or null, found an integer: quote it: \"5\""),
        ("share: 0", "share: 0 is too small: more than 0 is needed"),
        ("share: 1.5", "share: 1.5 is too large: at most 1 is allowed"),
        ("share: x", "share: expected a number, found a text"),
        ("target: 1.5", "target: expected an integer or a text, found a number: quote it as it is written"),
        ("since: yesterday", "since: `yesterday` is no time: write it like 2026-01-31T12:00:00Z"),
        ("hosts: [a, a]", "hosts: has the same element twice: remove one"),
        ("deployment: {replicas: 2147483648}", "deployment.replicas: 2147483648 is too large: at most 2147483647 is allowed"),
        ("deployment: {replicas: -1}", "deployment.replicas: -1 is too small: at least 0 is needed"),
        ("deployment: {replicas: [1]}", "deployment.replicas: expected an integer, found a list"),
        ("deployment: []", "deployment: expected a map, found a list"),
        ("deployment: {containers: [{image: x}]}", "deployment.containers[0].name: `name` is missing: add it"),
        ("deployment: {containers: [null]}", "deployment.containers[0]: expected a map, found null"),
        ("deployment: {labels: {a.b/c: 5}}", "deployment.labels[a.b/c]: expected a text, found an integer: quote it: \"5\""),
        ("ref: {id: a, name: b}", "ref: fits several forms that exclude each other: keep one of them"),
        (
            "ref: {}",
            "ref: fits none of the allowed forms: spec.ref.id: `id` is missing: add it; or spec.ref.name: `name` is missing: add it",
        ),
    ] {
        assert_eq!(refused(spec), format!("{prefix}{message}"));
    }
    assert!(
        refused("deployment: {containers: [{name: a}, {name: b}, {name: c}, {name: d}]}").contains("too many elements: at most 3 allowed")
    );
}

#[test]
fn a_missing_field_is_reported_at_its_parent() {
    let text = "apiVersion: example.org/v1\nkind: Gateway\nmetadata: {name: gw}\n";
    let problems = read(&[("f", text)]).problems;
    assert_eq!(problems[0].to_string(), "f:1: Gateway default/gw: spec: `spec` is missing: add it");
}

#[test]
fn words_of_yaml_1_1_are_explained() {
    let problems = gateway("mode: off");
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].kind, ProblemKind::Yaml11Boolean);
    assert_eq!(
        problems[0].to_string(),
        "f:5: Gateway default/gw: spec.mode: kubectl reads the unquoted `off` as a boolean: quote it: \"off\""
    );
    let named = gateway("on: 1");
    assert_eq!(named[0].kind, ProblemKind::Yaml11Boolean);
    assert!(named[0].message.ends_with("quote it: \"on\""), "{}", named[0].message);
    assert!(refused("timeout: 010").ends_with("(kubectl reads the unquoted `010` as this value): quote it: \"010\""));
    assert_eq!(gateway("mode: true")[0].kind, ProblemKind::Schema, "true is a boolean to everybody");
}

#[test]
fn rules_are_evaluated_on_creation() {
    let problems = gateway("mode: auto\ntimeout: 5s");
    assert_eq!(problems[0].kind, ProblemKind::Rule);
    assert_eq!(problems[0].to_string(), "f:4: Gateway default/gw: spec: mode and timeout exclude each other: remove one");
    assert_eq!(refused("deployment:\n  replicas: 6"), "f:6: Gateway default/gw: spec.deployment.replicas: at most 5");
}

#[test]
fn rules_are_evaluated_on_update() {
    let schemas = schemas();
    let object = |spec: Value| json!({ "apiVersion": "example.org/v1", "kind": "Gateway", "metadata": { "name": "gw", "namespace": "n" }, "spec": spec });
    let source = SourceRef { file: "f".into(), line: 7 };
    let old = object(json!({ "mode": "on" }));
    assert_eq!(schemas.check_update(&old, &object(json!({ "mode": "on", "deployment": { "replicas": 2 } })), &source), []);
    let problems = schemas.check_update(&old, &object(json!({ "mode": "auto" })), &source);
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].to_string(), "f:7: Gateway n/gw: spec: mode cannot change: delete and create");
    assert_eq!(schemas.check_update(&json!({ "kind": "X" }), &json!({ "kind": "X" }), &source), []);
}

#[test]
fn broken_crds_are_refused() {
    let broken = |schema: Value| {
        let mut crd = crd();
        crd.spec.versions[0].schema = serde_json::from_value(json!({ "openAPIV3Schema": schema })).unwrap();
        Schemas::new([&crd]).unwrap_err().to_string()
    };
    let rule = json!({ "type": "object", "properties": { "a": { "type": "array", "items": { "type": "string", "x-kubernetes-validations": [{ "rule": "self ==" }] } } } });
    assert!(broken(rule).starts_with("CRD gateways.example.org version v1: failed to compile CEL rule"));
    assert!(
        broken(json!({ "type": "object", "properties": { "a": { "type": "string", "pattern": "(" } } })).contains("gateways.example.org")
    );
    assert!(broken(Value::Null).contains("has no openAPIV3Schema"));
}
