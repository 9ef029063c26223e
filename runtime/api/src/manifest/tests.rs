#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panicking")]

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use super::{Loaded, Problem, ProblemKind, Schemas, Source, SourceRef, load};

mod checking;
mod kong;
mod loading;

/// A kind that has one of everything.
fn crd() -> CustomResourceDefinition {
    let container = json!({
        "type": "object", "required": ["name"],
        "properties": { "name": { "type": "string" }, "image": { "type": "string" }, "port": { "type": "integer", "format": "int32", "default": 80 } },
    });
    let spec = json!({
        "type": "object", "required": ["deployment"],
        "x-kubernetes-validations": [
            { "rule": "!(has(self.mode) && has(self.timeout))", "message": "mode and timeout exclude each other: remove one" },
            { "rule": "self.deployment.replicas <= 5", "message": "at most 5", "fieldPath": ".deployment.replicas" },
            { "rule": "!has(oldSelf.mode) || (has(self.mode) && self.mode == oldSelf.mode)", "message": "mode cannot change: delete and create" },
        ],
        "properties": {
            "deployment": {
                "type": "object", "default": {},
                "properties": {
                    "replicas": { "type": "integer", "format": "int32", "minimum": 0, "default": 1 },
                    "containers": { "type": "array", "items": container, "maxItems": 3 },
                    "labels": { "type": "object", "additionalProperties": { "type": "string" } },
                },
            },
            "mode": { "type": "string", "enum": ["on", "off", "auto"] },
            "timeout": { "type": "string", "pattern": "^[0-9]+s$", "nullable": true },
            "share": { "type": "number", "minimum": 0, "exclusiveMinimum": true, "maximum": 1 },
            "target": { "x-kubernetes-int-or-string": true, "anyOf": [{ "type": "integer" }, { "type": "string" }] },
            "config": { "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": { "level": { "type": "integer" } } },
            "since": { "type": "string", "format": "date-time" },
            "hosts": { "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } },
            "ref": {
                "type": "object",
                "properties": { "id": { "type": "string" }, "name": { "type": "string" } },
                "oneOf": [{ "required": ["id"] }, { "required": ["name"] }],
            },
        },
    });
    serde_json::from_value(json!({
        "metadata": { "name": "gateways.example.org" },
        "spec": {
            "group": "example.org", "scope": "Namespaced", "names": { "kind": "Gateway", "plural": "gateways" },
            "versions": [
                { "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                    "type": "object", "required": ["spec"], "properties": { "spec": spec, "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
                } } },
                { "name": "v0", "served": false, "storage": false },
            ],
        },
    }))
    .unwrap()
}

fn schemas() -> Schemas {
    Schemas::new([&crd()]).unwrap()
}

fn read(texts: &[(&str, &str)]) -> Loaded {
    let sources = texts.iter().map(|(name, text)| Source { name: (*name).to_owned(), text: (*text).to_owned() });
    load(sources.collect(), &schemas(), "default")
}

/// The problems of a Gateway with this spec, whose first line is line 5 of `f`.
fn gateway(spec: &str) -> Vec<Problem> {
    let indented: String = spec.lines().map(|line| format!("  {line}\n")).collect();
    let text = format!("apiVersion: example.org/v1\nkind: Gateway\nmetadata: {{name: gw}}\nspec:\n{indented}");
    let loaded = read(&[("f", &text)]);
    assert_eq!(loaded.objects.len(), usize::from(loaded.problems.is_empty()));
    loaded.problems
}

/// The only problem, as people see it.
fn refused(spec: &str) -> String {
    let problems = gateway(spec);
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems[0].to_string()
}
