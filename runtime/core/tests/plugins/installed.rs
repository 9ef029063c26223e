//! A plugin that can be used: how it gets into the pods, how it is replaced, and what is said of it.

use serde_json::{Value, json};
use weir_api::keys;
use weir_core::{
    plan::{Change, ChildKind},
    plugin_installation::content::mounted_name,
    policy::{EnvVar, Severity},
};

use crate::{
    cluster::days,
    policies::{big_content, content, packed},
    support::{UID, condition, deployment, steps},
    world::World,
};

#[test]
fn content_comes_before_the_deployment_that_mounts_it() {
    let mut world = World::new();
    let rate = content(&["rate"], "1.0.0");
    world.install("ns/rate", &rate);
    let plan = world.pass();
    let create = |kind| ("create", kind);
    let wanted = [
        create(ChildKind::Service),
        create(ChildKind::Service),
        ("provide", ChildKind::ConfigMap),
        ("mint", ChildKind::Secret),
        create(ChildKind::Deployment),
    ];
    assert_eq!(steps(&plan), wanted);
    let request = plan.changes.iter().find_map(|c| if let Change::ProvideContent(request) = c { Some(request) } else { None }).unwrap();
    assert_eq!((request.namespace.as_str(), &request.hash, request.maps), ("ns", &rate.hash, 1));
    assert_eq!(request.installation, ("ns".to_owned(), "rate".to_owned()));
    assert_eq!((request.owner.kind.as_str(), request.owner.uid.as_str(), request.owner.controller), ("DataPlane", UID, None));
}

#[test]
fn its_folder_is_mounted_and_kong_is_told() {
    let world = World::installed();
    let rate = content(&["rate"], "1.0.0");
    let volume = serde_json::to_value(world.volume("plugin-rate").unwrap()).unwrap();
    let source = |items: &Value| json!([{"configMap": {"name": mounted_name(&rate.hash, 0), "items": items}}]);
    let items: Vec<Value> = rate.plugins[0].files.iter().map(|f| json!({"key": f.key, "path": f.path})).collect();
    assert_eq!(volume, json!({"name": "plugin-rate", "projected": {"sources": source(&json!(items))}}));
    assert_eq!(items.iter().map(|i| i["path"].as_str().unwrap()).collect::<Vec<_>>(), ["handler.lua", "schema.lua"]);
    let mount = world.mount("/opt/kong/plugins/rate").unwrap();
    assert_eq!((mount.name.as_str(), mount.read_only), ("plugin-rate", Some(true)));
    assert_eq!(world.env("KONG_PLUGINS").as_deref(), Some("bundled,rate"));
    assert_eq!(world.env("KONG_LUA_PACKAGE_PATH").as_deref(), Some("/opt/?.lua;/opt/?/init.lua;;"));
    assert_eq!(world.conflicts.asked(), 0, "nobody else wants any of this");
}

#[test]
fn content_of_several_maps_is_one_folder() {
    let mut world = World::new();
    let big = big_content(&["rate"], "1.0.0");
    assert_eq!(big.maps, 2);
    world.install("ns/rate", &big);
    world.converge();
    let sources = world.volume("plugin-rate").unwrap().projected.clone().unwrap().sources.unwrap();
    let maps: Vec<String> = sources.iter().map(|s| s.config_map.as_ref().unwrap().name.clone()).collect();
    assert_eq!(maps, [mounted_name(&big.hash, 0), mounted_name(&big.hash, 1)]);
    let paths: Vec<String> = sources.iter().flat_map(|s| s.config_map.clone().unwrap().items.unwrap()).map(|i| i.path).collect();
    assert_eq!(paths, ["handler.lua", "schema.lua"]);
    assert_eq!(world.machine()[0]["configured"], true);
}

#[test]
fn what_is_said_follows_the_live_deployment() {
    let mut world = World::new();
    let rate = content(&["rate"], "1.0.0");
    world.install("ns/rate", &rate);
    let standing = |configured: bool, rolled_out: bool| {
        json!([{"installation": "ns/rate", "fetched": true, "configured": configured, "rolledOut": rolled_out,
            "digest": rate.digest, "plugins": [{"name": "rate", "version": "1.0.0"}]}])
    };
    let line = |state: &str| format!("ns/rate: rate 1.0.0 ({}) {state}", rate.digest.chars().take(19).collect::<String>());
    for (step, configured, rolled_out, state) in
        [("create", false, false, "waits"), ("seen", true, false, "rolling out"), ("rolled out", true, true, "rolled out")]
    {
        if step == "rolled out" {
            world.roll_out();
        }
        world.pass();
        assert_eq!(world.machine(), standing(configured, rolled_out), "{step}");
        assert_eq!(world.said("PluginsInstalled"), ("True".into(), "Installed".into(), line(state)), "{step}");
    }
    assert_eq!(world.word("Ready"), "True/Ready");
    assert_eq!(world.condition("PoliciesApplied"), None, "nobody was asked");

    // A pod is replaced.
    world.snapshot.children.deployments[0].object.status.as_mut().unwrap().available_replicas = Some(0);
    world.pass();
    assert_eq!(world.machine(), standing(true, false));
    world.converge();
    world.uninstall("ns/rate");
    world.converge();
    assert_eq!(world.condition("PluginsInstalled"), None);
    assert!(!world.snapshot.data_plane.metadata.annotations.as_ref().unwrap().contains_key(keys::PLUGINS));
}

#[test]
fn the_record_has_what_the_pods_have() {
    let world = World::installed();
    let record = &world.decisions()["plugin-packaging"];
    assert_eq!(record["answer"]["ns/rate"], serde_json::to_value(&*content(&["rate"], "1.0.0")).unwrap());
    assert_eq!(record["mac"].as_str().unwrap().len(), 64, "sealed");
}

#[test]
fn once_it_is_stored_nothing_is_left_to_do() {
    let mut world = World::installed();
    assert!(world.is_steady());
    assert_eq!(world.rolls, 1);
    world.snapshot.now += days(1);
    assert!(world.is_steady(), "time alone changes nothing");
    // The same content from another image: recorded, and no pod rolls.
    let mut moved = (*content(&["rate"], "1.0.0")).clone();
    moved.image = "mirror.example/plugin".into();
    world.publish("ns/rate", &std::sync::Arc::new(moved));
    world.converge();
    assert_eq!(world.rolls, 1);
    assert_eq!(world.decisions()["plugin-packaging"]["answer"]["ns/rate"]["image"], "mirror.example/plugin");
}

#[test]
fn a_map_that_somebody_deleted_is_made_again() {
    let mut world = World::installed();
    world.snapshot.children.contents.clear();
    assert_eq!(steps(&world.dry()), [("provide", ChildKind::ConfigMap)]);
    world.converge();
    world.snapshot.children.contents[0].leaving = true;
    assert_eq!(steps(&world.dry()), [("provide", ChildKind::ConfigMap)]);
    world.snapshot.children.contents[0].leaving = false;
    world.snapshot.children.contents[0].owners = ["uid-another".to_owned()].into();
    assert_eq!(steps(&world.dry()), [("provide", ChildKind::ConfigMap)], "as one more owner");
}

#[test]
fn new_content_has_a_new_name_and_rolls_the_pods() {
    let mut world = World::installed();
    let (old, new) = (content(&["rate"], "1.0.0"), content(&["rate"], "2.0.0"));
    let hash = world.hash();
    world.publish("ns/rate", &new);
    let plan = world.pass();
    assert_eq!(steps(&plan), [("provide", ChildKind::ConfigMap), ("update", ChildKind::Deployment)]);
    assert_ne!(world.hash(), hash);
    assert!(world.mounts(&new) && !world.mounts(&old));
    world.converge();
    assert_eq!(world.rolls, 2);
    assert_eq!(world.machine()[0]["plugins"][0]["version"], "2.0.0");
    assert!(world.holds(&old), "the old ReplicaSet keeps its own: `kubectl rollout undo` works");

    world.forget_history();
    let plan = world.pass();
    let released: Vec<&str> = plan
        .changes
        .iter()
        .filter_map(|c| if let Change::ReleaseContent { target, .. } = c { Some(target.name.as_str()) } else { None })
        .collect();
    assert_eq!(released, [mounted_name(&old.hash, 0)]);
    assert!(!world.holds(&old) && world.holds(&new));
    assert!(world.is_steady());
}

#[test]
fn maps_of_others_are_left_alone() {
    let mut world = World::installed();
    let mut others = world.snapshot.children.contents[0].clone();
    others.name = "plugin-of-others-0".into();
    others.owners = ["uid-another".to_owned()].into();
    world.snapshot.children.contents.push(others.clone());
    assert!(world.is_steady());
    others.owners.insert(UID.into());
    others.leaving = true;
    world.snapshot.children.contents[1] = others;
    assert!(world.is_steady(), "it is going already");
}

#[test]
fn a_shared_map_is_released_by_each_for_itself() {
    let mut world = World::installed();
    world.snapshot.children.contents[0].owners.insert("uid-another".into());
    world.uninstall("ns/rate");
    world.converge();
    world.forget_history();
    world.converge();
    assert_eq!(world.snapshot.children.contents[0].owners, ["uid-another".to_owned()].into());
}

#[test]
fn what_a_packaging_policy_adds_is_in_the_pod() {
    let mut world = World::new();
    let rich = packed(&["rate"], "1.0.0", 0, |answer| {
        answer.lua_package_path = Some("/opt/?/init.lua;/opt/extra/?.lua;/opt/?.lua;".into());
        answer.env = vec![EnvVar { name: "RATE_MODE".into(), value: "strict".into() }];
    });
    world.install("ns/rate", &rich);
    world.converge();
    assert_eq!(world.env("KONG_LUA_PACKAGE_PATH").as_deref(), Some("/opt/extra/?.lua;/opt/?.lua;/opt/?/init.lua;;"));
    assert_eq!(world.env("RATE_MODE").as_deref(), Some("strict"));
}

#[test]
fn an_installation_that_is_named_twice_counts_once() {
    let mut world = World::installed();
    world.install("ns/rate", &content(&["rate"], "1.0.0"));
    let plan = world.pass();
    let found: Vec<(&str, &str)> = plan.findings.iter().map(|f| (f.code.as_str(), f.path.as_str())).collect();
    assert_eq!(found, [("PluginTwice", "spec.pluginsToInstall[1]")]);
    assert!(plan.events.iter().any(|e| e.reason == "PluginTwice" && e.data.contains("ns/rate")));
    world.converge();
    assert_eq!((world.rolls, world.machine().as_array().unwrap().len()), (1, 1));
    assert_eq!(world.env("KONG_PLUGINS").as_deref(), Some("bundled,rate"));
}

#[test]
fn any_name_that_kong_can_have_is_a_volume_of_its_own() {
    let long = |last: char| format!("{}{last}", "n".repeat(119));
    let names = ["my_plugin", "my-plugin", "My-Plugin", "MY_PLUGIN", "a_", "a-", &long('a'), &long('b'), "0"];
    let mut world = World::new();
    for (index, name) in names.iter().enumerate() {
        world.install(&format!("ns/p{index}"), &content(&[name], "1.0.0"));
    }
    world.converge();
    let volumes = world.template().spec.as_ref().unwrap().volumes.clone().unwrap();
    let ours: std::collections::BTreeSet<&str> = volumes.iter().map(|v| v.name.as_str()).filter(|n| n.starts_with("plugin-")).collect();
    assert_eq!(ours.len(), names.len());
    for name in &ours {
        assert!(weir_api::names::is_dns_label(name), "{name}");
    }
    for name in names {
        let mount = world.mount(&format!("/opt/kong/plugins/{name}")).unwrap();
        assert!(ours.contains(mount.name.as_str()), "{name}");
    }
    let mut enabled: Vec<&str> = names.to_vec();
    enabled.sort_unstable();
    assert_eq!(world.env("KONG_PLUGINS").unwrap(), format!("bundled,{}", enabled.join(",")));
    assert_eq!(world.word("PluginsInstalled"), "True/Installed");
}

#[test]
fn the_order_of_the_spec_rolls_nothing() {
    let mut world = World::new();
    for name in ["b", "a"] {
        world.install(&format!("ns/{name}"), &content(&[name], "1.0.0"));
    }
    world.converge();
    world.snapshot.plugins.reverse();
    world.edit(|spec| spec.plugins_to_install.as_mut().unwrap().reverse());
    world.converge();
    assert_eq!(world.rolls, 1);
}

#[test]
fn an_object_on_its_way_out_is_not_annotated() {
    let mut world = World::installed();
    world.snapshot.data_plane.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    world.publish("ns/rate", &content(&["rate"], "2.0.0"));
    assert_eq!(world.dry().changes, []);
}

#[test]
fn a_pause_writes_the_status_only() {
    let mut world = World::installed();
    world.annotate(keys::PAUSED, "true");
    world.publish("ns/rate", &content(&["rate"], "2.0.0"));
    let plan = world.dry();
    assert_eq!(plan.changes, []);
    assert!(condition(&plan, "PluginsInstalled").unwrap().message.contains("2.0.0"));
    world.unannotate(keys::PAUSED);
    assert!(deployment(&world.dry()).spec.unwrap().template != *world.template());
}

#[test]
fn a_word_that_pauses_nothing_is_said() {
    let mut world = World::installed();
    for word in ["yes", "True", "", "true "] {
        world.annotate(keys::PAUSED, word);
        let plan = world.dry();
        let found = plan.findings.iter().find(|f| f.code == "InvalidPaused").unwrap();
        assert_eq!((found.severity, found.path.as_str()), (Severity::Warning, "metadata.annotations[weir.dev/paused]"));
        assert!(found.message.contains(&format!("{word:?}")) && found.message.contains("write \"true\""), "{found:?}");
        assert!(plan.events.iter().any(|e| e.reason == "InvalidPaused"), "{:?}", plan.events);
        assert_eq!(condition(&plan, "RolloutHeld"), None, "{word:?}");
    }
    for word in ["true", "false"] {
        world.annotate(keys::PAUSED, word);
        assert_eq!(world.dry().findings, [], "{word}");
    }
}
