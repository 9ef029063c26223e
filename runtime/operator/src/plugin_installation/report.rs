//! What the shell learned by writing: content that the API server refuses is the installation's condition, not only a log line.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use weir_api::{
    condition::{Condition, reasons, types},
    plugin_installation::KongPluginInstallationStatus,
};
use weir_core::plugin_installation::Snapshot;

/// Longest message a condition has.
const MAX_MESSAGE: usize = 4096;

/// Accepted and Ready become False, in place of what the pass said before it wrote. What is in force stays.
pub(super) fn unable_to_store(status: &mut KongPluginInstallationStatus, snapshot: &Snapshot, message: &str) {
    let live = snapshot.installation.status.as_ref().and_then(|s| s.conditions.as_ref());
    let message: String = message.chars().take(MAX_MESSAGE).collect();
    let conditions = status.conditions.get_or_insert_default();
    for type_ in [types::ACCEPTED, types::READY] {
        let before = live.into_iter().flatten().find(|c| c.type_ == type_ && c.status == "False");
        let said = Condition {
            type_: type_.into(),
            status: "False".into(),
            reason: reasons::FAILED.into(),
            message: message.clone(),
            observed_generation: snapshot.installation.metadata.generation,
            last_transition_time: before.map_or(Time(snapshot.now), |c| c.last_transition_time.clone()),
        };
        match conditions.iter_mut().find(|c| c.type_ == type_) {
            Some(there) => *there = said,
            None => conditions.push(said),
        }
    }
}
