//! Policies of any slot in one type.

use std::sync::Arc;

use weir_core::policy::{ConflictResolution, Identity, KonnectEnv, ObjectHook, PluginPackaging, Policies, Policy, Slot};
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
    /// Slot object-hook.
    ObjectHook(Arc<dyn Policy<ObjectHook>>),
}

impl AnyPolicy {
    /// Which policy it is.
    pub fn identity(&self) -> &Identity {
        match self {
            Self::KonnectEnv(policy) => policy.identity(),
            Self::ConflictResolution(policy) => policy.identity(),
            Self::PluginPackaging(policy) => policy.identity(),
            Self::ObjectHook(policy) => policy.identity(),
        }
    }
}

/// A slot that has a place in [`AnyPolicy`] and [`Policies`].
pub trait Served: WasmSlot + Builtin + RemoteSlot + Slot<Input: Clone + 'static> {
    /// Into the one type.
    fn wrap(policy: Arc<dyn Policy<Self>>) -> AnyPolicy;
    /// Out of it, where it is of this slot.
    fn pick(any: &AnyPolicy) -> Option<Arc<dyn Policy<Self>>>;
    /// The one of an object's policies. Of several hooks it is that of this name, and the first one without a name.
    fn of<'p>(policies: &'p Policies, hook: Option<&str>) -> Option<&'p Arc<dyn Policy<Self>>>;
}

macro_rules! served {
    ($($slot:ident, |$policies:ident, $hook:ident| $of:expr;)*) => {$(
        impl Served for $slot {
            fn wrap(policy: Arc<dyn Policy<Self>>) -> AnyPolicy {
                AnyPolicy::$slot(policy)
            }

            fn pick(any: &AnyPolicy) -> Option<Arc<dyn Policy<Self>>> {
                if let AnyPolicy::$slot(policy) = any { Some(Arc::clone(policy)) } else { None }
            }

            fn of<'p>($policies: &'p Policies, $hook: Option<&str>) -> Option<&'p Arc<dyn Policy<Self>>> {
                $of
            }
        }
    )*};
}

served! {
    KonnectEnv, |policies, _hook| Some(&policies.konnect_env.policy);
    ConflictResolution, |policies, _hook| Some(&policies.conflict_resolution.policy);
    PluginPackaging, |policies, _hook| Some(&policies.plugin_packaging.policy);
    ObjectHook, |policies, hook| {
        let mut chain = policies.object_hooks.chain.iter();
        chain.find(|one| hook.is_none_or(|name| one.name == name)).map(|one| &one.chosen.policy)
    };
}
