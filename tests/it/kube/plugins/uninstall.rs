//! What goes when, and what stays: pods keep their content as long as anybody may go back to it, and nothing is left at the end.

use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{
    PLUGINS_INSTALLED, annotation, deployment, installation, installed, items, maps, placed, rolled_out, sets,
    shop::{Shop, Way, plugin},
    stays, text, tree, user,
};
use crate::kube::{
    api::{CONFIG_MAP, DATA_PLANE, DEPLOYMENT, INSTALLATION, REPLICA_SET, SECRET, SERVICE},
    labs::{Lab, lab},
    ns::{COLLECTED, CONVERGED, Ns, READY},
    shape::{env, holds, name_of, same},
};

pub(super) fn tests() -> Vec<Trial> {
    vec![lab("plugins-uninstall", uninstall)]
}

const A_WHILE: Duration = Duration::from_secs(4);

/// Names of the owners of the only set that pods mount.
async fn owners(ns: &Ns) -> Result<Vec<String>, String> {
    let (_, mounted) = sets(ns).await?;
    let [map] = mounted.as_slice() else { return Err(format!("{:?}", mounted.iter().map(name_of).collect::<Vec<_>>())) };
    let mut names: Vec<String> = items(&map["metadata"]["ownerReferences"]).iter().map(|owner| text(&owner["name"]).to_owned()).collect();
    names.sort_unstable();
    Ok(names)
}

/// Somebody deletes ReplicaSets that have no pods any more.
async fn forget_history(ns: &Ns, gateway: &str) {
    let old = ns
        .eventually(READY, "one ReplicaSet with pods is left", async || {
            let sets = ns.list(REPLICA_SET, &format!("app={gateway}")).await?;
            let (old, new): (Vec<Value>, Vec<Value>) = sets.into_iter().partition(|set| set["spec"]["replicas"] == 0);
            if new.len() == 1 { Ok(old) } else { Err(format!("{:?}", new.iter().map(name_of).collect::<Vec<_>>())) }
        })
        .await;
    for set in &old {
        ns.delete(REPLICA_SET, &name_of(set)).await;
    }
}

async fn uninstall(lab: Lab) {
    let ns = &lab.ns;
    let Some(shop) = Shop::open(&lab) else { return };
    let operator = shop.operator(&lab, &[]);
    operator.wait_leading().await;
    let files = plugin("p", "1.0.0");
    let digest = shop.push(Way::Oci, "p", "v1", &files);
    ns.apply(&installation("p", &shop.image("p", "v1"))).await;
    installed(ns, "p", &digest).await;
    for name in ["gw", "other"] {
        ns.apply(&user(name, &["p"])).await;
        rolled_out(ns, name, &[&digest]).await;
    }
    let both = vec!["gw".to_owned(), "other".to_owned()];
    assert_eq!(owners(ns).await, Ok(both.clone()), "one set for both");
    let template = deployment(ns, "gw").await["spec"]["template"].clone();

    // The installation goes, and its own copy with it; pods have what they had.
    ns.delete(INSTALLATION, "p").await;
    let wanted = [PLUGINS_INSTALLED, "False", "ReferencedResourcesNotAvailable"];
    for name in ["gw", "other"] {
        ns.says(DATA_PLANE, name, wanted, &["does not exist", &digest, "stays in the pods"], CONVERGED).await;
    }
    ns.eventually(COLLECTED, "the installation's own copy is collected", async || same("sets", sets(ns).await?.0.len(), 0)).await;
    stays(ns, "gw", A_WHILE, &template).await;
    assert_eq!(tree(ns, &deployment(ns, "gw").await).await.unwrap(), placed("p", &files));
    assert_eq!(owners(ns).await, Ok(both.clone()));

    // The reference goes: the pods roll without it, and an old ReplicaSet still holds the set.
    ns.edit(DATA_PLANE, "gw", json!({"spec": {"pluginsToInstall": null}})).await;
    ns.eventually(CONVERGED, "the pods are without the plugin", async || {
        let made = deployment(ns, "gw").await;
        same("ConfigMaps", maps(&made["spec"]["template"]["spec"]).len(), 0)?;
        same("KONG_PLUGINS", env(&made).get("KONG_PLUGINS").map(String::as_str), Some("bundled"))?;
        same("KONG_LUA_PACKAGE_PATH", env(&made).get("KONG_LUA_PACKAGE_PATH"), None)?;
        let gateway = ns.get(DATA_PLANE, "gw").await?;
        same("what is said to machines", annotation(&gateway, "weir.dev/plugins"), "")?;
        holds(!gateway["status"].to_string().contains(PLUGINS_INSTALLED), || gateway["status"].to_string())
    })
    .await;
    ns.ready("gw", READY).await;
    ns.always(A_WHILE, "the set is held by an old ReplicaSet", async || same("owners", owners(ns).await?, both.clone())).await;
    forget_history(ns, "gw").await;
    ns.eventually(CONVERGED, "gw lets the set go", async || same("owners", owners(ns).await?, vec!["other".to_owned()])).await;
    let kept = deployment(ns, "other").await;
    assert_eq!(tree(ns, &kept).await.unwrap(), placed("p", &files), "the other's pods have it");

    // The last one lets go while it lives: deleted. And a gateway that goes with a plugin leaves nothing.
    ns.edit(DATA_PLANE, "other", json!({"spec": {"pluginsToInstall": null}})).await;
    ns.ready("other", READY).await;
    forget_history(ns, "other").await;
    ns.eventually(CONVERGED, "the set is deleted", async || same("sets", sets(ns).await?.1.len(), 0)).await;
    ns.apply(&installation("p", &shop.image("p", "v1"))).await;
    ns.apply(&user("last", &["p"])).await;
    rolled_out(ns, "last", &[&digest]).await;
    for name in ["gw", "other", "last"] {
        ns.delete(DATA_PLANE, name).await;
    }
    ns.delete(INSTALLATION, "p").await;
    ns.eventually(COLLECTED, "nothing is left", async || {
        for kind in [DEPLOYMENT, SERVICE, SECRET] {
            same(kind.kind, ns.list(kind, "gateway-operator.konghq.com/managed-by").await?.len(), 0)?;
        }
        same("ReplicaSets", ns.list(REPLICA_SET, "app").await?.len(), 0)?;
        same("ConfigMaps", ns.list(CONFIG_MAP, super::CONTENT).await?.len(), 0)
    })
    .await;
}
