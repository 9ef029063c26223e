//! What an operator and a cluster know of a gateway becomes cases that replay, and no secret is in them.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    time::Duration,
};

use libtest_mimic::Trial;
use serde_json::{Value, json};
use weir_testkit::free_port;

use super::{
    api::SECRET,
    labs::{Lab, lab},
    ns::READY,
    shape::{containers, extended, extension, gateway_with, holds, merge, tls_secret},
};
use crate::{policy_cli::policy_in, registry::Scratch};

pub(crate) fn tests() -> Vec<Trial> {
    vec![lab("recordings", recordings)]
}

const PASSWORD: &str = "correct-horse-battery";

/// Every byte below a folder.
fn everything(folder: &Path) -> String {
    let mut all = String::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        all.push_str(&if entry.is_dir() { everything(&entry) } else { fs::read_to_string(&entry).unwrap() });
    }
    all
}

fn weir(args: &[&str]) -> (Option<i32>, String) {
    let output = policy_in(&[("WEIR_CACHE_DIR", "")], args);
    (output.status.code(), format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
}

/// The answer to a request for a snapshot.
fn ask(port: u16, path: &str, token: Option<&str>) -> (u16, Vec<u8>) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n{token}Connection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|part| part == b"\r\n\r\n").unwrap();
    let status = String::from_utf8_lossy(&answer[9..12]).parse().unwrap();
    (status, answer[end + 4..].to_vec())
}

async fn recordings(lab: Lab) {
    let dir = Scratch::new();
    let (kept, cases) = (dir.0.join("kept"), dir.0.join("cases"));
    let port = free_port().unwrap();
    let address = format!("127.0.0.1:{port}");
    let mut operator = lab.operator("weir", &["--record", kept.to_str().unwrap(), "--snapshot-bind-address", &address]);
    let env = json!([{"name": "KONG_PG_PASSWORD", "value": PASSWORD}]);
    let mut gateway = gateway_with("recorded", containers(json!([{"name": "proxy", "image": "kong:3.9", "env": env}])));
    merge(&mut gateway, extended("hybrid"));
    lab.ns.apply(&tls_secret("client")).await;
    lab.ns.apply(&extension("hybrid", "client")).await;
    lab.ns.apply(&gateway).await;
    lab.ns.ready("recorded", READY).await;
    lab.ns.settled().await;

    // What passes saw.
    lab.ns
        .eventually(READY, "cases of passes", async || {
            let count = fs::read_dir(&kept).map(Iterator::count).unwrap_or_default();
            holds(count >= 1, || "no case".to_owned())
        })
        .await;

    // One object, as it is now.
    let path = format!("/snapshots/{}/recorded", lab.ns.name);
    let kubeconfig = lab.cluster.kubeconfig();
    let config: Value = serde_saphyr::from_str(&fs::read_to_string(&kubeconfig).unwrap()).unwrap();
    let token = config["users"][0]["user"]["token"].as_str().map(str::to_owned);
    assert_eq!(ask(port, &path, None).0, 401);
    assert_eq!(ask(port, &path, Some("nobody's")).0, 401);
    match &token {
        Some(token) => {
            let (status, archive) = ask(port, &path, Some(token));
            assert_eq!(status, 200, "{}", String::from_utf8_lossy(&archive));
            let text = String::from_utf8_lossy(&archive);
            assert!(text.contains("kind: PolicyTest") && text.contains("KONG_PG_PASSWORD") && !text.contains(PASSWORD));
            assert_eq!(ask(port, &format!("/snapshots/{}/nobody", lab.ns.name), Some(token)).0, 404);
        }
        None => println!("a snapshot is not asked for: the kubeconfig of this control plane has no token"),
    }

    // The same from outside.
    let (ns, kubeconfig, out) = (lab.ns.name.as_str(), kubeconfig.display().to_string(), cases.display().to_string());
    let system = lab.installation.namespace.as_str();
    let record =
        ["record", "--from-cluster", "-n", ns, "recorded", "-o", &out, "--kubeconfig", &kubeconfig, "--operator-namespace", system];
    assert_eq!(weir(&record), (Some(0), format!("wrote {out}/{ns}.recorded\n")));
    // A cluster at rest: nothing is to be written.
    let expected: Value = serde_saphyr::from_str(&fs::read_to_string(cases.join(format!("{ns}.recorded/expected.yaml"))).unwrap()).unwrap();
    let written: Vec<&Value> = expected["objects"].as_array().unwrap().iter().map(|object| &object["kind"]).collect();
    assert!(written.is_empty(), "{written:?}");

    assert!(operator.stop(Duration::from_secs(20)).success());
    let secret = lab.ns.get(SECRET, "client").await.unwrap();
    for folder in [&kept, &cases] {
        let text = everything(folder);
        assert!(!text.contains(PASSWORD) && text.contains("KONG_PG_PASSWORD"));
        for (key, value) in secret["data"].as_object().unwrap() {
            assert!(!text.contains(value.as_str().unwrap()), "{key} is in {}", folder.display());
        }
        let (code, said) = weir(&["test", folder.to_str().unwrap()]);
        assert_eq!(code, Some(0), "{said}");
    }
}
