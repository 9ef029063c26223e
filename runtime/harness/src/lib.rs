//! Passes over manifests without a cluster, and everything that is built on them: tests, measurements and comparisons of policies.
//!
//! The reconcile path is the core's own, policies run in the operator's own host within its own limits. `weir plan` prints one [`pass`],
//! `weir policy test` judges many.

pub mod ask;
pub mod bench;
pub mod calls;
pub mod changes;
pub mod compare;
pub mod exit;
mod invariants;
mod judge;
pub mod pass;
pub mod record;
pub mod report;
pub mod run;
mod snapshot;
pub mod sources;
pub mod stock;
pub mod suite;
