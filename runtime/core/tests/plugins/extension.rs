//! `weir.dev/rollout: Manual` and `spec.extensions`: which extension is named is the owner's own, what it says is not.

use weir_api::keys;
use weir_core::dataplane::snapshot::Lookup;

use crate::{
    foreign::hybrid,
    policies::{content, environment, unavailable},
    support::annotation,
    world::World,
};

fn endpoint(world: &World) -> String {
    world.env("KONG_CLUSTER_CONTROL_PLANE").unwrap_or_default()
}

fn digest(world: &World) -> Option<&str> {
    let annotations = world.template().metadata.as_ref()?.annotations.as_ref()?;
    annotations.get(keys::KONNECT_CERTIFICATE_DIGEST).map(String::as_str)
}

fn held(world: &World) -> (usize, String) {
    (world.rolls, world.word("RolloutHeld"))
}

#[test]
fn another_extension_rolls_at_once_with_all_that_belongs_to_it() {
    let mut world = hybrid();
    world.name_extension("k2");
    world.extension("eu", "tls-2");
    world.secret("tls-2", "sha256:client-2", None);
    world.converge();
    assert_eq!(held(&world), (2, "False/NothingHeld".into()));
    assert!(endpoint(&world).contains(".eu."), "{}", endpoint(&world));
    assert_eq!(digest(&world), Some("sha256:client-2"));
    assert_eq!(world.volume("kong-cluster-cert").unwrap().secret.as_ref().unwrap().secret_name.as_deref(), Some("tls-2"));

    // What it says later is not the owner's.
    world.extension("us", "tls-2");
    world.converge();
    assert_eq!(held(&world), (2, "True/ForeignChange".into()));
}

#[test]
fn another_extension_goes_without_what_waits() {
    let mut world = hybrid();
    world.publish("ns/rate", &content(&["rate"], "2.0.0"));
    world.converge();
    world.name_extension("k2");
    world.region("eu");
    world.converge();
    assert_eq!(held(&world), (2, "True/ForeignChange".into()));
    assert!(endpoint(&world).contains(".eu.") && world.mounts(&content(&["rate"], "1.0.0")));
    assert!(world.said("RolloutHeld").2.contains("waits (volume plugin-rate changed)"), "{}", world.said("RolloutHeld").2);
    assert_eq!(world.decisions()["konnect-env"]["answer"]["env"][0]["value"], endpoint(&world));
}

#[test]
fn an_extension_comes_and_goes_while_something_waits() {
    let mut world = World::installed();
    world.annotate(keys::ROLLOUT, "Manual");
    world.converge();
    world.publish("ns/rate", &content(&["rate"], "2.0.0"));
    world.converge();
    world.extend();
    world.converge();
    assert_eq!((held(&world), digest(&world)), ((2, "True/ForeignChange".into()), Some("sha256:client-1")));
    world.edit(|spec| spec.extensions = None);
    world.converge();
    assert_eq!((held(&world), digest(&world)), ((3, "True/ForeignChange".into()), None));
    assert_eq!((endpoint(&world).as_str(), annotation(world.live(), keys::KONNECT_EXTENSION)), ("", None));
    assert!(world.mounts(&content(&["rate"], "1.0.0")));
}

#[test]
fn an_extension_that_is_ready_later_than_its_name_is_part_of_the_owners_change() {
    let mut world = hybrid();
    let us = endpoint(&world);
    world.name_extension("k2");
    world.snapshot.extension = Lookup::Missing;
    world.image("kong:3.10");
    world.converge();
    assert_eq!((held(&world), endpoint(&world)), ((2, "False/NothingHeld".into()), us), "the rest of the owner's change goes on");
    assert!(annotation(world.live(), keys::KONNECT_EXTENSION).unwrap().ends_with("/k"), "the environment is still of the former");
    world.region("eu");
    world.converge();
    assert_eq!(held(&world), (3, "False/NothingHeld".into()));
    assert!(endpoint(&world).contains(".eu."));
    assert!(annotation(world.live(), keys::KONNECT_EXTENSION).unwrap().ends_with("/k2"));
}

#[test]
fn another_extension_waits_for_a_policy_that_fails_and_for_nobody_else() {
    let mut world = hybrid();
    world.konnect = unavailable("k1");
    world.name_extension("k2");
    world.region("eu");
    world.converge();
    assert!(!endpoint(&world).contains(".eu."));
    world.konnect = environment("k1", None);
    world.converge();
    assert!(endpoint(&world).contains(".eu."));
    assert_eq!(held(&world), (2, "False/NothingHeld".into()));
}

#[test]
fn a_policy_of_another_version_does_not_come_with_an_own_edit() {
    let mut world = hybrid();
    world.konnect = environment("k2", Some("x"));
    world.image("kong:3.10");
    world.converge();
    assert_eq!((held(&world), world.env("KONG_EXTRA")), ((2, "True/ForeignChange".into()), None));
}
