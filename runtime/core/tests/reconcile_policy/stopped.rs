//! What keeps a pass from its work: a pause, what this version does not serve, a tenant, the end.

use serde_json::json;
use weir_api::{
    keys,
    reconcile_policy::{PolicySlot, Rollout, Source, Strategy},
};
use weir_core::{
    policy::SlotName,
    reconcile_policy::{
        snapshot::{Found, Step},
        validate,
    },
};

use crate::world::{World, events, found, pair, words};

#[test]
fn a_pause_lets_nothing_take_over_and_writes_the_status_only() {
    let mut world = World::with("sha256:a");
    world.annotate(keys::PAUSED, "true");
    let plan = world.pass();
    let message = "annotation weir.dev/paused is \"true\": what answers stays, whatever the spec says";
    assert_eq!(world.said("Held"), ("True".into(), "Paused".into(), message.into()));
    assert_eq!((world.health().as_str(), world.is("Active")), ("Reconciling/Paused", pair("True", "Active")));
    assert_eq!(plan.events.iter().map(|e| (e.reason.as_str(), e.message.as_str())).collect::<Vec<_>>(), [("Paused", "Nothing takes over")]);
    world.check("1");
    world.settings(json!({"region": "us"}));
    world.publish("sha256:b");
    world.trip();
    assert_eq!((world.active().as_str(), world.revision().settings, world.history()), ("sha256:a", Some(json!({"region": "eu"})), vec![]));
    assert_eq!(world.annotation(keys::CHECKED_AT), None, "nothing but the status is written");
    world.snapshot.tripped = None;
    world.annotate(keys::PAUSED, "false");
    world.pass();
    assert_eq!((world.active().as_str(), world.condition("Held")), ("sha256:b", None));
}

#[test]
fn a_pause_forgets_nothing() {
    let mut world = World::with_all(&["sha256:a", "sha256:b"]);
    world.trip();
    world.annotate(keys::PAUSED, "true");
    world.pass();
    assert_eq!(world.health(), "Reconciling/Paused");
    world.restart();
    world.annotate(keys::PAUSED, "");
    world.pass();
    assert_eq!(world.health(), "Stalled/RolledBack");

    let mut world = World::new();
    world.annotate(keys::PAUSED, "true");
    world.publish("sha256:a");
    assert_eq!((world.active().as_str(), world.steps(), world.is("Active")), ("", vec![], pair("False", "Pending")));
}

#[test]
fn a_hook_is_served_as_any_slot_is() {
    let mut world = World::new();
    world.snapshot.policy.spec.slot = PolicySlot::ObjectHook;
    world.publish("sha256:a");
    assert_eq!((world.active().as_str(), world.is("Active")), ("sha256:a", pair("True", "Active")));
    assert_eq!(validate(&world.snapshot).slot, SlotName::ObjectHook);
}

#[test]
fn a_source_that_names_nothing_is_not_served() {
    let mut world = World::new();
    world.snapshot.policy.spec.source = Source::default();
    world.publish("sha256:a");
    assert_eq!((world.active().as_str(), world.is("Active")), ("", pair("False", "NotSupported")));
    assert!(world.said("Active").2.starts_with("spec.source"));
}

#[test]
fn a_look_at_what_is_not_served_is_answered() {
    let mut world = World::new();
    world.snapshot.policy.spec.source = Source::default();
    world.check("1");
    world.pass();
    assert_eq!(world.annotation(keys::CHECKED_AT).as_deref(), Some("1"));
}

#[test]
fn what_is_not_served_any_more_does_not_answer_and_can_come_back() {
    let mut world = World::with("sha256:a");
    let source = world.snapshot.policy.spec.source.clone();
    world.edit(|spec| spec.source = Source::default());
    world.pass();
    assert_eq!((world.active().as_str(), world.history()), ("", words(&[("sha256:a", "Superseded")])));
    world.edit(|spec| spec.source = source);
    world.fail(Step::Resolved, true, Found::default());
    assert_eq!((world.active().as_str(), world.history(), world.health().as_str()), ("sha256:a", vec![], "Ready/Ready"));
}

#[test]
fn tenants_count_where_the_operator_says_so() {
    let mut world = World::new();
    world.snapshot.policy.metadata.namespace = Some("team-a".into());
    world.publish("sha256:a");
    assert_eq!((world.active().as_str(), world.health().as_str()), ("", "Stalled/TenantPoliciesDisabled"));
    let message = world.said("Active").2;
    assert_eq!(
        message,
        "policies outside of namespace weir-system do not count: move it there, or run the operator with --tenant-policies"
    );
    world.snapshot.tenants = true;
    world.pass();
    assert_eq!((world.active().as_str(), world.health().as_str()), ("sha256:a", "Ready/Ready"));
    world.snapshot.tenants = false;
    world.pass();
    assert_eq!((world.active().as_str(), world.history()), ("", words(&[("sha256:a", "Superseded")])));
}

#[test]
fn an_object_on_its_way_out_is_left_alone() {
    let mut world = World::with("sha256:a");
    world.snapshot.policy.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    world.check("1");
    let plan = world.publish("sha256:b");
    assert_eq!((plan.status.clone(), plan.changes.clone(), events(&plan)), (None, vec![], vec![]));
    assert_eq!(world.active(), "sha256:a");
}

#[test]
fn nothing_is_held_where_a_person_would_be_asked() {
    let mut world = World::with("sha256:a");
    world.edit(|spec| spec.rollout = Some(Rollout { strategy: Some(Strategy::Manual), ..Rollout::default() }));
    world.pass();
    assert_eq!(world.is("Held"), pair("False", "NothingHeld"));
    world.fail(Step::Compatible, false, found("sha256:b"));
    assert_eq!(world.is("Held"), pair("False", "NothingHeld"));
}

#[test]
fn a_word_of_pausing_that_nobody_knows_pauses_nothing_and_is_said_once() {
    for (word, shown) in [("yes", "\"yes\""), ("True", "\"True\""), ("", "\"\"")] {
        let mut world = World::with("sha256:a");
        world.annotate(keys::PAUSED, word);
        let plan = world.publish("sha256:b");
        assert_eq!(world.active(), "sha256:b", "it is not paused");
        let told: Vec<_> = plan.events.iter().filter(|event| event.reason == "InvalidPaused").collect();
        assert_eq!(told.len(), 1, "{:?}", plan.events);
        assert!(told[0].data.starts_with(&format!("metadata.annotations[weir.dev/paused]: {shown} pauses nothing")), "{}", told[0].data);
        assert_eq!(plan.findings.iter().map(|f| f.code.as_str()).collect::<Vec<_>>(), ["InvalidPaused"]);
        assert!(world.said("Ready").2.contains("pauses nothing: write \"true\""));
        // However it stands, and whatever comes of it.
        let plan = world.fail(Step::Verified, false, found("sha256:c"));
        assert!(world.said("Ready").2.contains("pauses nothing"));
        assert!(!events(&plan).contains(&"InvalidPaused"), "said before");
        world.annotate(keys::PAUSED, "true");
        world.pass();
        assert!(!world.said("Ready").2.contains("pauses nothing"));
    }
}
