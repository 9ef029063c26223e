//! Which of several policies answers for which object.

use libtest_mimic::Trial;
use serde_json::json;

use super::{active, gateways, policy_with, push, variable, variant};
use crate::kube::{
    api::{DATA_PLANE, POLICY},
    labs::{Lab, lab},
    ns::{CONVERGED, READY},
    plugins::shop::Shop,
    shape::{condition, holds, same},
};

pub(super) fn tests() -> Vec<Trial> {
    vec![lab("policies-selection", selection)]
}

async fn selection(lab: Lab) {
    let (ns, system) = (&lab.ns, lab.system());
    let Some(shop) = Shop::open(&lab) else { return };
    let plain = push(&shop, "konnect", "plain", &variant("konnect-env", 1));
    let proxy = push(&shop, "konnect", "proxy", &variant("konnect-env-eu-proxy", 2));
    let operator = shop.operator(&lab, &["--tenant-policies"]);
    operator.wait_leading().await;
    gateways(ns, &["public", "internal"]).await;
    ns.edit(DATA_PLANE, "internal", json!({"metadata": {"labels": {"tier": "internal"}}})).await;
    ns.all_ready(2, READY).await;

    let settings = |server: &str| json!({"proxyServer": server});
    let targets = json!({"selector": {"matchLabels": {"tier": "internal"}}});
    let special = json!({"spec": {"priority": 10, "targets": targets, "settings": settings("http://special:1")}});
    system.apply(&policy_with("everybody", &shop.image("konnect", "plain"), json!({}))).await;
    system.apply(&policy_with("special", &shop.image("konnect", "proxy"), special)).await;
    active(&system, "everybody", &plain.layer).await;
    active(&system, "special", &proxy.layer).await;
    let answers = async |gateway: &str, wanted: Option<&str>| {
        ns.eventually(CONVERGED, &format!("{gateway} gets {wanted:?}"), async || {
            same("proxy", variable(ns, gateway, "KONG_PROXY_SERVER").await?, wanted.map(String::from))
        })
        .await;
    };
    answers("internal", Some("http://special:1")).await;
    answers("public", None).await;
    system
        .eventually(std::time::Duration::from_secs(60), "the one that lost says to whom", async || {
            let object = system.get(POLICY, "everybody").await?;
            let ready = condition(&object, "Ready").cloned().unwrap_or_default();
            let message = ready["message"].as_str().unwrap_or_default();
            let told = object["status"]["objects"] == 1 && message.contains(&format!("policy {}/special", system.name));
            holds(told, || format!("{:#}", object["status"]))
        })
        .await;

    // A tenant's policy never outranks one of the operator's namespace, unless that lets it.
    let own = json!({"spec": {"priority": 1000, "settings": settings("http://tenant:1")}});
    ns.apply(&policy_with("own", &shop.image("konnect", "proxy"), own)).await;
    ns.eventually(super::ACTIVE, "the tenant's policy runs and loses", async || {
        let object = ns.get(POLICY, "own").await?;
        let loaded = object["status"]["active"]["layerDigest"] == proxy.layer.as_str();
        holds(loaded && object["status"]["objects"] == 0, || format!("{:#}", object["status"]))
    })
    .await;
    answers("public", None).await;
    system.edit(POLICY, "everybody", json!({"spec": {"allowOverride": true}})).await;
    answers("public", Some("http://tenant:1")).await;
    answers("internal", Some("http://special:1")).await;

    // Deleting is a swap.
    ns.delete(POLICY, "own").await;
    answers("public", None).await;

    // Equal priorities are told.
    system.edit(POLICY, "special", json!({"spec": {"priority": 0}})).await;
    system
        .eventually(CONVERGED, "the tie is told", async || {
            let object = system.get(POLICY, "special").await?;
            let message = condition(&object, "Ready").map(|c| c["message"].to_string()).unwrap_or_default();
            holds(message.contains("same priority"), || format!("{:#}", object["status"]))
        })
        .await;

    // A shadow is asked and not listened to.
    let shadow = json!({"spec": {"mode": "Shadow", "priority": 500, "settings": settings("http://shadow:1")}});
    system.apply(&policy_with("shadow", &shop.image("konnect", "proxy"), shadow)).await;
    system
        .eventually(super::ACTIVE * 2, "the difference is counted", async || {
            let object = system.get(POLICY, "shadow").await?;
            let counted = object["status"]["shadow"]["differing"].as_i64().unwrap_or_default() >= 1;
            let said = condition(&object, "Active").is_some_and(|c| c["status"] == "False" && c["reason"] == "Shadow");
            holds(counted && said, || format!("{:#}", object["status"]))
        })
        .await;
    answers("public", None).await;
}
