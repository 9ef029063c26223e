//! What the shell learned by writing: a child that the API server refuses is the DataPlane's condition, not only a log line.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use weir_api::{
    condition::{Condition, reasons, types},
    dataplane::DataPlaneStatus,
};

use super::snapshot::Snapshot;

/// Longest message a condition has.
const MAX_MESSAGE: usize = 4096;

/// Ready becomes False/UnableToProvision, in place of what the pass said before it wrote. The transition time moves with the status only.
pub fn unable_to_provision(status: &mut DataPlaneStatus, snapshot: &Snapshot, message: &str) {
    let live = snapshot.data_plane.status.as_ref().and_then(|s| s.conditions.as_ref());
    let before = live.into_iter().flatten().find(|c| c.type_ == types::READY && c.status == "False");
    let ready = Condition {
        type_: types::READY.into(),
        status: "False".into(),
        reason: reasons::UNABLE_TO_PROVISION.into(),
        message: message.chars().take(MAX_MESSAGE).collect(),
        observed_generation: snapshot.data_plane.metadata.generation,
        last_transition_time: before.map_or(Time(snapshot.now), |c| c.last_transition_time.clone()),
    };
    let conditions = status.conditions.get_or_insert_default();
    match conditions.iter_mut().find(|c| c.type_ == types::READY) {
        Some(there) => *there = ready,
        None => conditions.insert(0, ready),
    }
}
