//! KongPluginInstallation: from an artifact to content, and what keeps a newer one out.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may stop at the first thing that is wrong")]

mod accepting;
mod approval;
mod claims;
mod looking;
mod on_failure;
mod signatures;
mod trouble;
mod world;
