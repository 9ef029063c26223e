//! Counts calls of policies by slot and outcome, for metrics and for tests ("no policy call in steady state").

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use weir_core::policy::{BoxFuture, Identity, Policy, PolicyError, Slot, SlotName};

/// How a call ended. The names are metric labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// With an accepted answer.
    Answered,
    /// With a refusal, which is an answer too.
    Refused,
    /// Over its time.
    Deadline,
    /// Over its memory.
    Memory,
    /// In a trap.
    Trap,
    /// Not at all.
    Unavailable,
    /// With an answer that breaks the rules.
    BadOutput,
    /// Because the artifact does not fit.
    Incompatible,
}

impl Outcome {
    /// All outcomes.
    pub const ALL: [Self; 8] =
        [Self::Answered, Self::Refused, Self::Deadline, Self::Memory, Self::Trap, Self::Unavailable, Self::BadOutput, Self::Incompatible];

    /// The outcome of a result.
    pub fn of<A>(result: &Result<A, PolicyError>) -> Self {
        match result {
            Ok(_) => Self::Answered,
            Err(PolicyError::Refused(_)) => Self::Refused,
            Err(PolicyError::Deadline { .. }) => Self::Deadline,
            Err(PolicyError::Memory(_)) => Self::Memory,
            Err(PolicyError::Trap(_)) => Self::Trap,
            Err(PolicyError::Unavailable(_)) => Self::Unavailable,
            Err(PolicyError::BadOutput(_)) => Self::BadOutput,
            Err(PolicyError::Incompatible(_)) => Self::Incompatible,
        }
    }

    /// Metric label; the same words as [`PolicyError::reason`].
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "Answered",
            Self::Refused => "Refused",
            Self::Deadline => "Deadline",
            Self::Memory => "Memory",
            Self::Trap => "Trap",
            Self::Unavailable => "Unavailable",
            Self::BadOutput => "BadOutput",
            Self::Incompatible => "Incompatible",
        }
    }
}

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
