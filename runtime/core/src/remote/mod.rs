//! Remote plugins: which Services are plugins, what of their settings can be used, and what is said about them. Pure: connections are the
//! host's, and what became of them is in the snapshot (design section 9).
//!
//! A pass is over all plugins at once: a name belongs to one Service, and who that is cannot be told from one Service alone. Nothing is
//! remembered of a former list of Services, so a label that is changed or removed leaves nothing behind.

pub mod decide;
mod endpoints;
pub mod plan;
pub mod reason;
mod serves;
pub mod snapshot;
mod status;
pub mod tenants;
pub mod validate;

pub use self::{
    decide::{Spec, decide},
    plan::{Plan, ServicePlan, plan},
    reason::Reason,
    serves::{Asker, Standing, Unusable, serves},
    snapshot::{Facts, Report, Snapshot},
    tenants::Tenants,
    validate::validate,
};

/// Namespace and name.
pub type Key = (String, String);

/// Most plugins; of more, the oldest count.
pub const MAX_PLUGINS: usize = 100;

/// The whole pass.
#[must_use]
pub fn reconcile(snapshot: &Snapshot) -> Plan {
    let validated = validate(snapshot);
    let decided = decide(snapshot, validated);
    plan(snapshot, &decided)
}

/// A key for people.
pub(crate) fn shown(key: &Key) -> String {
    format!("{}/{}", key.0, key.1)
}
