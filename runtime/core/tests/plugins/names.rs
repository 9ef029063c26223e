//! Two parties that bring one name, one variable, one volume or one mount.

use serde_json::{Value, json};
use weir_core::{
    plan::{ChildKind, HeldPart},
    policy::{
        EnvVar,
        conflict_resolution::{Claim, ClaimValue, Conflict, Origin, SubjectKind, Verdict},
    },
};

use crate::{
    policies::{content, packed, unavailable, verdicts},
    support::steps,
    world::World,
};

/// Two installations with a plugin `x`, of which the second has `y` too.
fn two(verdict: Verdict) -> World {
    let mut world = World::new();
    world.conflicts = verdicts("c1", move |_| verdict.clone());
    world.install("a/one", &content(&["x"], "1.0.0"));
    world.install("b/two", &content(&["x", "y"], "2.0.0"));
    world
}

fn missing(world: &World) -> Vec<Value> {
    world.machine().as_array().unwrap().iter().map(|s| s["missing"].clone()).collect()
}

#[test]
fn a_name_of_two_is_the_winners() {
    let mut world = two(Verdict::Keep(1));
    let plan = world.converge();
    let question = &world.conflicts.questions()[0]["conflicts"];
    let claim = |who: &str| json!({"who": who, "since": null, "origin": "generated", "value": {"text": who}});
    assert_eq!(*question, json!([{"kind": "plugin-name", "subject": "x", "claims": [claim("a/one"), claim("b/two")]}]));
    assert_eq!(world.env("KONG_PLUGINS").as_deref(), Some("bundled,x,y"));
    assert!(world.mounts(&content(&["x", "y"], "2.0.0")) && !world.mounts(&content(&["x"], "1.0.0")));
    assert_eq!(missing(&world), [json!("Rejected"), Value::Null]);
    let (status, reason, message) = world.said("PluginsInstalled");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "Rejected"));
    assert!(message.contains("a/one") && message.contains("not in the pods") && message.contains("another plugin name"), "{message}");
    assert_eq!(world.word("PoliciesApplied"), "True/Applied");
    assert_eq!(plan.holds, []);
}

#[test]
fn a_rejected_name_is_nobodys_and_holds_nothing_else() {
    for (verdict, reason) in [(Verdict::Reject("one of them only".into()), "Rejected"), (Verdict::Hold("ask the owner".into()), "Held")] {
        let mut world = two(verdict);
        let plan = world.converge();
        assert!(steps(&plan).contains(&("create", ChildKind::Deployment)));
        assert_eq!(world.env("KONG_PLUGINS").as_deref(), Some("bundled,y"), "{reason}");
        assert_eq!(world.volume("plugin-x"), None, "{reason}");
        assert_eq!(missing(&world), [json!(reason), json!(reason)]);
        assert_eq!(world.word("PluginsInstalled"), format!("False/{reason}"));
        assert_eq!(world.word("PoliciesApplied"), format!("False/{reason}"));
        let message = world.said("PluginsInstalled").2;
        assert!(message.contains("x: "), "{message}");
        let holds: Vec<(HeldPart, &str)> = plan.holds.iter().map(|h| (h.what, h.reason.as_str())).collect();
        assert_eq!(holds, [(HeldPart::Plugin, reason)]);
        // The other plugin of the installation is as far as it can be.
        let two = &world.machine()[1];
        assert_eq!((&two["configured"], &two["plugins"]), (&json!(true), &json!([{"name": "y", "version": "2.0.0"}])));
    }
}

#[test]
fn an_earlier_settlement_outlives_a_hold_and_a_failure() {
    for later in [verdicts("c2", |_| Verdict::Hold("ask the owner".into())), unavailable("c2")] {
        let mut world = two(Verdict::Keep(1));
        world.converge();
        world.conflicts = later;
        world.converge();
        assert_eq!((world.rolls, world.env("KONG_PLUGINS").as_deref()), (1, Some("bundled,x,y")));
        assert!(world.word("PoliciesApplied").starts_with("False/"), "{}", world.word("PoliciesApplied"));
        assert_eq!(missing(&world), [json!("Rejected"), Value::Null], "as it was settled");
    }
}

#[test]
fn a_failing_policy_holds_the_name_only() {
    let mut world = two(Verdict::Keep(0));
    world.conflicts = unavailable("c1");
    world.converge();
    assert_eq!(world.env("KONG_PLUGINS").as_deref(), Some("bundled,y"));
    assert_eq!(world.word("PluginsInstalled"), "False/Unavailable");
    assert_eq!(world.word("PoliciesApplied"), "False/Unavailable");
}

#[test]
fn who_lost_every_name_shapes_nothing() {
    let mut world = World::new();
    world.conflicts = verdicts("c1", |_| Verdict::Keep(1));
    let loser = packed(&["x"], "1.0.0", 0, |answer| {
        answer.env = vec![EnvVar { name: "LOSER".into(), value: "1".into() }];
        answer.lua_package_path = Some("/opt/loser/?.lua".into());
    });
    world.install("a/one", &loser);
    world.install("b/two", &content(&["x"], "2.0.0"));
    world.converge();
    assert_eq!(world.env("LOSER"), None);
    assert_eq!(world.env("KONG_LUA_PACKAGE_PATH").as_deref(), Some("/opt/?.lua;/opt/?/init.lua;;"));
}

#[test]
fn a_bundled_name_is_kongs_or_the_installations() {
    for (verdict, plugins, word) in [(Verdict::Keep(1), "bundled", "False/Rejected"), (Verdict::Keep(0), "bundled,cors", "True/Installed")]
    {
        let mut world = World::new();
        world.conflicts = verdicts("c1", move |_| verdict.clone());
        world.install("ns/cors", &content(&["cors"], "1.0.0"));
        world.converge();
        let question = world.conflicts.questions()[0]["conflicts"][0].clone();
        assert_eq!((&question["kind"], &question["subject"]), (&json!("bundled-plugin"), &json!("cors")));
        assert_eq!(question["claims"][0]["who"], "ns/cors");
        assert_eq!((&question["claims"][1]["who"], &question["claims"][1]["origin"]), (&json!("bundled"), &json!("default")));
        assert_eq!(world.env("KONG_PLUGINS").as_deref(), Some(plugins));
        assert_eq!(world.word("PluginsInstalled"), word);
        assert_eq!(world.volume("plugin-cors").is_some(), word.starts_with("True"));
    }
}

fn with_proxy(volumes: &Value, proxy: &Value) -> World {
    let mut container = json!({"name": "proxy", "image": "kong:3.9"});
    container.as_object_mut().unwrap().extend(proxy.as_object().unwrap().clone());
    World::with_spec(&json!({"deployment": {"podTemplateSpec": {"spec": {"containers": [container], "volumes": volumes}}}}))
}

fn text(claim: &Claim) -> String {
    match &claim.value {
        ClaimValue::Text(text) | ClaimValue::Object(text) => text.clone(),
    }
}

fn merge(conflict: &Conflict) -> Verdict {
    let mut words: Vec<String> = conflict.claims.iter().flat_map(|c| text(c).split(',').map(String::from).collect::<Vec<_>>()).collect();
    words.sort();
    words.dedup();
    Verdict::Merge(words.join(","))
}

#[test]
fn the_users_list_of_plugins_is_merged() {
    let mut world = with_proxy(&json!([]), &json!({"env": [{"name": "KONG_PLUGINS", "value": "bundled,mine"}]}));
    world.conflicts = verdicts("c1", merge);
    world.install("ns/rate", &content(&["rate"], "1.0.0"));
    world.converge();
    let question = world.conflicts.questions()[0]["conflicts"][0].clone();
    assert_eq!((&question["kind"], &question["subject"]), (&json!("env-var"), &json!("KONG_PLUGINS")));
    let origins: Vec<&str> = question["claims"].as_array().unwrap().iter().map(|c| c["origin"].as_str().unwrap()).collect();
    assert_eq!(origins, ["user", "generated", "default"]);
    assert_eq!(world.env("KONG_PLUGINS").as_deref(), Some("bundled,mine,rate"));
    assert_eq!(world.word("PluginsInstalled"), "True/Installed");

    world.install("ns/size", &content(&["size"], "1.0.0"));
    world.converge();
    assert_eq!(world.env("KONG_PLUGINS").as_deref(), Some("bundled,mine,rate,size"));
}

#[test]
fn a_variable_without_a_verdict_holds_the_template() {
    let mut world = with_proxy(&json!([]), &json!({"env": [{"name": "KONG_PLUGINS", "value": "bundled,mine"}]}));
    world.conflicts = unavailable("c1");
    world.install("ns/rate", &content(&["rate"], "1.0.0"));
    let plan = world.pass();
    assert!(!steps(&plan).iter().any(|(_, kind)| *kind == ChildKind::Deployment), "{:?}", steps(&plan));
    assert!(plan.holds.iter().any(|h| h.what == HeldPart::PodTemplate && h.reason == "Unavailable"));
}

/// The owner mounts something of their own under the plugin's volume name or path.
fn collision(kind: SubjectKind, winner: Origin) -> World {
    let (volume, path) = if kind == SubjectKind::Volume { ("plugin-rate", "/mine") } else { ("mine", "/opt/kong/plugins/rate/") };
    let mut world = with_proxy(
        &json!([{"name": volume, "configMap": {"name": "own"}}]),
        &json!({"volumeMounts": [{"name": volume, "mountPath": path}]}),
    );
    world.conflicts = verdicts("c1", move |conflict| {
        assert_eq!(conflict.kind, kind);
        let index = conflict.claims.iter().position(|c| c.origin == winner).unwrap();
        Verdict::Keep(u32::try_from(index).unwrap())
    });
    world.install("ns/rate", &content(&["rate"], "1.0.0"));
    world.converge();
    world
}

#[test]
fn a_volume_or_path_of_the_owners_is_a_conflict() {
    let rate = content(&["rate"], "1.0.0");
    for kind in [SubjectKind::Volume, SubjectKind::VolumeMount] {
        let world = collision(kind, Origin::Generated);
        assert!(world.mounts(&rate), "{kind:?}");
        assert_eq!(world.mount("/opt/kong/plugins/rate").unwrap().name, "plugin-rate", "{kind:?}");
        assert_eq!(world.word("PluginsInstalled"), "True/Installed", "{kind:?}");
        assert_eq!(world.machine()[0]["rolledOut"], true, "{kind:?}");
    }
}

#[test]
fn a_plugin_whose_place_is_taken_is_not_said_to_be_in_the_pods() {
    for kind in [SubjectKind::Volume, SubjectKind::VolumeMount] {
        let mut world = collision(kind, Origin::User);
        assert_eq!(world.word("PluginsInstalled"), "False/Rejected", "{kind:?}");
        assert_eq!(world.word("Ready"), "False/ReferencedResourcesNotAvailable", "{kind:?}");
        let machine = world.machine();
        assert_eq!((&machine[0]["plugins"], &machine[0]["rolledOut"]), (&json!([]), &json!(false)), "{kind:?}");
        assert_eq!(world.env("KONG_PLUGINS").as_deref(), Some("bundled"), "{kind:?}: Kong does not start without its files");
        let before = world.rolls;
        world.converge();
        assert_eq!(world.rolls, before, "{kind:?}: and that is all");
    }
}

#[test]
fn an_own_edit_names_no_plugin_whose_place_is_taken() {
    for kind in [SubjectKind::Volume, SubjectKind::VolumeMount] {
        let mut world = collision(kind, Origin::User);
        world.annotate(weir_api::keys::ROLLOUT, "Manual");
        world.install("ns/size", &content(&["size"], "1.0.0"));
        world.converge();
        assert_eq!(world.env("KONG_PLUGINS").as_deref(), Some("bundled,size"), "{kind:?}");
        world.publish("ns/size", &content(&["size"], "2.0.0"));
        world.converge();
        assert_eq!(world.word("RolloutHeld"), "True/ForeignChange", "{kind:?}");
        assert!(world.said("RolloutHeld").2.contains("waits (volume plugin-size changed)"), "{kind:?}: {}", world.said("RolloutHeld").2);
        let rolls = world.rolls;
        world.image("kong:3.10");
        let plan = world.pass();
        assert_eq!(world.env("KONG_PLUGINS").as_deref(), Some("bundled,size"), "{kind:?}: Kong does not start without its files");
        assert!(world.mounts(&content(&["size"], "1.0.0")), "{kind:?}");
        assert!(!plan.events.iter().any(|e| e.reason == "ChangeRodeAlong"), "{kind:?}");
        world.converge();
        assert_eq!(world.rolls, rolls + 1, "{kind:?}");

        // The verdicts in force are those of the questions that were asked: a new policy's do not come with an edit.
        world.conflicts = verdicts("c2", |_| Verdict::Keep(1));
        world.image("kong:3.11");
        let plan = world.pass();
        assert_eq!(world.env("KONG_PLUGINS").as_deref(), Some("bundled,size"), "{kind:?}");
        assert!(!plan.events.iter().any(|e| e.reason == "ChangeRodeAlong"), "{kind:?}: {:?}", plan.events);
    }
}

#[test]
fn a_plugin_that_the_users_list_leaves_out_is_not_said_to_be_installed() {
    let mut world = with_proxy(&json!([]), &json!({"env": [{"name": "KONG_PLUGINS", "value": "off"}]}));
    world.conflicts = verdicts("c1", |conflict| {
        let index = conflict.claims.iter().position(|c| c.origin == Origin::User).unwrap();
        Verdict::Keep(u32::try_from(index).unwrap())
    });
    world.install("ns/rate", &content(&["rate"], "1.0.0"));
    world.converge();
    assert_eq!(world.env("KONG_PLUGINS").as_deref(), Some("off"));
    assert_eq!(world.word("PluginsInstalled"), "False/Rejected");
    let message = world.said("PluginsInstalled").2;
    assert!(message.contains("rate: KONG_PLUGINS of the pod template does not name it") && message.contains("add it there"), "{message}");
    assert_eq!(world.machine()[0]["plugins"], json!([]));
}

#[test]
fn a_mount_beside_the_plugins_is_none() {
    let mut world = with_proxy(
        &json!([{"name": "mine", "emptyDir": {}}]),
        &json!({"volumeMounts": [{"name": "mine", "mountPath": "/opt/kong/plugins"}]}),
    );
    world.conflicts = unavailable("c1");
    world.install("ns/rate", &content(&["rate"], "1.0.0"));
    world.converge();
    assert_eq!(world.conflicts.asked(), 0);
    assert!(world.mounts(&content(&["rate"], "1.0.0")));
}
