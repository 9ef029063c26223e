//! Two that want the same: an installation, a plugin's name, a variable.

use std::{sync::Arc, time::Duration};

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{
    PLUGINS_INSTALLED, annotated, deployment, event, installation, installation_with, installed, items, machine, maps, placed, rolled_out,
    shop::{Shop, Way, inside, plugin},
    tree, user,
};
use crate::kube::{
    api::{DATA_PLANE, INSTALLATION},
    faults::SHORT_LEASE,
    labs::{Lab, lab},
    ns::{CONVERGED, Ns, READY},
    shape::{containers, env, holds, merge, same},
};

pub(super) fn tests() -> Vec<Trial> {
    vec![lab("plugins-claims", claims), lab("plugins-names", names), lab("plugins-merged", merged)]
}

const LIBRARY: &str = "plugins-claims-library";

/// Namespaces of those who may use an installation, and of those who may not.
fn standing(installation: &Value) -> (Vec<Value>, Vec<Value>) {
    let all = machine(installation, "weir.dev/claims");
    let (granted, refused): (Vec<&Value>, Vec<&Value>) = items(&all).iter().partition(|claim| claim["granted"] == true);
    let namespaces = |claims: Vec<&Value>| claims.iter().map(|claim| claim["namespace"].clone()).collect();
    (namespaces(granted), namespaces(refused))
}

/// One installation, two gateways, each setting of the policy in turn.
async fn claims(lab: Lab) {
    let ns = &lab.ns;
    let Some(shop) = Shop::open(&lab) else { return };
    let library = Ns::create(ns.client.clone(), LIBRARY, ns.audit.clone(), Arc::clone(&ns.logs)).await;
    for rule in ["shared", "firstOwner", "sameNamespace"] {
        let settings = shop.settings("conflict-resolution", &json!({"pluginInstallations": rule}));
        let mut more = vec!["--watch-namespace", LIBRARY, "--allow-cross-namespace-plugins", "--settings", &settings];
        more.extend(SHORT_LEASE);
        let mut operator = shop.operator(&lab, &more);
        operator.wait_leading().await;
        let (name, gateway) = (rule.to_lowercase(), format!("{}-gw", rule.to_lowercase()));
        let digest = shop.push(Way::Oci, &name, "v1", &plugin(&name, "1.0.0"));
        library.apply(&installation(&name, &shop.image(&name, "v1"))).await;
        installed(&library, &name, &digest).await;
        // The stranger comes first, unless only natives get it.
        let (first, second) = if rule == "sameNamespace" { (&library, ns) } else { (ns, &library) };
        let object = user(&gateway, &[&format!("{LIBRARY}/{name}")]);
        first.apply(&object).await;
        rolled_out(first, &gateway, &[&digest]).await;
        second.apply(&object).await;
        if rule == "shared" {
            rolled_out(second, &gateway, &[&digest]).await;
        } else {
            let owner = format!("claimed by DataPlane {}/{gateway}", first.name);
            let wanted = [PLUGINS_INSTALLED, "False", "Rejected"];
            second.says(DATA_PLANE, &gateway, wanted, &[&owner, "the pods are without it"], CONVERGED).await;
            assert!(maps(&deployment(second, &gateway).await["spec"]["template"]["spec"]).is_empty());
            rolled_out(first, &gateway, &[&digest]).await;
        }
        let found = standing(&library.get(INSTALLATION, &name).await.unwrap());
        let (a, b) = (json!(first.name), json!(second.name));
        assert_eq!(found, if rule == "shared" { (vec![a, b], vec![]) } else { (vec![a], vec![b]) }, "{rule}");
        if rule == "firstOwner" {
            first.delete(DATA_PLANE, &gateway).await;
            rolled_out(second, &gateway, &[&digest]).await;
        }
        for ns in [first, second] {
            ns.delete(DATA_PLANE, &gateway).await;
        }
        operator.stop(Duration::from_secs(20));
    }
    library.clear().await;
}

/// Two installations with a plugin of one name, and one with the name of a plugin that Kong brings.
async fn names(lab: Lab) {
    let ns = &lab.ns;
    let Some(shop) = Shop::open(&lab) else { return };
    let operator = shop.operator(&lab, &[]);
    operator.wait_leading().await;
    let (a, b) = (plugin("same", "1.0.0"), plugin("same", "2.0.0"));
    for (name, files) in [("a", &a), ("b", &b)] {
        let digest = shop.push(Way::Docker, name, "v1", &inside("kong/plugins/same", files));
        ns.apply(&installation(name, &shop.image(name, "v1"))).await;
        installed(ns, name, &digest).await;
    }
    ns.apply(&user("gw", &["b", "a"])).await;
    // Neither is older as a claim on a name: the first by name has it, whatever the order in the spec.
    ns.says(DATA_PLANE, "gw", [PLUGINS_INSTALLED, "False", "Rejected"], &[&format!("{}/b: ", ns.name), "not in the pods"], READY).await;
    ns.eventually(READY, "the name is in the pods once", async || {
        let made = deployment(ns, "gw").await;
        same("KONG_PLUGINS", env(&made).get("KONG_PLUGINS").map(String::as_str), Some("bundled,same"))?;
        same("files", tree(ns, &made).await?, placed("same", &a))
    })
    .await;
    let words = ["plugin name same", &format!("{}/a", ns.name), &format!("not {}/b", ns.name)];
    event(ns, "DataPlane", "gw", "OldestKept", &words).await;

    let files = plugin("cors", "9.0.0");
    let digest = shop.push(Way::Oci, "c", "v1", &files);
    ns.apply(&installation_with("c", &shop.image("c", "v1"), annotated(json!({"weir.dev/plugin-name": "cors"})))).await;
    installed(ns, "c", &digest).await;
    event(ns, "KongPluginInstallation", "c", "ShadowsBundledPlugin", &["plugin cors", "choose another name"]).await;
    ns.apply(&user("shadow", &["c"])).await;
    rolled_out(ns, "shadow", &[&digest]).await;
    event(ns, "DataPlane", "shadow", "ShadowsBundled", &["cors", "replaces the plugin that Kong bundles"]).await;
    let made = deployment(ns, "shadow").await;
    assert_eq!(env(&made)["KONG_PLUGINS"], "bundled,cors");
    assert_eq!(tree(ns, &made).await.unwrap(), placed("cors", &files));
}

/// What the user says in the two variables, and what the plugins need there, are both in them.
async fn merged(lab: Lab) {
    let ns = &lab.ns;
    let Some(shop) = Shop::open(&lab) else { return };
    let operator = shop.operator(&lab, &[]);
    operator.wait_leading().await;
    let digest = shop.push(Way::Oci, "p", "v1", &plugin("p", "1.0.0"));
    ns.apply(&installation("p", &shop.image("p", "v1"))).await;
    let vars = json!([{"name": "KONG_PLUGINS", "value": "bundled,mine"}, {"name": "KONG_LUA_PACKAGE_PATH", "value": "/mine/?.lua;;"}]);
    let mut gateway = user("gw", &["p"]);
    merge(&mut gateway, containers(json!([{"name": "proxy", "image": "kong:3.9", "env": vars}])));
    ns.apply(&gateway).await;
    rolled_out(ns, "gw", &[&digest]).await;
    let vars = env(&deployment(ns, "gw").await);
    assert_eq!(vars["KONG_PLUGINS"], "bundled,mine,p");
    assert_eq!(vars["KONG_LUA_PACKAGE_PATH"], "/mine/?.lua;/opt/?.lua;/opt/?/init.lua;;");
    // Without the plugin, the user's own words are left.
    ns.edit(DATA_PLANE, "gw", json!({"spec": {"pluginsToInstall": null}})).await;
    ns.eventually(CONVERGED, "the user's words alone", async || {
        let vars = env(&deployment(ns, "gw").await);
        let found = ["KONG_PLUGINS", "KONG_LUA_PACKAGE_PATH"].map(|name| vars.get(name).map(String::as_str));
        holds(found == [Some("bundled,mine"), Some("/mine/?.lua;;")], || format!("{found:?}"))
    })
    .await;
}
