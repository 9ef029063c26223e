//! Every way that a candidate does not take over, and what the object says then.

use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{ACTIVE, active, image, is_active, policy, policy_with, push, variant};
use crate::kube::{
    api::POLICY,
    labs::{Lab, lab},
    ns::{CONVERGED, SHOWN},
    plugins::shop::Shop,
    shape::{condition, holds},
};

pub(super) fn tests() -> Vec<Trial> {
    vec![lab("policies-refused", refused), lab("policies-manual", manual)]
}

/// What is wrong, where that shows, and words that name it.
fn wrong(shop: &Shop) -> Vec<(&'static str, Value, [&'static str; 3], Vec<&'static str>)> {
    let of = |tag: &str| policy(tag, &shop.image("wrong", tag));
    let with = |name: &str, patch: Value| policy_with(name, &shop.image("wrong", "good"), patch);
    vec![
        ("missing", of("missing"), ["Resolved", "False", "NotFound"], vec!["spec.source.oci.image", "does not exist"]),
        ("core", of("core"), ["Resolved", "False", "Unusable"], vec!["core module", "wasm-tools component new"]),
        ("html", of("html"), ["Resolved", "False", "Unusable"], vec!["HTML"]),
        ("world", of("world"), ["Compatible", "False", "Incompatible"], vec!["weir:policy/konnect-env"]),
        ("wasi", of("wasi"), ["Compatible", "False", "Incompatible"], vec!["wasi:cli/environment"]),
        (
            "settings",
            with("settings", json!({"spec": {"settings": {"vitals": "no"}}})),
            ["SettingsValid", "False", "Invalid"],
            vec!["spec.settings", "vitals"],
        ),
        (
            "secret",
            with("secret", json!({"spec": {"source": {"oci": {"pullSecretRef": {"name": "nobody"}}}}})),
            ["Resolved", "False", "SecretNotFound"],
            vec!["spec.source.oci.pullSecretRef", "nobody", "does not exist"],
        ),
        (
            "authority",
            with("authority", json!({"spec": {"source": {"oci": {"caBundleRef": {"name": "nobody"}}}}})),
            ["Resolved", "False", "CaNotFound"],
            vec!["spec.source.oci.caBundleRef", "nobody"],
        ),
        (
            "remote",
            json!({"apiVersion": POLICY.api_version, "kind": POLICY.kind, "metadata": {"name": "remote"},
                   "spec": {"slot": "KonnectEnv", "source": {"remote": {"pluginName": "p"}}}}),
            ["Resolved", "False", "PluginNotFound"],
            vec!["spec.source.remote.pluginName", "weir.dev/plugin-name"],
        ),
        (
            "selector",
            with("selector", json!({"spec": {"targets": {"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}}})),
            ["Active", "False", "InvalidTargets"],
            vec!["spec.targets.selector", "values"],
        ),
    ]
}

async fn refused(lab: Lab) {
    let system = lab.system();
    let Some(shop) = Shop::open(&lab) else { return };
    let good = push(&shop, "wrong", "good", &variant("konnect-env", 1));
    push(&shop, "wrong", "core", &std::fs::read(crate::support::guest("core-module")).unwrap());
    push(&shop, "wrong", "html", b"<!DOCTYPE html><html><body>Sign in</body></html>");
    push(&shop, "wrong", "world", &variant("hostile-wrong-world", 2));
    push(&shop, "wrong", "wasi", &crate::support::without_stub());
    let operator = shop.operator(&lab, &[]);
    operator.wait_leading().await;
    let wrong = wrong(&shop);
    for (_, object, ..) in &wrong {
        system.apply(object).await;
    }
    for (name, _, wanted, words) in &wrong {
        let object = system.says(POLICY, name, *wanted, words, ACTIVE).await;
        assert!(object["status"]["active"].is_null(), "{name}: {:#}", object["status"]);
        let stands = ["Ready", "Active"].iter().all(|type_| condition(&object, type_).is_some_and(|c| c["status"] == "False"));
        assert!(stands, "{name}: {:#}", object["status"]);
    }
    // Each of them over one that is in force: it stays, whatever comes.
    system.apply(&policy("kept", &shop.image("wrong", "good"))).await;
    active(&system, "kept", &good.layer).await;
    for tag in ["missing", "core", "html", "world", "wasi"] {
        system.edit(POLICY, "kept", image(&shop.image("wrong", tag))).await;
        system
            .eventually(ACTIVE, &format!("{tag} is refused"), async || {
                let object = system.get(POLICY, "kept").await?;
                let message =
                    condition(&object, "Ready").filter(|c| c["status"] == "False").map(|c| c["message"].to_string()).unwrap_or_default();
                let newest = object["status"]["observedGeneration"] == object["metadata"]["generation"];
                let stays = object["status"]["active"]["layerDigest"] == good.layer.as_str();
                holds(newest && stays && message.contains("stays in force") && message.contains(&format!("wrong:{tag}")), || {
                    format!("{:#}", object["status"])
                })
            })
            .await;
    }
    system.edit(POLICY, "kept", image(&shop.image("wrong", "good"))).await;
    active(&system, "kept", &good.layer).await;
    // What is missing comes: nobody has to touch the object.
    let came = push(&shop, "wrong", "missing", &variant("konnect-env", 9));
    system.edit(POLICY, "missing", json!({"metadata": {"annotations": {"weir.dev/check-at": "1"}}})).await;
    active(&system, "missing", &came.layer).await;
}

async fn manual(lab: Lab) {
    let system = lab.system();
    let Some(shop) = Shop::open(&lab) else { return };
    let first = push(&shop, "konnect", "v1", &variant("konnect-env", 1));
    let second = push(&shop, "konnect", "v2", &variant("konnect-env", 2));
    let operator = shop.operator(&lab, &[]);
    operator.wait_leading().await;
    let by_hand = json!({"spec": {"rollout": {"strategy": "Manual"}}});
    system.apply(&policy_with("konnect", &shop.image("konnect", "v1"), by_hand)).await;
    system.says(POLICY, "konnect", ["Held", "True", "AwaitingApproval"], &[&first.layer], ACTIVE).await;
    let approve = |text: &str| json!({"metadata": {"annotations": {"weir.dev/approved-digest": text}}});
    system.edit(POLICY, "konnect", approve(&second.layer)).await;
    system.says(POLICY, "konnect", ["Held", "True", "AwaitingApproval"], &[&second.layer, "not what waits"], SHOWN).await;
    system.edit(POLICY, "konnect", approve(&first.layer)).await;
    active(&system, "konnect", &first.layer).await;
    system.edit(POLICY, "konnect", image(&shop.image("konnect", "v2"))).await;
    let object = system.says(POLICY, "konnect", ["Held", "True", "AwaitingApproval"], &[&second.layer], ACTIVE).await;
    assert_eq!(object["status"]["candidate"]["approve"], second.layer.as_str());
    assert_eq!(object["status"]["active"]["layerDigest"], first.layer.as_str());
    system.edit(POLICY, "konnect", approve(&second.layer)).await;
    active(&system, "konnect", &second.layer).await;
    // Other settings are a candidate too, and have an approval of their own.
    system.edit(POLICY, "konnect", json!({"spec": {"settings": {"vitals": true}}})).await;
    let object = system.says(POLICY, "konnect", ["Held", "True", "AwaitingApproval"], &[&format!("{}/", second.layer)], ACTIVE).await;
    let wanted = object["status"]["candidate"]["approve"].as_str().unwrap().to_owned();
    system
        .always(Duration::from_secs(2), "it waits", async || {
            let object = system.get(POLICY, "konnect").await?;
            holds(condition(&object, "Held").is_some_and(|c| c["status"] == "True"), || format!("{:#}", object["status"]))
        })
        .await;
    system.edit(POLICY, "konnect", approve(&wanted)).await;
    system
        .eventually(CONVERGED, "the settings are in force", async || {
            let object = system.get(POLICY, "konnect").await?;
            is_active(&object, &second.layer)?;
            holds(object["status"]["active"]["settings"]["vitals"] == true, || format!("{:#}", object["status"]))
        })
        .await;
    // A pause keeps what is in force.
    system
        .edit(POLICY, "konnect", json!({"metadata": {"annotations": {"weir.dev/paused": "true", "weir.dev/approved-digest": first.layer}}}))
        .await;
    system.edit(POLICY, "konnect", image(&shop.image("konnect", "v1"))).await;
    let object = system.says(POLICY, "konnect", ["Held", "True", "Paused"], &["weir.dev/paused"], SHOWN).await;
    assert_eq!(object["status"]["active"]["layerDigest"], second.layer.as_str());
}
