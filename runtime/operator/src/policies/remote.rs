//! A remote plugin as the revision of a policy: it answers only while it is the one that was tried.

use std::sync::Arc;

use serde_json::Value;
use weir_core::policy::{BoxFuture, Finding, Identity, Policy, PolicyError, Slot};
use weir_host::{
    remote::{Registry, RemotePolicy, RemoteSlot},
    wasm::{Limits, LoadError},
};

/// A policy, and what it says about its settings.
type Loaded<S> = (Arc<dyn Policy<S>>, Vec<Finding>);

/// Which plugin.
pub(super) struct Source {
    /// Connections.
    pub(super) registry: Arc<Registry>,
    /// Its name.
    pub(super) plugin: String,
    /// Its digest of record.
    pub(super) digest: String,
}

/// Lets the plugin `check` its settings, and answers through its pool from then on. Blocks: call it from a thread that may wait.
///
/// # Errors
/// What the plugin says about its settings, or why it says nothing.
pub(super) fn load<S: RemoteSlot>(source: Source, settings: Value, limits: Limits, check: bool) -> Result<Loaded<S>, LoadError> {
    let Source { registry, plugin, digest } = source;
    let loaded = RemotePolicy::<S>::new(Arc::clone(&registry), &plugin, digest.clone(), settings, limits);
    let findings = if check { tokio::runtime::Handle::current().block_on(loaded.validate_settings())? } else { Vec::new() };
    let inner: Arc<dyn Policy<S>> = Arc::new(loaded);
    Ok((Arc::new(Pinned { inner, registry, plugin, digest }), findings))
}

/// A plugin whose version changes becomes a candidate, as a component of another digest does; until that takes over, nobody is asked.
struct Pinned<S: Slot> {
    inner: Arc<dyn Policy<S>>,
    registry: Arc<Registry>,
    plugin: String,
    digest: String,
}

impl<S: Slot> Pinned<S> {
    fn is_it(&self) -> Result<(), PolicyError> {
        let plugin = &self.plugin;
        let known = self.registry.get(plugin).map(|plugin| plugin.metadata());
        match known {
            Some(Some(metadata)) if metadata.digest() == self.digest => Ok(()),
            Some(Some(_)) => Err(PolicyError::Unavailable(format!(
                "remote plugin {plugin} says that it is another version than the one in force: it is asked when that one takes over"
            ))),
            Some(None) => Err(PolicyError::Unavailable(format!("remote plugin {plugin} has not answered yet"))),
            None => Err(PolicyError::Unavailable(format!("there is no remote plugin {plugin}"))),
        }
    }
}

impl<S: Slot> Policy<S> for Pinned<S> {
    fn identity(&self) -> &Identity {
        self.inner.identity()
    }

    fn evaluate<'a>(&'a self, input: &'a S::Input) -> BoxFuture<'a, Result<S::Answer, PolicyError>> {
        Box::pin(async move {
            self.is_it()?;
            self.inner.evaluate(input).await
        })
    }
}
