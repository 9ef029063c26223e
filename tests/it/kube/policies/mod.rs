//! ReconcilePolicies: components out of a real registry answer for real objects, are swapped, refused and taken out again.

mod breaker;
mod faults;
mod hostile;
mod lifecycle;
mod load;
mod restart;
mod selection;
mod swap;
mod verified;

use std::{fs, time::Duration};

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{
    api::{DEPLOYMENT, POLICY},
    ns::Ns,
    plugins::shop::Shop,
    shape::{condition, env, extended, extension, gateway_with, holds, merge, tls_secret},
};
use crate::support::guest;

pub(crate) fn tests() -> Vec<Trial> {
    [
        swap::tests(),
        lifecycle::tests(),
        restart::tests(),
        breaker::tests(),
        faults::tests(),
        selection::tests(),
        load::tests(),
        hostile::tests(),
        verified::tests(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A component is fetched, compiled and in force by then, on a busy machine too.
const ACTIVE: Duration = Duration::from_secs(20);

/// A component of its own digest that behaves as another one: with a custom section at its end.
fn variant(name: &str, number: usize) -> Vec<u8> {
    let mut bytes = fs::read(guest(name)).unwrap();
    let text = format!("{number:04}");
    let mut section = vec![4];
    section.extend_from_slice(b"test");
    section.extend_from_slice(text.as_bytes());
    bytes.push(0);
    bytes.push(u8::try_from(section.len()).unwrap());
    bytes.extend(section);
    bytes
}

/// What was pushed.
struct Pushed {
    manifest: String,
    layer: String,
}

/// Pushes a component in the CNCF layout, without our own client.
fn push(shop: &Shop, repository: &str, tag: &str, wasm: &[u8]) -> Pushed {
    const TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
    let raw = shop.registry.raw(repository).unwrap();
    let layer = raw.blob("application/wasm", wasm).unwrap();
    let config = json!({"created": "2026-01-01T00:00:00Z", "architecture": "wasm", "os": "wasip2", "layerDigests": [layer.digest]});
    let config = raw.blob("application/vnd.wasm.config.v0+json", config.to_string().as_bytes()).unwrap();
    let manifest = json!({"schemaVersion": 2, "mediaType": TYPE, "config": config.json(), "layers": [layer.json()]});
    let manifest = raw.manifest(tag, TYPE, manifest.to_string().as_bytes()).unwrap();
    Pushed { manifest, layer: layer.digest }
}

/// A policy of slot KonnectEnv.
fn policy(name: &str, image: &str) -> Value {
    json!({
        "apiVersion": POLICY.api_version,
        "kind": POLICY.kind,
        "metadata": {"name": name},
        "spec": {"slot": "KonnectEnv", "source": {"oci": {"image": image}}}
    })
}

/// The same with a merge patch on top.
fn policy_with(name: &str, image: &str, patch: Value) -> Value {
    let mut object = policy(name, image);
    merge(&mut object, patch);
    object
}

/// A merge patch that asks for another image.
fn image(image: &str) -> Value {
    json!({"spec": {"source": {"oci": {"image": image}}}})
}

/// Waits until a component is in force and nothing is wrong.
async fn active(ns: &Ns, name: &str, layer: &str) -> Value {
    ns.eventually(ACTIVE, &format!("{name}: {layer} is in force"), async || {
        let object = ns.get(POLICY, name).await?;
        is_active(&object, layer).map(|()| object)
    })
    .await
}

fn is_active(object: &Value, layer: &str) -> Result<(), String> {
    let truth = |type_: &str| condition(object, type_).is_some_and(|c| c["status"] == "True");
    let newest = object["status"]["observedGeneration"] == object["metadata"]["generation"];
    let good = newest && object["status"]["active"]["layerDigest"] == layer && truth("Active") && truth("Ready") && !truth("Stalled");
    holds(good, || format!("{:#}", object["status"]))
}

/// DataPlanes with a Konnect extension, whose environment is what policies answer.
async fn gateways(ns: &Ns, names: &[&str]) {
    ns.apply(&tls_secret("client")).await;
    ns.apply(&extension("api", "client")).await;
    for name in names {
        ns.apply(&hybrid(name)).await;
    }
}

fn hybrid(name: &str) -> Value {
    let mut object = gateway_with(name, extended("api"));
    merge(&mut object, json!({"spec": {"network": {"services": {"ingress": {"type": "ClusterIP"}}}}}));
    object
}

/// A variable of a gateway's pods.
async fn variable(ns: &Ns, gateway: &str, name: &str) -> Result<Option<String>, String> {
    let deployment = ns.get(DEPLOYMENT, &format!("dataplane-{gateway}")).await?;
    Ok(env(&deployment).get(name).cloned())
}
