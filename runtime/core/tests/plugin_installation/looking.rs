//! What the registry is asked, and when a tag moves.

use std::time::Duration;

use weir_api::keys;
use weir_core::{
    plugin_installation::{Need, resync, snapshot::Fetch},
    policy::plugin_packaging::PluginPackaging,
};

use crate::world::{Scripted, World, one_plugin, steps};

fn of(digest: &str) -> Need {
    Need::Content { digest: Some(digest.into()) }
}

#[test]
fn a_tag_moves_only_when_somebody_wants_it_looked_up() {
    let mut world = World::installed();
    world.publish("sha256:two", "return {2}");
    world.pass();
    assert_eq!((world.needed.as_slice(), world.in_force().unwrap().digest.as_str()), ([Need::Nothing].as_slice(), "sha256:one"));
    world.pass_when(true);
    assert_eq!(
        (world.needed.as_slice(), world.in_force().unwrap().digest.as_str()),
        ([Need::Digest, of("sha256:two")].as_slice(), "sha256:two")
    );
    world.pass_when(true);
    assert_eq!(world.needed, [Need::Digest, Need::Nothing]);
}

#[test]
fn looking_again_by_hand_is_answered_once() {
    let mut world = World::installed();
    world.publish("sha256:two", "return {2}");
    world.annotate(keys::CHECK_AT, "now");
    let plan = world.pass();
    assert_eq!(world.needed, [Need::Digest, of("sha256:two")]);
    assert!(steps(&plan).contains(&"set weir.dev/checked-at".to_owned()));
    world.pass();
    assert_eq!(world.needed, [Need::Nothing]);
}

#[test]
fn a_reference_with_a_digest_is_never_looked_up() {
    let mut world = World::new();
    let digest = format!("sha256:{}", "ab".repeat(32));
    world.publish(&digest, "return {}");
    world.image(&format!("registry.example/rate@{digest}"));
    world.pass();
    assert_eq!(world.need(true), Need::Nothing);
}

#[test]
fn what_runs_is_fetched_again_by_its_digest() {
    let mut world = World::installed();
    let before = world.in_force();
    world.publish("sha256:two", "return {2}");
    world.snapshot.config_maps.clear();
    let lost = world.pass();
    assert_eq!(
        (world.needed.as_slice(), steps(&lost).as_slice()),
        ([of("sha256:one")].as_slice(), ["apply ConfigMap".to_owned()].as_slice())
    );
    assert_eq!((world.in_force(), lost.status_changed), (before, false));

    world.snapshot.installation.metadata.labels = Some([("team".to_owned(), "a".to_owned())].into());
    assert_eq!(world.need(false), of("sha256:one"), "another label is another question");
    let relabelled = world.pass();
    assert_eq!((steps(&relabelled).as_slice(), relabelled.status_changed), (["set weir.dev/decisions".to_owned()].as_slice(), false));
    assert_eq!(world.need(false), Need::Nothing);

    world.annotate(keys::PLUGIN_NAME, "other");
    assert_eq!(world.need(false), of("sha256:one"));
    world.pass();
    assert_eq!(world.in_force().unwrap().plugins[0].name, "other");

    world.packaging = Scripted::<PluginPackaging>::new("p2", |input| Ok(one_plugin(input)));
    assert_eq!(world.need(false), of("sha256:one"), "another policy may place it otherwise");
    world.pass();
    assert_eq!(world.need(false), Need::Nothing);
}

#[test]
fn another_image_is_fetched_while_the_old_one_stays() {
    let mut world = World::installed();
    world.image("registry.example/rate:2");
    assert_eq!(world.need(false), Need::Content { digest: None });
    world.snapshot.fetch = Fetch::Pending;
    let plan = world.dry();
    world.carry_out(&plan);
    let (status, reason, message) = world.said("Accepted");
    assert_eq!((status.as_str(), reason.as_str()), ("True", "Ready"));
    assert_eq!(message, "registry.example/rate:2 is being fetched; sha256:one of registry.example/rate:1 stays in force");
    assert_eq!((world.said("Ready").0.as_str(), world.said("Ready").1.as_str()), ("False", "Pending"), "the spec is not there yet");
    assert_eq!(plan.changes, []);
    world.image("registry.example/rate:1");
    assert_eq!(world.need(false), Need::Nothing, "going back asks nobody");
}

#[test]
fn the_first_fetch_is_pending() {
    let mut world = World::new();
    world.snapshot.fetch = Fetch::Pending;
    let plan = world.dry();
    world.carry_out(&plan);
    assert_eq!(world.said("Accepted"), ("False".into(), "Pending".into(), "registry.example/rate:1 is being fetched".into()));
    assert_eq!((world.said("Ready").1.as_str(), world.condition("PoliciesApplied"), plan.events), ("Pending", None, vec![]));
}

#[test]
fn what_waits_for_its_turn_says_so_once() {
    let mut world = World::new();
    world.snapshot.fetch = Fetch::Queued;
    let plan = world.dry();
    world.carry_out(&plan);
    let words = "registry.example/rate:1 is queued behind other pulls";
    assert_eq!(world.said("Accepted"), ("False".into(), "Pending".into(), words.into()));
    assert_eq!(world.said("Ready"), ("False".into(), "Pending".into(), words.into()));
    assert!(!world.dry().status_changed, "however long it waits");
    world.pass();
    assert_eq!(world.accepted().status, "True");
}

#[test]
fn how_often_is_what_the_annotation_says() {
    let mut world = World::installed();
    assert_eq!(resync(&world.snapshot.installation), None);
    world.annotate(keys::RESYNC, "1h30m");
    assert_eq!(resync(&world.snapshot.installation), Some(Duration::from_secs(5400)));
    world.annotate(keys::RESYNC, "5s");
    assert_eq!(resync(&world.snapshot.installation), None);
    let plan = world.pass();
    let finding = &plan.findings[0];
    assert_eq!((finding.code.as_str(), finding.path.as_str()), ("InvalidResync", "metadata.annotations[weir.dev/resync]"));
    assert!(finding.message.contains("\"5s\" is too short") && finding.message.contains("for example 10m"), "{}", finding.message);
    assert!(world.said("Ready").2.contains("weir.dev/resync") && plan.events.iter().any(|e| e.reason == "InvalidResync"));
    assert_eq!(world.pass().events, [], "said once");
}
