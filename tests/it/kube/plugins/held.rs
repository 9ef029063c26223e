//! Updates that wait for an owner's word: of the installation, of the DataPlane.

use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{
    PLUGINS_INSTALLED, PULLED, ROLLOUT_HELD, Upgradable, annotated, deployment, installation, installation_with, installed, machine,
    message, naming, of, placed, rolled_out,
    shop::{Shop, Way, plugin},
    stays, tree, upgradable, user,
};
use crate::kube::{
    api::{DATA_PLANE, INSTALLATION},
    labs::{Lab, lab},
    mistakes::replicas_are,
    ns::{CONVERGED, Ns},
    shape::{image, proxy, same},
};

pub(super) fn tests() -> Vec<Trial> {
    vec![lab("plugins-approved", approved), lab("plugins-held", held), lab("plugins-named", named)]
}

const A_WHILE: Duration = Duration::from_secs(4);
const NOBODYS: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

async fn approve(ns: &Ns, digest: &str) {
    ns.edit(INSTALLATION, "p", annotated(json!({"weir.dev/approved-digest": digest}))).await;
}

async fn waits(ns: &Ns, words: &[&str]) {
    ns.says(INSTALLATION, "p", [ROLLOUT_HELD, "True", "AwaitingApproval"], words, PULLED).await;
}

/// The installation's owner holds.
async fn approved(lab: Lab) {
    let ns = &lab.ns;
    let Some(shop) = Shop::open(&lab) else { return };
    let operator = shop.operator(&lab, &[]);
    operator.wait_leading().await;
    let first = shop.push(Way::Oci, "p", "v1", &plugin("p", "1.0.0"));
    let second = shop.push(Way::Oci, "p", "v2", &plugin("p", "2.0.0"));

    // The first one waits too.
    ns.apply(&installation_with("p", &shop.image("p", "v1"), annotated(json!({"weir.dev/rollout": "Manual"})))).await;
    waits(ns, &[&first, "weir.dev/approved-digest", "nothing is in force yet"]).await;
    ns.says(INSTALLATION, "p", ["Accepted", "False", "Pending"], &[&first], CONVERGED).await;
    approve(ns, NOBODYS).await;
    waits(ns, &[&first, NOBODYS, "changes nothing"]).await;
    approve(ns, &first).await;
    installed(ns, "p", &first).await;
    ns.says(INSTALLATION, "p", [ROLLOUT_HELD, "False", "NothingHeld"], &[], CONVERGED).await;
    ns.apply(&user("gw", &["p"])).await;
    rolled_out(ns, "gw", &[&first]).await;
    let template = deployment(ns, "gw").await["spec"]["template"].clone();

    // An update waits; the approval that is there is of the former one, and that is said.
    ns.edit(INSTALLATION, "p", of(&shop.image("p", "v2"))).await;
    waits(ns, &[&second, "stays in force", &first, "which does not wait, and changes nothing"]).await;
    ns.says(INSTALLATION, "p", ["Accepted", "True", "Ready"], &["waits", &first], CONVERGED).await;
    stays(ns, "gw", A_WHILE, &template).await;
    let in_force = machine(&ns.get(INSTALLATION, "p").await.unwrap(), "weir.dev/artifact");
    assert_eq!((&in_force["digest"], &in_force["candidate"]["digest"]), (&json!(first), &json!(second)));
    approve(ns, &second).await;
    installed(ns, "p", &second).await;
    rolled_out(ns, "gw", &[&second]).await;
    ns.says(INSTALLATION, "p", [ROLLOUT_HELD, "False", "NothingHeld"], &[], CONVERGED).await;
}

/// Hash of the change that waits, as the message names it.
pub(super) fn pending(gateway: &Value) -> Result<String, String> {
    let message = message(gateway, ROLLOUT_HELD);
    let hash = message.split_once("weir.dev/approved-rollout: ").and_then(|(_, rest)| rest.split(' ').next());
    hash.map(str::to_owned).ok_or_else(|| format!("no hash in {message:?}"))
}

async fn waits_for_owner(ns: &Ns, words: &[&str]) -> String {
    pending(&ns.says(DATA_PLANE, "gw", [ROLLOUT_HELD, "True", "ForeignChange"], words, CONVERGED).await).unwrap()
}

pub(super) async fn let_go(ns: &Ns, hash: &str) {
    ns.edit(DATA_PLANE, "gw", annotated(json!({"weir.dev/approved-rollout": hash}))).await;
}

async fn hold(ns: &Ns) {
    ns.edit(DATA_PLANE, "gw", annotated(json!({"weir.dev/rollout": "Manual"}))).await;
    ns.says(DATA_PLANE, "gw", [ROLLOUT_HELD, "False", "NothingHeld"], &[], CONVERGED).await;
}

/// The DataPlane's owner holds: what comes from the installation waits, what is the owner's own does not.
async fn held(lab: Lab) {
    let ns = &lab.ns;
    let Some(stock) = upgradable(&lab, [Way::Docker, Way::Docker]).await else { return };
    let Upgradable { shop, one, two, second, .. } = &stock;
    hold(ns).await;
    let template = deployment(ns, "gw").await["spec"]["template"].clone();

    ns.edit(INSTALLATION, "p", of(&shop.image("p", "v2"))).await;
    installed(ns, "p", second).await;
    let stale = waits_for_owner(ns, &["volume plugin-p changed"]).await;
    ns.says(DATA_PLANE, "gw", [PLUGINS_INSTALLED, "True", "Installed"], &["waits"], CONVERGED).await;
    stays(ns, "gw", A_WHILE, &template).await;

    // An own change rolls with the content in force, scaling too; the change that waits has another hash then.
    ns.edit(DATA_PLANE, "gw", image("kong:3.10")).await;
    ns.edit(DATA_PLANE, "gw", json!({"spec": {"deployment": {"replicas": 2}}})).await;
    replicas_are(ns, "gw", 2).await;
    ns.eventually(CONVERGED, "the owner's own change rolls", async || {
        let now = deployment(ns, "gw").await;
        same("image", proxy(&now)["image"].clone(), json!("kong:3.10"))?;
        same("files", tree(ns, &now).await?, placed("p", one))
    })
    .await;
    let hash = ns
        .eventually(CONVERGED, "another hash", async || {
            let hash = pending(&ns.get(DATA_PLANE, "gw").await?)?;
            if hash == stale { Err(hash) } else { Ok(hash) }
        })
        .await;
    let template = deployment(ns, "gw").await["spec"]["template"].clone();
    let_go(ns, &stale).await;
    waits_for_owner(ns, &[&hash, &stale, "which does not wait, and changes nothing"]).await;
    stays(ns, "gw", A_WHILE, &template).await;
    let_go(ns, &hash).await;
    rolled_out(ns, "gw", &[second]).await;
    ns.says(DATA_PLANE, "gw", [ROLLOUT_HELD, "False", "NothingHeld"], &[], CONVERGED).await;
    assert_eq!(tree(ns, &deployment(ns, "gw").await).await.unwrap(), placed("p", two));
}

/// Naming an installation is an own change, also where who may use it is decided a moment later.
async fn named(lab: Lab) {
    let ns = &lab.ns;
    let Some(shop) = Shop::open(&lab) else { return };
    let operator = shop.operator(&lab, &[]);
    operator.wait_leading().await;
    let digest = shop.push(Way::Oci, "p", "v1", &plugin("p", "1.0.0"));
    ns.apply(&installation("p", &shop.image("p", "v1"))).await;
    installed(ns, "p", &digest).await;
    ns.apply(&user("gw", &[])).await;
    ns.ready("gw", PULLED).await;
    hold(ns).await;
    ns.edit(DATA_PLANE, "gw", naming(&["p"])).await;
    rolled_out(ns, "gw", &[&digest]).await;
}
