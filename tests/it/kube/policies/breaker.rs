//! A revision that fails in use: the last good one takes over, and nobody else notices.

use libtest_mimic::Trial;

use super::{ACTIVE, active, gateways, hybrid, image, policy, push, variant};
use crate::kube::{
    api::{DATA_PLANE, POLICY},
    labs::{Lab, lab},
    ns::READY,
    plugins::shop::Shop,
    shape::{condition, holds},
};

pub(super) fn tests() -> Vec<Trial> {
    vec![lab("policies-breaker", breaker)]
}

async fn breaker(lab: Lab) {
    let (ns, system) = (&lab.ns, lab.system());
    let Some(shop) = Shop::open(&lab) else { return };
    let good = push(&shop, "konnect", "good", &variant("konnect-env", 1));
    let bad = push(&shop, "konnect", "bad", &variant("hostile-trap", 2));
    let fixed = push(&shop, "konnect", "fixed", &variant("konnect-env", 3));
    let operator = shop.operator(&lab, &[]);
    operator.wait_leading().await;
    system.apply(&policy("konnect", &shop.image("konnect", "good"))).await;
    active(&system, "konnect", &good.layer).await;
    // Nothing is there that it could be tried on, so it takes over.
    system.edit(POLICY, "konnect", image(&shop.image("konnect", "bad"))).await;
    active(&system, "konnect", &bad.layer).await;

    gateways(ns, &["a", "b", "c"]).await;
    let object = system.says(POLICY, "konnect", ["Stalled", "True", "RolledBack"], &["failed in use", "stays in force"], ACTIVE).await;
    assert_eq!(object["status"]["active"]["layerDigest"], good.layer.as_str());
    assert_eq!(object["status"]["history"][0]["layerDigest"], bad.layer.as_str());
    assert_eq!(object["status"]["history"][0]["reason"], "RolledBack");
    ns.all_ready(3, READY).await;
    ns.eventually(READY, "no object complains any more", async || {
        for name in ["a", "b", "c"] {
            let object = ns.get(DATA_PLANE, name).await?;
            let good = condition(&object, "PoliciesApplied").is_some_and(|c| c["status"] == "True");
            holds(good, || format!("{name}: {:#}", object["status"]))?;
        }
        Ok(())
    })
    .await;
    // It does not come back by itself, and another one does.
    system.edit(POLICY, "konnect", image(&shop.image("konnect", "fixed"))).await;
    active(&system, "konnect", &fixed.layer).await;
    ns.apply(&hybrid("d")).await;
    ns.ready("d", READY).await;
}
