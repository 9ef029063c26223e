//! What a hook's patch may do to an object, and why it is refused.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may stop at the first thing that is wrong")]

use std::collections::BTreeMap;

use serde_json::{Value, json};
use weir_core::{
    plan::{ChildKind, Object},
    policy::object_hook::{MAX_OPERATIONS, MAX_PATCH, Paths, Pattern, Refused, apply},
};

fn deployment() -> Object {
    let object = json!({
        "metadata": {
            "name": "dataplane-gw", "namespace": "ns", "labels": {"app": "gw", "team": "a"},
            "annotations": {"weir.dev/applied": "sha256:1", "note": "x"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "DataPlane", "name": "gw", "uid": "u"}],
        },
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "gw"}},
            "template": {
                "metadata": {"labels": {"app": "gw"}},
                "spec": {
                    "containers": [{"name": "proxy", "image": "kong:3", "env": [{"name": "A", "value": "1"}]}],
                    "volumes": [{"name": "cluster-certificate", "secret": {"secretName": "s"}}],
                },
            },
        },
    });
    Object::Deployment(serde_json::from_value(object).unwrap())
}

fn patched(patch: &Value) -> Result<Value, Refused> {
    apply(&deployment(), &patch.to_string(), &Paths::default()).map(|object| object.to_json())
}

/// Everything may be changed, as far as paths go.
fn everything() -> Paths {
    let all = ["/metadata/**", "/spec/**", "/status/**", "/kind", "/apiVersion"];
    Paths::new(BTreeMap::from([(ChildKind::Deployment, all.iter().map(|text| text.parse::<Pattern>().unwrap()).collect())]))
}

#[test]
fn what_is_listed_may_change() {
    let sidecar = json!({"name": "sidecar", "image": "sidecar:1"});
    let after = patched(&json!([
        {"op": "test", "path": "/spec/replicas", "value": 2},
        {"op": "add", "path": "/spec/template/spec/containers/-", "value": sidecar},
        {"op": "add", "path": "/spec/template/spec/containers/0/env/-", "value": {"name": "B", "value": "2"}},
        {"op": "replace", "path": "/metadata/labels/team", "value": "b"},
        {"op": "add", "path": "/metadata/annotations/example.com~1mark", "value": "m"},
        {"op": "add", "path": "/spec/template/spec/tolerations", "value": [{"operator": "Exists"}]},
        {"op": "remove", "path": "/metadata/annotations/note"},
    ]))
    .unwrap();
    assert_eq!(after["spec"]["template"]["spec"]["containers"][1], sidecar);
    assert_eq!(after["spec"]["template"]["spec"]["containers"][0]["env"][1]["name"], "B");
    assert_eq!((&after["metadata"]["labels"]["team"], &after["metadata"]["annotations"]["example.com/mark"]), (&json!("b"), &json!("m")));
    assert_eq!(after["metadata"]["annotations"]["note"], Value::Null);
    assert_eq!(after["spec"]["template"]["spec"]["tolerations"][0]["operator"], "Exists");
}

#[test]
fn an_answer_that_says_nothing_changes_nothing() {
    for patch in ["", "  ", "null", "[]"] {
        assert_eq!(apply(&deployment(), patch, &Paths::default()), Ok(deployment()), "{patch:?}");
    }
}

#[test]
fn a_path_that_is_not_listed_is_refused_and_named() {
    let paths = [
        "/spec/replicas",
        "/spec/template/spec/containers/0/image",
        "/spec/template/spec/containers/0",
        "/spec/template/spec/volumes/0",
        "/spec/template/spec/serviceAccountName",
        "/spec/template",
        "/metadata",
        "",
    ];
    for path in paths {
        let refused = patched(&json!([{"op": "replace", "path": path, "value": {}}])).unwrap_err();
        assert_eq!(refused, Refused::Path { path: path.into(), kind: "Deployment" });
        assert!(refused.to_string().contains("Deployment"));
    }
    // From where something is moved, too.
    let moved = json!([{"op": "move", "from": "/spec/template/spec/volumes/0", "path": "/spec/template/spec/volumes/-"}]);
    assert!(matches!(patched(&moved), Err(Refused::Path { path, .. }) if path == "/spec/template/spec/volumes/0"));
}

#[test]
fn what_makes_it_the_operators_never_changes_whatever_is_listed() {
    let cases = [
        (json!([{"op": "replace", "path": "/metadata/name", "value": "other"}]), "/metadata/name"),
        (json!([{"op": "replace", "path": "/kind", "value": "StatefulSet"}]), "/kind"),
        (json!([{"op": "remove", "path": "/metadata/ownerReferences"}]), "/metadata/ownerReferences"),
        (json!([{"op": "add", "path": "/metadata/finalizers", "value": ["a.b/c"]}]), "/metadata/finalizers"),
        (json!([{"op": "add", "path": "/spec/selector/matchLabels/b", "value": "c"}]), "/spec/selector"),
        (json!([{"op": "replace", "path": "/metadata/labels", "value": {}}]), "/metadata/labels/app"),
        (
            json!([{"op": "replace", "path": "/metadata/annotations/weir.dev~1applied", "value": "x"}]),
            "/metadata/annotations/weir.dev~1applied",
        ),
        (
            json!([{"op": "add", "path": "/metadata/annotations/weir.dev~1paused", "value": "true"}]),
            "/metadata/annotations/weir.dev~1paused",
        ),
        (json!([{"op": "replace", "path": "/spec/template/metadata/labels/app", "value": "x"}]), "/spec/template/metadata/labels/app"),
        (json!([{"op": "add", "path": "/status", "value": {}}]), "/status"),
    ];
    for (patch, path) in cases {
        assert_eq!(apply(&deployment(), &patch.to_string(), &everything()), Err(Refused::Identity(path.into())), "{patch}");
    }
}

#[test]
fn what_comes_out_is_an_object_of_its_kind() {
    let unknown = json!([{"op": "add", "path": "/spec/template/spec/containers/0/env/-", "value": {"name": "B", "valeu": "2"}}]);
    let refused = patched(&unknown).unwrap_err();
    assert!(matches!(&refused, Refused::Invalid(why) if why.contains("/spec/template/spec/containers/0/env/1/valeu")), "{refused}");
    let wrong = json!([{"op": "add", "path": "/spec/template/spec/tolerations", "value": "all"}]);
    assert!(matches!(patched(&wrong), Err(Refused::Invalid(_))));
}

#[test]
fn what_is_no_patch_or_does_not_fit_is_refused() {
    for patch in ["{}", "[1]", "[{\"op\": \"jump\", \"path\": \"/a\"}]", "[", "[{\"op\": \"add\", \"path\": \"/metadata/labels/a\"}]"] {
        assert!(matches!(apply(&deployment(), patch, &Paths::default()), Err(Refused::Malformed(_))), "{patch}");
    }
    let absent = patched(&json!([{"op": "remove", "path": "/metadata/labels/nobody"}])).unwrap_err();
    assert!(matches!(&absent, Refused::Unfit { path, .. } if path == "/metadata/labels/nobody"), "{absent}");
    let test = json!([{"op": "test", "path": "/spec/replicas", "value": 3}]);
    assert!(matches!(patched(&test), Err(Refused::Unfit { .. })));
}

#[test]
fn patches_and_what_they_make_are_bounded() {
    let long = format!("[{{\"op\": \"add\", \"path\": \"/metadata/labels/a\", \"value\": \"{}\"}}]", "x".repeat(MAX_PATCH));
    assert!(matches!(apply(&deployment(), &long, &Paths::default()), Err(Refused::TooLarge { what: "bytes", .. })));
    let many: Vec<Value> =
        (0..=MAX_OPERATIONS).map(|n| json!({"op": "add", "path": format!("/metadata/labels/l{n}"), "value": "x"})).collect();
    assert!(matches!(patched(&json!(many)), Err(Refused::TooLarge { what: "operations", .. })));
    // Each copy doubles the object.
    let copies: Vec<Value> = (0..40).map(|n| json!({"op": "copy", "from": "/spec", "path": format!("/spec/copy{n}")})).collect();
    let refused = apply(&deployment(), &json!(copies).to_string(), &everything());
    assert!(matches!(refused, Err(Refused::TooLarge { what: "an object of bytes", .. })), "{refused:?}");
}

#[test]
fn content_and_certificates_are_nobodys_to_change() {
    let map = Object::ConfigMap(Box::default());
    let patch = json!([{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]).to_string();
    assert!(matches!(apply(&map, &patch, &Paths::default()), Err(Refused::Path { kind: "ConfigMap", .. })));
}

#[test]
fn patterns_are_read_whole() {
    assert_eq!(Paths::default().count(ChildKind::Deployment), 16);
    for kind in [ChildKind::Service, ChildKind::HorizontalPodAutoscaler, ChildKind::PodDisruptionBudget] {
        assert_eq!(Paths::default().count(kind), 2);
    }
    for text in ["", "spec", "/", "/a//b", "/**", "/a/**/b"] {
        assert!(text.parse::<Pattern>().is_err(), "{text:?}");
    }
    let paths = |text: &str| Paths::new(BTreeMap::from([(ChildKind::Service, vec![text.parse().unwrap()])]));
    for (pattern, path, covered) in [
        ("/a/*/c", "/a/b/c", true),
        ("/a/*/c", "/a/b", false),
        ("/a/*/c", "/a/b/c/d", false),
        ("/a/**", "/a", true),
        ("/a/**", "/a/b/c", true),
        ("/a/**", "/ab", false),
        ("/a", "/a~1b", false),
    ] {
        assert_eq!(paths(pattern).allow(ChildKind::Service, path), covered, "{pattern} {path}");
    }
}
