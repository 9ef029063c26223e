//! Install, upgrade, rollback, uninstall.
//!
//! What is real here: helm, the API server, controllers, and everything that hooks and operator do, which the test runs as their accounts. KWOK
//! says of a hook's Job that it has ended well, so that helm goes on. `helm test` is left to the real node (`kube node`): its pod is no Job's.

use std::{path::PathBuf, process::Output, time::Duration};

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{
    Bed, NAMESPACE, RELEASE, bed,
    helm::{chart, of_kind, text, values_of},
    render::args,
};
use crate::kube::{
    api::{self, CLUSTER_ROLE, CRD, DATA_PLANE, DEPLOYMENT, EXTENSION, JSON, Kind, LEASE, POLICY, ROLE, SERVICE, SERVICE_ACCOUNT},
    install::{self, Running, established},
    ns::{CONVERGED, Ns, READY},
    shape::{condition, extended, extension, gateway, gateway_with, holds, merge, name_of, same, tls_secret},
};

pub(super) fn tests() -> Vec<Trial> {
    vec![
        bed("life: install, upgrade, rollback, uninstall; CRDs and gateways stay", life),
        bed("crds of others stay until taken over", foreign),
    ]
}

const FINALIZER: &str = "gateway-operator.konghq.com/extension-in-use";
/// Names of the accounts that hooks run as.
const CRDS: &str = "weir-crds";
const CLEANUP: &str = "weir-cleanup";

/// `helm install` or the like of the release, and it waits.
pub(super) fn release(bed: &Bed, verb: &[&str], values: &str) {
    let (chart, values) = (text(&chart()), text(&values_of(values)));
    bed.helm.ok(&[verb, &[RELEASE, &chart, "-n", NAMESPACE, "--create-namespace", "-f", &values, "--wait", "--timeout", "180s"]].concat());
}

/// The operator as the release's Deployment starts it: its own words, its own account, addresses of this machine.
pub(super) async fn operator(bed: &Bed) -> Running {
    let system = system(bed);
    let deployment = system.get(DEPLOYMENT, RELEASE).await.unwrap();
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["serviceAccountName"], "weir");
    let set_here = ["operator", "--namespace", "--cache-dir", "--metrics-bind-address", "--health-probe-bind-address", "--log-format"];
    let words = args(&pod["containers"][0]);
    let words: Vec<&str> =
        words.iter().map(String::as_str).filter(|word| !set_here.contains(&word.split('=').next().unwrap_or_default())).collect();
    let running = Running::start(&bed.cluster, &bed.installation, "weir", &words);
    bed.ns.logs.lock().unwrap().push(running.log_file().to_owned());
    running.wait_leading().await;
    running
}

/// The release's namespace, as a place to look.
pub(super) fn system(bed: &Bed) -> Ns {
    Ns { name: NAMESPACE.to_owned(), ..bed.ns.clone() }
}

/// What a hook's Job would run: the same words as the same account, whose roles are there for that time.
async fn hook(bed: &Bed, template: &str, account: &str, values: &str) -> Output {
    let all = bed.helm.template(&values_of(values), &["--show-only", template]);
    let jobs = of_kind(&all, "Job");
    let pod = &jobs[0]["spec"]["template"]["spec"];
    assert_eq!(pod["serviceAccountName"], account);
    let words = args(&pod["containers"][0]);
    let rights: Vec<&Value> = all.iter().filter(|object| object["kind"] != "Job").collect();
    for object in &rights {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        api::apply(&bed.cluster.client, namespace, object, "test", true).await.map_err(String::from).unwrap();
    }
    let kubeconfig: PathBuf = bed.cluster.kubeconfig_of(&bed.installation.user_name(account));
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    let kubeconfig = text(&kubeconfig);
    words.extend(["--kubeconfig", &kubeconfig]);
    let output = install::weir(&words);
    for object in rights {
        let path = format!("{}/{}", Kind::of(object).path(object["metadata"]["namespace"].as_str().unwrap_or_default()), name_of(object));
        api::call(&bed.cluster.client, "DELETE", &path, JSON, &Value::Null).await.map_err(String::from).unwrap();
    }
    output
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

async fn crd(bed: &Bed, name: &str) -> Option<Value> {
    api::find(&bed.cluster.client, CRD, "", name).await.map_err(String::from).unwrap()
}

async fn life(bed: Bed) {
    let (ns, system) = (&bed.ns, system(&bed));
    release(&bed, &["install"], "default");
    established(&bed.cluster.client).await;
    let output = hook(&bed, "templates/hooks/crds.yaml", CRDS, "default").await;
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(said(&output).matches(": applied").count(), weir_api::crds::all().len(), "{}", said(&output));

    let mut running = operator(&bed).await;
    ns.apply(&tls_secret("client")).await;
    ns.apply(&extension("api", "client")).await;
    ns.apply(&inner("gw")).await;
    ns.ready("gw", READY).await;
    let probe = running.metrics_url();
    let output = install::weir(&["probe", &probe, "--contains", "weir_leader 1", "--wait", "20s"]);
    assert!(output.status.success(), "{}", said(&output));

    // Every upgrade is followed by the operator with the new words, and loses nothing that was edited meanwhile.
    release(&bed, &["upgrade"], "upgrade");
    same("replicas", system.get(DEPLOYMENT, RELEASE).await.unwrap()["spec"]["replicas"].clone(), json!(3)).unwrap();
    running.stop(Duration::from_secs(20));
    ns.edit(DATA_PLANE, "gw", json!({"spec": {"deployment": {"replicas": 2}}})).await;
    let mut running = operator(&bed).await;
    ns.eventually(CONVERGED, "an edit made during the upgrade is served", async || {
        same("replicas", ns.get(DEPLOYMENT, "dataplane-gw").await?["spec"]["replicas"].clone(), json!(2))
    })
    .await;
    ns_says_active(&system, "packaging").await;

    bed.helm.ok(&["rollback", RELEASE, "1", "-n", NAMESPACE, "--wait", "--timeout", "180s"]);
    assert_eq!(system.find(POLICY, "packaging").await.unwrap(), None);
    same("replicas", system.get(DEPLOYMENT, RELEASE).await.unwrap()["spec"]["replicas"].clone(), json!(1)).unwrap();
    ns.ready("gw", READY).await;

    running.stop(Duration::from_secs(20));
    gone(&bed).await;
}

/// A policy of the chart's values is in force.
async fn ns_says_active(ns: &Ns, name: &str) {
    ns.eventually(READY, "the policy of the values is in force", async || {
        let policy = ns.get(POLICY, name).await?;
        holds(condition(&policy, "Active").is_some_and(|c| c["status"] == "True"), || format!("{:#}", policy["status"]))
    })
    .await;
}

/// The uninstall, after the operator has stopped.
async fn gone(bed: &Bed) {
    let (ns, system) = (&bed.ns, system(bed));
    assert_eq!(ns.get(EXTENSION, "api").await.unwrap()["metadata"]["finalizers"], json!([FINALIZER]));
    let output = hook(bed, "templates/hooks/cleanup.yaml", CLEANUP, "default").await;
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains(&format!("KonnectExtension {}/api: finalizer taken off", ns.name)), "{}", said(&output));
    assert_eq!(ns.get(EXTENSION, "api").await.unwrap()["metadata"].get("finalizers"), None);
    assert_eq!(system.get(DEPLOYMENT, RELEASE).await.unwrap()["spec"]["replicas"], 0);

    bed.helm.ok(&["uninstall", RELEASE, "-n", NAMESPACE, "--wait", "--timeout", "180s"]);
    for kind in [DEPLOYMENT, SERVICE, SERVICE_ACCOUNT, ROLE] {
        let left = system.list(kind, "app.kubernetes.io/instance=weir").await.unwrap();
        assert!(left.is_empty(), "{left:#?}");
    }
    let left = system.list(CLUSTER_ROLE, "app.kubernetes.io/instance=weir").await.unwrap();
    assert!(left.is_empty(), "{left:#?}");
    for wanted in weir_api::crds::all() {
        let name = wanted.metadata.name.unwrap();
        assert!(crd(bed, &name).await.is_some(), "{name} is gone");
    }
    // The gateway and its pods are still there; the extension can be deleted without an operator.
    assert!(ns.get(DEPLOYMENT, "dataplane-gw").await.is_ok());
    ns.delete(EXTENSION, "api").await;
    ns.eventually(CONVERGED, "the extension is gone", async || holds(ns.find(EXTENSION, "api").await?.is_none(), || "it is there".into()))
        .await;
    ns.delete(DATA_PLANE, "gw").await;
    let _ = system.find(LEASE, RELEASE).await;
}

/// Kong's CRD stays as it is until somebody says otherwise, and then keeps its other version and its conversion.
async fn foreign(bed: Bed) {
    const NAME: &str = "dataplanes.gateway-operator.konghq.com";
    let client = &bed.cluster.client;
    let ours = install::typed(
        &weir_api::crds::all().into_iter().find(|crd| crd.metadata.name.as_deref() == Some(NAME)).unwrap(),
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
    );
    let mut kongs = ours.clone();
    kongs["metadata"] = json!({"name": NAME, "labels": {"app.kubernetes.io/managed-by": "kong"}});
    let mut other = kongs["spec"]["versions"][0].clone();
    other["name"] = "v1alpha1".into();
    other["storage"] = false.into();
    kongs["spec"]["versions"].as_array_mut().unwrap().push(other);
    if crd(&bed, NAME).await.is_some() {
        api::call(client, "DELETE", &format!("{}/{NAME}", CRD.path("")), JSON, &Value::Null).await.map_err(String::from).unwrap();
    }
    bed.ns
        .eventually(READY, "Kong's CRD is there", async || {
            api::create(client, "", &kongs, "kong", "").await.map(drop).map_err(String::from)
        })
        .await;

    let kubeconfig = text(&bed.cluster.kubeconfig());
    let apply = |more: &[&str]| install::weir(&[&["crds", "apply", "--kubeconfig", &kubeconfig], more].concat());
    let output = apply(&[]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains(&format!("{NAME}: left alone: \"kong\"")), "{}", said(&output));
    assert_eq!(crd(&bed, NAME).await.unwrap()["metadata"]["annotations"].get("weir.dev/crds"), None);
    let versions = |crd: &Value| crd["spec"]["versions"].as_array().unwrap().iter().map(|v| v["name"].clone()).collect::<Vec<_>>();

    let output = apply(&["--take-over", "--dry-run"]);
    assert!(output.status.success() && said(&output).contains("would be accepted"), "{}", said(&output));
    assert_eq!(crd(&bed, NAME).await.unwrap()["metadata"]["annotations"].get("weir.dev/crds"), None);

    let output = apply(&["--take-over"]);
    assert!(output.status.success(), "{}", said(&output));
    let taken = crd(&bed, NAME).await.unwrap();
    assert_eq!(taken["metadata"]["annotations"]["weir.dev/crds"], env!("CARGO_PKG_VERSION"));
    assert_eq!(versions(&taken), [json!("v1beta1"), json!("v1alpha1")]);
    // Again changes nothing.
    assert!(apply(&[]).status.success());
    let again = crd(&bed, NAME).await.unwrap();
    assert_eq!(again["metadata"]["resourceVersion"], taken["metadata"]["resourceVersion"]);
    established(client).await;
    bed.ns.apply(&gateway("kept")).await;
}

/// A gateway with a Konnect environment that is reached from inside: nobody gives load balancers an address here.
pub(super) fn inner(name: &str) -> Value {
    let mut object = gateway_with(name, extended("api"));
    merge(&mut object, json!({"spec": {"network": {"services": {"ingress": {"type": "ClusterIP"}}}}}));
    object
}
