//! The gRPC contract of remote plugins, generated from `proto/`: messages, clients and servers.
//!
//! [`identity`], [`operator`], [`lifecycle`] and [`reconciler`] are wire-compatible with CNPG-I; [`policy`] carries the slots of Weir.
//! Nothing here judges a message: plugins are untrusted, and `weir_host::remote` checks what they say.

/// A module of one package: what is generated, and what goes with it.
macro_rules! package {
    ($(#[$doc:meta])* $name:ident, $package:literal $(, $($more:item)*)?) => {
        $(#[$doc])*
        pub mod $name {
            #![allow(
                missing_docs,
                unreachable_pub,
                clippy::all,
                clippy::allow_attributes_without_reason,
                reason = "generated; proto/ documents it"
            )]
            tonic::include_proto!($package);

            $($($more)*)?
        }
    };
}

package! {
    /// `cnpgi.identity.v1`: who a plugin is and what it offers.
    identity, "cnpgi.identity.v1"
}

package! {
    /// `cnpgi.operator.v1`: what a plugin says about the object it is configured on.
    operator, "cnpgi.operator.v1"
}

package! {
    /// `cnpgi.operator_lifecycle.v1`: hooks on objects that are written.
    lifecycle, "cnpgi.operator_lifecycle.v1"
}

package! {
    /// `cnpgi.reconciler.v1`: hooks before and after a pass.
    reconciler, "cnpgi.reconciler.v1"
}

package! {
    /// `weir.policy.v1alpha1`: the slots of Weir.
    policy, "weir.policy.v1alpha1",

    /// Key of the identity manifest that advertises `slot`.
    #[must_use]
    pub fn slot_key(slot: &str) -> String {
        format!("weir.dev/slot.{slot}")
    }

    /// Value of that key: the version of this package.
    pub const SLOT_VERSION: &str = "v1alpha1";
}
