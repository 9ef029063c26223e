//! Remembers answers: the same policy with the same settings answers the same question the same way, so it is asked once.

use std::{
    collections::{BTreeMap, HashMap},
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use sha2::{Digest, Sha256};
use weir_core::policy::{BoxFuture, Identity, Policy, PolicyError, Refusal, Slot};

/// What a remembered entry costs beside its answer, bytes.
const OVERHEAD: usize = 256;

/// How much a [`Memo`] keeps; what was used longest ago goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoSize {
    /// Entries.
    pub entries: usize,
    /// Bytes, by the size of the answers' JSON.
    pub bytes: usize,
}

impl Default for MemoSize {
    /// 4,096 entries and 16 MiB.
    fn default() -> Self {
        Self { entries: 4_096, bytes: 16 << 20 }
    }
}

/// What a [`Memo`] did and holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoStats {
    /// Questions answered from memory.
    pub hits: u64,
    /// Questions that went to the policy.
    pub misses: u64,
    /// Entries held.
    pub entries: usize,
    /// Bytes held, estimated.
    pub bytes: usize,
}

/// A policy with memory. Answers and refusals are kept, failures are not: they may be gone the next time.
pub struct Memo<S: Slot> {
    inner: Arc<dyn Policy<S>>,
    size: MemoSize,
    store: Mutex<Store<S::Answer>>,
}

type Key = [u8; 32];

struct Store<A> {
    entries: HashMap<Key, Entry<A>>,
    /// Last use to key; the smallest is the oldest.
    order: BTreeMap<u64, Key>,
    clock: u64,
    bytes: usize,
    hits: u64,
    misses: u64,
}

struct Entry<A> {
    used: u64,
    bytes: usize,
    answer: Result<A, Refusal>,
}

impl<S: Slot> Memo<S> {
    /// Remembers what `inner` answers.
    #[must_use]
    pub fn new(inner: Arc<dyn Policy<S>>, size: MemoSize) -> Self {
        let store = Store { entries: HashMap::new(), order: BTreeMap::new(), clock: 0, bytes: 0, hits: 0, misses: 0 };
        Self { inner, size, store: Mutex::new(store) }
    }

    /// What it did and holds.
    #[must_use]
    pub fn stats(&self) -> MemoStats {
        let store = self.lock();
        MemoStats { hits: store.hits, misses: store.misses, entries: store.entries.len(), bytes: store.bytes }
    }

    /// Forgets everything; the counters stay.
    pub fn clear(&self) {
        let mut store = self.lock();
        store.entries.clear();
        store.order.clear();
        store.bytes = 0;
    }

    /// Nothing panics under the lock besides an allocation.
    fn lock(&self) -> MutexGuard<'_, Store<S::Answer>> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Slot> Policy<S> for Memo<S> {
    fn identity(&self) -> &Identity {
        self.inner.identity()
    }

    fn evaluate<'a>(&'a self, input: &'a S::Input) -> BoxFuture<'a, Result<S::Answer, PolicyError>> {
        Box::pin(async move {
            // An input that has no JSON has no key; it is asked as if there were no memory.
            let Some(key) = key::<S>(self.inner.identity(), input) else { return self.inner.evaluate(input).await };
            if let Some(answer) = self.lock().get(&key) {
                return answer.map_err(PolicyError::Refused);
            }
            let outcome = self.inner.evaluate(input).await;
            let (answer, bytes) = match &outcome {
                Ok(answer) => (Ok(answer.clone()), serde_json::to_vec(answer).map_or(self.size.bytes, |json| json.len())),
                Err(PolicyError::Refused(refusal)) => (Err(refusal.clone()), refusal.code.len().saturating_add(refusal.message.len())),
                Err(
                    PolicyError::Deadline { .. }
                    | PolicyError::Memory(_)
                    | PolicyError::Trap(_)
                    | PolicyError::Unavailable(_)
                    | PolicyError::BadOutput(_)
                    | PolicyError::Incompatible(_),
                ) => return outcome,
            };
            self.lock().insert(key, answer, bytes.saturating_add(OVERHEAD), self.size);
            outcome
        })
    }
}

/// Canonical JSON: the slots' types are structs and sorted maps, so serde_json writes one text per value.
fn key<S: Slot>(identity: &Identity, input: &S::Input) -> Option<Key> {
    let mut hash = Hash(Sha256::new());
    for part in [S::NAME.as_str(), &identity.digest, &identity.settings_digest] {
        hash.0.update(part.as_bytes());
        hash.0.update([0]);
    }
    serde_json::to_writer(&mut hash, input).ok()?;
    Some(hash.0.finalize().into())
}

struct Hash(Sha256);

impl io::Write for Hash {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<A: Clone> Store<A> {
    fn get(&mut self, key: &Key) -> Option<Result<A, Refusal>> {
        let Some(entry) = self.entries.get_mut(key) else {
            self.misses = self.misses.saturating_add(1);
            return None;
        };
        self.hits = self.hits.saturating_add(1);
        self.order.remove(&entry.used);
        self.clock += 1;
        entry.used = self.clock;
        self.order.insert(self.clock, *key);
        Some(entry.answer.clone())
    }

    fn insert(&mut self, key: Key, answer: Result<A, Refusal>, bytes: usize, size: MemoSize) {
        // Two callers may have asked the same at once; the later answer replaces the earlier one.
        self.remove(&key);
        if bytes > size.bytes || size.entries == 0 {
            return;
        }
        while self.entries.len() >= size.entries || self.bytes.saturating_add(bytes) > size.bytes {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            self.remove(&oldest);
        }
        self.clock += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.order.insert(self.clock, key);
        self.entries.insert(key, Entry { used: self.clock, bytes, answer });
    }

    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.order.remove(&entry.used);
            self.bytes = self.bytes.saturating_sub(entry.bytes);
        }
    }
}
