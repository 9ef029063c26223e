//! What the spec asks for takes over.

use serde_json::json;
use weir_api::reconcile_policy::{EffectiveLimits, Mode, PolicyLimits, Revision};
use weir_core::{
    events::EventType,
    hash,
    policy::PolicyError,
    reconcile_policy::{
        is_current,
        snapshot::{Found, Reach, Step},
        validate,
    },
};

use crate::world::{IMAGE, STEPS, World, events, finding, found, pair, seconds, words};

#[test]
fn the_first_one_takes_over_once_every_step_is_done() {
    let mut world = World::new();
    let now = world.now();
    let plan = world.ready(Found { signer: Some("key a".into()), version: Some("1.0.0".into()), ..found("sha256:a") });
    let expected = Revision {
        image: Some(IMAGE.into()),
        manifest_digest: Some("sha256:manifest-of-sha256:a".into()),
        layer_digest: "sha256:a".into(),
        settings_digest: hash::digest_json(&json!({"settings": {"region": "eu"}, "timeoutMs": 200, "memory": 32 << 20})),
        signer: Some("key a".into()),
        version: Some("1.0.0".into()),
        verification: None,
        limits: Some(EffectiveLimits { timeout: "200ms".into(), memory: "32Mi".into() }),
        settings: Some(json!({"region": "eu"})),
        since: Some(seconds(now)),
        reason: None,
    };
    let status = world.status();
    assert_eq!((world.revision(), status.candidate, status.history), (expected, None, None));
    assert_eq!((status.source.as_deref(), status.objects), (Some(IMAGE), Some(7)));
    assert_eq!(world.health(), "Ready/Ready");
    assert_eq!(world.said("Ready").2, "it answers for 7 objects");
    assert_eq!(world.said("Active"), ("True".into(), "Active".into(), format!("sha256:a of {IMAGE} (1.0.0)")));
    assert_eq!(world.steps(), words(&[("Resolved", "True"), ("Verified", "True"), ("Compatible", "True"), ("SettingsValid", "True")]));
    assert_eq!(world.said("Verified"), ("True".into(), "Signed".into(), "key a".into()));
    assert_eq!(world.condition("Held"), None, "only where a person is asked");
    assert_eq!(plan.events.iter().map(|e| (e.type_, e.reason.as_str())).collect::<Vec<_>>(), [(EventType::Normal, "Activated")]);
    assert!(is_current(&validate(&world.snapshot)));
}

#[test]
fn the_steps_before_are_true_and_the_others_not_said() {
    for (done, step) in STEPS.into_iter().enumerate() {
        let mut world = World::new();
        let plan = world.busy(step, Found { layer_digest: (step > Step::Resolved).then(|| "sha256:a".into()), ..Found::default() });
        // Settings are true when the component answers with them.
        let expected = [("Resolved", "True"), ("Verified", "True"), ("Compatible", "True")];
        assert_eq!(world.steps(), words(&expected[..done.min(3)]), "{step:?}");
        assert_eq!((world.active().as_str(), world.health().as_str()), ("", "Reconciling/Pending"));
        assert_eq!(world.is("Active"), pair("False", "Pending"));
        let message = world.said("Reconciling").2;
        assert!(message.starts_with(IMAGE) && message.contains("until then the next policy in line, or the built-in one"), "{message}");
        let candidate = world.status().candidate.unwrap();
        assert_eq!((candidate.image.as_deref(), candidate.settings_digest), (Some(IMAGE), Some(world.settings_digest())));
        assert_eq!(events(&plan), [""; 0]);
        assert!(!is_current(&validate(&world.snapshot)));
    }
}

#[test]
fn nothing_is_known_at_first() {
    let mut world = World::new();
    world.pass();
    assert_eq!((world.health().as_str(), world.steps()), ("Reconciling/Pending", vec![]));
    assert!(world.said("Ready").2.contains("it is looked up and fetched"));
}

#[test]
fn a_tag_that_moved_brings_another_component() {
    let mut world = World::with("sha256:a");
    let plan = world.publish("sha256:b");
    assert_eq!((world.active().as_str(), world.history()), ("sha256:b", words(&[("sha256:a", "Superseded")])));
    assert_eq!((world.health().as_str(), events(&plan)), ("Ready/Ready", vec!["Activated"]));
    assert_eq!(world.status().history.unwrap()[0].settings, Some(json!({"region": "eu"})), "what may take over again keeps its settings");
}

#[test]
fn a_tag_that_moved_never_dips_ready() {
    let mut world = World::with("sha256:a");
    for step in STEPS {
        let plan = world.busy(step, found("sha256:b"));
        assert_eq!((plan.status_changed, world.health().as_str()), (false, "Ready/Ready"), "{step:?}");
    }
    world.publish("sha256:b");
    assert_eq!(world.active(), "sha256:b");
}

#[test]
fn the_same_component_in_another_manifest_is_no_swap() {
    let mut world = World::with("sha256:a");
    let since = world.revision().since;
    let plan = world.ready(Found { manifest_digest: Some("sha256:other".into()), version: Some("2".into()), ..found("sha256:a") });
    let active = world.revision();
    assert_eq!((active.manifest_digest.as_deref(), active.version.as_deref()), (Some("sha256:other"), Some("2")));
    assert_eq!((active.since, world.history(), events(&plan)), (since, vec![], vec![]));
}

#[test]
fn another_name_of_the_same_component_is_no_swap() {
    let mut world = World::with("sha256:a");
    let since = world.revision().since;
    world.image("registry.example/env:stable");
    assert!(!is_current(&validate(&world.snapshot)));
    world.pass();
    assert_eq!(world.health(), "Reconciling/Pending", "nobody knows yet that it is the same");
    assert!(world.said("Ready").2.ends_with("; sha256:a stays in force"));
    world.publish("sha256:a");
    assert_eq!((world.revision().image.as_deref(), world.history()), (Some("registry.example/env:stable"), vec![]));
    assert_eq!((world.revision().since, world.health().as_str()), (since, "Ready/Ready"));
}

#[test]
fn other_settings_are_another_revision() {
    let mut world = World::with("sha256:a");
    let before = world.settings_digest();
    world.settings(json!({"region": "us"}));
    world.pass();
    assert_eq!((world.revision().settings, world.health().as_str()), (Some(json!({"region": "eu"})), "Reconciling/Pending"));
    let plan = world.publish("sha256:a");
    assert_eq!((world.revision().settings, events(&plan)), (Some(json!({"region": "us"})), vec!["Activated"]));
    assert_eq!(world.history(), words(&[("sha256:a", "Superseded")]));
    assert_eq!(world.status().history.unwrap()[0].settings_digest, before);
}

#[test]
fn other_limits_are_another_revision() {
    let mut world = World::with("sha256:a");
    let before = world.settings_digest();
    world.edit(|spec| spec.limits = Some(PolicyLimits { timeout: Some("1s".into()), memory: None }));
    assert_ne!(world.settings_digest(), before);
    world.pass();
    assert_eq!(world.status().limits.unwrap().timeout, "200ms", "of what answers");
    world.publish("sha256:a");
    assert_eq!(world.status().limits, Some(EffectiveLimits { timeout: "1000ms".into(), memory: "32Mi".into() }));
    assert_eq!(world.status().history.unwrap()[0].limits, Some(EffectiveLimits { timeout: "200ms".into(), memory: "32Mi".into() }));
}

#[test]
fn a_range_is_compared_as_it_is_written_and_the_tag_is_the_version() {
    let mut world = World::new();
    world.edit(|spec| {
        let oci = spec.source.oci.as_mut().unwrap();
        (oci.image, oci.semver) = ("registry.example:5000/env".into(), Some("^1.2".into()));
    });
    let tag = |tag: &str| Some(format!("registry.example:5000/env{tag}"));
    world.ready(Found { image: tag(":1.2.3@sha256:m"), ..found("sha256:a") });
    let active = world.revision();
    assert_eq!((active.image.as_deref(), active.version.as_deref()), (Some("registry.example:5000/env ^1.2"), Some("1.2.3")));
    world.restart();
    assert!(is_current(&validate(&world.snapshot)) && !world.pass().status_changed);
    world.ready(Found { image: tag(":1.2.4"), version: Some("1.2.4-of-its-own".into()), ..found("sha256:b") });
    assert_eq!(world.revision().version.as_deref(), Some("1.2.4-of-its-own"));
    world.ready(Found { image: tag("@sha256:m"), ..found("sha256:c") });
    assert_eq!(world.revision().version, None, "a registry's port is no tag");
}

#[test]
fn the_built_in_one_needs_no_image_and_no_signature() {
    let mut world = World::new();
    world.edit(|spec| (spec.source.oci, spec.source.builtin) = (None, Some(Default::default())));
    world.snapshot.verification = Some("sha256:rules".into());
    world.ready(Found { layer_digest: Some("sha256:inside".into()), ..Found::default() });
    assert_eq!((world.active().as_str(), world.revision().image, world.revision().verification), ("sha256:inside", None, None));
    assert_eq!(world.status().source.as_deref(), Some("builtin"));
    assert_eq!(world.is("Verified"), pair("True", "NotRequired"));
    assert!(is_current(&validate(&world.snapshot)));
}

#[test]
fn a_signature_that_is_not_wanted_any_more_lets_nothing_in() {
    let mut world = World::with("sha256:a");
    world.snapshot.verification = Some("sha256:rules".into());
    assert!(!is_current(&validate(&world.snapshot)), "what answers was not verified by these rules");
    world.ready(found("sha256:b"));
    assert_eq!((world.active().as_str(), world.health().as_str()), ("sha256:a", "Reconciling/Pending"));
    assert!(world.said("Ready").2.contains("its signatures are looked for"));
    world.publish("sha256:b");
    assert_eq!((world.active().as_str(), world.revision().verification.as_deref()), ("sha256:b", Some("sha256:rules")));
}

#[test]
fn a_component_without_a_digest_is_none() {
    let mut world = World::new();
    world.ready(Found { layer_digest: None, ..found("sha256:a") });
    assert_eq!((world.active().as_str(), world.health().as_str()), ("", "Reconciling/Pending"));
}

#[test]
fn what_the_component_says_about_its_settings_stays_while_it_is_looked_at_again() {
    let mut world = World::new();
    world.ready_with(found("sha256:a"), vec![finding("settings.region", "is deprecated"), finding("settings.x", "is unknown")], None);
    let message = "settings.region: is deprecated; settings.x: is unknown";
    assert_eq!(world.said("SettingsValid"), ("True".into(), "Valid".into(), message.into()));
    assert!(!world.busy(Step::Resolved, Found::default()).status_changed);
    world.restart();
    assert!(!world.pass().status_changed);
    world.publish("sha256:b");
    assert_eq!(world.said("SettingsValid").2, "");
}

#[test]
fn a_policy_that_is_outranked_says_by_whom() {
    let mut world = World::with("sha256:a");
    let ambiguous = vec!["weir-system/other".to_owned()];
    world.snapshot.reach = Reach { objects: 2, lost: 5, lost_to: Some("weir-system/best".into()), ambiguous };
    world.pass();
    let message = "it answers for 2 objects; of those it selects, 5 are answered for by policy weir-system/best; policy weir-system/other has \
                   the same priority: give them different ones";
    assert_eq!((world.said("Ready").2.as_str(), world.status().objects), (message, Some(2)));
}

#[test]
fn a_shadow_answers_nobody() {
    let mut world = World::new();
    world.edit(|spec| spec.mode = Some(Mode::Shadow));
    world.publish("sha256:a");
    assert_eq!((world.is("Active"), world.health().as_str()), (pair("False", "Shadow"), "Ready/Ready"));
    assert_eq!(world.said("Ready").2, "it is asked beside the policy in force");
}

#[test]
fn what_does_not_run_here_is_not_active() {
    let mut world = World::with("sha256:a");
    world.snapshot.not_running = Some(PolicyError::Unavailable("it is being compiled".into()).to_string());
    world.pass();
    assert_eq!((world.is("Active"), world.health().as_str()), (pair("False", "NotRunning"), "Reconciling/NotRunning"));
    world.fail(Step::Resolved, true, Found::default());
    assert_eq!(world.health(), "Reconciling/NotRunning", "a registry that is away makes it no better");
    world.snapshot.not_running = None;
    world.publish("sha256:a");
    assert_eq!((world.is("Active"), world.health().as_str()), (pair("True", "Active"), "Ready/Ready"));
}
