//! What breaks in clusters: the API server goes away, the operator is killed at any moment, somebody writes against it, a watch expires.
//! Afterwards the state equals the plan and nothing is there twice.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{
    api::{DATA_PLANE, DEPLOYMENT, Kind, SECRET, SERVICE},
    audit::lines,
    install::Running,
    labs::{Lab, lab},
    ns::{CONVERGED, Ns, READY},
    shape::{env, gateway_with, holds, is_owned_by, name_of, proxy, uid},
};

pub(crate) fn tests() -> Vec<Trial> {
    vec![
        lab("faults-server", server),
        lab("faults-kill", killed),
        lab("faults-writer", writer),
        lab("faults-expired", expired),
        lab("faults-away", away),
    ]
}

/// A restarted operator must not wait for the Lease of the killed one as long as in production.
pub(crate) const SHORT_LEASE: [&str; 6] =
    ["--leader-election-lease-duration", "2s", "--leader-election-renew-deadline", "1500ms", "--leader-election-retry-period", "200ms"];

/// An outage of some seconds on a busy machine must not end the process: what is tested is what its caches do.
const LONG_LEASE: [&str; 4] = ["--leader-election-lease-duration", "60s", "--leader-election-renew-deadline", "50s"];

/// A small DataPlane without a load balancer: what is tested is the operator's part.
fn small(name: &str, turn: usize) -> Value {
    gateway_with(
        name,
        json!({"spec": {
            "network": {"services": {"ingress": {"type": "ClusterIP", "annotations": {"turn": turn.to_string()}}}},
            "deployment": {"replicas": 1, "podTemplateSpec": {"spec": {"containers": [
                {"name": "proxy", "image": format!("kong:3.{turn}"), "env": [{"name": "TURN", "value": turn.to_string()}]}
            ]}}}
        }}),
    )
}

async fn create(ns: &Ns, count: usize, turn: usize) {
    for number in 0..count {
        // The API server may be away: a user tries again.
        ns.eventually(READY, "a DataPlane is created", async || {
            ns.try_apply(&small(&format!("gw-{number}"), turn)).await.map(drop).map_err(String::from)
        })
        .await;
    }
}

const MANAGED: &str = "gateway-operator.konghq.com/managed-by=dataplane";

/// Exactly four children per DataPlane, each owned by it and as the turn's spec says.
async fn as_planned(ns: &Ns, count: usize, turn: usize) -> Result<(), String> {
    let owners: Vec<String> = ns.list(DATA_PLANE, "").await?.iter().map(uid).collect();
    holds(owners.len() == count, || format!("{} DataPlanes", owners.len()))?;
    let deployments = ns.list(DEPLOYMENT, MANAGED).await?;
    let services = ns.list(SERVICE, MANAGED).await?;
    let secrets = ns.list(SECRET, MANAGED).await?;
    let found = (deployments.len(), services.len(), secrets.len());
    holds(found == (count, 2 * count, count), || format!("Deployments, Services, Secrets: {found:?} for {count}"))?;
    for owner in &owners {
        let own = |all: &[Value]| all.iter().filter(|o| is_owned_by(o, owner)).count();
        let found = (own(&deployments), own(&services), own(&secrets));
        holds(found == (1, 2, 1), || format!("{found:?} for owner {owner}"))?;
    }
    for deployment in &deployments {
        let (image, variable) = (proxy(deployment)["image"].clone(), env(deployment).get("TURN").cloned());
        let good = image == format!("kong:3.{turn}") && variable == Some(turn.to_string());
        holds(good, || format!("{}: {image} {variable:?}", name_of(deployment)))?;
    }
    let turn = turn.to_string();
    let ingress = services.iter().filter(|s| s["metadata"]["annotations"]["turn"] == turn.as_str()).count();
    holds(ingress == count, || format!("{ingress} ingress Services are of turn {turn}"))
}

/// Kubernetes has done its part: whatever is written from here on, no Deployment gave a reason for.
async fn rolled_out(ns: &Ns) -> Result<(), String> {
    let data_planes = ns.list(DATA_PLANE, "").await?;
    for deployment in ns.list(DEPLOYMENT, MANAGED).await? {
        let (wanted, status) = (&deployment["spec"]["replicas"], &deployment["status"]);
        let counts = ["replicas", "updatedReplicas", "availableReplicas"].map(|field| status[field].clone());
        holds(counts.iter().all(|count| count == wanted), || format!("{} wants {wanted}: {status}", name_of(&deployment)))?;
        let owner = data_planes.iter().find(|d| is_owned_by(&deployment, &uid(d)));
        let owner = owner.ok_or_else(|| format!("{} has no owner", name_of(&deployment)))?;
        holds(owner["status"]["replicas"] == *wanted, || format!("{}: {:#}", name_of(owner), owner["status"]))?;
    }
    Ok(())
}

/// Nothing is written for 5 s; and a fresh process, which remembers nothing, changes no object either.
async fn at_rest(ns: &Ns, operator: &mut Running, count: usize, turn: usize) {
    ns.eventually(READY, "every Deployment is rolled out", async || rolled_out(ns).await).await;
    ns.settled().await;
    let audit = ns.audit().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let writes = audit.our_writes().await;
    assert!(writes.is_empty(), "{} writes at rest:\n{}", writes.len(), lines(&writes));
    let before = versions(ns).await;
    operator.stop_and_restart();
    operator.wait_leading().await;
    // Long enough for a pass over everything.
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(versions(ns).await, before, "a fresh pass changed something");
    as_planned(ns, count, turn).await.unwrap();
}

/// Every child and its version.
async fn versions(ns: &Ns) -> Vec<String> {
    let mut all = Vec::new();
    for kind in [DATA_PLANE, DEPLOYMENT, SERVICE, SECRET] {
        let version = |o: &Value| format!("{} {} {} {}", kind.kind, name_of(o), uid(o), o["metadata"]["resourceVersion"]);
        all.extend(ns.list(kind, "").await.unwrap().iter().map(version));
    }
    all
}

async fn server(lab: Lab) {
    const COUNT: usize = 30;
    let ns = &lab.ns;
    let mut operator = lab.operator("weir", &[]);
    create(ns, COUNT, 1).await;
    // Somewhere in the middle, not at the end.
    ns.eventually(READY, "some Deployments", async || {
        let count = ns.list(DEPLOYMENT, MANAGED).await?.len();
        holds(count >= 3, || format!("{count}"))
    })
    .await;
    for pause in [0, 4_000] {
        lab.cluster.kill_api_server();
        tokio::time::sleep(Duration::from_millis(pause)).await;
        lab.cluster.start_api_server();
        create(ns, COUNT, 2).await;
    }
    // An outage longer than the renew deadline ends the process, and the kubelet starts it again.
    ns.eventually(READY, "the state is the plan's", async || as_planned(ns, COUNT, 2).await).await;
    ns.all_ready(COUNT, READY).await;
    at_rest(ns, &mut operator, COUNT, 2).await;
}

/// A sequence that can be had again: xorshift, seeded from the clock unless `WEIR_SEED` says otherwise.
struct Random(u64);

impl Random {
    fn new() -> Self {
        let given = std::env::var("WEIR_SEED").ok().and_then(|text| text.parse().ok());
        let seed = given.unwrap_or_else(|| jiff::Timestamp::now().as_nanosecond() as u64 | 1);
        eprintln!("     faults kill: WEIR_SEED={seed}");
        Self(seed)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

async fn killed(lab: Lab) {
    const COUNT: usize = 100;
    const KILLS: usize = 20;
    let ns = &lab.ns;
    let mut random = Random::new();
    let seed = random.0;
    let mut operator = lab.operator("weir", &SHORT_LEASE);
    operator.wait_ready().await;
    let mut turn = 1;
    create(ns, COUNT, turn).await;
    for kill in 0..KILLS {
        // Every few kills the work begins anew, so that there always is some to be killed in.
        if kill % 4 == 3 {
            turn += 1;
            create(ns, COUNT, turn).await;
        }
        // Points in the life of the process: before the Lease, while caches fill, in the middle of applies.
        tokio::time::sleep(Duration::from_millis(random.below(4_500))).await;
        operator.kill_and_restart();
    }
    ns.eventually(Duration::from_secs(120), &format!("the state is the plan's, seed {seed}"), async || as_planned(ns, COUNT, turn).await)
        .await;
    ns.all_ready(COUNT, Duration::from_secs(120)).await;
    at_rest(ns, &mut operator, COUNT, turn).await;
}

/// Somebody rewrites children in a loop while they converge.
async fn writer(lab: Lab) {
    const COUNT: usize = 20;
    let ns = &lab.ns;
    let mut operator = lab.operator("weir", &SHORT_LEASE);
    let audit = ns.audit().await;
    create(ns, COUNT, 1).await;
    let begin = Instant::now();
    let mut foreign = 0;
    while begin.elapsed() < Duration::from_secs(15) {
        for number in 0..COUNT {
            let patch = json!({
                "metadata": {"annotations": {"fight": foreign.to_string()}},
                "spec": {"template": {"spec": {"terminationGracePeriodSeconds": 31 + foreign % 50}}, "minReadySeconds": foreign % 3}
            });
            let done = ns.try_edit("fighter", DEPLOYMENT, &format!("dataplane-gw-{number}"), &patch).await;
            foreign += usize::from(done.is_ok());
            let wrong = json!({"spec": {"selector": {"app": "elsewhere"}}});
            let done = ns.try_edit("fighter", SERVICE, &format!("dataplane-ingress-gw-{number}"), &wrong).await;
            foreign += usize::from(done.is_ok());
        }
    }
    assert!(foreign > 100, "{foreign} foreign writes are no fight");
    ns.eventually(READY, "the state is the plan's", async || as_planned(ns, COUNT, 1).await).await;
    ns.eventually(CONVERGED, "every selector is ours", async || {
        let services = ns.list(SERVICE, MANAGED).await?;
        let wrong: Vec<String> = services.iter().filter(|s| s["spec"]["selector"]["app"] == "elsewhere").map(name_of).collect();
        holds(wrong.is_empty(), || format!("{wrong:?}"))
    })
    .await;
    ns.all_ready(COUNT, READY).await;
    // Bounded by the foreign writes: creations, one repair each, statuses. A loop of its own would be far above.
    let ours = audit.our_writes().await.len();
    assert!(ours <= 3 * foreign + 20 * COUNT, "{ours} of our writes for {foreign} foreign ones");
    at_rest(ns, &mut operator, COUNT, 1).await;
}

/// A watch from a version that etcd has compacted answers 410: the caches are filled anew, and what happened meanwhile is seen.
async fn expired(lab: Lab) {
    let ns = &lab.ns;
    let mut operator = lab.operator("weir", &LONG_LEASE);
    create(ns, 5, 1).await;
    ns.all_ready(5, READY).await;
    // A new server process has an empty watch cache: versions from before it are too old for it.
    lab.cluster.kill_api_server();
    lab.cluster.start_api_server();
    for number in 0..5 {
        let patch = json!({"metadata": {"labels": {"churn": number.to_string()}}});
        ns.eventually(READY, "an edit", async || ns.try_edit("test", DATA_PLANE, "gw-0", &patch).await.map(drop).map_err(String::from))
            .await;
    }
    create(ns, 5, 2).await;
    ns.eventually(READY, "the state is the plan's", async || as_planned(ns, 5, 2).await).await;
    // Objects that went while nobody watched.
    lab.cluster.kill_api_server();
    lab.cluster.start_api_server();
    ns.eventually(READY, "a DataPlane is deleted", async || delete(ns, DATA_PLANE, "gw-4").await).await;
    ns.eventually(READY, "a child is deleted", async || delete(ns, SERVICE, "dataplane-ingress-gw-3").await).await;
    ns.eventually(READY, "four DataPlanes and their children", async || as_planned(ns, 4, 2).await).await;
    assert!(operator.is_running(), "it gave up:\n{}", operator.log());
    let log = operator.log();
    let expired: Vec<&str> = log.lines().filter(|line| line.contains("too old resource version")).collect();
    assert!(!expired.is_empty(), "no watch expired, so nothing is proved");
    let astray = expired.iter().find(|line| line.contains("RBAC"));
    assert!(astray.is_none(), "an expired watch is no matter of rights: {astray:?}");
    at_rest(ns, &mut operator, 4, 2).await;
}

async fn delete(ns: &Ns, kind: Kind, name: &str) -> Result<(), String> {
    let path = format!("{}/{name}", kind.path(&ns.name));
    super::api::call(&ns.client, "DELETE", &path, super::api::JSON, &Value::Null).await.map(drop).map_err(String::from)
}

/// Without an API server the caches are of the past after a while: the operator is not ready, says why, and lives on until it is.
async fn away(lab: Lab) {
    let ns = &lab.ns;
    // Without a Lease to lose, which would end it sooner.
    let mut operator = lab.operator("weir", &["--leader-elect", "false"]);
    operator.wait_ready().await;
    lab.cluster.kill_api_server();
    ns.always(Duration::from_secs(30), "a short outage is no news", async || {
        let (code, body) = operator.probe("/readyz").await?;
        holds(code == 200, || body)
    })
    .await;
    let watch = format!("watch DataPlane in {}: not ok", ns.name);
    ns.eventually(Duration::from_secs(60), "it is not ready", async || {
        let (code, body) = operator.probe("/readyz?verbose").await?;
        holds(code == 503 && body.contains(&watch), || body)
    })
    .await;
    assert_eq!(operator.probe("/healthz").await.unwrap().0, 200, "a restart would not help");
    lab.cluster.start_api_server();
    ns.eventually(READY, "it is ready again", async || {
        let (code, body) = operator.probe("/readyz?verbose").await?;
        holds(code == 200 && !body.contains("not ok"), || body)
    })
    .await;
    assert!(operator.is_running(), "it gave up:\n{}", operator.log());
    // Kubernetes' own components back off for up to a minute after an outage of this length, and whoever comes next needs them.
    ns.apply(&gateway_with("after", json!({}))).await;
    ns.ready("after", Duration::from_secs(180)).await;
}
