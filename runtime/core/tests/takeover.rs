//! Taking over from Kong's operator: not while it runs, under the names that are there, and without rolling a pod.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test may stop at the first thing that is wrong")]

mod support;

use serde_json::json;
use support::{
    ADMIN, SECRET, annotate, annotation, applied, condition, deployment, differ, kongs_children, kongs_secret, pass, snapshot, steps,
    store, with_spec,
};
use weir_api::keys;
use weir_core::{
    dataplane::{objects::deployment::TEMPLATE_HASH, snapshot::Snapshot},
    plan::{Change, ChildKind},
};

fn kongs() -> Snapshot {
    let mut snapshot = snapshot();
    kongs_children(&mut snapshot);
    snapshot
}

fn differing() -> Snapshot {
    let mut snapshot = kongs();
    differ(&mut snapshot);
    snapshot
}

#[test]
fn nothing_is_touched_while_kongs_operator_runs() {
    let mut snapshot = differing();
    annotate(&mut snapshot, keys::CHECK_AT, "1");
    snapshot.operator.kong_operator = Some("kong-pod_1".into());
    let plan = pass(&snapshot);
    assert_eq!(plan.changes, []);
    let held = condition(&plan, "RolloutHeld").unwrap();
    assert_eq!((held.status.as_str(), held.reason.as_str()), ("True", "KongOperatorLive"));
    assert!(held.message.contains("kong-pod_1") && held.message.contains("scale its Deployment to 0"), "{}", held.message);
    assert!(condition(&plan, "Ready").is_some(), "the rest is still reported");
    let reasons: Vec<&str> = plan.holds.iter().map(|h| h.reason.as_str()).collect();
    assert_eq!(reasons, ["KongOperatorLive"]);
}

#[test]
fn an_object_without_children_is_left_to_the_one_that_runs() {
    let mut snapshot = snapshot();
    snapshot.operator.kong_operator = Some("kong-pod_1".into());
    assert_eq!(pass(&snapshot).changes, []);
}

#[test]
fn what_is_ours_already_goes_on() {
    let mut snapshot = kongs();
    let plan = pass(&snapshot);
    store(&mut snapshot, &deployment(&plan));
    snapshot.children.services.clear();
    snapshot.operator.kong_operator = Some("kong-pod_1".into());
    let plan = pass(&snapshot);
    assert!(steps(&plan).contains(&("create", ChildKind::Service)), "{:?}", plan.changes);
    assert_eq!(condition(&plan, "RolloutHeld"), None);
}

#[test]
fn what_kongs_operator_says_of_the_object_is_not_reworded() {
    let mut snapshot = kongs();
    snapshot.operator.kong_operator = Some("kong-pod_1".into());
    let ready = json!({"type": "Ready", "status": "False", "reason": "WaitingToBecomeReady", "message": "as Kong words it",
        "lastTransitionTime": "2025-01-01T00:00:00Z"});
    snapshot.data_plane.status = serde_json::from_value(json!({"conditions": [ready], "readyReplicas": 1, "replicas": 1})).unwrap();
    snapshot.data_plane.metadata.managed_fields = serde_json::from_value(json!([{
        "manager": "manager", "operation": "Update", "subresource": "status",
        "fieldsV1": {"f:status": {"f:conditions": {"k:{\"type\":\"Ready\"}": {".": {}}}}},
    }]))
    .unwrap();
    let plan = pass(&snapshot);
    assert_eq!(condition(&plan, "Ready").unwrap().message, "as Kong words it");
    assert_eq!(condition(&plan, "RolloutHeld").unwrap().reason, "KongOperatorLive");
    snapshot.data_plane.status = plan.status;
    assert!(!pass(&snapshot).status_changed, "once");
}

#[test]
fn children_keep_their_names_and_pods_do_not_roll() {
    let snapshot = kongs();
    let plan = pass(&snapshot);
    let each = |kind| [("take over", kind), ("update", kind)];
    let mut wanted = [each(ChildKind::Service), each(ChildKind::Service), each(ChildKind::Deployment)].concat();
    wanted.push(("take over", ChildKind::Secret));
    assert_eq!(steps(&plan), wanted);
    let names: Vec<String> = applied(&plan).iter().map(|o| o.meta().name.clone().unwrap()).collect();
    assert_eq!(names, [ADMIN, "dataplane-ingress-gw-y2", "dataplane-gw-z3"]);
    let uids: Vec<String> = applied(&plan).iter().map(|o| o.meta().uid.clone().unwrap()).collect();
    assert_eq!(uids, names.iter().map(|n| format!("uid-{n}")).collect::<Vec<_>>());
    let deployment = deployment(&plan);
    assert!(annotation(&deployment, TEMPLATE_HASH).is_some(), "nothing differs: the template is ours from now on");
    assert_eq!(annotation(&deployment, keys::TAKEOVER_GENERATION), None);
    assert_eq!(condition(&plan, "RolloutHeld"), None);
    let mounted = deployment.spec.unwrap().template.spec.unwrap().volumes.unwrap()[0].secret.clone().unwrap();
    assert_eq!(mounted.secret_name.as_deref(), Some(SECRET), "its certificate is used until renewal");
}

#[test]
fn a_difference_waits_for_the_owners_next_change() {
    let mut snapshot = differing();
    let first = pass(&snapshot);
    let kept = deployment(&first);
    let live = snapshot.children.deployments[0].object.spec.clone().unwrap().template;
    assert_eq!(kept.spec.as_ref().unwrap().template, live);
    assert_eq!(annotation(&kept, keys::TAKEOVER_GENERATION).as_deref(), Some("3"));
    assert_eq!(annotation(&kept, TEMPLATE_HASH), None);
    let held = condition(&first, "RolloutHeld").unwrap();
    assert_eq!((held.status.as_str(), held.reason.as_str()), ("True", "Takeover"));

    store(&mut snapshot, &kept);
    let second = pass(&snapshot);
    assert!(!steps(&second).iter().any(|(_, kind)| *kind == ChildKind::Deployment), "{:?}", second.changes);
    assert_eq!(condition(&second, "RolloutHeld").unwrap().message, held.message);

    snapshot.data_plane.metadata.generation = Some(4);
    let third = pass(&snapshot);
    let rolled = deployment(&third);
    assert!(annotation(&rolled, TEMPLATE_HASH).is_some());
    assert_eq!(annotation(&rolled, keys::TAKEOVER_GENERATION), None);
    assert_eq!(condition(&third, "RolloutHeld"), None);
}

#[test]
fn an_approval_lets_exactly_the_pending_template_go() {
    let mut snapshot = differing();
    let message = condition(&pass(&snapshot), "RolloutHeld").unwrap().message;
    let pending = message.split_whitespace().find(|word| word.starts_with("sha256:")).unwrap().to_owned();

    annotate(&mut snapshot, keys::APPROVED_ROLLOUT, "sha256:other");
    let refused = pass(&snapshot);
    assert!(annotation(&deployment(&refused), keys::TAKEOVER_GENERATION).is_some());
    let held = condition(&refused, "RolloutHeld").unwrap();
    assert!(held.message.contains(&pending) && held.message.contains("sha256:other"), "{}", held.message);
    assert!(held.message.contains("changes nothing"), "{}", held.message);

    annotate(&mut snapshot, keys::APPROVED_ROLLOUT, &pending);
    let plan = pass(&snapshot);
    assert_eq!(annotation(&deployment(&plan), TEMPLATE_HASH), Some(pending));
    assert_eq!(condition(&plan, "RolloutHeld"), None);
}

#[test]
fn a_takeover_that_was_cut_short_is_finished_and_rolls_nothing() {
    let mut snapshot = differing();
    // The entries were handed over, the apply did not happen.
    let live = &mut snapshot.children.deployments[0].object.metadata;
    live.managed_fields.as_mut().unwrap()[0].manager = Some("weir".into());
    live.managed_fields.as_mut().unwrap()[0].operation = Some("Apply".into());
    live.finalizers = None;
    let plan = pass(&snapshot);
    assert!(steps(&plan).contains(&("take over", ChildKind::Deployment)));
    assert_eq!(condition(&plan, "RolloutHeld").unwrap().reason, "Takeover");
}

#[test]
fn a_certificate_near_its_end_rolls_alone() {
    let mut snapshot = differing();
    snapshot.children.secrets = vec![kongs_secret("2026-01-03T00:00:00Z")];
    let plan = pass(&snapshot);
    assert!(steps(&plan).contains(&("mint", ChildKind::Secret)));
    let template = deployment(&plan).spec.unwrap().template.spec.unwrap();
    let mounted = template.volumes.unwrap()[0].secret.clone().unwrap().secret_name.unwrap();
    assert_ne!(mounted, SECRET);
    assert!(template.containers[0].env.iter().flatten().any(|e| e.name == "Z"), "the rest of the template still waits");
    assert!(!steps(&plan).contains(&("delete", ChildKind::Secret)), "pods still use the old one");
}

#[test]
fn the_autoscalers_count_is_not_dropped_with_kongs_ownership() {
    let mut snapshot = with_spec(&json!({"deployment": {
        "podTemplateSpec": {"spec": {"containers": [{"name": "proxy", "image": "kong:3.9"}]}},
        "scaling": {"horizontal": {"maxReplicas": 9}},
    }}));
    kongs_children(&mut snapshot);
    snapshot.children.deployments[0].object.spec.as_mut().unwrap().replicas = Some(5);
    assert_eq!(deployment(&pass(&snapshot)).spec.unwrap().replicas, Some(5));
}

#[test]
fn the_worse_of_two_is_freed_and_deleted() {
    let mut snapshot = kongs();
    let mut worse = snapshot.children.deployments[0].clone();
    worse.object.metadata.name = Some("dataplane-gw-w9".into());
    worse.object.metadata.uid = Some("uid-worse".into());
    worse.object.status = None;
    snapshot.children.deployments.insert(0, worse);
    let plan = pass(&snapshot);
    let end: Vec<_> = steps(&plan).into_iter().rev().take(2).collect();
    assert_eq!(end, [("delete", ChildKind::Deployment), ("take over", ChildKind::Deployment)]);
    let deleted: Vec<&str> =
        plan.changes.iter().filter_map(|c| if let Change::Delete(t) = c { Some(t.uid.as_str()) } else { None }).collect();
    assert_eq!(deleted, ["uid-worse"]);
}

#[test]
fn a_child_that_kongs_finalizer_keeps_is_freed() {
    let mut snapshot = kongs();
    let stuck = &mut snapshot.children.deployments[0].object.metadata;
    stuck.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    let plan = pass(&snapshot);
    let deployments: Vec<_> = steps(&plan).into_iter().filter(|(_, kind)| *kind == ChildKind::Deployment).collect();
    assert_eq!(deployments, [("create", ChildKind::Deployment), ("take over", ChildKind::Deployment)]);

    let mut deleting = kongs();
    deleting.data_plane.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    let plan = pass(&deleting);
    assert_eq!(plan.changes.len(), 4, "two Services, a Deployment, a Secret: {:?}", plan.changes);
    assert!(plan.changes.iter().all(|c| matches!(c, Change::TakeOver(_))));
}

#[test]
fn looking_again_is_answered_once() {
    let mut snapshot = snapshot();
    annotate(&mut snapshot, keys::CHECK_AT, "now");
    let wanted = Change::SetAnnotation { key: keys::CHECKED_AT.into(), value: "now".into() };
    assert_eq!(pass(&snapshot).changes.last(), Some(&wanted));
    annotate(&mut snapshot, keys::CHECKED_AT, "now");
    assert!(!pass(&snapshot).changes.contains(&wanted));
    annotate(&mut snapshot, keys::CHECK_AT, "later");
    annotate(&mut snapshot, keys::PAUSED, "true");
    assert_eq!(pass(&snapshot).changes, [], "a paused object has nothing written but its status");
}
