//! Edits of one DataPlane after another, each in force within [`CONVERGED`].

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{
    api::{DATA_PLANE, DEPLOYMENT, PDB, SERVICE},
    labs::shared,
    ns::{CONVERGED, Ns, READY},
    shape::{containers, env, extended, extension, gateway, gateway_with, holds, image, proxy, same, tls_secret, uid},
};

pub(crate) fn tests() -> Vec<Trial> {
    vec![
        shared("converge image and pod template", template),
        shared("converge disruption budget", budget),
        shared("converge type of the ingress Service", service_type),
        shared("converge name of the ingress Service", service_name),
        shared("converge ports of the ingress Service", service_ports),
        shared("converge extension on and off", extension_on_and_off),
        shared("converge labels and annotations", metadata),
        shared("converge several edits at once", several),
    ]
}

async fn deployment(ns: &Ns, what: &str, check: impl Fn(&Value) -> Result<(), String>) -> Value {
    ns.eventually(CONVERGED, what, async || {
        let object = ns.get(DEPLOYMENT, "dataplane-gw").await?;
        check(&object).map(|()| object)
    })
    .await
}

async fn ingress(ns: &Ns, what: &str, check: impl Fn(&Value) -> Result<(), String>) -> Value {
    ns.eventually(CONVERGED, what, async || {
        let object = ns.get(SERVICE, "dataplane-ingress-gw").await?;
        check(&object).map(|()| object)
    })
    .await
}

fn of_ingress(block: Value) -> Value {
    json!({"spec": {"network": {"services": {"ingress": block}}}})
}

async fn template(ns: Ns) {
    ns.apply(&gateway("gw")).await;
    ns.ready("gw", READY).await;
    let before = ns.get(DEPLOYMENT, "dataplane-gw").await.unwrap();
    ns.edit(DATA_PLANE, "gw", image("kong:3.10")).await;
    let after = deployment(&ns, "the new image", |d| same("image", proxy(d)["image"].clone(), json!("kong:3.10"))).await;
    assert_eq!(uid(&before), uid(&after), "rolled, not made again");
    ns.ready("gw", READY).await;
    let vars = json!([{"name": "proxy", "image": "kong:3.10", "env": [{"name": "KONG_LOG_LEVEL", "value": "debug"}]}]);
    ns.edit(DATA_PLANE, "gw", containers(vars)).await;
    deployment(&ns, "the new variable", |d| same("KONG_LOG_LEVEL", env(d).get("KONG_LOG_LEVEL").cloned(), Some("debug".into()))).await;
    ns.edit(DATA_PLANE, "gw", containers(json!([{"name": "proxy", "image": "kong:3.10"}, {"name": "side", "image": "side:1"}]))).await;
    let with_side = deployment(&ns, "a sidecar instead of the variable", |d| {
        let containers = d["spec"]["template"]["spec"]["containers"].as_array().map_or(0, Vec::len);
        same("containers", containers, 2)?;
        same("KONG_LOG_LEVEL", env(d).get("KONG_LOG_LEVEL").cloned(), None)
    })
    .await;
    assert_eq!(with_side["spec"]["template"]["spec"]["containers"][1]["image"], "side:1");
    ns.edit(DATA_PLANE, "gw", image("kong:3.10")).await;
    deployment(&ns, "no sidecar", |d| same("containers", d["spec"]["template"]["spec"]["containers"].as_array().map_or(0, Vec::len), 1))
        .await;
    ns.ready("gw", READY).await;
}

async fn budget(ns: Ns) {
    ns.apply(&gateway("gw")).await;
    ns.ready("gw", READY).await;
    assert!(ns.find(PDB, "gw").await.unwrap().is_none());
    let with = |spec: Value| json!({"spec": {"resources": {"podDisruptionBudget": {"spec": spec}}}});
    let seen = async |what: &str, field: &'static str, value: Value| {
        ns.eventually(CONVERGED, what, async || same(field, ns.get(PDB, "gw").await?["spec"][field].clone(), value.clone())).await;
    };
    ns.edit(DATA_PLANE, "gw", with(json!({"minAvailable": 1}))).await;
    seen("a budget", "minAvailable", json!(1)).await;
    let selector = ns.get(PDB, "gw").await.unwrap()["spec"]["selector"].clone();
    assert_eq!(selector, ns.get(DEPLOYMENT, "dataplane-gw").await.unwrap()["spec"]["selector"], "the budget is about these pods");
    ns.edit(DATA_PLANE, "gw", with(json!({"minAvailable": null, "maxUnavailable": "50%"}))).await;
    seen("the other bound", "maxUnavailable", json!("50%")).await;
    assert_eq!(ns.get(PDB, "gw").await.unwrap()["spec"]["minAvailable"], Value::Null);
    ns.edit(DATA_PLANE, "gw", json!({"spec": {"resources": null}})).await;
    ns.eventually(CONVERGED, "no budget", async || holds(ns.find(PDB, "gw").await?.is_none(), || "it is there".into())).await;
    ns.ready("gw", READY).await;
}

async fn service_type(ns: Ns) {
    ns.apply(&gateway("gw")).await;
    let first = ns.ready("gw", READY).await;
    assert_eq!(first["status"]["addresses"][0]["sourceType"], "PublicLoadBalancer", "{:#}", first["status"]);
    let original = uid(&ns.get(SERVICE, "dataplane-ingress-gw").await.unwrap());
    for type_ in ["ClusterIP", "NodePort", "LoadBalancer", "ClusterIP"] {
        ns.edit(DATA_PLANE, "gw", of_ingress(json!({"type": type_}))).await;
        let service = ingress(&ns, type_, |s| same("type", s["spec"]["type"].clone(), json!(type_))).await;
        assert_eq!(uid(&service), original, "an address of a Service outlives its type");
        let node_ports = service["spec"]["ports"].as_array().unwrap().iter().filter(|p| !p["nodePort"].is_null()).count();
        assert_eq!(node_ports, if type_ == "ClusterIP" { 0 } else { 2 }, "{type_}: {:#}", service["spec"]);
        ns.eventually(CONVERGED, &format!("addresses as a {type_} has them"), async || {
            let data_plane = ns.get(DATA_PLANE, "gw").await?;
            super::ns::ready(&data_plane)?;
            let addresses = data_plane["status"]["addresses"].as_array().cloned().unwrap_or_default();
            let public = addresses.iter().any(|a| a["sourceType"] == "PublicLoadBalancer");
            holds(public == (type_ == "LoadBalancer"), || format!("{addresses:?}"))
        })
        .await;
    }
}

async fn service_name(ns: Ns) {
    ns.apply(&gateway("gw")).await;
    ns.ready("gw", READY).await;
    for (given, gone) in [("public", "dataplane-ingress-gw"), ("front", "public")] {
        ns.edit(DATA_PLANE, "gw", of_ingress(json!({"name": given}))).await;
        ns.eventually(CONVERGED, &format!("Service {given} instead of {gone}"), async || {
            let service = ns.get(SERVICE, given).await?;
            holds(ns.find(SERVICE, gone).await?.is_none(), || format!("{gone} is still there"))?;
            same("label", service["metadata"]["labels"]["gateway-operator.konghq.com/dataplane-service-type"].clone(), json!("ingress"))?;
            same("status.service", ns.get(DATA_PLANE, "gw").await?["status"]["service"].clone(), json!(given))
        })
        .await;
        ns.ready("gw", READY).await;
    }
    // Without a name of the user's the Service keeps the one it has: an address does not change for nothing.
    let before = uid(&ns.get(SERVICE, "front").await.unwrap());
    ns.edit(DATA_PLANE, "gw", of_ingress(json!({"name": null, "annotations": {"turn": "last"}}))).await;
    ns.eventually(CONVERGED, "the edit, on the same Service", async || {
        let service = ns.get(SERVICE, "front").await?;
        same("annotation", service["metadata"]["annotations"]["turn"].clone(), json!("last"))?;
        same("uid", uid(&service), before.clone())
    })
    .await;
    assert!(ns.find(SERVICE, "dataplane-ingress-gw").await.unwrap().is_none());
}

async fn service_ports(ns: Ns) {
    ns.apply(&gateway("gw")).await;
    ns.ready("gw", READY).await;
    let seen = |s: &Value| -> Vec<(i64, String)> {
        let ports = s["spec"]["ports"].as_array().cloned().unwrap_or_default();
        ports.iter().map(|p| (p["port"].as_i64().unwrap_or(0), p["protocol"].as_str().unwrap_or_default().into())).collect()
    };
    let dns =
        json!([{"name": "dns", "port": 53, "targetPort": 8053}, {"name": "dns-udp", "port": 53, "targetPort": 8053, "protocol": "UDP"}]);
    ns.edit(DATA_PLANE, "gw", of_ingress(json!({"ports": dns}))).await;
    ingress(&ns, "one number, two protocols", |s| same("ports", seen(s), vec![(53, "TCP".into()), (53, "UDP".into())])).await;
    ns.edit(DATA_PLANE, "gw", of_ingress(json!({"ports": [{"name": "http", "port": 8080, "targetPort": 8000}]}))).await;
    ingress(&ns, "one port", |s| same("ports", seen(s), vec![(8080, "TCP".into())])).await;
    ns.edit(DATA_PLANE, "gw", json!({"spec": {"network": null}})).await;
    ingress(&ns, "the default ports", |s| same("ports", seen(s), vec![(80, "TCP".into()), (443, "TCP".into())])).await;
}

async fn extension_on_and_off(ns: Ns) {
    const VARIABLE: &str = "KONG_CLUSTER_CONTROL_PLANE";
    ns.apply(&tls_secret("client")).await;
    ns.apply(&extension("hybrid", "client")).await;
    ns.apply(&gateway("gw")).await;
    ns.ready("gw", READY).await;
    assert!(!env(&ns.get(DEPLOYMENT, "dataplane-gw").await.unwrap()).contains_key(VARIABLE));
    for _ in 0..2 {
        ns.edit(DATA_PLANE, "gw", extended("hybrid")).await;
        let joined =
            deployment(&ns, "the control plane's address", |d| holds(env(d).contains_key(VARIABLE), || format!("{:?}", env(d)))).await;
        assert!(env(&joined)[VARIABLE].ends_with(".eu.cp0.konghq.com:443"));
        ns.ready("gw", READY).await;
        ns.edit(DATA_PLANE, "gw", json!({"spec": {"extensions": null}})).await;
        deployment(&ns, "no address of a control plane", |d| holds(!env(d).contains_key(VARIABLE), || format!("{:?}", env(d)))).await;
        let alone = ns.ready("gw", READY).await;
        for type_ in ["AcceptedExtensions", "KonnectExtensionApplied"] {
            assert!(super::shape::condition(&alone, type_).is_none(), "{type_} stays: {:#}", alone["status"]);
        }
    }
    ns.edit(DATA_PLANE, "gw", extended("hybrid")).await;
    ns.ready("gw", READY).await;
    ns.edit(super::api::EXTENSION, "hybrid", json!({"spec": {"controlPlaneRegion": "au"}})).await;
    deployment(&ns, "an edit of the extension", |d| {
        holds(env(d).get(VARIABLE).is_some_and(|v| v.contains(".au.cp0.")), || format!("{:?}", env(d).get(VARIABLE)))
    })
    .await;
}

async fn metadata(ns: Ns) {
    ns.apply(&gateway_with("gw", json!({"spec": {"deployment": {"labels": {"team": "a"}, "annotations": {"note": "b"}}}}))).await;
    ns.ready("gw", READY).await;
    deployment(&ns, "label and annotation", |d| {
        same("label", d["metadata"]["labels"]["team"].clone(), json!("a"))?;
        same("annotation", d["metadata"]["annotations"]["note"].clone(), json!("b"))
    })
    .await;
    ns.edit(DATA_PLANE, "gw", json!({"spec": {"deployment": {"labels": {"team": null, "tier": "c"}, "annotations": null}}})).await;
    let changed = deployment(&ns, "one label for another, no annotation", |d| {
        same("label", d["metadata"]["labels"]["tier"].clone(), json!("c"))?;
        same("old label", d["metadata"]["labels"]["team"].clone(), Value::Null)?;
        same("annotation", d["metadata"]["annotations"]["note"].clone(), Value::Null)
    })
    .await;
    assert_eq!(changed["metadata"]["labels"]["app"], "gw", "ours stay");
    ns.edit(DATA_PLANE, "gw", of_ingress(json!({"annotations": {"lb": "internal"}, "labels": {"zone": "dmz"}}))).await;
    ingress(&ns, "label and annotation of the Service", |s| {
        same("annotation", s["metadata"]["annotations"]["lb"].clone(), json!("internal"))?;
        same("label", s["metadata"]["labels"]["zone"].clone(), json!("dmz"))
    })
    .await;
    ns.edit(DATA_PLANE, "gw", of_ingress(json!({"annotations": null, "labels": null}))).await;
    ingress(&ns, "neither", |s| {
        same("annotation", s["metadata"]["annotations"]["lb"].clone(), Value::Null)?;
        same("label", s["metadata"]["labels"]["zone"].clone(), Value::Null)
    })
    .await;
}

/// Everything in one edit, and a burst of edits: the last one counts.
async fn several(ns: Ns) {
    ns.apply(&gateway("gw")).await;
    ns.ready("gw", READY).await;
    for count in 1..=20 {
        let mut edit = image(&format!("kong:3.{count}"));
        super::shape::merge(&mut edit, json!({"spec": {"deployment": {"replicas": count % 4}}}));
        super::shape::merge(&mut edit, of_ingress(json!({"annotations": {"turn": count.to_string()}})));
        ns.edit(DATA_PLANE, "gw", edit).await;
    }
    ns.edit(DATA_PLANE, "gw", json!({"spec": {"deployment": {"replicas": 2}}})).await;
    deployment(&ns, "the last image and count", |d| {
        same("image", proxy(d)["image"].clone(), json!("kong:3.20"))?;
        same("replicas", d["spec"]["replicas"].clone(), json!(2))
    })
    .await;
    ingress(&ns, "the last annotation", |s| same("turn", s["metadata"]["annotations"]["turn"].clone(), json!("20"))).await;
    ns.ready("gw", READY).await;
}
