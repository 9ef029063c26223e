//! All plugins, by name: one map that is replaced as a whole and read without a lock.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use tokio::sync::watch;

use super::{AcquireError, Lease, Observer, Plugin, Spec, Tuning, plugin::Shared};

/// Plugins by name.
pub type Plugins = BTreeMap<String, Arc<Plugin>>;

/// What [`Registry::replace`] did, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Replaced {
    /// Not there before.
    pub added: BTreeSet<String>,
    /// Other endpoints, certificates, names or limits.
    pub changed: BTreeSet<String>,
    /// Not there any more.
    pub removed: BTreeSet<String>,
    /// The same: nothing happened to their connections.
    pub kept: BTreeSet<String>,
}

/// The plugins of an operator. Its connections end with it.
pub struct Registry {
    plugins: ArcSwap<Plugins>,
    writer: Mutex<()>,
    shared: Arc<Shared>,
}

impl Registry {
    /// An empty registry whose connections live on `runtime`. Calls may come from anywhere, also from outside of a runtime.
    #[must_use]
    pub fn new(runtime: tokio::runtime::Handle, tuning: Tuning, observer: Arc<dyn Observer>) -> Self {
        let shared = Arc::new(Shared { tuning, runtime, observer, changes: watch::Sender::new(0) });
        Self { plugins: ArcSwap::default(), writer: Mutex::new(()), shared }
    }

    /// Takes what was discovered; never blocks. A spec that did not change keeps its pool; one that did keeps its [`Plugin`], whose new
    /// connections take over while calls on the former ones end; a name that is gone is closed and drained in the background. Of two specs
    /// with one name the first counts.
    pub fn replace(&self, specs: Vec<Spec>) -> Replaced {
        let _one = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let former = self.plugins.load_full();
        let (mut next, mut done) = (Plugins::new(), Replaced::default());
        for spec in specs {
            let name = spec.name.clone();
            if next.contains_key(&name) {
                continue;
            }
            let plugin = if let Some(plugin) = former.get(&name) {
                let list = if plugin.update(spec) { &mut done.changed } else { &mut done.kept };
                list.insert(name.clone());
                Arc::clone(plugin)
            } else {
                done.added.insert(name.clone());
                Plugin::start(spec, Arc::clone(&self.shared))
            };
            next.insert(name, plugin);
        }
        let removed: Vec<Arc<Plugin>> =
            former.iter().filter(|(name, _)| !next.contains_key(*name)).map(|(_, gone)| Arc::clone(gone)).collect();
        self.plugins.store(Arc::new(next));
        for gone in removed {
            gone.close();
            done.removed.insert(gone.name().to_owned());
        }
        if done.added.len() + done.changed.len() + done.removed.len() > 0 {
            self.shared.changes.send_modify(|count| *count = count.wrapping_add(1));
        }
        done
    }

    /// The plugin of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<Plugin>> {
        self.plugins.load().get(name).cloned()
    }

    /// All of them, at one moment.
    #[must_use]
    pub fn plugins(&self) -> Arc<Plugins> {
        self.plugins.load_full()
    }

    /// Borrows a connection of the plugin of this name; see [`Plugin::acquire`].
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn acquire(&self, name: &str, within: Duration) -> Result<Lease, AcquireError> {
        match self.get(name) {
            Some(plugin) => plugin.acquire(within).await,
            None => Err(AcquireError::Unknown { name: name.to_owned() }),
        }
    }

    /// Changes with every change of any plugin's status, and of the set of plugins.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.plugins.load().values().for_each(|plugin| plugin.close());
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.plugins.load().iter().map(|(name, plugin)| (name.clone(), plugin.state()))).finish()
    }
}
