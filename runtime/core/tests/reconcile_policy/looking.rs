//! Annotation `weir.dev/check-at`, and looks that the shell makes by itself.

use std::time::Duration;

use serde_json::json;
use weir_api::keys;
use weir_core::reconcile_policy::{
    snapshot::{Found, Reach, Step},
    validate,
};

use crate::world::{STEPS, World, events, found};

fn answered(world: &World) -> Option<String> {
    world.annotation(keys::CHECKED_AT)
}

#[test]
fn a_look_is_answered_when_something_is_known() {
    let mut world = World::new();
    world.check("1");
    world.pass();
    for step in STEPS {
        world.busy(step, found("sha256:a"));
        assert_eq!(answered(&world), None, "{step:?}");
    }
    world.publish("sha256:a");
    assert_eq!(answered(&world).as_deref(), Some("1"));
}

#[test]
fn a_look_at_what_answers_is_answered_when_it_is_over_and_dips_nothing() {
    let mut world = World::with("sha256:a");
    world.check("1");
    for plan in [world.pass(), world.busy(Step::Resolved, Found::default()), world.busy(Step::Compatible, found("sha256:b"))] {
        assert_eq!((plan.status_changed, plan.changes), (false, vec![]));
    }
    let plan = world.publish("sha256:a");
    assert_eq!((plan.status_changed, answered(&world).as_deref()), (false, Some("1")));
    world.check("2");
    world.publish("sha256:b");
    assert_eq!((world.active().as_str(), answered(&world).as_deref()), ("sha256:b", Some("2")));
}

#[test]
fn a_failure_is_an_answer_as_well() {
    for step in STEPS {
        let mut world = World::with("sha256:a");
        world.check("1");
        world.fail(step, true, found("sha256:b"));
        assert_eq!(answered(&world).as_deref(), Some("1"), "{step:?}");
    }
    let mut world = World::with("sha256:a");
    world.check("1");
    world.fail(Step::Resolved, true, Found::default());
    assert_eq!((answered(&world).as_deref(), world.health().as_str()), (Some("1"), "Ready/Ready"));
}

#[test]
fn what_waits_is_an_answer_as_well() {
    let mut world = World::manual();
    world.check("1");
    world.publish("sha256:a");
    assert_eq!((answered(&world).as_deref(), world.health().as_str()), (Some("1"), "Reconciling/AwaitingApproval"));
    world.check("2");
    world.pass();
    assert_eq!((answered(&world).as_deref(), world.health().as_str()), (Some("1"), "Reconciling/Pending"), "it is looked at again");
    let plan = world.fail(Step::Resolved, true, Found::default());
    assert_eq!((answered(&world).as_deref(), world.health().as_str()), (Some("2"), "Reconciling/AwaitingApproval"));
    let data = &plan.events.iter().find(|event| event.reason == "LookFailed").unwrap().data;
    assert_eq!(data, "NotResolved: Resolved went wrong");
}

#[test]
fn who_asks_again_sees_it_happen() {
    let mut world = World::with("sha256:a");
    world.fail(Step::Compatible, false, found("sha256:b"));
    world.check("1");
    world.pass();
    assert_eq!(world.health(), "Reconciling/Pending");
    let plan = world.fail(Step::Compatible, false, found("sha256:b"));
    assert_eq!((world.health().as_str(), events(&plan)), ("Stalled/NotCompatible", vec!["NotCompatible"]));
}

#[test]
fn looks_change_nothing_as_long_as_they_find_the_same() {
    let mut world = World::with("sha256:a");
    for _ in 0..3 {
        for step in STEPS {
            assert!(!world.busy(step, Found::default()).status_changed);
            assert!(!world.busy(step, found("sha256:a")).status_changed);
        }
        let plan = world.publish("sha256:a");
        assert_eq!((plan.status_changed, plan.events, plan.changes), (false, vec![], vec![]));
        world.restart();
        assert!(!world.pass().status_changed);
    }
}

#[test]
fn how_often_a_tag_is_looked_up() {
    let seconds = |world: &World| validate(&world.snapshot).resync.map(|resync| resync.as_secs());
    let mut world = World::new();
    assert_eq!(seconds(&world), Some(60));
    for (text, expected) in [("10m", Some(600)), ("1h0m5s", Some(3_605)), ("0s", None), ("0", None), ("10s", Some(10))] {
        world.edit(|spec| spec.rollout.get_or_insert_default().resync = Some(text.into()));
        assert_eq!((seconds(&world), validate(&world.snapshot).findings), (expected, vec![]), "{text}");
    }
    world.image(&format!("registry.example/env:1@sha256:{}", "ab".repeat(32)));
    assert_eq!(seconds(&world), None, "what a digest leads to never changes");
    world.edit(|spec| (spec.source.oci, spec.source.builtin) = (None, Some(Default::default())));
    assert_eq!(seconds(&world), None);
}

#[test]
fn a_time_that_is_none_is_said_once() {
    for (text, seconds, every) in [("5s", 10, "10 s"), ("soon", 60, "60 s"), ("", 60, "60 s"), ("+5m", 60, "60 s")] {
        let mut world = World::with("sha256:a");
        world.edit(|spec| spec.rollout.get_or_insert_default().resync = Some(text.into()));
        let plan = world.publish("sha256:a");
        assert_eq!(validate(&world.snapshot).resync, Some(Duration::from_secs(seconds)));
        let message = format!("spec.rollout.resync: {text:?} is no duration of at least 10 s: the tag is looked up every {every}");
        assert_eq!((events(&plan), world.said("Ready").2), (vec!["InvalidResync"], format!("it answers for 7 objects; {message}")));
        world.snapshot.reach = Reach { objects: 8, ..Reach::default() };
        let plan = world.pass();
        assert_eq!((plan.status_changed, events(&plan)), (true, vec![]), "another number of objects is no news about the spec");
        world.settings(json!({"region": "us"}));
        world.publish("sha256:a");
        assert_eq!(world.health(), "Ready/Ready");
    }
}
