//! Exports. Outside wasm32 they export nothing and only check the traits, so that a policy's crate is tested natively like any other.

/// Exports a type as the policy of one or several slots: a component has one settings interface, whatever it serves.
///
/// ```
/// # use weir_policy_sdk::{conflict_resolution, konnect_env, *};
/// # struct Example;
/// # impl Policy for Example {
/// #     type Settings = NoSettings;
/// #     fn schema() -> &'static str { NO_SETTINGS_SCHEMA }
/// # }
/// # impl KonnectEnv for Example {
/// #     fn evaluate(_: konnect_env::Input, _: NoSettings) -> Result<konnect_env::Answer, Refusal> { Ok(Default::default()) }
/// # }
/// # impl ConflictResolution for Example {
/// #     fn evaluate(_: conflict_resolution::Input, _: NoSettings) -> Result<conflict_resolution::Answer, Refusal> {
/// #         Err(refuse("Never", "never"))
/// #     }
/// # }
/// weir_policy_sdk::export_policy!(Example: konnect_env, conflict_resolution);
/// ```
#[macro_export]
macro_rules! export_policy {
    ($policy:ident : $($slot:ident),+ $(,)?) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            $crate::bindings::base::__export_settings!($policy with_types_in $crate::bindings::base);
            $($crate::__export_slot!($slot $policy);)+
        };
        #[cfg(not(target_arch = "wasm32"))]
        const _: () = {
            $($crate::__check_slot!($slot $policy);)+
        };
    };
}

/// Exports a type as a policy of slot konnect-env. For several slots use [`export_policy`].
#[macro_export]
macro_rules! export_konnect_env {
    ($policy:ident) => {
        $crate::export_policy!($policy: konnect_env);
    };
}

/// Exports a type as a policy of slot conflict-resolution. For several slots use [`export_policy`].
#[macro_export]
macro_rules! export_conflict_resolution {
    ($policy:ident) => {
        $crate::export_policy!($policy: conflict_resolution);
    };
}

/// Exports a type as a policy of slot plugin-packaging. For several slots use [`export_policy`].
#[macro_export]
macro_rules! export_plugin_packaging {
    ($policy:ident) => {
        $crate::export_policy!($policy: plugin_packaging);
    };
}

/// Exports a type as a policy of slot object-hook. For several slots use [`export_policy`].
#[macro_export]
macro_rules! export_object_hook {
    ($policy:ident) => {
        $crate::export_policy!($policy: object_hook);
    };
}

/// One slot of [`export_policy`].
#[doc(hidden)]
#[macro_export]
macro_rules! __export_slot {
    (konnect_env $policy:ident) => {
        $crate::bindings::konnect_env::__export_konnect_env!($policy with_types_in $crate::bindings::konnect_env);
    };
    (conflict_resolution $policy:ident) => {
        $crate::bindings::conflict_resolution::__export_conflict_resolution!($policy with_types_in $crate::bindings::conflict_resolution);
    };
    (plugin_packaging $policy:ident) => {
        $crate::bindings::plugin_packaging::__export_plugin_packaging!($policy with_types_in $crate::bindings::plugin_packaging);
    };
    (object_hook $policy:ident) => {
        $crate::bindings::object_hook::__export_object_hook!($policy with_types_in $crate::bindings::object_hook);
    };
}

/// One slot of [`export_policy`] where nothing is exported.
#[doc(hidden)]
#[macro_export]
macro_rules! __check_slot {
    (konnect_env $policy:ident) => {
        let _ = <$policy as $crate::KonnectEnv>::evaluate;
    };
    (conflict_resolution $policy:ident) => {
        let _ = <$policy as $crate::ConflictResolution>::evaluate;
    };
    (plugin_packaging $policy:ident) => {
        let _ = <$policy as $crate::PluginPackaging>::evaluate;
    };
    (object_hook $policy:ident) => {
        let _ = <$policy as $crate::ObjectHook>::evaluate;
    };
}
