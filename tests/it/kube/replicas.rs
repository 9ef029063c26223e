//! Two operators, one leads: who takes over, when, and that never both write.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use libtest_mimic::Trial;
use serde_json::json;

use super::{
    api::{DATA_PLANE, LEASE},
    audit::{Asked, lines},
    install::Running,
    labs::{Lab, lab},
    ns::{CONVERGED, Ns, READY},
    shape::{gateway_with, holds},
};

pub(crate) fn tests() -> Vec<Trial> {
    vec![lab("replicas-killed", killed), lab("replicas-stopped", stopped)]
}

const LEASE_DURATION: Duration = Duration::from_secs(8);
const FLAGS: [&str; 6] =
    ["--leader-election-lease-duration", "8s", "--leader-election-renew-deadline", "6s", "--leader-election-retry-period", "500ms"];

async fn create(ns: &Ns, name: &str) {
    ns.apply(&gateway_with(name, json!({"spec": {"network": {"services": {"ingress": {"type": "ClusterIP"}}}}}))).await;
}

async fn holder(system: &Ns) -> Result<String, String> {
    let lease = system.get(LEASE, "weir").await?;
    lease["spec"]["holderIdentity"].as_str().filter(|h| !h.is_empty()).map(str::to_owned).ok_or("nobody holds the Lease".into())
}

/// First one, then the other, so that the test knows who leads.
async fn two(lab: &Lab) -> (Running, Running, String) {
    let first = lab.operator("weir", &FLAGS);
    first.wait_ready().await;
    let system = lab.system();
    let leader = system.eventually(CONVERGED, "the first leads", async || holder(&system).await).await;
    let second = lab.operator("weir-b", &FLAGS);
    second.wait_ready().await;
    (first, second, leader)
}

async fn leads(operator: &Running) -> bool {
    operator.metrics().await.sum("weir_leader", &[]) > 0.5
}

/// Who wrote what, Lease and events apart.
fn writers(asked: &[Asked], lab: &Lab) -> BTreeMap<String, Vec<Asked>> {
    let users = ["weir", "weir-b"].map(|account| lab.installation.user_name(account));
    let mut by = BTreeMap::<String, Vec<Asked>>::new();
    let counts = |a: &&Asked| users.contains(&a.user) && a.is_write() && !["leases", "events"].contains(&a.resource.as_str());
    for one in asked.iter().filter(counts) {
        by.entry(one.user.clone()).or_default().push(one.clone());
    }
    by
}

/// Every write of the later leader comes after every write of the earlier one.
fn never_both(by: &BTreeMap<String, Vec<Asked>>, lab: &Lab) {
    let of = |account: &str| by.get(&lab.installation.user_name(account)).cloned().unwrap_or_default();
    let (first, second) = (of("weir"), of("weir-b"));
    assert!(!first.is_empty() && !second.is_empty(), "both led once: {} and {} writes", first.len(), second.len());
    // RFC 3339 in UTC with six digits sorts as text.
    let (last, next) = (first.iter().map(|a| &a.at).max(), second.iter().map(|a| &a.at).min());
    assert!(last < next, "both wrote:\n{}\n--\n{}", lines(&first[first.len().saturating_sub(5)..]), lines(&second[..second.len().min(5)]));
}

async fn killed(lab: Lab) {
    let (ns, system) = (&lab.ns, lab.system());
    let audit = ns.audit().await;
    let (mut first, second, leader) = two(&lab).await;
    for number in 0..20 {
        create(ns, &format!("gw-{number}")).await;
    }
    ns.all_ready(20, READY).await;
    assert!(leads(&first).await && !leads(&second).await, "one leads");
    let by = writers(&audit.asked().await, &lab);
    assert_eq!(by.keys().collect::<Vec<_>>(), [&lab.installation.user_name("weir")], "a standby writes nothing");
    // In the middle of work.
    for number in 20..40 {
        create(ns, &format!("gw-{number}")).await;
    }
    first.kill();
    let begin = Instant::now();
    system
        .eventually(LEASE_DURATION + Duration::from_secs(2), "the other leads within the lease time", async || {
            let now = holder(&system).await?;
            holds(now != leader, || format!("still {now}"))
        })
        .await;
    create(ns, "later").await;
    ns.all_ready(41, READY).await;
    assert!(leads(&second).await);
    eprintln!("     replicas killed: failover and 21 DataPlanes in {:?}", begin.elapsed());
    never_both(&writers(&audit.asked().await, &lab), &lab);
    // The killed one comes back and stands by.
    let again = lab.operator("weir", &FLAGS);
    again.wait_ready().await;
    let audit = ns.audit().await;
    ns.edit(DATA_PLANE, "later", json!({"spec": {"deployment": {"replicas": 2}}})).await;
    ns.ready("later", READY).await;
    let by = writers(&audit.asked().await, &lab);
    assert_eq!(by.keys().collect::<Vec<_>>(), [&lab.installation.user_name("weir-b")]);
}

async fn stopped(lab: Lab) {
    let (ns, system) = (&lab.ns, lab.system());
    let audit = ns.audit().await;
    let (mut first, second, leader) = two(&lab).await;
    for number in 0..10 {
        create(ns, &format!("gw-{number}")).await;
    }
    ns.all_ready(10, READY).await;
    for number in 10..30 {
        create(ns, &format!("gw-{number}")).await;
    }
    let begin = Instant::now();
    let status = first.stop(Duration::from_secs(20));
    assert!(status.success(), "{status}\n{}", first.log());
    // From the signal on, the time to finish what is in flight included.
    let left = Duration::from_secs(3).saturating_sub(begin.elapsed());
    system
        .eventually(left, "the Lease is handed over", async || {
            let now = holder(&system).await?;
            holds(now != leader, || format!("still {now}"))
        })
        .await;
    assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
    ns.all_ready(30, READY).await;
    assert!(leads(&second).await);
    never_both(&writers(&audit.asked().await, &lab), &lab);
}
