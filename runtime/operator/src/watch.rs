//! One watch into one cache. Every object is guarded: one that cannot be read stops nothing.

mod signs;

use std::{
    collections::BTreeSet,
    fmt::Debug,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::{StreamExt, pin_mut};
use kube::{
    Api, Client, Resource,
    core::{DeserializeGuard, NamespaceResourceScope, PartialObjectMeta, error_boundary::InvalidObject},
    runtime::watcher,
};
use serde::de::DeserializeOwned;

use crate::{
    cache::{Cache, Cached, Change},
    health::Health,
    metrics::{Metrics, ObjectKind},
};

/// Waits after a failed watch double. kube's own back-off begins anew with every list that is tried, also with one that fails.
const FIRST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// How many watches have not seen everything yet.
#[derive(Debug, Clone)]
pub struct Pending(tokio::sync::watch::Sender<usize>);

impl Pending {
    /// `groups` of watches have not even begun.
    #[must_use]
    pub fn new(groups: usize) -> Self {
        Self(tokio::sync::watch::Sender::new(groups))
    }

    fn add(&self) {
        self.0.send_modify(|n| *n = n.saturating_add(1));
    }

    /// One less.
    pub fn done(&self) {
        self.0.send_modify(|n| *n = n.saturating_sub(1));
    }

    /// Waits until all have.
    pub async fn all(&self) {
        // The sender lives here: waiting cannot fail.
        let _ = self.0.subscribe().wait_for(|n| *n == 0).await;
    }
}

/// What every watch needs.
#[derive(Clone)]
pub struct Watching {
    /// Watches that have not seen everything yet.
    pub pending: Pending,
    /// The client.
    pub client: Client,
    /// Namespaces to watch; empty for all.
    pub namespaces: Vec<String>,
    /// Told when a list is complete, and whether a watch works.
    pub health: Health,
    /// Told of failures.
    pub metrics: Arc<Metrics>,
}

impl Watching {
    /// The same for one namespace more, where not all of them are watched: what the operator's own namespace holds counts everywhere.
    #[must_use]
    pub fn and(&self, namespace: &str) -> Self {
        let mut more = self.clone();
        if !more.namespaces.is_empty() && !more.namespaces.iter().any(|known| known == namespace) {
            more.namespaces.push(namespace.to_owned());
        }
        more
    }

    /// One more watch whose list is waited for.
    pub fn expect(&self, kind: ObjectKind) {
        self.pending.add();
        self.metrics.watched(kind);
        self.health.expect(kind);
    }

    /// The client for one watch of a kind that the operator needs: readiness learns whether it works.
    #[must_use]
    pub fn client_of(&self, kind: ObjectKind, place: &str) -> Client {
        signs::client(&self.client, self.health.watch(kind, place))
    }

    /// Its list is complete. Once per watch.
    pub fn synced(&self, kind: ObjectKind) {
        self.pending.done();
        self.health.synced(kind);
    }
}

/// Does something the first time only.
pub struct Once<F: Fn()>(std::sync::atomic::AtomicBool, F);

impl<F: Fn()> Once<F> {
    /// Nothing is done yet.
    pub fn new(f: F) -> Self {
        Self(std::sync::atomic::AtomicBool::new(false), f)
    }

    /// Does it, the first time.
    pub fn call(&self) {
        if !self.0.swap(true, std::sync::atomic::Ordering::Relaxed) {
            (self.1)();
        }
    }
}

/// What of a kind is watched.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Label selector.
    pub labels: Option<String>,
    /// Field selector.
    pub fields: Option<String>,
}

impl Selection {
    /// By labels.
    #[must_use]
    pub fn labels(selector: impl Into<String>) -> Self {
        Self { labels: Some(selector.into()), fields: None }
    }

    fn config(&self) -> watcher::Config {
        let mut config = watcher::Config::default();
        config.label_selector.clone_from(&self.labels);
        config.field_selector.clone_from(&self.fields);
        config
    }
}

/// What a watch delivers: an object that may be unreadable.
pub trait Guard: Resource + Clone + Debug + DeserializeOwned + Send + 'static {
    /// The object inside.
    type Object;
    /// The object.
    ///
    /// # Errors
    /// What was readable of one that is not readable.
    fn open(self) -> Result<Self::Object, Box<InvalidObject>>;
}

impl<K> Guard for DeserializeGuard<K>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    type Object = K;

    fn open(self) -> Result<K, Box<InvalidObject>> {
        self.0.map_err(Box::new)
    }
}

// Not `DeserializeGuard<PartialObjectMeta<K>>`: the guard would hide that only metadata is wanted, and whole Secrets would come.
impl<K: Resource + Clone + Debug + Send + 'static> Guard for PartialObjectMeta<K> {
    type Object = Self;

    fn open(self) -> Result<Self, Box<InvalidObject>> {
        Ok(self)
    }
}

/// A kind that may be missing for ever.
#[derive(Clone, Copy)]
pub struct Optional<'a> {
    /// How long after it came it is noticed, at most.
    pub wait: Duration,
    /// Told at every list and at every try that finds it missing: whether it is served, and may be read.
    pub served: &'a (dyn Fn(bool) + Sync),
}

/// Watches a namespaced kind in every watched namespace. `keep` reduces an object to what is cached, or leaves it out; `changed` is told
/// what changed. Runs until it is dropped.
pub async fn namespaced<G, T>(
    watching: &Watching,
    kind: ObjectKind,
    selection: Selection,
    cache: &Cache<T>,
    keep: impl Fn(G::Object) -> Option<T>,
    changed: impl Fn(Change<T>),
) where
    G: Guard + Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    T: Cached,
{
    watching.expect(kind);
    in_namespaces::<G, T>(watching, kind, None, &selection, cache, (&keep, &changed), || watching.synced(kind)).await;
}

/// The same for a kind that may be missing. Passes wait until its list is complete or it is known to be missing; readiness does not.
pub async fn optional<G, T>(
    watching: &Watching,
    kind: ObjectKind,
    (optional, selection): (Optional<'_>, Selection),
    cache: &Cache<T>,
    keep: impl Fn(G::Object) -> Option<T>,
    changed: impl Fn(Change<T>),
) where
    G: Guard + Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    T: Cached,
{
    watching.pending.add();
    in_namespaces::<G, T>(watching, kind, Some(optional), &selection, cache, (&keep, &changed), || watching.pending.done()).await;
}

/// One watch per watched namespace, or one of all. `synced` is called once, when every one has told what it knows.
async fn in_namespaces<G, T>(
    watching: &Watching,
    kind: ObjectKind,
    optional: Option<Optional<'_>>,
    selection: &Selection,
    cache: &Cache<T>,
    (keep, changed): (&impl Fn(G::Object) -> Option<T>, &impl Fn(Change<T>)),
    synced: impl Fn() + Sync,
) where
    G: Guard + Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    T: Cached,
{
    let mut places = watching.namespaces.clone();
    if places.is_empty() {
        places.push(String::new());
    }
    let missing = Mutex::new(places.iter().cloned().collect::<BTreeSet<_>>());
    let told = |place: &str| {
        let mut missing = missing.lock().unwrap_or_else(PoisonError::into_inner);
        if missing.remove(place) && missing.is_empty() {
            synced();
        }
    };
    let told = &told;
    let watches = places.iter().map(|place| async move {
        // One that may be missing for ever is no matter of readiness.
        let client = if optional.is_some() { watching.client.clone() } else { watching.client_of(kind, place) };
        let api: Api<G> = if place.is_empty() { Api::all(client) } else { Api::namespaced(client, place) };
        let served = |served: bool| {
            optional.iter().for_each(|optional| (optional.served)(served));
            told(place);
        };
        let sink = Sink {
            metrics: &watching.metrics,
            kind,
            optional: optional.map(|optional| Optional { wait: optional.wait, served: &served }),
            place,
            cache,
            keep,
            changed,
            synced: || told(place),
        };
        one(api, selection, sink).await;
    });
    futures::future::join_all(watches).await;
}

/// Where the events of one watch go.
pub struct Sink<'a, T, Keep, Changed, Synced> {
    /// Told of failures.
    pub metrics: &'a Metrics,
    /// Kind, for logs and metrics.
    pub kind: ObjectKind,
    /// Whether the kind may be missing: it is then asked for again and again, and nobody is warned.
    pub optional: Option<Optional<'a>>,
    /// Namespace; empty for all.
    pub place: &'a str,
    /// The cache.
    pub cache: &'a Cache<T>,
    /// Reduces an object.
    pub keep: &'a Keep,
    /// Told of changes.
    pub changed: &'a Changed,
    /// Told when a list is complete.
    pub synced: Synced,
}

/// Watches through one API handle.
pub async fn one<G, T, Keep, Changed, Synced>(api: Api<G>, selection: &Selection, sink: Sink<'_, T, Keep, Changed, Synced>)
where
    G: Guard,
    T: Cached,
    Keep: Fn(G::Object) -> Option<T>,
    Changed: Fn(Change<T>),
    Synced: Fn(),
{
    let Sink { metrics, kind, optional, place, cache, keep, changed, synced } = sink;
    let mut said = Said::default();
    let mut wait = FIRST_WAIT;
    loop {
        let events = watcher(api.clone(), selection.config());
        pin_mut!(events);
        while let Some(event) = events.next().await {
            match event {
                Ok(watcher::Event::Init) => cache.list_begins(place),
                Ok(watcher::Event::InitApply(object)) => {
                    if let Some(object) = readable(kind, object).and_then(keep) {
                        cache.listed(place, object).into_iter().for_each(changed);
                    }
                }
                Ok(watcher::Event::InitDone) => {
                    said = Said::default();
                    wait = FIRST_WAIT;
                    cache.list_ends(place).into_iter().for_each(changed);
                    optional.iter().for_each(|optional| (optional.served)(true));
                    synced();
                }
                Ok(watcher::Event::Apply(object)) => {
                    if let Some(object) = readable(kind, object).and_then(keep) {
                        cache.apply(object).into_iter().for_each(changed);
                    }
                }
                Ok(watcher::Event::Delete(object)) => cache.delete(object.meta()).into_iter().for_each(changed),
                Err(error) => {
                    said.say(kind, place, &error, optional.is_some());
                    let missing = optional.filter(|_| matches!(code(&error), Some(403 | 404)));
                    missing.iter().for_each(|optional| (optional.served)(false));
                    if missing.is_some() && code(&error) == Some(404) {
                        // What was there of the kind went with it.
                        cache.list_begins(place);
                        cache.list_ends(place).into_iter().for_each(changed);
                    } else {
                        metrics.watch_failed(kind);
                    }
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(optional.map_or(LONGEST_WAIT, |optional| optional.wait));
                    if missing.is_some() {
                        // No watch goes on where that one ended: it begins with a list.
                        break;
                    }
                }
            }
        }
    }
}

/// HTTP status of a failure, where the API server answered.
fn code(error: &watcher::Error) -> Option<u16> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => Some(status.code),
        watcher::Error::InitialListFailed(_)
        | watcher::Error::WatchStartFailed(_)
        | watcher::Error::WatchFailed(_)
        | watcher::Error::NoResourceVersion => None,
    }
}

/// Logs one failure of a kind once, not at every try.
#[derive(Default)]
struct Said(Option<String>);

impl Said {
    fn say(&mut self, kind: ObjectKind, place: &str, error: &watcher::Error, optional: bool) {
        let text = error.to_string();
        if self.0.as_ref() == Some(&text) {
            return;
        }
        let missing = text.contains("404") || text.contains("NotFound");
        if optional && missing {
            tracing::debug!(kind = ?kind, "an optional kind is not served");
            self.0 = Some(text);
            return;
        }
        let cure = if missing {
            "the kind is not served: install its CRD, for Weir's own with `weir crds | kubectl apply --server-side -f -`"
        } else if text.contains("403") || text.contains("orbidden") {
            "the ServiceAccount may not watch it: apply the operator's RBAC manifests"
        } else {
            "tried again"
        };
        tracing::warn!(kind = ?kind, namespace = place, error = %text, cure, "a watch failed");
        self.0 = Some(text);
    }
}

fn readable<G: Guard>(kind: ObjectKind, guarded: G) -> Option<G::Object> {
    match guarded.open() {
        Ok(object) => Some(object),
        Err(invalid) => {
            let (namespace, name) = (invalid.metadata.namespace.unwrap_or_default(), invalid.metadata.name.unwrap_or_default());
            tracing::warn!(kind = ?kind, namespace, name, error = %invalid.error, "an object cannot be read and is left as it is");
            None
        }
    }
}

/// Tries a start-up step again until it succeeds.
pub async fn until_done<T, E: std::fmt::Display, F: Future<Output = Result<T, E>>>(what: &'static str, step: impl Fn() -> F) -> T {
    let mut wait = Duration::from_millis(500);
    loop {
        match step().await {
            Ok(done) => return done,
            Err(error) => {
                tracing::warn!(what, %error, retry_in_seconds = wait.as_secs_f64(), "a start-up step failed");
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(Duration::from_secs(30));
            }
        }
    }
}
