use k8s_openapi::api::apps::v1::Deployment;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use weir_api::keys;

use super::{extensions, has_stopped, patch};

fn object(finalizers: Value) -> DynamicObject {
    let mut object = DynamicObject::new("a", &extensions()).within("ns");
    object.metadata.resource_version = Some("7".into());
    object.metadata.finalizers = serde_json::from_value(finalizers).unwrap();
    object
}

#[test]
fn only_our_finalizer_goes_and_only_from_the_version_that_was_read() {
    let patched = patch(&object(json!(["a.example.com/mine", keys::EXTENSION_IN_USE])));
    assert_eq!(patched, Some(json!({"metadata": {"resourceVersion": "7", "finalizers": ["a.example.com/mine"]}})));
    assert_eq!(patch(&object(json!(["a.example.com/mine"]))), None);
    assert_eq!(patch(&object(Value::Null)), None);
}

#[test]
fn an_operator_has_stopped_when_its_last_pod_is_gone() {
    let deployment = |generation: i64, status: Value| -> Deployment {
        serde_json::from_value(json!({"metadata": {"generation": generation}, "status": status})).unwrap()
    };
    assert!(has_stopped(&deployment(2, json!({"observedGeneration": 2}))));
    assert!(!has_stopped(&deployment(2, json!({"observedGeneration": 1}))));
    assert!(!has_stopped(&deployment(2, json!({"observedGeneration": 2, "replicas": 1}))));
    assert!(!has_stopped(&deployment(2, json!({"observedGeneration": 2, "terminatingReplicas": 1}))));
}
