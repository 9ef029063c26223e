//! The chain of hooks: who is asked about what and in which order, and what holds while one of them gives no accepted patch.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test may stop at the first thing that is wrong")]

mod support;

use std::sync::{Arc, Mutex};

use k8s_openapi::api::apps::v1::Deployment;
use serde_json::{Value, json};
use weir_core::{
    dataplane::Snapshot,
    plan::{ChildKind, Object},
    policy::{
        BoxFuture, Chosen, Identity, ObjectHook, OnFailure, Policy, PolicyError, Refusal, Slot,
        object_hook::{Answer, Hook, Hooks, Input, Operation},
    },
};

use support::{annotate, annotation, applied, condition, deployment, pass_with, snapshot, steps, with_spec};

type Say = Box<dyn Fn(&Input) -> Result<Value, PolicyError> + Send + Sync>;

/// Says what a test wants, and keeps what it was asked.
struct Scripted {
    identity: Identity,
    say: Say,
    asked: Mutex<Vec<Input>>,
}

impl Policy<ObjectHook> for Scripted {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn evaluate<'a>(&'a self, input: &'a Input) -> BoxFuture<'a, Result<Answer, PolicyError>> {
        self.asked.lock().unwrap().push(input.clone());
        let answer = (self.say)(input).and_then(|patch| {
            let answer = Answer { patch: patch.to_string(), findings: Vec::new() };
            ObjectHook::check(input, &answer).map(|()| answer).map_err(PolicyError::BadOutput)
        });
        Box::pin(std::future::ready(answer))
    }
}

fn scripted(digest: &str, say: impl Fn(&Input) -> Result<Value, PolicyError> + Send + Sync + 'static) -> Arc<Scripted> {
    let identity = Identity { source: "test".into(), digest: digest.into(), settings_digest: "s".into() };
    Arc::new(Scripted { identity, say: Box::new(say), asked: Mutex::default() })
}

fn hook(name: &str, policy: &Arc<Scripted>, on_failure: OnFailure) -> Hook {
    let nothing = scripted("builtin", |_| Ok(json!([])));
    let policy: Arc<dyn Policy<ObjectHook>> = policy.clone();
    Hook { name: name.into(), chosen: Chosen { policy, on_failure, fallback: Some(nothing) } }
}

fn hooks(chain: Vec<Hook>) -> Hooks {
    Hooks { chain, ..Hooks::default() }
}

fn label(key: &str, value: &str) -> Value {
    json!([{"op": "add", "path": format!("/metadata/labels/{key}"), "value": value}])
}

fn labels(object: &Object) -> Vec<&str> {
    object.meta().labels.iter().flatten().map(|(key, _)| key.as_str()).filter(|key| key.starts_with("team")).collect()
}

fn rich() -> Snapshot {
    with_spec(&json!({
        "deployment": {
            "podTemplateSpec": {"spec": {"containers": [{"name": "proxy", "image": "kong:3.9"}]}},
            "scaling": {"horizontal": {"minReplicas": 2, "maxReplicas": 4}},
        },
        "resources": {"podDisruptionBudget": {"spec": {"minAvailable": 1}}},
    }))
}

/// Patches on record.
fn patches(deployment: &Deployment) -> Value {
    let text = annotation(deployment, weir_api::keys::DECISIONS).unwrap();
    let record: Value = serde_json::from_str(&text).unwrap();
    record["object-hook"]["answer"].clone()
}

/// What a cluster has after a pass.
fn stored(mut snapshot: Snapshot, hooks: Hooks) -> Snapshot {
    let plan = pass_with(&snapshot, hooks);
    for object in applied(&plan) {
        let mut json = object.to_json();
        json["metadata"]["uid"] = json!(format!("uid-{}", object.meta().name.as_deref().unwrap()));
        let children = &mut snapshot.children;
        macro_rules! put {
            ($field:ident) => {
                children
                    .$field
                    .push(weir_core::dataplane::snapshot::Child { object: serde_json::from_value(json).unwrap(), answered: None })
            };
        }
        match object {
            Object::Service(_) => put!(services),
            Object::Deployment(_) => put!(deployments),
            Object::HorizontalPodAutoscaler(_) => put!(autoscalers),
            Object::PodDisruptionBudget(_) => put!(disruption_budgets),
            Object::Certificate(_) | Object::ConfigMap(_) => {}
        }
    }
    snapshot.data_plane.status = plan.status;
    snapshot
}

#[test]
fn every_rendered_object_goes_through_the_chain_and_each_hook_sees_what_the_former_ones_made() {
    let first = scripted("1", |_| Ok(label("team-a", "1")));
    let second = scripted("2", |input| {
        let object: Value = serde_json::from_str(&input.object).unwrap();
        assert_eq!(object["metadata"]["labels"]["team-a"], "1", "what the former hook made is there");
        Ok(label("team-b", "2"))
    });
    let chain = hooks(vec![hook("ns/a", &first, OnFailure::KeepLast), hook("ns/b", &second, OnFailure::KeepLast)]);
    let plan = pass_with(&rich(), chain);
    let objects = applied(&plan);
    assert_eq!(objects.len(), 5, "{:?}", steps(&plan));
    for object in &objects {
        assert_eq!(labels(object), ["team-a", "team-b"], "{:?}", object.kind());
    }
    let kinds: Vec<String> = first.asked.lock().unwrap().iter().map(|input| input.kind.clone()).collect();
    assert_eq!(kinds, ["Service", "Service", "Deployment", "HorizontalPodAutoscaler", "PodDisruptionBudget"]);
    assert!(first.asked.lock().unwrap().iter().all(|input| input.operation == Operation::Create));
    assert_eq!(condition(&plan, "PoliciesApplied").unwrap().status, "True");
    assert_eq!(plan.policies.len(), 10);
    assert!(
        plan.policies.iter().all(|used| used.object.contains(" ns/dataplane-") || used.object.ends_with(" ns/gw")),
        "{:?}",
        plan.policies
    );
}

#[test]
fn a_second_pass_writes_nothing_and_asks_about_what_exists() {
    let policy = scripted("1", |input| {
        let mut patch = label("team", "edge");
        if input.kind == "Deployment" {
            let sidecar = json!({"op": "add", "path": "/spec/template/spec/containers/-", "value": {"name": "sidecar", "image": "s:1"}});
            patch.as_array_mut().unwrap().push(sidecar);
        }
        Ok(patch)
    });
    let chain = || hooks(vec![hook("ns/a", &policy, OnFailure::KeepLast)]);
    let made = stored(rich(), chain());
    policy.asked.lock().unwrap().clear();
    let plan = pass_with(&made, chain());
    assert_eq!(applied(&plan), vec![], "the same rendering is no write");
    let asked = policy.asked.lock().unwrap();
    assert!(asked.len() == 5 && asked.iter().all(|input| input.operation == Operation::Patch));
    for input in asked.iter() {
        assert!(!input.object.contains("weir.dev/applied") && !input.owner.contains("managedFields"));
        assert!(input.paths.contains(&"/metadata/labels/*".to_owned()) && input.context.contract_version == "0.1.1");
    }
}

#[test]
fn a_patch_that_is_refused_names_the_hook_and_the_path_and_holds_only_its_object() {
    let policy = scripted("1", |input| {
        let replicas = json!([{"op": "replace", "path": "/spec/replicas", "value": 9}]);
        if input.kind == "Deployment" { Ok(replicas) } else { Ok(label("team", "edge")) }
    });
    let plan = pass_with(&snapshot(), hooks(vec![hook("ns/big", &policy, OnFailure::KeepLast)]));
    let kinds: Vec<ChildKind> = applied(&plan).iter().map(Object::kind).collect();
    assert_eq!(kinds, [ChildKind::Service, ChildKind::Service], "Services go on, pods are not made");
    let said = condition(&plan, "PoliciesApplied").unwrap();
    assert_eq!((said.status.as_str(), said.reason.as_str()), ("False", "BadOutput"));
    assert!(
        said.message.contains("hook ns/big: Deployment dataplane-gw") && said.message.contains("path /spec/replicas"),
        "{}",
        said.message
    );
}

#[test]
fn while_a_hook_fails_its_last_patch_stays_and_everything_else_moves() {
    let works = scripted("1", |_| Ok(label("team", "edge")));
    let made = stored(snapshot(), hooks(vec![hook("ns/a", &works, OnFailure::KeepLast)]));
    let ends: [fn() -> PolicyError; 2] =
        [|| PolicyError::Trap("unreachable".into()), || PolicyError::Refused(Refusal { code: "No".into(), message: "not now".into() })];
    for end in ends {
        let fails = scripted("1", move |_| Err(end()));
        let mut later = made.clone();
        let image = json!({"spec": {"containers": [{"name": "proxy", "image": "kong:3.10"}]}});
        later.data_plane.spec.deployment.as_mut().unwrap().pod_template_spec = serde_json::from_value(image).unwrap();
        let plan = pass_with(&later, hooks(vec![hook("ns/a", &fails, OnFailure::KeepLast)]));
        let applied = deployment(&plan);
        assert_eq!(applied.metadata.labels.as_ref().unwrap()["team"], "edge");
        assert!(format!("{applied:?}").contains("kong:3.10"), "a new image does not wait for a hook");
        let said = condition(&plan, "PoliciesApplied").unwrap();
        assert_eq!((said.status.as_str(), said.reason.as_str()), ("False", end().reason()));
        assert!(said.message.contains("its last accepted patch stays in force"), "{}", said.message);
        assert_eq!(patches(&applied), patches(&made.children.deployments[0].object), "the record stays");
    }
}

#[test]
fn block_leaves_objects_as_they_are_and_fallback_goes_on_without_the_hook() {
    let works = scripted("1", |_| Ok(label("team", "edge")));
    let made = stored(snapshot(), hooks(vec![hook("ns/a", &works, OnFailure::KeepLast)]));
    let fails = scripted("1", |_| Err(PolicyError::Trap("unreachable".into())));
    let blocked = pass_with(&made, hooks(vec![hook("ns/a", &fails, OnFailure::Block)]));
    let services = applied(&blocked).iter().filter(|object| object.kind() == ChildKind::Service).count();
    assert_eq!(services, 0, "no Service is touched");
    assert!(condition(&blocked, "PoliciesApplied").unwrap().message.contains("since onFailure is Block"));
    let without = pass_with(&made, hooks(vec![hook("ns/a", &fails, OnFailure::Fallback)]));
    assert!(applied(&without).iter().all(|object| labels(object).is_empty()), "the label goes");
    let said = condition(&without, "PoliciesApplied").unwrap();
    assert_eq!((said.status.as_str(), said.reason.as_str()), ("True", "FellBack"));
}

#[test]
fn a_hook_that_leaves_takes_its_changes_along() {
    let policy = scripted("1", |_| Ok(label("team", "edge")));
    let made = stored(rich(), hooks(vec![hook("ns/a", &policy, OnFailure::KeepLast)]));
    let plan = pass_with(&made, Hooks::default());
    assert_eq!(applied(&plan).len(), 5);
    assert!(applied(&plan).iter().all(|object| labels(object).is_empty()));
    assert_eq!(annotation(&deployment(&plan), weir_api::keys::DECISIONS), None);
}

#[test]
fn an_owner_who_holds_changes_from_elsewhere_holds_those_of_hooks() {
    let mut object = snapshot();
    annotate(&mut object, weir_api::keys::ROLLOUT, "Manual");
    let made = stored(object, Hooks::default());
    let policy = scripted("1", |input| {
        let pods = json!([{"op": "add", "path": "/spec/template/metadata/labels/team", "value": "edge"}]);
        Ok(if input.kind == "Deployment" { pods } else { json!([]) })
    });
    let plan = pass_with(&made, hooks(vec![hook("ns/a", &policy, OnFailure::KeepLast)]));
    let held = condition(&plan, "RolloutHeld").unwrap();
    assert_eq!((held.status.as_str(), held.reason.as_str()), ("True", "ForeignChange"));
    let moved = applied(&plan).iter().any(|object| format!("{object:?}").contains("\"team\": \"edge\""));
    assert!(!moved, "the pods stay as they are");
}

#[test]
fn hooks_hear_of_what_is_deleted_and_cannot_keep_it() {
    let works = scripted("1", |_| Ok(json!([])));
    let mut made = stored(rich(), hooks(vec![hook("ns/a", &works, OnFailure::KeepLast)]));
    made.data_plane.spec.deployment.as_mut().unwrap().scaling = None;
    let policy = scripted("1", |input| match input.operation {
        Operation::Delete => Err(PolicyError::Trap("unreachable".into())),
        Operation::Create | Operation::Patch | Operation::Evaluate => Ok(json!([])),
    });
    let plan = pass_with(&made, hooks(vec![hook("ns/a", &policy, OnFailure::KeepLast)]));
    assert!(steps(&plan).contains(&("delete", ChildKind::HorizontalPodAutoscaler)), "{:?}", steps(&plan));
    let asked = policy.asked.lock().unwrap();
    let gone: Vec<&Input> = asked.iter().filter(|input| input.operation == Operation::Delete).collect();
    assert_eq!((gone.len(), gone[0].kind.as_str()), (1, "HorizontalPodAutoscaler"));
    assert!(plan.findings.iter().any(|finding| finding.code == "HookNotTold" && finding.message.contains("hook ns/a")));
    assert_eq!(condition(&plan, "PoliciesApplied").unwrap().status, "True");
}

#[test]
fn an_object_on_its_way_out_asks_nobody() {
    let policy = scripted("1", |_| Ok(json!([])));
    let mut object = snapshot();
    object.data_plane.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    pass_with(&object, hooks(vec![hook("ns/a", &policy, OnFailure::KeepLast)]));
    assert!(policy.asked.lock().unwrap().is_empty());
}
