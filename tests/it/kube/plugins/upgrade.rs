//! Another image: pods roll to another set, the old one stays for those who may go back; a bad one takes nothing away.

use std::collections::BTreeSet;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{
    PULLED, Upgradable, deployment, installed, maps, of, placed, rolled_out,
    shop::{Way, plugin},
    tree, upgradable,
};
use crate::kube::{
    api::{CONFIG_MAP, DATA_PLANE, INSTALLATION, POD, REPLICA_SET},
    labs::{Lab, lab},
    mistakes::replicas_are,
    ns::{CONVERGED, Ns, READY},
    shape::{holds, image, name_of, proxy, same},
};

pub(super) fn tests() -> Vec<Trial> {
    vec![lab("plugins-upgrade", upgrade)]
}

fn mounted(holder: &Value) -> BTreeSet<String> {
    maps(&holder["spec"]["template"]["spec"])
}

/// What must not change of a ConfigMap.
async fn frozen(ns: &Ns, names: &BTreeSet<String>) -> Vec<Value> {
    let mut all = Vec::new();
    for name in names {
        let map = ns.get(CONFIG_MAP, name).await.unwrap();
        all.push(json!([map["metadata"]["uid"], map["immutable"], map["data"]]));
    }
    all
}

async fn upgrade(lab: Lab) {
    let ns = &lab.ns;
    let Some(stock) = upgradable(&lab, [Way::Docker, Way::Oci]).await else { return };
    let Upgradable { shop, one, two, second, .. } = &stock;
    let before = deployment(ns, "gw").await;
    assert_eq!(tree(ns, &before).await.unwrap(), placed("p", one));
    let old = mounted(&before);
    let old_set = frozen(ns, &old).await;

    ns.edit(INSTALLATION, "p", of(&shop.image("p", "v2"))).await;
    installed(ns, "p", second).await;
    rolled_out(ns, "gw", &[second]).await;
    let after = deployment(ns, "gw").await;
    let new = mounted(&after);
    assert!(!new.is_empty() && new.is_disjoint(&old), "{new:?} after {old:?}");
    assert_eq!(tree(ns, &after).await.unwrap(), placed("p", two));
    ns.eventually(CONVERGED, "only pods with the new set are left", async || {
        let pods = ns.list(POD, "app=gw").await?;
        let wrong: Vec<String> = pods.iter().filter(|pod| maps(&pod["spec"]) != new).map(name_of).collect();
        holds(!pods.is_empty() && wrong.is_empty(), || format!("{wrong:?} of {}", pods.len()))
    })
    .await;
    // Whoever undoes the rollout finds what it had.
    let sets = ns.list(REPLICA_SET, "app=gw").await.unwrap();
    let former: Vec<&Value> = sets.iter().filter(|set| mounted(set) == old).collect();
    assert_eq!(former.len(), 1, "{sets:#?}");
    assert_eq!(tree(ns, former[0]).await.unwrap(), placed("p", one));
    assert_eq!(frozen(ns, &old).await, old_set);

    // Two bad ones: what is in force stays, and the gateway goes on with everything else.
    let mut lacking = plugin("p", "3.0.0");
    lacking.remove("schema.lua");
    shop.push(Way::Oci, "p", "v3", &lacking);
    let bad: [(&str, &[&str], &str, i32); 2] = [
        ("v3", &["no schema.lua", "stays on every DataPlane", second], "kong:3.10", 2),
        ("absent", &["does not exist", "check repository and tag", "stays on every DataPlane", second], "kong:3.11", 3),
    ];
    for (tag, words, kong, replicas) in bad {
        ns.edit(INSTALLATION, "p", of(&shop.image("p", tag))).await;
        ns.says(INSTALLATION, "p", ["Accepted", "False", "Failed"], words, PULLED).await;
        ns.edit(DATA_PLANE, "gw", image(kong)).await;
        ns.edit(DATA_PLANE, "gw", json!({"spec": {"deployment": {"replicas": replicas}}})).await;
        replicas_are(ns, "gw", replicas).await;
        ns.eventually(CONVERGED, "the DataPlane's own image goes through", async || {
            same("image", proxy(&deployment(ns, "gw").await)["image"].clone(), json!(kong))
        })
        .await;
        ns.ready("gw", READY).await;
        rolled_out(ns, "gw", &[second]).await;
        assert_eq!(tree(ns, &deployment(ns, "gw").await).await.unwrap(), placed("p", two));
    }

    let four = plugin("p", "4.0.0");
    let fourth = shop.push(Way::Raw, "p", "v4", &four);
    ns.edit(INSTALLATION, "p", of(&shop.image("p", "v4"))).await;
    installed(ns, "p", &fourth).await;
    rolled_out(ns, "gw", &[&fourth]).await;
    assert_eq!(tree(ns, &deployment(ns, "gw").await).await.unwrap(), placed("p", &four));
}
