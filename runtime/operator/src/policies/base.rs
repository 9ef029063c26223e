//! The policies that answer where no ReconcilePolicy does, and the files they may come from: a file that changes is loaded and takes over
//! with no restart; one that does not load changes nothing.

use std::{
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, SystemTime},
};

use tokio::sync::watch;
use weir_core::policy::{Policies, SlotName, object_hook::Hooks};
use weir_host::{
    files::{self, Files, Loaded},
    layer::{Counters, MemoSize},
    wasm::{Limits, Wasm},
};

use super::{
    revisions::{PACKAGING, remembered},
    samples::Samples,
};
use crate::health::Health;

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// The policies that answer where no ReconcilePolicy does.
pub struct Base {
    host: Wasm,
    files: Files,
    counters: Arc<Counters>,
    samples: Arc<Samples>,
    health: Health,
    /// Stand in for policies that fail, where their owners want that.
    builtin: Policies,
    policies: RwLock<Policies>,
}

/// What tells one version of a file from another.
type Stamp = Vec<(PathBuf, Option<(SystemTime, u64)>)>;

impl Base {
    /// Loads them for the first time. A component that cannot be used stands for its slot and always fails: objects say so.
    ///
    /// # Errors
    /// Unreadable files, settings that are refused.
    pub fn load(host: Wasm, files: Files, counters: Arc<Counters>, samples: Arc<Samples>, health: Health) -> Result<Self, files::Error> {
        let loaded = files.load(&host, Limits::default())?;
        for unusable in &loaded.unusable {
            tracing::error!(slot = %unusable.slot, origin = %unusable.origin, error = %unusable.error, "a policy cannot be used");
        }
        let hook = files::default_hook(&host, Limits::default())?;
        let mut builtin = layered(Files::default().load(&host, Limits::default())?, &counters, &samples);
        builtin.object_hooks = Hooks::one("builtin", remembered(hook, &counters, &samples, MemoSize::default()).into());
        let policies = RwLock::new(layered(loaded, &counters, &samples));
        let this = Self { host, files, counters, samples, health, builtin, policies };
        this.report();
        Ok(this)
    }

    /// What a pass asks. A pass that has begun keeps what it began with.
    #[must_use]
    pub fn current(&self) -> Policies {
        self.policies.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Those inside of the operator, with their own defaults.
    #[must_use]
    pub fn builtin(&self) -> Policies {
        self.builtin.clone()
    }

    fn report(&self) {
        let policies = self.current();
        self.health.policy(SlotName::KonnectEnv, policies.konnect_env.identity().digest.clone());
        self.health.policy(SlotName::ConflictResolution, policies.conflict_resolution.identity().digest.clone());
        self.health.policy(SlotName::PluginPackaging, policies.plugin_packaging.identity().digest.clone());
        for hook in policies.object_hooks.identities() {
            self.health.policy(SlotName::ObjectHook, hook.digest.clone());
        }
    }

    /// Looks at the files until `stop` says so, and calls `swapped` after other policies took over.
    pub async fn watch(self: Arc<Self>, mut stop: watch::Receiver<bool>, swapped: impl Fn()) {
        if self.files.paths().next().is_none() {
            return;
        }
        let mut known = self.stamp();
        loop {
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                () = tokio::time::sleep(LOOK) => {}
            }
            let now = self.stamp();
            if now == known {
                continue;
            }
            known = now;
            let this = Arc::clone(&self);
            match tokio::task::spawn_blocking(move || this.reload()).await {
                Ok(true) => swapped(),
                Ok(false) => {}
                Err(error) => tracing::error!(%error, "loading policies was interrupted"),
            }
        }
    }

    fn stamp(&self) -> Stamp {
        let stamp = |path: &std::path::Path| {
            let meta = std::fs::metadata(path).ok()?;
            Some((meta.modified().ok()?, meta.len()))
        };
        self.files.paths().map(|path| (path.to_owned(), stamp(path))).collect()
    }

    /// Whether other policies are in force now.
    fn reload(&self) -> bool {
        let loaded = match self.files.load(&self.host, Limits::default()) {
            Ok(loaded) if loaded.unusable.is_empty() => loaded,
            Ok(loaded) => {
                for unusable in &loaded.unusable {
                    tracing::error!(slot = %unusable.slot, origin = %unusable.origin, error = %unusable.error,
                        "a changed policy cannot be used; the one in force stays");
                }
                return false;
            }
            Err(error) => {
                tracing::error!(%error, "changed policies cannot be loaded; those in force stay");
                return false;
            }
        };
        let (before, after) = (identities(&self.current()), identities(&loaded.policies));
        if before == after {
            return false;
        }
        tracing::info!(?before, ?after, "policies were swapped");
        *self.policies.write().unwrap_or_else(PoisonError::into_inner) = layered(loaded, &self.counters, &self.samples);
        self.report();
        true
    }
}

fn identities(policies: &Policies) -> Vec<(String, String)> {
    let of = |i: &weir_core::policy::Identity| (i.digest.clone(), i.settings_digest.clone());
    let each = [policies.konnect_env.identity(), policies.conflict_resolution.identity(), policies.plugin_packaging.identity()];
    each.into_iter().chain(policies.object_hooks.identities()).map(of).collect()
}

fn layered(loaded: Loaded, counters: &Arc<Counters>, samples: &Samples) -> Policies {
    let Policies { konnect_env, conflict_resolution, plugin_packaging, mut object_hooks } = loaded.policies;
    for hook in &mut object_hooks.chain {
        hook.chosen = hook.chosen.clone().map(|policy| remembered(policy, counters, samples, MemoSize::default()));
    }
    Policies {
        konnect_env: konnect_env.map(|policy| remembered(policy, counters, samples, MemoSize::default())),
        conflict_resolution: conflict_resolution.map(|policy| remembered(policy, counters, samples, MemoSize::default())),
        plugin_packaging: plugin_packaging.map(|policy| remembered(policy, counters, samples, PACKAGING)),
        object_hooks,
    }
}
