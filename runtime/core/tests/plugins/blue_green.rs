//! Blue/green together with `weir.dev/rollout: Manual`: its rule stands, every change of the template waits for a promotion.

use serde_json::json;
use weir_api::keys;

use crate::{cluster::days, policies::content, world::World};

fn blue_green() -> World {
    let mut world = World::with_spec(&json!({"deployment": {
        "podTemplateSpec": {"spec": {"containers": [{"name": "proxy", "image": "kong:3.9"}]}},
        "rollout": {"strategy": {"blueGreen": {"promotion": {"strategy": "BreakBeforePromotion"}}}},
    }}));
    world.annotate(keys::ROLLOUT, "Manual");
    world.install("ns/rate", &content(&["rate"], "1.0.0"));
    world.converge();
    assert_eq!((world.rolls, world.word("RolloutHeld").as_str()), (1, "False/NothingHeld"));
    world
}

#[test]
fn with_blue_green_an_own_edit_waits_too() {
    let update: fn(&mut World) = |w| w.publish("ns/rate", &content(&["rate"], "2.0.0"));
    let edit: fn(&mut World) = |w| w.image("kong:3.10");
    for (what, changes) in [("own", vec![edit]), ("foreign", vec![update]), ("both", vec![update, edit])] {
        let mut world = blue_green();
        changes.iter().for_each(|change| change(&mut world));
        world.converge();
        assert_eq!((world.rolls, world.word("RolloutHeld").as_str()), (1, "True/AwaitingPromotion"), "{what}");

        // An approval is no promotion.
        let pending = world.pending();
        world.annotate(keys::APPROVED_ROLLOUT, &pending);
        world.converge();
        assert_eq!((world.rolls, world.word("RolloutHeld").as_str()), (1, "True/AwaitingPromotion"), "{what}");

        world.annotate(keys::PROMOTE_WHEN_READY, "true");
        world.converge();
        assert_eq!((world.rolls, world.hash(), world.word("RolloutHeld").as_str()), (2, pending, "False/NothingHeld"), "{what}");
        assert!(!world.snapshot.data_plane.metadata.annotations.as_ref().unwrap().contains_key(keys::PROMOTE_WHEN_READY), "{what}");
    }
}

#[test]
fn with_blue_green_scaling_and_a_certificate_near_its_end_go_on() {
    let mut world = blue_green();
    world.scale(3);
    world.converge();
    assert_eq!((world.rolls, world.live().spec.as_ref().unwrap().replicas), (1, Some(3)));
    let first = world.certificate();
    world.snapshot.now += days(360);
    world.converge();
    assert_ne!(world.certificate(), first);
    assert_eq!((world.rolls, world.word("RolloutHeld").as_str()), (2, "False/NothingHeld"), "nothing else waits");
}

#[test]
fn without_blue_green_the_owners_hold_goes_on() {
    let mut world = blue_green();
    world.publish("ns/rate", &content(&["rate"], "2.0.0"));
    world.converge();
    world.edit(|spec| spec.deployment.as_mut().unwrap().rollout = None);
    world.converge();
    assert_eq!((world.rolls, world.word("RolloutHeld").as_str()), (1, "True/ForeignChange"));
    assert!(world.mounts(&content(&["rate"], "1.0.0")));
}
