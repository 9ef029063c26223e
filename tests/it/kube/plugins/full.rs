//! An installation whose annotations are full: what the operator has to write there has no room.

use libtest_mimic::Trial;
use serde_json::json;

use super::{
    PULLED, annotated, event, installation_with, installed,
    shop::{Shop, Way, plugin},
    text,
};
use crate::kube::{
    api::{EVENT, INSTALLATION},
    labs::{Lab, lab},
    ns::CONVERGED,
};

pub(super) fn tests() -> Vec<Trial> {
    vec![lab("plugins-full", full)]
}

/// All annotations of an object share 256 KiB; this leaves a little.
const NOTES: usize = 262_144 - 200;

async fn full(lab: Lab) {
    let ns = &lab.ns;
    let Some(shop) = Shop::open(&lab) else { return };
    let operator = shop.operator(&lab, &[]);
    operator.wait_leading().await;
    let digest = shop.push(Way::Oci, "p", "v1", &plugin("p", "1.0.0"));
    let notes = annotated(json!({"example.com/notes": "x".repeat(NOTES)}));
    ns.apply(&installation_with("p", &shop.image("p", "v1"), notes)).await;
    let words = ["annotations cannot be written", "metadata.annotations: Too long", "share 256 KiB"];
    for condition in ["Accepted", "Ready"] {
        ns.says(INSTALLATION, "p", [condition, "False", "Failed"], &words, PULLED).await;
    }
    event(ns, "KongPluginInstallation", "p", "WriteFailed", &["metadata.annotations"]).await;
    let events = ns.list(EVENT, "").await.unwrap();
    assert!(!events.iter().any(|e| text(&e["reason"]) == "Installed"), "nothing is installed: {events:#?}");

    ns.edit(INSTALLATION, "p", annotated(json!({"example.com/notes": null}))).await;
    installed(ns, "p", &digest).await;
    ns.says(INSTALLATION, "p", ["Accepted", "True", "Ready"], &[&digest], CONVERGED).await;
    event(ns, "KongPluginInstallation", "p", "Installed", &[&digest]).await;
}
