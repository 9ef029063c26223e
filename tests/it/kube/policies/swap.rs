//! The reason for it all: a policy is swapped by publishing a component.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use serde_json::json;

use super::{active, gateways, hybrid, image, is_active, policy, policy_with, push, variable, variant};
use crate::kube::{
    api::{EVENT, POLICY},
    labs::{Lab, lab},
    ns::{CONVERGED, READY},
    plugins::shop::Shop,
    shape::{holds, same},
};

pub(super) fn tests() -> Vec<Trial> {
    vec![lab("policies-swap", swap), lab("policies-tags", tags)]
}

const PROXY: &str = "KONG_PROXY_SERVER";

/// v1, v2 with another answer, a broken v3 that changes nothing, and back.
async fn swap(lab: Lab) {
    let (ns, system) = (&lab.ns, lab.system());
    let Some(shop) = Shop::open(&lab) else { return };
    let first = push(&shop, "konnect", "v1", &variant("konnect-env", 1));
    let second = push(&shop, "konnect", "v2", &variant("konnect-env-eu-proxy", 2));
    push(&shop, "konnect", "v3", &variant("hostile-trap", 3));
    let operator = shop.operator(&lab, &[]);
    operator.wait_leading().await;
    gateways(ns, &["gw"]).await;
    ns.ready("gw", READY).await;

    system.apply(&policy("konnect", &shop.image("konnect", "v1"))).await;
    let object = active(&system, "konnect", &first.layer).await;
    assert_eq!(object["status"]["active"]["manifestDigest"], first.manifest.as_str());
    assert_eq!(object["status"]["limits"], json!({"timeout": "200ms", "memory": "32Mi"}));
    ns.eventually(CONVERGED, "it answers for one object", async || {
        let object = system.get(POLICY, "konnect").await?;
        same("objects", object["status"]["objects"].clone(), json!(1))
    })
    .await;
    assert_eq!(variable(ns, "gw", PROXY).await.unwrap(), None);

    let begun = Instant::now();
    system.edit(POLICY, "konnect", image(&shop.image("konnect", "v2"))).await;
    active(&system, "konnect", &second.layer).await;
    eprintln!("     policies swap: a new component is in force after {:?}", begun.elapsed());
    ns.eventually(CONVERGED, "the pods get the other answer", async || {
        let found = variable(ns, "gw", PROXY).await?;
        holds(found.is_some(), || format!("{found:?}"))
    })
    .await;

    // It traps on the very object that is there, so it never takes over.
    system.edit(POLICY, "konnect", image(&shop.image("konnect", "v3"))).await;
    let words = ["DataPlane", "/gw", "trapped", "stays in force"];
    let object = system.says(POLICY, "konnect", ["Stalled", "True", "Trap"], &words, super::ACTIVE).await;
    assert_eq!(object["status"]["active"]["layerDigest"], second.layer.as_str());
    ns.always(Duration::from_secs(2), "v2 goes on", async || holds(variable(ns, "gw", PROXY).await?.is_some(), || "v2 is gone".into()))
        .await;
    ns.apply(&hybrid("later")).await;
    ns.ready("later", READY).await;
    assert!(variable(ns, "later", PROXY).await.unwrap().is_some(), "new objects are answered by v2");

    // Back to what was in force before: it is still loaded.
    let begun = Instant::now();
    system.edit(POLICY, "konnect", image(&shop.image("konnect", "v1"))).await;
    active(&system, "konnect", &first.layer).await;
    let took = begun.elapsed();
    eprintln!("     policies swap: a former component is in force after {took:?}");
    ns.eventually(CONVERGED, "the pods get the first answer again", async || {
        let found = variable(ns, "gw", PROXY).await?;
        holds(found.is_none(), || format!("{found:?}"))
    })
    .await;
    let object = system.get(POLICY, "konnect").await.unwrap();
    assert_eq!(object["status"]["history"][0]["layerDigest"], second.layer.as_str());
    assert_eq!(object["status"]["history"][0]["reason"], "Removed", "its owner went back from it");

    // Without it the built-in policy answers as before.
    system.delete(POLICY, "konnect").await;
    ns.always(Duration::from_secs(2), "equal answers change nothing", async || same("proxy", variable(ns, "gw", PROXY).await?, None)).await;
    let events = system.list(EVENT, "").await.unwrap();
    let reasons: Vec<&str> =
        events.iter().filter(|e| e["involvedObject"]["name"] == "konnect").filter_map(|e| e["reason"].as_str()).collect();
    assert!(reasons.contains(&"Activated") && reasons.contains(&"Trap"), "{reasons:?}");
}

/// Publishing is enough: a tag that moves is noticed, the digest that runs is the one that was seen, and a look is to be had at once.
async fn tags(lab: Lab) {
    let system = lab.system();
    let Some(shop) = Shop::open(&lab) else { return };
    let first = push(&shop, "konnect", "stable", &variant("konnect-env", 1));
    let operator = shop.operator(&lab, &[]);
    operator.wait_leading().await;
    let moving = json!({"spec": {"rollout": {"resync": "10s"}}});
    system.apply(&policy_with("moving", &shop.image("konnect", "stable"), moving)).await;
    system.apply(&policy_with("asked", &shop.image("konnect", "stable"), json!({"spec": {"rollout": {"resync": "0s"}}}))).await;
    for name in ["moving", "asked"] {
        active(&system, name, &first.layer).await;
    }
    let second = push(&shop, "konnect", "stable", &variant("konnect-env", 2));
    system
        .eventually(Duration::from_secs(40), "the moved tag is in force", async || {
            is_active(&system.get(POLICY, "moving").await?, &second.layer)
        })
        .await;
    is_active(&system.get(POLICY, "asked").await.unwrap(), &first.layer).unwrap();
    system.edit(POLICY, "asked", json!({"metadata": {"annotations": {"weir.dev/check-at": "now"}}})).await;
    active(&system, "asked", &second.layer).await;
    system
        .eventually(CONVERGED, "the question is answered", async || {
            let object = system.get(POLICY, "asked").await?;
            same("checked-at", object["metadata"]["annotations"]["weir.dev/checked-at"].clone(), json!("now"))
        })
        .await;

    // A range of versions takes the newest tag.
    let third = push(&shop, "ranged", "1.4.2", &variant("konnect-env", 3));
    push(&shop, "ranged", "2.0.0", &variant("konnect-env", 4));
    let ranged = json!({"spec": {"source": {"oci": {"semver": "^1.2"}}, "rollout": {"resync": "10s"}}});
    system.apply(&policy_with("ranged", &shop.image("ranged", "ignored"), ranged)).await;
    active(&system, "ranged", &third.layer).await;
    let fifth = push(&shop, "ranged", "v1.5.0", &variant("konnect-env", 5));
    system
        .eventually(Duration::from_secs(40), "the newer version is in force", async || {
            is_active(&system.get(POLICY, "ranged").await?, &fifth.layer)
        })
        .await;
}
