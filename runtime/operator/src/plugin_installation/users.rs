//! Who names what: DataPlanes their installations, installations their pull Secrets.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use weir_api::{dataplane::DataPlane, plugin_installation::KongPluginInstallation};

use crate::cache::Key;

/// Index from what is named to those who name it.
#[derive(Default)]
pub struct Index(Mutex<BTreeMap<Key, BTreeSet<Key>>>);

impl Index {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, BTreeSet<Key>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `by` named `before` and names `after`. Tells what it names anew, or no more.
    pub fn changed(&self, by: &Key, before: &BTreeSet<Key>, after: &BTreeSet<Key>) -> Vec<Key> {
        let mut all = self.lock();
        for left in before.difference(after) {
            if let Some(users) = all.get_mut(left) {
                users.remove(by);
                if users.is_empty() {
                    all.remove(left);
                }
            }
        }
        // Also what it named before: a list may have been the first to tell of it.
        for named in after {
            all.entry(named.clone()).or_default().insert(by.clone());
        }
        before.symmetric_difference(after).cloned().collect()
    }

    /// Who names it.
    #[must_use]
    pub fn of(&self, named: &Key) -> BTreeSet<Key> {
        self.lock().get(named).cloned().unwrap_or_default()
    }

    /// Who names something in this namespace from another one.
    #[must_use]
    pub fn strangers(&self, namespace: &str) -> BTreeSet<Key> {
        let all = self.lock();
        let inside = all.range(Key::new(namespace, "")..).take_while(|(named, _)| named.namespace == namespace);
        inside.flat_map(|(_, users)| users.iter()).filter(|user| user.namespace != namespace).cloned().collect()
    }
}

/// Installations that a DataPlane names; none when it is on its way out.
#[must_use]
pub fn installations(data_plane: &DataPlane) -> BTreeSet<Key> {
    if data_plane.metadata.deletion_timestamp.is_some() {
        return BTreeSet::new();
    }
    let own = data_plane.metadata.namespace.as_deref().unwrap_or_default();
    let named = data_plane.spec.plugins_to_install.iter().flatten();
    named.map(|plugin| Key::new(plugin.namespace.as_deref().filter(|n| !n.is_empty()).unwrap_or(own), &plugin.name)).collect()
}

/// The pull Secret that an installation names.
#[must_use]
pub(super) fn secret(installation: &KongPluginInstallation) -> Option<Key> {
    let reference = installation.spec.image_pull_secret_ref.as_ref()?;
    let own = installation.metadata.namespace.as_deref().unwrap_or_default();
    Some(Key::new(reference.namespace.as_deref().filter(|n| !n.is_empty()).unwrap_or(own), &reference.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_anew_or_no_more_is_told_and_found() {
        let index = Index::default();
        let (user, other) = (Key::new("users", "u"), Key::new("lib", "u"));
        let set = |names: &[&str]| names.iter().map(|name| Key::new("lib", *name)).collect::<BTreeSet<_>>();
        assert_eq!(index.changed(&user, &set(&[]), &set(&["a", "b"])).len(), 2);
        assert_eq!(index.changed(&user, &set(&["a", "b"]), &set(&["b", "c"])), [Key::new("lib", "a"), Key::new("lib", "c")]);
        index.changed(&other, &set(&[]), &set(&["b"]));
        assert!(index.of(&Key::new("lib", "a")).is_empty());
        assert_eq!(index.of(&Key::new("lib", "b")).len(), 2);
        assert_eq!(index.strangers("lib"), BTreeSet::from([user]));
        assert!(index.strangers("li").is_empty());
    }
}
