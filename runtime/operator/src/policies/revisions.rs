//! Revisions that are loaded: those in force, those that could take over again, and candidates.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
};

use serde_json::Value;
use weir_core::{
    hash,
    policy::{ConflictResolution, Finding, KonnectEnv, ObjectHook, PluginPackaging, Policy, SlotName},
};
use weir_host::{
    layer::{Counters, Memo, MemoSize, Observe},
    remote::Registry,
    wasm::{Builtin, Limits, LoadError, Wasm, WasmPolicy},
};

use super::{
    any::{AnyPolicy, Served},
    guard::{Breakers, Guard, Previous},
    remote,
    samples::{Sampled, Samples, Tap},
};
use crate::cache::Key;

/// An answer names every file of an artifact, and is asked for only while it is not in force: few are worth keeping.
pub(super) const PACKAGING: MemoSize = MemoSize { entries: 256, bytes: 4 << 20 };

/// A component with its settings, of one policy: breakers and memories of two policies have nothing to do with each other.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RevisionId {
    /// The policy.
    pub policy: Key,
    /// Its slot.
    pub slot: SlotName,
    /// Digest of the component.
    pub layer: String,
    /// Digest of settings and limits.
    pub settings: String,
}

/// A loaded revision.
pub struct Revision {
    /// Which.
    pub id: RevisionId,
    /// The component itself.
    pub bare: AnyPolicy,
    /// The same with memory, counters and breaker: what objects ask.
    pub policy: AnyPolicy,
    /// What it says about its settings.
    pub findings: Vec<Finding>,
    previous: Previous,
}

impl Revision {
    /// Which revision stood before this one.
    pub fn follows(&self, previous: Option<&Self>) {
        let bare = previous.map(|previous| previous.bare.clone());
        *self.previous.write().unwrap_or_else(PoisonError::into_inner) = bare;
    }
}

/// What answers.
pub enum Body {
    /// The component inside of the operator.
    Builtin,
    /// A component.
    Component(Arc<[u8]>),
    /// A remote plugin, as long as it is the one of the revision's digest.
    Remote {
        /// Connections.
        registry: Arc<Registry>,
        /// Its name.
        plugin: String,
        /// Whether it is asked about the settings. It was, when it took over: what is in force is loaded while the plugin is away, too.
        check: bool,
    },
}

/// What makes a revision.
pub struct Recipe {
    /// Which.
    pub id: RevisionId,
    /// What answers.
    pub body: Body,
    /// Shown to people.
    pub source: String,
    /// Settings.
    pub settings: Value,
    /// What one question may cost.
    pub limits: Limits,
}

/// All loaded revisions.
pub struct Revisions {
    host: Wasm,
    counters: Arc<Counters>,
    /// Questions that were asked lately.
    pub samples: Arc<Samples>,
    /// Breakers.
    pub breakers: Arc<Breakers>,
    loaded: Mutex<HashMap<RevisionId, Arc<Revision>>>,
}

impl Revisions {
    /// Nothing is loaded.
    pub fn new(host: Wasm, counters: Arc<Counters>, samples: Arc<Samples>, breakers: Arc<Breakers>) -> Self {
        Self { host, counters, samples, breakers, loaded: Mutex::default() }
    }

    fn loaded(&self) -> MutexGuard<'_, HashMap<RevisionId, Arc<Revision>>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Digest of the component inside of the operator.
    #[must_use]
    pub fn builtin_digest(&self, slot: SlotName) -> String {
        hash::digest(match slot {
            SlotName::KonnectEnv => KonnectEnv::COMPONENT,
            SlotName::ConflictResolution => ConflictResolution::COMPONENT,
            SlotName::PluginPackaging => PluginPackaging::COMPONENT,
            SlotName::ObjectHook => ObjectHook::COMPONENT,
        })
    }

    /// One that is loaded.
    pub fn get(&self, id: &RevisionId) -> Option<Arc<Revision>> {
        self.loaded().get(id).cloned()
    }

    /// Loads one. Blocks while it compiles: call it from a thread that may wait.
    ///
    /// # Errors
    /// Those of [`Wasm::load`].
    pub fn load(&self, recipe: Recipe) -> Result<Arc<Revision>, LoadError> {
        if let Some(loaded) = self.get(&recipe.id) {
            return Ok(loaded);
        }
        let revision = match recipe.id.slot {
            SlotName::KonnectEnv => self.make::<KonnectEnv>(recipe, MemoSize::default())?,
            SlotName::ConflictResolution => self.make::<ConflictResolution>(recipe, MemoSize::default())?,
            SlotName::PluginPackaging => self.make::<PluginPackaging>(recipe, PACKAGING)?,
            SlotName::ObjectHook => self.make::<ObjectHook>(recipe, MemoSize::default())?,
        };
        let revision = Arc::new(revision);
        self.loaded().insert(revision.id.clone(), Arc::clone(&revision));
        Ok(revision)
    }

    fn make<S: Served + Sampled>(&self, recipe: Recipe, memory: MemoSize) -> Result<Revision, LoadError> {
        let Recipe { id, body, source, settings, limits } = recipe;
        let mut memory = Some(memory);
        let of_component = |loaded: Arc<WasmPolicy<S>>| {
            let findings = loaded.settings_findings().to_vec();
            (loaded as Arc<dyn Policy<S>>, findings)
        };
        let (bare, findings) = match body {
            Body::Component(bytes) => of_component(self.host.load::<S>(&bytes, source, settings, limits)?),
            Body::Builtin => of_component(self.host.builtin::<S>(settings, limits)?),
            Body::Remote { registry, plugin, check } => {
                // What a plugin answers may depend on more than the question.
                memory = None;
                remote::load::<S>(remote::Source { registry, plugin, digest: id.layer.clone() }, settings, limits, check)?
            }
        };
        let previous = Arc::new(RwLock::new(None));
        let guard = Guard::new(Arc::clone(&bare), id.clone(), Arc::clone(&previous), Arc::clone(&self.breakers));
        let policy = layered::<S>(Arc::new(guard), &self.counters, &self.samples, memory);
        Ok(Revision { id, bare: S::wrap(bare), policy: S::wrap(policy), findings, previous })
    }

    /// Of one policy, only these stay.
    pub fn keep(&self, policy: &Key, ids: &HashSet<RevisionId>) {
        self.loaded().retain(|id, _| id.policy != *policy || ids.contains(id));
    }
}

pub(super) fn remembered<S: Sampled>(
    policy: Arc<dyn Policy<S>>,
    counters: &Arc<Counters>,
    samples: &Samples,
    size: MemoSize,
) -> Arc<dyn Policy<S>> {
    layered(policy, counters, samples, Some(size))
}

/// Memory, where there is any, outside of the counter: what is counted, and kept as a sample, are the questions that reach the policy.
fn layered<S: Sampled>(
    policy: Arc<dyn Policy<S>>,
    counters: &Arc<Counters>,
    samples: &Samples,
    memory: Option<MemoSize>,
) -> Arc<dyn Policy<S>> {
    let counted = Arc::new(Observe::new(policy, Arc::clone(counters)));
    let tapped = Arc::new(Tap::new(counted, samples));
    match memory {
        Some(size) => Arc::new(Memo::new(tapped, size)),
        None => tapped,
    }
}
