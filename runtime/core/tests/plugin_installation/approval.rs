//! Annotation `weir.dev/rollout: Manual`: nothing new without its owner's word.

use weir_api::keys;
use weir_core::{
    plan::HeldPart,
    plugin_installation::{Need, content::Content},
    policy::plugin_packaging::PluginPackaging,
};

use crate::world::{Scripted, World, one_plugin, steps};

fn manual() -> World {
    let mut world = World::new();
    world.annotate(keys::ROLLOUT, "Manual");
    world
}

fn approved() -> World {
    let mut world = manual();
    world.annotate(keys::APPROVED_DIGEST, "sha256:one");
    world.pass();
    world.pass();
    world
}

fn digest(content: Option<Content>) -> String {
    content.map(|content| content.digest).unwrap_or_default()
}

#[test]
fn the_very_first_one_waits_too() {
    let mut world = manual();
    let plan = world.pass();
    assert_eq!((world.in_force(), steps(&plan).as_slice()), (None, ["set weir.dev/artifact".to_owned()].as_slice()));
    assert_eq!((world.said("Accepted").0.as_str(), world.said("Accepted").1.as_str()), ("False", "Pending"));
    let (status, reason, message) = world.said("RolloutHeld");
    assert_eq!((status.as_str(), reason.as_str()), ("True", "AwaitingApproval"));
    let expected =
        "sha256:one of registry.example/rate:1 waits for annotation weir.dev/approved-digest: sha256:one; nothing is in force yet";
    assert_eq!(message, expected);
    assert_eq!(world.said("Ready").1, "AwaitingApproval");
    assert_eq!(plan.holds.iter().map(|h| (h.what, h.reason.as_str())).collect::<Vec<_>>(), [(HeldPart::Plugin, "AwaitingApproval")]);
    assert_eq!(plan.events.iter().map(|e| e.reason.as_str()).collect::<Vec<_>>(), ["AwaitingApproval"]);
    assert_eq!(world.pass().events, []);

    world.annotate(keys::APPROVED_DIGEST, "sha256:one");
    world.pass();
    assert_eq!((digest(world.in_force()).as_str(), world.said("RolloutHeld").0.as_str()), ("sha256:one", "False"));
    assert_eq!(world.said("RolloutHeld").1, "NothingHeld");
}

#[test]
fn what_waits_does_not_move_with_its_tag() {
    let mut world = manual();
    world.pass();
    world.publish("sha256:two", "return {2}");
    world.pass();
    assert_eq!(world.needed, [Need::Content { digest: Some("sha256:one".into()) }]);
    world.annotate(keys::APPROVED_DIGEST, "sha256:one");
    world.pass();
    assert_eq!(digest(world.in_force()), "sha256:one");
}

#[test]
fn a_moved_tag_waits_until_exactly_it_is_approved() {
    let mut world = approved();
    world.publish("sha256:two", "return {2}");
    world.pass_when(true);
    let message = world.said("RolloutHeld").2;
    assert!(message.contains("weir.dev/approved-digest: sha256:two; sha256:one of registry.example/rate:1 stays in force"), "{message}");
    assert!(message.ends_with("weir.dev/approved-digest names \"sha256:one\", which does not wait, and changes nothing"), "{message}");
    assert_eq!(world.said("Accepted").0, "True");

    let again = world.pass();
    assert_eq!(world.needed, [Need::Content { digest: Some("sha256:two".into()) }], "it is remembered between two looks at the tag");
    assert_eq!((again.status_changed, again.changes.as_slice()), (false, [].as_slice()));

    world.annotate(keys::APPROVED_DIGEST, "sha256:other\u{1b}[2J");
    world.pass();
    let message = world.said("RolloutHeld").2;
    assert!(message.contains("names \"sha256:other[2J\"") && !message.contains('\u{1b}'), "{message}");
    assert_eq!(digest(world.in_force()), "sha256:one");

    world.annotate(keys::APPROVED_DIGEST, "sha256:two");
    world.pass();
    assert_eq!((digest(world.in_force()).as_str(), world.said("RolloutHeld").0.as_str()), ("sha256:two", "False"));
}

#[test]
fn a_tag_that_moves_back_waits_no_more() {
    let mut world = approved();
    world.publish("sha256:two", "return {2}");
    world.pass_when(true);
    assert_eq!(world.said("RolloutHeld").0, "True");
    world.tag = "sha256:one".into();
    world.pass_when(true);
    assert_eq!((world.said("RolloutHeld").0.as_str(), digest(world.in_force()).as_str()), ("False", "sha256:one"));
    assert_eq!(world.need(false), Need::Nothing);
}

#[test]
fn another_image_waits_although_its_digest_is_in_force() {
    let mut world = approved();
    world.annotate(keys::APPROVED_DIGEST, "");
    world.image("registry.example/rate:same");
    world.pass();
    assert_eq!((world.said("RolloutHeld").0.as_str(), world.in_force().unwrap().image.as_str()), ("True", "registry.example/rate:1"));
    world.annotate(keys::APPROVED_DIGEST, "sha256:one");
    world.pass();
    assert_eq!(world.in_force().unwrap().image, "registry.example/rate:same");
}

#[test]
fn a_policy_that_packages_otherwise_waits_as_well() {
    let mut world = approved();
    world.annotate(keys::APPROVED_DIGEST, "sha256:old");
    world.packaging = Scripted::<PluginPackaging>::new("p2", |input| {
        let mut answer = one_plugin(input);
        answer.plugins[0].placements.retain(|p| p.source != "logo.png");
        Ok(answer)
    });
    let before = world.in_force();
    world.pass();
    assert_eq!(world.in_force(), before);
    let message = world.said("RolloutHeld").2;
    assert!(message.contains("sha256:one stays in force, of the same artifact, as it was packaged before"), "{message}");
    world.annotate(keys::APPROVED_DIGEST, "sha256:one");
    world.pass();
    assert_ne!(world.in_force(), before);
    assert_eq!(digest(world.in_force()), "sha256:one");
}

#[test]
fn a_word_nobody_knows_waits() {
    let mut world = World::new();
    world.annotate(keys::ROLLOUT, "manual");
    let plan = world.pass();
    assert_eq!((world.in_force(), world.said("RolloutHeld").0.as_str()), (None, "True"));
    let finding = plan.findings.iter().find(|f| f.code == "InvalidRollout").unwrap();
    assert!(finding.path.contains("weir.dev/rollout") && finding.message.contains("counts as Manual"), "{finding:?}");
    world.annotate(keys::ROLLOUT, "Automatic");
    world.pass();
    assert_eq!(digest(world.in_force()), "sha256:one");
}
