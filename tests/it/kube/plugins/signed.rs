//! Only what the right people have signed reaches a pod, and files of settings are read again with no restart.

use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::json;
use weir_testkit::{binaries, skipped};

use super::{
    PULLED, annotated, deployment, installation, installed, message, of, rolled_out,
    shop::{Shop, Way, plugin},
    stays, user,
};
use crate::kube::{
    api::INSTALLATION,
    labs::{Lab, lab},
    ns::CONVERGED,
    shape::holds,
};

pub(super) fn tests() -> Vec<Trial> {
    vec![lab("plugins-signed", signed), lab("plugins-settings", settings)]
}

const A_WHILE: Duration = Duration::from_secs(5);

async fn signed(lab: Lab) {
    let ns = &lab.ns;
    let Some(shop) = Shop::open(&lab) else { return };
    if let Some(reason) = binaries::missing_cosign() {
        return skipped("kube plugins signed", &reason).unwrap();
    }
    let ours = shop.registry.cosign_key(&shop.scratch(), "ours").unwrap();
    let host = shop.registry.host();
    let list = shop.list("verification.yaml", &[(&format!("{host}/signed-p"), &ours.public)]);
    let operator = shop.operator(&lab, &["--verification-file", list.to_str().unwrap()]);
    operator.wait_leading().await;
    let by_digest = |digest: &str| format!("{host}/signed-p@{digest}");
    let first = shop.push(Way::Oci, "signed-p", "v1", &plugin("p", "1.0.0"));
    let failed = ["Accepted", "False", "Failed"];
    let words = ["the operator's verification list", "is not signed", "sha256-", "referrers", &first];
    ns.apply(&installation("p", &shop.image("signed-p", "v1"))).await;
    ns.apply(&user("gw", &["p"])).await;
    ns.says(INSTALLATION, "p", failed, &words, PULLED).await;
    shop.registry.cosign_sign_simple(&by_digest(&first), &ours).unwrap();
    ns.edit(INSTALLATION, "p", annotated(json!({"weir.dev/check-at": "signed"}))).await;
    installed(ns, "p", &first).await;
    rolled_out(ns, "gw", &[&first]).await;

    // The next one is not: the pods keep the signed one.
    let template = deployment(ns, "gw").await["spec"]["template"].clone();
    let second = shop.push(Way::Oci, "signed-p", "v2", &plugin("p", "2.0.0"));
    ns.edit(INSTALLATION, "p", of(&shop.image("signed-p", "v2"))).await;
    ns.says(INSTALLATION, "p", failed, &["is not signed", &second, &first, "stays on every DataPlane"], PULLED).await;
    stays(ns, "gw", A_WHILE, &template).await;
    ns.ready("gw", CONVERGED).await;
    shop.registry.cosign_sign_simple(&by_digest(&second), &ours).unwrap();
    ns.edit(INSTALLATION, "p", annotated(json!({"weir.dev/check-at": "again"}))).await;
    rolled_out(ns, "gw", &[&second]).await;

    // A list of somebody else has what is in force looked at again; the pods keep it, and nothing rolls.
    let template = deployment(ns, "gw").await["spec"]["template"].clone();
    let other = shop.registry.cosign_key(&shop.scratch(), "other").unwrap();
    shop.list_at(&list, &[(&host, &other.public)]);
    ns.says(INSTALLATION, "p", failed, &["other.pub", &second, "stays on every DataPlane"], PULLED).await;
    stays(ns, "gw", A_WHILE, &template).await;
    shop.list_at(&list, &[(&host, &ours.public)]);
    installed(ns, "p", &second).await;
    stays(ns, "gw", Duration::from_secs(1), &template).await;
    let metrics = operator.metrics().await;
    for (outcome, least) in [("NotSigned", 1.5), ("WrongSigner", 0.5), ("Verified", 1.5)] {
        let labels = [("artifact", "Plugin"), ("outcome", outcome)];
        assert!(metrics.sum("weir_verifications_total", &labels) > least, "{outcome}: {}", metrics.0);
    }
}

async fn settings(lab: Lab) {
    let ns = &lab.ns;
    let Some(mut shop) = Shop::private(&lab) else { return };
    let host = shop.registry.host();
    let dir = shop.scratch();
    let (file, auth) = (dir.join("registries.yaml"), dir.join("auth.json"));
    let head = "apiVersion: weir.dev/v1alpha1\nkind: Registries\nauthFile: auth.json\n";
    std::fs::write(&file, head).unwrap();
    std::fs::write(&auth, shop.registry.docker_config().unwrap().to_string()).unwrap();
    let digest = shop.push(Way::Oci, "p", "v1", &plugin("p", "1.0.0"));
    let operator = lab.operator("weir", &["--registries-file", file.to_str().unwrap()]);
    operator.wait_leading().await;

    // Its own loopback is nobody's registry, until the file names it.
    ns.apply(&installation("p", &shop.image("p", "v1"))).await;
    ns.says(INSTALLATION, "p", ["Accepted", "False", "Failed"], &["a loopback address", "which is not dialled"], PULLED).await;
    std::fs::write(&file, format!("{head}registries: [{{prefix: \"{host}\", insecure: true}}]\n")).unwrap();
    installed(ns, "p", &digest).await;

    // A broken file is told, and changes nothing.
    std::fs::write(&file, format!("{head}registries: [{{prefix: \"{host}\", insecured: true}}]\n")).unwrap();
    ns.eventually(CONVERGED, "the broken file is told", async || {
        let (code, body) = operator.probe("/readyz?verbose").await?;
        let valid = operator.metrics().await.sum("weir_settings_file_valid", &[("file", "Registries")]);
        holds(code == 200 && valid < 0.5 && body.contains("settings --registries-file: not ok") && body.contains("insecured"), || body)
    })
    .await;
    let second = shop.push(Way::Oci, "p", "v2", &plugin("p", "2.0.0"));
    ns.edit(INSTALLATION, "p", of(&shop.image("p", "v2"))).await;
    installed(ns, "p", &second).await;

    // Credentials are read again as well.
    std::fs::write(&file, format!("{head}registries: [{{prefix: \"{host}\", insecure: true}}]\n")).unwrap();
    shop.registry.set_password("second-password").unwrap();
    let third = shop.push(Way::Oci, "p", "v3", &plugin("p", "3.0.0"));
    ns.edit(INSTALLATION, "p", of(&shop.image("p", "v3"))).await;
    let object = ns.says(INSTALLATION, "p", ["Accepted", "False", "Failed"], &["refuses the credentials"], PULLED).await;
    assert!(!message(&object, "Accepted").contains("password\""), "{object:#}");
    std::fs::write(&auth, shop.registry.docker_config().unwrap().to_string()).unwrap();
    installed(ns, "p", &third).await;
    let log = operator.log();
    assert!(!log.contains("first-password") && !log.contains("second-password"), "the log tells a password");
}
