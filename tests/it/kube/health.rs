//! What scrapers, probes and people at a terminal get from the operator.

use std::collections::BTreeSet;

use libtest_mimic::Trial;

use super::{
    api::{DATA_PLANE, LEASE, SECRET},
    cluster, install,
    labs::shared,
    ns::{CONVERGED, Ns, READY},
    shape::{extended, extension, gateway, gateway_with, holds, tls_secret},
};

pub(crate) fn tests() -> Vec<Trial> {
    vec![
        shared("health metrics", metrics),
        shared("health probes", probes),
        shared("health the log and the metrics tell no secret", secrets),
        shared("health the Lease is held", lease),
        Trial::test("kube health print-config", || {
            print_config();
            Ok(())
        }),
    ]
}

async fn metrics(ns: Ns) {
    ns.apply(&tls_secret("client")).await;
    ns.apply(&extension("hybrid", "client")).await;
    ns.apply(&gateway_with("gw", extended("hybrid"))).await;
    ns.ready("gw", READY).await;
    let scrape = cluster::shared().unwrap().with_operator(super::install::Running::metrics).await;
    let families: BTreeSet<&str> = scrape.families().into_iter().map(|f| f.trim_end_matches("_total")).collect();
    for family in [
        "weir_reconcile",
        "weir_reconcile_duration_seconds",
        "weir_reconcile_errors",
        "weir_policy_calls",
        "weir_policy_call_seconds",
        "weir_writes",
        "weir_queue_depth",
        "weir_leader",
        "weir_watch_errors",
        "weir_build",
        "process_resident_memory_bytes",
        "process_cpu_seconds",
    ] {
        assert!(families.iter().any(|f| f.trim_end_matches("_info") == family), "{family} is not in {families:?}");
    }
    assert!(scrape.sum("weir_reconcile_total", &[("kind", "DataPlane"), ("outcome", "Done")]) >= 1.0, "{}", scrape.0);
    assert!(scrape.sum("weir_writes_total", &[("object", "Deployment"), ("verb", "Apply")]) >= 1.0, "{}", scrape.0);
    assert!(scrape.sum("weir_policy_calls_total", &[("slot", "konnect-env"), ("outcome", "Answered")]) >= 1.0, "{}", scrape.0);
    assert!((scrape.sum("weir_leader", &[]) - 1.0).abs() < f64::EPSILON, "{}", scrape.0);
    assert!(scrape.sum("process_resident_memory_bytes", &[]) > 1e6, "{}", scrape.0);
    // Labels are finite: nothing in them is a name of an object.
    assert!(!scrape.0.contains(&ns.name) && !scrape.0.contains("hybrid"), "{}", scrape.0);
}

async fn probes(ns: Ns) {
    drop(ns);
    let cluster = cluster::shared().unwrap();
    let ask = async |path: &str| cluster.with_operator(|operator| operator.probe(path)).await.unwrap();
    assert_eq!(ask("/healthz").await.0, 200);
    assert_eq!(ask("/readyz").await.0, 200);
    let (code, body) = ask("/readyz?verbose").await;
    assert_eq!(code, 200);
    for word in ["DataPlane", "Deployment", "Secret", "konnect-env", "conflict-resolution", "sha256:", "leader"] {
        assert!(body.contains(word), "{word} is not in:\n{body}");
    }
    assert_eq!(ask("/nothing").await.0, 404);
}

/// Values of Secrets and literal variables are told to nobody.
async fn secrets(ns: Ns) {
    let secret = tls_secret("client");
    // The second line of the key, in the middle of its base64.
    let line = secret["stringData"]["tls.key"].as_str().unwrap().lines().nth(1).unwrap().to_owned();
    ns.apply(&secret).await;
    ns.apply(&extension("hybrid", "client")).await;
    ns.apply(&gateway_with("gw", extended("hybrid"))).await;
    ns.apply(&gateway("other")).await;
    let vars = serde_json::json!([{"name": "proxy", "image": "kong:3.9", "env": [{"name": "KONG_PG_PASSWORD", "value": "hunter2"}]}]);
    ns.edit(DATA_PLANE, "gw", super::shape::containers(vars)).await;
    ns.ready("gw", READY).await;
    let cluster = cluster::shared().unwrap();
    let log = cluster.with_operator(super::install::Running::log);
    let scrape = cluster.with_operator(super::install::Running::metrics).await;
    let events = serde_json::to_string(&ns.list(super::api::EVENT, "").await.unwrap()).unwrap();
    let system = Ns { name: "weir-system".into(), ..ns.clone() };
    let ca = system.get(SECRET, "kong-operator-ca").await.unwrap();
    let key = ca["data"]["tls.key"].as_str().unwrap().to_owned();
    for (what, text) in [("log", &log), ("metrics", &scrape.0), ("events", &events)] {
        for word in [line.as_str(), "hunter2", "PRIVATE KEY", &key] {
            assert!(!text.contains(word), "the {what} tells {word}");
        }
    }
    assert!(!log.is_empty() && log.lines().all(|line| line.starts_with('{')), "JSON lines only:\n{log}");
}

async fn lease(ns: Ns) {
    let system = Ns { name: "weir-system".into(), ..ns.clone() };
    system
        .eventually(CONVERGED, "the Lease is renewed", async || {
            let lease = system.get(LEASE, "weir").await?;
            holds(lease["spec"]["holderIdentity"].as_str().is_some_and(|h| !h.is_empty()), || format!("{:#}", lease["spec"]))?;
            holds(lease["spec"]["renewTime"].is_string(), || format!("{:#}", lease["spec"]))
        })
        .await;
}

/// The effective settings, without a cluster.
fn print_config() {
    let output = install::weir(&["operator", "--print-config", "--namespace", "elsewhere", "--leader-election-lease-duration", "30s"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let config: serde_json::Value = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("no YAML: {error}\n{text}"));
    assert!(config.is_object(), "{text}");
    assert!(text.contains("elsewhere") && text.contains("30s"), "{text}");
    assert!(!text.contains("token") && !text.contains("PRIVATE"), "{text}");
}
