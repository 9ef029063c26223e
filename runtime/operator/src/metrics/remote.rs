//! Remote plugins: connections, calls, certificates. Plugins are bounded in number, so their names may be label values.

use std::{
    fmt,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric},
    metrics::{MetricType, counter::Counter, family::Family, gauge::ConstGauge, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};
use weir_core::remote::Spec;
use weir_host::remote::{Gauges, Registry as Plugins, State};

/// A warm call takes less than a millisecond; a hook is given half a minute.
const SECONDS: [f64; 13] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfOutcome {
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfMethod {
    method: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfReason {
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfSide {
    plugin: String,
    side: &'static str,
}

/// What pools tell, and what is read from them when somebody asks.
#[derive(Debug)]
pub struct Remote {
    acquired: Family<OfOutcome, Counter>,
    acquire_seconds: Histogram,
    calls: Family<OfMethod, Histogram, fn() -> Histogram>,
    connections: Family<OfOutcome, Counter>,
    evictions: Family<OfReason, Counter>,
    ends: Family<OfSide, Gauge>,
    plugins: Arc<OnceLock<Weak<Plugins>>>,
}

impl Default for Remote {
    fn default() -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(SECONDS);
        Self {
            acquired: Family::default(),
            acquire_seconds: Histogram::new(SECONDS),
            calls: Family::new_with_constructor(histogram),
            connections: Family::default(),
            evictions: Family::default(),
            ends: Family::default(),
            plugins: Arc::default(),
        }
    }
}

impl Remote {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("weir_remote_acquires", "Connections asked for, by whether one was lent or why not", self.acquired.clone());
        registry.register("weir_remote_acquire_seconds", "Time until a connection was lent", self.acquire_seconds.clone());
        registry.register("weir_remote_call_seconds", "Calls of remote plugins, by how they ended", self.calls.clone());
        registry.register("weir_remote_connects", "Connections that were made, or why not", self.connections.clone());
        registry.register("weir_remote_evictions", "Connections that left a pool", self.evictions.clone());
        registry.register(
            "weir_remote_certificate_end_timestamp_seconds",
            "When a certificate in use ends, in seconds since 1970",
            self.ends.clone(),
        );
        registry.register_collector(Box::new(Pools(Arc::clone(&self.plugins))));
    }

    /// Whose pools are read. Only the first counts.
    pub fn watch(&self, plugins: &Arc<Plugins>) {
        let _ = self.plugins.set(Arc::downgrade(plugins));
    }

    /// A connection was lent after a while, or was not.
    pub fn acquired(&self, outcome: &'static str, after: Option<Duration>) {
        self.acquired.get_or_create(&OfOutcome { outcome }).inc();
        after.iter().for_each(|after| self.acquire_seconds.observe(after.as_secs_f64()));
    }

    /// A call ended.
    pub fn called(&self, method: &'static str, outcome: &'static str, took: Duration) {
        self.calls.get_or_create(&OfMethod { method, outcome }).observe(took.as_secs_f64());
    }

    /// A connection was made, or was not.
    pub fn connected(&self, outcome: &'static str) {
        self.connections.get_or_create(&OfOutcome { outcome }).inc();
    }

    /// A connection left its pool.
    pub fn evicted(&self, reason: &'static str) {
        self.evictions.get_or_create(&OfReason { reason }).inc();
    }

    /// Certificates in use.
    pub fn certificates(&self, specs: &[Spec]) {
        self.ends.clear();
        for spec in specs {
            for (side, material) in [("client", &spec.client), ("server", &spec.server)] {
                self.ends.get_or_create(&OfSide { plugin: spec.name.clone(), side }).set(material.renew_by.as_second());
            }
        }
    }
}

/// Pools, read when somebody asks.
#[derive(Debug)]
struct Pools(Arc<OnceLock<Weak<Plugins>>>);

impl Collector for Pools {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Some(plugins) = self.0.get().and_then(Weak::upgrade) else { return Ok(()) };
        let now: Vec<(String, State, Gauges)> =
            plugins.plugins().iter().map(|(name, plugin)| (name.clone(), plugin.state(), plugin.gauges())).collect();
        let mut gauge = |name: &str, help: &str, value: &dyn Fn(State, &Gauges) -> i64| -> Result<(), fmt::Error> {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (plugin, state, gauges) in &now {
                ConstGauge::new(value(*state, gauges)).encode(metric.encode_family(&[("plugin", plugin.as_str())])?)?;
            }
            Ok(())
        };
        gauge("weir_remote_plugin_up", "1 while a remote plugin is ready", &|state, _| i64::from(state == State::Ready))?;
        gauge("weir_remote_connections", "Connections of a remote plugin", &|_, gauges| super::gauge(gauges.connections))?;
        gauge("weir_remote_in_flight", "Connections of a remote plugin that are lent", &|_, gauges| super::gauge(gauges.in_flight))?;
        gauge("weir_remote_waiting", "Callers that wait for a remote plugin", &|_, gauges| super::gauge(gauges.waiting))?;
        gauge("weir_remote_breaker_open", "1 while a remote plugin is left alone after failures", &|_, gauges| {
            i64::from(gauges.breaker_open)
        })
    }
}
