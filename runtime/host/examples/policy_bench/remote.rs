//! A remote plugin on this machine, reached by the pool and without it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::Value;
use weir_core::policy::{KonnectEnv, Policy, konnect_env::Input};
use weir_host::{
    remote::{
        Caps, ClientIdentity, Deadlines, Endpoint, Limits as Bounds, Plugin, Registry, RemotePolicy, RemoteSlot, ServerTrust, Spec, Tuning,
    },
    wasm::Limits,
};
use weir_remote_plugin::{Behavior, Config, Files, Pair, Server, certificates, start};

use crate::{bare, native};

const NAME: &str = "bench.weir.dev";
const LONG: Duration = Duration::from_secs(10);

/// The plugin, the pool that knows it, and the runtime that the pool lives on.
pub(crate) struct Remote {
    policy: RemotePolicy<KonnectEnv>,
    plugin: Arc<Plugin>,
    server: Server,
    shown: Pair,
    client: Pair,
    _registry: Registry,
    runtime: tokio::runtime::Runtime,
}

impl Remote {
    pub(crate) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let shown = certificates::self_signed(&certificates::server(&["plugin"]).unwrap()).unwrap();
        let client = certificates::self_signed(&certificates::client().unwrap()).unwrap();
        let files = Files { cert: shown.cert.clone(), key: shown.key.clone(), clients: client.cert.clone() };
        let behavior = Behavior { konnect_env: Some(native::over_the_wire), ..Behavior::good(NAME) };
        let server = runtime.block_on(start(Config { listen: "127.0.0.1:0".parse().unwrap(), files, behavior })).unwrap();
        let registry = Registry::new(runtime.handle().clone(), Tuning::default(), Arc::new(()));
        registry.replace(vec![Spec {
            name: NAME.into(),
            endpoints: vec![Endpoint { host: server.address().ip().to_string(), port: server.address().port() }],
            server_names: vec!["plugin".into()],
            identity: Arc::new(ClientIdentity::parse(client.cert.as_bytes(), client.key.as_bytes()).unwrap()),
            trust: Arc::new(ServerTrust::parse(shown.cert.as_bytes(), None).unwrap()),
            limits: Bounds::default(),
            deadlines: Deadlines::default(),
        }]);
        let plugin = registry.get(NAME).unwrap();
        drop(runtime.block_on(plugin.acquire(LONG)).unwrap());
        let limits = Limits::new(LONG, 32 << 20).unwrap();
        let policy = runtime.block_on(RemotePolicy::load(Arc::clone(&plugin), Value::Null, limits)).unwrap();
        Self { policy, plugin, server, shown, client, _registry: registry, runtime }
    }

    /// As the operator asks it: from a thread that is none of the pool's.
    pub(crate) fn policy(&self) -> &dyn Policy<KonnectEnv> {
        &self.policy
    }

    /// The same question without the pool and through it, in turn, each on a thread of the runtime: bare, pooled.
    pub(crate) fn compare(&self, input: &Input, calls: usize) -> (Vec<Duration>, Vec<Duration>) {
        let question = KonnectEnv::question(input, "{}");
        let plugin = Arc::clone(&self.plugin);
        self.runtime.block_on(async {
            let mut client = bare::connect(&self.server, &self.shown, &self.client).await;
            let task = tokio::spawn(async move {
                let caps = Caps { question: 4 << 20, answer: 4 << 20 };
                let (mut without, mut with) = (Vec::with_capacity(calls), Vec::with_capacity(calls));
                for number in 0..calls + calls / 10 {
                    let began = Instant::now();
                    client.evaluate(question.clone()).await.unwrap();
                    let bare = began.elapsed();
                    let began = Instant::now();
                    let lease = plugin.acquire(LONG).await.unwrap();
                    KonnectEnv::send(&lease, caps, LONG, question.clone()).await.unwrap();
                    drop(lease);
                    let pooled = began.elapsed();
                    // The first ones warm up.
                    if number >= calls / 10 {
                        without.push(bare);
                        with.push(pooled);
                    }
                }
                (without, with)
            });
            task.await.unwrap()
        })
    }
}
