use serde_json::{Value, json};
use weir_api::keys;

use super::merge::{Step, is_established, refused, step};

fn version(name: &str, served: bool, storage: bool) -> Value {
    json!({"name": name, "served": served, "storage": storage, "schema": {"of": name}})
}

fn crd(mark: Option<&str>, versions: Value) -> Value {
    let annotations = mark.map_or_else(|| json!({}), |mark| json!({keys::CRDS: mark}));
    json!({"metadata": {"name": "a.gateway-operator.konghq.com", "annotations": annotations},
           "spec": {"group": "gateway-operator.konghq.com", "versions": versions}})
}

fn ours() -> Value {
    crd(Some("0.2.0"), json!([version("v1beta1", true, true)]))
}

fn sent(live: &Value, take_over: bool) -> Value {
    match step(Some(live), &ours(), take_over) {
        Step::Apply(object) => object,
        other @ (Step::Newer { .. } | Step::Foreign { .. }) => panic!("{other:?}"),
    }
}

#[test]
fn what_is_not_there_is_sent_as_it_is() {
    assert_eq!(step(None, &ours(), false), Step::Apply(ours()));
}

#[test]
fn an_older_one_is_upgraded_and_a_newer_one_stays() {
    assert_eq!(sent(&crd(Some("0.1.0"), json!([version("v1beta1", true, true)])), false), ours());
    assert_eq!(sent(&ours(), false), ours());
    let newer = crd(Some("0.10.0"), json!([version("v1beta1", true, true)]));
    assert_eq!(step(Some(&newer), &ours(), false), Step::Newer { version: "0.10.0".into() });
    assert_eq!(sent(&newer, true), ours());
}

#[test]
fn one_of_somebody_else_stays_until_it_is_taken_over_on_purpose() {
    let mut kongs = crd(None, json!([version("v1beta1", true, true)]));
    assert_eq!(step(Some(&kongs), &ours(), false), Step::Foreign { owner: "somebody else".into(), lacks: vec![] });
    assert_eq!(sent(&kongs, true), ours());
    kongs["metadata"]["annotations"] = json!({"meta.helm.sh/release-name": "kong", "meta.helm.sh/release-namespace": "kong-system"});
    let owner = "Helm release kong-system/kong".to_owned();
    assert_eq!(step(Some(&kongs), &ours(), false), Step::Foreign { owner: owner.clone(), lacks: vec![] });
    // Our mark in a template of another chart is still that release's.
    kongs["metadata"]["annotations"][keys::CRDS] = json!("0.1.0");
    assert_eq!(step(Some(&kongs), &ours(), false), Step::Foreign { owner, lacks: vec![] });
}

#[test]
fn one_of_somebody_else_that_does_not_serve_our_version_is_told() {
    let old = crd(None, json!([version("v1alpha1", true, true), version("v1beta1", false, false)]));
    assert_eq!(step(Some(&old), &ours(), false), Step::Foreign { owner: "somebody else".into(), lacks: vec!["v1beta1".into()] });
}

#[test]
fn our_own_group_needs_no_mark() {
    let mut own = crd(None, json!([version("v1beta1", true, true)]));
    own["spec"]["group"] = json!(keys::WEIR_GROUP);
    assert_eq!(sent(&own, false), ours());
}

#[test]
fn versions_that_are_served_or_stored_are_never_dropped() {
    let mut live = crd(
        Some("0.1.0"),
        json!([
            version("v1alpha1", false, false),
            version("v1alpha2", false, false),
            version("v1beta1", true, true),
            version("v1", true, false)
        ]),
    );
    live["status"] = json!({"storedVersions": ["v1alpha2", "v1beta1"]});
    live["spec"]["conversion"] = json!({"strategy": "Webhook"});
    let object = sent(&live, false);
    let names: Vec<_> = object["spec"]["versions"].as_array().unwrap().iter().map(|v| v["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["v1beta1", "v1alpha2", "v1"]);
    assert_eq!(object["spec"]["versions"][2], version("v1", true, false));
    assert_eq!(object["spec"]["versions"][0]["storage"], true);
    // What is not sent by a server-side apply stays.
    assert!(object["spec"].get("conversion").is_none());
}

#[test]
fn a_version_that_is_not_ours_and_stores_goes_on_storing() {
    let live = crd(Some("0.1.0"), json!([version("v1beta1", true, false), version("v1", true, true)]));
    let object = sent(&live, false);
    assert_eq!(object["spec"]["versions"][0]["storage"], false);
    assert_eq!(object["spec"]["versions"][1]["storage"], true);
}

#[test]
fn served_and_refused_are_read_from_the_conditions() {
    let live = json!({"status": {"conditions": [{"type": "NamesAccepted", "status": "False", "message": "taken"}]}});
    assert_eq!(refused(&live).as_deref(), Some("taken"));
    assert!(!is_established(&live));
    let live = json!({"status": {"conditions": [{"type": "NamesAccepted", "status": "True"}, {"type": "Established", "status": "True"}]}});
    assert_eq!(refused(&live), None);
    assert!(is_established(&live));
}
