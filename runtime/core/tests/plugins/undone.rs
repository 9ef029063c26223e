//! `kubectl rollout undo`: the pods stay as undone until their owner goes forward (ADR 9).

use serde_json::{Value, json};
use weir_api::keys;
use weir_core::plan::ChildKind;

use crate::{
    cluster::days,
    policies::content,
    support::{annotation, differ, kongs_children, steps},
    world::World,
};

/// An update of a plugin was rolled out, and somebody went back.
fn undone() -> World {
    undone_in(World::installed())
}

fn undone_in(mut world: World) -> World {
    let rolls = world.rolls;
    world.publish("ns/rate", &content(&["rate"], "2.0.0"));
    world.converge();
    assert!(world.mounts(&content(&["rate"], "2.0.0")));
    world.undo();
    world.converge();
    assert_eq!(world.rolls, rolls + 2, "the update, and the undo");
    world
}

/// The same with an owner who holds, and who approved the update.
fn undone_manual() -> World {
    let mut world = World::installed();
    world.annotate(keys::ROLLOUT, "Manual");
    world.converge();
    world.publish("ns/rate", &content(&["rate"], "2.0.0"));
    world.converge();
    let pending = world.pending();
    world.annotate(keys::APPROVED_ROLLOUT, &pending);
    world.converge();
    assert!(world.mounts(&content(&["rate"], "2.0.0")));
    world.undo();
    world.converge();
    world
}

fn held(world: &World) -> (usize, String) {
    (world.rolls, world.word("RolloutHeld"))
}

fn image(world: &World) -> Option<&str> {
    world.template().spec.as_ref()?.containers[0].image.as_deref()
}

#[test]
fn the_pods_stay_and_it_says_how_to_go_on() {
    let world = undone();
    assert_eq!(held(&world), (3, "True/RolledBack".into()));
    assert!(world.mounts(&content(&["rate"], "1.0.0")));
    let message = world.said("RolloutHeld").2;
    for words in
        ["a rollout was undone", "volume plugin-rate changed", "a change of the pods in the spec", "weir.dev/approved-rollout: sha256:"]
    {
        assert!(message.contains(words), "{message}");
    }
    assert_eq!(world.word("Ready"), "True/Ready");
    assert!(world.is_steady());
}

#[test]
fn it_says_what_really_is_in_the_pods() {
    let (old, new) = (content(&["rate"], "1.0.0"), content(&["rate"], "2.0.0"));
    let mut world = undone();
    let wanted = json!([{"installation": "ns/rate", "fetched": true, "configured": true, "rolledOut": true, "digest": old.digest,
        "plugins": [{"name": "rate", "version": "1.0.0"}], "waits": new.digest}]);
    assert_eq!(world.machine(), wanted);
    assert_eq!(world.word("PluginsInstalled"), "True/Installed");
    let message = world.said("PluginsInstalled").2;
    assert!(message.starts_with("ns/rate: rate 1.0.0 (sha256:") && message.contains("rolled out again, sha256:"), "{message}");
    world.publish("ns/rate", &content(&["rate"], "1.0.0"));
    world.converge();
    assert_eq!(world.machine()[0].get("waits"), None);
}

#[test]
fn scaling_and_services_go_on() {
    let mut world = undone();
    world.scale(4);
    world.edit(|spec| spec.network = serde_json::from_value(json!({"services": {"ingress": {"type": "ClusterIP"}}})).unwrap());
    let plan = world.converge();
    assert_eq!(steps(&plan), [("update", ChildKind::Service), ("update", ChildKind::Deployment)]);
    assert_eq!(world.live().spec.as_ref().unwrap().replicas, Some(4));
    assert_eq!(held(&world), (3, "True/RolledBack".into()));
}

#[test]
fn exactly_what_was_approved_goes_forward() {
    for (mut world, after) in [(undone(), None), (undone_manual(), Some("False/NothingHeld"))] {
        let rolls = world.rolls;
        world.annotate(keys::APPROVED_ROLLOUT, "sha256:another");
        world.converge();
        assert_eq!(held(&world), (rolls, "True/RolledBack".into()));
        assert!(world.said("RolloutHeld").2.contains("names \"sha256:another\", which does not wait"), "{}", world.said("RolloutHeld").2);
        let pending = world.pending();
        world.annotate(keys::APPROVED_ROLLOUT, &pending);
        world.converge();
        assert_eq!(world.rolls, rolls + 1);
        assert!(world.mounts(&content(&["rate"], "2.0.0")));
        assert_eq!(world.condition("RolloutHeld").map(|c| format!("{}/{}", c.status, c.reason)).as_deref(), after);
        assert_eq!(annotation(world.live(), keys::ROLLED_BACK), None);
        // And the same word does not do it twice.
        world.undo();
        world.converge();
        assert_eq!(held(&world), (rolls + 2, "True/RolledBack".into()));
        assert_ne!(world.pending(), pending);
    }
}

#[test]
fn the_approval_that_let_it_go_once_does_not_bring_it_back() {
    let world = undone_manual();
    assert_eq!(held(&world), (3, "True/RolledBack".into()));
    assert!(world.said("RolloutHeld").2.contains("which does not wait, and changes nothing"), "{}", world.said("RolloutHeld").2);
    assert!(world.mounts(&content(&["rate"], "1.0.0")) && world.is_steady());
}

#[test]
fn the_owners_next_change_goes_forward() {
    let mut world = undone();
    world.image("kong:3.10");
    world.converge();
    assert_eq!((world.rolls, world.condition("RolloutHeld"), image(&world)), (4, None, Some("kong:3.10")));
    assert!(world.mounts(&content(&["rate"], "2.0.0")));
    // From there on everything goes as before.
    world.publish("ns/rate", &content(&["rate"], "3.0.0"));
    world.converge();
    assert_eq!((world.rolls, world.mounts(&content(&["rate"], "3.0.0"))), (5, true));
}

#[test]
fn a_holding_owners_next_change_goes_with_what_is_in_force() {
    let mut world = undone_manual();
    world.image("kong:3.10");
    world.converge();
    assert_eq!((held(&world), image(&world)), ((4, "True/ForeignChange".into()), Some("kong:3.10")));
    assert!(world.mounts(&content(&["rate"], "1.0.0")), "what was undone waits as any change from elsewhere");
}

#[test]
fn an_undone_change_of_the_owners_own_stays_undone() {
    for mode in ["Automatic", "Manual"] {
        let mut world = World::installed();
        world.annotate(keys::ROLLOUT, mode);
        world.converge();
        world.image("kong:3.10");
        world.converge();
        world.undo();
        world.converge();
        assert_eq!((held(&world), image(&world)), ((3, "True/RolledBack".into()), Some("kong:3.9")), "{mode}");
        assert!(world.said("RolloutHeld").2.contains("(image proxy changed)"), "{mode}: {}", world.said("RolloutHeld").2);
        world.scale(3);
        world.converge();
        assert_eq!((held(&world), image(&world)), ((3, "True/RolledBack".into()), Some("kong:3.9")), "{mode}");
        world.image("kong:3.11");
        world.converge();
        assert_eq!((world.rolls, image(&world)), (4, Some("kong:3.11")), "{mode}");
        assert_ne!(world.word("RolloutHeld"), "True/RolledBack", "{mode}");
    }
}

#[test]
fn a_change_from_elsewhere_does_not_go_over_it() {
    let mut world = undone();
    let pending = world.pending();
    world.publish("ns/rate", &content(&["rate"], "3.0.0"));
    world.annotate(keys::APPROVED_ROLLOUT, &pending);
    world.converge();
    assert_eq!(held(&world), (3, "True/RolledBack".into()));
    assert_ne!(world.pending(), pending);
}

#[test]
fn what_is_wanted_again_is_no_longer_undone() {
    let mut world = undone();
    world.publish("ns/rate", &content(&["rate"], "1.0.0"));
    world.converge();
    assert_eq!((world.rolls, world.condition("RolloutHeld")), (3, None));
    world.publish("ns/rate", &content(&["rate"], "2.0.0"));
    world.converge();
    assert_eq!((world.rolls, world.mounts(&content(&["rate"], "2.0.0"))), (4, true), "the former undo holds nothing any more");
}

#[test]
fn an_undone_undo_is_the_rollout() {
    let mut world = undone();
    world.undo();
    world.converge();
    assert_eq!((world.rolls, world.condition("RolloutHeld")), (4, None));
    assert!(world.mounts(&content(&["rate"], "2.0.0")));
}

#[test]
fn it_outlives_its_replica_set() {
    let mut world = undone();
    world.forget_history();
    world.converge();
    assert_eq!(held(&world), (3, "True/RolledBack".into()));
    world.image("kong:3.10");
    world.converge();
    assert_eq!((world.rolls, image(&world)), (4, Some("kong:3.10")));
}

#[test]
fn two_steps_back_are_as_one() {
    let mut world = World::installed();
    for version in ["2.0.0", "3.0.0"] {
        world.publish("ns/rate", &content(&["rate"], version));
        world.converge();
    }
    // `--to-revision=1`.
    world.sets.swap(0, 1);
    world.undo();
    world.converge();
    assert_eq!(held(&world), (4, "True/RolledBack".into()));
    assert!(world.mounts(&content(&["rate"], "1.0.0")));
}

#[test]
fn a_way_back_by_the_installation_is_none() {
    let mut world = World::installed();
    for version in ["2.0.0", "1.0.0", "2.0.0", "1.0.0"] {
        world.publish("ns/rate", &content(&["rate"], version));
        world.converge();
        assert!(world.mounts(&content(&["rate"], version)), "{version}");
        assert_eq!(world.condition("RolloutHeld"), None, "{version}");
    }
    for kong in ["kong:3.10", "kong:3.9", "kong:3.10"] {
        world.image(kong);
        world.converge();
        assert_eq!((image(&world), world.condition("RolloutHeld")), (Some(kong), None));
    }
}

#[test]
fn another_writer_is_repaired() {
    let mut world = undone_in(World::installed());
    world.image("kong:3.10");
    world.converge();
    for turn in 0..3 {
        let spec = world.snapshot.children.deployments[0].object.spec.as_mut().unwrap();
        spec.template.spec.as_mut().unwrap().termination_grace_period_seconds = Some(31 + turn % 2);
        spec.min_ready_seconds = Some(5);
        world.converge();
        assert_eq!(world.template().spec.as_ref().unwrap().termination_grace_period_seconds, Some(30));
        assert_eq!(world.condition("RolloutHeld"), None);
    }
}

#[test]
fn a_plugin_that_is_not_named_any_more_is_in_the_pods_again() {
    let rate = content(&["rate"], "1.0.0");
    let mut world = World::installed();
    world.uninstall("ns/rate");
    world.converge();
    assert_eq!(world.condition("PluginsInstalled"), None);
    world.undo();
    world.converge();
    assert_eq!((held(&world), world.mounts(&rate), world.holds(&rate)), ((3, "True/RolledBack".into()), true, true));
    assert_eq!(world.machine()[0]["digest"], json!(rate.digest));
    assert!(world.said("PluginsInstalled").2.contains("ns/rate: rate 1.0.0"), "{}", world.said("PluginsInstalled").2);
    world.image("kong:3.10");
    world.converge();
    assert_eq!((world.volume("plugin-rate"), world.condition("PluginsInstalled")), (None, None));
    assert_eq!(world.snapshot.data_plane.metadata.annotations.as_ref().unwrap().get(keys::PLUGINS), None);
}

#[test]
fn content_that_was_brought_back_is_made_again() {
    let old = content(&["rate"], "1.0.0");
    let mut world = undone();
    world.snapshot.children.contents.clear();
    assert_eq!(steps(&world.dry()), [("provide", ChildKind::ConfigMap)]);
    world.converge();
    assert!(world.holds(&old) && !world.holds(&content(&["rate"], "2.0.0")));
}

#[test]
fn a_certificate_near_its_end_rolls_alone() {
    let mut world = undone();
    let first = world.certificate();
    world.snapshot.now += days(360);
    world.converge();
    assert_ne!(world.certificate(), first);
    assert_eq!(held(&world), (4, "True/RolledBack".into()));
    assert!(world.mounts(&content(&["rate"], "1.0.0")));
}

#[test]
fn with_blue_green_a_promotion_goes_forward() {
    let mut world = World::with_spec(&json!({"deployment": {
        "podTemplateSpec": {"spec": {"containers": [{"name": "proxy", "image": "kong:3.9"}]}},
        "rollout": {"strategy": {"blueGreen": {"promotion": {"strategy": "BreakBeforePromotion"}}}},
    }}));
    world.converge();
    world.image("kong:3.10");
    world.annotate(keys::PROMOTE_WHEN_READY, "true");
    world.converge();
    world.undo();
    world.converge();
    assert_eq!((held(&world), image(&world)), ((3, "True/AwaitingPromotion".into()), Some("kong:3.9")));
    world.annotate(keys::PROMOTE_WHEN_READY, "true");
    world.converge();
    assert_eq!((held(&world), image(&world)), ((4, "False/NothingHeld".into()), Some("kong:3.10")));
}

#[test]
fn the_template_of_kongs_operator_may_come_back_too() {
    let mut world = World::new();
    kongs_children(&mut world.snapshot);
    differ(&mut world.snapshot);
    world.control();
    world.converge();
    assert_eq!(held(&world), (0, "True/Takeover".into()));
    world.image("kong:3.10");
    world.converge();
    world.undo();
    world.converge();
    assert_eq!((held(&world), image(&world)), ((2, "True/RolledBack".into()), Some("kong:3.9")));
    world.image("kong:3.11");
    world.converge();
    assert_eq!(image(&world), Some("kong:3.11"));
}

/// What the API server records of `kubectl rollout undo`: our values that changed are kubectl's.
fn recorded(world: &mut World) {
    let fields = json!({
        "f:metadata": {"f:annotations": {"f:weir.dev/template-hash": {}}},
        "f:spec": {"f:template": {"f:spec": {"f:volumes": {"k:{\"name\":\"plugin-rate\"}": {".": {}, "f:name": {}, "f:projected": {}}}}}},
    });
    let entry = |manager: &str, operation: &str, fields: Value| json!({"manager": manager, "operation": operation, "fieldsV1": fields});
    let ours = json!({"f:spec": {"f:template": {"f:spec": {"f:dnsPolicy": {}}}}});
    let live = &mut world.snapshot.children.deployments[0].object;
    live.metadata.managed_fields =
        serde_json::from_value(json!([entry("kubectl", "Update", fields), entry("weir", "Apply", ours)])).unwrap();
}

#[test]
fn what_was_brought_back_is_ours_again_before_it_is_written() {
    let mut world = World::installed();
    world.publish("ns/rate", &content(&["rate"], "2.0.0"));
    world.converge();
    world.undo();
    recorded(&mut world);
    let plan = world.dry();
    assert_eq!(steps(&plan), [("reclaim", ChildKind::Deployment), ("update", ChildKind::Deployment)]);
    let sent = crate::support::deployment(&plan).spec.unwrap().template.spec.unwrap();
    assert_eq!((sent.volumes.unwrap().len(), sent.dns_policy.as_deref()), (1, Some("ClusterFirst")), "theirs and ours, and no default");
    // Going forward at once takes it back as well.
    world.image("kong:3.10");
    assert_eq!(steps(&world.dry())[..1], [("reclaim", ChildKind::Deployment)]);
}
