//! Plugins out of a real registry into pods, and out of them again (design section 7).

mod borders;
mod conflicts;
mod full;
mod held;
mod images;
mod install;
mod kills;
mod lua;
mod many;
mod registries;
pub(crate) mod shop;
mod signed;
mod spoilt;
mod uninstall;
mod upgrade;

use std::{collections::BTreeSet, time::Duration};

use libtest_mimic::Trial;
use serde_json::{Value, json};

use self::shop::{Files, Shop, Way, plugin};
use super::{
    api::{CONFIG_MAP, DATA_PLANE, DEPLOYMENT, EVENT, INSTALLATION},
    install::Running,
    labs::Lab,
    ns::{CONVERGED, Ns, READY, ready},
    shape::{condition, gateway_with, holds, merge, proxy, same},
};

pub(crate) fn tests() -> Vec<Trial> {
    [
        install::tests(),
        full::tests(),
        images::tests(),
        upgrade::tests(),
        held::tests(),
        uninstall::tests(),
        borders::tests(),
        registries::tests(),
        signed::tests(),
        conflicts::tests(),
        lua::tests(),
        kills::tests(),
        spoilt::tests(),
        many::tests(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// An artifact is fetched, packaged and stored by then.
const PULLED: Duration = Duration::from_secs(20);
/// Label of every ConfigMap with plugin content.
const CONTENT: &str = "weir.dev/plugin-content";
const PLUGINS_INSTALLED: &str = "PluginsInstalled";
const ROLLOUT_HELD: &str = "RolloutHeld";

/// An installation of an image.
fn installation(name: &str, image: &str) -> Value {
    json!({
        "apiVersion": INSTALLATION.api_version,
        "kind": INSTALLATION.kind,
        "metadata": {"name": name},
        "spec": {"image": image}
    })
}

/// The same with a merge patch on top.
fn installation_with(name: &str, image: &str, patch: Value) -> Value {
    let mut object = installation(name, image);
    merge(&mut object, patch);
    object
}

/// A patch that names another image.
fn of(image: &str) -> Value {
    json!({"spec": {"image": image}})
}

/// A patch of annotations; `null` removes one.
fn annotated(annotations: Value) -> Value {
    json!({"metadata": {"annotations": annotations}})
}

/// A patch that names installations, as `name` or `namespace/name`.
fn naming(plugins: &[&str]) -> Value {
    let reference = |plugin: &&str| match plugin.split_once('/') {
        Some((namespace, name)) => json!({"namespace": namespace, "name": name}),
        None => json!({"name": plugin}),
    };
    json!({"spec": {"pluginsToInstall": plugins.iter().map(reference).collect::<Vec<_>>()}})
}

/// A DataPlane with plugins, without a load balancer.
fn user(name: &str, plugins: &[&str]) -> Value {
    let mut object = gateway_with(name, naming(plugins));
    merge(&mut object, json!({"spec": {"network": {"services": {"ingress": {"type": "ClusterIP"}}}}}));
    object
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn annotation<'a>(object: &'a Value, key: &str) -> &'a str {
    text(&object["metadata"]["annotations"][key])
}

/// What an annotation says to machines.
fn machine(object: &Value, key: &str) -> Value {
    serde_json::from_str(annotation(object, key)).unwrap_or_default()
}

/// Message of a condition.
fn message(object: &Value, type_: &str) -> String {
    condition(object, type_).map(|c| text(&c["message"]).to_owned()).unwrap_or_default()
}

/// The Deployment of a DataPlane.
pub(crate) async fn deployment(ns: &Ns, gateway: &str) -> Value {
    ns.get(DEPLOYMENT, &format!("dataplane-{gateway}")).await.unwrap()
}

/// Waits until an installation gives the artifact with this digest, and says so.
async fn installed(ns: &Ns, name: &str, digest: &str) -> Value {
    ns.eventually(PULLED, &format!("{name} gives {digest}"), async || {
        let object = ns.get(INSTALLATION, name).await?;
        let artifact = machine(&object, "weir.dev/artifact");
        holds(artifact["digest"] == digest, || format!("{artifact:#}\n{:#}", object["status"]))?;
        let accepted = condition(&object, "Accepted").ok_or("no Accepted")?;
        let good = accepted["status"] == "True" && accepted["reason"] == "Ready" && text(&accepted["message"]).contains(digest);
        holds(good, || format!("{accepted:#}"))?;
        ready(&object).map(|()| object)
    })
    .await
}

/// Waits until all pods of a DataPlane have the artifacts with these digests, in the order of its spec, and it is ready.
async fn rolled_out(ns: &Ns, gateway: &str, digests: &[&str]) -> Value {
    ns.eventually(READY, &format!("{gateway} has rolled out {digests:?}"), async || {
        let object = ns.get(DATA_PLANE, gateway).await?;
        let standing = machine(&object, "weir.dev/plugins");
        let (each, all) = (items(&standing), digests.iter());
        let good = |(one, digest): (&Value, &&str)| {
            one["digest"] == *digest && ["fetched", "configured", "rolledOut"].iter().all(|field| one[*field] == true)
        };
        holds(each.len() == all.len() && each.iter().zip(all).all(good), || format!("{standing:#}\n{:#}", object["status"]))?;
        ready(&object).map(|()| object)
    })
    .await
}

/// Plugin `p` in two versions in a registry, and gateway `gw` whose pods have the first.
struct Upgradable {
    /// Dropped before the registry.
    operator: Running,
    shop: Shop,
    one: Files,
    two: Files,
    /// Digests of the two versions.
    first: String,
    second: String,
}

/// Installs the first version; each version is pushed in its own way. None where this machine has no registry.
async fn upgradable(lab: &Lab, ways: [Way; 2]) -> Option<Upgradable> {
    let ns = &lab.ns;
    let shop = Shop::open(lab)?;
    let operator = shop.operator(lab, &[]);
    operator.wait_leading().await;
    let (one, two) = (plugin("p", "1.0.0"), plugin("p", "2.0.0"));
    let [first, second] = [(ways[0], "v1", &one), (ways[1], "v2", &two)].map(|(way, tag, files)| shop.push(way, "p", tag, files));
    ns.apply(&installation("p", &shop.image("p", "v1"))).await;
    installed(ns, "p", &first).await;
    ns.apply(&user("gw", &["p"])).await;
    rolled_out(ns, "gw", &[&first]).await;
    Some(Upgradable { operator, shop, one, two, first, second })
}

/// The pods' template is this one for the whole time.
async fn stays(ns: &Ns, gateway: &str, time: Duration, template: &Value) {
    let what = format!("the template of {gateway} stays as it is");
    ns.always(time, &what, async || same("template", &deployment(ns, gateway).await["spec"]["template"], template)).await;
}

/// Waits for an event about an object whose message has every word.
async fn event(ns: &Ns, kind: &str, name: &str, reason: &str, words: &[&str]) {
    ns.eventually(CONVERGED, &format!("event {reason} on {kind} {name} with {words:?}"), async || {
        let all = ns.list(EVENT, "").await?;
        let about = |e: &&Value| e["involvedObject"]["kind"] == kind && e["involvedObject"]["name"] == name;
        let good = |e: &Value| e["reason"] == reason && words.iter().all(|word| text(&e["message"]).contains(word));
        let found: Vec<&Value> = all.iter().filter(about).collect();
        let told = || found.iter().map(|e| format!("{} {}", e["reason"], e["message"])).collect::<Vec<_>>().join("\n");
        holds(found.iter().any(|e| good(e)), told)
    })
    .await;
}

/// ConfigMaps with plugin content: those that installations keep, and those that pods mount.
async fn sets(ns: &Ns) -> Result<(Vec<Value>, Vec<Value>), String> {
    let is_kept = |map: &Value| map["metadata"]["labels"]["gateway-operator.konghq.com/managed-by"] == "kong-plugin-installation";
    Ok(ns.list(CONFIG_MAP, CONTENT).await?.into_iter().partition(is_kept))
}

/// ConfigMaps that a pod mounts as projected volumes.
fn maps(pod: &Value) -> BTreeSet<String> {
    let sources = items(&pod["volumes"]).iter().flat_map(|volume| items(&volume["projected"]["sources"]));
    sources.map(|source| text(&source["configMap"]["name"]).to_owned()).filter(|name| !name.is_empty()).collect()
}

/// Files of plugins as the proxy of a Deployment or a ReplicaSet sees them, by path: out of the ConfigMaps that it mounts.
async fn tree(ns: &Ns, holder: &Value) -> Result<Files, String> {
    let (volumes, proxy) = (items(&holder["spec"]["template"]["spec"]["volumes"]), proxy(holder));
    let mut tree = Files::new();
    for mount in items(&proxy["volumeMounts"]) {
        let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]);
        for source in volume.map(|volume| items(&volume["projected"]["sources"])).unwrap_or_default() {
            let name = text(&source["configMap"]["name"]);
            let map = ns.get(CONFIG_MAP, name).await?;
            for item in items(&source["configMap"]["items"]) {
                let key = text(&item["key"]);
                let data = map["data"][key].as_str().ok_or_else(|| format!("ConfigMap {name} has no text {key}"))?;
                tree.insert(format!("{}/{}", text(&mount["mountPath"]), text(&item["path"])), data.to_owned());
            }
        }
    }
    Ok(tree)
}

/// Where files of a plugin are in the proxy.
fn placed(plugin: &str, files: &Files) -> Files {
    files.iter().map(|(path, text)| (format!("/opt/kong/plugins/{plugin}/{path}"), text.clone())).collect()
}
