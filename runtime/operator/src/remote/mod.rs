//! Remote plugins: Services become entries of the host's registry, and what becomes of the connections is said on the Services. What is
//! decided is decided in [`weir_core::remote`].
//!
//! Every replica keeps its registry, so that a standby is connected before it leads; only the leader writes.

mod gather;
mod host;
mod materials;
mod wake;
pub mod watches;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use k8s_openapi::api::{
    core::v1::{ObjectReference, Secret, Service},
    discovery::v1::EndpointSlice,
};
use kube::{Client, core::PartialObjectMeta};
use tokio::sync::{Notify, watch};
use weir_core::remote::{self as core, Plan, ServicePlan, Spec, Standing, reconcile};
use weir_host::remote::{Registry, Tuning};

pub use self::host::Told;
use self::materials::{Materials, Pair};
use crate::{
    apply::Patched,
    cache::{Cache, Key},
    context::Context,
    memory::Memory,
    metrics::{ErrorReason, Kind, Metrics, Outcome},
};

/// Changes are collected for so long: a Secret and its Service are often applied together.
const COLLECT: Duration = Duration::from_millis(100);
/// Without any change everything is looked at so often: a clock that jumps makes no event.
const LOOK: Duration = Duration::from_secs(30);
/// After a failure of the API server.
const AGAIN: Duration = Duration::from_secs(2);

/// What of plugins is set.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Namespaces whose labelled Services are plugins: the operator's own, and others.
    pub namespaces: Vec<String>,
    /// Labels `cnpg.io/*` count too.
    pub cnpg: bool,
}

/// Everything about remote plugins.
pub struct Remote {
    /// What is set.
    pub settings: Settings,
    /// Services with our label.
    pub services: Cache<Service>,
    /// Services with the label of CNPG-I plugins.
    pub cnpg_services: Cache<Service>,
    /// Metadata of the Secrets of the plugin namespaces.
    pub secrets: Cache<PartialObjectMeta<Secret>>,
    /// EndpointSlices of Services.
    pub slices: Cache<EndpointSlice>,
    /// Whether EndpointSlices may be read.
    pub slices_served: AtomicBool,
    /// Connections.
    pub registry: Arc<Registry>,
    /// What is remembered of their Services between passes.
    pub memory: Memory,
    /// Something that a pass reads has changed.
    pub changed: Notify,
    /// Whether every list is complete.
    listed: watch::Sender<bool>,
    /// This replica leads.
    writing: AtomicBool,
    materials: Materials,
    last: Mutex<Last>,
}

/// What the last pass came to.
#[derive(Default)]
struct Last {
    kept: BTreeMap<String, (Spec, Pair)>,
    told: BTreeSet<core::Key>,
    standings: BTreeMap<String, Standing>,
    /// Services whose conditions have to go, until they are gone.
    clear: BTreeSet<core::Key>,
}

impl Remote {
    /// Nothing is known. Its connections live on the runtime that it is made in.
    #[must_use]
    pub fn new(client: Client, settings: Settings, metrics: &Arc<Metrics>) -> Self {
        let observer = Arc::new(Told(Arc::clone(metrics)));
        let registry = Arc::new(Registry::new(tokio::runtime::Handle::current(), Tuning::default(), observer));
        metrics.remote.watch(&registry);
        Self {
            settings,
            services: Cache::default(),
            cnpg_services: Cache::default(),
            secrets: Cache::default(),
            slices: Cache::default(),
            slices_served: AtomicBool::new(false),
            registry,
            memory: Memory::default(),
            changed: Notify::new(),
            listed: watch::Sender::new(false),
            writing: AtomicBool::new(false),
            materials: Materials::new(client),
            last: Mutex::default(),
        }
    }

    /// Nothing panics under the lock besides an allocation.
    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How a plugin stands.
    #[must_use]
    pub fn standing(&self, plugin: &str) -> Option<Standing> {
        self.last().standings.get(plugin).cloned()
    }

    /// This replica leads: what is known is written.
    pub fn write(&self) {
        self.writing.store(true, Ordering::SeqCst);
        self.changed.notify_one();
    }

    /// Labelled Services. One with both labels is in both caches, and equal.
    fn all_services(&self) -> Vec<Arc<Service>> {
        let ours = self.services.all();
        let key = |service: &Service| Key::of(&service.metadata);
        let known: BTreeSet<Key> = ours.iter().map(|service| key(service)).collect();
        let theirs = if self.settings.cnpg { self.cnpg_services.all() } else { Vec::new() };
        ours.into_iter().chain(theirs.into_iter().filter(|service| !known.contains(&key(service)))).collect()
    }
}

/// Keeps registry and Services in line with what is seen, until it is dropped.
pub async fn run(context: Arc<Context>) {
    let remote = &context.remote;
    let mut connections = remote.registry.changes();
    // The sender lives in there: waiting cannot fail.
    let _ = remote.listed.subscribe().wait_for(|listed| *listed).await;
    loop {
        let wait = match pass(&context).await {
            Ok(wait) => wait.min(LOOK),
            Err(error) => {
                tracing::warn!(%error, "remote plugins: a pass waits; what is in use stays");
                AGAIN
            }
        };
        tokio::select! {
            () = remote.changed.notified() => {}
            changed = connections.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(wait) => continue,
        }
        tokio::time::sleep(COLLECT).await;
    }
}

/// One pass over all plugins. Returns when the next is due.
async fn pass(context: &Arc<Context>) -> Result<Duration, String> {
    let begun = Instant::now();
    let remote = &context.remote;
    let seen = gather::look(context).await?;
    let plan = reconcile(&seen.snapshot);
    let pairs = seen.pairs(&plan.plugins);
    remote.registry.replace(pairs.iter().map(|(spec, pair)| host::spec(spec, pair)).collect());
    context.metrics.remote.certificates(&plan.plugins);
    let now = seen.snapshot.now;
    let again = plan.again.and_then(|at| Duration::try_from(at.duration_since(now)).ok()).unwrap_or(LOOK);
    let before = {
        let mut last = remote.last();
        last.kept = pairs.into_iter().map(|(spec, pair)| (spec.name.clone(), (spec, pair))).collect();
        last.told = plan.services.iter().map(|said| said.service.clone()).collect();
        last.clear.extend(plan.cleared.iter().cloned());
        last.clear.retain(|key| !plan.services.iter().any(|said| said.service == *key));
        std::mem::replace(&mut last.standings, plan.standings.clone())
    };
    wake::changed(context, &before, &plan.standings);
    if remote.writing.load(Ordering::SeqCst) {
        let outcome = write(context, plan).await;
        context.metrics.reconciled(Kind::RemotePlugin, outcome, begun.elapsed());
        if outcome == Outcome::Failed {
            return Ok(AGAIN.min(again));
        }
    }
    Ok(again)
}

/// Conditions first: an event is told when what it tells can be read.
async fn write(context: &Context, plan: Plan) -> Outcome {
    let mut outcome = Outcome::Done;
    for said in plan.services {
        let written = match said.changed {
            true => context.writer.plugin(&said.service, Some(&said.uid), &said.conditions).await,
            false => Patched::Done,
        };
        match written {
            Patched::Done => publish(context, said),
            Patched::Gone | Patched::Stale => {}
            Patched::Failed(error) => {
                outcome = Outcome::Failed;
                failed(context, &said.service, &error);
            }
        }
    }
    let clear: Vec<core::Key> = context.remote.last().clear.iter().cloned().collect();
    for key in clear {
        match context.writer.plugin(&key, None, &[]).await {
            Patched::Done | Patched::Gone | Patched::Stale => {
                context.remote.last().clear.remove(&key);
                context.remote.memory.forget(&Key::new(&key.0, &key.1));
            }
            Patched::Failed(error) => {
                outcome = Outcome::Failed;
                failed(context, &key, &error);
            }
        }
    }
    outcome
}

fn failed(context: &Context, service: &core::Key, error: &kube::Error) {
    context.metrics.failed(Kind::RemotePlugin, ErrorReason::of(error));
    tracing::warn!(namespace = service.0, service = service.1, %error, "the conditions of a remote plugin are not written");
}

fn publish(context: &Context, said: ServicePlan) {
    let memory = context.remote.memory.of(&Key::new(&said.service.0, &said.service.1));
    let news = {
        let mut remembered = memory.lock().unwrap_or_else(PoisonError::into_inner);
        remembered.begin(&said.uid);
        remembered.news(said.events)
    };
    if news.is_empty() {
        return;
    }
    let object = ObjectReference {
        api_version: Some("v1".into()),
        kind: Some("Service".into()),
        namespace: Some(said.service.0),
        name: Some(said.service.1),
        uid: Some(said.uid),
        ..ObjectReference::default()
    };
    context.events.publish(&object, news);
}
