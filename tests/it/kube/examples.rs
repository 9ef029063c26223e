//! What is in `examples/` runs, and is gone without a trace when it is deleted.

use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{
    api::{DATA_PLANE, DEPLOYMENT, EXTENSION, HPA, PDB, POD, REPLICA_SET, SECRET, SERVICE},
    cluster,
    labs::shared,
    ns::{COLLECTED, CONVERGED, Ns, READY},
    shape::{env, holds, is_owned_by, name_of, same, tls_secret, uid},
};
use crate::support::root;

pub(crate) fn tests() -> Vec<Trial> {
    vec![
        shared("examples standalone", standalone),
        shared("examples konnect-hybrid", hybrid),
        shared("examples every one becomes ready", every),
        shared("examples deletion leaves nothing", deletion),
    ]
}

fn manifests(folder: &str) -> Vec<Value> {
    let mut files: Vec<_> = std::fs::read_dir(root().join("examples").join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let yaml = files.iter().filter(|path| path.extension().is_some_and(|e| e == "yaml"));
    yaml.flat_map(|path| serde_saphyr::from_multiple::<Value>(&std::fs::read_to_string(path).unwrap()).unwrap()).collect()
}

async fn standalone(ns: Ns) {
    for object in manifests("standalone") {
        ns.apply(&object).await;
    }
    let data_plane = ns.ready("internal", READY).await;
    let owner = uid(&data_plane);
    let deployment = ns.get(DEPLOYMENT, "dataplane-internal").await.unwrap();
    assert_eq!(deployment["spec"]["replicas"], 2, "minReplicas from the first moment");
    assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["securityContext"]["readOnlyRootFilesystem"], true);
    let hpa = ns.get(HPA, "internal").await.unwrap();
    assert_eq!((&hpa["spec"]["minReplicas"], &hpa["spec"]["maxReplicas"]), (&json!(2), &json!(6)));
    assert_eq!(hpa["spec"]["scaleTargetRef"], json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "dataplane-internal"}));
    assert_eq!(ns.get(PDB, "internal").await.unwrap()["spec"]["maxUnavailable"], 1);
    let ingress = ns.get(SERVICE, "dataplane-ingress-internal").await.unwrap();
    assert_eq!(ingress["spec"]["type"], "ClusterIP");
    assert_eq!(data_plane["status"]["addresses"][0]["value"], ingress["spec"]["clusterIP"]);
    assert_eq!(data_plane["status"]["service"], "dataplane-ingress-internal");
    let admin = ns.get(SERVICE, "dataplane-admin-internal").await.unwrap();
    assert_eq!((&admin["spec"]["clusterIP"], &admin["spec"]["publishNotReadyAddresses"]), (&json!("None"), &json!(true)));
    let secrets = ns.list(SECRET, "gateway-operator.konghq.com/service-secret=dataplane-admin-internal").await.unwrap();
    assert_eq!(secrets.len(), 1);
    let name = name_of(&secrets[0]);
    let digits = name.strip_prefix("dataplane-internal-").unwrap();
    assert!(digits.len() == 10 && digits.bytes().all(|b| b.is_ascii_hexdigit()), "{name}");
    assert_eq!(secrets[0]["type"], "kubernetes.io/tls");
    for key in ["ca.crt", "tls.crt", "tls.key"] {
        assert!(secrets[0]["data"][key].as_str().is_some_and(|text| !text.is_empty()), "{key}");
    }
    for child in [&deployment, &hpa, &ingress, &admin, &secrets[0]] {
        assert!(is_owned_by(child, &owner), "{child:#}");
        assert_eq!(child["metadata"]["labels"]["gateway-operator.konghq.com/managed-by"], "dataplane");
        assert_eq!(child["metadata"]["labels"]["app"], "internal");
        assert_eq!(child["metadata"]["finalizers"], Value::Null, "Weir sets no finalizer on children");
    }
    assert_eq!(data_plane["status"]["replicas"], 2);
    ns.eventually(CONVERGED, "both pods count as ready", async || {
        same("readyReplicas", ns.get(DATA_PLANE, "internal").await?["status"]["readyReplicas"].clone(), json!(2))
    })
    .await;
}

async fn hybrid(ns: Ns) {
    for object in manifests("konnect-hybrid") {
        ns.apply(&object).await;
    }
    ns.says(DATA_PLANE, "edge", ["KonnectExtensionApplied", "False", "InvalidSecret"], &["konnect-client-tls"], CONVERGED).await;
    assert!(ns.find(DEPLOYMENT, "dataplane-edge").await.unwrap().is_none(), "never without its Konnect environment");
    ns.apply(&tls_secret("konnect-client-tls")).await;
    let data_plane = ns.ready("edge", READY).await;
    ns.says(DATA_PLANE, "edge", ["KonnectExtensionApplied", "True", "KonnectExtensionApplied"], &[], CONVERGED).await;
    ns.says(DATA_PLANE, "edge", ["AcceptedExtensions", "True", "AcceptedExtensions"], &[], CONVERGED).await;
    ns.says(DATA_PLANE, "edge", ["PoliciesApplied", "True", "Applied"], &[], CONVERGED).await;
    let deployment = ns.get(DEPLOYMENT, "dataplane-edge").await.unwrap();
    let env = env(&deployment);
    assert_eq!(env["KONG_CLUSTER_CONTROL_PLANE"], "7d7b1a6e-92a5-4f63-bc63-1c9a7a3d2f10.eu.cp0.konghq.com:443");
    assert_eq!(env["KONG_NGINX_WORKER_PROCESSES"], "4", "the user's word against a default");
    assert_eq!(deployment["spec"]["template"]["spec"]["containers"][1]["name"], "access-log-shipper");
    let address = &data_plane["status"]["addresses"][0];
    assert_eq!(address["sourceType"], "PublicLoadBalancer");
    ns.eventually(CONVERGED, "the extension names its user", async || {
        let extension = ns.get(EXTENSION, "hybrid").await?;
        same("dataPlaneRefs", extension["status"]["dataPlaneRefs"][0]["name"].clone(), json!("edge"))
    })
    .await;
}

/// A folder that nobody thought of when this was written is tried too.
async fn every(ns: Ns) {
    let folders = std::fs::read_dir(root().join("examples")).unwrap().map(|entry| entry.unwrap().path());
    let mut count = 0;
    for folder in folders.filter(|path| path.is_dir()) {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let objects = manifests(&name);
        for object in objects.iter().filter(|o| o["kind"] == "KonnectExtension") {
            let auth = &object["spec"]["konnectControlPlaneAPIAuthConfiguration"];
            ns.apply(&tls_secret(auth["clusterCertificateSecretRef"]["name"].as_str().unwrap())).await;
        }
        for object in &objects {
            ns.apply(object).await;
        }
        for object in objects.iter().filter(|o| o["kind"] == "DataPlane") {
            ns.ready(&name_of(object), READY).await;
            count += 1;
        }
    }
    assert!(count >= 2, "no example was found");
}

async fn deletion(ns: Ns) {
    for object in manifests("standalone") {
        ns.apply(&object).await;
    }
    ns.ready("internal", READY).await;
    assert!(!left(&ns).await.unwrap().is_empty(), "what is not seen now cannot be missed later");
    ns.delete(DATA_PLANE, "internal").await;
    ns.eventually(COLLECTED, "nothing is left", async || {
        let left = left(&ns).await?;
        holds(left.is_empty(), || format!("{left:?}"))
    })
    .await;
    // The operator must not have brought anything back with its last pass.
    ns.always(Duration::from_secs(3), "nothing comes back", async || {
        let left = left(&ns).await?;
        holds(left.is_empty(), || format!("{left:?}"))
    })
    .await;
    let system = Ns { name: "weir-system".into(), ..ns.clone() };
    system.get(SECRET, "kong-operator-ca").await.unwrap();
    let healthy = cluster::shared().unwrap().with_operator(|operator| operator.probe("/healthz"));
    assert_eq!(healthy.await.unwrap().0, 200);
}

async fn left(ns: &Ns) -> Result<Vec<String>, String> {
    let mut left = Vec::new();
    for kind in [DATA_PLANE, DEPLOYMENT, REPLICA_SET, POD, SERVICE, SECRET, HPA, PDB] {
        left.extend(ns.list(kind, "").await?.iter().map(|object| format!("{} {}", kind.kind, name_of(object))));
    }
    Ok(left)
}
