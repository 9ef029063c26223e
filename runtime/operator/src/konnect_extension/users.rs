//! Which DataPlanes name which extension.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Mutex, PoisonError},
};

use weir_api::{dataplane::DataPlane, keys};
use weir_core::konnect_extension::UserRef;

use crate::{
    cache::{Change, Key},
    queue::Queue,
};

/// Index from extension to its users.
#[derive(Default)]
pub struct Users(Mutex<HashMap<Key, BTreeSet<UserRef>>>);

impl Users {
    /// A DataPlane changed: the extensions it named and names are looked at where that makes a difference.
    pub fn changed(&self, change: &Change<DataPlane>, queue: &Queue) {
        let (before, after) = (change.old.as_deref().and_then(named), change.new.as_deref().and_then(named));
        if before == after && change.old.is_some() {
            return;
        }
        let user = UserRef { namespace: change.key.namespace.clone(), name: change.key.name.clone() };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = before {
            if let Some(users) = all.get_mut(&key) {
                users.remove(&user);
                if users.is_empty() {
                    all.remove(&key);
                }
            }
            queue.changed(key);
        }
        if let Some(key) = after {
            all.entry(key.clone()).or_default().insert(user);
            queue.changed(key);
        }
    }

    /// Users of an extension.
    #[must_use]
    pub fn of(&self, extension: &Key) -> BTreeSet<UserRef> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(extension).cloned().unwrap_or_default()
    }
}

/// The token-free extension that a DataPlane names, unless it is on its way out.
fn named(data_plane: &DataPlane) -> Option<Key> {
    if data_plane.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let reference = data_plane.spec.extensions.iter().flatten().next()?;
    let token_free = reference.group == keys::GATEWAY_OPERATOR_GROUP && reference.kind == "KonnectExtension";
    token_free.then(|| Key::new(data_plane.metadata.namespace.clone().unwrap_or_default(), reference.name.clone()))
}
