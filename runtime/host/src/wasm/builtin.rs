//! The default policies: components like any other, embedded at build time from `target/guests`.

use std::sync::Arc;

use serde_json::Value;
use weir_core::policy::{ConflictResolution, KonnectEnv, ObjectHook, PluginPackaging, Policies, object_hook::Hooks};

use super::{Wasm, limits::Limits, load::LoadError, policy::WasmPolicy, slot::WasmSlot};

/// Source of an embedded policy in its identity.
pub const SOURCE: &str = "builtin";

/// A slot whose default is embedded.
pub trait Builtin: WasmSlot {
    /// The component.
    const COMPONENT: &'static [u8];
}

impl Builtin for KonnectEnv {
    const COMPONENT: &'static [u8] = include_bytes!(concat!(env!("OUT_DIR"), "/konnect-env.wasm"));
}

impl Builtin for ConflictResolution {
    const COMPONENT: &'static [u8] = include_bytes!(concat!(env!("OUT_DIR"), "/conflict-resolution.wasm"));
}

impl Builtin for PluginPackaging {
    const COMPONENT: &'static [u8] = include_bytes!(concat!(env!("OUT_DIR"), "/plugin-packaging.wasm"));
}

impl Builtin for ObjectHook {
    const COMPONENT: &'static [u8] = include_bytes!(concat!(env!("OUT_DIR"), "/object-hook.wasm"));
}

impl Wasm {
    /// Loads the default of slot `S`, through the same checks as any component.
    ///
    /// # Errors
    /// As [`Wasm::load`].
    pub fn builtin<S: Builtin>(&self, settings: Value, limits: Limits) -> Result<Arc<WasmPolicy<S>>, LoadError> {
        self.load::<S>(S::COMPONENT, SOURCE.to_owned(), settings, limits)
    }

    /// The defaults of all slots, without settings, within the default limits. By default there are no hooks.
    ///
    /// # Errors
    /// As [`Wasm::load`].
    pub fn defaults(&self) -> Result<Policies, LoadError> {
        Ok(Policies {
            konnect_env: self.builtin::<KonnectEnv>(Value::Null, Limits::default())?.into(),
            conflict_resolution: self.builtin::<ConflictResolution>(Value::Null, Limits::default())?.into(),
            plugin_packaging: self.builtin::<PluginPackaging>(Value::Null, Limits::default())?.into(),
            object_hooks: Hooks::default(),
        })
    }
}
