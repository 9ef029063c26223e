//! The WIT package as generated Rust. Use the modules of the crate's root instead; this one is public for the export macros.
//!
//! The worlds of the contract export `settings` each, so two of them cannot be exported from one component. Here every exported
//! interface is a world of its own, and `wit-component` unites the worlds that a component really exports.
#![allow(missing_docs, unreachable_pub, clippy::all, reason = "generated code")]
#![allow(unsafe_code, reason = "the canonical ABI passes raw pointers; wit-bindgen generates both sides of it")]

/// Interface `settings`, the import `log`, and the types that all slots share.
pub mod base {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package weir:sdk;
            world base {
                import weir:policy/log@0.1.0;
                import weir:policy/types@0.1.0;
                export weir:policy/settings@0.1.0;
            }
        ",
        world: "weir:sdk/base",
        additional_derives: [PartialEq, Eq],
        pub_export_macro: true,
        export_macro_name: "__export_settings",
        default_bindings_module: "weir_policy_sdk::bindings::base",
        generate_all,
        generate_unused_types: true,
    });
}

/// Slot konnect-env.
pub mod konnect_env {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package weir:sdk; world slot-konnect-env { export weir:policy/konnect-env@0.1.0; }",
        world: "weir:sdk/slot-konnect-env",
        with: { "weir:policy/types@0.1.0": crate::bindings::base::weir::policy::types },
        generate_all,
        additional_derives: [PartialEq, Eq],
        pub_export_macro: true,
        export_macro_name: "__export_konnect_env",
        default_bindings_module: "weir_policy_sdk::bindings::konnect_env",
    });
}

/// Slot conflict-resolution.
pub mod conflict_resolution {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package weir:sdk; world slot-conflict-resolution { export weir:policy/conflict-resolution@0.1.0; }",
        world: "weir:sdk/slot-conflict-resolution",
        with: { "weir:policy/types@0.1.0": crate::bindings::base::weir::policy::types },
        generate_all,
        additional_derives: [PartialEq, Eq],
        pub_export_macro: true,
        export_macro_name: "__export_conflict_resolution",
        default_bindings_module: "weir_policy_sdk::bindings::conflict_resolution",
    });
}

/// Slot plugin-packaging.
pub mod plugin_packaging {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package weir:sdk; world slot-plugin-packaging { export weir:policy/plugin-packaging@0.1.0; }",
        world: "weir:sdk/slot-plugin-packaging",
        with: { "weir:policy/types@0.1.0": crate::bindings::base::weir::policy::types },
        generate_all,
        additional_derives: [PartialEq, Eq],
        pub_export_macro: true,
        export_macro_name: "__export_plugin_packaging",
        default_bindings_module: "weir_policy_sdk::bindings::plugin_packaging",
    });
}

/// Slot object-hook, which version 0.1.1 of the contract brought.
pub mod object_hook {
    wit_bindgen::generate!({
        path: ["../../wit", "../../wit/0.1.1"],
        inline: "package weir:sdk; world slot-object-hook { export weir:policy/object-hook@0.1.1; }",
        world: "weir:sdk/slot-object-hook",
        with: { "weir:policy/types@0.1.0": crate::bindings::base::weir::policy::types },
        generate_all,
        additional_derives: [PartialEq, Eq],
        pub_export_macro: true,
        export_macro_name: "__export_object_hook",
        default_bindings_module: "weir_policy_sdk::bindings::object_hook",
    });
}
