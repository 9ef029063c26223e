//! Only what the right people have signed ever runs.

use libtest_mimic::Trial;
use serde_json::json;
use weir_testkit::{binaries, skipped};

use super::{ACTIVE, active, image, policy, policy_with, push, variant};
use crate::kube::{
    api::{POLICY, SECRET},
    labs::{Lab, lab},
    ns::CONVERGED,
    plugins::shop::{Shop, pull_secret},
    shape::holds,
};

pub(super) fn tests() -> Vec<Trial> {
    vec![lab("policies-verified", verified), lab("policies-list", listed), lab("policies-own-secrets", own_secrets)]
}

async fn verified(lab: Lab) {
    let system = lab.system();
    let Some(shop) = Shop::open(&lab) else { return };
    if let Some(reason) = binaries::missing_cosign() {
        return skipped("kube policies verified", &reason).unwrap();
    }
    let dir = shop.scratch();
    let (ours, theirs) = (shop.registry.cosign_key(&dir, "ours").unwrap(), shop.registry.cosign_key(&dir, "theirs").unwrap());
    let first = push(&shop, "signed", "v1", &variant("konnect-env", 1));
    let second = push(&shop, "signed", "v2", &variant("konnect-env", 2));
    let by_digest = |pushed: &super::Pushed| format!("{}@{}", shop.image("signed", "v1").rsplit_once(':').unwrap().0, pushed.manifest);
    let operator = shop.operator(&lab, &[]);
    operator.wait_leading().await;
    let public = std::fs::read_to_string(&ours.public).unwrap();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "signers"}, "stringData": {"cosign.pub": public}});
    let signers = json!({"spec": {"source": {"oci": {"verify": {"anyOf": [{"publicKey": {"secretRef": {"name": "signers"}}}]}}}}});
    system.apply(&policy_with("signed", &shop.image("signed", "v1"), signers)).await;
    system.says(POLICY, "signed", ["Verified", "False", "SecretNotFound"], &["spec.source.oci.verify", "signers"], ACTIVE).await;
    system.apply(&secret).await;
    let again = async |turn: &str| {
        system.edit(POLICY, "signed", json!({"metadata": {"annotations": {"weir.dev/check-at": turn}}})).await;
    };
    again("1").await;
    let words = ["is not signed", "sha256-", "referrers"];
    let object = system.says(POLICY, "signed", ["Verified", "False", "NotSigned"], &words, ACTIVE).await;
    assert!(object["status"]["active"].is_null(), "{:#}", object["status"]);
    shop.registry.cosign_sign_simple(&by_digest(&first), &theirs).unwrap();
    again("2").await;
    system.says(POLICY, "signed", ["Verified", "False", "WrongSigner"], &["signers#cosign.pub"], ACTIVE).await;
    shop.registry.cosign_sign_simple(&by_digest(&first), &ours).unwrap();
    again("3").await;
    let object = active(&system, "signed", &first.layer).await;
    assert_eq!(object["status"]["active"]["signer"], format!("key {}/signers#cosign.pub", system.name));

    // The next one is not signed: the signed one goes on.
    system.edit(POLICY, "signed", image(&shop.image("signed", "v2"))).await;
    let object = system.says(POLICY, "signed", ["Stalled", "True", "NotSigned"], &["stays in force"], ACTIVE).await;
    assert_eq!(object["status"]["active"]["layerDigest"], first.layer.as_str());
    shop.registry.cosign_sign_simple(&by_digest(&second), &ours).unwrap();
    again("4").await;
    active(&system, "signed", &second.layer).await;
}

/// The operator's own list holds for every policy, a policy's `verify` adds to it, and a list that changes is read with no restart.
async fn listed(lab: Lab) {
    let system = lab.system();
    let Some(shop) = Shop::open(&lab) else { return };
    if let Some(reason) = binaries::missing_cosign() {
        return skipped("kube policies list", &reason).unwrap();
    }
    let dir = shop.scratch();
    let (ours, theirs) = (shop.registry.cosign_key(&dir, "ours").unwrap(), shop.registry.cosign_key(&dir, "theirs").unwrap());
    let pushed = push(&shop, "listed", "v1", &variant("konnect-env", 1));
    let reference = format!("{}@{}", shop.image("listed", "v1").rsplit_once(':').unwrap().0, pushed.manifest);
    let list = shop.list("verification.yaml", &[(&format!("{}/listed", shop.registry.host()), &ours.public)]);
    let operator = shop.operator(&lab, &["--verification-file", list.to_str().unwrap()]);
    operator.wait_leading().await;
    system.apply(&policy("listed", &shop.image("listed", "v1"))).await;
    let words = ["the operator's verification list", "is not signed", "sha256-", "referrers"];
    let object = system.says(POLICY, "listed", ["Verified", "False", "NotSigned"], &words, ACTIVE).await;
    assert!(object["status"]["active"].is_null(), "{:#}", object["status"]);
    let again = async |turn: &str| {
        system.edit(POLICY, "listed", json!({"metadata": {"annotations": {"weir.dev/check-at": turn}}})).await;
    };
    shop.registry.cosign_sign_simple(&reference, &theirs).unwrap();
    again("1").await;
    system.says(POLICY, "listed", ["Verified", "False", "WrongSigner"], &["ours.pub"], ACTIVE).await;
    shop.registry.cosign_sign_simple(&reference, &ours).unwrap();
    again("2").await;
    let object = active(&system, "listed", &pushed.layer).await;
    assert!(object["status"]["active"]["signer"].as_str().unwrap().contains("ours.pub"), "{:#}", object["status"]);
    let metrics = operator.metrics().await;
    assert!(metrics.sum("weir_verifications_total", &[("artifact", "Policy"), ("outcome", "NotSigned")]) > 0.5);
    assert!(metrics.sum("weir_policy_swaps_total", &[("slot", "konnect-env"), ("outcome", "Activated")]) > 0.5);
    assert!(metrics.sum("weir_policy_activation_seconds_count", &[]) > 0.5);
    let in_force = [("name", "listed"), ("digest", pushed.layer.as_str())];
    assert!((metrics.sum("weir_policy_active", &in_force) - 1.0).abs() < 0.5, "{}", metrics.0);

    // A list that is broken changes nothing and is told.
    let good = std::fs::read_to_string(&list).unwrap();
    std::fs::write(&list, "entries: [").unwrap();
    system
        .eventually(CONVERGED, "the broken list is told", async || {
            let (code, body) = operator.probe("/readyz?verbose").await?;
            let metrics = operator.metrics().await;
            let told = metrics.sum("weir_settings_file_valid", &[("file", "Verification")]) < 0.5;
            holds(code == 200 && told && body.contains("settings --verification-file: not ok"), || body)
        })
        .await;
    active(&system, "listed", &pushed.layer).await;

    // What is asked of it by a policy comes on top.
    std::fs::write(&list, &good).unwrap();
    let public = std::fs::read_to_string(&theirs.public).unwrap();
    system.apply(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "more"}, "stringData": {"cosign.pub": public}})).await;
    let more = json!({"spec": {"source": {"oci": {"verify": {"allOf": [{"publicKey": {"secretRef": {"name": "more"}}}]}}}}});
    system.edit(POLICY, "listed", more).await;
    system
        .eventually(ACTIVE, "both have signed", async || {
            let object = system.get(POLICY, "listed").await?;
            let signer = object["status"]["active"]["signer"].as_str().unwrap_or_default().to_owned();
            holds(signer.contains("ours.pub") && signer.contains("more#cosign.pub"), || format!("{:#}", object["status"]))
        })
        .await;

    // The other way round: a list of somebody else. What runs goes on, and it is told.
    let other = shop.registry.cosign_key(&dir, "other").unwrap();
    shop.list_at(&list, &[(&shop.registry.host(), &other.public)]);
    let object = system.says(POLICY, "listed", ["Stalled", "True", "WrongSigner"], &["stays in force", "other.pub"], ACTIVE).await;
    assert_eq!(object["status"]["active"]["layerDigest"], pushed.layer.as_str());
    system.delete(POLICY, "listed").await;
    system
        .eventually(CONVERGED, "its series goes with it", async || {
            let metrics = operator.metrics().await;
            holds(!metrics.0.contains("weir_policy_active{"), || metrics.0)
        })
        .await;
}

/// The operator watches another namespace only: Secrets of its own are noticed all the same.
async fn own_secrets(lab: Lab) {
    let system = lab.system();
    let Some(shop) = Shop::private(&lab) else { return };
    let pushed = push(&shop, "private", "v1", &variant("konnect-env", 1));
    let operator = shop.operator(&lab, &[]);
    operator.wait_leading().await;
    let secret = json!({"spec": {"source": {"oci": {"pullSecretRef": {"name": "pull"}}}}});
    system.apply(&policy_with("private", &shop.image("private", "v1"), secret)).await;
    system.says(POLICY, "private", ["Resolved", "False", "SecretNotFound"], &["pull"], ACTIVE).await;
    system.apply(&pull_secret("pull", r#"{"auths": {"other.example.com": {"auth": "dTpw"}}}"#)).await;
    system.says(POLICY, "private", ["Resolved", "False", "PullSecret"], &["no entry for"], CONVERGED).await;
    system.edit(SECRET, "pull", json!({"stringData": shop.secret("pull")["stringData"]})).await;
    active(&system, "private", &pushed.layer).await;

    // So is the key of last answers: it is written back as it was.
    let key = system.get(SECRET, "weir-decisions-key").await.unwrap();
    system.delete(SECRET, "weir-decisions-key").await;
    system
        .eventually(CONVERGED, "the key is written back", async || {
            let now = system.get(SECRET, "weir-decisions-key").await?;
            holds(now["data"] == key["data"] && now["metadata"]["uid"] != key["metadata"]["uid"], || "another key".to_owned())
        })
        .await;
}
