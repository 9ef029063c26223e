//! Memory for a remote policy. Off unless asked for: a component answers the same question the same way for ever, a server need not.

use std::sync::{Arc, Mutex, PoisonError};

use weir_core::policy::{BoxFuture, Identity, Policy, PolicyError};

use super::RemotePolicy;
use crate::{
    layer::{Memo, MemoSize, MemoStats},
    remote::{Metadata, Plugin, slot::RemoteSlot},
};

/// A [`Memo`] that forgets everything when the plugin says something else about itself than before.
pub struct RemoteMemo<S: RemoteSlot> {
    memo: Memo<S>,
    plugin: Arc<Plugin>,
    seen: Mutex<Option<Arc<Metadata>>>,
}

impl<S: RemoteSlot> RemoteMemo<S> {
    /// Remembers what `policy` answers, or a layer around it in `inner`.
    #[must_use]
    pub fn new(policy: &RemotePolicy<S>, inner: Arc<dyn Policy<S>>, size: MemoSize) -> Self {
        let plugin = Arc::clone(policy.plugin());
        let seen = Mutex::new(plugin.metadata());
        Self { memo: Memo::new(inner, size), plugin, seen }
    }

    /// What it did and holds.
    #[must_use]
    pub fn stats(&self) -> MemoStats {
        self.memo.stats()
    }

    fn forget_another(&self) {
        let now = self.plugin.metadata();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if *seen != now {
            self.memo.clear();
            *seen = now;
        }
    }
}

impl<S: RemoteSlot> Policy<S> for RemoteMemo<S> {
    fn identity(&self) -> &Identity {
        self.memo.identity()
    }

    fn evaluate<'a>(&'a self, input: &'a S::Input) -> BoxFuture<'a, Result<S::Answer, PolicyError>> {
        Box::pin(async move {
            self.forget_another();
            let answer = self.memo.evaluate(input).await;
            // It may have been another one that answered: that answer stays with the caller, and not in memory.
            self.forget_another();
            answer
        })
    }
}
