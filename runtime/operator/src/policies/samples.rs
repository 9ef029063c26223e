//! What policies were asked lately, one question per object: a candidate is tried on these before it takes over.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use weir_core::policy::{BoxFuture, ConflictResolution, Identity, KonnectEnv, ObjectHook, PluginPackaging, Policy, PolicyError, Slot};

use crate::cache::Key;

/// Questions that are kept per slot.
const MOST: usize = 1_024;
/// A question about an artifact names its files and has their text.
const MOST_ARTIFACTS: usize = 32;
/// A question of a hook has two whole objects.
const MOST_HOOKS: usize = 256;

/// Questions of all slots.
#[derive(Default)]
pub struct Samples {
    konnect_env: Arc<Questions<KonnectEnv>>,
    conflicts: Arc<Questions<ConflictResolution>>,
    artifacts: Arc<Questions<PluginPackaging>>,
    hooks: Arc<Questions<ObjectHook>>,
}

/// A slot whose questions are kept.
pub trait Sampled: Slot<Input: Clone> + Sized {
    /// Their place.
    fn of(samples: &Samples) -> &Arc<Questions<Self>>;
    /// How many are kept.
    const MOST: usize;

    /// What of the object a question is about, where there may be several.
    fn part(_: &Self::Input) -> String {
        String::new()
    }
}

impl Sampled for KonnectEnv {
    const MOST: usize = MOST;

    fn of(samples: &Samples) -> &Arc<Questions<Self>> {
        &samples.konnect_env
    }
}

impl Sampled for ConflictResolution {
    const MOST: usize = MOST;

    fn of(samples: &Samples) -> &Arc<Questions<Self>> {
        &samples.conflicts
    }
}

impl Sampled for PluginPackaging {
    const MOST: usize = MOST_ARTIFACTS;

    fn of(samples: &Samples) -> &Arc<Questions<Self>> {
        &samples.artifacts
    }
}

impl Sampled for ObjectHook {
    const MOST: usize = MOST_HOOKS;

    fn of(samples: &Samples) -> &Arc<Questions<Self>> {
        &samples.hooks
    }

    fn part(input: &Self::Input) -> String {
        format!(" {}", input.about())
    }
}

/// The last question about each object, of one slot.
pub struct Questions<S: Slot>(Mutex<Asked<S::Input>>);

struct Asked<I> {
    by: BTreeMap<(String, Key), (u64, Arc<I>)>,
    /// Counts questions: the smallest is the oldest.
    clock: u64,
}

impl<S: Slot> Default for Questions<S> {
    fn default() -> Self {
        Self(Mutex::new(Asked { by: BTreeMap::new(), clock: 0 }))
    }
}

impl<S: Sampled> Questions<S> {
    fn asked(&self) -> MutexGuard<'_, Asked<S::Input>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, input: &S::Input) {
        let object = &S::context(input).object;
        let place = (format!("{}{}", object.kind, S::part(input)), Key::new(&object.namespace, &object.name));
        let input = Arc::new(input.clone());
        let mut asked = self.asked();
        asked.clock += 1;
        let clock = asked.clock;
        asked.by.insert(place, (clock, input));
        if asked.by.len() > S::MOST {
            let oldest = asked.by.iter().min_by_key(|(_, (at, _))| *at).map(|(place, _)| place.clone());
            oldest.and_then(|place| asked.by.remove(&place));
        }
    }

    /// All of them; of each namespace one first, so that a few speak for all.
    #[must_use]
    pub fn spread(&self) -> Vec<Arc<S::Input>> {
        let asked = self.asked();
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        let mut all: Vec<(usize, Arc<S::Input>)> = Vec::with_capacity(asked.by.len());
        for ((_, key), (_, input)) in &asked.by {
            let nth = seen.entry(&key.namespace).or_default();
            all.push((*nth, Arc::clone(input)));
            *nth += 1;
        }
        all.sort_by_key(|(nth, _)| *nth);
        all.into_iter().map(|(_, input)| input).collect()
    }
}

/// A policy whose questions are kept.
pub(super) struct Tap<S: Slot> {
    inner: Arc<dyn Policy<S>>,
    questions: Arc<Questions<S>>,
}

impl<S: Sampled> Tap<S> {
    /// Keeps what `inner` is asked.
    pub(super) fn new(inner: Arc<dyn Policy<S>>, samples: &Samples) -> Self {
        Self { inner, questions: Arc::clone(S::of(samples)) }
    }
}

impl<S: Sampled> Policy<S> for Tap<S> {
    fn identity(&self) -> &Identity {
        self.inner.identity()
    }

    fn evaluate<'a>(&'a self, input: &'a S::Input) -> BoxFuture<'a, Result<S::Answer, PolicyError>> {
        self.questions.keep(input);
        self.inner.evaluate(input)
    }
}
