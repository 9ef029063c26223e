//! What holds in a DataPlane while a policy fails: each `onFailure`, for a failure, an answer that breaks the rules and a refusal, with and
//! without a last answer.

use std::sync::Arc;

use serde_json::{Value, json};
use weir_api::keys;
use weir_core::{
    events::EventType,
    plan::{HeldPart, Outcome},
    policy::{
        KonnectEnv, OnFailure, PolicyError, Refusal, Severity, SlotName,
        conflict_resolution::{self, ConflictResolution, Resolution, SubjectKind, Verdict},
        konnect_env,
    },
};

use crate::{
    policies::{Scripted, content, environment, unavailable, verdicts},
    world::{DataPlanePlan, World},
};

const EACH: [OnFailure; 3] = [OnFailure::KeepLast, OnFailure::Fallback, OnFailure::Block];

/// How a question ends without an accepted answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    Trap,
    Illegal,
    Refused,
}

impl Ends {
    const ALL: [Self; 3] = [Self::Trap, Self::Illegal, Self::Refused];

    fn outcome(self) -> Outcome {
        match self {
            Self::Trap => Outcome::Trap,
            Self::Illegal => Outcome::BadOutput,
            Self::Refused => Outcome::Refused,
        }
    }

    fn error<A>(self, illegal: A) -> Result<A, PolicyError> {
        match self {
            Self::Trap => Err(PolicyError::Trap("unreachable".into())),
            Self::Illegal => Ok(illegal),
            Self::Refused => Err(PolicyError::Refused(Refusal { code: "No".into(), message: "not like this".into() })),
        }
    }

    /// What `PoliciesApplied` says when nobody stands in.
    fn word(self) -> String {
        format!("False/{}", self.outcome().as_str())
    }
}

/// What becomes of what the slot shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    /// The last answer is in force, and all else goes on.
    Last,
    /// The answer of the one that stands in is in force.
    Other,
    /// It stays as it is in the cluster.
    Stays,
}

fn then(on_failure: OnFailure, ends: Ends, has_last: bool) -> Then {
    match (ends, on_failure) {
        (Ends::Trap | Ends::Illegal, OnFailure::Fallback) => Then::Other,
        (Ends::Trap | Ends::Illegal, OnFailure::Block) => Then::Stays,
        (Ends::Trap | Ends::Illegal, OnFailure::KeepLast) | (Ends::Refused, _) if has_last => Then::Last,
        (Ends::Trap | Ends::Illegal, OnFailure::KeepLast) | (Ends::Refused, _) => Then::Stays,
    }
}

/// Every case of one slot.
fn each(mut case: impl FnMut(OnFailure, Ends, bool, Then)) {
    for on_failure in EACH {
        for ends in Ends::ALL {
            for has_last in [true, false] {
                case(on_failure, ends, has_last, then(on_failure, ends, has_last));
            }
        }
    }
}

fn konnect(ends: Ends) -> Arc<Scripted<KonnectEnv>> {
    // The slot allows it; nobody renders a pod with it.
    let nothing =
        konnect_env::Answer { env: Vec::new(), volumes: Vec::new(), mounts: Vec::new(), readiness_path: None, findings: Vec::new() };
    Scripted::new("k2", move |_| ends.error(nothing.clone()))
}

fn conflicts(ends: Ends) -> Arc<Scripted<ConflictResolution>> {
    Scripted::new("c2", move |input: &conflict_resolution::Input| {
        let nobody = Resolution { verdict: Verdict::Keep(9), findings: Vec::new() };
        ends.error(conflict_resolution::Answer { resolutions: vec![nobody; input.conflicts.len()] })
    })
}

fn image(world: &World) -> Option<&str> {
    world.template().spec.as_ref()?.containers[0].image.as_deref()
}

/// The owner's change that is to reach the pods, and one that does not wait for any answer.
fn edit(world: &mut World) {
    world.image("kong:3.10");
    world.scale(4);
}

fn replicas(world: &World) -> Option<i32> {
    world.live().spec.as_ref().unwrap().replicas
}

/// Who was asked in this slot, and how that ended.
fn asked(plan: &DataPlanePlan, slot: SlotName) -> Vec<(&str, Outcome)> {
    plan.policies.iter().filter(|p| p.slot == slot).map(|p| (p.digest.as_str(), p.outcome)).collect()
}

/// That another policy stood in: in the condition, as a finding and as an event.
fn is_visible(world: &World, plan: &DataPlanePlan, slot: SlotName, what: &str) {
    assert_eq!(world.word("PoliciesApplied"), "True/FellBack", "{what}");
    let message = world.said("PoliciesApplied").2;
    assert!(
        message.starts_with(&format!("{slot}: test failed (the policy")) && message.contains("onFailure is Fallback"),
        "{what}: {message}"
    );
    let findings: Vec<_> = plan.findings.iter().filter(|f| f.code == "FellBack").collect();
    assert_eq!(findings.iter().map(|f| (f.severity, f.message.clone())).collect::<Vec<_>>(), [(Severity::Warning, message)], "{what}");
    assert!(plan.events.iter().any(|e| (e.type_, e.reason.as_str()) == (EventType::Warning, "FellBack")), "{what}");
    assert_eq!(plan.holds, [], "{what}");
}

/// That the template is left alone, and why.
fn is_held(world: &World, plan: &DataPlanePlan, on_failure: OnFailure, ends: Ends, what: &str) {
    assert_eq!(world.word("PoliciesApplied"), ends.word(), "{what}");
    let held: Vec<_> = plan.holds.iter().map(|h| (h.what, h.reason.as_str())).collect();
    assert_eq!(held, [(HeldPart::PodTemplate, ends.outcome().as_str())], "{what}");
    let message = world.said("PoliciesApplied").2;
    let blocks = on_failure == OnFailure::Block && ends != Ends::Refused;
    assert_eq!(message.contains("stays as it is in the cluster, since onFailure is Block"), blocks, "{what}: {message}");
}

/// A DataPlane with an extension and a plugin, before or after the first answer.
fn hybrid(has_last: bool) -> World {
    let mut world = World::new();
    world.install("ns/rate", &content(&["rate"], "1.0.0"));
    world.extend();
    if has_last {
        world.converge();
        assert_eq!(world.word("PoliciesApplied"), "True/Applied");
    }
    world
}

#[test]
fn konnect_env() {
    each(|on_failure, ends, has_last, then| {
        let what = format!("{on_failure:?} {ends:?}, last answer: {has_last}");
        let mut world = hybrid(has_last);
        (world.konnect, world.on_failure) = (konnect(ends), on_failure);
        edit(&mut world);
        let plan = world.pass();
        let failed = ("k2", ends.outcome());
        match then {
            Then::Other => {
                is_visible(&world, &plan, SlotName::KonnectEnv, &what);
                assert_eq!(asked(&plan, SlotName::KonnectEnv), [failed, ("k-builtin", Outcome::Answered)], "{what}");
            }
            Then::Last | Then::Stays => assert_eq!(asked(&plan, SlotName::KonnectEnv), [failed], "{what}"),
        }
        match (then, has_last) {
            (Then::Last, _) => {
                assert_eq!(world.word("PoliciesApplied"), ends.word(), "{what}");
                assert_eq!((image(&world), world.env("KONG_EXTRA")), (Some("kong:3.10"), None), "{what}");
                assert_eq!(world.decisions()["konnect-env"]["policy"]["digest"], "k1", "{what}");
                assert_eq!(world.word("KonnectExtensionApplied"), ends.word(), "{what}");
            }
            (Then::Other, _) => {
                assert_eq!((image(&world), world.env("KONG_EXTRA").as_deref()), (Some("kong:3.10"), Some("builtin")), "{what}");
                assert_eq!(world.decisions()["konnect-env"]["policy"]["digest"], "k-builtin", "{what}");
                assert_eq!(world.word("KonnectExtensionApplied"), "True/KonnectExtensionApplied", "{what}");
            }
            (Then::Stays, true) => {
                is_held(&world, &plan, on_failure, ends, &what);
                assert_eq!((image(&world), replicas(&world), world.rolls), (Some("kong:3.9"), Some(4), 1), "{what}");
                assert_eq!(world.decisions()["konnect-env"]["policy"]["digest"], "k1", "{what}");
                assert!(world.said("PluginsInstalled").2.contains("rate 1.0.0"), "{what}: {}", world.said("PluginsInstalled").2);
                assert_eq!(world.word("PluginsInstalled"), "True/Installed", "{what}: the pods have it");
            }
            (Then::Stays, false) => {
                is_held(&world, &plan, on_failure, ends, &what);
                assert!(world.snapshot.children.deployments.is_empty(), "{what}");
                assert_eq!(world.snapshot.children.services.len(), 2, "{what}: all else goes on");
            }
        }
        world.converge();
        world.konnect = environment("k3", Some("again"));
        world.converge();
        assert_eq!((image(&world), world.env("KONG_EXTRA").as_deref()), (Some("kong:3.10"), Some("again")), "{what}");
        assert_eq!((world.word("PoliciesApplied").as_str(), world.word("Ready").as_str()), ("True/Applied", "True/Ready"), "{what}");
    });
}

/// The pods exist, and the owner names an extension only now: without an answer they stay as they are, never without its environment.
#[test]
fn a_live_template_without_a_last_answer_stays() {
    for on_failure in [OnFailure::KeepLast, OnFailure::Block] {
        let mut world = World::new();
        world.converge();
        (world.konnect, world.on_failure) = (konnect(Ends::Trap), on_failure);
        world.extend();
        edit(&mut world);
        let plan = world.pass();
        is_held(&world, &plan, on_failure, Ends::Trap, &format!("{on_failure:?}"));
        assert_eq!((image(&world), replicas(&world)), (Some("kong:3.9"), Some(4)));
    }
}

/// A DataPlane whose owner sets a variable that has a default, before or after the first verdict.
fn overriding(has_last: bool) -> World {
    let proxy = json!({"name": "proxy", "image": "kong:3.9", "env": [{"name": "KONG_NGINX_WORKER_PROCESSES", "value": "7"}]});
    let mut world = World::with_spec(&json!({"deployment": {"podTemplateSpec": {"spec": {"containers": [proxy]}}}}));
    if has_last {
        world.converge();
        assert_eq!(world.env("KONG_NGINX_WORKER_PROCESSES").as_deref(), Some("7"));
    }
    world
}

fn verdict_on(world: &World, key: &str) -> Value {
    world.decisions()["conflict-resolution"]["answer"][key].clone()
}

#[test]
fn conflicts_in_the_pod() {
    each(|on_failure, ends, has_last, then| {
        let what = format!("{on_failure:?} {ends:?}, last answer: {has_last}");
        let mut world = overriding(has_last);
        (world.conflicts, world.on_failure) = (conflicts(ends), on_failure);
        edit(&mut world);
        let plan = world.pass();
        let failed = ("c2", ends.outcome());
        let workers = |world: &World| world.env("KONG_NGINX_WORKER_PROCESSES");
        let judge = |world: &World| world.decisions()["conflict-resolution"]["policy"]["digest"].clone();
        match (then, has_last) {
            (Then::Last, _) => {
                assert_eq!(world.word("PoliciesApplied"), ends.word(), "{what}");
                assert_eq!((image(&world), workers(&world).as_deref()), (Some("kong:3.10"), Some("7")), "{what}");
                assert_eq!(judge(&world), "c1", "{what}");
            }
            (Then::Other, _) => {
                is_visible(&world, &plan, SlotName::ConflictResolution, &what);
                assert_eq!(asked(&plan, SlotName::ConflictResolution), [failed, ("c-builtin", Outcome::Answered)], "{what}");
                assert_eq!((image(&world), workers(&world).as_deref()), (Some("kong:3.10"), Some("2")), "{what}");
                assert_eq!(judge(&world), "c-builtin", "{what}");
                assert_eq!(verdict_on(&world, "env-var/KONG_NGINX_WORKER_PROCESSES").get("keptFrom"), None, "{what}");
            }
            (Then::Stays, true) => {
                is_held(&world, &plan, on_failure, ends, &what);
                assert_eq!((image(&world), replicas(&world), world.rolls), (Some("kong:3.9"), Some(4), 1), "{what}");
                assert_eq!((workers(&world).as_deref(), judge(&world)), (Some("7"), json!("c1")), "{what}");
            }
            (Then::Stays, false) => {
                is_held(&world, &plan, on_failure, ends, &what);
                assert!(world.snapshot.children.deployments.is_empty(), "{what}");
            }
        }
        world.converge();
        world.conflicts = verdicts("c3", |_| Verdict::Keep(0));
        world.converge();
        assert_eq!((image(&world), workers(&world).as_deref()), (Some("kong:3.10"), Some("7")), "{what}");
        assert_eq!(world.word("PoliciesApplied"), "True/Applied", "{what}");
    });
}

/// Two installations with a plugin `x`, of which the second has `y` too; the first has won `x`.
fn two(has_last: bool) -> World {
    let mut world = World::new();
    world.install("a/one", &content(&["x"], "1.0.0"));
    world.install("b/two", &content(&["x", "y"], "2.0.0"));
    if has_last {
        world.converge();
        assert!(world.mounts(&content(&["x"], "1.0.0")));
    }
    world
}

fn mounts_first(world: &World) -> bool {
    world.mounts(&content(&["x"], "1.0.0"))
}

#[test]
fn names_of_plugins() {
    each(|on_failure, ends, has_last, then| {
        let what = format!("{on_failure:?} {ends:?}, last answer: {has_last}");
        let mut world = two(has_last);
        (world.conflicts, world.on_failure) = (conflicts(ends), on_failure);
        edit(&mut world);
        let plan = world.pass();
        let blocks = on_failure == OnFailure::Block && ends != Ends::Refused;
        match (then, has_last) {
            (Then::Last, _) => {
                assert_eq!(world.word("PoliciesApplied"), ends.word(), "{what}");
                assert_eq!((image(&world), mounts_first(&world)), (Some("kong:3.10"), true), "{what}");
            }
            (Then::Other, _) => {
                is_visible(&world, &plan, SlotName::ConflictResolution, &what);
                assert_eq!((image(&world), mounts_first(&world)), (Some("kong:3.10"), false), "{what}: the second has it now");
                assert_eq!(world.env("KONG_PLUGINS").as_deref(), Some("bundled,x,y"), "{what}");
            }
            (Then::Stays, true) => {
                is_held(&world, &plan, on_failure, ends, &what);
                assert_eq!((image(&world), replicas(&world), mounts_first(&world)), (Some("kong:3.9"), Some(4), true), "{what}");
                let (machine, name) = (world.machine(), json!([{"name": "x", "version": "1.0.0"}]));
                assert_eq!((&machine[0]["plugins"], &machine[0]["missing"]), (&name, &Value::Null), "{what}: as it was settled");
            }
            (Then::Stays, false) if blocks => {
                is_held(&world, &plan, on_failure, ends, &what);
                assert!(world.snapshot.children.deployments.is_empty(), "{what}");
                assert_eq!(world.word("PluginsInstalled"), ends.word(), "{what}");
            }
            // Nobody has the name, and that is all.
            (Then::Stays, false) => {
                assert_eq!(world.word("PoliciesApplied"), ends.word(), "{what}");
                assert_eq!(world.env("KONG_PLUGINS").as_deref(), Some("bundled,y"), "{what}");
                assert_eq!(world.word("PluginsInstalled"), ends.word(), "{what}");
            }
        }
        world.converge();
    });
}

/// The policy answers one question of a pass and not the other: each verdict says whose it is.
#[test]
fn two_judges_in_one_pass() {
    let proxy = json!({"name": "proxy", "image": "kong:3.9", "env": [{"name": "KONG_NGINX_WORKER_PROCESSES", "value": "7"}]});
    let mut world = World::with_spec(&json!({"deployment": {"podTemplateSpec": {"spec": {"containers": [proxy]}}}}));
    world.install("a/one", &content(&["x"], "1.0.0"));
    world.install("b/two", &content(&["x"], "2.0.0"));
    world.on_failure = OnFailure::Fallback;
    world.conflicts = Scripted::new("c2", |input: &conflict_resolution::Input| {
        if input.conflicts.iter().any(|c| c.kind == SubjectKind::EnvVar) {
            return Err(PolicyError::Deadline { limit_ms: 200 });
        }
        let first = Resolution { verdict: Verdict::Keep(0), findings: Vec::new() };
        Ok(conflict_resolution::Answer { resolutions: vec![first; input.conflicts.len()] })
    });
    let plan = world.converge();
    assert_eq!(
        asked(&plan, SlotName::ConflictResolution),
        [("c2", Outcome::Answered), ("c2", Outcome::Deadline), ("c-builtin", Outcome::Answered)]
    );
    assert_eq!(world.decisions()["conflict-resolution"]["policy"]["digest"], "c2");
    assert_eq!(verdict_on(&world, "plugin-name/x").get("keptFrom"), None);
    assert_eq!(verdict_on(&world, "env-var/KONG_NGINX_WORKER_PROCESSES")["keptFrom"]["digest"], "c-builtin");
    assert_eq!(world.word("PoliciesApplied"), "True/FellBack");
}

/// A stand-in that has no answer either changes nothing: as without one.
#[test]
fn a_stand_in_without_an_answer() {
    let refusing =
        || Scripted::<KonnectEnv>::new("k-builtin", |_| Err(PolicyError::Refused(Refusal { code: "No".into(), message: "nor I".into() })));
    let words = "the policy trapped: unreachable; test was asked instead: the policy";
    for (other, reason, message) in [
        (unavailable::<KonnectEnv>("k-builtin"), "Trap", format!("{words} is not available: the policy is away; the last accepted")),
        (refusing(), "Refused", format!("{words} refused (No): nor I; the last accepted")),
    ] {
        let mut world = hybrid(true);
        (world.konnect, world.on_failure, world.other_konnect) = (konnect(Ends::Trap), OnFailure::Fallback, other);
        edit(&mut world);
        let plan = world.pass();
        let (status, said, text) = world.said("PoliciesApplied");
        assert_eq!((status.as_str(), said.as_str()), ("False", reason));
        assert!(text.starts_with(&message), "{text}");
        assert_eq!(world.word("KonnectExtensionApplied"), format!("False/{reason}"));
        assert_eq!(asked(&plan, SlotName::KonnectEnv).len(), 2);
        assert_eq!((image(&world), world.env("KONG_EXTRA")), (Some("kong:3.10"), None), "the last answer is in force");
        assert_eq!(plan.findings.iter().filter(|f| f.code == "FellBack").count(), 0);
    }
}

/// Who holds changes from elsewhere is not surprised by the answer of a stand-in either.
#[test]
fn a_stand_ins_answer_waits_for_an_owner_who_holds() {
    let mut world = hybrid(false);
    world.annotate(keys::ROLLOUT, "Manual");
    world.converge();
    (world.konnect, world.on_failure) = (konnect(Ends::Trap), OnFailure::Fallback);
    world.converge();
    assert_eq!((world.rolls, world.env("KONG_EXTRA")), (1, None));
    assert_eq!((world.word("RolloutHeld").as_str(), world.word("PoliciesApplied").as_str()), ("True/ForeignChange", "True/FellBack"));
    world.on_failure = OnFailure::Block;
    world.image("kong:3.10");
    world.converge();
    assert_eq!((world.rolls, image(&world)), (1, Some("kong:3.9")), "an own change is blocked as well");
}
