//! A plugin, and a registry that knows it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use weir_host::remote::{
    ClientIdentity, Deadlines, Endpoint, Event, Limits, Observer, Plugin, Reason, Registry, ServerTrust, Spec, State, Status, Tuning,
    service_names,
};
use weir_remote_plugin::{Behavior, Config, Files, Pair, Server, certificates, start};

/// Name of the plugin.
pub const NAME: &str = "example.weir.dev";
/// Longest wait for something that has to come; a busy machine needs some.
pub const LONG: Duration = Duration::from_secs(20);

/// Times that a test can wait for.
pub fn tuning() -> Tuning {
    Tuning {
        connect: Duration::from_secs(2),
        fresh: Duration::from_millis(100),
        health: Duration::from_millis(300),
        not_ready: Duration::from_millis(50),
        backoff: Duration::from_millis(20),
        backoff_most: Duration::from_millis(200),
        ..Tuning::default()
    }
}

/// Both sides' certificates, self-signed: what the samples of CNPG-I deploy.
pub struct Both {
    pub server: Pair,
    pub client: Pair,
}

impl Both {
    pub fn self_signed() -> Self {
        let server = certificates::self_signed(&certificates::server(&["plugin"]).unwrap()).unwrap();
        let client = certificates::self_signed(&certificates::client().unwrap()).unwrap();
        Self { server, client }
    }

    pub fn files(&self) -> Files {
        Files { cert: self.server.cert.clone(), key: self.server.key.clone(), clients: self.client.cert.clone() }
    }
}

/// A plugin on a free port.
pub async fn serve(files: Files, behavior: Behavior) -> Server {
    start(Config { listen: "127.0.0.1:0".parse().unwrap(), files, behavior }).await.unwrap()
}

/// A spec for plugins at these addresses.
pub fn spec(servers: &[&Server], client: &Pair, tls_crt: &str, ca_crt: Option<&str>) -> Spec {
    let endpoint = |server: &&Server| Endpoint { host: server.address().ip().to_string(), port: server.address().port() };
    Spec {
        name: NAME.into(),
        endpoints: servers.iter().map(endpoint).collect(),
        server_names: service_names("plugin", "weir-system", "cluster.local"),
        identity: Arc::new(ClientIdentity::parse(client.cert.as_bytes(), client.key.as_bytes()).unwrap()),
        trust: Arc::new(ServerTrust::parse(tls_crt.as_bytes(), ca_crt.map(str::as_bytes)).unwrap()),
        limits: Limits::default(),
        deadlines: Deadlines::default(),
    }
}

/// Keeps what happened.
#[derive(Default)]
pub struct Seen(Mutex<Vec<Event>>);

impl Seen {
    pub fn all(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }

    pub fn count(&self, of: impl Fn(&Event) -> bool) -> usize {
        self.all().iter().filter(|event| of(event)).count()
    }
}

impl Observer for Seen {
    fn event(&self, _plugin: &str, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}

/// A registry on this runtime.
pub fn registry(tuning: Tuning) -> (Registry, Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    (Registry::new(tokio::runtime::Handle::current(), tuning, Arc::clone(&seen) as Arc<dyn Observer>), seen)
}

/// A plugin with self-signed certificates and a registry that knows it.
pub struct Lab {
    pub server: Server,
    pub both: Both,
    pub registry: Registry,
    pub seen: Arc<Seen>,
    pub plugin: Arc<Plugin>,
}

impl Lab {
    pub async fn with(behavior: Behavior, tuning: Tuning, change: impl FnOnce(&mut Spec)) -> Self {
        let both = Both::self_signed();
        let server = serve(both.files(), behavior).await;
        let (registry, seen) = registry(tuning);
        let mut spec = spec(&[&server], &both.client, &both.server.cert, None);
        change(&mut spec);
        registry.replace(vec![spec]);
        let plugin = registry.get(NAME).unwrap();
        Self { server, both, registry, seen, plugin }
    }

    pub async fn good() -> Self {
        let lab = Self::with(Behavior::good(NAME), tuning(), |_| {}).await;
        until(&lab.plugin, |status| status.state == State::Ready).await;
        lab
    }

    pub fn spec(&self) -> Spec {
        spec(&[&self.server], &self.both.client, &self.both.server.cert, None)
    }
}

/// Waits until the plugin is like that.
pub async fn until(plugin: &Plugin, like: impl Fn(&Status) -> bool) -> Arc<Status> {
    let began = std::time::Instant::now();
    loop {
        let status = plugin.status();
        if like(&status) {
            return status;
        }
        assert!(began.elapsed() < LONG, "still {status:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits for this reason.
pub async fn until_reason(plugin: &Plugin, reason: Reason) -> Arc<Status> {
    until(plugin, |status| status.reason == Some(reason)).await
}
