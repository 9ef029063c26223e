//! Runs a policy somewhere: [`wasm`] components here, [`remote`] plugins elsewhere; [`layer`]s work over any of them. Pulls artifacts from
//! registries: [`oci`].
//!
//! Policies are untrusted code. Nothing a policy does may take the process down, hold a thread of its caller, or be used before
//! it was checked; whatever goes wrong is one [`PolicyError`](weir_core::policy::PolicyError).

mod disk;
pub mod files;
pub mod layer;
pub mod oci;
pub mod remote;
pub mod wasm;
