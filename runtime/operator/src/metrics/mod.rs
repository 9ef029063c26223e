//! Metrics of the operator, in the OpenMetrics text format.

mod collect;
mod labels;
mod policies;
mod pulls;
mod registries;
mod remote;
mod shadows;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram, info::Info},
    registry::Registry,
};
use weir_host::layer::Counters;

pub use labels::{ErrorReason, Kind, ObjectKind, Outcome, Verb};
pub use policies::{InForce, Policies, Swap};
pub use pulls::{PullOutcome, Pulls};
pub use registries::{Settings, SettingsFile, Signed, VerifyOutcome};
pub use remote::Remote;
pub use shadows::{ShadowOutcome, Shadows};

/// What `encode` returns, for the answer's Content-Type.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A pass that writes nothing takes about a millisecond; one that waits for a policy or a slow API server takes seconds.
const SECONDS: [f64; 13] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfKind {
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfOutcome {
    kind: Kind,
    outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfReason {
    kind: Kind,
    reason: ErrorReason,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfWrite {
    object: ObjectKind,
    verb: Verb,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfObject {
    object: ObjectKind,
}

/// All metrics of a process; share it in an `Arc`.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    reconciles: Family<OfOutcome, Counter>,
    durations: Family<OfKind, Histogram, fn() -> Histogram>,
    errors: Family<OfReason, Counter>,
    writes: Family<OfWrite, Counter>,
    watch_errors: Family<OfObject, Counter>,
    queue: Family<OfKind, Gauge>,
    objects: Family<OfKind, Gauge>,
    events_dropped: Counter,
    leader: Gauge,
    /// Requests to registries.
    pub pulls: Pulls,
    /// Questions to policies in shadow mode.
    pub shadows: Shadows,
    /// Files that say how registries are reached, and checks of signatures.
    pub settings: Settings,
    /// Policies of the cluster.
    pub policies: Policies,
    /// Remote plugins.
    pub remote: Remote,
}

impl Metrics {
    /// Registers everything; calls of policies are read from `policies` when somebody asks.
    #[must_use]
    pub fn new(policies: Arc<Counters>) -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(SECONDS);
        let metrics = Self {
            registry: Registry::default(),
            reconciles: Family::default(),
            durations: Family::new_with_constructor(histogram),
            errors: Family::default(),
            writes: Family::default(),
            watch_errors: Family::default(),
            queue: Family::default(),
            objects: Family::default(),
            events_dropped: Counter::default(),
            leader: Gauge::default(),
            pulls: Pulls::default(),
            shadows: Shadows::default(),
            settings: Settings::default(),
            policies: Policies::default(),
            remote: Remote::default(),
        };
        metrics.start_at_zero();
        metrics.register(policies)
    }

    /// A series that appears with its first failure shows no increase from zero; those that alerts are made of exist from the start.
    fn start_at_zero(&self) {
        for kind in Kind::ALL {
            for outcome in Outcome::ALL {
                drop(self.reconciles.get_or_create(&OfOutcome { kind, outcome }));
            }
            for reason in ErrorReason::ALL {
                drop(self.errors.get_or_create(&OfReason { kind, reason }));
            }
            drop(self.queue.get_or_create(&OfKind { kind }));
        }
    }

    fn register(mut self, policies: Arc<Counters>) -> Self {
        let registry = &mut self.registry;
        registry.register("weir_build", "The running version", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        registry.register("weir_reconcile", "Passes over an object, by kind and how they ended", self.reconciles.clone());
        registry.register("weir_reconcile_duration_seconds", "Time of one pass over an object", self.durations.clone());
        registry.register("weir_reconcile_errors", "Failed requests of passes, by reason", self.errors.clone());
        registry.register("weir_writes", "Writes to the API server", self.writes.clone());
        registry.register("weir_watch_errors", "Watches that failed and were started again", self.watch_errors.clone());
        registry.register("weir_queue_depth", "Objects that wait for a pass", self.queue.clone());
        registry.register("weir_objects", "Objects in the cache", self.objects.clone());
        registry.register("weir_events_dropped", "Events that were not written because too many waited", self.events_dropped.clone());
        registry.register("weir_leader", "1 when this replica leads", self.leader.clone());
        self.pulls.register(registry);
        self.shadows.register(registry);
        self.settings.register(registry);
        self.policies.register(registry);
        self.remote.register(registry);
        registry.register_collector(Box::new(collect::Policies(policies)));
        registry.register_collector(Box::new(collect::Process));
        self
    }

    /// A pass ended.
    pub fn reconciled(&self, kind: Kind, outcome: Outcome, duration: Duration) {
        self.reconciles.get_or_create(&OfOutcome { kind, outcome }).inc();
        self.durations.get_or_create(&OfKind { kind }).observe(duration.as_secs_f64());
    }

    /// A request of a pass failed.
    pub fn failed(&self, kind: Kind, reason: ErrorReason) {
        self.errors.get_or_create(&OfReason { kind, reason }).inc();
    }

    /// The API server accepted a write.
    pub fn wrote(&self, object: ObjectKind, verb: Verb) {
        self.writes.get_or_create(&OfWrite { object, verb }).inc();
    }

    /// A kind is watched; its failures count from zero.
    pub fn watched(&self, object: ObjectKind) {
        drop(self.watch_errors.get_or_create(&OfObject { object }));
    }

    /// A watch failed.
    pub fn watch_failed(&self, object: ObjectKind) {
        self.watch_errors.get_or_create(&OfObject { object }).inc();
    }

    /// An event was thrown away.
    pub fn event_dropped(&self) {
        self.events_dropped.inc();
    }

    /// Signatures were looked for.
    pub fn verified(&self, artifact: Signed, outcome: VerifyOutcome) {
        self.settings.checked(artifact, outcome);
    }

    /// How many objects wait for a pass.
    pub fn queue(&self, kind: Kind, depth: usize) {
        self.queue.get_or_create(&OfKind { kind }).set(gauge(depth));
    }

    /// How many objects of a kind there are.
    pub fn objects(&self, kind: Kind, count: usize) {
        self.objects.get_or_create(&OfKind { kind }).set(gauge(count));
    }

    /// Whether this replica leads.
    pub fn leading(&self, leading: bool) {
        self.leader.set(i64::from(leading));
    }

    /// Everything, as text of type [`CONTENT_TYPE`].
    #[must_use]
    pub fn encode(&self) -> String {
        let mut text = String::new();
        if prometheus_client::encoding::text::encode(&mut text, &self.registry).is_err() {
            // Writing to a String does not fail; half an answer would be taken for a whole one.
            text.clear();
        }
        text
    }
}

fn gauge(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
