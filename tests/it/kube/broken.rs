//! What somebody who tried to break the operator found: each was wrong once.

use std::time::Duration;

use libtest_mimic::Trial;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, KeyUsagePurpose};
use serde_json::{Value, json};

use super::{
    api::{self, DATA_PLANE, DEPLOYMENT, HPA, NAMESPACE, REPLICA_SET, SECRET, SERVICE},
    labs::{Lab, lab, shared},
    ns::{COLLECTED, CONVERGED, Ns, READY, SHOWN},
    shape::{gateway, gateway_with, holds, is_owned_by, name_of, same, uid},
};

pub(crate) fn tests() -> Vec<Trial> {
    vec![
        shared("broken a stranger that says the same as we", same_as_we),
        shared("broken an owner reference is removed", disowned),
        shared("broken a lookup label is changed", relabelled),
        shared("broken a paused Deployment is said", paused),
        lab("broken-ending", ending),
        lab("broken-leaving", leaving),
        lab("broken-useless", useless),
    ]
}

/// Equal values are no conflict to a server-side apply; the stranger's object must stay the stranger's.
async fn same_as_we(ns: Ns) {
    let spec = json!({
        "minReplicas": 2, "maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "dataplane-gw"}
    });
    let stranger = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "gw"}, "spec": spec});
    let before = ns.post(&stranger).await;
    let scaling = json!({"spec": {"deployment": {"scaling": {"horizontal": {"minReplicas": 2, "maxReplicas": 3}}}}});
    ns.apply(&gateway_with("gw", scaling)).await;
    let owner = uid(&ns.ready("gw", READY).await);
    ns.eventually(CONVERGED, "an autoscaler of another name", async || {
        let all = ns.list(HPA, "app=gw").await?;
        holds(all.iter().any(|h| is_owned_by(h, &owner)), || format!("{:?}", all.iter().map(name_of).collect::<Vec<_>>()))
    })
    .await;
    let after = ns.get(HPA, "gw").await.unwrap();
    assert_eq!((&after["metadata"]["ownerReferences"], &after["metadata"]["labels"]), (&Value::Null, &before["metadata"]["labels"]));
}

async fn disowned(ns: Ns) {
    ns.apply(&gateway("gw")).await;
    let owner = uid(&ns.ready("gw", READY).await);
    for (kind, name) in [(DEPLOYMENT, "dataplane-gw"), (SERVICE, "dataplane-ingress-gw"), (SERVICE, "dataplane-admin-gw")] {
        let before = uid(&ns.get(kind, name).await.unwrap());
        ns.edit(kind, name, json!({"metadata": {"ownerReferences": null}})).await;
        ns.eventually(CONVERGED, "the owner is back", async || {
            let now = ns.get(kind, name).await?;
            same("UID", uid(&now), before.clone())?;
            holds(is_owned_by(&now, &owner), || format!("{:#}", now["metadata"]["ownerReferences"]))
        })
        .await;
    }
    same("Deployments", ns.list(DEPLOYMENT, "app=gw").await.unwrap().len(), 1).unwrap();
    same("Services", ns.list(SERVICE, "app=gw").await.unwrap().len(), 2).unwrap();
    same("ReplicaSets", ns.list(REPLICA_SET, "app=gw").await.unwrap().len(), 1).unwrap();
}

async fn relabelled(ns: Ns) {
    ns.apply(&gateway("gw")).await;
    ns.ready("gw", READY).await;
    for (kind, name, label, value) in [
        (SERVICE, "dataplane-admin-gw", "gateway-operator.konghq.com/dataplane-service-type", "admin"),
        (DEPLOYMENT, "dataplane-gw", "gateway-operator.konghq.com/managed-by", "dataplane"),
    ] {
        ns.edit(kind, name, json!({"metadata": {"labels": {label: "foo"}}})).await;
        ns.eventually(CONVERGED, "the label is back", async || {
            let now = ns.get(kind, name).await?;
            holds(now["metadata"]["labels"][label] == value, || format!("{:#}", now["metadata"]["labels"]))
        })
        .await;
    }
    ns.ready("gw", READY).await;
}

async fn paused(ns: Ns) {
    ns.apply(&gateway("gw")).await;
    ns.ready("gw", READY).await;
    ns.edit(DEPLOYMENT, "dataplane-gw", json!({"spec": {"paused": true}})).await;
    ns.says(DATA_PLANE, "gw", ["Ready", "False", "WaitingToBecomeReady"], &["dataplane-gw", "paused", "rollout resume"], CONVERGED).await;
    ns.edit(DEPLOYMENT, "dataplane-gw", json!({"spec": {"paused": null}})).await;
    ns.ready("gw", READY).await;
}

/// A CA that ends at this time.
fn authority(days: i64) -> Value {
    let end = jiff::Timestamp::now().as_second() + days * 86_400;
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let date = jiff::Timestamp::from_second(end).unwrap().to_zoned(jiff::tz::TimeZone::UTC).date();
    params.not_after = rcgen::date_time_ymd(date.year().into(), date.month().unsigned_abs(), date.day().unsigned_abs());
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kong-operator-ca"}, "type": "kubernetes.io/tls",
        "stringData": {"tls.crt": params.self_signed(&key).unwrap().pem(), "tls.key": key.serialize_pem()}
    })
}

/// The CA ends within the margin: no certificate of it can be better than the one there is, so none is made again and again.
async fn ending(lab: Lab) {
    let (ns, system) = (&lab.ns, lab.system());
    system.apply(&authority(3)).await;
    let operator = lab.operator("weir", &[]);
    ns.apply(&gateway("gw")).await;
    ns.ready("gw", READY).await;
    ns.settled().await;
    ns.always(Duration::from_secs(3), "one certificate, one ReplicaSet", async || {
        same("Secrets", ns.list(SECRET, "gateway-operator.konghq.com/service-secret").await?.len(), 1)?;
        same("ReplicaSets", ns.list(REPLICA_SET, "app=gw").await?.len(), 1)
    })
    .await;
    drop(operator);
}

/// The CA cannot be used: new DataPlanes say so, running ones go on.
async fn useless(lab: Lab) {
    let (ns, system) = (&lab.ns, lab.system());
    let mut operator = lab.operator("weir", &[]);
    ns.apply(&gateway("running")).await;
    ns.ready("running", READY).await;
    operator.stop(Duration::from_secs(20));
    let good = system.get(SECRET, "kong-operator-ca").await.unwrap()["data"].clone();
    system.edit(SECRET, "kong-operator-ca", json!({"stringData": {"tls.crt": "garbage"}})).await;
    let operator = lab.operator("weir", &[]);
    operator.wait_leading().await;
    ns.apply(&gateway("new")).await;
    ns.says(DATA_PLANE, "new", ["Ready", "False", "UnableToProvision"], &["kong-operator-ca", "tls.crt"], SHOWN.max(CONVERGED)).await;
    ns.edit(DATA_PLANE, "running", json!({"spec": {"deployment": {"replicas": 3}}})).await;
    ns.eventually(CONVERGED, "the running one scales", async || {
        same("replicas", ns.get(DEPLOYMENT, "dataplane-running").await?["spec"]["replicas"].clone(), json!(3))
    })
    .await;
    same("ReplicaSets", ns.list(REPLICA_SET, "app=running").await.unwrap().len(), 1).unwrap();
    system.edit(SECRET, "kong-operator-ca", json!({"data": good})).await;
    ns.ready("new", READY).await;
    drop(operator);
}

/// A namespace goes with all that is in it, in any order. Children that cannot be made again in it are nobody's fault and nobody's work.
async fn leaving(lab: Lab) {
    const COUNT: usize = 20;
    let ns = &lab.ns;
    let operator = lab.operator("weir", &[]);
    for number in 0..COUNT {
        ns.apply(&gateway(&format!("gw-{number}"))).await;
    }
    ns.all_ready(COUNT, READY).await;
    let path = format!("{}/{}", NAMESPACE.path(""), ns.name);
    api::call(&ns.client, "DELETE", &path, api::JSON, &Value::Null).await.map_err(String::from).unwrap();
    ns.eventually(COLLECTED, "all of it is gone", async || {
        for kind in [DATA_PLANE, DEPLOYMENT, SERVICE, SECRET] {
            let left = ns.list(kind, "").await?.len();
            holds(left == 0, || format!("{left} of {}", kind.kind))?;
        }
        Ok(())
    })
    .await;
    let log = operator.log();
    let told: Vec<&str> = log.lines().filter(|line| line.contains("being terminated")).collect();
    assert!(told.is_empty(), "{} lines about a namespace that goes:\n{}", told.len(), told.join("\n"));
    let forbidden = operator.metrics().await.sum("weir_reconcile_errors_total", &[("kind", "DataPlane"), ("reason", "Forbidden")]);
    assert!(forbidden < 0.5, "{forbidden} errors are counted");
}
