//! ReconcilePolicy: which revision of a component answers a slot. Pure: fetching, verifying and compiling are the shell's, and what became
//! of them is in the snapshot (design section 6).
//!
//! `status.active` is the one place that says what runs. The leader writes it, and every replica, the leader too, runs what it says.

pub mod decide;
pub mod plan;
pub mod snapshot;
mod status;
pub mod validate;

use weir_api::reconcile_policy::ReconcilePolicyStatus;

pub use self::{
    decide::{decide, is_current},
    plan::plan,
    snapshot::Snapshot,
    validate::validate,
};

use crate::plan::Plan;

/// The whole pass.
#[must_use]
pub fn reconcile(snapshot: &Snapshot) -> Plan<ReconcilePolicyStatus> {
    let policy = validate(snapshot);
    let decided = decide(&policy);
    plan(&policy, &decided)
}
