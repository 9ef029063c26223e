//! The API-driven KonnectExtension: read, followed, never written; its kind may come before the operator or after it.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{
    api::{self, CRD, DATA_PLANE, DEPLOYMENT, EXTENSION_V2, JSON, SECRET},
    audit::{Audit, lines},
    faults::SHORT_LEASE,
    labs::{Lab, lab},
    mistakes::replicas_are,
    ns::{CONVERGED, Ns, READY, SHOWN},
    record::Record,
    shape::{condition, env, gateway, gateway_with, generation, holds, same, tls_secret},
};

pub(crate) fn tests() -> Vec<Trial> {
    vec![lab("konnect-before", before), lab("konnect-after", after)]
}

const CRD_NAME: &str = "konnectextensions.konnect.konghq.com";
const APPLIED: &str = "KonnectExtensionApplied";
const VARIABLE: &str = "KONG_CLUSTER_CONTROL_PLANE";
/// A kind that comes later is noticed by then.
const NOTICED: Duration = Duration::from_secs(10);

/// The fixture is here for the time of a test; another test begins without it.
async fn install(ns: &Ns) {
    let text = include_str!("../../fixtures/konnectextensions.yaml");
    let crd: Value = serde_saphyr::from_str(text).unwrap();
    api::apply(&ns.client, "", &crd, "test", true).await.map_err(String::from).unwrap();
    ns.eventually(READY, "the kind is served", async || {
        let crd = api::find(&ns.client, CRD, "", CRD_NAME).await?.ok_or("no CRD")?;
        let established = condition(&crd, "Established").is_some_and(|c| c["status"] == "True");
        holds(established, || crd["status"].to_string())?;
        ns.list(EXTENSION_V2, "").await.map(drop)
    })
    .await;
}

async fn uninstall(ns: &Ns) {
    let path = format!("{}/{CRD_NAME}", CRD.path(""));
    let _ = api::call(&ns.client, "DELETE", &path, JSON, &Value::Null).await;
    ns.eventually(READY, "the kind is gone", async || {
        holds(api::find(&ns.client, CRD, "", CRD_NAME).await?.is_none(), || "the CRD is there".into())?;
        holds(ns.list(EXTENSION_V2, "").await.is_err(), || "it is served".into())
    })
    .await;
}

fn extension(name: &str) -> Value {
    json!({
        "apiVersion": "konnect.konghq.com/v1alpha2",
        "kind": "KonnectExtension",
        "metadata": {"name": name},
        "spec": {
            "konnect": {"controlPlane": {"ref": {"konnectNamespacedRef": {"name": "plane"}}}, "dataPlane": {"labels": {"env": "test"}}}
        }
    })
}

fn extended(name: &str) -> Value {
    json!({"spec": {"extensions": [{"group": "konnect.konghq.com", "kind": "KonnectExtension", "name": name}]}})
}

/// What Kong's operator writes when it is done. `host` is the first label of the endpoints.
async fn filled(ns: &Ns, name: &str, type_: &str, host: &str) {
    let generation = generation(&ns.get(EXTENSION_V2, name).await.unwrap());
    let status = json!({"status": {
        "conditions": [ready("True", "Ready", "", generation)],
        "konnect": {
            "controlPlaneID": "3c0f6a5e-8d1b-4f27-9b64-0a7e5c2d1f98",
            "clusterType": type_,
            "endpoints": {"controlPlane": format!("https://{host}.eu.cp0.konghq.com"), "telemetry": format!("https://{host}.eu.tp0.konghq.com")}
        },
        "dataPlaneClientAuth": {"certificateSecretRef": {"name": "client"}}
    }});
    ns.edit_sub(EXTENSION_V2, name, "status", status).await;
}

fn ready(status: &str, reason: &str, message: &str, generation: i64) -> Value {
    let since = "2026-01-01T00:00:00Z";
    json!({"type": "Ready", "status": status, "reason": reason, "message": message, "lastTransitionTime": since, "observedGeneration": generation})
}

/// Waits for a variable of the Deployment; says how long it took.
async fn variable(ns: &Ns, name: &str, wanted: Option<&str>, limit: Duration) {
    let begin = Instant::now();
    ns.eventually(limit, &format!("{name} is {wanted:?}"), async || {
        same(name, env(&ns.get(DEPLOYMENT, "dataplane-gw").await?).get(name).map(String::as_str), wanted)
    })
    .await;
    eprintln!("     konnect: {name} is {wanted:?} after {:?}", begin.elapsed());
}

async fn template(ns: &Ns) -> Value {
    ns.get(DEPLOYMENT, "dataplane-gw").await.unwrap()["spec"]["template"].clone()
}

/// The operator's user has asked for extensions, and never for a change of one.
async fn only_read(lab: &Lab, audit: &Audit) {
    let user = lab.installation.user_name("weir");
    let asked: Vec<_> = audit.asked().await.into_iter().filter(|a| a.user == user && a.resource.starts_with("konnectextensions")).collect();
    assert!(asked.iter().any(|a| a.verb == "list" && a.code == 200), "it has read none:\n{}", lines(&asked));
    let writes: Vec<_> = asked.into_iter().filter(super::audit::Asked::is_write).collect();
    assert!(writes.is_empty(), "{}", lines(&writes));
}

async fn before(lab: Lab) {
    let ns = &lab.ns;
    uninstall(ns).await;
    install(ns).await;
    let audit = ns.audit().await;
    let mut operator = lab.operator("weir", &SHORT_LEASE);
    operator.wait_leading().await;
    ns.apply(&tls_secret("client")).await;
    ns.apply(&gateway_with("gw", extended("api"))).await;
    ns.says(DATA_PLANE, "gw", [APPLIED, "False", "InvalidExtension"], &["spec.extensions[0]", "api", "does not exist"], CONVERGED).await;
    ns.apply(&extension("api")).await;
    let words = ["KonnectExtension \"api\"", "\"Unknown\"", "\"Pending\"", "Waiting for controller"];
    ns.says(DATA_PLANE, "gw", [APPLIED, "False", "KonnectExtensionNotReady"], &words, SHOWN).await;
    ns.says(DATA_PLANE, "gw", ["AcceptedExtensions", "True", "AcceptedExtensions"], &[], SHOWN).await;
    assert!(ns.find(DEPLOYMENT, "dataplane-gw").await.unwrap().is_none(), "no gateway without its Konnect environment");

    filled(ns, "api", "ControlPlane", "first").await;
    variable(ns, VARIABLE, Some("first.eu.cp0.konghq.com:443"), SHOWN).await;
    ns.ready("gw", READY).await;
    assert_eq!(env(&ns.get(DEPLOYMENT, "dataplane-gw").await.unwrap())["KONG_CLUSTER_DP_LABELS"], "env:test");
    filled(ns, "api", "ControlPlaneGroup", "second").await;
    variable(ns, VARIABLE, Some("second.eu.cp0.konghq.com:443"), SHOWN).await;
    filled(ns, "api", "K8SIngressController", "third").await;
    variable(ns, "KONG_ROLE", Some("traditional"), SHOWN).await;
    variable(ns, VARIABLE, None, SHOWN).await;
    filled(ns, "api", "ControlPlane", "fourth").await;
    variable(ns, VARIABLE, Some("fourth.eu.cp0.konghq.com:443"), SHOWN).await;
    ns.ready("gw", READY).await;

    not_ready(ns).await;
    // A start does not take what it has not read yet for missing.
    let record = Record::start(ns, DATA_PLANE, "gw").await;
    operator.kill_and_restart();
    operator.wait_leading().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let applied = |d: &Value| condition(d, APPLIED).map(|c| c["status"].clone());
    assert!(record.versions().iter().all(|d| applied(d) == Some("True".into())), "{:#?}", record.versions());
    gone(ns).await;
    only_read(&lab, &audit).await;
    uninstall(ns).await;
}

/// What cannot be used leaves the template as it is, says why, and holds nothing else.
async fn not_ready(ns: &Ns) {
    let before = template(ns).await;
    let now = generation(&ns.get(EXTENSION_V2, "api").await.unwrap());
    let status = |condition: Value| json!({"status": {"conditions": [condition]}});
    ns.edit_sub(EXTENSION_V2, "api", "status", status(ready("False", "Provisioning", "the plane is away", now))).await;
    let words = ["\"False\"", "\"Provisioning\"", "the plane is away"];
    ns.says(DATA_PLANE, "gw", [APPLIED, "False", "KonnectExtensionNotReady"], &words, SHOWN).await;
    ns.edit(DATA_PLANE, "gw", json!({"spec": {"deployment": {"replicas": 2}}})).await;
    replicas_are(ns, "gw", 2).await;
    assert_eq!(template(ns).await, before);
    ns.edit_sub(EXTENSION_V2, "api", "status", status(ready("True", "Ready", "", now))).await;
    ns.ready("gw", READY).await;
    // An edit of its spec: until its own operator has looked at it, nothing of it is used.
    ns.edit(EXTENSION_V2, "api", json!({"spec": {"konnect": {"dataPlane": {"labels": {"env": "other"}}}}})).await;
    ns.says(DATA_PLANE, "gw", [APPLIED, "False", "KonnectExtensionNotReady"], &["is of generation"], SHOWN).await;
    assert_eq!(template(ns).await, before);
    filled(ns, "api", "ControlPlane", "fourth").await;
    variable(ns, "KONG_CLUSTER_DP_LABELS", Some("env:other"), SHOWN).await;
    // The Secret: missing, half, another certificate.
    let before = template(ns).await;
    ns.delete(SECRET, "client").await;
    ns.says(DATA_PLANE, "gw", [APPLIED, "False", "InvalidSecret"], &["Secret \"client\"", "does not exist"], SHOWN).await;
    let half = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "client"}, "stringData": {"tls.crt": "a"}});
    ns.apply(&half).await;
    ns.says(DATA_PLANE, "gw", [APPLIED, "False", "InvalidSecret"], &["tls.key is missing"], SHOWN).await;
    assert_eq!(template(ns).await, before);
    ns.edit(SECRET, "client", json!({"stringData": tls_secret("client")["stringData"]})).await;
    ns.eventually(SHOWN, "the new certificate's digest", async || {
        let digest = |t: &Value| t["metadata"]["annotations"]["weir.dev/konnect-certificate-digest"].clone();
        let now = template(ns).await;
        holds(digest(&now) != digest(&before) && digest(&now).is_string(), || digest(&now).to_string())
    })
    .await;
    ns.ready("gw", READY).await;
}

/// Deletion, and a restart in front of it: the environment stays.
async fn gone(ns: &Ns) {
    ns.ready("gw", READY).await;
    let before = template(ns).await;
    ns.edit(EXTENSION_V2, "api", json!({"metadata": {"finalizers": ["example.com/kept"]}})).await;
    ns.delete(EXTENSION_V2, "api").await;
    ns.says(DATA_PLANE, "gw", [APPLIED, "False", "KonnectExtensionNotReady"], &["it is being deleted"], CONVERGED).await;
    ns.edit(EXTENSION_V2, "api", json!({"metadata": {"finalizers": null}})).await;
    ns.says(DATA_PLANE, "gw", [APPLIED, "False", "InvalidExtension"], &["api", "does not exist"], SHOWN).await;
    ns.always(Duration::from_secs(2), "the template stays", async || same("template", template(ns).await, before.clone())).await;
}

async fn after(lab: Lab) {
    let ns = &lab.ns;
    uninstall(ns).await;
    let audit = ns.audit().await;
    let operator = lab.operator("weir", &SHORT_LEASE);
    operator.wait_leading().await;
    ns.apply(&tls_secret("client")).await;
    ns.apply(&gateway("plain")).await;
    ns.apply(&gateway_with("gw", extended("api"))).await;
    let words = ["konnect.konghq.com", "not served", "install Kong's CRD"];
    ns.says(DATA_PLANE, "gw", [APPLIED, "False", "InvalidExtension"], &words, CONVERGED).await;
    ns.ready("plain", READY).await;
    assert!(ns.find(DEPLOYMENT, "dataplane-gw").await.unwrap().is_none());
    // Long enough for the longest wait between two tries.
    tokio::time::sleep(NOTICED).await;
    assert!(operator.metrics().await.sum("weir_watch_errors_total", &[("object", "KonnectApiExtension")]) < 0.5, "it is no failure");

    install(ns).await;
    ns.apply(&extension("api")).await;
    filled(ns, "api", "ControlPlane", "first").await;
    variable(ns, VARIABLE, Some("first.eu.cp0.konghq.com:443"), NOTICED).await;
    ns.ready("gw", READY).await;
    filled(ns, "api", "ControlPlane", "second").await;
    variable(ns, VARIABLE, Some("second.eu.cp0.konghq.com:443"), SHOWN).await;
    ns.ready("gw", READY).await;

    // The kind goes, with what was of it, and comes back.
    let before = template(ns).await;
    uninstall(ns).await;
    ns.says(DATA_PLANE, "gw", [APPLIED, "False", "InvalidExtension"], &["not served"], NOTICED).await;
    assert_eq!(template(ns).await, before);
    install(ns).await;
    ns.apply(&extension("api")).await;
    filled(ns, "api", "ControlPlane", "third").await;
    variable(ns, VARIABLE, Some("third.eu.cp0.konghq.com:443"), NOTICED).await;
    ns.ready("gw", READY).await;
    only_read(&lab, &audit).await;
    uninstall(ns).await;
}
