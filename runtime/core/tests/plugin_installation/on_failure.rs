//! What holds on an installation while a policy fails: each `onFailure`, for a failure, an answer that breaks the rules and a refusal, with
//! and without something in force.

use std::sync::Arc;

use weir_core::{
    events::EventType,
    plan::{Outcome, Plan},
    plugin_installation::{Standing, claims, snapshot::Fetch, standing},
    policy::{
        OnFailure, PolicyError, Refusal, SlotName,
        conflict_resolution::{ConflictResolution, Verdict},
        plugin_packaging::PluginPackaging,
    },
};

use crate::world::{Scripted, Status, World, one_plugin, verdict};

const EACH: [OnFailure; 3] = [OnFailure::KeepLast, OnFailure::Fallback, OnFailure::Block];
const ENDS: [Outcome; 3] = [Outcome::Trap, Outcome::BadOutput, Outcome::Refused];
const LATER: &str = "2026-01-02T00:00:00Z";

/// A question that ends like this; `illegal` breaks the slot's rules.
fn ends<A>(outcome: Outcome, illegal: A) -> Result<A, PolicyError> {
    match outcome {
        Outcome::Trap => Err(PolicyError::Trap("unreachable".into())),
        Outcome::Refused => Err(PolicyError::Refused(Refusal { code: "No".into(), message: "not like this".into() })),
        Outcome::Answered | Outcome::Deadline | Outcome::Memory | Outcome::Unavailable | Outcome::BadOutput | Outcome::Incompatible => {
            Ok(illegal)
        }
    }
}

fn packaging(outcome: Outcome) -> Arc<Scripted<PluginPackaging>> {
    Scripted::new("p2", move |input| {
        let mut nothing = one_plugin(input);
        nothing.plugins.clear();
        ends(outcome, nothing)
    })
}

/// Whether another policy stands in.
fn stands_in(on_failure: OnFailure, outcome: Outcome) -> bool {
    on_failure == OnFailure::Fallback && outcome != Outcome::Refused
}

fn asked(plan: &Plan<Status>, slot: SlotName) -> Vec<(&str, Outcome)> {
    plan.policies.iter().filter(|p| p.slot == slot).map(|p| (p.digest.as_str(), p.outcome)).collect()
}

fn record(world: &World) -> serde_json::Value {
    serde_json::from_str(&world.annotation(weir_api::keys::DECISIONS).unwrap()).unwrap()
}

fn is_visible(world: &World, plan: &Plan<Status>, slot: SlotName, what: &str) {
    let (status, reason, message) = world.said("PoliciesApplied");
    assert_eq!((status.as_str(), reason.as_str()), ("True", "FellBack"), "{what}");
    assert!(
        message.starts_with(&format!("{slot}: test failed (the policy")) && message.contains("onFailure is Fallback"),
        "{what}: {message}"
    );
    assert_eq!(plan.findings.iter().filter(|f| f.code == "FellBack").count(), 1, "{what}");
    assert!(plan.events.iter().any(|e| (e.type_, e.reason.as_str()) == (EventType::Warning, "FellBack")), "{what}");
}

/// The condition's reason is how it ended, and a block says so.
fn is_said(world: &World, on_failure: OnFailure, outcome: Outcome, block: &str, what: &str) {
    let (status, reason, message) = world.said("PoliciesApplied");
    assert_eq!((status.as_str(), reason.as_str()), ("False", outcome.as_str()), "{what}");
    let blocks = on_failure == OnFailure::Block && outcome != Outcome::Refused;
    assert_eq!(message.contains(&format!("{block}, since onFailure is Block")), blocks, "{what}: {message}");
}

#[test]
fn packaging_an_artifact() {
    for on_failure in EACH {
        for outcome in ENDS {
            for has_last in [true, false] {
                let what = format!("{on_failure:?} {outcome:?}, in force: {has_last}");
                let mut world = if has_last { World::installed() } else { World::new() };
                (world.packaging, world.on_failure) = (packaging(outcome), on_failure);
                world.publish("sha256:two", "return {2}");
                let plan = world.pass_when(true);
                if stands_in(on_failure, outcome) {
                    is_visible(&world, &plan, SlotName::PluginPackaging, &what);
                    assert_eq!(asked(&plan, SlotName::PluginPackaging), [("p2", outcome), ("p-builtin", Outcome::Answered)], "{what}");
                    assert_eq!(world.in_force().unwrap().digest, "sha256:two", "{what}");
                    assert_eq!(record(&world)["plugin-packaging"]["policy"]["digest"], "p-builtin", "{what}");
                    assert_eq!((world.accepted().status.as_str(), world.said("Ready").0.as_str()), ("True", "True"), "{what}");
                    assert_eq!(plan.holds, [], "{what}");
                    // The policy is asked again, for it may answer again; what is there is as it was.
                    world.pass();
                    let again = world.pass();
                    assert_eq!((again.changes, again.status_changed, again.events), (vec![], false, vec![]), "{what}");
                    world.snapshot.fetch = Fetch::Pending;
                    assert!(!world.dry().status_changed, "{what}: after a restart it is still so");
                } else {
                    is_said(&world, on_failure, outcome, "nothing new is installed", &what);
                    assert_eq!(asked(&plan, SlotName::PluginPackaging), [("p2", outcome)], "{what}");
                    let digest = world.in_force().map(|content| content.digest);
                    assert_eq!(digest, has_last.then(|| "sha256:one".to_owned()), "{what}");
                }
                world.packaging = Scripted::new("p3", |input| Ok(one_plugin(input)));
                world.pass();
                world.pass();
                assert_eq!(world.in_force().unwrap().digest, "sha256:two", "{what}");
                assert_eq!(record(&world)["plugin-packaging"]["policy"]["digest"], "p3", "{what}");
                assert_eq!(world.said("PoliciesApplied").1, "Applied", "{what}");
            }
        }
    }
}

fn granted(world: &World) -> Vec<String> {
    claims(&world.snapshot.installation).into_iter().filter(|c| c.granted).map(|c| c.name).collect()
}

#[test]
fn claims_on_an_installation() {
    for on_failure in EACH {
        for outcome in ENDS {
            for has_last in [true, false] {
                let what = format!("{on_failure:?} {outcome:?}, granted before: {has_last}");
                let mut world = World::installed();
                world.claimant("a");
                if has_last {
                    world.conflicts = Scripted::<ConflictResolution>::new("c1", |_| Ok(verdict(Verdict::Keep(0))));
                    world.pass();
                    assert_eq!(granted(&world), ["a"]);
                }
                world.snapshot.now = LATER.parse().unwrap();
                world.claimant("b");
                (world.conflicts, world.on_failure) =
                    (Scripted::<ConflictResolution>::new("c2", move |_| ends(outcome, verdict(Verdict::Merge("both".into())))), on_failure);
                let plan = world.pass();
                if stands_in(on_failure, outcome) {
                    is_visible(&world, &plan, SlotName::ConflictResolution, &what);
                    assert_eq!(asked(&plan, SlotName::ConflictResolution), [("c2", outcome), ("c-builtin", Outcome::Answered)], "{what}");
                    assert_eq!(granted(&world), ["a", "b"], "{what}");
                    continue;
                }
                is_said(&world, on_failure, outcome, "no claim changes", &what);
                assert_eq!(asked(&plan, SlotName::ConflictResolution), [("c2", outcome)], "{what}");
                let before: &[&str] = if has_last { &["a"] } else { &[] };
                assert_eq!(granted(&world), before, "{what}");
                let standing = standing(&world.snapshot.installation, "uid-b");
                assert!(matches!(standing, Standing::Held(_)), "{what}: nobody has decided: {standing:?}");
            }
        }
    }
}
