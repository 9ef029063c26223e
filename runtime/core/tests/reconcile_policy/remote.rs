//! A remote plugin as the source of a policy: it is the one that it says it is, answers only while it is ready, and cannot be gone back to.

use weir_api::{
    keys,
    reconcile_policy::{RemoteSource, Rollout, Strategy},
};
use weir_core::{
    policy::SlotName,
    reconcile_policy::{
        is_current,
        snapshot::{Found, Step, Work},
        validate,
    },
    remote::{Facts, Reason, Standing, Tenants, reason::Problem},
};

use super::world::{World, events, pair, words};

fn standing(digest: &str) -> Standing {
    let facts = Facts { name: "mine".into(), version: "1".into(), digest: digest.into(), slots: [SlotName::KonnectEnv].into() };
    Standing { ready: Ok(facts), tenants: Tenants::None }
}

fn away(reason: Reason) -> Standing {
    Standing { ready: Err(Problem::new(reason, "no pod of it is ready")), tenants: Tenants::None }
}

/// What the shell finds when it has tried the plugin.
fn tried(digest: &str) -> Found {
    Found { image: Some("remote:mine".into()), layer_digest: Some(digest.into()), version: Some("1".into()), ..Found::default() }
}

fn world() -> World {
    let mut world = World::new();
    world.edit(|spec| (spec.source.oci, spec.source.remote) = (None, Some(RemoteSource { plugin_name: "mine".into() })));
    world
}

/// One that answers.
fn with(digest: &str) -> World {
    let mut world = world();
    world.snapshot.plugin = Some(standing(digest));
    world.ready(tried(digest));
    assert_eq!((world.active().as_str(), world.health().as_str()), (digest, "Ready/Ready"));
    world
}

fn resolved(world: &World) -> (String, String, String) {
    world.said("Resolved")
}

#[test]
fn a_plugin_that_is_ready_and_serves_the_slot_takes_over_under_its_digest_of_record() {
    let world = with("sha256:one");
    let active = world.revision();
    assert_eq!((active.image.as_deref(), active.manifest_digest, active.verification), (Some("remote:mine"), None, None));
    assert_eq!(validate::remote(&world.revision()), Some("mine"));
    assert_eq!(world.is("Verified"), pair("True", "NotRequired"));
    assert!(is_current(&weir_core::reconcile_policy::validate(&world.snapshot)));
}

#[test]
fn signatures_that_are_wanted_of_artifacts_are_not_wanted_of_a_plugin() {
    let mut world = world();
    world.snapshot.verification = Some("sha256:rules".into());
    world.snapshot.plugin = Some(standing("sha256:one"));
    world.ready(tried("sha256:one"));
    assert_eq!(world.active(), "sha256:one");
}

#[test]
fn why_a_plugin_does_not_resolve_is_told_with_the_cure() {
    let mut world = world();
    world.pass();
    let (status, reason, message) = resolved(&world);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "PluginNotFound"));
    assert!(message.contains("spec.source.remote.pluginName") && message.contains(keys::PLUGIN_NAME), "{message}");

    world.snapshot.plugin = Some(away(Reason::NoEndpoints));
    world.pass();
    let (_, reason, message) = resolved(&world);
    assert_eq!(reason, "NotReady");
    assert!(message.contains("NoEndpoints") && message.contains("no pod of it is ready"), "{message}");
    assert_eq!(world.health(), "Reconciling/Retrying");

    let mut other = standing("sha256:one");
    other.ready.as_mut().unwrap().slots = [SlotName::PluginPackaging].into();
    world.snapshot.plugin = Some(other);
    world.pass();
    let (_, reason, message) = resolved(&world);
    assert_eq!(reason, "SlotNotServed");
    assert!(message.contains("konnect-env") && message.contains("it serves plugin-packaging"), "{message}");
    assert_eq!((world.health().as_str(), world.active().as_str()), ("Stalled/SlotNotServed", ""));
}

#[test]
fn a_tenants_policy_uses_a_plugin_only_where_its_service_says_so() {
    let mut world = world();
    world.snapshot.policy.metadata.namespace = Some("team-a".into());
    world.snapshot.tenants = true;
    world.snapshot.plugin = Some(standing("sha256:one"));
    world.ready(tried("sha256:one"));
    assert_eq!((world.active().as_str(), resolved(&world).1.as_str()), ("", "TenantsNotAllowed"));
    assert!(resolved(&world).2.contains(keys::PLUGIN_TENANTS));
    world.snapshot.plugin = Some(Standing { tenants: Tenants::parse("team-b, team-a").unwrap(), ..standing("sha256:one") });
    world.pass();
    assert_eq!(world.active(), "sha256:one");
}

#[test]
fn a_plugin_that_goes_away_stays_in_force_and_says_that_it_does_not_answer() {
    let mut world = with("sha256:one");
    world.snapshot.plugin = Some(away(Reason::NoEndpoints));
    world.snapshot.work = Work::None;
    let plan = world.pass();
    assert_eq!((world.active().as_str(), world.history()), ("sha256:one", vec![]));
    assert_eq!((world.is("Active"), world.is("Resolved")), (pair("False", "NotRunning"), pair("False", "NotReady")));
    assert_eq!(world.health(), "Reconciling/NotRunning");
    assert!(plan.status_changed);
    // And back: nothing has to be tried anew.
    world.snapshot.plugin = Some(standing("sha256:one"));
    world.pass();
    assert_eq!((world.health().as_str(), world.is("Active")), ("Ready/Ready", pair("True", "Active")));
    // Or its Service goes.
    world.snapshot.plugin = None;
    world.pass();
    assert_eq!((world.active().as_str(), resolved(&world).1.as_str()), ("sha256:one", "PluginNotFound"));
}

#[test]
fn a_plugin_of_another_version_is_a_candidate_and_is_not_asked_before_it_takes_over() {
    let mut world = with("sha256:one");
    world.snapshot.plugin = Some(standing("sha256:two"));
    assert!(!is_current(&weir_core::reconcile_policy::validate(&world.snapshot)));
    world.busy(Step::Compatible, tried("sha256:two"));
    assert_eq!(world.active(), "sha256:one");
    assert_eq!(world.is("Active"), pair("False", "NotRunning"));
    let plan = world.ready(tried("sha256:two"));
    assert_eq!((world.active().as_str(), events(&plan).as_slice()), ("sha256:two", ["Activated"].as_slice()));
    assert_eq!(world.history(), words(&[("sha256:one", "Superseded")]));
    // What was tried under the former digest does not come back.
    world.ready(tried("sha256:one"));
    assert_eq!(world.active(), "sha256:two");
}

#[test]
fn a_plugin_of_another_version_waits_for_the_word_of_its_owner() {
    let mut world = with("sha256:one");
    world.edit(|spec| spec.rollout = Some(Rollout { strategy: Some(Strategy::Manual), ..Rollout::default() }));
    world.snapshot.plugin = Some(standing("sha256:two"));
    world.ready(tried("sha256:two"));
    assert_eq!((world.active().as_str(), world.is("Held")), ("sha256:one", pair("True", "AwaitingApproval")));
    assert_eq!(world.is("Active"), pair("False", "NotRunning"));
    world.annotate(keys::APPROVED_DIGEST, "sha256:two");
    world.pass();
    assert_eq!(world.active(), "sha256:two");
}

#[test]
fn nothing_goes_back_to_a_former_version_of_a_plugin_by_itself() {
    let mut world = with("sha256:one");
    world.snapshot.plugin = Some(standing("sha256:two"));
    world.ready(tried("sha256:two"));
    world.trip();
    assert_eq!((world.active().as_str(), world.health().as_str()), ("sha256:two", "Stalled/Trap"));
    // Nor to a plugin that is away when its policy is edited back to it.
    let mut world = with("sha256:one");
    world.edit(|spec| (spec.source.builtin, spec.source.remote) = (Some(Default::default()), None));
    world.snapshot.plugin = None;
    world.ready(Found { layer_digest: Some("sha256:builtin".into()), ..Found::default() });
    assert_eq!(world.active(), "sha256:builtin");
    world.edit(|spec| (spec.source.builtin, spec.source.remote) = (None, Some(RemoteSource { plugin_name: "mine".into() })));
    world.snapshot.plugin = Some(away(Reason::CircuitOpen));
    world.pass();
    assert_eq!(world.active(), "sha256:builtin");
}
