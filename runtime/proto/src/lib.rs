//! The gRPC contract of remote plugins, generated from `proto/`: messages, clients and servers.
//!
//! [`identity`], [`operator`], [`lifecycle`] and [`reconciler`] are wire-compatible with CNPG-I; [`policy`] carries the slots of Weir.
//! Nothing here judges a message: plugins are untrusted, and `weir_host::remote` checks what they say.

/// `cnpgi.identity.v1`: who a plugin is and what it offers.
pub mod identity {
    #![allow(
        missing_docs,
        unreachable_pub,
        clippy::all,
        clippy::allow_attributes_without_reason,
        reason = "generated; proto/ documents it"
    )]
    tonic::include_proto!("cnpgi.identity.v1");
}

/// `cnpgi.operator.v1`: what a plugin says about the object it is configured on.
pub mod operator {
    #![allow(
        missing_docs,
        unreachable_pub,
        clippy::all,
        clippy::allow_attributes_without_reason,
        reason = "generated; proto/ documents it"
    )]
    tonic::include_proto!("cnpgi.operator.v1");
}

/// `cnpgi.operator_lifecycle.v1`: hooks on objects that are written.
pub mod lifecycle {
    #![allow(
        missing_docs,
        unreachable_pub,
        clippy::all,
        clippy::allow_attributes_without_reason,
        reason = "generated; proto/ documents it"
    )]
    tonic::include_proto!("cnpgi.operator_lifecycle.v1");
}

/// `cnpgi.reconciler.v1`: hooks before and after a pass.
pub mod reconciler {
    #![allow(
        missing_docs,
        unreachable_pub,
        clippy::all,
        clippy::allow_attributes_without_reason,
        reason = "generated; proto/ documents it"
    )]
    tonic::include_proto!("cnpgi.reconciler.v1");
}

/// `weir.policy.v1alpha1`: the slots of Weir.
pub mod policy {
    #![allow(
        missing_docs,
        unreachable_pub,
        clippy::all,
        clippy::allow_attributes_without_reason,
        reason = "generated; proto/ documents it"
    )]
    tonic::include_proto!("weir.policy.v1alpha1");

    /// Key of the identity manifest that advertises `slot`.
    #[must_use]
    pub fn slot_key(slot: &str) -> String {
        format!("weir.dev/slot.{slot}")
    }

    /// Value of that key: the version of this package.
    pub const SLOT_VERSION: &str = "v1alpha1";
}
