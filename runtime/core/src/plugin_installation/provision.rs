//! What the shell learned by writing: what the API server refuses is the installation's condition, not only a log line.

use weir_api::{
    condition::{reasons, types},
    plugin_installation::KongPluginInstallationStatus,
};

use super::snapshot::Snapshot;
use crate::conditions::{overrule, say};

/// Content, or the record of it, could not be stored: Accepted and Ready become False, in place of what the pass said before it wrote. What
/// was in force stays so.
pub fn unable_to_store(status: &mut KongPluginInstallationStatus, snapshot: &Snapshot, message: &str) {
    failed(status, snapshot, &[types::READY, types::ACCEPTED], message);
    let before = snapshot.installation.status.as_ref();
    status.underlying_config_map_name = before.and_then(|status| status.underlying_config_map_name.clone());
}

/// What is in force stands, but not what the operator notes about it: who may use it, or what waits. Only Ready becomes False.
pub fn unable_to_note(status: &mut KongPluginInstallationStatus, snapshot: &Snapshot, message: &str) {
    failed(status, snapshot, &[types::READY], message);
}

fn failed(status: &mut KongPluginInstallationStatus, snapshot: &Snapshot, conditions: &[&'static str], message: &str) {
    let (object, said) = (&snapshot.installation, status.conditions.get_or_insert_default());
    let live = object.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    for type_ in conditions {
        overrule(said, say(type_, false, reasons::FAILED, message), live, object.metadata.generation, snapshot.now);
    }
}
