//! What the pool makes of the real server stack: hooks, faults, renewals, restarts.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use weir_host::remote::{self as pool, Behavior, Class, Reason, Registry, Stage, State, Status, Tuning, Verb};
use weir_remote_plugin::{Files, Pair};

use super::{
    plugin::{NAME, Plugin},
    shapes::{Shape, operator, self_signed, spec},
};

/// Longest wait for something that has to come; a busy machine needs some.
const LONG: Duration = Duration::from_secs(30);

/// A plugin with self-signed certificates and a pool that knows it.
struct Pool {
    plugin: Plugin,
    server: Pair,
    client: Pair,
    registry: Registry,
    pooled: Arc<pool::Plugin>,
}

impl Pool {
    async fn start(program: &Path) -> Self {
        let (server, client) = (self_signed("plugin"), operator());
        let plugin = Shape { server: &server, clients: &client.cert, client: &client, tls_crt: &server.cert }.start(program);
        let tuning = Tuning {
            health: Duration::from_millis(300),
            not_ready: Duration::from_millis(50),
            fresh: Duration::from_millis(100),
            backoff: Duration::from_millis(20),
            backoff_most: Duration::from_millis(200),
            ..Tuning::default()
        };
        let registry = Registry::new(tokio::runtime::Handle::current(), tuning, Arc::new(()));
        registry.replace(vec![spec(&plugin, &client, &server.cert)]);
        let pooled = registry.get(NAME).unwrap();
        let pool = Self { plugin, server, client, registry, pooled };
        pool.until("it is ready", |status| status.state == State::Ready).await;
        pool
    }

    async fn until(&self, what: &str, like: impl Fn(&Status) -> bool) -> Arc<Status> {
        let began = Instant::now();
        loop {
            let status = self.pooled.status();
            if like(&status) {
                return status;
            }
            assert!(began.elapsed() < LONG, "not yet: {what}: {status:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn create(&self, within: Duration) -> Result<Vec<u8>, pool::CallError> {
        let lease = self.pooled.acquire(LONG).await.unwrap();
        let bytes = |object: Value| object.to_string().into_bytes();
        lease.lifecycle(Verb::Create, bytes(data_plane()), bytes(deployment()), within).await
    }
}

/// The owner. Plugins of databases read it as their own kind: what is called the same must be of the same type.
fn data_plane() -> Value {
    json!({
        "apiVersion": "gateway-operator.konghq.com/v1beta1", "kind": "DataPlane",
        "metadata": {"name": "gw", "namespace": "default", "labels": {}, "annotations": {}},
        "spec": {
            "deployment": {"replicas": 2, "podTemplateSpec": {"spec": {"containers": [{"name": "proxy", "image": "kong:3.9"}]}}},
            "network": {"services": {"ingress": {"type": "ClusterIP"}}},
            "resources": {"podDisruptionBudget": {"spec": {"minAvailable": 1}}},
            "extensions": [{"group": "gateway-operator.konghq.com", "kind": "KonnectExtension", "name": "k"}],
            "pluginsToInstall": [{"name": "p"}],
        },
        "status": {"conditions": [], "readyReplicas": 1, "service": "s"},
    })
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "dataplane-gw", "namespace": "default", "annotations": {}},
        "spec": {"selector": {"matchLabels": {"app": "gw"}}, "template": {
            "metadata": {"labels": {"app": "gw"}}, "spec": {"containers": [{"name": "proxy", "image": "kong:3.9"}]},
        }},
    })
}

/// Identity, lifecycle, reconciler and status: what is offered is answered.
pub(super) async fn hooks(program: &Path) {
    let pool = Pool::start(program).await;
    let offers = pool.pooled.capabilities().unwrap();
    assert!(offers.wants("apps", "Deployment", Verb::Create) && !offers.wants("", "Pod", Verb::Create), "{offers:?}");
    let patch = pool.create(LONG).await.unwrap();
    let patch: Vec<Value> = serde_json::from_slice(&patch).unwrap();
    let text = Value::from(patch).to_string();
    assert!(text.contains("cnpg.example.com/seen") || text.contains("cnpg.example.com~1seen"), "{text}");
    assert!(text.contains("\"gw\"") && !text.contains("/spec"), "only the label is patched: {text}");
    let lease = pool.pooled.acquire(LONG).await.unwrap();
    let ask = async |stage| lease.reconcile(stage, data_plane().to_string().into_bytes(), b"{}".to_vec(), LONG).await;
    assert_eq!(ask(Stage::Pre).await, Ok(Behavior::Continue));
    pool.plugin.answer(&json!({"behavior": "requeue", "requeueAfter": 7}));
    assert_eq!(ask(Stage::Post).await, Ok(Behavior::Requeue(Some(Duration::from_secs(7)))));
    pool.plugin.answer(&json!({"behavior": "terminate"}));
    assert_eq!(ask(Stage::Pre).await, Ok(Behavior::Terminate));
    assert_eq!(lease.set_status(b"{}".to_vec(), LONG).await.unwrap().unwrap()["greeting"], NAME);
}

/// What goes wrong in the Go stack, with its own words, and what is told of it.
pub(super) async fn faults(program: &Path) {
    let pool = Pool::start(program).await;
    for (fault, class, says) in [
        ("panic", Class::Failed, "invalid memory address"),
        ("not-yet", Class::Later, "the backend is not there yet"),
        ("invalid", Class::Permanent, "what is that?"),
        ("huge", Class::TooLarge, "too large"),
        ("garbage", Class::Garbage, ""),
    ] {
        pool.plugin.answer(&json!({"fault": fault}));
        let error = pool.create(LONG).await.unwrap_err();
        assert_eq!(error.class, class, "{fault}: {error}");
        assert!(error.message.contains(says) && !error.message.contains("goroutine"), "{fault}: {error}");
        assert_eq!(pool.pooled.state(), State::Ready, "{fault} is no fault of the connection");
    }
    pool.plugin.answer(&json!({"fault": "slow"}));
    pool.create(LONG).await.unwrap();
    pool.plugin.answer(&json!({"fault": "hang"}));
    assert_eq!(pool.create(Duration::from_millis(200)).await.unwrap_err().class, Class::Deadline);
    pool.plugin.answer(&json!({"notReady": true}));
    pool.until("it is not ready", |status| status.reason == Some(Reason::NotReady)).await;
    pool.plugin.answer(&json!({}));
    pool.until("it is ready again", |status| status.state == State::Ready).await;
    pool.create(LONG).await.unwrap();
    // What a plugin says of itself is read with every connection.
    pool.plugin.answer(&json!({"fault": "nil-capability"}));
    let found = pool::examine(spec(&pool.plugin, &pool.client, &pool.server.cert), 1).await;
    assert_eq!((found.failure, found.offers.unwrap().services.len()), (None, 3));
    pool.plugin.answer(&json!({"name": "other.example.com"}));
    let found = pool::examine(spec(&pool.plugin, &pool.client, &pool.server.cert), 1).await;
    assert_eq!(found.failure.unwrap().0, Reason::NameMismatch);
    pool.plugin.answer(&json!({"fault": "hang-all"}));
    let found = pool::examine(spec(&pool.plugin, &pool.client, &pool.server.cert), 1).await;
    assert_eq!(found.failure.unwrap().0, Reason::ProbeFailed);
}

/// Both sides renew under 50 calls a second; then the plugin is killed and comes back as another version.
pub(super) async fn life(program: &Path) {
    let mut pool = Pool::start(program).await;
    let stop = Arc::new(AtomicBool::new(false));
    let calls = tokio::spawn(calls(Arc::clone(&pool.pooled), Arc::clone(&stop)));
    let (server, client) = (self_signed("plugin"), operator());
    let pause = || tokio::time::sleep(Duration::from_millis(700));
    pause().await;
    pool.registry.replace(vec![spec(&pool.plugin, &pool.client, &server.cert)]);
    pause().await;
    pool.plugin.renew(&Files { cert: server.cert.clone(), key: server.key.clone(), clients: pool.client.cert.clone() });
    pause().await;
    let last = spec(&pool.plugin, &client, &server.cert);
    let digest = last.digest();
    pool.registry.replace(vec![last]);
    pause().await;
    pool.plugin.renew(&Files { cert: server.cert.clone(), key: server.key.clone(), clients: client.cert.clone() });
    let renewed = |status: &Status| status.spec == digest && !status.overlap && status.state == State::Ready;
    pool.until("both sides are renewed", renewed).await;
    pause().await;
    stop.store(true, Ordering::SeqCst);
    let (made, lost) = calls.await.unwrap();
    assert!(made > 50, "{made} calls");
    assert_eq!(lost, Vec::<String>::new(), "of {made} calls");

    pool.plugin.stop();
    pool.until("it is gone", |status| status.reason == Some(Reason::Unreachable)).await;
    pool.plugin.answer(&json!({"version": "2.0.0"}));
    pool.plugin.resume();
    let back = pool.until("it is back", |status| status.state == State::Ready).await;
    assert_eq!(back.metadata.as_ref().unwrap().version, "2.0.0");
    pool.create(LONG).await.unwrap();
}

/// 50 calls a second until told to stop.
async fn calls(plugin: Arc<pool::Plugin>, stop: Arc<AtomicBool>) -> (usize, Vec<String>) {
    let (mut made, mut lost) = (0, Vec::new());
    while !stop.load(Ordering::SeqCst) {
        made += 1;
        let outcome = match plugin.acquire(LONG).await {
            Ok(lease) => lease.set_status(b"{}".to_vec(), LONG).await.map(|_| ()).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        lost.extend(outcome.err());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    (made, lost)
}
