//! Mistakes around the extension: missing, unusable, without its Secret. The gateway that runs goes on with the environment in force.

use libtest_mimic::Trial;
use serde_json::json;

use super::{
    api::{DATA_PLANE, DEPLOYMENT, EXTENSION, SECRET},
    labs::shared,
    mistakes::{annotated, replicas_are, service_has},
    ns::{Ns, READY, SHOWN},
    shape::{env, extended, extension, gateway_with, tls_secret, uid},
};

pub(crate) fn tests() -> Vec<Trial> {
    vec![
        shared("mistakes the extension is missing", missing_extension),
        shared("mistakes the Secret of the extension", secret_of_extension),
        shared("mistakes of the extension the API server refuses", refused_by_server),
    ]
}

const APPLIED: &str = "KonnectExtensionApplied";

async fn missing_extension(ns: Ns) {
    ns.apply(&tls_secret("client")).await;
    ns.apply(&gateway_with("gw", extended("hybrid"))).await;
    ns.says(DATA_PLANE, "gw", [APPLIED, "False", "InvalidExtension"], &["spec.extensions[0]", "hybrid", "create"], SHOWN).await;
    assert!(ns.find(DEPLOYMENT, "dataplane-gw").await.unwrap().is_none());
    ns.edit(DATA_PLANE, "gw", annotated("a")).await;
    service_has(&ns, "gw", "a").await;
    ns.apply(&extension("hybrid", "client")).await;
    ns.ready("gw", READY).await;
    // And of one that ran: the environment in force stays.
    ns.edit(DATA_PLANE, "gw", extended("other")).await;
    ns.says(DATA_PLANE, "gw", [APPLIED, "False", "InvalidExtension"], &["other", "create"], SHOWN).await;
    ns.edit(DATA_PLANE, "gw", json!({"spec": {"deployment": {"replicas": 2}}})).await;
    replicas_are(&ns, "gw", 2).await;
    assert!(env(&ns.get(DEPLOYMENT, "dataplane-gw").await.unwrap())["KONG_CLUSTER_CONTROL_PLANE"].contains(".eu."));
    ns.edit(DATA_PLANE, "gw", extended("hybrid")).await;
    ns.ready("gw", READY).await;
    // The other group, whose kind is not served here.
    let foreign = json!({"spec": {"extensions": [{"group": "konnect.konghq.com", "kind": "KonnectExtension", "name": "hybrid"}]}});
    ns.edit(DATA_PLANE, "gw", foreign).await;
    let words = ["does not exist in group konnect.konghq.com", "set group: gateway-operator.konghq.com"];
    ns.says(DATA_PLANE, "gw", [APPLIED, "False", "InvalidExtension"], &words, SHOWN).await;
    let nobody = json!({"spec": {"extensions": [{"group": "konnect.konghq.com", "kind": "KonnectExtension", "name": "nobody"}]}});
    ns.edit(DATA_PLANE, "gw", nobody).await;
    ns.says(DATA_PLANE, "gw", [APPLIED, "False", "InvalidExtension"], &["not served here", "install Kong's CRD"], SHOWN).await;
    ns.edit(DATA_PLANE, "gw", extended("hybrid")).await;
    ns.ready("gw", READY).await;
}

async fn secret_of_extension(ns: Ns) {
    ns.apply(&extension("hybrid", "client")).await;
    ns.apply(&gateway_with("gw", extended("hybrid"))).await;
    ns.says(DATA_PLANE, "gw", [APPLIED, "False", "InvalidSecret"], &["Secret \"client\"", "hybrid", "create it"], SHOWN).await;
    ns.says(EXTENSION, "hybrid", ["Ready", "False", "InvalidSecret"], &["client"], SHOWN).await;
    // Half a Secret, without any label: it exists, and what it lacks is said.
    let half = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "client"}, "stringData": {"tls.crt": "a"}});
    ns.apply(&half).await;
    ns.says(DATA_PLANE, "gw", [APPLIED, "False", "InvalidSecret"], &["client", "tls.key is missing", "found: tls.crt"], SHOWN).await;
    ns.delete(SECRET, "client").await;
    ns.says(DATA_PLANE, "gw", [APPLIED, "False", "InvalidSecret"], &["does not exist"], SHOWN).await;
    // A complete one without a label is used too: a Secret that exists is never "not found".
    let mut bare = tls_secret("client");
    bare["metadata"]["labels"] = json!({});
    ns.apply(&bare).await;
    ns.ready("gw", READY).await;
    let running = uid(&ns.get(DEPLOYMENT, "dataplane-gw").await.unwrap());
    ns.delete(SECRET, "client").await;
    ns.says(DATA_PLANE, "gw", [APPLIED, "False", "InvalidSecret"], &["client", "create it"], SHOWN).await;
    ns.edit(DATA_PLANE, "gw", json!({"spec": {"deployment": {"replicas": 2}}})).await;
    replicas_are(&ns, "gw", 2).await;
    assert_eq!(uid(&ns.get(DEPLOYMENT, "dataplane-gw").await.unwrap()), running);
    // The extension that names no Secret.
    ns.edit(EXTENSION, "hybrid", json!({"spec": {"konnectControlPlaneAPIAuthConfiguration": null}})).await;
    ns.says(DATA_PLANE, "gw", [APPLIED, "False", "InvalidSecret"], &["hybrid", "clusterCertificateSecretRef.name"], SHOWN).await;
    ns.apply(&tls_secret("client")).await;
    let named = json!({"clusterCertificateSecretRef": {"name": "client"}});
    ns.edit(EXTENSION, "hybrid", json!({"spec": {"konnectControlPlaneAPIAuthConfiguration": named}})).await;
    ns.ready("gw", READY).await;
}

async fn refused_by_server(ns: Ns) {
    let mut object = extension("hybrid", "client");
    object["spec"]["controlPlaneRef"] = json!({"type": "konnectID"});
    let refused = ns.try_apply(&object).await.unwrap_err();
    assert!(refused.message.contains("needs konnectID"), "{}", refused.message);
    // An id that the schema lets in and that makes no host name.
    object["spec"]["controlPlaneRef"] = json!({"type": "konnectID", "konnectID": "no host"});
    ns.apply(&object).await;
    ns.apply(&tls_secret("client")).await;
    ns.apply(&gateway_with("gw", extended("hybrid"))).await;
    let words = ["hybrid", "spec.controlPlaneRef.konnectID", "weir.dev/endpoint-prefix"];
    ns.says(DATA_PLANE, "gw", [APPLIED, "False", "InvalidExtension"], &words, SHOWN).await;
    ns.edit(EXTENSION, "hybrid", json!({"metadata": {"annotations": {"weir.dev/endpoint-prefix": "mine"}}})).await;
    ns.ready("gw", READY).await;
    assert!(env(&ns.get(DEPLOYMENT, "dataplane-gw").await.unwrap())["KONG_CLUSTER_CONTROL_PLANE"].starts_with("mine.eu.cp0."));
}
