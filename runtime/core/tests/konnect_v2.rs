//! The API-driven KonnectExtension: what may be used of it, and what is said otherwise.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may stop at the first thing that is wrong")]

use std::collections::BTreeMap;

use serde_json::{Value, json};
use weir_api::{dataplane::ExtensionRef, konnect_v2::KonnectExtension};
use weir_core::{
    dataplane::snapshot::{Lookup, SecretFacts},
    konnect::{Facts, Sort, Unusable, api_driven, certificate_digest},
    policy::konnect_env::{ClusterType, Endpoints},
};

fn good() -> Value {
    json!({
        "apiVersion": "konnect.konghq.com/v1alpha2", "kind": "KonnectExtension",
        "metadata": {"name": "k", "namespace": "ns", "generation": 2},
        "spec": {"konnect": {"controlPlane": {"ref": {"type": "konnectNamespacedRef"}}, "dataPlane": {"labels": {"a": "b"}}}},
        "status": {
            "conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "", "observedGeneration": 2,
                            "lastTransitionTime": "2026-01-01T00:00:00Z"}],
            "konnect": {"controlPlaneID": "id", "clusterType": "ControlPlane", "authRef": {"name": "account"},
                        "endpoints": {"controlPlane": "https://a.us.cp0.konghq.com", "telemetry": "a.us.tp0.konghq.com"}},
            "dataPlaneClientAuth": {"certificateSecretRef": {"name": "tls"}},
        },
    })
}

/// Reads the good one with one value replaced.
fn with(pointer: &str, value: Value) -> Result<Facts, Unusable> {
    let mut object = good();
    *object.pointer_mut(pointer).unwrap() = value;
    api_driven(&serde_json::from_value::<KonnectExtension>(object).unwrap())
}

fn said(pointer: &str, value: Value) -> (&'static str, String) {
    let unusable = with(pointer, value).unwrap_err();
    (unusable.reason, unusable.message)
}

#[test]
fn facts_come_from_the_status_and_labels_from_the_spec() {
    let facts = with("/spec/konnect/dataPlane/labels/a", "c".into()).unwrap();
    let endpoints = Endpoints { control_plane: "a.us.cp0.konghq.com".into(), telemetry: "a.us.tp0.konghq.com".into() };
    assert_eq!(
        facts,
        Facts {
            extension: "k".into(),
            control_plane_id: "id".into(),
            cluster_type: ClusterType::ControlPlane,
            endpoints,
            region: None,
            certificate_secret: "tls".into(),
            labels: BTreeMap::from([("a".into(), "c".into())]),
        }
    );
    for (word, type_) in
        [("ControlPlaneGroup", ClusterType::ControlPlaneGroup), ("K8SIngressController", ClusterType::K8SIngressController)]
    {
        assert_eq!(with("/status/konnect/clusterType", word.into()).unwrap().cluster_type, type_);
    }
}

#[test]
fn only_a_ready_of_now_counts() {
    for generation in [json!(2), json!(3), Value::Null] {
        assert!(with("/status/conditions/0/observedGeneration", generation).is_ok());
    }
    let (reason, message) = said("/status/conditions/0/observedGeneration", json!(1));
    assert_eq!(reason, "KonnectExtensionNotReady");
    assert!(message.contains("is of generation 1 and its spec of 2"), "{message}");
    for (pointer, value) in [
        ("/status", Value::Null),
        ("/status/conditions", json!([])),
        ("/status/conditions/0/type", "Other".into()),
        ("/status/conditions/0/status", "true".into()),
        ("/status/konnect", Value::Null),
        ("/status/konnect/controlPlaneID", "".into()),
        ("/status/konnect/clusterType", Value::Null),
        ("/status/konnect/endpoints", Value::Null),
        ("/status/dataPlaneClientAuth", Value::Null),
        ("/metadata", json!({"name": "k", "deletionTimestamp": "2026-01-01T00:00:00Z"})),
    ] {
        assert_eq!(said(pointer, value.clone()).0, "KonnectExtensionNotReady", "{pointer} {value}");
    }
}

#[test]
fn somebody_elses_words_are_bounded_and_escaped() {
    let (_, message) = said("/status/conditions/0", {
        let long = "é\n".repeat(20_000);
        json!({"type": "Ready", "status": "False", "reason": long, "message": long, "lastTransitionTime": "2026-01-01T00:00:00Z"})
    });
    assert!(message.len() < 2_500 && !message.contains('\n') && message.contains("(cut)"), "{message}");
}

#[test]
fn what_cannot_be_right_is_not_used() {
    let long = "a".repeat(254);
    for (pointer, values) in [
        ("/status/konnect/controlPlaneID", &["a b", "a\u{7f}", "ä", &long][..]),
        ("/status/konnect/clusterType", &["controlplane", "CLUSTER_TYPE_CONTROL_PLANE"]),
        (
            "/status/konnect/endpoints/controlPlane",
            &["https://", "http://a.b", "a.b:443", "a.b/", "A.b", "https://https://a.b", "a b", &long],
        ),
        ("/status/konnect/endpoints/telemetry", &["a.b,c.d", "$(HOME)", "a.b\nKONG_X=1"]),
        ("/spec/konnect/dataPlane/labels/a", &["", "b,c:d", "-b"]),
    ] {
        for value in values {
            let (reason, message) = said(pointer, (*value).into());
            assert_eq!(reason, "InvalidExtension", "{pointer} {value:?}: {message}");
            assert!(message.len() < 600 && !message.contains('\n'), "{message}");
        }
    }
    assert_eq!(said("/status/dataPlaneClientAuth/certificateSecretRef/name", "../a".into()).0, "InvalidSecret");
}

#[test]
fn its_secret_has_to_be_there() {
    let facts = with("/kind", "KonnectExtension".into()).unwrap();
    let missing = certificate_digest(&facts, &Lookup::Missing).unwrap_err();
    assert_eq!(missing.reason, "InvalidSecret");
    assert!(missing.message.contains("Secret \"tls\" of KonnectExtension \"k\" does not exist"), "{}", missing.message);
    let keys = BTreeMap::from([("tls.crt".to_owned(), "sha256:x".to_owned()), ("tls.key".to_owned(), "sha256:y".to_owned())]);
    let found = Lookup::Found(SecretFacts { keys, ..SecretFacts::default() });
    assert_eq!(certificate_digest(&facts, &found).unwrap().as_deref(), Some("sha256:x"));
}

#[test]
fn a_reference_without_a_group_is_token_free() {
    let sort = |reference: Value| Sort::of(&serde_json::from_value::<ExtensionRef>(reference).unwrap());
    assert_eq!(sort(json!({"kind": "KonnectExtension", "name": "k"})), Some(Sort::TokenFree));
    assert_eq!(sort(json!({"kind": "KonnectExtension", "name": "k", "group": "konnect.konghq.com"})), Some(Sort::ApiDriven));
    assert_eq!(sort(json!({"kind": "Other", "name": "k", "group": "konnect.konghq.com"})), None);
    assert_eq!(sort(json!({"kind": "KonnectExtension", "name": "k", "group": "example.com"})), None);
}
