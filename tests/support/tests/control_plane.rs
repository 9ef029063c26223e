//! A real control plane, twice.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may fail by panicking; helpers outside of a test function too")]

use std::path::Path;
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Service};
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;
use weir_testkit::{ControlPlane, Options, User, binaries, give_addresses, skipped};

const USER: &str = "system:serviceaccount:weir-system:weir";
const LIMIT: Duration = Duration::from_secs(60);

/// One test, so that its parts share two starts.
#[tokio::test]
async fn two_side_by_side_work_and_leave_nothing_behind() {
    if let Some(reason) = binaries::missing() {
        skipped("control_plane", &reason).unwrap();
        return;
    }
    let start = || {
        let groups = ["system:serviceaccounts", "system:serviceaccounts:weir-system"].map(str::to_owned).to_vec();
        let options = Options { users: vec![User { name: USER.to_owned(), groups }], ..Options::default() };
        let begin = Instant::now();
        let plane = ControlPlane::start(&options, &mut |line| println!("{line}")).unwrap();
        println!("started in {:?}", begin.elapsed());
        plane
    };
    // Started at the same time, as tests are.
    let other = std::thread::spawn(start);
    let mut plane = start();
    let other = other.join().unwrap();
    assert_ne!(plane.url(), other.url());

    let client = plane.client().unwrap();
    tokio::spawn(give_addresses(client.clone()));
    a_pod_gets_ready(client.clone(), "web").await;
    a_load_balancer_gets_an_address(client.clone()).await;
    a_user_has_only_its_rights(&plane).await;
    other_sees_nothing_of_it(other.client().unwrap()).await;

    let before = plane.components();
    plane.kill_api_server().unwrap();
    assert_eq!(plane.components().len(), before.len() - 1);
    assert!(Api::<Deployment>::default_namespaced(client.clone()).get("web").await.is_err());
    let begin = Instant::now();
    // Its port is lost to somebody else for a moment, as to an outgoing connection of any process.
    let address = plane.url().trim_start_matches("https://").to_owned();
    let taken = std::net::TcpListener::bind(address).unwrap();
    let thief = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(2));
        drop(taken);
    });
    plane.start_api_server().unwrap();
    thief.join().unwrap();
    println!("API server again in {:?}", begin.elapsed());
    assert!(Api::<Deployment>::default_namespaced(client.clone()).get("web").await.is_ok());
    a_pod_gets_ready(client, "web-after").await;
    plane.check().unwrap();

    let lines = std::fs::read_to_string(plane.audit_log()).unwrap();
    let events: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mine = |event: &&serde_json::Value| event["user"]["username"] == USER && event["objectRef"]["resource"] == "deployments";
    assert_eq!(events.iter().filter(mine).count(), 1, "one request was made by {USER}");
    assert!(events.iter().all(|event| event["stage"] == "ResponseComplete" || event["stage"] == "Panic"));

    let pids: Vec<u32> = plane.components().into_iter().chain(other.components()).map(|(_, pid)| pid).collect();
    let dirs = [plane.run_dir().to_owned(), other.run_dir().to_owned()];
    assert_eq!(pids.len(), 10);
    assert!(pids.iter().all(|pid| alive(*pid)) && dirs.iter().all(|dir| dir.is_dir()));
    drop(plane);
    drop(other);
    assert!(!pids.iter().any(|pid| alive(*pid)), "a process is left");
    assert!(!dirs.iter().any(|dir| dir.exists()), "a directory is left");
}

fn alive(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

async fn a_pod_gets_ready(client: Client, name: &str) {
    let deployment = serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": {
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "web", "image": "example.com/web:1" }] },
            },
        },
    }));
    let api: Api<Deployment> = Api::default_namespaced(client);
    api.create(&PostParams::default(), &deployment.unwrap()).await.unwrap();
    until("the pod is ready", || async { api.get(name).await.unwrap().status.unwrap().ready_replicas == Some(1) }).await;
}

async fn a_load_balancer_gets_an_address(client: Client) {
    let service = json!({ "metadata": { "name": "web" }, "spec": { "type": "LoadBalancer", "ports": [{ "port": 80 }] } });
    let api: Api<Service> = Api::default_namespaced(client);
    api.create(&PostParams::default(), &serde_json::from_value(service).unwrap()).await.unwrap();
    until("the service has an address", || async {
        let status = api.get("web").await.unwrap().status.unwrap();
        status.load_balancer.unwrap().ingress.is_some_and(|ingress| ingress[0].ip.as_deref().unwrap().starts_with("203.0.113."))
    })
    .await;
}

async fn a_user_has_only_its_rights(plane: &ControlPlane) {
    let kubeconfig = kube::config::Kubeconfig::read_from(plane.kubeconfig_of(USER).unwrap()).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
    let refused = Api::<Deployment>::default_namespaced(Client::try_from(config).unwrap()).get("web").await.unwrap_err();
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 403), "{refused}");
}

async fn other_sees_nothing_of_it(client: Client) {
    assert!(Api::<Namespace>::all(client.clone()).get("default").await.is_ok());
    assert!(Api::<Deployment>::default_namespaced(client).get_opt("web").await.unwrap().is_none());
}

async fn until<F: Future<Output = bool>>(what: &str, mut done: impl FnMut() -> F) {
    let end = Instant::now() + LIMIT;
    while !done().await {
        assert!(Instant::now() < end, "not within {LIMIT:?}: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
