//! Counts calls of policies by slot and outcome, for metrics and for tests ("no policy call in steady state").

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use weir_core::{
    plan::Outcome,
    policy::{BoxFuture, Identity, Policy, PolicyError, Slot, SlotName},
};

/// Counters of all slots; share one among all policies of a process.
#[derive(Debug, Default)]
pub struct Counters([[Counter; Outcome::ALL.len()]; SlotName::ALL.len()]);

#[derive(Debug, Default)]
struct Counter {
    calls: AtomicU64,
    micros: AtomicU64,
}

/// The counters at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// Calls by slot and outcome, without zeros.
    pub calls: BTreeMap<(SlotName, Outcome), u64>,
    /// Time spent waiting for them, microseconds, by slot.
    pub micros: BTreeMap<SlotName, u64>,
}

impl Snapshot {
    /// Calls of a slot, whatever their outcome.
    #[must_use]
    pub fn of(&self, slot: SlotName) -> u64 {
        self.calls.iter().filter(|((of, _), _)| *of == slot).map(|(_, calls)| calls).sum()
    }

    /// All calls.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.calls.values().sum()
    }
}

impl Counters {
    /// Reads them all. Not one moment for all: each is read by itself.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for (slot, outcomes) in SlotName::ALL.into_iter().zip(&self.0) {
            let mut micros = 0_u64;
            for (outcome, counter) in Outcome::ALL.into_iter().zip(outcomes) {
                let calls = counter.calls.load(Ordering::Relaxed);
                if calls > 0 {
                    snapshot.calls.insert((slot, outcome), calls);
                    micros = micros.saturating_add(counter.micros.load(Ordering::Relaxed));
                }
            }
            if micros > 0 {
                snapshot.micros.insert(slot, micros);
            }
        }
        snapshot
    }

    fn count(&self, slot: SlotName, outcome: Outcome, since: Instant) {
        let of_slot = SlotName::ALL.into_iter().zip(&self.0).find(|(name, _)| *name == slot);
        let of_outcome = of_slot.and_then(|(_, all)| Outcome::ALL.into_iter().zip(all).find(|(name, _)| *name == outcome));
        if let Some((_, counter)) = of_outcome {
            counter.calls.fetch_add(1, Ordering::Relaxed);
            counter.micros.fetch_add(u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }
}

/// A policy whose calls are counted. A call whose future is dropped is not.
pub struct Observe<S: Slot> {
    inner: Arc<dyn Policy<S>>,
    counters: Arc<Counters>,
}

impl<S: Slot> Observe<S> {
    /// Counts the calls of `inner` in `counters`.
    #[must_use]
    pub fn new(inner: Arc<dyn Policy<S>>, counters: Arc<Counters>) -> Self {
        Self { inner, counters }
    }
}

impl<S: Slot> Policy<S> for Observe<S> {
    fn identity(&self) -> &Identity {
        self.inner.identity()
    }

    fn evaluate<'a>(&'a self, input: &'a S::Input) -> BoxFuture<'a, Result<S::Answer, PolicyError>> {
        Box::pin(async move {
            let since = Instant::now();
            let outcome = self.inner.evaluate(input).await;
            self.counters.count(S::NAME, Outcome::of(&outcome), since);
            outcome
        })
    }
}
