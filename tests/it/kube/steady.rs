//! Nothing changes, nothing is done.

use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{
    api::SECRET,
    audit::{Asked, lines},
    labs::{Lab, lab},
    shape::{extended, extension, gateway_with, merge, tls_secret},
};

pub(crate) fn tests() -> Vec<Trial> {
    vec![lab("steady", steady)]
}

const COUNT: usize = 200;
const TIME: Duration = Duration::from_secs(60);

/// One of four kinds: plain, with an extension, with an autoscaler, with a conflict that a policy decides.
fn one(number: usize) -> Value {
    let mut object = gateway_with(&format!("gw-{number}"), json!({"spec": {"network": {"services": {"ingress": {"type": "ClusterIP"}}}}}));
    match number % 4 {
        1 => merge(&mut object, extended("hybrid")),
        2 => merge(&mut object, json!({"spec": {"deployment": {"scaling": {"horizontal": {"minReplicas": 1, "maxReplicas": 2}}}}})),
        3 => {
            let vars = json!([{"name": "proxy", "image": "kong:3.9", "env": [{"name": "KONG_NGINX_WORKER_PROCESSES", "value": "4"}]}]);
            merge(&mut object, super::shape::containers(vars));
        }
        _ => {}
    }
    object
}

async fn steady(lab: Lab) {
    let ns = &lab.ns;
    let operator = lab.operator("weir", &[]);
    operator.wait_ready().await;
    ns.apply(&tls_secret("client")).await;
    ns.apply(&extension("hybrid", "client")).await;
    for number in 0..COUNT {
        ns.apply(&one(number)).await;
    }
    ns.all_ready(COUNT, Duration::from_secs(240)).await;
    ns.settled().await;
    let (before, audit) = (operator.metrics().await, ns.audit().await);
    tokio::time::sleep(TIME).await;
    let (after, asked) = (operator.metrics().await, audit.asked().await);
    // By user and not by namespace: a write anywhere counts.
    let user = lab.installation.user_name("weir");
    let ours: Vec<_> = asked.iter().filter(|a| a.user == user && a.is_write()).cloned().collect();
    let writes: Vec<_> = ours.iter().filter(|a| a.resource != "leases").cloned().collect();
    assert!(writes.is_empty(), "{} writes in {TIME:?}:\n{}", writes.len(), lines(&writes));
    assert!(ours.len() > 5, "the Lease is renewed: {} requests", ours.len());
    let calls = |m: &super::install::Metrics| m.sum("weir_policy_calls_total", &[]);
    assert!(calls(&before) >= 2.0, "policies were asked at all: {}", before.0);
    assert!((calls(&after) - calls(&before)).abs() < f64::EPSILON, "policy calls: {} and then {}", calls(&before), calls(&after));
    // Reading is not free either: caches watch, they do not poll.
    let read = |a: &&Asked| a.user == user && ["get", "list"].contains(&a.verb.as_str()) && a.resource != "leases";
    let reads: Vec<Asked> = asked.iter().filter(read).cloned().collect();
    assert!(reads.len() <= 20, "{} reads in {TIME:?}:\n{}", reads.len(), lines(&reads));
    let secrets = ns.list(SECRET, "gateway-operator.konghq.com/service-secret").await.unwrap();
    assert_eq!(secrets.len(), COUNT);
}
