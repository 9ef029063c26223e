//! A pod template that is held, and other people's fields in it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test may stop at the first thing that is wrong")]

mod support;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde_json::{Value, json};
use support::{annotation, deployment, kongs_children, pass, snapshot, steps, store};
use weir_core::{
    dataplane::{objects::deployment::TEMPLATE_HASH, snapshot::Snapshot},
    plan::ChildKind,
};

/// A Deployment of ours with all its defaults, a variable from a webhook, and a restart by hand.
fn ours() -> Snapshot {
    let mut snapshot = snapshot();
    kongs_children(&mut snapshot);
    let fields = json!({"f:spec": {"f:template": {"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {
        "f:dnsPolicy": {},
        "f:containers": {"k:{\"name\":\"proxy\"}": {".": {}, "f:name": {}, "f:image": {},
            "f:env": {"k:{\"name\":\"KONG_DATABASE\"}": {".": {}, "f:name": {}, "f:value": {}}}}},
        "f:volumes": {"k:{\"name\":\"cluster-certificate\"}": {".": {}, "f:name": {}, "f:secret": {"f:secretName": {}}}},
    }}}});
    let plan = pass(&snapshot);
    let sent = deployment(&plan);
    let defaults = snapshot.children.deployments[0].object.spec.clone().unwrap().template;
    store(&mut snapshot, &sent);
    let live = &mut snapshot.children.deployments[0].object;
    live.metadata.managed_fields =
        serde_json::from_value(json!([{"manager": "weir", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": fields}])).unwrap();
    let template = &mut live.spec.as_mut().unwrap().template;
    *template = defaults;
    restart(template);
    let env = template.spec.as_mut().unwrap().containers[0].env.get_or_insert_default();
    env.push(serde_json::from_value(json!({"name": "INJECTED", "value": "by a webhook"})).unwrap());
    snapshot
}

fn restart(template: &mut PodTemplateSpec) {
    let meta = template.metadata.get_or_insert_default();
    meta.annotations.get_or_insert_default().insert("kubectl.kubernetes.io/restartedAt".into(), "2026-01-01T00:00:00Z".into());
}

fn of_deployment(snapshot: &Snapshot) -> Vec<(&'static str, ChildKind)> {
    steps(&pass(snapshot)).into_iter().filter(|(_, kind)| *kind == ChildKind::Deployment).collect()
}

fn json_of(template: &PodTemplateSpec) -> Value {
    serde_json::to_value(template).unwrap()
}

#[test]
fn a_restart_by_hand_is_neither_undone_nor_claimed() {
    let mut snapshot = ours();
    assert_eq!(of_deployment(&snapshot), [], "nothing of ours has changed");
    snapshot.data_plane.spec.deployment.as_mut().unwrap().replicas = Some(4);
    let scaled = deployment(&pass(&snapshot));
    assert_eq!(scaled.spec.as_ref().unwrap().replicas, Some(4));
    let live = snapshot.children.deployments[0].object.clone();
    assert_eq!(annotation(&scaled, TEMPLATE_HASH), annotation(&live, TEMPLATE_HASH), "the pods do not roll");
    assert_eq!(json_of(&scaled.spec.unwrap().template).pointer("/metadata/annotations"), None);
}

#[test]
fn a_held_template_claims_only_what_is_ours() {
    let mut snapshot = ours();
    let proxy = |s: &mut Snapshot, image: &str| {
        let template = s.data_plane.spec.deployment.as_mut().unwrap().pod_template_spec.as_mut().unwrap();
        template.spec.as_mut().unwrap().containers[0].image = Some(image.into());
    };
    proxy(&mut snapshot, "kong:2.8");
    let held = deployment(&pass(&snapshot));
    let template = json_of(&held.spec.unwrap().template);
    let secret = template.pointer("/spec/volumes/0/secret/secretName").cloned();
    assert_eq!(
        template,
        json!({
            "metadata": {"labels": {"app": "gw"}},
            "spec": {
                "dnsPolicy": "ClusterFirst",
                "containers": [{"name": "proxy", "image": "kong:3.9", "env": [{"name": "KONG_DATABASE", "value": "off"}]}],
                "volumes": [{"name": "cluster-certificate", "secret": {"secretName": secret}}],
            },
        })
    );

    // Without the record of who owns what the whole template is all that is known.
    snapshot.children.deployments[0].object.metadata.managed_fields = None;
    let whole = deployment(&pass(&snapshot));
    assert_eq!(whole.spec.unwrap().template, snapshot.children.deployments[0].object.spec.clone().unwrap().template);
}
