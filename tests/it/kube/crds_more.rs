//! More of what the API server does with our CRDs: defaults, transitions, limits of a status, and that `weir plan` says the same.

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{
    api::{self, DATA_PLANE, Failure, JSON},
    crds::{ingress, reference, try_create, with},
    labs::{Lab, lab, shared},
    ns::Ns,
    shape::{extension, gateway, merge, name_of},
};
use crate::support::root;

pub(crate) fn tests() -> Vec<Trial> {
    vec![
        shared("crds defaults of a DataPlane", defaults),
        shared("crds the API server agrees with weir plan", cases),
        lab("crds-status", status),
    ]
}

async fn status(lab: Lab) {
    lab.ns.apply(&gateway("gw")).await;
    frozen(&lab.ns).await;
    limits(&lab.ns).await;
}

async fn defaults(ns: Ns) {
    let stored = try_create(&ns, &reference(json!({"kind": "KonnectExtension", "name": "k"}))).await.unwrap();
    assert_eq!(stored["spec"]["extensions"][0]["group"], "gateway-operator.konghq.com");
    let stored = try_create(&ns, &ingress(json!({"ports": [{"port": 80}]}))).await.unwrap();
    let block = &stored["spec"]["network"]["services"]["ingress"];
    assert_eq!((&block["type"], &block["ports"][0]["protocol"]), (&json!("LoadBalancer"), &json!("TCP")));
    let stored = try_create(&ns, &with(json!({"deployment": {"rollout": {"strategy": {"blueGreen": {"promotion": {}}}}}}))).await.unwrap();
    let expected = json!({
        "promotion": {"strategy": "BreakBeforePromotion"},
        "resources": {"plan": {"deployment": "ScaleDownOnPromotionScaleUpOnRollout"}}
    });
    assert_eq!(stored["spec"]["deployment"]["rollout"]["strategy"]["blueGreen"], expected);
    assert_eq!(stored["spec"]["deployment"]["hardened"], "disabled");
    let stored = try_create(&ns, &extension("a", "s")).await.unwrap();
    assert_eq!(stored["spec"]["serverHostname"], "konghq.com");
}

/// In the lab without an operator: a running one repairs such a status at once.
async fn frozen(ns: &Ns) {
    let because = |reason: &str| {
        json!({"status": {"readyReplicas": 0, "replicas": 0, "rollout": {"conditions": [{
            "type": "RolledOut", "status": "False", "reason": reason, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"
        }]}}})
    };
    let replicas = |count: i32| json!({"spec": {"deployment": {"replicas": count}}});
    ns.edit(DATA_PLANE, "gw", replicas(2)).await;
    ns.edit_sub(DATA_PLANE, "gw", "status", because("PromotionInProgress")).await;
    let refused = ns.try_edit("test", DATA_PLANE, "gw", &replicas(3)).await.unwrap_err();
    assert!(refused.message.contains("being promoted"), "{}", refused.message);
    ns.edit(DATA_PLANE, "gw", json!({"metadata": {"labels": {"a": "b"}}})).await;
    for reason in ["AwaitingPromotion", "PromotionDone"] {
        ns.edit_sub(DATA_PLANE, "gw", "status", because(reason)).await;
        ns.edit(DATA_PLANE, "gw", replicas(if reason == "PromotionDone" { 4 } else { 5 })).await;
    }
}

async fn limits(ns: &Ns) {
    let try_status = async |status: Value| {
        let path = format!("{}/gw/status?fieldManager=test&dryRun=All", DATA_PLANE.path(&ns.name));
        let mut whole = json!({"readyReplicas": 0, "replicas": 0});
        merge(&mut whole, status);
        api::call(&ns.client, "PATCH", &path, api::MERGE, &json!({"status": whole})).await
    };
    let conditions = |count: usize| {
        let one = |n: usize| json!({"type": format!("T{n}"), "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        json!({"conditions": (0..count).map(one).collect::<Vec<_>>()})
    };
    let address = |source: &str, value: String| json!({"addresses": [{"type": "IPAddress", "sourceType": source, "value": value}]});
    let mut wrong = Vec::new();
    for (what, status, refusal) in [
        ("8 conditions", conditions(8), None),
        ("9 conditions", conditions(9), Some("at most 8")),
        ("no condition", json!({"conditions": []}), Some("at least 1")),
        ("a selector of 8", json!({"selector": "a".repeat(8)}), None),
        ("a selector of 7", json!({"selector": "a".repeat(7)}), Some("at least 8")),
        ("a selector of 513", json!({"selector": "a".repeat(513)}), Some("512")),
        ("an address", address("PrivateIP", "10.0.0.1".into()), None),
        ("an address without value", address("PrivateIP", String::new()), Some("at least 1")),
        ("an address of 254", address("PrivateIP", "a".repeat(254)), Some("253")),
        ("an address of no source", address("Nowhere", "10.0.0.1".into()), Some("should match")),
    ] {
        match (try_status(status).await, refusal) {
            (Ok(_), None) => {}
            (Err(failure), Some(words)) if failure.message.contains(words) => {}
            (outcome, _) => wrong.push(format!("{what}: expected {refusal:?}, got {outcome:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every DataPlane of the case directories: what `weir plan` refuses by its own evaluation of the CRD, the API server refuses
/// too, and the other way round nothing is refused that `weir plan` calls good.
async fn cases(ns: Ns) {
    let mut wrong = Vec::new();
    let mut tried = (0, 0);
    for dir in std::fs::read_dir(root().join("tests/cases/dataplane")).unwrap().map(|entry| entry.unwrap().path()) {
        let case = dir.file_name().unwrap().to_string_lossy().into_owned();
        // What is wrong as YAML never gets to an API server, and a transition needs the object before.
        if case.starts_with("input-") || case.starts_with("rule-promotion-") {
            continue;
        }
        let expected: Value = serde_saphyr::from_str(&std::fs::read_to_string(dir.join("expected.yaml")).unwrap()).unwrap();
        for file in std::fs::read_dir(dir.join("input")).unwrap().map(|entry| entry.unwrap().path()) {
            let text = std::fs::read_to_string(&file).unwrap();
            for object in serde_saphyr::from_multiple::<Value>(&text).unwrap().into_iter().filter(|o| o["kind"] == "DataPlane") {
                let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
                let about = format!("DataPlane {namespace}/{}", name_of(&object));
                let findings = expected["findings"].as_array().cloned().unwrap_or_default();
                let invalid = findings.iter().any(|f| f["code"] == "InvalidObject" && f["object"] == about.as_str());
                // Some of what the API server refuses (entries that are there twice), plan shows as the condition they would get.
                let shown = text_of(&expected["statuses"]).contains("ValidationFailed");
                let answer = post(&ns, object).await;
                tried = if answer.is_ok() { (tried.0 + 1, tried.1) } else { (tried.0, tried.1 + 1) };
                if invalid && answer.is_ok() {
                    wrong.push(format!("{case}: weir plan refuses what the API server accepts"));
                }
                if let (Err(failure), false, false) = (&answer, invalid, shown) {
                    wrong.push(format!("{case}: weir plan accepts, the API server does not: {}", failure.message));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tried.0 > 100 && tried.1 > 20, "too few cases prove nothing: {tried:?}");
}

fn text_of(value: &Value) -> String {
    serde_json::to_string(value).unwrap()
}

/// Creates under the version the manifest names, served or not.
async fn post(ns: &Ns, mut object: Value) -> Result<Value, Failure> {
    object["metadata"]["namespace"] = ns.name.clone().into();
    for field in ["uid", "resourceVersion"] {
        object["metadata"].as_object_mut().unwrap().remove(field);
    }
    let version: &str = object["apiVersion"].as_str().unwrap();
    let path = format!("/apis/{version}/namespaces/{}/dataplanes?dryRun=All&fieldValidation=Strict", ns.name);
    api::call(&ns.client, "POST", &path, JSON, &object).await
}
