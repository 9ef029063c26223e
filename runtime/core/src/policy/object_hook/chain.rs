//! The hooks of an object, in order.

use std::sync::Arc;

use super::{ObjectHook, Paths};
use crate::policy::{Chosen, Identity};

/// Most hooks that are asked about one object.
pub const MAX_HOOKS: usize = 16;

/// One of them.
#[derive(Clone)]
pub struct Hook {
    /// What people know it by: `namespace/name` of its ReconcilePolicy, or the name of a file. No two of a chain have the same. One
    /// without a name is asked for comparison only: it changes nothing, and nothing of it is kept.
    pub name: String,
    /// Who is asked.
    pub chosen: Chosen<ObjectHook>,
}

/// All of them.
#[derive(Clone, Default)]
pub struct Hooks {
    /// In the order in which they are asked: each sees what the former ones made.
    pub chain: Vec<Hook>,
    /// What they may change.
    pub paths: Arc<Paths>,
}

impl Hooks {
    /// One hook, with the paths that may change where nothing else is said.
    #[must_use]
    pub fn one(name: impl Into<String>, chosen: Chosen<ObjectHook>) -> Self {
        Self { chain: vec![Hook { name: name.into(), chosen }], paths: Arc::default() }
    }

    /// Which policies they are.
    pub fn identities(&self) -> impl Iterator<Item = &Identity> {
        self.chain.iter().map(|hook| hook.chosen.identity())
    }
}
