//! An artifact is looked at again when other signatures are wanted; what is not signed takes nothing away.

use std::sync::Arc;

use weir_core::plugin_installation::{
    Need,
    snapshot::{Artifact, Fetch},
};

use crate::world::World;

/// The pass of a shell that verifies what it fetches.
fn pass(world: &mut World, signers: Result<&[&str], &str>) -> Vec<Need> {
    world.snapshot.fetch = Fetch::NotAsked;
    let need = world.need(false);
    if let Need::Content { digest } = &need {
        let digest = digest.clone().unwrap_or_else(|| world.tag.clone());
        world.snapshot.fetch = match signers {
            Ok(signers) => Fetch::Fetched(Arc::new(Artifact {
                signers: signers.iter().map(ToString::to_string).collect(),
                verification: world.snapshot.verification.clone(),
                ..world.registry[&digest].clone()
            })),
            Err(message) => Fetch::Failed { message: message.into(), transient: false, digest: Some(digest) },
        };
    }
    let plan = world.dry();
    world.carry_out(&plan);
    vec![need]
}

#[test]
fn the_policy_is_told_who_signed_and_nobody_is_asked_again_for_it() {
    let mut world = World::new();
    world.snapshot.verification = Some("sha256:list".into());
    pass(&mut world, Ok(&["key cosign.pub"]));
    assert_eq!(world.accepted().status, "True");
    assert_eq!(world.packaging.last.lock().unwrap().as_ref().unwrap()["signers"], serde_json::json!(["key cosign.pub"]));
    assert_eq!(pass(&mut world, Ok(&[])), [Need::Nothing]);
}

#[test]
fn a_list_that_changes_has_what_is_in_force_verified_by_its_digest() {
    let mut world = World::installed();
    let before = world.in_force();
    world.publish("sha256:two", "return {2}");
    world.snapshot.verification = Some("sha256:list".into());
    let message = "the operator's verification list: registry.example/rate@sha256:one is not signed";
    assert_eq!(pass(&mut world, Err(message)), [Need::Content { digest: Some("sha256:one".into()) }], "the tag is not moved");
    let (status, reason, said) = world.said("Accepted");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "Failed"));
    assert!(said.starts_with(message) && said.contains("stays on every DataPlane"), "{said}");
    assert_eq!(world.in_force(), before, "the last good one stays");

    // Signed by now.
    pass(&mut world, Ok(&["key a"]));
    assert_eq!((world.accepted().status.as_str(), world.in_force()), ("True", before.clone()));
    assert_eq!(pass(&mut world, Ok(&[])), [Need::Nothing]);
    // Nothing is wanted any more: the policy is asked again without signers, and the content is the same.
    world.snapshot.verification = None;
    assert_eq!(pass(&mut world, Ok(&[])), [Need::Content { digest: Some("sha256:one".into()) }]);
    assert_eq!((world.accepted().status.as_str(), world.in_force()), ("True", before));
}

#[test]
fn nothing_unsigned_is_ever_in_force() {
    let mut world = World::new();
    world.snapshot.verification = Some("sha256:list".into());
    pass(&mut world, Err("the operator's verification list: it is not signed"));
    assert_eq!((world.accepted().status.as_str(), world.in_force()), ("False", None));
}

#[test]
fn a_record_says_what_was_looked_for_when_it_was_fetched_and_not_what_is_wanted_by_now() {
    let mut world = World::new();
    // Fetched before the list came, packaged after it.
    world.snapshot.fetch = Fetch::Fetched(Arc::new(world.registry["sha256:one"].clone()));
    world.snapshot.verification = Some("sha256:list".into());
    let plan = world.dry();
    world.carry_out(&plan);
    assert_eq!(world.need(false), Need::Content { digest: Some("sha256:one".into()) }, "it is verified yet");
}
