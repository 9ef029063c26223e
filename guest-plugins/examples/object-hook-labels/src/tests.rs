#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may stop at the first thing that is wrong")]

use weir_policy_sdk::{parse_settings, sample};

use super::*;

fn settings(document: &str) -> Settings {
    parse_settings::<Labels>(document).unwrap().0
}

fn patch(input: Input, document: &str) -> Value {
    let answer = <Labels as ObjectHook>::evaluate(input, settings(document)).unwrap();
    if answer.patch.is_empty() { Value::Null } else { serde_json::from_str(&answer.patch).unwrap() }
}

#[test]
fn what_an_object_has_already_stays() {
    let made = patch(sample::object_hook(), r#"{"labels": {"app": "other", "example.com/cost": "42"}, "annotations": {"note": "x"}}"#);
    let paths: Vec<&str> = made.as_array().unwrap().iter().filter_map(|op| op["path"].as_str()).collect();
    assert_eq!(paths, ["/metadata/labels/example.com~1cost", "/metadata/annotations/note"]);
}

#[test]
fn labels_of_the_data_plane_are_copied_where_it_has_them() {
    let mut input = sample::object_hook();
    input.context.object.labels = vec![("team".into(), "edge".into()), ("other".into(), "x".into())];
    let made = patch(input, r#"{"copyLabels": ["team", "absent"]}"#);
    assert_eq!(made, serde_json::json!([{"op": "add", "path": "/metadata/labels/team", "value": "edge"}]));
}

#[test]
fn pods_get_labels_only_where_that_is_said() {
    let deployment = || Input {
        kind: "Deployment".into(),
        object: r#"{"metadata": {"labels": {}}, "spec": {"template": {"metadata": {"labels": {}}}}}"#.into(),
        ..sample::object_hook()
    };
    assert_eq!(patch(deployment(), r#"{"labels": {"a": "b"}}"#).as_array().unwrap().len(), 1);
    let both = patch(deployment(), r#"{"labels": {"a": "b"}, "pods": true}"#);
    assert_eq!(both[1]["path"], "/spec/template/metadata/labels/a");
}

#[test]
fn a_data_plane_without_a_label_that_it_must_have_is_refused() {
    let refusal = <Labels as ObjectHook>::evaluate(sample::object_hook(), settings(r#"{"require": ["team"]}"#)).unwrap_err();
    assert_eq!(refusal.code, "LabelMissing");
    assert!(refusal.message.contains("label team"), "{}", refusal.message);
}

#[test]
fn deleted_objects_are_left_alone_and_bad_labels_are_told() {
    let input = Input { operation: Operation::Delete, ..sample::object_hook() };
    assert_eq!(patch(input, r#"{"labels": {"a": "b"}}"#), Value::Null);
    let findings = parse_settings::<Labels>(r#"{"labels": {"a": "-b"}}"#).unwrap_err();
    assert_eq!((findings[0].code.as_str(), findings[0].path.as_str()), ("InvalidLabel", "labels.a"));
}
