//! A revision behind its breaker: what it cannot answer is counted, put aside, and in the end the revision is taken out.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
};

use tokio::sync::mpsc::UnboundedSender;
use weir_core::{
    hash,
    policy::{
        BoxFuture, Identity, Policy, PolicyError, Slot,
        breaker::{Breaker, Failed, Serves, Trip, counts},
    },
};

use super::{
    any::{AnyPolicy, Served},
    revisions::RevisionId,
};
use crate::{cache::Key, clock::Clock, metrics::Metrics};

/// The breakers of all revisions.
pub struct Breakers {
    clock: Clock,
    metrics: Arc<Metrics>,
    opened: UnboundedSender<Key>,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    breakers: HashMap<RevisionId, Breaker>,
    serves: HashMap<Key, Serves>,
}

/// Before anybody has counted.
const UNCOUNTED: Serves = Serves { objects: 0, namespaces: 0 };

impl Breakers {
    /// `opened` is told of each policy whose revision in force failed too often.
    pub fn new(clock: Clock, metrics: Arc<Metrics>, opened: UnboundedSender<Key>) -> Self {
        Self { clock, metrics, opened, table: Mutex::default() }
    }

    /// Nothing panics under the lock besides an allocation.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a policy serves. What failed before it was counted is judged now.
    pub fn serves(&self, policy: &Key, serves: Serves) {
        let now = self.clock.now();
        let mut table = self.table();
        table.serves.insert(policy.clone(), serves);
        for breaker in table.breakers.iter_mut().filter(|(id, _)| id.policy == *policy).map(|(_, breaker)| breaker) {
            // Whoever counts looks at once.
            let _ = breaker.judge(serves, now);
        }
    }

    /// Why the breaker of a revision is open.
    pub fn tripped(&self, id: &RevisionId) -> Option<Trip> {
        self.table().breakers.get(id)?.tripped().cloned()
    }

    /// Nothing that a policy failed at counts any more.
    pub fn reset(&self, policy: &Key) {
        self.table().breakers.retain(|id, _| id.policy != *policy);
    }

    /// The policy is gone.
    pub fn forget(&self, policy: &Key) {
        let mut table = self.table();
        table.breakers.retain(|id, _| id.policy != *policy);
        table.serves.remove(policy);
    }

    fn has_aside(&self, id: &RevisionId) -> bool {
        self.table().breakers.get(id).is_some_and(Breaker::has_aside)
    }

    fn aside(&self, id: &RevisionId, input: &str) -> Option<String> {
        self.table().breakers.get_mut(id)?.aside(input, self.clock.now())
    }

    fn failed(&self, id: &RevisionId, failed: &Failed<'_>) {
        let mut table = self.table();
        let serves = table.serves.get(&id.policy).copied().unwrap_or(UNCOUNTED);
        let opens = table.breakers.entry(id.clone()).or_default().failed(failed, serves, self.clock.now());
        drop(table);
        if opens {
            self.metrics.policies.tripped(id.slot);
            tracing::error!(policy = %id.policy, layer = id.layer, error = %failed.error, "a revision of a policy failed too often");
            // The receiver lives as long as passes do.
            let _ = self.opened.send(id.policy.clone());
        }
    }
}

/// The revision before, which may not be loaded.
pub(super) type Previous = Arc<RwLock<Option<AnyPolicy>>>;

/// A revision whose failures are counted.
pub(super) struct Guard<S: Slot> {
    inner: Arc<dyn Policy<S>>,
    id: RevisionId,
    previous: Previous,
    breakers: Arc<Breakers>,
}

impl<S: Served> Guard<S> {
    /// Counts the failures of `inner`.
    pub(super) fn new(inner: Arc<dyn Policy<S>>, id: RevisionId, previous: Previous, breakers: Arc<Breakers>) -> Self {
        Self { inner, id, previous, breakers }
    }

    /// Whether the revision before fails with this input too: then it is the input's fault.
    async fn failed_before(&self, input: &S::Input) -> bool {
        let previous = self.previous.read().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(S::pick);
        match previous {
            // One that cannot be asked any more, as a former version of a remote plugin, says nothing about the input.
            Some(previous) => previous.evaluate(input).await.is_err_and(|error| counts(&error)),
            None => false,
        }
    }
}

impl<S: Served> Policy<S> for Guard<S> {
    fn identity(&self) -> &Identity {
        self.inner.identity()
    }

    fn evaluate<'a>(&'a self, input: &'a S::Input) -> BoxFuture<'a, Result<S::Answer, PolicyError>> {
        Box::pin(async move {
            if self.breakers.has_aside(&self.id)
                && let Some(error) = self.breakers.aside(&self.id, &hash::digest_json(input))
            {
                return Err(PolicyError::Unavailable(format!("it is not asked about this for ten minutes after it failed: {error}")));
            }
            let answer = self.inner.evaluate(input).await;
            if let Err(error) = &answer
                && counts(error)
            {
                let failed_before = self.failed_before(input).await;
                let object = &S::context(input).object;
                let input = hash::digest_json(input);
                let object = (object.namespace.as_str(), object.name.as_str());
                self.breakers.failed(&self.id, &Failed { object, input: &input, error, failed_before });
            }
            answer
        })
    }
}
