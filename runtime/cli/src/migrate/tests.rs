use serde_json::{Value, json};
use weir_api::keys;

use super::{as_manifest, collect::Collected, planned, report::findings};
use crate::exit::Exit;

const NOW: &str = "2026-01-01T00:00:00Z";

fn data_plane(image: &str) -> Value {
    json!({
        "apiVersion": "gateway-operator.konghq.com/v1beta1", "kind": "DataPlane",
        "metadata": {"name": "gw", "namespace": "team", "uid": "8d0c2a53-7f5e-4a54-9a0b-0e4f8b6f2c11", "generation": 1, "resourceVersion": "7"},
        "spec": {"deployment": {"podTemplateSpec": {"spec": {"containers": [{"name": "proxy", "image": image}]}}}},
        "status": {"selector": "5e1ec704-0000-4000-8000-0000000000ab", "replicas": 0, "readyReplicas": 0}
    })
}

/// A Service as Kong's operator leaves it.
fn service(owner: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "dataplane-ingress-gw-m4q9z", "namespace": "team", "uid": "11111111-7f5e-4a54-9a0b-0e4f8b6f2c11",
            "labels": {
                "app": "gw", keys::MANAGED_BY: "dataplane", keys::DATAPLANE_SERVICE_TYPE: "ingress", keys::DATAPLANE_SERVICE_STATE: "live"
            },
            "finalizers": [keys::WAIT_FOR_OWNER],
            "ownerReferences": [{
                "apiVersion": "gateway-operator.konghq.com/v1beta1", "kind": "DataPlane", "name": "gw", "uid": owner["metadata"]["uid"], "controller": true
            }]
        },
        "spec": {"type": "LoadBalancer", "ports": [{"name": "http", "port": 80, "targetPort": 8000, "protocol": "TCP"}]}
    })
}

fn lease(renewed: &str) -> k8s_openapi::api::coordination::v1::Lease {
    serde_json::from_value(json!({
        "metadata": {"name": weir_operator::kong::LEASE, "namespace": "kong-system"},
        "spec": {"holderIdentity": "kong-0", "leaseDurationSeconds": 15, "renewTime": renewed}
    }))
    .unwrap()
}

fn said(collected: &Collected) -> (String, Exit) {
    let now = NOW.parse().unwrap();
    let report = planned(collected, now).unwrap();
    let findings = findings(collected, Some(&report), now).unwrap();
    (findings.text, findings.exit)
}

#[test]
fn a_manifest_is_what_the_user_wrote() {
    let manifest = as_manifest(&data_plane("kong:3.9"));
    assert_eq!(manifest["metadata"], json!({"name": "gw", "namespace": "team"}));
    assert!(manifest.get("status").is_none() && manifest["spec"].is_object() && manifest["kind"] == "DataPlane");
}

#[test]
fn children_of_kongs_operator_are_named_and_the_lease_is_told() {
    let gateway = data_plane("kong:3.9");
    let collected = Collected {
        children: vec![service(&gateway)],
        users: vec![gateway],
        leases: vec![lease("2025-12-31T23:59:55.000000Z")],
        others: vec![("ControlPlane", 0)],
        crds: vec![(
            "dataplanes.gateway-operator.konghq.com".into(),
            Some(json!({"metadata": {}, "spec": {"group": "gateway-operator.konghq.com"}})),
        )],
    };
    let (text, exit) = said(&collected);
    assert!(text.contains("Kong's operator runs: kong-0 in namespace kong-system"), "{text}");
    assert!(text.contains("dataplanes.gateway-operator.konghq.com: of somebody else; stays as it is"), "{text}");
    assert!(text.contains("team/gw\n    taken over under their names: Service dataplane-ingress-gw-m4q9z"), "{text}");
    assert!(!text.contains("Not served"), "{text}");
    assert_eq!(exit, Exit::Done, "{text}");
}

#[test]
fn what_stands_in_the_way_is_told() {
    let mut gateway = data_plane("kong:2.8");
    gateway["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "name": "edge", "uid": "a"}]);
    let collected = Collected {
        users: vec![gateway],
        leases: vec![lease("2025-12-31T23:59:00.000000Z")],
        others: vec![("ControlPlane", 2)],
        ..Collected::default()
    };
    let (text, exit) = said(&collected);
    assert!(text.contains("does not run"), "{text}");
    assert!(text.contains("held: ") && text.contains("Kong 2.8 is below 3.0.0"), "{text}");
    assert!(text.contains("made by Gateway edge"), "{text}");
    assert!(text.contains("ControlPlane: 2"), "{text}");
    assert_eq!(exit, Exit::Held);
}
