//! What probes are told: alive, ready, and why not.

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

/// What the parts of the operator say about themselves. Cheap to clone; all clones are one.
#[derive(Debug, Clone)]
pub struct Health(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    caches: BTreeMap<ObjectKind, bool>,
    policies: BTreeMap<SlotName, String>,
    /// Policies of the cluster, and what of them runs here.
    reconcile_policies: BTreeMap<String, String>,
    leading: bool,
    ticked: Instant,
}

impl Default for Health {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(State {
            caches: BTreeMap::new(),
            policies: BTreeMap::new(),
            reconcile_policies: BTreeMap::new(),
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

    /// Whether all expected caches are synced. Nothing expected is not ready either: the start has not come that far.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.state().ready()
    }

    fn is_alive(&self, now: Instant) -> bool {
        let state = self.state();
        !state.leading || now.saturating_duration_since(state.ticked) <= SILENCE
    }

    /// Every check on a line of its own.
    fn report(&self) -> String {
        let state = self.state();
        let role = if state.leading { "leader" } else { "standby" };
        let caches = state.caches.iter().map(|(kind, synced)| {
            let word = if *synced { "ok" } else { "not ok: not synced" };
            format!("cache {}: {word}\n", kind.as_str())
        });
        let none = state.caches.is_empty().then(|| "caches: not ok: not started\n".to_owned());
        let policies = state.policies.iter().map(|(slot, digest)| format!("policy {slot}: ok: {digest}\n"));
        let cluster = state.reconcile_policies.iter().map(|(name, word)| format!("policy {name}: {word}\n"));
        let end = if state.ready() { "ready\n" } else { "not ready\n" };
        std::iter::once(format!("role: ok: {role}\n"))
            .chain(none)
            .chain(caches)
            .chain(policies)
            .chain(cluster)
            .chain([end.to_owned()])
            .collect()
    }

    /// A thread that panicked while it held the lock has changed one field or none: the state is usable.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn ready(&self) -> bool {
        !self.caches.is_empty() && self.caches.values().all(|synced| *synced)
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
    let ready = health.is_ready();
    let verbose = query.is_some_and(|q| q.split('&').any(|p| p == "verbose" || p.starts_with("verbose=")));
    // What is wrong is shown unasked; kubelet puts the body into the event of a failed probe.
    let body = if verbose || !ready { health.report() } else { "ready\n".to_owned() };
    (if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, body)
}
