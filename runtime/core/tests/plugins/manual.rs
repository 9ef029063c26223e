//! `weir.dev/rollout: Manual`: whose change is whose, and what else holds a rollout.

use serde_json::json;
use weir_api::keys;
use weir_core::{
    dataplane::{objects::proxy::CLUSTER_CERTIFICATE_VOLUME, snapshot::Lookup},
    plan::ChildKind,
    policy::conflict_resolution::Verdict,
};

use crate::{
    cluster::days,
    foreign::hybrid,
    policies::{content, environment, unavailable, verdicts},
    support::steps,
    world::World,
};

fn manual() -> World {
    let mut world = World::installed();
    world.annotate(keys::ROLLOUT, "Manual");
    world.converge();
    assert_eq!((world.rolls, world.word("RolloutHeld").as_str()), (1, "False/NothingHeld"), "to hold rolls nothing");
    world
}

#[test]
fn every_own_edit_rolls_at_once() {
    let mut world = manual();
    for (roll, image) in [(2, "kong:3.10"), (3, "kong:3.11")] {
        world.image(image);
        world.converge();
        assert_eq!((world.rolls, world.word("RolloutHeld").as_str()), (roll, "False/NothingHeld"));
    }
}

#[test]
fn a_newly_named_plugin_rides_with_its_own_edit() {
    let mut world = manual();
    world.publish("ns/rate", &content(&["rate"], "2.0.0"));
    world.converge();
    let size = content(&["size"], "1.0.0");
    world.install("ns/size", &size);
    let plan = world.pass();
    assert_eq!(steps(&plan), [("provide", ChildKind::ConfigMap), ("update", ChildKind::Deployment)]);
    assert!(world.mounts(&size) && world.mounts(&content(&["rate"], "1.0.0")));
    assert_eq!(world.env("KONG_PLUGINS").as_deref(), Some("bundled,rate,size"));
    world.converge();
    assert!(world.said("RolloutHeld").2.contains("waits (volume plugin-rate changed)"));
    let record = &world.decisions()["plugin-packaging"]["answer"];
    assert_eq!(record["ns/rate"]["hash"], content(&["rate"], "1.0.0").hash);
    assert_eq!(record["ns/size"]["hash"], size.hash);
    // Its next version is a change from elsewhere.
    world.publish("ns/size", &content(&["size"], "2.0.0"));
    world.converge();
    assert_eq!(world.rolls, 2);
    assert!(world.said("RolloutHeld").2.contains("volume plugin-rate changed, volume plugin-size changed"));
}

#[test]
fn a_plugin_that_is_no_longer_named_goes_at_once() {
    let mut world = manual();
    world.install("ns/size", &content(&["size"], "1.0.0"));
    world.converge();
    world.publish("ns/size", &content(&["size"], "2.0.0"));
    world.converge();
    world.uninstall("ns/rate");
    world.converge();
    assert_eq!((world.rolls, world.env("KONG_PLUGINS").as_deref()), (3, Some("bundled,size")));
    assert!(world.mounts(&content(&["size"], "1.0.0")));
    assert_eq!(world.word("RolloutHeld"), "True/ForeignChange");
}

#[test]
fn a_plugin_that_comes_later_than_its_name_is_part_of_the_owners_change() {
    let mut world = manual();
    world.name_installation("ns/size");
    world.converge();
    assert_eq!((world.rolls, world.word("PluginsInstalled").as_str()), (1, "False/ReferencedResourcesNotAvailable"));
    world.publish("ns/size", &content(&["size"], "1.0.0"));
    world.converge();
    assert_eq!((world.rolls, world.word("RolloutHeld").as_str()), (2, "False/NothingHeld"));
    assert_eq!(world.word("PluginsInstalled"), "True/Installed");
    world.publish("ns/size", &content(&["size"], "2.0.0"));
    world.converge();
    assert_eq!((world.rolls, world.word("RolloutHeld").as_str()), (2, "True/ForeignChange"), "its updates are not");
}

#[test]
fn a_newly_named_extension_rides_with_its_own_edit() {
    let mut world = manual();
    world.extend();
    world.converge();
    assert_eq!((world.rolls, world.word("RolloutHeld").as_str()), (2, "False/NothingHeld"));
    assert_eq!(world.env("KONG_ROLE").as_deref(), Some("data_plane"));

    // The same while something else waits: its certificate and its record too.
    let mut world = manual();
    world.publish("ns/rate", &content(&["rate"], "2.0.0"));
    world.converge();
    world.extend();
    world.converge();
    assert_eq!((world.rolls, world.env("KONG_ROLE").as_deref()), (2, Some("data_plane")));
    let message = world.said("RolloutHeld").2;
    assert!(message.contains("waits (volume plugin-rate changed)"), "{message}");
    assert_eq!(world.decisions()["konnect-env"]["policy"]["digest"], "k1");
    world.konnect = unavailable("k1");
    world.converge();
    assert_eq!((world.rolls, world.env("KONG_ROLE").as_deref()), (2, Some("data_plane")), "the record stands in for a failing policy");

    world.konnect = environment("k1", None);
    world.edit(|spec| spec.extensions = None);
    world.converge();
    assert_eq!((world.rolls, world.env("KONG_ROLE")), (3, None));
}

#[test]
fn what_the_pods_have_is_made_again_while_something_waits() {
    let mut world = manual();
    world.publish("ns/rate", &content(&["rate"], "2.0.0"));
    world.converge();
    world.snapshot.children.contents.clear();
    assert_eq!(steps(&world.dry()), [("provide", ChildKind::ConfigMap)]);
    world.converge();
    assert!(world.holds(&content(&["rate"], "1.0.0")) && !world.holds(&content(&["rate"], "2.0.0")));
}

#[test]
fn an_installation_that_is_gone_changes_nothing() {
    let mut world = manual();
    world.plugin("ns/rate").installation = Lookup::Missing;
    world.converge();
    assert_eq!((world.rolls, world.word("RolloutHeld").as_str()), (1, "False/NothingHeld"));
    assert!(world.mounts(&content(&["rate"], "1.0.0")));
}

#[test]
fn a_word_that_is_not_known_counts_as_manual() {
    let mut world = World::installed();
    world.annotate(keys::ROLLOUT, "manual");
    let plan = world.converge();
    let found = plan.findings.iter().find(|f| f.code == "InvalidRollout").unwrap();
    assert!(found.path.contains(keys::ROLLOUT) && found.message.contains("\"manual\""), "{found:?}");
    assert!(plan.events.iter().any(|e| e.reason == "InvalidRollout"));
    world.publish("ns/rate", &content(&["rate"], "2.0.0"));
    world.converge();
    assert_eq!((world.rolls, world.word("RolloutHeld").as_str()), (1, "True/ForeignChange"));

    world.annotate(keys::ROLLOUT, "Automatic");
    let plan = world.converge();
    assert_eq!(plan.findings, []);
    assert_eq!((world.rolls, world.condition("RolloutHeld")), (2, None));
}

#[test]
fn a_certificate_near_its_end_rolls_alone() {
    let mut world = manual();
    let (first, hash) = (world.certificate(), world.hash());
    world.snapshot.now += days(360);
    let plan = world.pass();
    assert_eq!(steps(&plan), [("mint", ChildKind::Secret), ("update", ChildKind::Deployment)]);
    assert_ne!(world.certificate(), first);
    assert_eq!(world.word("RolloutHeld"), "False/NothingHeld", "{}", world.said("RolloutHeld").2);
    world.converge();
    assert_eq!((world.rolls, world.word("RolloutHeld").as_str()), (2, "False/NothingHeld"));
    assert_ne!(world.hash(), hash);
}

#[test]
fn a_certificate_near_its_end_takes_nothing_with_it() {
    let changes: [fn(&mut World); 3] = [
        |w| w.publish("ns/rate", &content(&["rate"], "2.0.0")),
        |w| w.konnect = environment("k2", Some("x")),
        |w| w.conflicts = verdicts("c2", |_| Verdict::Keep(1)),
    ];
    for (index, change) in changes.into_iter().enumerate() {
        let mut world = hybrid();
        change(&mut world);
        world.converge();
        let (first, before) = (world.certificate(), world.template().clone());
        world.snapshot.now += days(360);
        world.converge();
        assert_eq!(world.rolls, 2, "{index}");
        assert_ne!(world.certificate(), first, "{index}");
        let mut as_before = world.template().clone();
        let volumes = as_before.spec.as_mut().unwrap().volumes.as_mut().unwrap();
        volumes.iter_mut().find(|v| v.name == CLUSTER_CERTIFICATE_VOLUME).unwrap().secret.as_mut().unwrap().secret_name = Some(first);
        assert_eq!(as_before, before, "{index}: all else as it was");
        assert_eq!(world.word("RolloutHeld"), "True/ForeignChange", "{index}");
        assert!(!world.said("RolloutHeld").2.contains("admin certificate"), "{index}: {}", world.said("RolloutHeld").2);

        let pending = world.pending();
        world.annotate(keys::APPROVED_ROLLOUT, &pending);
        world.converge();
        assert_eq!((world.rolls, world.word("RolloutHeld").as_str()), (3, "False/NothingHeld"), "{index}");
    }
}

#[test]
fn a_certificate_near_its_end_under_another_version_rolls_alone_too() {
    let mut world = manual();
    let annotations = world.snapshot.children.deployments[0].object.metadata.annotations.as_mut().unwrap();
    annotations.insert(keys::OPERATOR_VERSION.into(), "0.0.1".into());
    let first = world.certificate();
    world.snapshot.now += days(360);
    world.converge();
    assert_ne!(world.certificate(), first);
    assert_eq!((world.rolls, world.word("RolloutHeld").as_str()), (2, "False/NothingHeld"));
}

#[test]
fn a_value_that_the_server_leaves_out_is_no_difference() {
    let mut world = World::with_spec(&json!({"deployment": {"podTemplateSpec": {"spec": {"containers": [
    {"name": "proxy", "image": "kong:3.9", "env": [
        {"name": "EMPTY", "value": ""}, {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
    ]}]}}}}));
    world.annotate(keys::ROLLOUT, "Manual");
    world.install("ns/rate", &content(&["rate"], "1.0.0"));
    world.converge();
    let spec = world.snapshot.children.deployments[0].object.spec.as_mut().unwrap();
    for var in spec.template.spec.as_mut().unwrap().containers[0].env.as_mut().unwrap() {
        var.value = var.value.take().filter(|value| !value.is_empty());
        if let Some(field) = var.value_from.as_mut().and_then(|source| source.field_ref.as_mut()) {
            field.api_version = Some("v1".into());
        }
    }
    world.publish("ns/rate", &content(&["rate"], "2.0.0"));
    world.pass();
    assert!(world.said("RolloutHeld").2.contains("waits (volume plugin-rate changed)"), "{}", world.said("RolloutHeld").2);
}

#[test]
fn many_differences_are_counted() {
    let mut world = manual();
    for version in ["1.0.0", "2.0.0"] {
        for index in 0..20 {
            let (reference, content) = (format!("ns/p{index}"), content(&[&format!("p{index:02}")], version));
            if version == "1.0.0" {
                world.install(&reference, &content)
            } else {
                world.publish(&reference, &content)
            };
        }
        world.converge();
    }
    let message = world.said("RolloutHeld").2;
    assert!(message.contains("volume plugin-p11 changed and 8 more"), "{message}");
}
