//! Which DataPlanes name which extension.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Mutex, PoisonError},
};

use weir_api::dataplane::DataPlane;
use weir_core::{konnect::Sort, konnect_extension::UserRef};

use crate::{
    cache::{Change, Key},
    queue::Queue,
};

/// An extension, as a DataPlane names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Named {
    /// Which of the two kinds.
    pub sort: Sort,
    /// Its name, in the namespace of the DataPlane.
    pub key: Key,
}

impl Named {
    /// The extension that a DataPlane names.
    #[must_use]
    pub fn by(data_plane: &DataPlane) -> Option<Self> {
        let reference = data_plane.spec.extensions.iter().flatten().next()?;
        let key = Key::new(data_plane.metadata.namespace.clone().unwrap_or_default(), reference.name.clone());
        Some(Self { sort: Sort::of(reference)?, key })
    }
}

/// Index from extension to its users.
#[derive(Default)]
pub struct Users(Mutex<HashMap<Named, BTreeSet<UserRef>>>);

impl Users {
    /// A DataPlane changed: the extensions it named and names are looked at where that makes a difference and where they are ours to look at.
    pub fn changed(&self, change: &Change<DataPlane>, queue: &Queue) {
        let (before, after) = (change.old.as_deref().and_then(used), change.new.as_deref().and_then(used));
        if before == after && change.old.is_some() {
            return;
        }
        let user = UserRef { namespace: change.key.namespace.clone(), name: change.key.name.clone() };
        let look = |named: Named| match named.sort {
            Sort::TokenFree => queue.changed(named.key),
            Sort::ApiDriven => {}
        };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(named) = before {
            if let Some(users) = all.get_mut(&named) {
                users.remove(&user);
                if users.is_empty() {
                    all.remove(&named);
                }
            }
            look(named);
        }
        if let Some(named) = after {
            all.entry(named.clone()).or_default().insert(user);
            look(named);
        }
    }

    /// Users of an extension.
    #[must_use]
    pub fn of(&self, extension: &Named) -> BTreeSet<UserRef> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(extension).cloned().unwrap_or_default()
    }

    /// Users of any extension of a sort.
    #[must_use]
    pub fn of_all(&self, sort: Sort) -> BTreeSet<UserRef> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter(|(named, _)| named.sort == sort).flat_map(|(_, users)| users.iter().cloned()).collect()
    }
}

/// The extension that a DataPlane uses: what it names, unless it is on its way out.
fn used(data_plane: &DataPlane) -> Option<Named> {
    Named::by(data_plane).filter(|_| data_plane.metadata.deletion_timestamp.is_none())
}
