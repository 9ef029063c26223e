//! What the shell learned by writing: a child that the API server refuses is the DataPlane's condition, not only a log line.

use weir_api::{
    condition::{reasons, types},
    dataplane::DataPlaneStatus,
};

use super::snapshot::Snapshot;
use crate::conditions::{overrule, say};

/// Ready becomes False/UnableToProvision, in place of what the pass said before it wrote.
pub fn unable_to_provision(status: &mut DataPlaneStatus, snapshot: &Snapshot, message: &str) {
    let live = snapshot.data_plane.status.as_ref().and_then(|s| s.conditions.as_deref()).unwrap_or_default();
    let ready = say(types::READY, false, reasons::UNABLE_TO_PROVISION, message);
    overrule(status.conditions.get_or_insert_default(), ready, live, snapshot.data_plane.metadata.generation, snapshot.now);
}
