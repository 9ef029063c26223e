//! What is read of the object: once, with what holds where nothing is said.

use std::time::Duration;

use serde_json::json;
use weir_api::{
    keys,
    reconcile_policy::{PolicyLimits, PolicySlot},
};
use weir_core::{
    policy::SlotName,
    reconcile_policy::{validate, validate::Cost},
};

use crate::world::World;

#[test]
fn limits_are_what_the_schema_lets_in() {
    let cost = |timeout: Option<&str>, memory: Option<&str>| {
        let mut world = World::new();
        let limits = PolicyLimits { timeout: timeout.map(String::from), memory: memory.map(String::from) };
        world.snapshot.policy.spec.limits = Some(limits);
        let cost = validate(&world.snapshot).cost;
        (cost.timeout.as_millis(), cost.memory >> 20)
    };
    assert_eq!(cost(None, None), (200, 32));
    assert_eq!(cost(Some("1ms"), Some("1Mi")), (1, 1));
    assert_eq!(cost(Some("9999ms"), Some("64Mi")), (9_999, 64));
    assert_eq!(cost(Some("10s"), Some("9Mi")), (10_000, 9));
    // What got past the schema is as if nothing had been said.
    for (timeout, memory) in [("0ms", "0Mi"), ("11s", "65Mi"), ("1h", "1Gi"), ("", ""), ("ms", "Mi"), ("-1s", "99999999999999999999Mi")] {
        assert_eq!(cost(Some(timeout), Some(memory)), (200, 32), "{timeout} {memory}");
    }
    assert_eq!(Cost::default().timeout, Duration::from_millis(200));
}

#[test]
fn settings_that_are_left_out_are_an_empty_object() {
    let mut world = World::new();
    world.snapshot.policy.spec.settings = None;
    let left_out = validate(&world.snapshot).settings_digest;
    assert_eq!(validate(&world.snapshot).settings, json!({}));
    world.snapshot.policy.spec.settings = Some(json!({}));
    assert_eq!(validate(&world.snapshot).settings_digest, left_out);
    world.snapshot.policy.spec.settings = Some(json!({"b": 1, "a": 2}));
    let digest = validate(&world.snapshot).settings_digest;
    world.snapshot.policy.spec.settings = Some(json!({"a": 2, "b": 1}));
    assert_eq!(validate(&world.snapshot).settings_digest, digest, "the order of fields says nothing");
    assert_ne!(digest, left_out);
}

#[test]
fn every_slot_is_one_of_the_cores() {
    assert_eq!(SlotName::of(PolicySlot::KonnectEnv), SlotName::KonnectEnv);
    assert_eq!(SlotName::of(PolicySlot::ConflictResolution), SlotName::ConflictResolution);
    assert_eq!(SlotName::of(PolicySlot::PluginPackaging), SlotName::PluginPackaging);
    assert_eq!(SlotName::of(PolicySlot::ObjectHook), SlotName::ObjectHook);
}

#[test]
fn a_look_is_asked_for_by_a_value_that_was_not_answered() {
    let mut world = World::new();
    let asked = |world: &World| validate(&world.snapshot).asked;
    assert!(!asked(&world));
    world.annotate(keys::CHECK_AT, "1");
    assert!(asked(&world));
    world.annotate(keys::CHECKED_AT, "1");
    assert!(!asked(&world));
    world.annotate(keys::CHECK_AT, "2");
    assert!(asked(&world));
}

#[test]
fn a_policy_has_a_name_with_its_namespace() {
    assert_eq!(validate(&World::new().snapshot).name, "weir-system/env");
}
