//! DataPlane: one pass, pure but for the policies it asks.

mod addresses;
pub mod conflicts;
pub mod decide;
pub mod objects;
pub mod plan;
pub mod plugins;
pub mod provision;
pub mod snapshot;
pub mod status;
pub mod validate;

pub use self::{decide::decide, plan::plan, snapshot::Snapshot, validate::validate};

use weir_api::dataplane::DataPlaneStatus;

use crate::{decisions::Sealing, plan::Plan, policy::Policies};

/// The whole pass: validate, decide, plan.
pub async fn reconcile(snapshot: &Snapshot, policies: &Policies, sealing: &Sealing) -> Plan<DataPlaneStatus> {
    let validated = validate(snapshot);
    let decided = decide(&validated, policies, sealing).await;
    plan(&validated, &decided)
}
