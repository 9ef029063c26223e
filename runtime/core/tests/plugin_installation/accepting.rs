//! What an accepted artifact becomes.

use serde_json::json;
use weir_api::keys;
use weir_core::{
    events::EventType,
    plan::{Change, HeldPart},
    plugin_installation::{Need, content::own_name, snapshot::Fetch},
};

use crate::world::{World, applied, key, steps};

#[test]
fn an_artifact_becomes_immutable_config_maps_and_a_record() {
    let mut world = World::new();
    let plan = world.pass();
    assert_eq!(world.needed, [Need::Content { digest: None }]);
    assert_eq!(steps(&plan), ["apply ConfigMap", "set weir.dev/decisions", "set weir.dev/artifact"]);
    let content = world.in_force().unwrap();
    let map = applied(&plan).remove(0);
    let json = serde_json::to_value(&map).unwrap();
    assert_eq!(map.immutable, Some(true));
    assert_eq!(map.metadata.name, Some(own_name("rate", &content.hash, 0)));
    assert_eq!(
        json["metadata"]["labels"],
        json!({
            "gateway-operator.konghq.com/managed-by": "kong-plugin-installation", "konghq.com/configmap": "internal",
            "weir.dev/plugin-content": content.hash.get(..32).unwrap(),
        })
    );
    assert_eq!(json["metadata"]["annotations"]["gateway-operator.konghq.com/mapped-to-kong-plugin-installation"], "ns/rate");
    let owner = &json["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["uid"], &owner["controller"]), (&json!("KongPluginInstallation"), &json!("uid-1"), &json!(true)));
    let texts: Vec<&String> = map.data.as_ref().unwrap().values().collect();
    assert_eq!((texts.len(), map.binary_data.as_ref().unwrap().len()), (2, 1), "what is no UTF-8 is in binaryData");
    assert_eq!(world.snapshot.installation.status.as_ref().unwrap().underlying_config_map_name, map.metadata.name);
}

#[test]
fn the_status_and_the_report_say_what_is_in_force() {
    let mut world = World::new();
    let plan = world.pass();
    let message = "sha256:one of registry.example/rate:1: rate 1.0.0";
    assert_eq!(world.said("Accepted"), ("True".into(), "Ready".into(), message.into()));
    assert_eq!(world.said("Ready").0, "True");
    assert_eq!(world.said("PoliciesApplied"), ("True".into(), "Applied".into(), String::new()));
    assert_eq!(world.condition("RolloutHeld"), None, "only where somebody wants to be asked");
    let report: serde_json::Value = serde_json::from_str(&world.annotation(keys::ARTIFACT).unwrap()).unwrap();
    assert_eq!(
        report,
        json!({
            "image": "registry.example/rate:1", "digest": "sha256:one", "content": world.in_force().unwrap().hash,
            "plugins": [{"name": "rate", "version": "1.0.0", "priority": 10}], "consumers": 0,
        })
    );
    let events: Vec<_> = plan.events.iter().map(|e| (e.type_, e.reason.as_str(), e.data.as_str())).collect();
    assert_eq!(events, [(EventType::Normal, "Installed", "sha256:one of registry.example/rate:1")]);
}

#[test]
fn the_steady_state_asks_nobody_and_writes_nothing() {
    let mut world = World::installed();
    let asked = world.packaging.asked();
    world.snapshot.now = "2026-02-01T00:00:00Z".parse().unwrap();
    let plan = world.pass();
    assert_eq!((world.needed.as_slice(), world.packaging.asked()), ([Need::Nothing].as_slice(), asked));
    assert_eq!((plan.changes, plan.status_changed, plan.events, plan.holds), (vec![], false, vec![], vec![]));
}

#[test]
fn the_policy_sees_the_artifact_and_not_our_records() {
    let mut world = World::new();
    world.annotate(keys::PLUGIN_NAME, "my_rate");
    world.annotate(keys::CHECK_AT, "1");
    world.annotate(keys::APPROVED_DIGEST, "sha256:one");
    world.annotate("kubectl.kubernetes.io/last-applied-configuration", "{}");
    world.pass();
    let question = world.packaging.last();
    assert_eq!(question["context"]["object"]["annotations"], json!({keys::PLUGIN_NAME: "my_rate"}));
    assert_eq!((&question["reference"], &question["digest"]), (&json!("registry.example/rate:1"), &json!("sha256:one")));
    let texts: Vec<_> = question["files"].as_array().unwrap().iter().map(|f| (f["path"].as_str().unwrap(), f["text"].as_str())).collect();
    assert_eq!(texts, [("handler.lua", Some("return {}")), ("logo.png", None), ("schema.lua", Some("return {}"))]);
    assert!(question["bundled"].as_array().unwrap().contains(&json!("cors")));
    assert_eq!(world.in_force().unwrap().plugins[0].name, "my_rate");
}

#[test]
fn an_older_set_goes_only_when_the_record_names_the_newer_one() {
    let mut world = World::installed();
    let old = world.snapshot.config_maps[0].name.clone().unwrap();
    world.publish("sha256:two", "return {2}");
    world.image("registry.example/rate:2");
    let update = world.pass();
    assert_eq!(steps(&update), ["apply ConfigMap", "set weir.dev/decisions", "set weir.dev/artifact"], "nothing goes yet");
    assert_eq!(steps(&world.pass()), [format!("delete {old}")]);
    assert_eq!(steps(&world.pass()), Vec::<String>::new());
}

#[test]
fn a_crash_before_the_record_loses_nothing() {
    let mut world = World::installed();
    let before = world.in_force();
    world.publish("sha256:two", "return {2}");
    world.image("registry.example/rate:2");
    world.needed.clear();
    world.snapshot.fetch = Fetch::Fetched(std::sync::Arc::new(world.registry["sha256:two"].clone()));
    let mut plan = world.dry();
    plan.changes.truncate(1);
    plan.status = None;
    world.carry_out(&plan);
    assert_eq!((world.in_force(), world.snapshot.config_maps.len()), (before, 2));
    let again = world.pass();
    assert_eq!(steps(&again), ["set weir.dev/decisions", "set weir.dev/artifact"], "what is there is not made again");
}

#[test]
fn kongs_own_copy_goes_and_what_pods_mount_stays() {
    let mut world = World::new();
    let map = |name: &str, by: &str| serde_json::from_value(json!({"name": name, "uid": name, "labels": {keys::MANAGED_BY: by}})).unwrap();
    world.snapshot.config_maps = vec![map("kongs", "kong-plugin-installation"), map("mounted", "dataplane")];
    assert!(!steps(&world.pass()).iter().any(|step| step.starts_with("delete")));
    assert_eq!(steps(&world.pass()), ["delete kongs"]);
}

#[test]
fn a_name_that_somebody_else_holds_is_not_taken() {
    let mut world = World::installed();
    let before = world.in_force();
    world.publish("sha256:two", "return {2}");
    world.image("registry.example/rate:2");
    world.snapshot.fetch = Fetch::Fetched(std::sync::Arc::new(world.registry["sha256:two"].clone()));
    let name = applied(&world.dry())[0].metadata.name.clone().unwrap();
    world.snapshot.foreign = vec![name.clone()];
    let plan = world.pass();
    assert_eq!(applied(&plan), []);
    assert_eq!(plan.holds.iter().map(|h| (h.what, h.reason.as_str())).collect::<Vec<_>>(), [(HeldPart::Plugin, "NameTaken")]);
    let (status, reason, message) = world.said("Accepted");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "Failed"));
    assert!(message.contains(&name) && message.contains("delete it"), "{message}");
    assert_eq!(world.in_force(), before);
}

#[test]
fn installations_of_one_content_have_their_own_names() {
    assert_ne!(own_name("a.b", "f00d", 0), own_name("a-b", "f00d", 0));
    let long = "x".repeat(60);
    assert_ne!(own_name(&format!("{long}a"), "f00d", 0), own_name(&format!("{long}b"), "f00d", 0));
    assert!(own_name(&long, "f00d", 0).len() <= 63);
}

#[test]
fn a_record_that_we_did_not_write_counts_as_none() {
    let mut world = World::installed();
    let forged = world.annotation(keys::DECISIONS).unwrap().replace("sha256:one", "sha256:bad");
    world.annotate(keys::DECISIONS, &forged);
    assert_eq!(world.in_force(), None);
    assert_eq!(
        weir_core::plugin_installation::in_force(&world.snapshot.installation, &weir_core::decisions::Sealing::Open).unwrap().digest,
        "sha256:bad"
    );
    let plan = world.pass();
    assert!(plan.findings.iter().any(|f| f.code == "DecisionsUnverified" && f.path.contains(keys::DECISIONS)));
    assert_eq!(world.in_force().unwrap().digest, "sha256:one");
    assert!(
        matches!(key(), weir_core::decisions::Sealing::Key(_)) && plan.changes.iter().any(|c| matches!(c, Change::SetAnnotation { .. }))
    );
}
