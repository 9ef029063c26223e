//! Another image: pods roll to another set, the old one stays for those who may go back; a bad one takes nothing away.

use std::{collections::BTreeSet, time::Duration};

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{
    PLUGINS_INSTALLED, PULLED, ROLLOUT_HELD, Upgradable, annotation, deployment,
    held::{let_go, pending},
    installed, maps, of, placed, rolled_out,
    shop::{Way, plugin},
    stays, tree, upgradable,
};
use crate::kube::{
    api::{self, CONFIG_MAP, DATA_PLANE, DEPLOYMENT, INSTALLATION, JSON_PATCH, POD, REPLICA_SET},
    labs::{Lab, lab},
    mistakes::replicas_are,
    ns::{CONVERGED, Ns, READY},
    shape::{condition, env, holds, image, name_of, proxy, same},
};

pub(super) fn tests() -> Vec<Trial> {
    vec![lab("plugins-upgrade", upgrade), lab("plugins-undo", undone)]
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

const REVISION: &str = "deployment.kubernetes.io/revision";
/// Annotations that kubectl leaves to the Deployment.
const OF_THE_DEPLOYMENT: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    "deployment.kubernetes.io/revision-history",
    "deployment.kubernetes.io/desired-replicas",
    "deployment.kubernetes.io/max-replicas",
    "deprecated.deployment.rollback.to",
];

/// `kubectl rollout undo`: the template of the revision before, and the annotations of its ReplicaSet in the place of the Deployment's, in one
/// JSON patch.
async fn undo(ns: &Ns, gateway: &str) {
    let live = deployment(ns, gateway).await;
    let mut sets = ns.list(REPLICA_SET, &format!("app={gateway}")).await.unwrap();
    sets.sort_by_key(|set| annotation(set, REVISION).parse::<u64>().unwrap());
    let former = &sets[sets.len() - 2];
    let mut template = former["spec"]["template"].clone();
    template["metadata"]["labels"].as_object_mut().unwrap().remove("pod-template-hash");
    let of = |object: &Value| object["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
    let kept = |key: &str| OF_THE_DEPLOYMENT.contains(&key);
    let mut annotations = of(&live);
    annotations.retain(|key, _| kept(key));
    annotations.extend(of(former).into_iter().filter(|(key, _)| !kept(key)));
    let patch = json!([
        {"op": "replace", "path": "/spec/template", "value": template},
        {"op": "replace", "path": "/metadata/annotations", "value": annotations},
    ]);
    let path = format!("{}/dataplane-{gateway}?fieldManager=kubectl-rollout", DEPLOYMENT.path(&ns.name));
    let done = api::call(&ns.client, "PATCH", &path, JSON_PATCH, &patch).await;
    done.map_err(String::from).unwrap_or_else(|error| panic!("undo: {error}\n{patch:#}"));
}

/// Waits until somebody's way back is said, and gives the word that goes forward.
async fn rolled_back(ns: &Ns, words: &[&str]) -> String {
    pending(&ns.says(DATA_PLANE, "gw", [ROLLOUT_HELD, "True", "RolledBack"], words, CONVERGED).await).unwrap()
}

async fn nothing_is_held(ns: &Ns) {
    ns.eventually(CONVERGED, "nothing is held", async || {
        let gateway = ns.get(DATA_PLANE, "gw").await?;
        holds(condition(&gateway, ROLLOUT_HELD).is_none(), || format!("{:#}", gateway["status"]))
    })
    .await;
}

/// Whoever undoes a rollout has the old plugin, and keeps it until the owner goes forward.
async fn undone(lab: Lab) {
    const A_WHILE: Duration = Duration::from_secs(4);
    let ns = &lab.ns;
    let Some(stock) = upgradable(&lab, [Way::Docker, Way::Oci]).await else { return };
    let Upgradable { shop, one, two, first, second, mut operator } = stock;
    let old = mounted(&deployment(ns, "gw").await);
    ns.edit(INSTALLATION, "p", of(&shop.image("p", "v2"))).await;
    installed(ns, "p", &second).await;
    rolled_out(ns, "gw", &[&second]).await;

    // The old plugin is back, and every side says so.
    undo(ns, "gw").await;
    let hash = rolled_back(ns, &["a rollout was undone", "volume plugin-p changed"]).await;
    rolled_out(ns, "gw", &[&first]).await;
    ns.says(DATA_PLANE, "gw", [PLUGINS_INSTALLED, "True", "Installed"], &["p 1.0.0", "rolled out again", "waits"], CONVERGED).await;
    assert_eq!(tree(ns, &deployment(ns, "gw").await).await.unwrap(), placed("p", &one));
    ns.eventually(READY, "only pods with the old set are left", async || {
        let pods = ns.list(POD, "app=gw").await?;
        let wrong: Vec<String> = pods.iter().filter(|pod| maps(&pod["spec"]) != old).map(name_of).collect();
        holds(!pods.is_empty() && wrong.is_empty(), || format!("{wrong:?} of {}", pods.len()))
    })
    .await;
    // Through scaling, a restart of the operator, and pods that are made again by hand.
    let template = deployment(ns, "gw").await["spec"]["template"].clone();
    ns.edit(DATA_PLANE, "gw", json!({"spec": {"deployment": {"replicas": 2}}})).await;
    replicas_are(ns, "gw", 2).await;
    operator.stop_and_restart();
    operator.wait_leading().await;
    stays(ns, "gw", A_WHILE, &template).await;
    rolled_back(ns, &[&hash]).await;

    // Exactly that step goes forward, once.
    let_go(ns, &hash).await;
    rolled_out(ns, "gw", &[&second]).await;
    nothing_is_held(ns).await;
    assert_eq!(tree(ns, &deployment(ns, "gw").await).await.unwrap(), placed("p", &two));
    undo(ns, "gw").await;
    let next = rolled_back(ns, &["which does not wait, and changes nothing"]).await;
    assert_ne!(next, hash);
    // And so does the owner's next change.
    ns.edit(DATA_PLANE, "gw", image("kong:3.10")).await;
    rolled_out(ns, "gw", &[&second]).await;
    nothing_is_held(ns).await;
    assert_eq!(proxy(&deployment(ns, "gw").await)["image"], "kong:3.10");

    // Somebody who only writes values of ours is repaired as ever.
    let theirs = json!({"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 31}}, "minReadySeconds": 1}});
    ns.try_edit("fighter", DEPLOYMENT, "dataplane-gw", &theirs).await.map_err(String::from).unwrap();
    ns.eventually(CONVERGED, "it is repaired", async || {
        same("seconds", deployment(ns, "gw").await["spec"]["template"]["spec"]["terminationGracePeriodSeconds"].clone(), json!(30))
    })
    .await;
    nothing_is_held(ns).await;
    gone_again(ns).await;
}

/// A plugin that the spec does not name any more comes back with the undone rollout, and goes forward without leaving anything behind.
async fn gone_again(ns: &Ns) {
    ns.edit(DATA_PLANE, "gw", json!({"spec": {"pluginsToInstall": null}})).await;
    ns.eventually(CONVERGED, "the pods are without the plugin", async || same("sets", mounted(&deployment(ns, "gw").await).len(), 0)).await;
    ns.ready("gw", READY).await;
    // kubectl goes to the revision before, which is the fighter's or ours: both have the plugin.
    undo(ns, "gw").await;
    rolled_back(ns, &["volume plugin-p removed"]).await;
    ns.says(DATA_PLANE, "gw", [PLUGINS_INSTALLED, "True", "Installed"], &["p 2.0.0"], CONVERGED).await;
    ns.edit(DATA_PLANE, "gw", image("kong:3.11")).await;
    ns.eventually(CONVERGED, "nothing of it is left", async || {
        let made = deployment(ns, "gw").await;
        same("image", proxy(&made)["image"].clone(), json!("kong:3.11"))?;
        same("sets", mounted(&made).len(), 0)?;
        same("KONG_LUA_PACKAGE_PATH", env(&made).get("KONG_LUA_PACKAGE_PATH").cloned(), None)?;
        let managers = made["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        let left: Vec<Value> = managers.into_iter().filter(|entry| entry["manager"] == "kubectl-rollout").collect();
        holds(left.is_empty(), || format!("{left:#?}"))
    })
    .await;
    ns.ready("gw", READY).await;
    nothing_is_held(ns).await;
}
