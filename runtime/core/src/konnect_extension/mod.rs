//! The token-free KonnectExtension: who uses it, can it be used, may it go? Pure: no policy is asked. What it means for pods is the
//! DataPlane's pass ([`crate::konnect`]).

pub mod snapshot;
mod status;

use weir_api::{keys, konnect_extension::KonnectExtensionStatus};

pub use self::snapshot::{Snapshot, UserRef};

use crate::plan::{self, Change, Plan};

/// The whole pass.
#[must_use]
pub fn reconcile(snapshot: &Snapshot) -> Plan<KonnectExtensionStatus> {
    let meta = &snapshot.extension.metadata;
    let mut changes = Vec::new();
    let mut events = Vec::new();
    let deleting = meta.deletion_timestamp.is_some();
    let finalizer = meta.finalizers.iter().flatten().any(|f| f == keys::EXTENSION_IN_USE);
    let used = !snapshot.users.is_empty();
    // The API server refuses new finalizers on an object that is being deleted.
    if used != finalizer && !(used && deleting) {
        changes.push(Change::SetFinalizer { key: keys::EXTENSION_IN_USE.into(), present: used });
    }
    let status = status::build(snapshot);
    let status_changed = snapshot.extension.status.as_ref() != Some(&status);
    if status_changed {
        events.extend(status::event(&status));
    }
    changes.extend(plan::checked(meta));
    Plan { changes, status: Some(status), status_changed, events, findings: Vec::new(), policies: Vec::new(), holds: Vec::new() }
}
