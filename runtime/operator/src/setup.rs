//! What the operator is made of, before anything runs.

use std::{path::Path, sync::Arc, time::Duration};

use http::{HeaderValue, header::USER_AGENT};
use kube::{Client, config::KubeConfigOptions};
use tokio::{
    sync::{
        Notify,
        mpsc::{UnboundedReceiver, UnboundedSender},
        watch,
    },
    task::JoinSet,
};
use weir_core::policy::object_hook::Paths;
use weir_host::{
    files::Files,
    layer::Counters,
    oci::Store,
    wasm::{Config as WasmConfig, Wasm},
};

use crate::{
    apply::Writer,
    authority::Authority,
    cache::Key,
    clock::Clock,
    config::Config,
    context::{Context, Controller, Settings},
    dataplane::Renewals,
    error::Error,
    events::Publisher,
    health::{self, Health},
    konnect_extension,
    metrics::Metrics,
    plugin_installation::{self, pull_secret::PullSecrets, pulls::Pulls},
    policies::{Base, Book, Revisions, Samples},
    reconcile_policy, record,
    registries::{Live, Shops},
    remote::{self, Remote},
    secrets::Secrets,
    world::World,
};

/// Components that are kept on disk, bytes.
const STORE_BYTES: u64 = 512 << 20;
/// Longest life of a connection that a snapshot is asked over.
const SNAPSHOT: Duration = Duration::from_secs(60);

/// A client of the API server that `kubeconfig` names, or of the one that is found in the usual places.
///
/// # Errors
/// There is none, or what names it cannot be used.
pub async fn connect(kubeconfig: Option<&Path>) -> Result<Client, Error> {
    // The one crypto provider; a second call finds it set.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let mut kube = match kubeconfig {
        Some(path) => {
            let unusable = |source| Error::Kubeconfig { path: path.to_owned(), source };
            let file = kube::config::Kubeconfig::read_from(path).map_err(unusable)?;
            kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.map_err(unusable)?
        }
        None => kube::Config::infer().await.map_err(Error::NoCluster)?,
    };
    kube.headers.push((USER_AGENT, HeaderValue::from_static(concat!("weir/", env!("CARGO_PKG_VERSION")))));
    // Watches say nothing for minutes; a dead connection is found by their own timeouts.
    kube.connect_timeout = Some(Duration::from_secs(10));
    kube.write_timeout = Some(Duration::from_secs(30));
    Client::try_from(kube).map_err(Error::Client)
}

/// Starts the servers of metrics and probes.
pub(crate) async fn serve(
    config: &Config,
    health: &Health,
    metrics: &Arc<Metrics>,
    stopped: &watch::Receiver<bool>,
    servers: &mut JoinSet<()>,
) -> Result<(), Error> {
    let until = || {
        let mut stop = stopped.clone();
        async move {
            let _ = stop.wait_for(|stop| *stop).await;
        }
    };
    if let Some(server) = health::Server::bind("--metrics-bind-address", &config.metrics_address).await? {
        servers.spawn(server.run(health::exposition(Arc::clone(metrics)), until()));
    }
    if let Some(server) = health::Server::bind("--health-probe-bind-address", &config.probes_address).await? {
        servers.spawn(server.run(health::probes(health.clone()), until()));
    }
    Ok(())
}

/// Starts the server of snapshots, where one is wanted.
pub(crate) async fn serve_snapshots(
    config: &Config,
    context: &Arc<Context>,
    client: &Client,
    stopped: &watch::Receiver<bool>,
    servers: &mut JoinSet<()>,
) -> Result<(), Error> {
    let Some(recording) = &config.recorder else { return Ok(()) };
    let Some(server) = health::Server::bind("--snapshot-bind-address", &config.snapshots_address).await? else { return Ok(()) };
    if !server.address().is_ok_and(|address| address.ip().is_loopback()) {
        return Err(Error::Snapshots { address: config.snapshots_address.clone() });
    }
    let mut stop = stopped.clone();
    let until = async move {
        let _ = stop.wait_for(|stop| *stop).await;
    };
    let router = record::router(record::Served::new(Arc::clone(context), client.clone(), recording.clone()));
    servers.spawn(server.with_lifetime(SNAPSHOT).run(router, until));
    Ok(())
}

/// What answers questions.
pub(crate) struct Answering {
    pub(crate) base: Arc<Base>,
    pub(crate) revisions: Arc<Revisions>,
    pub(crate) ended: (UnboundedSender<Key>, UnboundedReceiver<Key>),
}

/// The policies in force at the start.
pub(crate) fn load_policies(
    config: &Config,
    counters: &Arc<Counters>,
    health: &Health,
    clock: &Clock,
    metrics: &Arc<Metrics>,
) -> Result<Answering, Error> {
    let files = Files::named(&config.policies, &config.settings)?;
    let compile_program = std::env::current_exe().ok().filter(|exe| exe.file_stem().is_some_and(|name| name == "weir"));
    let cache_dir = config.cache_dir.as_ref().map(|dir| dir.join("aot"));
    let host = Wasm::new(WasmConfig { cache_dir, compile_program, ..WasmConfig::default() }).map_err(Error::Host)?;
    let samples = Arc::new(Samples::default());
    let (breakers, ended) = reconcile_policy::breakers(clock.clone(), Arc::clone(metrics));
    let base = Base::load(host.clone(), files, Arc::clone(counters), Arc::clone(&samples), health.clone())?;
    let revisions = Arc::new(Revisions::new(host, Arc::clone(counters), samples, breakers));
    Ok(Answering { base: Arc::new(base), revisions, ended })
}

/// Components that are kept on disk, where there is one. Without it a restart needs the registry.
fn store(config: &Config) -> Option<Store> {
    let dir = config.cache_dir.as_ref()?.join("components");
    Store::open(&dir, STORE_BYTES)
        .inspect_err(|reason| tracing::warn!(%reason, "components are not kept on disk: a restart asks the registries again"))
        .ok()
}

/// What the operator's parts stand on.
pub(crate) struct Shell {
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) health: Health,
    pub(crate) answering: Answering,
    pub(crate) registries: Arc<Live>,
}

/// What every pass has at hand.
pub(crate) fn context(config: &Config, shell: Shell) -> Arc<Context> {
    let Shell { client, clock, metrics, health, answering, registries } = shell;
    let world = Arc::new(World::default());
    let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    let ca = Key::new(&config.namespace, &config.ca_secret);
    let authority = Arc::new(Authority::new(client.clone(), ca, config.ca_key, config.secret_label.clone(), clock.clone()));
    let plugins = plugin_installation::Shared {
        users: plugin_installation::Index::default(),
        secrets: plugin_installation::Index::default(),
        known: plugin_installation::Known::default(),
        looks: plugin_installation::Looks::default(),
        pull_secrets: PullSecrets::new(client.clone(), Arc::clone(&world)),
        pulls: Pulls::new(Arc::new(Shops::new(Arc::clone(&registries), Arc::clone(&metrics))), Arc::clone(&metrics)),
    };
    let remote = Arc::new(Remote::new(client.clone(), plugins_of(config), &metrics));
    let policies = reconcile_policy::Shared::new(reconcile_policy::Parts {
        book: Arc::new(
            Book::new(answering.base, config.namespace.clone(), config.tenant_policies)
                .with_hook_paths(Paths::configured(&config.hook_paths)),
        ),
        revisions: answering.revisions,
        ended: answering.ended,
        sources: reconcile_policy::sources(client.clone(), Arc::clone(&registries), store(config)),
        metrics: Arc::clone(&metrics),
        world: Arc::clone(&world),
        clock: clock.clone(),
        health,
        operator_namespace: config.namespace.clone(),
        tenants: config.tenant_policies,
        remote: Arc::clone(&remote),
    });
    Arc::new(Context {
        writer: Writer::new(client.clone(), Arc::clone(&world), Arc::clone(&metrics), Arc::clone(&authority)),
        secrets: Secrets::new(client.clone(), Arc::clone(&world)),
        events: Publisher::start(client, config.identity.clone(), Arc::clone(&metrics)),
        world,
        authority,
        registries,
        policies,
        sealing: std::sync::OnceLock::new(),
        settings: Settings {
            namespace: config.namespace.clone(),
            tenant_policies: config.tenant_policies,
            cluster_name: config.cluster_name.clone(),
            cluster_labels: config.cluster_labels.clone(),
            validate_images: config.validate_images,
            secret_label: config.secret_label.clone(),
            certificate_ttl_seconds: seconds(config.certificate_ttl),
            certificate_margin_seconds: seconds(config.certificate_margin),
            plugin_installations: config.plugin_installations,
            cross_namespace_plugins: config.cross_namespace_plugins,
        },
        clock,
        metrics,
        data_planes: Controller::default(),
        extensions: Controller::default(),
        users: konnect_extension::Users::default(),
        installations: Controller::default(),
        plugins,
        remote,
        renewals: Renewals::default(),
        authority_changed: Notify::new(),
        recorder: config.recorder.clone(),
    })
}

/// The operator's own namespace comes first, and none twice.
fn plugins_of(config: &Config) -> remote::Settings {
    let mut namespaces = vec![config.namespace.clone()];
    for namespace in &config.plugin_namespaces {
        if !namespaces.contains(namespace) {
            namespaces.push(namespace.clone());
        }
    }
    remote::Settings { namespaces, cnpg: config.cnpg_plugins }
}
