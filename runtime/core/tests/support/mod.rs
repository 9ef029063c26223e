//! What the tests of the core share: an object, the pass, and what Kong's operator would have made of the same object.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::{collections::BTreeMap, sync::Arc};

use futures::executor::block_on;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service};
use serde_json::{Value, json};
use weir_api::{condition::Condition, dataplane::DataPlaneStatus};
use weir_core::{
    dataplane::{
        self, Snapshot,
        snapshot::{Child, Children, Lookup, Operator, SecretFacts},
    },
    decisions::Sealing,
    plan::{Change, ChildKind, Object, Plan},
    policy::{BoxFuture, Identity, Policies, Policy, PolicyError, Slot, object_hook::Hooks},
};

pub(crate) const UID: &str = "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d";
pub(crate) const ADMIN: &str = "dataplane-admin-gw-x1";
pub(crate) const SECRET: &str = "dataplane-gw-s1";

/// Fails whatever it is asked: these objects ask nothing.
struct Silent(Identity);

impl<S: Slot> Policy<S> for Silent {
    fn identity(&self) -> &Identity {
        &self.0
    }

    fn evaluate<'a>(&'a self, _: &'a S::Input) -> BoxFuture<'a, Result<S::Answer, PolicyError>> {
        Box::pin(std::future::ready(Err(PolicyError::Unavailable("nobody is asked here".into()))))
    }
}

pub(crate) fn pass(snapshot: &Snapshot) -> Plan<DataPlaneStatus> {
    pass_with(snapshot, Hooks::default())
}

pub(crate) fn pass_with(snapshot: &Snapshot, object_hooks: Hooks) -> Plan<DataPlaneStatus> {
    let silent = || Silent(Identity { source: "silent".into(), digest: "d".into(), settings_digest: "s".into() });
    let policies = Policies {
        konnect_env: Arc::new(silent()).into(),
        conflict_resolution: Arc::new(silent()).into(),
        plugin_packaging: Arc::new(silent()).into(),
        object_hooks,
    };
    block_on(dataplane::reconcile(snapshot, &policies, &Sealing::Open))
}

/// An object without children.
pub(crate) fn snapshot() -> Snapshot {
    with_spec(&json!({"deployment": {"podTemplateSpec": {"spec": {"containers": [{"name": "proxy", "image": "kong:3.9"}]}}}}))
}

pub(crate) fn with_spec(spec: &Value) -> Snapshot {
    let data_plane = serde_json::from_value(json!({
        "apiVersion": "gateway-operator.konghq.com/v1beta1", "kind": "DataPlane",
        "metadata": {"name": "gw", "namespace": "ns", "uid": UID, "generation": 3}, "spec": spec,
    }));
    Snapshot {
        now: "2026-01-01T00:00:00Z".parse().unwrap(),
        operator: Operator::with_ca("sha256:ca".into()),
        data_plane: data_plane.unwrap(),
        namespace_labels: BTreeMap::new(),
        extension: Lookup::Missing,
        namesake: false,
        secrets: BTreeMap::new(),
        plugins: Vec::new(),
        children: Children::default(),
    }
}

/// Sets an annotation on the DataPlane.
pub(crate) fn annotate(snapshot: &mut Snapshot, key: &str, value: &str) {
    snapshot.data_plane.metadata.annotations.get_or_insert_default().insert(key.into(), value.into());
}

/// The children that Kong's operator would have made: random names, its finalizer, no annotation of ours, the server's defaults.
pub(crate) fn kongs_children(snapshot: &mut Snapshot) {
    let mut fresh = snapshot.clone();
    fresh.children = Children { secrets: vec![kongs_secret("2035-01-01T00:00:00Z")], ..Children::default() };
    let objects = applied(&pass(&fresh));
    let mut children = fresh.children;
    for object in &objects {
        match object {
            Object::Service(service) => children.services.push(kongs_service(service)),
            Object::Deployment(deployment) => children.deployments.push(kongs_deployment(deployment)),
            Object::HorizontalPodAutoscaler(_) | Object::PodDisruptionBudget(_) | Object::Certificate(_) | Object::ConfigMap(_) => {}
        }
    }
    snapshot.children = children;
}

pub(crate) fn kongs_secret(ends: &str) -> SecretFacts {
    SecretFacts {
        metadata: serde_json::from_value(json!({
            "name": SECRET, "namespace": "ns", "uid": "uid-secret", "finalizers": [weir_api::keys::WAIT_FOR_OWNER],
            "labels": {"gateway-operator.konghq.com/service-secret": ADMIN}, "annotations": {"konghq.com/cert-expires-at": ends},
        }))
        .unwrap(),
        type_: "kubernetes.io/tls".into(),
        keys: BTreeMap::new(),
        unusable: None,
        ends: None,
    }
}

fn kongs_meta(json: &mut Value, name: &str) {
    json["metadata"]["name"] = json!(name);
    json["metadata"]["uid"] = json!(format!("uid-{name}"));
    json["metadata"]["finalizers"] = json!([weir_api::keys::WAIT_FOR_OWNER]);
    json["metadata"].as_object_mut().unwrap().remove("annotations");
}

fn kongs_service(service: &Service) -> Child<Service> {
    let mut json = serde_json::to_value(service).unwrap();
    let admin = service.metadata.name.as_deref().unwrap().contains("admin");
    kongs_meta(&mut json, if admin { ADMIN } else { "dataplane-ingress-gw-y2" });
    json["spec"]["sessionAffinity"] = json!("None");
    Child { object: serde_json::from_value(json).unwrap(), answered: None }
}

fn kongs_deployment(deployment: &Deployment) -> Child<Deployment> {
    let mut json = serde_json::to_value(deployment).unwrap();
    kongs_meta(&mut json, "dataplane-gw-z3");
    json["metadata"]["managedFields"] = json!([{
        "manager": "manager", "operation": "Update",
        "fieldsV1": {"f:metadata": {"f:ownerReferences": {}}, "f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": {}}}}},
    }]);
    json["status"] = json!({"replicas": 1, "readyReplicas": 1, "availableReplicas": 1});
    let pod = &mut json["spec"]["template"]["spec"];
    pod["securityContext"] = json!({});
    pod["volumes"][0]["secret"]["secretName"] = json!(SECRET);
    pod["volumes"][0]["secret"]["defaultMode"] = json!(420);
    let proxy = &mut pod["containers"][0];
    proxy["imagePullPolicy"] = json!("IfNotPresent");
    proxy["terminationMessagePath"] = json!("/dev/termination-log");
    proxy["terminationMessagePolicy"] = json!("File");
    proxy["resources"]["limits"]["cpu"] = json!("2");
    Child { object: serde_json::from_value(json).unwrap(), answered: None }
}

/// Somebody put a variable into the live pods that we would not render.
pub(crate) fn differ(snapshot: &mut Snapshot) {
    let template = &mut snapshot.children.deployments[0].object.spec.as_mut().unwrap().template;
    let env = template.spec.as_mut().unwrap().containers[0].env.get_or_insert_default();
    env.push(serde_json::from_value(json!({"name": "Z", "value": "by hand"})).unwrap());
}

pub(crate) fn applied(plan: &Plan<DataPlaneStatus>) -> Vec<Object> {
    plan.changes.iter().filter_map(|c| if let Change::Apply { object, .. } = c { Some(object.clone()) } else { None }).collect()
}

pub(crate) fn deployment(plan: &Plan<DataPlaneStatus>) -> Deployment {
    let found = applied(plan).into_iter().find_map(|o| if let Object::Deployment(d) = o { Some(*d) } else { None });
    found.expect("a Deployment is applied")
}

/// What the server has once this Deployment is applied and the other fields stay.
pub(crate) fn store(snapshot: &mut Snapshot, applied: &Deployment) {
    let live = &mut snapshot.children.deployments[0].object;
    live.metadata.annotations.clone_from(&applied.metadata.annotations);
    live.spec.as_mut().unwrap().template.clone_from(&applied.spec.as_ref().unwrap().template);
}

pub(crate) fn annotation(deployment: &Deployment, key: &str) -> Option<String> {
    deployment.metadata.annotations.as_ref()?.get(key).cloned()
}

pub(crate) fn condition(plan: &Plan<DataPlaneStatus>, type_: &str) -> Option<Condition> {
    plan.status.as_ref().unwrap().conditions.iter().flatten().find(|c| c.type_ == type_).cloned()
}

/// Changes in short: what happens to which kind.
pub(crate) fn steps(plan: &Plan<DataPlaneStatus>) -> Vec<(&'static str, ChildKind)> {
    plan.changes
        .iter()
        .filter_map(|change| match change {
            Change::TakeOver(target) => Some(("take over", target.kind)),
            Change::Reclaim(target) => Some(("reclaim", target.kind)),
            Change::Apply { object, first: true } => Some(("create", object.kind())),
            Change::Apply { object, first: false } => Some(("update", object.kind())),
            Change::MintCertificate(_) => Some(("mint", ChildKind::Secret)),
            Change::Delete(target) => Some(("delete", target.kind)),
            Change::ProvideContent(_) => Some(("provide", ChildKind::ConfigMap)),
            Change::ReleaseContent { .. } => Some(("release", ChildKind::ConfigMap)),
            Change::SetFinalizer { .. } | Change::SetAnnotation { .. } | Change::RemoveAnnotation { .. } => None,
        })
        .collect()
}
