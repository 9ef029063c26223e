//! Children as Kong's operator leaves them are taken over where they stand: same names, same pods (design section 8, end).

use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{
    api::{DATA_PLANE, DEPLOYMENT, Kind, LEASE, POD, REPLICA_SET, SECRET, SERVICE},
    audit::lines,
    install,
    labs::{Lab, lab},
    ns::{COLLECTED, CONVERGED, Ns, READY},
    shape::{condition, gateway, holds, image, is_owned_by, name_of, proxy, same, uid},
};

pub(crate) fn tests() -> Vec<Trial> {
    vec![lab("adopt-takeover", takeover), lab("adopt-differs", differs), lab("adopt-approved", approved)]
}

/// As long as Kong's, and as random.
const SELECTOR: &str = "5e1ec704-0000-4000-8000-0000000000ab";
const ADMIN: &str = "dataplane-admin-gw-x7k2p";
const INGRESS: &str = "dataplane-ingress-gw-m4q9z";
const CERTIFICATE: &str = "dataplane-gw-t8w3c";
const LIVE: &str = "dataplane-gw-v5n6b";
const WAIT: &str = "gateway-operator.konghq.com/wait-for-owner";

/// Kong's operator writes with plain updates under this manager.
const MANAGER: &str = "manager";

fn meta(name: &str, owner: &Value, labels: Value) -> Value {
    let mut all = json!({"app": "gw", "gateway-operator.konghq.com/managed-by": "dataplane"});
    super::shape::merge(&mut all, labels);
    json!({
        "name": name,
        "labels": all,
        "finalizers": [WAIT],
        "ownerReferences": [{
            "apiVersion": DATA_PLANE.api_version, "kind": "DataPlane", "name": "gw", "uid": owner["metadata"]["uid"], "controller": true
        }]
    })
}

fn pods() -> Value {
    json!({"app": "gw", "gateway-operator.konghq.com/selector": SELECTOR})
}

fn service(name: &str, owner: &Value, type_: &str, spec: Value) -> Value {
    let labels = json!({
        "gateway-operator.konghq.com/dataplane-service-type": type_,
        "gateway-operator.konghq.com/dataplane-service-state": "live"
    });
    let mut object = json!({"apiVersion": "v1", "kind": "Service", "metadata": meta(name, owner, labels), "spec": {"selector": pods()}});
    super::shape::merge(&mut object, json!({"spec": spec}));
    object
}

fn deployment(name: &str, owner: &Value, template: &Value) -> Value {
    let labels = json!({
        "gateway-operator.konghq.com/dataplane-deployment-state": "live",
        "gateway-operator.konghq.com/selector": SELECTOR
    });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta(name, owner, labels),
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": pods()},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": template
        }
    })
}

/// The DataPlane, its status and its children, before Weir was ever there. Returns the owner and the template.
async fn kong(lab: &Lab) -> (Value, Value) {
    let ns = &lab.ns;
    ns.apply(&gateway("gw")).await;
    let status = json!({"status": {"selector": SELECTOR, "service": INGRESS, "replicas": 0, "readyReplicas": 0}});
    let owner = ns.edit_sub(DATA_PLANE, "gw", "status", status).await;
    let admin = json!({
        "clusterIP": "None", "publishNotReadyAddresses": true,
        "ports": [{"name": "admin", "port": 8444, "targetPort": 8444, "protocol": "TCP"}]
    });
    ns.post_as(MANAGER, &service(ADMIN, &owner, "admin", admin)).await;
    let ports = json!([
        {"name": "http", "port": 80, "targetPort": 8000, "protocol": "TCP"},
        {"name": "https", "port": 443, "targetPort": 8443, "protocol": "TCP"}
    ]);
    ns.post_as(MANAGER, &service(INGRESS, &owner, "ingress", json!({"type": "LoadBalancer", "ports": ports}))).await;
    let mut secret = meta(CERTIFICATE, &owner, json!({"gateway-operator.konghq.com/service-secret": ADMIN, "konghq.com/secret": "true"}));
    secret["annotations"] = json!({"konghq.com/cert-expires-at": "2036-01-01T00:00:00Z"});
    let data = json!({"ca.crt": "ca", "tls.crt": "certificate", "tls.key": "key"});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": secret, "type": "kubernetes.io/tls", "stringData": data});
    ns.post_as(MANAGER, &secret).await;
    let template = rendered(lab, &owner);
    (owner, template)
}

/// The pod template this DataPlane gets from Weir, with Kong's certificate: what makes a takeover without any difference.
fn rendered(lab: &Lab, owner: &Value) -> Value {
    let dir = lab.cluster.run_dir.join(&lab.ns.name);
    std::fs::create_dir_all(dir.join("observed")).unwrap();
    let mut object = owner.clone();
    object["metadata"] = json!({"name": "gw", "namespace": lab.ns.name, "uid": owner["metadata"]["uid"]});
    std::fs::write(dir.join("observed/live.yaml"), serde_saphyr::to_string(&object).unwrap()).unwrap();
    object.as_object_mut().unwrap().remove("status");
    std::fs::write(dir.join("gateway.yaml"), serde_saphyr::to_string(&object).unwrap()).unwrap();
    let path = |name: &str| dir.join(name).display().to_string();
    let output = install::weir(&["plan", "-o", "json", "-f", &path("gateway.yaml"), "--observed", &path("observed"), "--cache-dir", ""]);
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let planned = plan["objects"].as_array().unwrap().iter().find(|o| o["kind"] == "Deployment").unwrap();
    let mut template = planned["spec"]["template"].clone();
    for volume in template["spec"]["volumes"].as_array_mut().unwrap().iter_mut().filter(|v| v["name"] == "cluster-certificate") {
        volume["secret"]["secretName"] = CERTIFICATE.into();
    }
    template
}

async fn available(ns: &Ns, name: &str) {
    ns.eventually(READY, "Kong's Deployment runs", async || {
        same("availableReplicas", ns.get(DEPLOYMENT, name).await?["status"]["availableReplicas"].clone(), json!(1))
    })
    .await;
}

/// What stands for "no pod was touched".
async fn running(ns: &Ns) -> (Vec<String>, Vec<String>) {
    let uids = async |kind: Kind| ns.list(kind, "app=gw").await.unwrap().iter().map(uid).collect();
    (uids(REPLICA_SET).await, uids(POD).await)
}

/// Managers other than ours with a say in more than the status.
fn managers(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let ours = |e: &&Value| e["subresource"].is_null() && e["manager"] != "weir" && e["manager"] != "kube-controller-manager";
    entries.iter().filter(ours).map(|e| format!("{} {}", e["manager"], e["operation"])).collect()
}

async fn takeover(lab: Lab) {
    let ns = &lab.ns;
    let (owner, template) = kong(&lab).await;
    ns.post_as(MANAGER, &deployment(LIVE, &owner, &template)).await;
    available(ns, LIVE).await;
    // A second one of the same role, that never gets a pod, and a second Service without an address.
    let mut nowhere = template.clone();
    nowhere["spec"]["nodeSelector"] = json!({"no": "such-node"});
    ns.post_as(MANAGER, &deployment("dataplane-gw-worse", &owner, &nowhere)).await;
    let ports = json!([{"name": "http", "port": 80, "targetPort": 8000, "protocol": "TCP"}]);
    ns.post_as(MANAGER, &service("dataplane-ingress-gw-worse", &owner, "ingress", json!({"type": "ClusterIP", "ports": ports}))).await;
    let sets = async || {
        let all = ns.list(REPLICA_SET, "app=gw").await.unwrap();
        all.into_iter().filter(|set| set["metadata"]["ownerReferences"][0]["name"] == LIVE).map(|set| uid(&set)).collect::<Vec<_>>()
    };
    let (before, pod) = (sets().await, proxy_pod(ns).await);
    kongs_lease(&lab, Duration::from_secs(12)).await;
    let audit = ns.audit().await;
    let operator = lab.operator("weir", &[]);
    ns.says(DATA_PLANE, "gw", ["RolloutHeld", "True", "KongOperatorLive"], &["kong-operator-0"], CONVERGED).await;
    let writes: Vec<_> = audit.our_writes().await.into_iter().filter(|a| a.resource != "dataplanes/status").collect();
    assert!(writes.is_empty(), "while Kong's operator lives nothing is taken over:\n{}", lines(&writes));
    // It is scaled down: its Lease runs out, and nobody has to tell Weir.
    ns.ready("gw", READY).await;
    ns.eventually(READY, "the better of each role stays, nothing else", async || {
        let names = async |kind: Kind| {
            let all = ns.list(kind, "app=gw,gateway-operator.konghq.com/managed-by=dataplane").await?;
            Ok::<_, String>(all.iter().map(name_of).collect::<Vec<_>>())
        };
        same("Deployments", names(DEPLOYMENT).await?, vec![LIVE.to_owned()])?;
        same("Services", names(SERVICE).await?, vec![ADMIN.to_owned(), INGRESS.to_owned()])?;
        same("Secrets", names(SECRET).await?, vec![CERTIFICATE.to_owned()])
    })
    .await;
    for (kind, name) in [(DEPLOYMENT, LIVE), (SERVICE, ADMIN), (SERVICE, INGRESS)] {
        ns.eventually(CONVERGED, &format!("{name} is in Weir's hands"), async || {
            let child = ns.get(kind, name).await?;
            holds(is_owned_by(&child, &uid(&owner)), || format!("{:#}", child["metadata"]["ownerReferences"]))?;
            same("finalizers", child["metadata"]["finalizers"].clone(), Value::Null)?;
            same("other managers", managers(&child), Vec::new())?;
            holds(child["metadata"]["annotations"]["weir.dev/applied"].is_string(), || "never applied".into())
        })
        .await;
    }
    assert_eq!((sets().await, proxy_pod(ns).await), (before.clone(), pod), "a takeover rolls nothing");
    assert_eq!(ns.get(DATA_PLANE, "gw").await.unwrap()["status"]["selector"], SELECTOR);
    // And from here on it is a DataPlane like any other.
    ns.edit(DATA_PLANE, "gw", image("kong:3.10")).await;
    ns.eventually(CONVERGED, "an edit", async || {
        same("image", proxy(&ns.get(DEPLOYMENT, LIVE).await?)["image"].clone(), json!("kong:3.10"))
    })
    .await;
    ns.ready("gw", READY).await;
    assert_eq!(sets().await.len(), before.len() + 1, "it rolled once");
    ns.delete(DATA_PLANE, "gw").await;
    ns.eventually(COLLECTED, "nothing is left", async || {
        let left = ns.list(DEPLOYMENT, "").await?.len() + ns.list(SERVICE, "").await?.len() + ns.list(SECRET, "").await?.len();
        same("children", left, 0)
    })
    .await;
    drop(operator);
}

/// Kong's operator lives for so long, in a namespace of its own.
async fn kongs_lease(lab: &Lab, time: Duration) {
    let kong = Ns::create(lab.ns.client.clone(), "kong-system", lab.ns.audit.clone(), lab.ns.logs.clone()).await;
    let seconds = time.as_secs();
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
    let spec = json!({"holderIdentity": "kong-operator-0", "leaseDurationSeconds": seconds, "renewTime": now});
    kong.post(&json!({
        "apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": {"name": "a7feedc84.konghq.com"}, "spec": spec
    }))
    .await;
}

/// The pods of the one ReplicaSet that has a pod.
async fn proxy_pod(ns: &Ns) -> Vec<String> {
    let all = ns.list(POD, "app=gw").await.unwrap();
    all.iter().filter(|pod| pod["status"]["phase"] == "Running").map(uid).collect()
}

/// A live Deployment that Weir would render otherwise: a variable less, a variable more.
async fn otherwise(lab: &Lab) {
    let (owner, mut template) = kong(lab).await;
    let env = template["spec"]["containers"][0]["env"].as_array_mut().unwrap();
    env.retain(|var| var["name"] != "KONG_PORTAL_API_ACCESS_LOG");
    env.push(json!({"name": "KONG_OF_ANOTHER_TIME", "value": "1"}));
    lab.ns.post_as(MANAGER, &deployment(LIVE, &owner, &template)).await;
    available(&lab.ns, LIVE).await;
}

async fn rendered_as_ours(ns: &Ns) {
    ns.eventually(CONVERGED, "our rendering", async || {
        let env = super::shape::env(&ns.get(DEPLOYMENT, LIVE).await?);
        holds(env.contains_key("KONG_PORTAL_API_ACCESS_LOG"), || format!("{env:?}"))?;
        holds(!env.contains_key("KONG_OF_ANOTHER_TIME"), || "a variable of the former manager stays".into())
    })
    .await;
    ns.eventually(CONVERGED, "nothing is held", async || {
        let object = ns.get(DATA_PLANE, "gw").await?;
        holds(condition(&object, "RolloutHeld").is_none_or(|c| c["status"] == "False"), || format!("{:#}", object["status"]))
    })
    .await;
    ns.ready("gw", READY).await;
}

/// The difference waits for the next change of the owner's own.
async fn differs(lab: Lab) {
    let ns = &lab.ns;
    otherwise(&lab).await;
    let before = running(ns).await;
    let operator = lab.operator("weir", &[]);
    ns.says(DATA_PLANE, "gw", ["RolloutHeld", "True", "Takeover"], &["sha256:"], READY).await;
    ns.edit(DATA_PLANE, "gw", json!({"metadata": {"labels": {"no": "change"}}})).await;
    ns.always(Duration::from_secs(3), "the pods run on", async || same("pods", running(ns).await, before.clone())).await;
    ns.edit(DATA_PLANE, "gw", json!({"spec": {"deployment": {"replicas": 2}}})).await;
    rendered_as_ours(ns).await;
    assert_eq!(ns.get(DEPLOYMENT, LIVE).await.unwrap()["spec"]["replicas"], 2);
    drop(operator);
}

/// Or for its approval, of exactly this difference.
async fn approved(lab: Lab) {
    let ns = &lab.ns;
    otherwise(&lab).await;
    let before = running(ns).await;
    let mut operator = lab.operator("weir", &[]);
    let held = ns.says(DATA_PLANE, "gw", ["RolloutHeld", "True", "Takeover"], &["sha256:"], READY).await;
    let message = condition(&held, "RolloutHeld").unwrap()["message"].as_str().unwrap().to_owned();
    let hash = message.split(|c: char| !c.is_ascii_alphanumeric() && c != ':').find(|word| word.starts_with("sha256:")).unwrap().to_owned();
    let approve = |hash: &str| json!({"metadata": {"annotations": {"weir.dev/approved-rollout": hash}}});
    ns.edit(DATA_PLANE, "gw", approve(&format!("sha256:{}", "0".repeat(64)))).await;
    // A restart is no approval either.
    operator.stop_and_restart();
    operator.wait_leading().await;
    ns.always(Duration::from_secs(3), "the pods run on", async || same("pods", running(ns).await, before.clone())).await;
    ns.edit(DATA_PLANE, "gw", approve(&hash)).await;
    rendered_as_ours(ns).await;
    drop(operator);
}
