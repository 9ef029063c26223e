//! KonnectExtension: what it says about itself, and that it outlives its users.

use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{
    api::{DATA_PLANE, DEPLOYMENT, EXTENSION, SECRET},
    labs::shared,
    ns::{COLLECTED, CONVERGED, Ns, READY, SHOWN},
    shape::{extended, extension, gateway_with, holds, merge, same, tls_secret, tls_secret_ending},
};

pub(crate) fn tests() -> Vec<Trial> {
    vec![
        shared("extension names its users", users),
        shared("extension ready or why not", ready),
        shared("extension deletion waits for its users", deletion),
        shared("extension without users goes at once", unused),
        shared("extension a new certificate rolls the pods once", certificate),
        shared("extension of a held gateway is named by its owner", named),
        shared("extension a certificate is held until it nears its end", held),
    ]
}

const IN_USE: &str = "gateway-operator.konghq.com/extension-in-use";

fn names(object: &Value) -> Vec<String> {
    let refs = object["status"]["dataPlaneRefs"].as_array().cloned().unwrap_or_default();
    refs.iter().map(|r| r["name"].as_str().unwrap_or_default().to_owned()).collect()
}

fn finalizers(object: &Value) -> Vec<String> {
    let list = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    list.iter().map(|f| f.as_str().unwrap_or_default().to_owned()).collect()
}

async fn users_are(ns: &Ns, wanted: &[&str]) {
    ns.eventually(CONVERGED, &format!("users {wanted:?}"), async || {
        let object = ns.get(EXTENSION, "hybrid").await?;
        same("dataPlaneRefs", names(&object), wanted.iter().map(|n| (*n).to_owned()).collect())?;
        let held = finalizers(&object).iter().any(|f| f == IN_USE);
        same("finalizer", held, !wanted.is_empty())
    })
    .await;
}

async fn users(ns: Ns) {
    ns.apply(&tls_secret("client")).await;
    ns.apply(&extension("hybrid", "client")).await;
    ns.says(EXTENSION, "hybrid", ["Ready", "True", "Ready"], &[], CONVERGED).await;
    ns.says(EXTENSION, "hybrid", ["InUse", "False", "NotInUse"], &[], CONVERGED).await;
    users_are(&ns, &[]).await;
    ns.apply(&gateway_with("b", extended("hybrid"))).await;
    ns.apply(&gateway_with("a", extended("hybrid"))).await;
    users_are(&ns, &["a", "b"]).await;
    ns.says(EXTENSION, "hybrid", ["InUse", "True", "InUse"], &["a", "b"], CONVERGED).await;
    ns.edit(DATA_PLANE, "a", json!({"spec": {"extensions": null}})).await;
    users_are(&ns, &["b"]).await;
    ns.delete(DATA_PLANE, "b").await;
    users_are(&ns, &[]).await;
    ns.says(EXTENSION, "hybrid", ["InUse", "False", "NotInUse"], &[], CONVERGED).await;
}

async fn ready(ns: Ns) {
    ns.apply(&extension("hybrid", "client")).await;
    ns.says(EXTENSION, "hybrid", ["Ready", "False", "InvalidSecret"], &["Secret \"client\"", "does not exist", "tls.crt"], SHOWN).await;
    let half = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "client"}, "stringData": {"tls.key": "a"}});
    ns.apply(&half).await;
    ns.says(EXTENSION, "hybrid", ["Ready", "False", "InvalidSecret"], &["tls.crt is missing", "found: tls.key"], SHOWN).await;
    ns.delete(SECRET, "client").await;
    ns.apply(&tls_secret("client")).await;
    ns.says(EXTENSION, "hybrid", ["Ready", "True", "Ready"], &[], SHOWN).await;
    ns.edit(EXTENSION, "hybrid", json!({"spec": {"clusterDataPlaneLabels": {"a:b": "c"}}})).await;
    ns.says(EXTENSION, "hybrid", ["Ready", "False", "InvalidExtension"], &["spec.clusterDataPlaneLabels", "a:b"], SHOWN).await;
    ns.edit(EXTENSION, "hybrid", json!({"spec": {"clusterDataPlaneLabels": null}})).await;
    ns.says(EXTENSION, "hybrid", ["Ready", "True", "Ready"], &[], SHOWN).await;
}

async fn deletion(ns: Ns) {
    ns.apply(&tls_secret("client")).await;
    ns.apply(&extension("hybrid", "client")).await;
    ns.apply(&gateway_with("gw", extended("hybrid"))).await;
    ns.ready("gw", READY).await;
    users_are(&ns, &["gw"]).await;
    ns.delete(EXTENSION, "hybrid").await;
    ns.eventually(SHOWN, "it says whom it waits for", async || {
        let object = ns.get(EXTENSION, "hybrid").await?;
        let text = object["status"]["conditions"].to_string();
        holds(text.contains("deletion waits") && text.contains("gw"), || text.clone())
    })
    .await;
    ns.always(Duration::from_secs(2), "it stays while it is used", async || ns.get(EXTENSION, "hybrid").await.map(drop)).await;
    let deployment = ns.get(DEPLOYMENT, "dataplane-gw").await.unwrap();
    assert!(super::shape::env(&deployment).contains_key("KONG_CLUSTER_CONTROL_PLANE"), "the gateway goes on");
    ns.edit(DATA_PLANE, "gw", json!({"spec": {"extensions": null}})).await;
    ns.eventually(CONVERGED, "it is gone", async || holds(ns.find(EXTENSION, "hybrid").await?.is_none(), || "it is there".into())).await;
    ns.ready("gw", READY).await;
}

async fn unused(ns: Ns) {
    ns.apply(&extension("hybrid", "client")).await;
    ns.says(EXTENSION, "hybrid", ["Ready", "False", "InvalidSecret"], &[], CONVERGED).await;
    ns.delete(EXTENSION, "hybrid").await;
    ns.eventually(SHOWN, "it is gone", async || holds(ns.find(EXTENSION, "hybrid").await?.is_none(), || "it is there".into())).await;
    // Both at once: user and extension.
    ns.apply(&tls_secret("client")).await;
    ns.apply(&extension("hybrid", "client")).await;
    ns.apply(&gateway_with("gw", extended("hybrid"))).await;
    ns.ready("gw", READY).await;
    ns.delete(EXTENSION, "hybrid").await;
    ns.delete(DATA_PLANE, "gw").await;
    ns.eventually(CONVERGED, "both are gone", async || {
        holds(ns.find(EXTENSION, "hybrid").await?.is_none() && ns.find(DATA_PLANE, "gw").await?.is_none(), || "one is there".into())
    })
    .await;
}

/// A hybrid gateway whose owner holds, with a client certificate that ends in so many days.
async fn holding(ns: &Ns, days: i64) {
    ns.apply(&tls_secret_ending("client", days)).await;
    ns.apply(&extension("hybrid", "client")).await;
    let mut gateway = gateway_with("gw", extended("hybrid"));
    merge(&mut gateway, json!({"metadata": {"annotations": {"weir.dev/rollout": "Manual"}}}));
    ns.apply(&gateway).await;
    ns.ready("gw", READY).await;
    ns.says(DATA_PLANE, "gw", ["RolloutHeld", "False", "NothingHeld"], &[], CONVERGED).await;
}

fn digest(deployment: &Value) -> Value {
    deployment["spec"]["template"]["metadata"]["annotations"]["weir.dev/konnect-certificate-digest"].clone()
}

/// Another extension in the spec rolls at once with its certificate; what the extension says later waits.
async fn named(ns: Ns) {
    holding(&ns, 300).await;
    let before = digest(&ns.get(DEPLOYMENT, "dataplane-gw").await.unwrap());
    ns.apply(&tls_secret("client-2")).await;
    let mut other = extension("hybrid-2", "client-2");
    merge(&mut other, json!({"spec": {"controlPlaneRegion": "us"}}));
    ns.apply(&other).await;
    ns.says(EXTENSION, "hybrid-2", ["Ready", "True", "Ready"], &[], CONVERGED).await;
    ns.edit(DATA_PLANE, "gw", extended("hybrid-2")).await;
    ns.eventually(CONVERGED, "the other control plane, and its certificate", async || {
        let made = ns.get(DEPLOYMENT, "dataplane-gw").await?;
        let endpoint = super::shape::env(&made).get("KONG_CLUSTER_CONTROL_PLANE").cloned().unwrap_or_default();
        holds(endpoint.contains(".us.") && digest(&made) != before, || format!("{endpoint} {}", digest(&made)))
    })
    .await;
    ns.says(DATA_PLANE, "gw", ["RolloutHeld", "False", "NothingHeld"], &[], CONVERGED).await;
    ns.edit(EXTENSION, "hybrid-2", json!({"spec": {"controlPlaneRegion": "eu"}})).await;
    ns.says(DATA_PLANE, "gw", ["RolloutHeld", "True", "ForeignChange"], &["env KONG_CLUSTER_CONTROL_PLANE changed"], CONVERGED).await;
    ns.edit(DATA_PLANE, "gw", json!({"spec": {"extensions": null}})).await;
    ns.eventually(CONVERGED, "no control plane", async || {
        holds(digest(&ns.get(DEPLOYMENT, "dataplane-gw").await?).is_null(), || "it is there".into())
    })
    .await;
}

async fn held(ns: Ns) {
    holding(&ns, 30).await;
    let before = ns.get(DEPLOYMENT, "dataplane-gw").await.unwrap();
    assert!(before["metadata"]["annotations"]["weir.dev/konnect-certificate-ends"].is_string(), "{:#}", before["metadata"]);
    ns.edit(SECRET, "client", json!({"stringData": tls_secret_ending("client", 300)["stringData"]})).await;
    let words = ["annotation weir.dev/konnect-certificate-digest changed"];
    ns.says(DATA_PLANE, "gw", ["RolloutHeld", "True", "ForeignChange"], &words, CONVERGED).await;
    ns.always(Duration::from_secs(2), "the pods stay", async || {
        same("digest", digest(&ns.get(DEPLOYMENT, "dataplane-gw").await?), digest(&before))
    })
    .await;
    // The pods of another one run with a certificate that ends in three days.
    ns.delete(DATA_PLANE, "gw").await;
    ns.eventually(COLLECTED, "the Deployment is gone", async || {
        holds(ns.find(DEPLOYMENT, "dataplane-gw").await?.is_none(), || "it is there".into())
    })
    .await;
    holding(&ns, 3).await;
    let before = digest(&ns.get(DEPLOYMENT, "dataplane-gw").await.unwrap());
    ns.edit(SECRET, "client", json!({"stringData": tls_secret_ending("client", 300)["stringData"]})).await;
    ns.eventually(CONVERGED, "it rolls alone", async || {
        let now = digest(&ns.get(DEPLOYMENT, "dataplane-gw").await?);
        holds(now.is_string() && now != before, || format!("{now}"))
    })
    .await;
    ns.says(DATA_PLANE, "gw", ["RolloutHeld", "False", "NothingHeld"], &[], CONVERGED).await;
}

async fn certificate(ns: Ns) {
    ns.apply(&tls_secret("client")).await;
    ns.apply(&extension("hybrid", "client")).await;
    ns.apply(&gateway_with("gw", extended("hybrid"))).await;
    ns.ready("gw", READY).await;
    let before = ns.get(DEPLOYMENT, "dataplane-gw").await.unwrap();
    assert!(digest(&before).is_string(), "{:#}", before["spec"]["template"]["metadata"]);
    // A bad one rolls nothing; a good one rolls once.
    ns.edit(SECRET, "client", json!({"stringData": {"tls.crt": "garbage"}})).await;
    ns.says(DATA_PLANE, "gw", ["KonnectExtensionApplied", "False", "InvalidSecret"], &["client", "no certificate"], CONVERGED).await;
    ns.edit(SECRET, "client", json!({"stringData": {"tls.crt": tls_secret("client")["stringData"]["tls.crt"]}})).await;
    ns.says(DATA_PLANE, "gw", ["KonnectExtensionApplied", "False", "InvalidSecret"], &["client", "not the key"], CONVERGED).await;
    assert_eq!(digest(&ns.get(DEPLOYMENT, "dataplane-gw").await.unwrap()), digest(&before));
    ns.edit(SECRET, "client", json!({"stringData": tls_secret("client")["stringData"]})).await;
    ns.eventually(CONVERGED, "the digest of the new one", async || {
        let now = ns.get(DEPLOYMENT, "dataplane-gw").await?;
        holds(digest(&now) != digest(&before), || format!("{}", digest(&now)))
    })
    .await;
    ns.ready("gw", READY).await;
    let sets = ns.list(super::api::REPLICA_SET, "app=gw").await.unwrap();
    assert_eq!(sets.len(), 2, "rolled once");
    ns.edit(SECRET, "client", json!({"metadata": {"labels": {"touched": "yes"}}})).await;
    ns.always(Duration::from_secs(2), "a label of the Secret rolls nothing", async || {
        same("ReplicaSets", ns.list(super::api::REPLICA_SET, "app=gw").await?.len(), 2)
    })
    .await;
}
