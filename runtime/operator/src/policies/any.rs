//! Policies of any slot in one type.

use std::sync::Arc;

use weir_core::policy::{ConflictResolution, Identity, KonnectEnv, PluginPackaging, Policies, Policy, Slot};
use weir_host::{
    remote::RemoteSlot,
    wasm::{Builtin, WasmSlot},
};

/// A policy of some slot.
#[derive(Clone)]
pub enum AnyPolicy {
    /// Slot konnect-env.
    KonnectEnv(Arc<dyn Policy<KonnectEnv>>),
    /// Slot conflict-resolution.
    ConflictResolution(Arc<dyn Policy<ConflictResolution>>),
    /// Slot plugin-packaging.
    PluginPackaging(Arc<dyn Policy<PluginPackaging>>),
}

impl AnyPolicy {
    /// Which policy it is.
    pub fn identity(&self) -> &Identity {
        match self {
            Self::KonnectEnv(policy) => policy.identity(),
            Self::ConflictResolution(policy) => policy.identity(),
            Self::PluginPackaging(policy) => policy.identity(),
        }
    }
}

/// A slot that has a place in [`AnyPolicy`] and [`Policies`].
pub trait Served: WasmSlot + Builtin + RemoteSlot + Slot<Input: Clone + 'static> {
    /// Into the one type.
    fn wrap(policy: Arc<dyn Policy<Self>>) -> AnyPolicy;
    /// Out of it, where it is of this slot.
    fn pick(any: &AnyPolicy) -> Option<Arc<dyn Policy<Self>>>;
    /// The one of an object's policies.
    fn of(policies: &Policies) -> &Arc<dyn Policy<Self>>;
}

macro_rules! served {
    ($($slot:ident, $field:ident;)*) => {$(
        impl Served for $slot {
            fn wrap(policy: Arc<dyn Policy<Self>>) -> AnyPolicy {
                AnyPolicy::$slot(policy)
            }

            fn pick(any: &AnyPolicy) -> Option<Arc<dyn Policy<Self>>> {
                if let AnyPolicy::$slot(policy) = any { Some(Arc::clone(policy)) } else { None }
            }

            fn of(policies: &Policies) -> &Arc<dyn Policy<Self>> {
                &policies.$field.policy
            }
        }
    )*};
}

served! {
    KonnectEnv, konnect_env;
    ConflictResolution, conflict_resolution;
    PluginPackaging, plugin_packaging;
}
