//! Only what the right people have signed ever runs.

use libtest_mimic::Trial;
use serde_json::json;
use weir_testkit::{binaries, skipped};

use super::{ACTIVE, active, image, policy_with, push, variant};
use crate::kube::{
    api::POLICY,
    labs::{Lab, lab},
    plugins::shop::Shop,
};

pub(super) fn tests() -> Vec<Trial> {
    vec![lab("policies-verified", verified)]
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
