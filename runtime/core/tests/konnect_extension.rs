//! The token-free KonnectExtension: who uses it, can it be used, may it go?
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may stop at the first thing that is wrong")]

use std::collections::BTreeSet;

use serde_json::json;
use weir_api::{condition::Condition, keys, konnect_extension::KonnectExtensionStatus};
use weir_core::{
    dataplane::snapshot::{Lookup, SecretFacts},
    konnect_extension::{Snapshot, UserRef, reconcile},
    plan::{Change, Plan},
};

fn snapshot(users: &[(&str, &str)]) -> Snapshot {
    let extension = json!({
        "apiVersion": "gateway-operator.konghq.com/v1alpha1", "kind": "KonnectExtension",
        "metadata": {"name": "k", "namespace": "ns", "generation": 2},
        "spec": {
            "controlPlaneRef": {"type": "konnectID", "konnectID": "abc"},
            "konnectControlPlaneAPIAuthConfiguration": {"clusterCertificateSecretRef": {"name": "tls"}},
        },
    });
    Snapshot {
        now: "2026-01-01T00:00:00Z".parse().unwrap(),
        extension: serde_json::from_value(extension).unwrap(),
        secret: secret(&["tls.crt", "tls.key"]),
        users: users.iter().map(|(namespace, name)| UserRef { namespace: (*namespace).into(), name: (*name).into() }).collect(),
    }
}

fn secret(keys: &[&str]) -> Lookup<SecretFacts> {
    let keys = keys.iter().map(|key| ((*key).to_owned(), "sha256:x".to_owned())).collect();
    Lookup::Found(SecretFacts { keys, ..SecretFacts::default() })
}

fn condition(plan: &Plan<KonnectExtensionStatus>, type_: &str) -> Condition {
    plan.status.as_ref().unwrap().conditions.iter().flatten().find(|c| c.type_ == type_).unwrap().clone()
}

fn finalizer(present: bool) -> Change {
    Change::SetFinalizer { key: keys::EXTENSION_IN_USE.into(), present }
}

fn with_finalizer(mut snapshot: Snapshot) -> Snapshot {
    snapshot.extension.metadata.finalizers = Some(vec![keys::EXTENSION_IN_USE.into()]);
    snapshot
}

fn deleting(mut snapshot: Snapshot) -> Snapshot {
    snapshot.extension.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    snapshot
}

#[test]
fn who_uses_it_is_listed_and_keeps_it() {
    let plan = reconcile(&snapshot(&[("other", "a"), ("ns", "b")]));
    assert_eq!(plan.changes, [finalizer(true)]);
    let refs = serde_json::to_value(plan.status.as_ref().unwrap().data_plane_refs.as_ref().unwrap()).unwrap();
    assert_eq!(refs, json!([{"name": "b"}, {"name": "a", "namespace": "other"}]));
    let in_use = condition(&plan, "InUse");
    assert_eq!((in_use.status.as_str(), in_use.reason.as_str(), in_use.message.as_str()), ("True", "InUse", "used by b, other/a"));
    assert_eq!(in_use.observed_generation, Some(2));
    assert_eq!(condition(&plan, "Ready").status, "True");
    assert_eq!(plan.events, []);
}

#[test]
fn the_finalizer_follows_the_users() {
    assert_eq!(reconcile(&with_finalizer(snapshot(&[("ns", "a")]))).changes, []);
    assert_eq!(reconcile(&with_finalizer(snapshot(&[]))).changes, [finalizer(false)]);
    assert_eq!(reconcile(&snapshot(&[])).changes, []);
    let idle = condition(&reconcile(&snapshot(&[])), "InUse");
    assert_eq!((idle.status.as_str(), idle.reason.as_str()), ("False", "NotInUse"));
}

#[test]
fn deletion_waits_for_its_users_and_says_so() {
    let waits = reconcile(&deleting(with_finalizer(snapshot(&[("ns", "a")]))));
    assert_eq!(waits.changes, []);
    assert!(condition(&waits, "InUse").message.starts_with("deletion waits for: a"));
    assert_eq!(reconcile(&deleting(with_finalizer(snapshot(&[])))).changes, [finalizer(false)]);
    assert_eq!(reconcile(&deleting(snapshot(&[("ns", "a")]))).changes, [], "no finalizer can be added any more");
}

#[test]
fn many_users_are_counted() {
    let mut many = snapshot(&[]);
    many.users = (0..25).map(|i| UserRef { namespace: "ns".into(), name: format!("gw{i:02}") }).collect::<BTreeSet<_>>();
    let plan = reconcile(&many);
    let message = condition(&plan, "InUse").message;
    assert!(message.ends_with("gw09 and 15 more"), "{message}");
    assert_eq!(plan.status.unwrap().data_plane_refs.unwrap().len(), 25);
}

#[test]
fn what_is_missing_is_named() {
    let with = |secret: Lookup<SecretFacts>| {
        let mut snapshot = snapshot(&[]);
        snapshot.secret = secret;
        let plan = reconcile(&snapshot);
        assert_eq!(plan.events.len(), 1);
        let ready = condition(&plan, "Ready");
        assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("False", "InvalidSecret"));
        ready.message
    };
    assert!(with(Lookup::Missing).contains("\"tls\" of KonnectExtension \"k\" does not exist: create it"));
    assert!(with(secret(&["tls.crt"])).contains("key tls.key is missing (found: tls.crt)"));
    assert!(with(Lookup::Unknown).contains("\"tls\""));
    let mut broken = snapshot(&[]);
    broken.extension.spec.control_plane_ref.konnect_id = None;
    let ready = condition(&reconcile(&broken), "Ready");
    assert_eq!(ready.reason, "InvalidExtension");
    assert!(ready.message.contains("spec.controlPlaneRef.konnectID"));
}

#[test]
fn what_has_not_changed_is_not_written() {
    let mut snapshot = snapshot(&[("ns", "a")]);
    let first = reconcile(&snapshot);
    assert!(first.status_changed);
    snapshot.extension.status = first.status;
    snapshot.now = "2026-02-01T00:00:00Z".parse().unwrap();
    assert!(!reconcile(&snapshot).status_changed, "time alone changes nothing");
    snapshot.secret = Lookup::Missing;
    let lost = reconcile(&snapshot);
    assert_eq!(condition(&lost, "Ready").last_transition_time.0.to_string(), "2026-02-01T00:00:00Z");
    assert_eq!(condition(&lost, "InUse").last_transition_time.0.to_string(), "2026-01-01T00:00:00Z");
}

#[test]
fn looking_again_is_answered() {
    let mut snapshot = snapshot(&[]);
    snapshot.extension.metadata.annotations = Some([(keys::CHECK_AT.to_owned(), "1".to_owned())].into());
    assert_eq!(reconcile(&snapshot).changes, [Change::SetAnnotation { key: keys::CHECKED_AT.into(), value: "1".into() }]);
}
