//! A recording replays to what was recorded, and no secret is in it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::path::Path;

use serde_json::{Value, json};
use weir_api::manifest::Source;
use weir_harness::{
    pass::{Artifacts, Cluster, Kinds, Manifests, Options, pass_into},
    record::{self, Folder, Recording},
    run::{Runner, Status},
    stock::{Components, Stock},
    suite,
};
use weir_host::wasm::{Config, Wasm};

const PASSWORD: &str = "correct-horse-battery";
const TOKEN: &str = "kpat_A1b2C3d4E5";

fn gateway() -> Value {
    json!({
        "apiVersion": "gateway-operator.konghq.com/v1beta1", "kind": "DataPlane",
        "metadata": {"name": "gw", "namespace": "edge", "annotations": {"note": TOKEN}},
        "spec": {
            "extensions": [{"group": "gateway-operator.konghq.com", "kind": "KonnectExtension", "name": "hybrid"}],
            "deployment": {"podTemplateSpec": {"spec": {"containers": [{"name": "proxy", "image": "kong/kong-gateway:3.11",
                "env": [{"name": "KONG_PG_PASSWORD", "value": PASSWORD}]}]}}},
        },
    })
}

fn extension() -> Value {
    json!({
        "apiVersion": "gateway-operator.konghq.com/v1alpha1", "kind": "KonnectExtension", "metadata": {"name": "hybrid", "namespace": "edge"},
        "spec": {"controlPlaneRef": {"type": "konnectID", "konnectID": "7d7b1a6e"},
                 "konnectControlPlaneAPIAuthConfiguration": {"clusterCertificateSecretRef": {"name": "tls"}}},
    })
}

fn secret(name: &str, namespace: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": {"name": name, "namespace": namespace, "labels": {"konghq.com/secret": "true"}},
        "data": {"tls.crt": "LS0tLS1CRUdJTg==", "tls.key": "c2VjcmV0LWtleQ=="}})
}

fn source(objects: &[Value]) -> Vec<Source> {
    vec![Source { name: "test".into(), text: json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string() }]
}

fn items(sources: Vec<Source>) -> Vec<Value> {
    let list = |source: Source| serde_json::from_str::<Value>(&source.text).unwrap()["items"].as_array().cloned().unwrap();
    sources.into_iter().flat_map(list).collect()
}

/// Every byte below a folder.
fn everything(folder: &Path) -> String {
    let mut all = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        all.push_str(&if path.is_dir() { everything(&path) } else { std::fs::read_to_string(&path).unwrap() });
    }
    all
}

#[test]
fn a_cluster_at_rest_is_recorded_and_replays_to_nothing_to_write() {
    let host = Wasm::new(Config::default()).unwrap();
    let policies = host.defaults().unwrap();
    let kinds = Kinds::new().unwrap();
    let manifests = Manifests {
        desired: source(&[gateway(), extension()]),
        observed: source(&[secret("tls", "edge"), secret("kong-operator-ca", "weir-system")]),
    };
    let mut cluster = Cluster::new(manifests, &kinds, "default");
    let options = Options::default();
    for _ in 0..4 {
        pass_into(&mut cluster, &Artifacts::default(), &options, &kinds, &policies).unwrap();
    }
    let after = cluster.manifests();
    let recording = Recording {
        name: "edge.gw".into(),
        description: "A test.".into(),
        desired: items(after.desired),
        observed: items(after.observed),
        options,
        ..Recording::default()
    };
    assert!(json!(recording.observed).to_string().contains(PASSWORD), "the password is in the Deployment before");
    let files = record::files(recording, &kinds, &policies).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("case");
    Folder::one(&folder, &files).unwrap();
    let text = everything(&folder);
    for secret in [PASSWORD, TOKEN, "c2VjcmV0LWtleQ==", "secret-key", "LS0tLS1CRUdJTg=="] {
        assert!(!text.contains(secret), "{secret} is in the recording:\n{text}");
    }
    assert!(text.contains("KONG_PG_PASSWORD") && text.contains("tls.key"), "names stay");
    let expected: Value = serde_saphyr::from_str(&std::fs::read_to_string(folder.join("expected.yaml")).unwrap()).unwrap();
    assert_eq!(expected["objects"], json!([]), "a redacted value is no reason to write");
    let cases = suite::read(&folder.join("case.yaml")).unwrap();
    let components = Components::read(&cases, None, &mut |_| panic!("nothing to fetch")).unwrap();
    let runner = Runner { kinds: Kinds::new().unwrap(), update: false };
    let ran = runner.run(&cases[0], &mut Stock::new(&host, &components));
    assert_eq!((ran.status, &ran.misses), (Status::Passed, &Vec::new()));
}
