//! Former revisions: how many, and what an owner who goes back leaves behind.

use serde_json::json;
use weir_core::reconcile_policy::snapshot::{Found, Step};

use crate::world::{World, events, found, words};

/// An owner who names another tag each time.
fn named(world: &mut World, layer: &str) {
    world.image(&format!("registry.example/env:{layer}"));
    world.publish(&format!("sha256:{layer}"));
}

fn all(layers: &[&str]) -> World {
    let mut world = World::new();
    layers.iter().for_each(|layer| named(&mut world, layer));
    world
}

#[test]
fn going_back_marks_what_came_later() {
    let mut world = all(&["a", "b", "c"]);
    world.image("registry.example/env:a");
    world.pass();
    assert_eq!((world.active().as_str(), world.health().as_str()), ("sha256:c", "Reconciling/Pending"));
    let plan = world.publish("sha256:a");
    assert_eq!((world.active().as_str(), events(&plan)), ("sha256:a", vec!["Activated"]));
    assert_eq!(world.history(), words(&[("sha256:c", "Removed"), ("sha256:b", "Removed")]));
}

#[test]
fn going_back_by_one_leaves_the_older_ones_good() {
    let mut world = all(&["a", "b", "c"]);
    named(&mut world, "b");
    assert_eq!(world.history(), words(&[("sha256:c", "Removed"), ("sha256:a", "Superseded")]));
    world.trip();
    assert_eq!(world.active(), "sha256:a");
}

#[test]
fn going_forward_again_removes_nothing() {
    let mut world = all(&["a", "b", "a", "b"]);
    assert_eq!((world.active().as_str(), world.history()), ("sha256:b", words(&[("sha256:a", "Superseded")])));
    world.trip();
    assert_eq!(world.active(), "sha256:a");
}

#[test]
fn what_failed_stays_marked_as_that() {
    let mut world = all(&["a", "b", "c"]);
    world.trip();
    named(&mut world, "a");
    assert_eq!((world.active().as_str(), world.health().as_str()), ("sha256:a", "Ready/Ready"));
    assert_eq!(world.history(), words(&[("sha256:b", "Removed"), ("sha256:c", "RolledBack")]));
}

#[test]
fn asking_for_what_the_breaker_went_back_to_is_enough() {
    let mut world = all(&["a", "b"]);
    world.trip();
    world.image("registry.example/env:a");
    world.pass();
    assert_eq!((world.health().as_str(), world.status().candidate), ("Ready/Ready", None));
    assert_eq!(world.history(), words(&[("sha256:b", "RolledBack")]));
}

#[test]
fn settings_are_gone_back_to_like_components() {
    let mut world = World::with("sha256:a");
    world.settings(json!({"region": "us"}));
    world.publish("sha256:a");
    world.settings(json!({"region": "eu"}));
    world.publish("sha256:a");
    assert_eq!((world.revision().settings, world.history()), (Some(json!({"region": "eu"})), words(&[("sha256:a", "Removed")])));
}

#[test]
fn a_failing_candidate_is_left_by_editing_the_spec_back() {
    let mut world = all(&["a"]);
    world.image("registry.example/env:b");
    world.fail(Step::Compatible, false, found("sha256:b"));
    world.image("registry.example/env:a");
    let plan = world.pass();
    assert_eq!((world.health().as_str(), world.status().candidate, world.history()), ("Ready/Ready", None, vec![]));
    assert_eq!((events(&plan), world.steps().len()), (vec![], 4));
}

#[test]
fn the_history_has_as_many_as_are_wanted() {
    let layers: Vec<String> = (0..14).map(|number| format!("sha256:{number}")).collect();
    let layers: Vec<&str> = layers.iter().map(String::as_str).collect();
    for (limit, kept) in [(None, 3), (Some(0), 0), (Some(1), 1), (Some(10), 10), (Some(11), 10), (Some(-1), 3)] {
        let mut world = World::new();
        if let Some(limit) = limit {
            world.history_limit(limit);
        }
        layers.iter().for_each(|layer| drop(world.publish(layer)));
        let latest: Vec<_> = layers.iter().rev().skip(1).take(kept).map(|layer| ((*layer).to_owned(), "Superseded".to_owned())).collect();
        assert_eq!(world.history(), latest, "{limit:?}");
    }
    let mut world = World::with_all(&layers);
    world.history_limit(1);
    world.pass();
    assert_eq!(world.history(), words(&[("sha256:12", "Superseded")]), "a lower limit holds at once");
}

#[test]
fn large_settings_of_former_revisions_are_not_kept() {
    let mut world = World::new();
    world.history_limit(10);
    for size in [5, 60_000, 60_000, 60_000, 60_000, 50_000, 5, 7] {
        world.settings(json!({"text": "x".repeat(size), "number": world.snapshot.policy.metadata.generation}));
        world.publish("sha256:a");
    }
    let history = world.status().history.unwrap();
    let kept: Vec<_> = history.iter().map(|former| former.settings.as_ref().map(|s| s["text"].as_str().unwrap().len())).collect();
    assert_eq!(kept, [Some(5), Some(50_000), Some(60_000), Some(60_000), Some(60_000), None, Some(5)], "small older ones have room");
    assert_eq!(world.revision().settings.unwrap()["text"], "xxxxxxx");
}

#[test]
fn going_back_works_while_the_registry_is_away() {
    let mut world = all(&["a", "b"]);
    world.image("registry.example/env:a");
    world.pass();
    let plan = world.fail(Step::Resolved, true, Found::default());
    assert_eq!((world.active().as_str(), world.health().as_str()), ("sha256:a", "Ready/Ready"));
    assert_eq!((events(&plan), world.history()), (vec!["Activated"], words(&[("sha256:b", "Removed")])));
    assert_eq!(world.said("Resolved"), ("False".into(), "NotResolved".into(), "Resolved went wrong".into()));
    assert_eq!(world.revision().manifest_digest.as_deref(), Some("sha256:manifest-of-sha256:a"));
}

#[test]
fn what_failed_or_is_refused_is_not_gone_back_to_without_a_look() {
    let mut world = all(&["a", "b"]);
    world.image("registry.example/env:a");
    world.fail(Step::Resolved, false, Found::default());
    assert_eq!((world.active().as_str(), world.health().as_str()), ("sha256:b", "Stalled/NotResolved"), "not a registry that is away");

    let mut world = all(&["a", "b"]);
    world.image("registry.example/env:a");
    world.snapshot.verification = Some("sha256:rules".into());
    world.fail(Step::Resolved, true, Found::default());
    assert_eq!(
        (world.active().as_str(), world.health().as_str()),
        ("sha256:b", "Reconciling/Retrying"),
        "nobody verified it by these rules"
    );

    let mut world = all(&["a", "b"]);
    world.trip();
    world.image("registry.example/env:c");
    world.image("registry.example/env:b");
    world.fail(Step::Resolved, true, Found::default());
    assert_eq!(world.active(), "sha256:a", "it failed in use");
}
