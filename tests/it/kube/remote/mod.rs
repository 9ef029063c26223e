//! Remote plugins of a real API server: found by label, told on their Services, used by policies.

mod quiet;
mod server;
mod stack;

use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use self::server::Server;
use super::{
    api::{self, DEPLOYMENT, EVENT, POLICY, SECRET, SERVICE},
    labs::{Lab, lab},
    ns::{CONVERGED, Ns, SHOWN},
    shape::{condition, env, extended, extension, gateway_with, holds, merge, tls_secret},
};

pub(crate) fn tests() -> Vec<Trial> {
    vec![
        lab("remote-found", found),
        lab("remote-secrets", secrets),
        lab("remote-pods", pods),
        lab("remote-policy", policy),
        lab("remote-stack", stack::stack),
        lab("remote-quiet", quiet::quiet),
    ]
}

/// A breaker that is open closes in this time, on a busy machine too.
const BACK: Duration = Duration::from_secs(60);
const PLUGIN: &str = "env.example.com";

/// The Service of a plugin.
fn service(name: &str, plugin: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": name,
            "labels": {"weir.dev/plugin-name": plugin},
            "annotations": {
                "weir.dev/plugin-port": "9090",
                "weir.dev/plugin-client-secret": format!("{name}-client"),
                "weir.dev/plugin-server-secret": format!("{name}-server"),
            },
        },
        // Without a selector: the slice below is ours.
        "spec": {"ports": [{"name": "grpc", "port": 9090}]},
    })
}

/// Its pods: the server, where it is.
fn slice(name: &str, server: &Server, ready: bool) -> Value {
    slice_at(name, server.address, ready)
}

fn slice_at(name: &str, address: std::net::SocketAddr, ready: bool) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": format!("{name}-1"), "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4",
        "ports": [{"name": "grpc", "port": address.port()}],
        "endpoints": [{"addresses": [address.ip().to_string()], "conditions": {"ready": ready}}],
    })
}

/// Everything that a plugin has in a cluster.
async fn install(ns: &Ns, name: &str, plugin: &str, server: &Server) {
    ns.apply(&server.client_secret(&format!("{name}-client"))).await;
    ns.apply(&server.server_secret(&format!("{name}-server"))).await;
    ns.apply(&service(name, plugin)).await;
    ns.apply(&slice(name, server, true)).await;
}

/// Waits for one of our conditions. A Service has no generation.
async fn says(ns: &Ns, name: &str, wanted: [&str; 3], words: &[&str], limit: Duration) -> Value {
    let [type_, status, reason] = wanted;
    ns.eventually(limit, &format!("Service {name}: {type_}={status}/{reason} with {words:?}"), async || {
        let object = ns.get(SERVICE, name).await?;
        let found = condition(&object, &format!("weir.dev/{type_}")).ok_or_else(|| format!("no {type_}: {:#}", object["status"]))?;
        let message = found["message"].as_str().unwrap_or_default();
        holds(found["status"] == status && found["reason"] == reason && words.iter().all(|w| message.contains(w)), || {
            format!("{found:#}")
        })?;
        Ok(object)
    })
    .await
}

async fn ready(ns: &Ns, name: &str, limit: Duration) {
    says(ns, name, ["Ready", "True", "Ready"], &[], limit).await;
}

/// Discovery, a collision, a rename, a label that is removed, a plugin of another name, conditions of others.
async fn found(lab: Lab) {
    let system = lab.system();
    let one = Server::start("one", PLUGIN, "1").await;
    let two = Server::start("two", PLUGIN, "2").await;
    install(&system, "one", PLUGIN, &one).await;
    let theirs = json!({"status": {"conditions": [{"type": "example.com/Fine", "status": "True", "reason": "Fine", "message": "",
                       "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    system.edit_sub(SERVICE, "one", "status", theirs).await;
    let operator = lab.operator("weir", &[]);
    operator.wait_leading().await;
    let object = says(&system, "one", ["Ready", "True", "Ready"], &["version 1", "konnect-env"], CONVERGED).await;
    assert!(condition(&object, "example.com/Fine").is_some(), "{:#}", object["status"]);
    // The younger one says who has the name, and is not dialled.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    install(&system, "two", PLUGIN, &two).await;
    says(&system, "two", ["Discovered", "False", "Conflict"], &["/one"], SHOWN).await;
    ready(&system, "one", SHOWN).await;
    // Another name: the plugin does not call itself so, and the younger one has the name at once.
    system.edit(SERVICE, "one", json!({"metadata": {"labels": {"weir.dev/plugin-name": "other.example.com"}}})).await;
    says(&system, "two", ["Ready", "True", "Ready"], &["version 2"], CONVERGED).await;
    says(&system, "one", ["Ready", "False", "NameMismatch"], &[PLUGIN, "the label of its Service must say the same"], CONVERGED).await;
    // Without the label it is no plugin, and only our conditions go.
    system.edit(SERVICE, "one", json!({"metadata": {"labels": {"weir.dev/plugin-name": null}}})).await;
    system
        .eventually(CONVERGED, "our conditions are gone", async || {
            let object = system.get(SERVICE, "one").await?;
            let conditions = object["status"]["conditions"].to_string();
            holds(!conditions.contains("weir.dev/") && conditions.contains("example.com/Fine"), || conditions.clone())
        })
        .await;
    let told = system.list(EVENT, "").await.unwrap();
    let reasons: Vec<&str> = told.iter().filter_map(|event| event["reason"].as_str()).collect();
    assert!(["PluginReady", "Conflict", "NameMismatch"].iter().all(|reason| reasons.contains(reason)), "{reasons:?}");
    let metrics = operator.metrics().await;
    assert!((metrics.sum("weir_remote_plugin_up", &[("plugin", PLUGIN)]) - 1.0).abs() < f64::EPSILON);
}

/// A Secret that is missing, wrong, back, or replaced; settings that are broken.
async fn secrets(lab: Lab) {
    let system = lab.system();
    let server = Server::start("one", PLUGIN, "1").await;
    install(&system, "one", PLUGIN, &server).await;
    system.delete(SECRET, "one-server").await;
    let operator = lab.operator("weir", &[]);
    operator.wait_leading().await;
    says(&system, "one", ["Configured", "False", "SecretMissing"], &["one-server", "weir.dev/plugin-server-secret"], CONVERGED).await;
    system.apply(&server.server_secret("one-server")).await;
    ready(&system, "one", CONVERGED).await;
    // What was good stays: the Secret goes, the port is a word, and the plugin is asked all the same.
    system.delete(SECRET, "one-client").await;
    says(&system, "one", ["Configured", "False", "SecretMissing"], &["one-client", "stays in use until"], SHOWN).await;
    ready(&system, "one", SHOWN).await;
    system.apply(&server.client_secret("one-client")).await;
    says(&system, "one", ["Configured", "True", "Configured"], &[], SHOWN).await;
    system.edit(SERVICE, "one", json!({"metadata": {"annotations": {"weir.dev/plugin-port": "grpc"}}})).await;
    says(&system, "one", ["Configured", "False", "InvalidPort"], &["\"grpc\"", "stays in use until"], SHOWN).await;
    ready(&system, "one", SHOWN).await;
    system.edit(SERVICE, "one", json!({"metadata": {"annotations": {"weir.dev/plugin-port": "9090"}}})).await;
    says(&system, "one", ["Configured", "True", "Configured"], &[], SHOWN).await;
    // A certificate that the plugin's is not: connections that are made with it fail for that reason.
    let other = Server::start("one", PLUGIN, "1").await;
    system.apply(&slice("one", &other, true)).await;
    says(&system, "one", ["Ready", "False", "ServerNotTrusted"], &[], CONVERGED).await;
    system.apply(&other.server_secret("one-server")).await;
    says(&system, "one", ["Ready", "False", "ClientCertRejected"], &[], BACK).await;
    system.apply(&other.client_secret("one-client")).await;
    ready(&system, "one", BACK).await;
    let log = operator.log();
    assert!(!log.contains("PRIVATE KEY"), "no key is logged");
}

/// Pods that come and go, a plugin that is not ready, one that is stopped.
async fn pods(lab: Lab) {
    let system = lab.system();
    let mut server = Server::start("one", PLUGIN, "1").await;
    install(&system, "one", PLUGIN, &server).await;
    let operator = lab.operator("weir", &[]);
    operator.wait_leading().await;
    ready(&system, "one", CONVERGED).await;
    system.apply(&slice("one", &server, false)).await;
    says(&system, "one", ["Reachable", "False", "NoEndpoints"], &["no pod of Service"], CONVERGED).await;
    system.apply(&slice("one", &server, true)).await;
    ready(&system, "one", CONVERGED).await;
    server.set(|behavior| behavior.ready = false);
    says(&system, "one", ["Ready", "False", "NotReady"], &[], BACK).await;
    server.set(|behavior| behavior.ready = true);
    ready(&system, "one", BACK).await;
    server.stop();
    system
        .eventually(BACK, "it is not reachable", async || {
            let object = system.get(SERVICE, "one").await?;
            let stands = condition(&object, "weir.dev/Ready").is_some_and(|c| c["status"] == "False");
            holds(stands, || format!("{:#}", object["status"]))
        })
        .await;
    server.resume().await;
    ready(&system, "one", BACK).await;
}

fn remote(name: &str) -> Value {
    json!({
        "apiVersion": POLICY.api_version, "kind": POLICY.kind, "metadata": {"name": name},
        "spec": {"slot": "KonnectEnv", "source": {"remote": {"pluginName": PLUGIN}}}
    })
}

async fn version(ns: &Ns, wanted: &str, limit: Duration) {
    ns.eventually(limit, &format!("version {wanted} answered"), async || {
        let deployment = ns.get(DEPLOYMENT, "dataplane-gw").await?;
        let env = env(&deployment);
        holds(env.get("KONG_PLUGIN_VERSION").map(String::as_str) == Some(wanted), || format!("{env:?}"))
    })
    .await;
}

/// A policy whose answers come from a plugin: it is not there, it is, it goes away, it comes back as another version; a tenant may not use it.
async fn policy(lab: Lab) {
    let (system, ns) = (lab.system(), &lab.ns);
    let operator = lab.operator("weir", &["--tenant-policies"]);
    operator.wait_leading().await;
    system.apply(&remote("env")).await;
    system.says(POLICY, "env", ["Resolved", "False", "PluginNotFound"], &["spec.source.remote.pluginName", PLUGIN], SHOWN).await;
    let mut server = Server::start("one", PLUGIN, "1").await;
    install(&system, "one", PLUGIN, &server).await;
    system.says(POLICY, "env", ["Active", "True", "Active"], &["remote:"], BACK).await;
    ns.apply(&tls_secret("client")).await;
    ns.apply(&extension("api", "client")).await;
    let mut gateway = gateway_with("gw", extended("api"));
    merge(&mut gateway, json!({"spec": {"network": {"services": {"ingress": {"type": "ClusterIP"}}}}}));
    ns.apply(&gateway).await;
    version(ns, "1", CONVERGED).await;
    // Away: the policy says so, and the gateway keeps what it has.
    server.stop();
    system.apply(&slice("one", &server, false)).await;
    system.says(POLICY, "env", ["Active", "False", "NotRunning"], &["NoEndpoints"], BACK).await;
    system.says(POLICY, "env", ["Resolved", "False", "NotReady"], &[], SHOWN).await;
    ns.edit(api::DATA_PLANE, "gw", json!({"metadata": {"annotations": {"weir.dev/check-at": "1"}}})).await;
    ns.always(Duration::from_secs(3), "the last answer stays", async || {
        let env = env(&ns.get(DEPLOYMENT, "dataplane-gw").await?);
        holds(env.get("KONG_PLUGIN_VERSION").map(String::as_str) == Some("1"), || format!("{env:?}"))
    })
    .await;
    // Back as another version: it takes over by itself, and the gateway hears of it.
    server.set(|behavior| behavior.version = "2".into());
    server.resume().await;
    system.apply(&slice("one", &server, true)).await;
    system.says(POLICY, "env", ["Active", "True", "Active"], &["(2)"], BACK).await;
    version(ns, "2", BACK).await;
    // Somebody else's namespace is not let in until the Service says so.
    ns.apply(&remote("theirs")).await;
    ns.says(POLICY, "theirs", ["Resolved", "False", "TenantsNotAllowed"], &["weir.dev/plugin-tenants"], CONVERGED).await;
    let allowed = json!({"metadata": {"annotations": {"weir.dev/plugin-tenants": ns.name}}});
    system.edit(SERVICE, "one", allowed).await;
    ns.says(POLICY, "theirs", ["Active", "True", "Active"], &[], CONVERGED).await;
}
