//! ReconcilePolicies: what takes over, what is taken out, and what runs.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeLabelValue, EncodeMetric},
    metrics::{MetricType, counter::Counter, family::Family, gauge::ConstGauge, histogram::Histogram},
    registry::Registry,
};
use weir_core::policy::SlotName;

use crate::cache::Key;

/// A component that is compiled already takes a fraction of a second; a slow registry is given minutes.
const SECONDS: [f64; 12] = [0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 600.0];

/// What became of a candidate, or of the revision in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelValue)]
pub enum Swap {
    /// A revision took over because its owner asked for it.
    Activated,
    /// A former one took over because the one in force failed.
    RolledBack,
    /// A candidate failed at one of the steps; what was in force stays.
    Failed,
}

impl Swap {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Activated, Self::RolledBack, Self::Failed];
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfSwap {
    slot: &'static str,
    outcome: Swap,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfSlot {
    slot: &'static str,
}

/// What is in force of one policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InForce {
    /// Its slot.
    pub slot: SlotName,
    /// Digest of the component.
    pub digest: String,
    /// Whether it is loaded in this process.
    pub runs: bool,
}

/// What is in force, by policy. One series per policy, which goes with it.
#[derive(Debug, Default)]
struct Active(Mutex<BTreeMap<Key, InForce>>);

/// Counters of policies.
#[derive(Debug)]
pub struct Policies {
    swaps: Family<OfSwap, Counter>,
    trips: Family<OfSlot, Counter>,
    seconds: Histogram,
    active: Arc<Active>,
}

impl Default for Policies {
    fn default() -> Self {
        Self { swaps: Family::default(), trips: Family::default(), seconds: Histogram::new(SECONDS), active: Arc::default() }
    }
}

impl Policies {
    pub(super) fn register(&self, registry: &mut Registry) {
        for slot in SlotName::ALL.map(SlotName::as_str) {
            for outcome in Swap::ALL {
                drop(self.swaps.get_or_create(&OfSwap { slot, outcome }));
            }
            drop(self.trips.get_or_create(&OfSlot { slot }));
        }
        registry.register("weir_policy_swaps", "Revisions that took over or failed to, by slot", self.swaps.clone());
        registry.register("weir_policy_breaker_trips", "Revisions in force that failed too often, by slot", self.trips.clone());
        let seconds = "Time from a change of a policy, or of where its tag leads to, until it is in force; without what waits for approval";
        registry.register("weir_policy_activation_seconds", seconds, self.seconds.clone());
        registry.register_collector(Box::new(Shown(Arc::clone(&self.active))));
    }

    /// A revision took over, or failed to.
    pub fn swapped(&self, slot: SlotName, outcome: Swap) {
        self.swaps.get_or_create(&OfSwap { slot: slot.as_str(), outcome }).inc();
    }

    /// A breaker opened.
    pub fn tripped(&self, slot: SlotName) {
        self.trips.get_or_create(&OfSlot { slot: slot.as_str() }).inc();
    }

    /// A revision took over so long after it was asked for.
    pub fn took(&self, duration: Duration) {
        self.seconds.observe(duration.as_secs_f64());
    }

    /// What is in force now, all of it.
    pub fn in_force(&self, all: BTreeMap<Key, InForce>) {
        *self.active.0.lock().unwrap_or_else(PoisonError::into_inner) = all;
    }
}

#[derive(Debug)]
struct Shown(Arc<Active>);

impl Collector for Shown {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "The revision in force of a policy: 1 when it runs in this process, 0 when it is not loaded";
        let mut active = encoder.encode_descriptor("weir_policy_active", help, None, MetricType::Gauge)?;
        for (policy, InForce { slot, digest, runs }) in self.0.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let labels = [
                ("namespace", policy.namespace.as_str()),
                ("name", policy.name.as_str()),
                ("slot", slot.as_str()),
                ("digest", digest.as_str()),
            ];
            ConstGauge::new(i64::from(*runs)).encode(active.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
