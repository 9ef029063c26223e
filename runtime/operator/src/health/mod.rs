//! What probes are told: alive, ready, and why not. Alive is who can be helped by a restart; an API server that is away is no such case.

mod server;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use axum::{
    Router,
    extract::{RawQuery, State as Shared},
    http::{StatusCode, header::CONTENT_TYPE},
    routing::get,
};
use weir_core::policy::SlotName;

pub use server::{Error, Server};

use crate::metrics::{self, Metrics, ObjectKind};

/// A worker loop that shows no sign of life for this long hangs: a restart is the cure.
const SILENCE: Duration = Duration::from_secs(60);
/// A watch that has not worked for this long shows a cluster of the past.
const BROKEN: Duration = Duration::from_secs(60);

/// What the parts of the operator say about themselves. Cheap to clone; all clones are one.
#[derive(Debug, Clone)]
pub struct Health(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    caches: BTreeMap<ObjectKind, bool>,
    watches: Vec<Watch>,
    policies: BTreeMap<SlotName, String>,
    /// Policies of the cluster, and what of them runs here.
    reconcile_policies: BTreeMap<String, String>,
    /// Files of settings by flag, and what is wrong with them.
    settings: Vec<(String, Option<String>)>,
    leading: bool,
    ticked: Instant,
}

#[derive(Debug)]
struct Watch {
    kind: ObjectKind,
    /// Namespace; empty for all.
    place: String,
    /// Since when it waits for the API server to serve it; none while it is served.
    waits: Option<Instant>,
}

/// What one watch says about itself.
#[derive(Debug, Clone)]
pub struct Sign {
    health: Health,
    index: usize,
}

impl Sign {
    /// It asks the API server. Until the answer is good it does not work.
    pub fn asks(&self) {
        self.watch(|watch| {
            watch.waits.get_or_insert_with(Instant::now);
        });
    }

    /// The API server serves it.
    pub fn works(&self) {
        self.watch(|watch| watch.waits = None);
    }

    fn watch(&self, change: impl FnOnce(&mut Watch)) {
        // There for ever: watches are never taken off the list.
        if let Some(watch) = self.health.state().watches.get_mut(self.index) {
            change(watch);
        }
    }
}

impl Default for Health {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(State {
            caches: BTreeMap::new(),
            watches: Vec::new(),
            policies: BTreeMap::new(),
            reconcile_policies: BTreeMap::new(),
            settings: Vec::new(),
            leading: false,
            ticked: Instant::now(),
        })))
    }
}

impl Health {
    /// Readiness waits for the cache of this kind.
    pub fn expect(&self, kind: ObjectKind) {
        self.state().caches.entry(kind).or_insert(false);
    }

    /// The cache of this kind has seen everything there is.
    pub fn synced(&self, kind: ObjectKind) {
        self.state().caches.insert(kind, true);
    }

    /// Readiness follows a watch of this kind in a namespace (empty for all). Once per watch.
    #[must_use]
    pub fn watch(&self, kind: ObjectKind, place: &str) -> Sign {
        let mut state = self.state();
        state.watches.push(Watch { kind, place: place.to_owned(), waits: None });
        Sign { health: self.clone(), index: state.watches.len() - 1 }
    }

    /// The worker loop is alive. Call it at least every 30 s while this replica leads, also when there is no work.
    pub fn tick(&self) {
        self.state().ticked = Instant::now();
    }

    /// Whether this replica leads. A standby has no worker loop, so nobody waits for its ticks.
    pub fn leading(&self, leading: bool) {
        let mut state = self.state();
        state.leading = leading;
        state.ticked = Instant::now();
    }

    /// The policy that answers for a slot.
    pub fn policy(&self, slot: SlotName, digest: impl Into<String>) {
        self.state().policies.insert(slot, digest.into());
    }

    /// What runs here of each policy of the cluster, by slot and name.
    pub fn reconcile_policies(&self, lines: BTreeMap<String, String>) {
        self.state().reconcile_policies = lines;
    }

    /// Files of settings by flag, and what is wrong with them. A broken one is no matter of readiness: what it said before is in force.
    pub fn settings(&self, lines: Vec<(String, Option<String>)>) {
        self.state().settings = lines;
    }

    /// Whether all expected caches are synced, and no watch has been broken for long. Nothing expected is not ready either: the start has
    /// not come that far.
    #[must_use]
    pub fn is_ready(&self, now: Instant) -> bool {
        self.state().ready(now)
    }

    fn is_alive(&self, now: Instant) -> bool {
        let state = self.state();
        !state.leading || now.saturating_duration_since(state.ticked) <= SILENCE
    }

    /// Every check on a line of its own.
    fn report(&self, now: Instant) -> String {
        let state = self.state();
        let role = if state.leading { "leader" } else { "standby" };
        let caches = state.caches.iter().map(|(kind, synced)| {
            let word = if *synced { "ok" } else { "not ok: not synced" };
            format!("cache {}: {word}\n", kind.as_str())
        });
        let none = state.caches.is_empty().then(|| "caches: not ok: not started\n".to_owned());
        let watches = state.broken(now).map(|watch| {
            let place = if watch.place.is_empty() { String::new() } else { format!(" in {}", watch.place) };
            let seconds = BROKEN.as_secs();
            // Without the time it has been so: kubelet joins events that say the same.
            format!("watch {}{place}: not ok: it has not worked for {seconds} s or longer; the log says why\n", watch.kind.as_str())
        });
        let policies = state.policies.iter().map(|(slot, digest)| format!("policy {slot}: ok: {digest}\n"));
        let cluster = state.reconcile_policies.iter().map(|(name, word)| format!("policy {name}: {word}\n"));
        let settings = state.settings.iter().map(|(flag, problem)| match problem {
            None => format!("settings {flag}: ok\n"),
            Some(problem) => format!("settings {flag}: not ok: {problem}; what was read before is in force\n"),
        });
        let end = if state.ready(now) { "ready\n" } else { "not ready\n" };
        std::iter::once(format!("role: ok: {role}\n"))
            .chain(none)
            .chain(caches)
            .chain(watches)
            .chain(policies)
            .chain(cluster)
            .chain(settings)
            .chain([end.to_owned()])
            .collect()
    }

    /// A thread that panicked while it held the lock has changed one field or none: the state is usable.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn ready(&self, now: Instant) -> bool {
        !self.caches.is_empty() && self.caches.values().all(|synced| *synced) && self.broken(now).next().is_none()
    }

    fn broken(&self, now: Instant) -> impl Iterator<Item = &Watch> {
        self.watches.iter().filter(move |watch| watch.waits.is_some_and(|since| now.saturating_duration_since(since) >= BROKEN))
    }
}

/// `/healthz` and `/readyz`.
pub fn probes(health: Health) -> Router {
    Router::new().route("/healthz", get(healthz)).route("/readyz", get(readyz)).with_state(health)
}

/// `/metrics`.
pub fn exposition(metrics: Arc<Metrics>) -> Router {
    let encode = |Shared(metrics): Shared<Arc<Metrics>>| async move { ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], metrics.encode()) };
    Router::new().route("/metrics", get(encode)).with_state(metrics)
}

async fn healthz(Shared(health): Shared<Health>) -> (StatusCode, &'static str) {
    if health.is_alive(Instant::now()) { (StatusCode::OK, "ok\n") } else { (StatusCode::SERVICE_UNAVAILABLE, "the worker loop hangs\n") }
}

async fn readyz(Shared(health): Shared<Health>, RawQuery(query): RawQuery) -> (StatusCode, String) {
    let now = Instant::now();
    let ready = health.is_ready(now);
    let verbose = query.is_some_and(|q| q.split('&').any(|p| p == "verbose" || p.starts_with("verbose=")));
    // What is wrong is shown unasked; kubelet puts the body into the event of a failed probe.
    let body = if verbose || !ready { health.report(now) } else { "ready\n".to_owned() };
    (if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, body)
}
