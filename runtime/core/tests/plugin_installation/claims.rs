//! Who may use an installation.

use serde_json::{Value, json};
use weir_api::keys;
use weir_core::{
    plugin_installation::{Standing, claims, standing},
    policy::{
        PolicyError,
        conflict_resolution::{ConflictResolution, Verdict},
    },
};

use crate::world::{Scripted, World, steps, verdict};

const LATER: &str = "2026-01-02T00:00:00Z";

/// `a` has claimed first, `b` a day later.
fn two(says: impl Fn() -> Result<Verdict, PolicyError> + Send + Sync + 'static) -> World {
    let mut world = World::installed();
    world.claimant("a");
    world.conflicts = Scripted::<ConflictResolution>::new("c0", |_| Ok(verdict(Verdict::KeepSome(vec![0]))));
    world.pass();
    world.snapshot.now = LATER.parse().unwrap();
    world.conflicts = Scripted::<ConflictResolution>::new("c1", move |_| says().map(verdict));
    world.claimant("b");
    world.snapshot.claimants.sort();
    world.pass();
    world
}

fn stands(world: &World, name: &str) -> Standing {
    standing(&world.snapshot.installation, &format!("uid-{name}"))
}

fn granted(world: &World) -> Vec<String> {
    claims(&world.snapshot.installation).into_iter().filter(|c| c.granted).map(|c| c.name).collect()
}

#[test]
fn one_claimant_is_granted_without_a_question() {
    let mut world = World::installed();
    assert_eq!(stands(&world, "a"), Standing::Unknown);
    world.claimant("a").namespace = "ns".into();
    let plan = world.pass();
    assert_eq!((stands(&world, "a"), world.conflicts.asked()), (Standing::Granted, 0));
    let text: Value = serde_json::from_str(&world.annotation(keys::CLAIMS).unwrap()).unwrap();
    assert_eq!(text, json!([{"namespace": "ns", "name": "a", "uid": "uid-a", "since": "2026-01-01T00:00:00Z", "granted": true}]));
    assert_eq!(steps(&plan), ["set weir.dev/claims", "set weir.dev/artifact"]);
    assert_eq!(world.said("Ready").2, "1 of 1 DataPlanes that name it may use it");
    world.snapshot.now = LATER.parse().unwrap();
    assert_eq!(world.pass().changes, [], "a claim keeps its time");
    world.snapshot.claimants.clear();
    assert_eq!(steps(&world.pass()), ["remove weir.dev/claims", "set weir.dev/artifact"], "a claim ends with its DataPlane");
}

#[test]
fn several_claimants_are_a_conflict_oldest_first() {
    let mut world = two(|| Ok(Verdict::Keep(0)));
    let question = world.conflicts.last();
    assert_eq!(
        (&question["context"]["object"]["kind"], &question["context"]["object"]["name"]),
        (&json!("KongPluginInstallation"), &json!("rate"))
    );
    assert_eq!(
        question["conflicts"],
        json!([{"kind": "plugin-installation", "subject": "ns/rate", "claims": [
            {"who": "gw/a", "since": "2026-01-01T00:00:00Z", "origin": "generated", "value": {"text": "uid-a"}},
            {"who": "gw/b", "since": LATER, "origin": "generated", "value": {"text": "uid-b"}},
        ]}])
    );
    assert_eq!(stands(&world, "a"), Standing::Granted);
    assert_eq!(stands(&world, "b"), Standing::Refused("claimed by DataPlane gw/a since 2026-01-01T00:00:00Z".into()));
    assert_eq!(world.said("PoliciesApplied").0, "True");
    assert_eq!(world.pass().changes, []);
    world.snapshot.claimants.remove(0);
    world.pass();
    assert_eq!((granted(&world), stands(&world, "a")), (vec!["b".to_owned()], Standing::Unknown));
}

#[test]
fn some_can_be_kept_side_by_side() {
    let mut world = two(|| Ok(Verdict::KeepSome(vec![0, 1])));
    assert_eq!(granted(&world), ["a", "b"]);
    for name in ["c", "d", "e"] {
        world.claimant(name);
    }
    world.conflicts = Scripted::<ConflictResolution>::new("c2", |_| Ok(verdict(Verdict::KeepSome(vec![0, 1, 2, 4]))));
    world.pass();
    assert_eq!(granted(&world), ["a", "b", "c", "e"]);
    let Standing::Refused(message) = stands(&world, "d") else { panic!("d is left out") };
    assert!(message.starts_with("claimed by DataPlane gw/a since") && message.ends_with("and 1 more"), "{message}");
    let report: Value = serde_json::from_str(&world.annotation(keys::ARTIFACT).unwrap()).unwrap();
    assert_eq!(report["consumers"], 4);
}

#[test]
fn a_rejection_takes_the_grant_from_all() {
    let world = two(|| Ok(Verdict::Reject("one team, one installation: make a second one".into())));
    assert_eq!(granted(&world), Vec::<String>::new());
    let words = "one team, one installation: make a second one";
    assert_eq!((stands(&world, "a"), stands(&world, "b")), (Standing::Refused(words.into()), Standing::Refused(words.into())));
    assert_eq!(world.said("PoliciesApplied"), ("False".into(), "Rejected".into(), words.into()));
    assert_eq!((world.accepted().status.as_str(), world.said("Ready").0.as_str()), ("True", "False"));
}

#[test]
fn while_nobody_decides_who_had_it_keeps_it() {
    let world = two(|| Ok(Verdict::Hold("the owner is asked".into())));
    assert_eq!((stands(&world, "a"), stands(&world, "b")), (Standing::Granted, Standing::Held("the owner is asked".into())));
    assert_eq!(world.said("PoliciesApplied").1, "Held");
    let mut world = two(|| Err(PolicyError::Trap("unreachable".into())));
    assert_eq!((stands(&world, "a"), granted(&world)), (Standing::Granted, vec!["a".to_owned()]));
    assert_eq!(world.said("PoliciesApplied"), ("False".into(), "Trap".into(), "the policy trapped: unreachable".into()));
    assert_eq!(world.pass().events, [], "said once");
}

#[test]
fn one_claimant_of_another_namespace_is_asked_about() {
    let mut world = World::installed();
    world.claimant("a");
    world.conflicts = Scripted::<ConflictResolution>::new("c1", |_| Ok(verdict(Verdict::Reject("not from there".into()))));
    world.pass();
    assert_eq!((stands(&world, "a"), world.conflicts.asked()), (Standing::Refused("not from there".into()), 1));
}

const MISSING_GRANT: &str = "no ReferenceGrant in namespace ns lets DataPlanes of namespace gw name it: create one from group \
                             gateway-operator.konghq.com kind DataPlane to kind KongPluginInstallation";

/// A world in which `gw/a` has the content, and its grant is withdrawn.
fn withdrawn(says: impl Fn() -> Verdict + Send + Sync + 'static) -> World {
    let mut world = World::installed();
    world.claimant("a").mounts = true;
    world.conflicts = Scripted::<ConflictResolution>::new("c1", move |_| Ok(verdict(says())));
    world.pass();
    assert_eq!(stands(&world, "a"), Standing::Granted);
    world.snapshot.now = LATER.parse().unwrap();
    world.snapshot.claimants[0].permitted = false;
    world
}

#[test]
fn a_withdrawn_grant_ends_the_permission_and_not_the_claim() {
    let mut world = withdrawn(|| Verdict::KeepSome(vec![0]));
    let plan = world.pass();
    assert_eq!(steps(&plan), ["set weir.dev/claims", "set weir.dev/artifact"], "no content goes");
    let text: Value = serde_json::from_str(&world.annotation(keys::CLAIMS).unwrap()).unwrap();
    assert_eq!(
        text,
        json!([{
            "namespace": "gw", "name": "a", "uid": "uid-a", "since": "2026-01-01T00:00:00Z", "granted": false, "permitted": false,
            "message": MISSING_GRANT,
        }])
    );
    // Its own pass says RefNotPermitted; when the grant is back before this one's, nobody has refused it anything.
    assert_eq!(stands(&world, "a"), Standing::Unknown);
    let report: Value = serde_json::from_str(&world.annotation(keys::ARTIFACT).unwrap()).unwrap();
    assert_eq!(report["consumers"], 0);
    let expected = format!("0 of 1 DataPlanes that name it may use it; gw/a waits: {MISSING_GRANT}");
    assert_eq!(world.said("Ready"), ("True".into(), "Ready".into(), expected));
    assert_eq!(world.pass().changes, [], "said once");
    world.snapshot.claimants[0].permitted = true;
    world.pass();
    let back = claims(&world.snapshot.installation).remove(0);
    assert_eq!((back.granted, back.permitted, back.message, back.since.to_string().as_str()), (true, true, None, "2026-01-01T00:00:00Z"));
}

#[test]
fn whoever_had_it_has_it_again_while_nobody_decides() {
    let mut world = withdrawn(|| Verdict::KeepSome(vec![0]));
    world.conflicts = Scripted::<ConflictResolution>::new("c2", |_| Ok(verdict(Verdict::Hold("the owner is asked".into()))));
    world.pass();
    world.snapshot.claimants[0].permitted = true;
    world.pass();
    assert_eq!(stands(&world, "a"), Standing::Granted);
}

#[test]
fn a_claim_that_waited_for_a_policy_waits_for_its_grant_now() {
    let mut world = two(|| Ok(Verdict::Hold("the owner is asked".into())));
    assert_eq!(stands(&world, "b"), Standing::Held("the owner is asked".into()));
    world.snapshot.claimants[1].permitted = false;
    world.snapshot.claimants[1].mounts = true;
    world.pass();
    // With the grant back, its words are no decision of anybody's.
    assert_eq!(stands(&world, "b"), Standing::Unknown);
    let claim = claims(&world.snapshot.installation).pop().unwrap();
    assert_eq!((claim.held, claim.permitted, claim.message.as_deref()), (false, false, Some(MISSING_GRANT)));
}

#[test]
fn nobody_takes_the_place_of_a_claim_whose_grant_is_withdrawn() {
    let mut world = withdrawn(|| Verdict::Keep(0));
    world.claimant("b");
    world.pass();
    assert_eq!(granted(&world), Vec::<String>::new());
    assert_eq!(stands(&world, "b"), Standing::Refused("claimed by DataPlane gw/a since 2026-01-01T00:00:00Z".into()));
    assert_eq!(claims(&world.snapshot.installation)[0].message.as_deref(), Some(MISSING_GRANT), "no policy grants what the grant does not");
}

#[test]
fn who_may_not_name_it_has_no_claim_and_is_named() {
    let mut world = World::installed();
    for name in ["a", "b", "c", "d", "e"] {
        world.claimant(name).permitted = false;
    }
    let plan = world.pass();
    assert_eq!((plan.changes, world.annotation(keys::CLAIMS), world.conflicts.asked()), (vec![], None, 0), "nobody else fills the list");
    let waits = ["a", "b", "c"].map(|name| format!("gw/{name} waits: {MISSING_GRANT}")).join("; ");
    let expected = format!("0 of 5 DataPlanes that name it may use it; {waits}; 2 more wait");
    assert_eq!(world.said("Ready"), ("True".into(), "Ready".into(), expected));
    assert!(!world.pass().status_changed);
}

#[test]
fn who_waits_for_a_policy_is_named_with_its_words() {
    let mut world = two(|| Ok(Verdict::Keep(0)));
    let expected = "1 of 2 DataPlanes that name it may use it; gw/b waits: claimed by DataPlane gw/a since 2026-01-01T00:00:00Z";
    assert_eq!(world.said("Ready").2, expected);
    world.snapshot.claimants[1].permitted = false;
    world.pass();
    assert_eq!(world.said("Ready").2, format!("1 of 2 DataPlanes that name it may use it; gw/b waits: {MISSING_GRANT}"));
}

#[test]
fn a_lost_annotation_is_made_from_who_mounts_the_content() {
    let mut world = two(|| Ok(Verdict::Hold("wait".into())));
    world.annotate(keys::CLAIMS, "{}");
    for claimant in &mut world.snapshot.claimants {
        claimant.created = Some("2025-06-01T00:00:00Z".parse().unwrap());
        claimant.mounts = claimant.name == "a";
    }
    let plan = world.pass();
    assert!(plan.findings.iter().any(|f| f.code == "ClaimsUnreadable" && f.path.contains(keys::CLAIMS)));
    let since: Vec<_> = claims(&world.snapshot.installation).into_iter().map(|c| (c.name, c.since.to_string(), c.granted)).collect();
    assert_eq!(since, [("a".into(), "2025-06-01T00:00:00Z".into(), true), ("b".into(), LATER.to_owned(), false)]);
}

#[test]
fn too_many_claims_are_cut_and_said() {
    let mut world = World::installed();
    world.conflicts = Scripted::<ConflictResolution>::new("c1", |_| Ok(verdict(Verdict::Keep(0))));
    for index in 0..1100 {
        world.claimant(&format!("gw{index:04}"));
    }
    let plan = world.pass();
    let kept = claims(&world.snapshot.installation);
    assert!(kept.len() <= 1000 && kept.len() > 300 && kept[0].granted, "{}", kept.len());
    assert!(world.annotation(keys::CLAIMS).unwrap().len() <= 96 * 1024);
    let finding = plan.findings.iter().find(|f| f.code == "TooManyClaims").unwrap();
    assert!(finding.message.starts_with("1100 DataPlanes name this installation"), "{}", finding.message);
    assert_eq!(stands(&world, "gw1099"), Standing::Unknown);
}
