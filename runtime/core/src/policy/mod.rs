//! What a policy is, as the core sees it: a typed question, a typed answer, a closed set of failures.
//!
//! The core does not know where a policy runs. Wasm components and remote plugins implement [`Policy`] in `weir-host`; tests
//! implement it in Rust. See `docs/adr/0001-slots.md` and the contract in `wit/`.

pub mod breaker;
mod chosen;
pub mod conflict_resolution;
pub mod difference;
mod error;
pub mod konnect_env;
pub mod limits;
pub mod object_hook;
pub mod plugin_packaging;
pub mod selection;
pub mod trial;
mod types;

use std::{collections::BTreeMap, future::Future, pin::Pin};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use weir_api::reconcile_policy::PolicySlot;

pub use self::{
    chosen::{Chosen, OnFailure, Reply, Unanswered},
    conflict_resolution::ConflictResolution,
    error::{PolicyError, Refusal},
    konnect_env::KonnectEnv,
    object_hook::ObjectHook,
    plugin_packaging::PluginPackaging,
    types::{Context, EnvVar, Finding, ObjectMeta, Severity},
};

/// Version of the WIT package `weir:policy` that inputs are made for.
pub const CONTRACT_VERSION: &str = "0.1.0";

/// String pairs, as labels and annotations are.
pub type Pairs = BTreeMap<String, String>;

/// The slots a policy can serve. Closed: a new slot needs a decision everywhere it is matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlotName {
    /// How Konnect settings become environment, volumes and mounts.
    KonnectEnv,
    /// Who wins when two parties claim one thing.
    ConflictResolution,
    /// Where the files of a plugin artifact go.
    PluginPackaging,
    /// What a rendered object has besides.
    ObjectHook,
}

impl SlotName {
    /// All slots, in the order they are asked for one object.
    pub const ALL: [Self; 4] = [Self::KonnectEnv, Self::ConflictResolution, Self::PluginPackaging, Self::ObjectHook];

    /// Kebab-case name: the WIT interface, the CLI's `--policy SLOT=…`, the metric label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::KonnectEnv => "konnect-env",
            Self::ConflictResolution => "conflict-resolution",
            Self::PluginPackaging => "plugin-packaging",
            Self::ObjectHook => "object-hook",
        }
    }

    /// The version of the WIT package `weir:policy` that has the slot's interface.
    #[must_use]
    pub fn contract(self) -> &'static str {
        match self {
            Self::KonnectEnv | Self::ConflictResolution | Self::PluginPackaging => CONTRACT_VERSION,
            Self::ObjectHook => "0.1.1",
        }
    }

    /// The slot of a ReconcilePolicy.
    #[must_use]
    pub fn of(slot: PolicySlot) -> Self {
        match slot {
            PolicySlot::KonnectEnv => Self::KonnectEnv,
            PolicySlot::ConflictResolution => Self::ConflictResolution,
            PolicySlot::PluginPackaging => Self::PluginPackaging,
            PolicySlot::ObjectHook => Self::ObjectHook,
        }
    }

    /// The slot of a kebab-case name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|slot| slot.as_str() == name)
    }
}

impl std::fmt::Display for SlotName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A slot: the types of its question and its answer, and what an answer may say.
pub trait Slot: Send + Sync + 'static {
    /// Name of the slot.
    const NAME: SlotName;
    /// What the policy is told. Never contains a Secret's value.
    type Input: Serialize + Send + Sync;
    /// What it says.
    type Answer: Serialize + DeserializeOwned + Clone + Send + Sync + PartialEq + std::fmt::Debug;

    /// Whom a question is about: the first field of every input.
    fn context(input: &Self::Input) -> &Context;

    /// Checks an answer against the question, before anybody uses it. Policies are untrusted code.
    ///
    /// # Errors
    /// What is wrong, for a person; the caller turns it into [`PolicyError::BadOutput`].
    fn check(input: &Self::Input, answer: &Self::Answer) -> Result<(), String>;

    /// An answer as a document, for comparing: what has a name in the question has it here too.
    fn document(_: &Self::Input, answer: &Self::Answer) -> serde_json::Value {
        serde_json::to_value(answer).unwrap_or_default()
    }
}

/// Which policy answers: part of every memo key and every record of a decision.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    /// Where the policy came from: `builtin`, `file:…`, an OCI reference or `remote:…`.
    pub source: String,
    /// `sha256:…` of the component, or of what stands for it.
    pub digest: String,
    /// `sha256:…` of the settings document.
    pub settings_digest: String,
}

/// A boxed future, so that policies of different kinds stand in one struct without a runtime.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Answers the questions of slot `S`.
pub trait Policy<S: Slot>: Send + Sync {
    /// Which policy this is.
    fn identity(&self) -> &Identity;

    /// Asks. The implementation has already checked the answer with [`Slot::check`].
    fn evaluate<'a>(&'a self, input: &'a S::Input) -> BoxFuture<'a, Result<S::Answer, PolicyError>>;
}

/// The policies in force for one object: one per slot, and any number of hooks.
#[derive(Clone)]
pub struct Policies {
    /// Slot konnect-env.
    pub konnect_env: Chosen<KonnectEnv>,
    /// Slot conflict-resolution.
    pub conflict_resolution: Chosen<ConflictResolution>,
    /// Slot plugin-packaging.
    pub plugin_packaging: Chosen<PluginPackaging>,
    /// Slot object-hook: a chain, which is empty where nobody set one up.
    pub object_hooks: object_hook::Hooks,
}
