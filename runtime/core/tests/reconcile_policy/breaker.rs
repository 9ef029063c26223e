//! The breaker opened: the revision in force fails for too many objects.

use serde_json::json;
use weir_api::reconcile_policy::{EffectiveLimits, Strategy};
use weir_core::{
    events::EventType,
    reconcile_policy::{
        is_current,
        snapshot::{Found, Step, Tripped, Work},
        validate,
    },
};

use crate::world::{World, events, found, pair, seconds, words};

const NONE_LEFT: &str = "the revision in force fails; sha256:a stays in force, for there is no former revision to go back to, and objects \
                         keep their last answers: 3 of 7 objects got no answer: unreachable";

#[test]
fn the_latest_former_one_takes_over() {
    let mut world = World::with_all(&["sha256:a", "sha256:b", "sha256:c"]);
    let now = world.now();
    let plan = world.trip();
    assert_eq!((world.active().as_str(), world.revision().since, world.revision().reason), ("sha256:b", Some(seconds(now)), None));
    assert_eq!(world.history(), words(&[("sha256:c", "RolledBack"), ("sha256:a", "Superseded")]));
    assert_eq!((world.is("Active"), world.health().as_str()), (pair("True", "Active"), "Stalled/RolledBack"));
    let message = "sha256:c failed in use and was taken out; sha256:b stays in force: publish another one, change the settings, or set \
                   annotation weir.dev/check-at to a new value to try it again";
    assert_eq!(world.said("Stalled").2, message);
    assert_eq!(world.status().candidate.unwrap().layer_digest.as_deref(), Some("sha256:c"));
    let event = &plan.events[0];
    assert_eq!((event.type_, event.reason.as_str()), (EventType::Warning, "RolledBack"));
    assert_eq!(event.data, "back to sha256:b: Trap: 3 of 7 objects got no answer: unreachable");
    assert_eq!(plan.events.len(), 1, "said once");
}

#[test]
fn it_goes_back_further_when_that_one_fails_too() {
    let mut world = World::with_all(&["sha256:a", "sha256:b", "sha256:c"]);
    world.trip();
    world.trip();
    assert_eq!(world.active(), "sha256:a");
    assert_eq!(world.history(), words(&[("sha256:b", "RolledBack"), ("sha256:c", "RolledBack")]));
    let plan = world.trip();
    assert_eq!((world.active().as_str(), world.health().as_str()), ("sha256:a", "Stalled/RolledBack"));
    assert!(world.said("Stalled").2.contains("there is no former revision to go back to"), "{}", world.said("Stalled").2);
    assert_eq!(events(&plan), ["NoRevisionLeft"]);
}

#[test]
fn without_a_former_one_it_stays_and_says_so() {
    let mut world = World::with("sha256:a");
    let plan = world.trip();
    assert_eq!((world.active().as_str(), world.history()), ("sha256:a", vec![]));
    assert_eq!(world.said("Stalled"), ("True".into(), "Trap".into(), NONE_LEFT.into()));
    assert_eq!((world.is("Ready"), world.is("Active")), (pair("False", "Trap"), pair("True", "Active")));
    assert_eq!(events(&plan), ["NoRevisionLeft"]);
    world.snapshot.work = Work::None;
    assert!(!world.pass().status_changed);
    let plan = world.fail(Step::Resolved, true, Found::default());
    assert_eq!((world.said("Stalled").2.as_str(), events(&plan)), (NONE_LEFT, vec![]), "a registry that is away heals nothing");
    world.snapshot.tripped = None;
    world.publish("sha256:a");
    assert_eq!(world.health(), "Ready/Ready");
}

#[test]
fn a_breaker_of_another_revision_is_nobodys() {
    let mut world = World::with_all(&["sha256:a", "sha256:b"]);
    let tripped = |layer: &str, settings: String| Tripped {
        layer_digest: layer.into(),
        settings_digest: settings,
        reason: "Trap".into(),
        message: "m".into(),
    };
    for (layer, settings) in [("sha256:a", world.settings_digest()), ("sha256:b", "sha256:other".to_owned())] {
        world.snapshot.tripped = Some(tripped(layer, settings));
        assert!(!world.pass().status_changed);
    }
}

#[test]
fn nothing_goes_back_to_what_was_removed_or_failed() {
    let mut world = World::new();
    for (image, layer) in [(1, "a"), (2, "b"), (1, "a")] {
        world.image(&format!("registry.example/env:{image}"));
        world.publish(&format!("sha256:{layer}"));
    }
    assert_eq!((world.active().as_str(), world.history()), ("sha256:a", words(&[("sha256:b", "Removed")])));
    world.trip();
    assert_eq!((world.active().as_str(), world.said("Stalled").2.as_str()), ("sha256:a", NONE_LEFT));

    let mut world = World::with_all(&["sha256:a", "sha256:b"]);
    world.trip();
    world.trip();
    assert_eq!((world.active().as_str(), world.history()), ("sha256:a", words(&[("sha256:b", "RolledBack")])));
}

#[test]
fn nothing_goes_back_to_what_today_would_need_another_signature() {
    let mut world = World::with("sha256:a");
    world.snapshot.verification = Some("sha256:rules".into());
    world.publish("sha256:b");
    world.trip();
    assert_eq!(world.active(), "sha256:b");

    // Of several, the latest that is still allowed.
    let mut world = World::new();
    for (layer, rules) in [("a", "sha256:old"), ("b", "sha256:other"), ("c", "sha256:old")] {
        world.snapshot.verification = Some(rules.into());
        world.publish(&format!("sha256:{layer}"));
    }
    world.trip();
    assert_eq!(world.active(), "sha256:a");
    assert_eq!(world.history(), words(&[("sha256:c", "RolledBack"), ("sha256:b", "Superseded")]));
}

#[test]
fn what_ships_with_the_operator_needs_no_signature_to_be_gone_back_to() {
    let mut world = World::new();
    let oci = world.snapshot.policy.spec.source.oci.clone();
    world.edit(|spec| (spec.source.oci, spec.source.builtin) = (None, Some(Default::default())));
    world.ready(Found { layer_digest: Some("sha256:inside".into()), ..Found::default() });
    world.edit(|spec| (spec.source.oci, spec.source.builtin) = (oci, None));
    world.snapshot.verification = Some("sha256:rules".into());
    world.publish("sha256:a");
    world.trip();
    assert_eq!((world.active().as_str(), world.health().as_str()), ("sha256:inside", "Stalled/RolledBack"));
}

#[test]
fn nothing_goes_back_to_one_whose_settings_were_not_kept() {
    let mut world = World::with("sha256:a");
    for number in 0..6 {
        world.settings(json!({"text": "x".repeat(60_000), "number": number}));
        world.publish("sha256:a");
    }
    world.history_limit(10);
    assert_eq!(world.history().len(), 3);
    for _ in 0..3 {
        world.trip();
    }
    assert_eq!(world.history().len(), 3);
    let numbers = world.status().history.unwrap().into_iter().map(|r| r.settings.unwrap()["number"].clone()).collect::<Vec<_>>();
    assert_eq!((numbers, world.revision().settings.unwrap()["number"].clone()), (vec![json!(3), json!(4), json!(5)], json!(2)));

    let status = world.snapshot.policy.status.as_mut().unwrap();
    let history = status.history.as_mut().unwrap();
    (history[0].settings, history[0].reason) = (None, Some("Superseded".into()));
    world.trip();
    assert_eq!(world.revision().settings.unwrap()["number"], json!(2), "there is nothing it could run with");
}

#[test]
fn what_takes_over_brings_its_own_settings_and_limits() {
    let mut world = World::with("sha256:a");
    world.settings(json!({"region": "us"}));
    world.edit(|spec| spec.limits.get_or_insert_default().memory = Some("64Mi".into()));
    world.publish("sha256:a");
    world.trip();
    assert_eq!(world.revision().settings, Some(json!({"region": "eu"})));
    assert_eq!(world.status().limits, Some(EffectiveLimits { timeout: "200ms".into(), memory: "32Mi".into() }));
    assert_eq!((world.active().as_str(), world.health().as_str()), ("sha256:a", "Stalled/RolledBack"), "the component is the same");
}

#[test]
fn the_same_one_is_not_taken_again() {
    let mut world = World::with_all(&["sha256:a", "sha256:b"]);
    world.trip();
    assert!(!is_current(&validate(&world.snapshot)), "the tag may lead elsewhere by now");
    for step in [Step::Resolved, Step::Answers] {
        assert!(!world.busy(step, Found::default()).status_changed);
        assert!(!world.busy(step, found("sha256:b")).status_changed);
    }
    assert!(!world.fail(Step::Resolved, true, Found::default()).status_changed);
    assert!(!world.publish("sha256:b").status_changed);
    world.restart();
    assert!(!world.pass().status_changed);
    let plan = world.publish("sha256:b");
    assert_eq!((plan.status_changed, events(&plan), world.active().as_str()), (false, vec![], "sha256:a"));
}

#[test]
fn it_is_rolled_back_whatever_the_shell_knows_of_the_tag() {
    let works = [Work::None, Work::Busy { next: Step::Resolved, found: Found::default() }];
    for work in works {
        let mut world = World::with_all(&["sha256:a", "sha256:b"]);
        world.snapshot.work = work;
        let plan = world.trip();
        assert_eq!((world.active().as_str(), world.health().as_str()), ("sha256:a", "Stalled/RolledBack"));
        assert_eq!(events(&plan), ["RolledBack"]);
    }
}

#[test]
fn another_one_is_taken() {
    let mut world = World::with_all(&["sha256:a", "sha256:b"]);
    world.trip();
    world.busy(Step::Compatible, found("sha256:c"));
    assert_eq!(world.health(), "Reconciling/Pending");
    let plan = world.publish("sha256:c");
    assert_eq!((world.active().as_str(), world.health().as_str(), events(&plan)), ("sha256:c", "Ready/Ready", vec!["Activated"]));
    assert_eq!(world.history(), words(&[("sha256:a", "Superseded"), ("sha256:b", "RolledBack")]));
    world.trip();
    assert_eq!(world.active(), "sha256:a");
    let plan = world.publish("sha256:b");
    assert_eq!((world.active().as_str(), world.health().as_str()), ("sha256:a", "Stalled/RolledBack"), "it failed before");
    assert_eq!(events(&plan), ["NotTakenAgain"]);
}

#[test]
fn what_failed_stands_as_that_as_soon_as_a_tag_leads_to_it_again() {
    for transient in [true, false] {
        let mut world = World::with_all(&["sha256:a", "sha256:b"]);
        world.trip();
        world.publish("sha256:c");
        world.fail(Step::Resolved, transient, found("sha256:b"));
        assert_eq!((world.active().as_str(), world.health().as_str()), ("sha256:c", "Stalled/RolledBack"));
        assert_eq!(world.status().candidate.unwrap().layer_digest.as_deref(), Some("sha256:b"));
        world.publish("sha256:c");
        world.busy(Step::Compatible, found("sha256:b"));
        assert_eq!(world.health(), "Stalled/RolledBack");
    }
}

#[test]
fn other_settings_for_what_failed_are_taken() {
    let mut world = World::with_all(&["sha256:a", "sha256:b"]);
    world.trip();
    world.settings(json!({"region": "us"}));
    world.publish("sha256:b");
    assert_eq!((world.active().as_str(), world.health().as_str()), ("sha256:b", "Ready/Ready"));
    world.trip();
    assert_eq!((world.active().as_str(), world.revision().settings), ("sha256:a", Some(json!({"region": "eu"}))));
}

#[test]
fn a_candidate_that_is_ready_takes_over_from_the_one_that_fails() {
    let mut world = World::with_all(&["sha256:a", "sha256:b"]);
    world.snapshot.work = Work::Ready { found: found("sha256:c"), findings: vec![], impact: None };
    let plan = world.trip();
    assert_eq!(events(&plan), ["RolledBack", "Activated"]);
    assert_eq!((world.active().as_str(), world.health().as_str()), ("sha256:c", "Ready/Ready"));
    assert_eq!(world.history(), words(&[("sha256:a", "Superseded"), ("sha256:b", "RolledBack")]));
}

#[test]
fn what_failed_and_stayed_is_not_gone_back_to_later() {
    let mut world = World::with("sha256:a");
    world.trip();
    world.publish("sha256:b");
    assert_eq!((world.active().as_str(), world.history()), ("sha256:b", words(&[("sha256:a", "RolledBack")])));
    world.trip();
    assert_eq!((world.active().as_str(), world.is("Stalled")), ("sha256:b", pair("True", "Trap")));
}

#[test]
fn asking_for_a_fresh_look_tries_it_again() {
    let mut world = World::with_all(&["sha256:a", "sha256:b"]);
    world.trip();
    world.check("1");
    let plan = world.pass();
    assert_eq!((world.health().as_str(), plan.changes), ("Reconciling/Pending", vec![]), "nothing is known yet");
    let plan = world.publish("sha256:b");
    assert_eq!((world.active().as_str(), world.health().as_str()), ("sha256:b", "Ready/Ready"));
    assert_eq!((events(&plan), world.history()), (vec!["Activated"], words(&[("sha256:a", "Superseded")])));
    world.trip();
    assert_eq!((world.active().as_str(), world.health().as_str()), ("sha256:a", "Stalled/RolledBack"), "and it is gone back from again");
}

#[test]
fn a_fresh_look_that_fails_leaves_it_as_it_was() {
    let mut world = World::with_all(&["sha256:a", "sha256:b"]);
    world.trip();
    world.check("1");
    world.pass();
    let plan = world.fail(Step::Resolved, true, Found::default());
    assert_eq!((world.health().as_str(), world.annotation("weir.dev/checked-at").as_deref()), ("Stalled/RolledBack", Some("1")));
    assert!(events(&plan).contains(&"LookFailed"));
    world.publish("sha256:b");
    assert_eq!((world.active().as_str(), world.health().as_str()), ("sha256:a", "Stalled/RolledBack"), "the word was for that one look");
}

#[test]
fn a_fresh_look_closes_the_breaker() {
    let mut world = World::with_all(&["sha256:a", "sha256:b"]);
    world.annotate("weir.dev/check-at", "1");
    world.snapshot.work = Work::None;
    let plan = world.trip();
    assert_eq!((world.active().as_str(), plan.status_changed), ("sha256:b", false));
    let mut world = World::with("sha256:a");
    world.trip();
    world.check("1");
    world.pass();
    assert_eq!(world.health(), "Ready/Ready");
}

#[test]
fn it_stands_although_no_former_one_is_kept() {
    let mut world = World::with_all(&["sha256:a", "sha256:b"]);
    world.trip();
    world.history_limit(0);
    world.pass();
    assert_eq!((world.history(), world.health().as_str()), (vec![], "Stalled/RolledBack"));
    world.publish("sha256:b");
    assert_eq!((world.active().as_str(), world.health().as_str()), ("sha256:a", "Stalled/RolledBack"));
    world.trip();
    assert!(world.said("Stalled").2.contains("there is no former revision to go back to"));
    world.publish("sha256:c");
    assert_eq!((world.active().as_str(), world.history()), ("sha256:c", vec![]));
}

#[test]
fn what_failed_and_is_looked_at_anew_waits_for_its_word_until_somebody_says_it() {
    let mut world = World::with_all(&["sha256:a", "sha256:b"]);
    world.trip();
    world.edit(|spec| spec.rollout.get_or_insert_default().strategy = Some(Strategy::Manual));
    world.publish("sha256:b");
    assert_eq!(world.health(), "Stalled/RolledBack");
    world.check("1");
    world.publish("sha256:b");
    assert_eq!(world.annotation("weir.dev/checked-at").as_deref(), Some("1"), "the look is over");
    for _ in 0..2 {
        assert_eq!((world.active().as_str(), world.is("Held")), ("sha256:a", pair("True", "AwaitingApproval")));
        assert_eq!(world.history(), words(&[("sha256:b", "Removed")]), "nothing goes back to it by itself");
        world.restart();
        world.pass();
    }
    world.annotate("weir.dev/approved-digest", "sha256:b");
    world.publish("sha256:b");
    assert_eq!((world.active().as_str(), world.health().as_str()), ("sha256:b", "Ready/Ready"));
    world.trip();
    assert_eq!((world.active().as_str(), world.health().as_str()), ("sha256:a", "Stalled/RolledBack"), "and it is gone back from again");
}

#[test]
fn a_look_by_rules_of_yesterday_answers_nobody() {
    let mut world = World::with("sha256:a");
    world.trip();
    world.publish("sha256:b");
    assert_eq!(world.history(), words(&[("sha256:a", "RolledBack")]));
    world.check("1");
    world.ready(Found { verification: Some("sha256:yesterday".into()), ..found("sha256:a") });
    assert_eq!((world.active().as_str(), world.health().as_str()), ("sha256:b", "Reconciling/Pending"));
    assert_eq!(world.annotation("weir.dev/checked-at"), None);
    world.publish("sha256:a");
    assert_eq!((world.active().as_str(), world.annotation("weir.dev/checked-at").as_deref()), ("sha256:a", Some("1")));
}
