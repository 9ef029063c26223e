//! What is in force stays in force: over a restart, without a registry, on every replica, and at whatever step the process ends.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use serde_json::json;

use super::{active, gateways, hybrid, image, is_active, policy_with, push, variable, variant};
use crate::kube::{
    api::POLICY,
    labs::{Lab, lab},
    ns::READY,
    plugins::shop::Shop,
    shape::holds,
};

pub(super) fn tests() -> Vec<Trial> {
    vec![lab("policies-offline", offline), lab("policies-kills", kills), lab("policies-standby", standby)]
}

/// The registry is gone and the tag has moved before that: what ran, runs.
async fn offline(lab: Lab) {
    let (ns, system) = (&lab.ns, lab.system());
    let Some(mut shop) = Shop::open(&lab) else { return };
    let first = push(&shop, "konnect", "stable", &variant("konnect-env-eu-proxy", 1));
    let mut operator = shop.operator(&lab, &[]);
    operator.wait_leading().await;
    let still = json!({"spec": {"rollout": {"resync": "0s"}}});
    system.apply(&policy_with("konnect", &shop.image("konnect", "stable"), still)).await;
    active(&system, "konnect", &first.layer).await;
    gateways(ns, &["gw"]).await;
    ns.ready("gw", READY).await;
    push(&shop, "konnect", "stable", &variant("konnect-env", 2));
    shop.registry.stop();
    operator.stop_and_restart();
    operator.wait_leading().await;
    is_active(&system.get(POLICY, "konnect").await.unwrap(), &first.layer).unwrap();
    ns.apply(&hybrid("later")).await;
    ns.ready("later", READY).await;
    assert!(variable(ns, "later", "KONG_PROXY_SERVER").await.unwrap().is_some(), "the component from disk answers");
    // A question that needs the registry says so, and what runs goes on.
    system.edit(POLICY, "konnect", json!({"metadata": {"annotations": {"weir.dev/check-at": "1"}}})).await;
    system
        .eventually(Duration::from_secs(30), "the outage is told, and harmless", async || {
            let object = system.get(POLICY, "konnect").await?;
            let resolved = crate::kube::shape::condition(&object, "Resolved").cloned().unwrap_or_default();
            holds(resolved["status"] == "False" && resolved["reason"] == "Unreachable", || format!("{:#}", object["status"]))?;
            is_active(&object, &first.layer)
        })
        .await;
    shop.registry.resume().unwrap();
    system
        .eventually(Duration::from_secs(60), "the registry is back", async || {
            let object = system.get(POLICY, "konnect").await?;
            let moved = object["status"]["active"]["layerDigest"] != first.layer.as_str();
            holds(moved && crate::kube::shape::condition(&object, "Resolved").is_some_and(|c| c["status"] == "True"), || {
                format!("{:#}", object["status"])
            })
        })
        .await;
}

/// The process ends at any moment of many swaps; what the status says in the end is what the spec asks for, and runs.
async fn kills(lab: Lab) {
    const SWAPS: usize = 12;
    let (ns, system) = (&lab.ns, lab.system());
    let Some(shop) = Shop::open(&lab) else { return };
    let pushed: Vec<_> = (0..SWAPS).map(|n| push(&shop, "konnect", &format!("v{n}"), &variant("konnect-env-eu-proxy", n))).collect();
    let mut operator = shop.operator(&lab, &crate::kube::faults::SHORT_LEASE);
    operator.wait_leading().await;
    gateways(ns, &["gw"]).await;
    let still = json!({"spec": {"rollout": {"resync": "0s"}}});
    system.apply(&policy_with("konnect", &shop.image("konnect", "v0"), still)).await;
    active(&system, "konnect", &pushed[0].layer).await;
    for number in 1..SWAPS {
        system.edit(POLICY, "konnect", image(&shop.image("konnect", &format!("v{number}")))).await;
        // Before the pull, in it, while compiling, after the status.
        tokio::time::sleep(Duration::from_millis(40 * u64::try_from(number).unwrap())).await;
        operator.kill_and_restart();
        if number % 4 == 0 {
            operator.wait_leading().await;
        }
    }
    system
        .eventually(Duration::from_secs(60), "the last one is in force", async || {
            is_active(&system.get(POLICY, "konnect").await?, &pushed[SWAPS - 1].layer)
        })
        .await;
    let object = system.get(POLICY, "konnect").await.unwrap();
    let mut seen: Vec<String> =
        object["status"]["history"].as_array().into_iter().flatten().map(|r| r["layerDigest"].to_string()).collect();
    seen.push(object["status"]["active"]["layerDigest"].to_string());
    let count = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), count, "no revision is there twice: {:#}", object["status"]);
    assert!(count <= 4, "three former ones are kept: {:#}", object["status"]);
    ns.ready("gw", READY).await;
    assert!(variable(ns, "gw", "KONG_PROXY_SERVER").await.unwrap().is_some());
}

/// A standby has the component ready before it leads.
async fn standby(lab: Lab) {
    let (ns, system) = (&lab.ns, lab.system());
    let Some(shop) = Shop::open(&lab) else { return };
    let first = push(&shop, "konnect", "v1", &variant("konnect-env-eu-proxy", 1));
    let lease =
        ["--leader-election-lease-duration", "8s", "--leader-election-renew-deadline", "6s", "--leader-election-retry-period", "500ms"];
    let mut leader = shop.operator(&lab, &lease);
    leader.wait_leading().await;
    let host = shop.registry.host();
    let standby = lab.operator("weir-b", &[["--insecure-registry", host.as_str()].as_slice(), lease.as_slice()].concat());
    standby.wait_ready().await;
    system.apply(&policy_with("konnect", &shop.image("konnect", "v1"), json!({}))).await;
    active(&system, "konnect", &first.layer).await;
    let line = format!("policy konnect-env {}/konnect: ok: {}", system.name, first.layer);
    for (name, replica) in [("leader", &leader), ("standby", &standby)] {
        system
            .eventually(Duration::from_secs(20), &format!("the {name} runs it"), async || {
                let (code, text) = replica.probe("/readyz?verbose").await?;
                holds(code == 200 && text.contains(&line), || text)
            })
            .await;
    }
    let begun = Instant::now();
    leader.kill();
    gateways(ns, &["gw"]).await;
    ns.ready("gw", READY).await;
    eprintln!("     policies standby: answers {:?} after the leader was killed", begun.elapsed());
    assert!(variable(ns, "gw", "KONG_PROXY_SERVER").await.unwrap().is_some());
    assert!(standby.metrics().await.sum("weir_leader", &[]) > 0.5);
}
