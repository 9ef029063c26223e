//! A step that fails takes nothing away.

use serde_json::json;
use weir_core::{
    events::EventType,
    reconcile_policy::{
        is_current,
        snapshot::{Found, Step},
        validate,
    },
};

use crate::world::{IMAGE, STEPS, World, events, found, pair, words};

/// The conditions of the steps when this one has failed.
fn up_to(step: Step) -> Vec<(String, String)> {
    let all = ["Resolved", "Verified", "Compatible", "SettingsValid"];
    let failed = STEPS.iter().position(|s| *s == step).unwrap().min(3);
    let said = |(place, name): (usize, &&str)| ((*name).to_owned(), if place < failed { "True" } else { "False" }.to_owned());
    all.iter().enumerate().take(failed + 1).map(said).collect()
}

#[test]
fn every_step_may_fail_for_the_first_one() {
    for step in STEPS {
        let mut world = World::new();
        let plan = world.fail(step, false, found("sha256:a"));
        let reason = format!("Not{step:?}");
        let message = format!("{step:?} went wrong; until then the next policy in line, or the built-in one, answers");
        assert_eq!(world.said("Stalled"), ("True".into(), reason.clone(), message.clone()), "{step:?}");
        assert_eq!(world.said("Ready"), ("False".into(), reason.clone(), message));
        assert_eq!(world.said("Active"), ("False".into(), reason.clone(), format!("{step:?} went wrong")));
        assert_eq!((world.active().as_str(), world.steps()), ("", up_to(step)));
        let seen: Vec<_> = plan.events.iter().map(|e| (e.type_, e.reason.as_str(), e.message.as_str())).collect();
        assert_eq!(seen, [(EventType::Warning, reason.as_str(), "The policy cannot take over")]);
        assert_eq!(world.status().candidate.unwrap().layer_digest.as_deref(), Some("sha256:a"));
    }
}

#[test]
fn every_step_may_fail_while_another_one_answers() {
    for step in STEPS {
        let mut world = World::with("sha256:a");
        let before = world.revision();
        let plan = world.fail(step, false, found("sha256:b"));
        assert_eq!((world.revision(), world.history()), (before, vec![]), "{step:?}");
        assert_eq!(world.health(), format!("Stalled/Not{step:?}"));
        assert_eq!(world.said("Stalled").2, format!("{step:?} went wrong; sha256:a stays in force"));
        assert_eq!((world.is("Active"), world.steps()), (pair("True", "Active"), up_to(step)));
        assert_eq!(events(&plan), [format!("Not{step:?}")]);
        assert_eq!(world.status().candidate.unwrap().layer_digest.as_deref(), Some("sha256:b"));
        world.publish("sha256:c");
        assert_eq!((world.active().as_str(), world.health().as_str()), ("sha256:c", "Ready/Ready"));
    }
}

#[test]
fn what_may_pass_by_itself_is_no_failure_yet() {
    for step in STEPS {
        for mut world in [World::new(), World::with("sha256:a")] {
            let active = world.active();
            let plan = world.fail(step, true, found("sha256:b"));
            assert_eq!((world.active(), world.health()), (active, "Reconciling/Retrying".into()), "{step:?}");
            assert!(world.said("Ready").2.starts_with(&format!("{step:?} went wrong; it is tried again by itself; ")));
            assert_eq!((events(&plan), world.steps()), (vec![], up_to(step)));
        }
    }
}

#[test]
fn another_attempt_is_no_news() {
    for (step, transient) in STEPS.into_iter().flat_map(|step| [(step, false), (step, true)]) {
        for mut world in [World::new(), World::with("sha256:a")] {
            world.fail(step, transient, found("sha256:b"));
            for next in STEPS.into_iter().filter(|next| *next <= step) {
                assert!(!world.busy(next, found("sha256:b")).status_changed, "{step:?} {next:?}");
            }
            assert!(!world.busy(Step::Resolved, Found::default()).status_changed);
            world.restart();
            assert!(!world.pass().status_changed, "after a restart nothing is known");
            assert!(!is_current(&validate(&world.snapshot)), "and the shell has to look");
            assert!(!world.fail(step, transient, found("sha256:b")).status_changed);
        }
    }
}

#[test]
fn what_gets_further_than_before_is_on_its_way() {
    let mut world = World::with("sha256:a");
    world.fail(Step::Verified, false, found("sha256:b"));
    world.busy(Step::Compatible, found("sha256:b"));
    assert_eq!((world.health().as_str(), world.steps()), ("Reconciling/Pending", words(&[("Resolved", "True"), ("Verified", "True")])));
    world.fail(Step::Verified, false, found("sha256:b"));
    world.busy(Step::Resolved, found("sha256:c"));
    assert_eq!(world.health(), "Reconciling/Pending", "another one says nothing about the one that failed");
    world.publish("sha256:c");
    assert_eq!((world.active().as_str(), world.status().candidate), ("sha256:c", None));
}

#[test]
fn a_tag_that_moves_back_is_well_again() {
    let mut world = World::with("sha256:a");
    world.fail(Step::Compatible, false, found("sha256:b"));
    assert_eq!(world.health(), "Stalled/NotCompatible");
    world.publish("sha256:a");
    assert_eq!((world.health().as_str(), world.status().candidate, world.history()), ("Ready/Ready", None, vec![]));
    assert!(!world.busy(Step::Resolved, Found::default()).status_changed);
}

#[test]
fn a_registry_that_is_away_harms_nobody() {
    for transient in [true, false] {
        let mut world = World::with("sha256:a");
        let plan = world.fail(Step::Resolved, transient, Found::default());
        assert_eq!((world.health().as_str(), world.active().as_str()), ("Ready/Ready", "sha256:a"));
        assert_eq!(world.said("Ready").2, "it answers for 7 objects; Resolved went wrong");
        assert_eq!(world.said("Resolved"), ("False".into(), "NotResolved".into(), "Resolved went wrong".into()));
        assert_eq!(world.steps()[1..], words(&[("Verified", "True"), ("Compatible", "True"), ("SettingsValid", "True")])[..]);
        assert_eq!((world.status().candidate, events(&plan)), (None, vec![]));
        assert!(!world.busy(Step::Resolved, Found::default()).status_changed, "another attempt is no news");
        world.restart();
        assert!(!world.pass().status_changed);
        assert!(!world.fail(Step::Resolved, transient, found("sha256:a")).status_changed, "nor is what answers already");
        world.publish("sha256:a");
        assert_eq!(world.said("Ready").2, "it answers for 7 objects");
    }
}

#[test]
fn a_manifest_that_holds_no_component_is_a_failure() {
    let mut world = World::with("sha256:a");
    world.fail(Step::Resolved, false, Found { manifest_digest: Some("sha256:html".into()), ..Found::default() });
    assert_eq!((world.health().as_str(), world.active().as_str()), ("Stalled/NotResolved", "sha256:a"));
    assert_eq!(world.status().candidate.unwrap().manifest_digest.as_deref(), Some("sha256:html"));
    world.fail(Step::Resolved, true, Found::default());
    assert_eq!(world.health(), "Reconciling/Retrying", "it is not known any more where the tag leads");
}

#[test]
fn a_look_that_fails_does_not_heal_what_was_refused() {
    let mut world = World::with("sha256:a");
    world.fail(Step::Compatible, false, found("sha256:b"));
    let plan = world.fail(Step::Resolved, true, Found::default());
    assert_eq!((world.health().as_str(), plan.status_changed), ("Stalled/NotCompatible", false));
}

#[test]
fn the_same_component_without_its_signature_is_said() {
    let mut world = World::with("sha256:a");
    let found = Found { manifest_digest: Some("sha256:unsigned".into()), ..found("sha256:a") };
    world.fail(Step::Verified, false, found.clone());
    assert_eq!((world.health().as_str(), world.active().as_str()), ("Stalled/NotVerified", "sha256:a"));
    assert!(!world.busy(Step::Resolved, Found::default()).status_changed);
}

#[test]
fn other_rules_make_what_answers_come_again_and_stay_meanwhile() {
    let mut world = World::with("sha256:a");
    world.snapshot.verification = Some("sha256:rules".into());
    world.restart();
    world.pass();
    assert_eq!((world.health().as_str(), world.active().as_str()), ("Reconciling/Pending", "sha256:a"));
    let wanted = Found { verification: Some("sha256:rules".into()), ..found("sha256:a") };
    world.fail(Step::Verified, false, wanted.clone());
    assert_eq!((world.health().as_str(), world.active().as_str()), ("Stalled/NotVerified", "sha256:a"));
    let plan = world.ready(Found { signer: Some("key b".into()), ..wanted });
    assert_eq!((world.health().as_str(), world.said("Verified").2.as_str()), ("Ready/Ready", "key b"));
    assert_eq!((world.revision().signer.as_deref(), events(&plan), world.history()), (Some("key b"), vec![], vec![]));
}

#[test]
fn who_signed_is_said_of_what_the_steps_are_about() {
    let mut world = World::new();
    world.ready(Found { signer: Some("key a".into()), ..found("sha256:a") });
    world.fail(Step::Compatible, false, Found { signer: Some("key b".into()), ..found("sha256:b") });
    assert_eq!(world.said("Verified").2, "key b");
    assert_eq!(world.revision().signer.as_deref(), Some("key a"));
}

#[test]
fn an_image_that_is_none_is_said_whatever_the_shell_does() {
    let mut world = World::with("sha256:a");
    world.image("registry.example/env: 2");
    let plan = world.pass();
    let message = world.said("Stalled").2;
    assert!(message.starts_with("spec.source.oci.image: \"registry.example/env: 2\" is no image reference: "), "{message}");
    assert_eq!((world.health().as_str(), world.active().as_str()), ("Stalled/InvalidImage", "sha256:a"));
    assert_eq!(events(&plan), ["InvalidImage"]);
    world.image(IMAGE);
    world.pass();
    assert_eq!(world.health(), "Ready/Ready");
}

#[test]
fn settings_that_are_too_large_never_take_over() {
    let mut world = World::with("sha256:a");
    world.settings(json!({"text": "x".repeat(64 << 10)}));
    let plan = world.publish("sha256:a");
    let message = "spec.settings has 65547 bytes as JSON, at most 65536 are allowed: shorten it; sha256:a stays in force";
    assert_eq!(world.said("Stalled"), ("True".into(), "SettingsTooLarge".into(), message.into()));
    assert_eq!((world.revision().settings, events(&plan)), (Some(json!({"region": "eu"})), vec!["SettingsTooLarge"]));
    assert_eq!(world.said("SettingsValid").0, "False");
    world.check("1");
    world.pass();
    assert_eq!(world.annotation("weir.dev/checked-at").as_deref(), Some("1"), "there is nothing to wait for");
    world.settings(json!({"text": "x".repeat((64 << 10) - 11)}));
    world.publish("sha256:a");
    assert_eq!(world.health(), "Ready/Ready");
}

#[test]
fn what_answers_is_no_candidate_while_it_is_looked_at_again() {
    let mut world = World::with("sha256:a");
    world.fail(Step::Resolved, false, Found::default());
    let before = world.status();
    for _ in 0..2 {
        world.busy(Step::Resolved, found("sha256:a"));
        assert_eq!((world.status().candidate, world.health().as_str()), (None, "Ready/Ready"));
        assert_eq!(world.status().conditions, before.conditions);
    }
}
