//! What a failing, refused or pending update takes away: nothing.

use std::sync::Arc;

use weir_api::{keys, plugin_installation::KongPluginInstallationStatus};
use weir_core::{
    events::EventType,
    plan::HeldPart,
    plugin_installation::{
        Need, provision,
        snapshot::{Fetch, PullSecret},
    },
    policy::{PolicyError, Refusal, plugin_packaging::PluginPackaging},
};

use crate::world::{Scripted, World, one_plugin, steps};

const LAST: &str = "; the last good content (registry.example/rate:1, sha256:one) stays on every DataPlane";

fn refusing(digest: &'static str) -> Arc<Scripted<PluginPackaging>> {
    Scripted::<PluginPackaging>::new("p2", move |input| {
        let refusal = Refusal { code: "NoHandler".into(), message: "there is no handler.lua: add it".into() };
        if input.digest == digest { Err(PolicyError::Refused(refusal)) } else { Ok(one_plugin(input)) }
    })
}

#[test]
fn a_refusal_is_an_answer_and_the_last_good_stays() {
    let mut world = World::installed();
    world.packaging = refusing("sha256:two");
    world.pass();
    let before = world.in_force();
    world.publish("sha256:two", "return {2}");
    let plan = world.pass_when(true);
    assert_eq!(world.in_force(), before);
    let words = "the policy refused (NoHandler): there is no handler.lua: add it";
    assert_eq!(world.said("Accepted"), ("False".into(), "Failed".into(), format!("{words}{LAST}")));
    assert_eq!(world.said("PoliciesApplied"), ("False".into(), "Refused".into(), words.into()));
    assert_eq!(plan.holds.iter().map(|h| (h.what, h.reason.as_str())).collect::<Vec<_>>(), [(HeldPart::Answer, "Refused")]);
    assert!(plan.events.iter().any(|e| (e.type_, e.reason.as_str()) == (EventType::Warning, "Failed")));

    let again = world.pass();
    assert_eq!(world.needed, [Need::Content { digest: Some("sha256:two".into()) }]);
    assert_eq!((again.status_changed, again.events.as_slice()), (false, [].as_slice()), "said once, and still so");

    // After a restart the artifact is not at hand at once.
    world.snapshot.fetch = Fetch::Pending;
    assert!(!world.dry().status_changed);

    world.publish("sha256:three", "return {3}");
    world.pass_when(true);
    assert_eq!((world.accepted().status.as_str(), world.in_force().unwrap().digest.as_str()), ("True", "sha256:three"));
}

#[test]
fn a_newer_policy_that_refuses_takes_nothing_away() {
    let mut world = World::installed();
    let before = world.in_force();
    world.packaging = refusing("sha256:one");
    let plan = world.pass();
    assert_eq!((world.in_force(), plan.changes), (before, vec![]));
    assert_eq!((world.said("Accepted").1.as_str(), world.said("PoliciesApplied").1.as_str()), ("Failed", "Refused"));
    world.publish("sha256:two", "return {2}");
    world.annotate(keys::CHECK_AT, "1");
    world.pass();
    assert_eq!(world.in_force().unwrap().digest, "sha256:two", "a look at the tag finds what the policy takes");
}

#[test]
fn a_policy_that_fails_keeps_what_is_of_this_image() {
    let mut world = World::installed();
    world.packaging = Scripted::new("p2", |_| Err(PolicyError::Deadline { limit_ms: 200 }));
    let plan = world.pass();
    assert_eq!(world.accepted().status, "True");
    assert_eq!(world.said("PoliciesApplied"), ("False".into(), "Deadline".into(), "the policy did not answer within 200 ms".into()));
    assert_eq!((world.said("Ready").1.as_str(), plan.changes), ("DependenciesNotReady", vec![]));

    world.image("registry.example/rate:2");
    world.pass();
    assert_eq!(world.said("Accepted"), ("False".into(), "Failed".into(), format!("the policy did not answer within 200 ms{LAST}")));
    assert_eq!(world.in_force().unwrap().image, "registry.example/rate:1");
}

#[test]
fn an_update_that_cannot_be_fetched_says_why() {
    let mut world = World::installed();
    world.image("registry.example/rate:9");
    world.tag = "sha256:none".into();
    let plan = world.pass();
    assert_eq!(world.said("Accepted"), ("False".into(), "Failed".into(), format!("no such manifest{LAST}")));
    assert_eq!((world.said("Ready").1.as_str(), plan.changes), ("Failed", vec![]));
    assert_eq!(plan.events.iter().map(|e| e.reason.as_str()).collect::<Vec<_>>(), ["Failed"]);
    assert_eq!(world.pass().events, []);
    world.snapshot.fetch = Fetch::Pending;
    assert!(!world.dry().status_changed, "another attempt is no news");
    world.publish("sha256:two", "return {2}");
    world.pass();
    assert_eq!(world.accepted().status, "True", "nothing of a tag of which nothing is in force is remembered");
}

#[test]
fn a_registry_that_is_away_harms_nobody() {
    let mut world = World::installed();
    world.snapshot.fetch = Fetch::Failed { message: "registry.example does not answer".into(), transient: true, digest: None };
    let plan = world.dry();
    world.carry_out(&plan);
    let message = "registry.example does not answer; sha256:one of registry.example/rate:1 stays in force";
    assert_eq!(world.said("Accepted"), ("True".into(), "Ready".into(), message.into()));
    assert!(plan.findings.iter().any(|f| f.code == "FetchFailed") && plan.holds.is_empty());
    world.snapshot.config_maps.clear();
    let lost = world.dry();
    world.carry_out(&lost);
    assert_eq!(world.accepted().status, "False", "what is lost and cannot be fetched is not there for new DataPlanes");
}

#[test]
fn a_pull_secret_matters_when_something_has_to_be_pulled() {
    let mut world = World::installed();
    world.snapshot.pull_secret = PullSecret::Unusable("Secret \"pull\" does not exist: create it".into());
    let plan = world.pass();
    let words = "spec.imagePullSecretRef: Secret \"pull\" does not exist: create it";
    assert_eq!((world.accepted().status.as_str(), world.said("Accepted").2.starts_with(words)), ("True", true));
    let finding = &plan.findings[0];
    assert_eq!((finding.code.as_str(), finding.path.as_str()), ("PullSecretUnusable", "spec.imagePullSecretRef"));
    assert!(plan.events.iter().any(|event| event.data == words), "the field is named once: {:?}", plan.events);
    world.image("registry.example/rate:2");
    world.pass();
    assert_eq!(world.said("Accepted"), ("False".into(), "Failed".into(), format!("{words}{LAST}")));
}

#[test]
fn an_image_that_is_none_is_never_asked_for() {
    let mut world = World::new();
    world.image("registry.example/rate: 1");
    let plan = world.pass();
    assert_eq!(world.needed, [Need::Nothing]);
    let message = world.said("Accepted").2;
    assert!(message.starts_with("spec.image: \"registry.example/rate: 1\" is no image reference"), "{message}");
    assert_eq!((world.packaging.asked(), plan.changes), (0, vec![]));
}

#[test]
fn what_does_not_fit_is_not_installed() {
    let mut world = World::new();
    world.registry.get_mut("sha256:one").unwrap().files.insert("big.lua".into(), vec![b' '; 1_050_000]);
    let plan = world.pass();
    let message = world.said("Accepted").2;
    assert!(message.starts_with("registry.example/rate:1: file \"big.lua\" has 1050000 bytes"), "{message}");
    assert_eq!((plan.changes, world.said("PoliciesApplied").0.as_str()), (vec![], "True"));
}

#[test]
fn kongs_operator_and_deletion_leave_it_alone() {
    let mut world = World::new();
    world.annotate(keys::CHECK_AT, "1");
    world.snapshot.operator.kong_operator = Some("kong".into());
    let plan = world.pass();
    assert_eq!((plan.changes.as_slice(), plan.status, world.needed.as_slice()), ([].as_slice(), None, [Need::Nothing].as_slice()));
    world.snapshot.operator.kong_operator = None;
    world.snapshot.installation.metadata.deletion_timestamp = serde_json::from_value(serde_json::json!("2026-01-01T00:00:00Z")).unwrap();
    let plan = world.pass();
    assert_eq!((plan.changes, plan.status, plan.events, world.packaging.asked()), (vec![], None, vec![], 0));
}

#[test]
fn a_pause_writes_the_status_only() {
    let mut world = World::installed();
    world.annotate(keys::PAUSED, "true");
    world.annotate(keys::CHECK_AT, "1");
    world.claimant("a");
    let plan = world.pass();
    assert_eq!((plan.changes.as_slice(), world.needed.as_slice()), ([].as_slice(), [Need::Nothing].as_slice()));
    assert_eq!((world.said("RolloutHeld").0.as_str(), world.said("RolloutHeld").1.as_str()), ("True", "Paused"));
    assert_eq!((world.accepted().status.as_str(), world.said("Ready").1.as_str()), ("True", "Paused"));
    assert_eq!(plan.holds[0].what, HeldPart::Everything);
    world.annotate(keys::PAUSED, "false");
    assert!(steps(&world.pass()).contains(&"set weir.dev/claims".to_owned()));
}

#[test]
fn a_word_that_pauses_nothing_is_said() {
    let mut world = World::installed();
    world.annotate(keys::PAUSED, "yes");
    let plan = world.pass();
    let found = plan.findings.iter().find(|f| f.code == "InvalidPaused").unwrap();
    assert!(found.path.contains(keys::PAUSED) && found.message.contains("\"yes\" pauses nothing: write \"true\""), "{found:?}");
    assert!(plan.events.iter().any(|e| e.reason == "InvalidPaused"), "{:?}", plan.events);
    assert!(world.said("Ready").2.contains("weir.dev/paused]: \"yes\" pauses nothing"), "it is not missed");
    assert_eq!(world.condition("RolloutHeld"), None);
}

#[test]
fn what_the_api_server_refuses_is_said_and_what_is_in_force_stays() {
    let mut world = World::installed();
    let before = world.snapshot.installation.status.clone().unwrap();
    world.publish("sha256:two", "return {2}");
    world.snapshot.fetch = Fetch::Fetched(Arc::new(world.registry["sha256:two"].clone()));
    let planned = world.dry();
    let mut status = planned.status.clone().unwrap();
    assert_ne!(status.underlying_config_map_name, before.underlying_config_map_name);
    provision::unable_to_store(&mut status, &world.snapshot, "too long");
    let said = |status: &KongPluginInstallationStatus, type_: &str| {
        let condition = status.conditions.iter().flatten().find(|c| c.type_ == type_).unwrap().clone();
        (condition.status, condition.reason, condition.message)
    };
    let failed = ("False".to_owned(), "Failed".to_owned(), "too long".to_owned());
    assert_eq!((said(&status, "Accepted"), said(&status, "Ready")), (failed.clone(), failed.clone()));
    assert_eq!(status.underlying_config_map_name, before.underlying_config_map_name, "nothing else is in force");

    let mut status = planned.status.unwrap();
    provision::unable_to_note(&mut status, &world.snapshot, "too long");
    assert_eq!((said(&status, "Accepted").0.as_str(), said(&status, "Ready")), ("True", failed));
}
