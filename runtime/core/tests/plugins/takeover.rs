//! Plugins of Kong's operator stay mounted until the owner's next change.

use serde_json::{Value, json};
use weir_api::keys;
use weir_core::plan::ChildKind;

use crate::{
    policies::content,
    support::{annotation, kongs_children, steps},
    world::World,
};

/// A Deployment as Kong's operator left it, with its own ConfigMap of the plugin.
fn kongs() -> World {
    let mut world = World::new();
    world.install("ns/rate", &content(&["rate"], "1.0.0"));
    let named = std::mem::take(&mut world.snapshot.plugins);
    kongs_children(&mut world.snapshot);
    world.snapshot.plugins = named;
    let live = &mut world.snapshot.children.deployments[0].object;
    let mut template = serde_json::to_value(&live.spec.as_ref().unwrap().template).unwrap();
    template["metadata"]["annotations"] = json!({"gateway-operator.konghq.com/kong-plugin-installation-generation": "rate:1"});
    let push = |list: &mut Value, item: Value| list.as_array_mut().unwrap().push(item);
    push(&mut template["spec"]["volumes"], json!({"name": "rate", "configMap": {"name": "rate-x1", "defaultMode": 420}}));
    let proxy = &mut template["spec"]["containers"][0];
    push(&mut proxy["volumeMounts"], json!({"name": "rate", "mountPath": "/opt/kong/plugins/rate", "readOnly": true}));
    for var in proxy["env"].as_array_mut().unwrap().iter_mut().filter(|var| var["name"] == "KONG_PLUGINS") {
        var["value"] = json!("bundled,rate");
    }
    live.spec.as_mut().unwrap().template = serde_json::from_value(template).unwrap();
    world
}

#[test]
fn nothing_rolls_and_its_config_map_stays_mounted() {
    let mut world = kongs();
    let before = world.template().clone();
    let plan = world.pass();
    assert!(!steps(&plan).contains(&("provide", ChildKind::ConfigMap)), "nothing that waits is stored yet: {:?}", steps(&plan));
    assert_eq!((world.rolls, world.template()), (0, &before));
    assert!(world.volume("rate").unwrap().config_map.is_some());
    assert_eq!(world.word("RolloutHeld"), "True/Takeover");
    assert_eq!(world.machine()[0]["configured"], false);
    assert!(world.said("PluginsInstalled").2.ends_with("waits"));

    world.converge();
    assert_eq!((world.rolls, world.template()), (0, &before));
}

#[test]
fn the_owners_next_change_takes_ours() {
    for mode in ["Automatic", "Manual"] {
        let mut world = kongs();
        world.annotate(keys::ROLLOUT, mode);
        world.converge();
        assert_eq!((world.rolls, world.word("RolloutHeld").as_str()), (0, "True/Takeover"), "{mode}");
        world.image("kong:3.10");
        world.converge();
        assert_eq!(world.rolls, 1, "{mode}");
        assert!(world.mounts(&content(&["rate"], "1.0.0")), "{mode}");
        assert_eq!(world.volume("rate"), None, "{mode}");
        assert_eq!(annotation(world.live(), keys::TAKEOVER_GENERATION), None, "{mode}");
        assert_eq!(world.machine()[0]["rolledOut"], true, "{mode}");
    }
}

#[test]
fn an_approval_takes_ours() {
    for mode in ["Automatic", "Manual"] {
        let mut world = kongs();
        world.annotate(keys::ROLLOUT, mode);
        world.converge();
        let pending = world.pending();
        world.annotate(keys::APPROVED_ROLLOUT, &pending);
        world.converge();
        assert_eq!((world.rolls, world.hash()), (1, pending), "{mode}");
        assert!(world.mounts(&content(&["rate"], "1.0.0")), "{mode}");
    }
}
