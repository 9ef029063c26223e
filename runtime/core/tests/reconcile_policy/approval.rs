//! Strategy Manual: nothing takes over without a person's word about exactly it.

use serde_json::json;
use weir_api::{
    keys,
    reconcile_policy::{Impact, PolicyLimits, Strategy},
};
use weir_core::reconcile_policy::{
    is_current,
    snapshot::{Found, Step},
    validate,
};

use crate::world::{World, events, found, pair, words};

fn approve(world: &mut World, text: &str) {
    world.annotate(keys::APPROVED_DIGEST, text);
}

/// A manual world in which this component answers.
fn approved(layer: &str) -> World {
    let mut world = World::manual();
    approve(&mut world, layer);
    world.publish(layer);
    assert_eq!(world.active(), layer);
    world
}

#[test]
fn the_very_first_one_waits_too() {
    let mut world = World::manual();
    let impact = Impact { evaluated: 9, matching: 7, changed: 2, refused: 1, failed: 0, rolls: 2 };
    let plan = world.ready_with(found("sha256:a"), vec![], Some(impact));
    let candidate = world.status().candidate.unwrap();
    assert_eq!((candidate.approve.as_deref(), candidate.impact), (Some("sha256:a"), Some(impact)));
    assert_eq!((world.active().as_str(), world.health().as_str()), ("", "Reconciling/AwaitingApproval"));
    let message = "a revision waits: set annotation weir.dev/approved-digest to sha256:a";
    assert_eq!(world.said("Held"), ("True".into(), "AwaitingApproval".into(), message.into()));
    assert_eq!(world.said("Ready"), ("False".into(), "AwaitingApproval".into(), message.into()));
    assert_eq!((world.is("Active"), world.steps().len()), (pair("False", "AwaitingApproval"), 4));
    assert_eq!(events(&plan), ["AwaitingApproval"]);

    approve(&mut world, "sha256:a");
    let plan = world.pass();
    assert_eq!((world.active().as_str(), world.health().as_str(), events(&plan)), ("sha256:a", "Ready/Ready", vec!["Activated"]));
    assert_eq!((world.is("Held"), world.status().candidate), (pair("False", "NothingHeld"), None));
}

#[test]
fn what_is_approved_before_it_comes_needs_no_further_word() {
    let mut world = approved("sha256:a");
    approve(&mut world, "sha256:b");
    world.publish("sha256:b");
    assert_eq!(world.active(), "sha256:b");
}

#[test]
fn a_moved_tag_waits_for_its_digest() {
    let mut world = approved("sha256:a");
    world.publish("sha256:b");
    let (_, _, message) = world.said("Held");
    assert_eq!(message, "a revision waits: set annotation weir.dev/approved-digest to sha256:b", "a word about what answers is not stale");
    assert_eq!((world.active().as_str(), world.is("Active")), ("sha256:a", pair("True", "Active")));
    approve(&mut world, "sha256:b");
    world.pass();
    assert_eq!((world.active().as_str(), world.history()), ("sha256:b", words(&[("sha256:a", "Superseded")])));
}

#[test]
fn other_settings_wait_for_both_digests() {
    let mut world = approved("sha256:a");
    world.settings(json!({"region": "us"}));
    world.publish("sha256:a");
    let wanted = format!("sha256:a/{}", world.settings_digest());
    assert_eq!(world.status().candidate.unwrap().approve, Some(wanted.clone()));
    assert!(!world.said("Held").2.contains("the annotation says"), "the layer alone let in what answers");
    approve(&mut world, &wanted);
    world.pass();
    assert_eq!((world.revision().settings, world.health().as_str()), (Some(json!({"region": "us"})), "Ready/Ready"));

    world.publish("sha256:b");
    assert_eq!(world.status().candidate.unwrap().approve.as_deref(), Some("sha256:b"), "the settings are those that answer");
    assert!(!world.said("Held").2.contains("the annotation says"));
    let both = format!("sha256:b/{}", world.settings_digest());
    approve(&mut world, &both);
    world.pass();
    assert_eq!(world.active(), "sha256:b", "both digests are always enough");
}

#[test]
fn other_limits_wait_as_well() {
    let mut world = approved("sha256:a");
    world.edit(|spec| spec.limits = Some(PolicyLimits { timeout: Some("5s".into()), memory: None }));
    world.publish("sha256:a");
    let wanted = format!("sha256:a/{}", world.settings_digest());
    assert_eq!((world.status().candidate.unwrap().approve, world.status().limits.unwrap().timeout), (Some(wanted), "200ms".into()));
}

#[test]
fn another_component_with_other_settings_waits_for_both_digests() {
    let mut world = approved("sha256:a");
    world.settings(json!({"region": "us"}));
    approve(&mut world, "sha256:b");
    world.publish("sha256:b");
    let wanted = format!("sha256:b/{}", world.settings_digest());
    assert_eq!((world.active().as_str(), world.status().candidate.unwrap().approve), ("sha256:a", Some(wanted)));
    assert!(world.said("Held").2.ends_with("; the annotation says \"sha256:b\", which is not what waits, and changes nothing"));
}

#[test]
fn a_word_about_something_else_changes_nothing_and_is_said() {
    let mut world = approved("sha256:a");
    world.publish("sha256:b");
    let digest = world.settings_digest();
    for (text, shown) in [
        ("sha256:x", "sha256:x".to_owned()),
        ("sha256:b/sha256:x", "sha256:b/sha256:x".to_owned()),
        ("sha256:b ", "sha256:b ".to_owned()),
        ("sha256:\u{1b}[2Jc", "sha256:[2Jc".to_owned()),
        ("y".repeat(500).as_str(), "y".repeat(160)),
    ] {
        approve(&mut world, text);
        let plan = world.pass();
        let message = world.said("Held").2;
        assert!(message.ends_with(&format!("; the annotation says {shown:?}, which is not what waits, and changes nothing")), "{message}");
        assert_eq!((world.active().as_str(), events(&plan)), ("sha256:a", vec!["AwaitingApproval"]));
    }
    for text in ["", "sha256:a", format!("sha256:a/{digest}").as_str()] {
        approve(&mut world, text);
        world.pass();
        assert!(!world.said("Held").2.contains("the annotation says"), "{text:?} names what answers, or nothing");
        assert_eq!(world.active(), "sha256:a");
    }
}

#[test]
fn what_waits_waits_through_looks_and_restarts() {
    let mut world = approved("sha256:a");
    let impact = Impact { evaluated: 1, ..Impact::default() };
    world.ready_with(Found { signer: Some("key b".into()), ..found("sha256:b") }, vec![], Some(impact));
    assert!(!world.busy(Step::Resolved, Found::default()).status_changed);
    assert!(!world.busy(Step::Answers, found("sha256:b")).status_changed);
    assert!(!world.fail(Step::Resolved, true, Found::default()).status_changed);
    world.restart();
    assert!(!world.pass().status_changed);
    assert!(!is_current(&validate(&world.snapshot)), "the shell has to look");

    approve(&mut world, "sha256:b");
    let plan = world.pass();
    assert_eq!((world.health().as_str(), world.active().as_str()), ("Reconciling/Pending", "sha256:a"), "it is not at hand yet");
    assert_eq!((world.status().candidate.unwrap().approve, events(&plan)), (None, vec![]));
    world.publish("sha256:b");
    assert_eq!(world.active(), "sha256:b");
}

#[test]
fn another_candidate_takes_the_place_of_the_one_that_waits() {
    let mut world = approved("sha256:a");
    world.publish("sha256:b");
    world.busy(Step::Compatible, found("sha256:c"));
    assert_eq!((world.health().as_str(), world.is("Held")), ("Reconciling/Pending", pair("False", "NothingHeld")));
    approve(&mut world, "sha256:b");
    world.publish("sha256:c");
    assert_eq!((world.active().as_str(), world.status().candidate.unwrap().approve.as_deref()), ("sha256:a", Some("sha256:c")));
    world.publish("sha256:a");
    assert_eq!((world.health().as_str(), world.status().candidate), ("Ready/Ready", None), "the tag went back");
}

#[test]
fn automatic_lets_in_what_waits() {
    let mut world = approved("sha256:a");
    world.publish("sha256:b");
    world.edit(|spec| spec.rollout.as_mut().unwrap().strategy = Some(Strategy::Automatic));
    world.pass();
    assert_eq!((world.health().as_str(), world.condition("Held")), ("Reconciling/Pending", None));
    world.publish("sha256:b");
    assert_eq!(world.active(), "sha256:b");
}

#[test]
fn going_back_needs_a_word_too() {
    let mut world = approved("sha256:a");
    world.image("registry.example/env:2");
    approve(&mut world, "sha256:b");
    world.publish("sha256:b");
    world.image("registry.example/env:1");
    world.publish("sha256:a");
    assert_eq!((world.active().as_str(), world.health().as_str()), ("sha256:b", "Reconciling/AwaitingApproval"));
    approve(&mut world, "sha256:a");
    world.pass();
    assert_eq!((world.active().as_str(), world.history()), ("sha256:a", words(&[("sha256:b", "Removed")])));
}

#[test]
fn the_same_component_by_another_name_needs_no_word() {
    let mut world = approved("sha256:a");
    world.image("registry.example/env:stable");
    world.publish("sha256:a");
    assert_eq!((world.health().as_str(), world.revision().image.as_deref()), ("Ready/Ready", Some("registry.example/env:stable")));
}

#[test]
fn a_revision_that_fails_is_gone_back_from_without_a_word() {
    let mut world = approved("sha256:a");
    approve(&mut world, "sha256:b");
    world.publish("sha256:b");
    world.trip();
    assert_eq!((world.active().as_str(), world.health().as_str()), ("sha256:a", "Stalled/RolledBack"), "although it is still approved");
}

#[test]
fn what_answers_and_fails_is_said_while_another_one_waits() {
    let mut world = approved("sha256:a");
    world.publish("sha256:b");
    let plan = world.trip();
    let (_, reason, message) = world.said("Stalled");
    assert_eq!((reason.as_str(), world.is("Held")), ("Trap", pair("True", "AwaitingApproval")));
    assert!(message.starts_with("a revision waits: ") && message.contains("no former revision to go back to"), "{message}");
    assert_eq!(events(&plan), ["NoRevisionLeft"]);
    approve(&mut world, "sha256:b");
    world.pass();
    assert_eq!((world.active().as_str(), world.health().as_str()), ("sha256:b", "Ready/Ready"));
}
