//! Who decided is told truly, also where another decider says the same: the record names it, once, and no pod rolls for it.

use serde_json::{Value, json};
use weir_core::policy::{ConflictResolution, KonnectEnv, OnFailure, PolicyError, SlotName, conflict_resolution::Verdict};

use crate::{
    policies::{Scripted, content, environment, verdicts},
    world::World,
};

const SLOTS: [SlotName; 2] = [SlotName::KonnectEnv, SlotName::ConflictResolution];

/// A DataPlane with an extension, and with two installations that bring one plugin: both slots have answered.
fn answered() -> World {
    let proxy = json!({"name": "proxy", "image": "kong:3.9"});
    let mut world = World::with_spec(&json!({"deployment": {"podTemplateSpec": {"spec": {"containers": [proxy]}}}}));
    world.install("a/one", &content(&["x"], "1.0.0"));
    world.install("b/two", &content(&["x"], "2.0.0"));
    world.extend();
    world.converge();
    for slot in SLOTS {
        assert!(["k1", "c1"].contains(&who(&world, slot).0.as_str()));
    }
    world
}

/// Who answered and, where that was a stand-in, for whom.
fn who(world: &World, slot: SlotName) -> (String, Option<String>) {
    let record: &Value = &world.decisions()[slot.as_str()];
    let digest = |identity: &Value| identity["digest"].as_str().map(String::from);
    (digest(&record["policy"]).unwrap(), record.get("fallbackFor").and_then(digest))
}

fn both(world: &World) -> [(String, Option<String>); 2] {
    SLOTS.map(|slot| who(world, slot))
}

fn trapping(world: &mut World) {
    world.konnect = Scripted::<KonnectEnv>::new("k2", |_| Err(PolicyError::Trap("unreachable".into())));
    world.conflicts = Scripted::<ConflictResolution>::new("c2", |_| Err(PolicyError::Trap("unreachable".into())));
    world.other_konnect = environment("k-builtin", None);
    world.other_conflicts = verdicts("c-builtin", |_| Verdict::Keep(0));
}

fn pair(digest: &str, failed: Option<&str>) -> (String, Option<String>) {
    (digest.into(), failed.map(String::from))
}

/// Nothing is left to do, no pod rolled, and the answers are what they were.
fn is_quiet(world: &World, before: &World, what: &str) {
    assert!(world.is_steady(), "{what}: a pass that finds the same writes nothing");
    assert_eq!(world.rolls, before.rolls, "{what}");
    assert_eq!(world.hash(), before.hash(), "{what}");
    for slot in SLOTS {
        assert_eq!(world.decisions()[slot.as_str()]["answer"], before.decisions()[slot.as_str()]["answer"], "{what}: {slot}");
    }
}

#[test]
fn an_equal_answer_of_another_decider_after_a_swap_is_recorded_as_its_own() {
    let before = answered();
    let mut world = answered();
    (world.konnect, world.conflicts) = (environment("k2", None), verdicts("c2", |_| Verdict::Keep(0)));
    world.converge();
    assert_eq!(both(&world), [pair("k2", None), pair("c2", None)]);
    is_quiet(&world, &before, "swap");
}

#[test]
fn an_equal_answer_of_another_decider_that_stands_in_is_recorded_with_who_failed() {
    let before = answered();
    let mut world = answered();
    trapping(&mut world);
    world.on_failure = OnFailure::Fallback;
    world.converge();
    assert_eq!(both(&world), [pair("k-builtin", Some("k2")), pair("c-builtin", Some("c2"))]);
    is_quiet(&world, &before, "fallback");
    (world.konnect, world.conflicts) = (environment("k2", None), verdicts("c2", |_| Verdict::Keep(0)));
    world.converge();
    assert_eq!(both(&world), [pair("k2", None), pair("c2", None)], "it answers again");
    is_quiet(&world, &before, "back");
}

#[test]
fn an_equal_answer_of_another_decider_that_is_kept_stays_the_former_ones() {
    for on_failure in [OnFailure::KeepLast, OnFailure::Block] {
        let before = answered();
        let mut world = answered();
        trapping(&mut world);
        world.on_failure = on_failure;
        world.converge();
        assert_eq!(both(&world), [pair("k1", None), pair("c1", None)], "{on_failure:?}");
        is_quiet(&world, &before, "kept");
    }
}

/// After a stand-in answered, a failure of both keeps its answer, and still says whose it is and for whom.
#[test]
fn a_stand_ins_answer_that_is_kept_says_for_whom_it_stood_in() {
    let mut world = answered();
    trapping(&mut world);
    world.on_failure = OnFailure::Fallback;
    world.converge();
    let before = both(&world);
    world.on_failure = OnFailure::KeepLast;
    world.converge();
    assert_eq!(both(&world), before);
    assert!(world.is_steady());
}

/// One question answered by a new policy and another not: the record is in the name of the one that answered, and what it did not say is said
/// to be the former one's.
#[test]
fn a_question_that_is_not_answered_keeps_the_verdict_of_who_gave_it() {
    let proxy = json!({"name": "proxy", "image": "kong:3.9", "env": [{"name": "KONG_NGINX_WORKER_PROCESSES", "value": "4"}]});
    let mut world = World::with_spec(&json!({"deployment": {"podTemplateSpec": {"spec": {"containers": [proxy]}}}}));
    world.install("a/one", &content(&["x"], "1.0.0"));
    world.install("b/two", &content(&["x"], "2.0.0"));
    world.converge();
    let verdict = |world: &World, key: &str| world.decisions()["conflict-resolution"]["answer"][key].clone();
    let (name, variable) = ("plugin-name/x", "env-var/KONG_NGINX_WORKER_PROCESSES");
    assert!(verdict(&world, name).is_object() && verdict(&world, variable).is_object(), "{}", world.decisions());
    world.conflicts = Scripted::new("c2", |input: &weir_core::policy::conflict_resolution::Input| {
        use weir_core::policy::conflict_resolution::{Answer, Resolution, SubjectKind};
        if input.conflicts.iter().any(|c| c.kind == SubjectKind::EnvVar) {
            return Err(PolicyError::Deadline { limit_ms: 200 });
        }
        let first = Resolution { verdict: Verdict::Keep(0), findings: Vec::new() };
        Ok(Answer { resolutions: vec![first; input.conflicts.len()] })
    });
    world.converge();
    assert_eq!(who(&world, SlotName::ConflictResolution), pair("c2", None));
    assert_eq!(verdict(&world, name).get("keptFrom"), None);
    assert_eq!(verdict(&world, variable)["keptFrom"]["digest"], "c1");
    assert!(world.is_steady());
}
