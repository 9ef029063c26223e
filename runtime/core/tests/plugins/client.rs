//! A new client certificate towards Konnect waits for its owner, until the one in use nears its end (semantics "Certificates").

use serde_json::json;
use weir_api::keys;

use crate::{
    cluster::days,
    foreign::hybrid,
    policies::{content, unavailable},
    support::annotation,
    world::World,
};

/// In use is a certificate that ends in so many days, and a new one that ends later is there.
fn renewed(mut world: World, ends: i64) -> World {
    world.secret("tls", "sha256:client-1", Some(ends));
    world.converge();
    assert!(annotation(world.live(), keys::KONNECT_CERTIFICATE_ENDS).is_some());
    world.secret("tls", "sha256:client-2", Some(365));
    world.converge();
    world
}

fn digest(world: &World) -> String {
    world.template().metadata.as_ref().unwrap().annotations.as_ref().unwrap()[keys::KONNECT_CERTIFICATE_DIGEST].clone()
}

fn held(world: &World) -> (usize, String) {
    (world.rolls, world.word("RolloutHeld"))
}

#[test]
fn it_waits_until_seven_days_before_the_end_of_the_one_in_use() {
    let mut world = renewed(hybrid(), 30);
    let before = world.template().clone();
    assert_eq!((held(&world), digest(&world).as_str()), ((1, "True/ForeignChange".into()), "sha256:client-1"));
    world.snapshot.now += days(22);
    world.converge();
    assert_eq!(held(&world), (1, "True/ForeignChange".into()));
    world.snapshot.now += days(1);
    world.converge();
    assert_eq!((held(&world), digest(&world).as_str()), ((2, "False/NothingHeld".into()), "sha256:client-2"));
    let mut as_before = world.template().clone();
    let annotations = as_before.metadata.as_mut().unwrap().annotations.as_mut().unwrap();
    annotations.insert(keys::KONNECT_CERTIFICATE_DIGEST.into(), "sha256:client-1".into());
    assert_eq!(as_before, before, "it rolls alone");
    let ends = (world.snapshot.now + days(365 - 23)).to_string();
    assert_eq!(annotation(world.live(), keys::KONNECT_CERTIFICATE_ENDS), Some(ends), "the end is of the one in use");
}

#[test]
fn it_takes_nothing_with_it() {
    let mut world = renewed(hybrid(), 30);
    world.publish("ns/rate", &content(&["rate"], "2.0.0"));
    world.converge();
    assert!(world.said("RolloutHeld").2.contains("volume plugin-rate changed, annotation"), "{}", world.said("RolloutHeld").2);
    world.snapshot.now += days(24);
    world.converge();
    assert_eq!((held(&world), digest(&world).as_str()), ((2, "True/ForeignChange".into()), "sha256:client-2"));
    assert!(world.mounts(&content(&["rate"], "1.0.0")));
    assert!(world.said("RolloutHeld").2.contains("waits (volume plugin-rate changed)"), "{}", world.said("RolloutHeld").2);
}

#[test]
fn it_rolls_alone_under_another_version_too() {
    let mut world = renewed(hybrid(), 30);
    world.another_version();
    world.converge();
    world.snapshot.now += days(24);
    world.converge();
    assert_eq!((held(&world), digest(&world).as_str()), ((2, "True/ForeignChange".into()), "sha256:client-2"));
    assert_eq!(world.env("KONG_PORT_MAPS"), None, "what the version renders waits");
    assert!(!world.said("RolloutHeld").2.contains("certificate"), "{}", world.said("RolloutHeld").2);
}

#[test]
fn it_rolls_while_a_mistake_holds_the_template() {
    let mut world = renewed(hybrid(), 30);
    world.image("kong:2.8");
    world.snapshot.now += days(24);
    world.converge();
    assert_eq!((world.word("Ready").as_str(), digest(&world).as_str()), ("False/ValidationFailed", "sha256:client-2"));
}

#[test]
fn it_rolls_while_the_policy_fails() {
    let mut world = renewed(hybrid(), 30);
    world.konnect = unavailable("k1");
    world.snapshot.now += days(24);
    world.converge();
    assert_eq!((world.rolls, digest(&world).as_str()), (2, "sha256:client-2"));
}

#[test]
fn one_that_ends_no_later_forces_nothing() {
    let mut world = renewed(hybrid(), 30);
    world.snapshot.now += days(24);
    world.secret("tls", "sha256:client-3", Some(6));
    world.converge();
    assert_eq!((held(&world), digest(&world).as_str()), ((1, "True/ForeignChange".into()), "sha256:client-1"));
}

#[test]
fn an_end_that_nobody_knows_forces_nothing() {
    let mut world = hybrid();
    world.client_certificate("sha256:client-2");
    world.snapshot.now += days(3650);
    world.converge();
    assert_eq!(digest(&world), "sha256:client-1");
    assert_eq!(annotation(world.live(), keys::KONNECT_CERTIFICATE_ENDS), None);
}

#[test]
fn one_in_another_secret_comes_with_its_extension() {
    let mut world = hybrid();
    world.secret("tls", "sha256:client-1", Some(30));
    world.converge();
    world.extension("us", "tls-2");
    world.secret("tls-2", "sha256:client-2", Some(365));
    world.converge();
    assert_eq!(held(&world), (1, "True/ForeignChange".into()));
    world.snapshot.now += days(24);
    let plan = world.pass();
    let rode: Vec<&str> = plan.events.iter().filter(|e| e.reason == "ChangeRodeAlong").map(|e| e.data.as_str()).collect();
    assert_eq!(rode, ["gateway-operator.konghq.com/KonnectExtension/k"]);
    world.converge();
    assert_eq!((held(&world), digest(&world).as_str()), ((2, "False/NothingHeld".into()), "sha256:client-2"));
    assert_eq!(world.volume("kong-cluster-cert").unwrap().secret.as_ref().unwrap().secret_name.as_deref(), Some("tls-2"));
}

#[test]
fn with_blue_green_it_rolls_alone_too() {
    let mut world = World::with_spec(&json!({"deployment": {
        "podTemplateSpec": {"spec": {"containers": [{"name": "proxy", "image": "kong:3.9"}]}},
        "rollout": {"strategy": {"blueGreen": {"promotion": {"strategy": "BreakBeforePromotion"}}}},
    }}));
    world.extend();
    world.converge();
    let mut world = renewed(world, 30);
    assert_eq!(held(&world), (1, "True/AwaitingPromotion".into()));
    world.snapshot.now += days(24);
    world.converge();
    assert_eq!((held(&world), digest(&world).as_str()), ((2, "False/NothingHeld".into()), "sha256:client-2"));
}

#[test]
fn without_the_owners_hold_it_rolls_at_once() {
    let mut world = hybrid();
    world.unannotate(keys::ROLLOUT);
    let world = renewed(world, 30);
    assert_eq!((world.rolls, digest(&world).as_str()), (2, "sha256:client-2"));
}
