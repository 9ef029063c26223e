//! A remote plugin as the revision of a policy: it answers only while it is the one that was tried.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use weir_core::{
    hash,
    policy::{BoxFuture, Finding, Identity, Policy, PolicyError},
};
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

/// A policy that a plugin answers. With `check` it is asked about the settings now, else when the first question comes. Blocks: call it from a
/// thread that may wait.
///
/// # Errors
/// What the plugin says about its settings, or why it says nothing.
pub(super) fn load<S: RemoteSlot>(source: Source, settings: Value, limits: Limits, check: bool) -> Result<Loaded<S>, LoadError> {
    let identity =
        Identity { source: format!("remote:{}", source.plugin), digest: source.digest, settings_digest: hash::digest_json(&settings) };
    let pinned = Pinned::<S> { registry: source.registry, plugin: source.plugin, settings, limits, identity, loaded: Mutex::default() };
    let findings = match check {
        true => tokio::runtime::Handle::current().block_on(pinned.policy())?.settings_findings().to_vec(),
        false => Vec::new(),
    };
    Ok((Arc::new(pinned), findings))
}

/// A plugin of one digest. One that says that it is another version is a candidate, as a component of another digest is; until that takes over
/// nobody is asked. One whose Service went and came is another connection, and the same plugin.
struct Pinned<S: RemoteSlot> {
    registry: Arc<Registry>,
    plugin: String,
    settings: Value,
    limits: Limits,
    identity: Identity,
    loaded: Mutex<Option<Arc<RemotePolicy<S>>>>,
}

impl<S: RemoteSlot> Pinned<S> {
    /// The plugin as it is now, if it is the one that is meant.
    async fn policy(&self) -> Result<Arc<RemotePolicy<S>>, LoadError> {
        let name = &self.plugin;
        let unavailable = |why: String| LoadError::Policy(PolicyError::Unavailable(why));
        let plugin = self.registry.get(name).ok_or_else(|| unavailable(format!("there is no remote plugin {name}")))?;
        let metadata = plugin.metadata().ok_or_else(|| unavailable(format!("remote plugin {name} has not answered yet")))?;
        let another = || {
            unavailable(format!(
                "remote plugin {name} says that it is another version than the one in force: it is asked when that one takes over"
            ))
        };
        if metadata.digest() != self.identity.digest {
            return Err(another());
        }
        let known = self.loaded.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known.filter(|known| Arc::ptr_eq(known.plugin(), &plugin)) {
            return Ok(known);
        }
        let loaded = Arc::new(RemotePolicy::<S>::load(plugin, self.settings.clone(), self.limits).await?);
        if loaded.identity().digest != self.identity.digest {
            // It was exchanged meanwhile.
            return Err(another());
        }
        *self.loaded.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&loaded));
        Ok(loaded)
    }
}

impl<S: RemoteSlot> Policy<S> for Pinned<S> {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn evaluate<'a>(&'a self, input: &'a S::Input) -> BoxFuture<'a, Result<S::Answer, PolicyError>> {
        Box::pin(async move {
            let policy = self.policy().await.map_err(|error| match error {
                LoadError::Policy(error) => error,
                LoadError::Settings(findings) => PolicyError::Incompatible(format!(
                    "remote plugin {} refuses its settings by now: {}",
                    self.plugin,
                    findings.first().map(|finding| finding.message.clone()).unwrap_or_default()
                )),
            })?;
            policy.evaluate(input).await
        })
    }
}
