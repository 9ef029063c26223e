//! What the cluster looks like, from watches and from the answers to our own writes.
//!
//! A cache that only knew watches would show a pass its own writes late, and the pass would write again. So answers go in too, and an
//! event older than what is there changes nothing. Resource versions of one kind compare as numbers (KEP-5504).

mod key;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

pub use self::key::Key;

/// What can be cached: it has metadata.
pub trait Cached: Send + Sync + 'static {
    /// Metadata.
    fn meta(&self) -> &ObjectMeta;
}

impl<K: kube::Resource + Send + Sync + 'static> Cached for K {
    fn meta(&self) -> &ObjectMeta {
        kube::Resource::meta(self)
    }
}

/// One object before and after.
#[derive(Debug)]
pub struct Change<T> {
    /// Which object.
    pub key: Key,
    /// Before; none when it was not there.
    pub old: Option<Arc<T>>,
    /// After; none when it is gone.
    pub new: Option<Arc<T>>,
}

/// Objects of one kind, by name and by owner.
#[derive(Debug)]
pub struct Cache<T> {
    inner: RwLock<Inner<T>>,
}

#[derive(Debug)]
struct Inner<T> {
    objects: BTreeMap<Key, Arc<T>>,
    /// UIDs of owners to what they own.
    owned: HashMap<String, BTreeSet<Key>>,
    /// What a running list has seen, by the namespace it lists ("" for all).
    listing: HashMap<String, HashSet<Key>>,
}

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self { inner: RwLock::new(Inner { objects: BTreeMap::new(), owned: HashMap::new(), listing: HashMap::new() }) }
    }
}

impl<T: Cached> Cache<T> {
    /// Nothing panics under the lock besides an allocation.
    fn read(&self) -> RwLockReadGuard<'_, Inner<T>> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner<T>> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The object of this name.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<Arc<T>> {
        self.read().objects.get(key).cloned()
    }

    /// Everything an owner owns, sorted by name.
    #[must_use]
    pub fn owned_by(&self, uid: &str) -> Vec<Arc<T>> {
        let inner = self.read();
        inner.owned.get(uid).into_iter().flatten().filter_map(|key| inner.objects.get(key).cloned()).collect()
    }

    /// Everything in a namespace whose name begins like this.
    #[must_use]
    pub fn beginning(&self, namespace: &str, prefix: &str) -> Vec<Arc<T>> {
        let inner = self.read();
        let from = inner.objects.range(Key::new(namespace, prefix)..);
        from.take_while(|(key, _)| key.namespace == namespace && key.name.starts_with(prefix))
            .map(|(_, object)| Arc::clone(object))
            .collect()
    }

    /// Everything.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<T>> {
        self.read().objects.values().cloned().collect()
    }

    /// Keys of everything.
    #[must_use]
    pub fn keys(&self) -> Vec<Key> {
        self.read().objects.keys().cloned().collect()
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.read().objects.len()
    }

    /// None at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A watch saw the object. None when that is no news: an echo of our own write. An event older than what is there changes nothing
    /// here, but it is news: the write that overtook it was planned without it.
    pub fn apply(&self, object: T) -> Option<Change<T>> {
        let key = Key::of(object.meta());
        let mut inner = self.write();
        if let Some(there) = inner.objects.get(&key).cloned() {
            match order(there.meta(), object.meta()) {
                Order::Same => return None,
                Order::Older => return Some(Change { key, old: Some(Arc::clone(&there)), new: Some(there) }),
                Order::Newer => {}
            }
        }
        Some(inner.put(key, Arc::new(object)))
    }

    /// The server answered a write of ours.
    pub fn answered(&self, object: T) {
        let key = Key::of(object.meta());
        let mut inner = self.write();
        // A list that began before the write does not know the object.
        for seen in inner.listing.values_mut() {
            seen.insert(key.clone());
        }
        let newer = inner.objects.get(&key).is_none_or(|there| matches!(order(there.meta(), object.meta()), Order::Newer));
        if newer {
            inner.put(key, Arc::new(object));
        }
    }

    /// A watch saw the object go.
    pub fn delete(&self, meta: &ObjectMeta) -> Option<Change<T>> {
        let key = Key::of(meta);
        let mut inner = self.write();
        let there = inner.objects.get(&key)?;
        // Another object of this name may be there already.
        if there.meta().uid != meta.uid {
            return None;
        }
        let old = inner.remove(&key);
        Some(Change { key, old, new: None })
    }

    /// A list of a namespace ("" for all) begins.
    pub fn list_begins(&self, namespace: &str) {
        self.write().listing.insert(namespace.to_owned(), HashSet::new());
    }

    /// A list saw the object.
    pub fn listed(&self, namespace: &str, object: T) -> Option<Change<T>> {
        let key = Key::of(object.meta());
        if let Some(seen) = self.write().listing.get_mut(namespace) {
            seen.insert(key);
        }
        self.apply(object)
    }

    /// The list is over: what it did not see is gone.
    pub fn list_ends(&self, namespace: &str) -> Vec<Change<T>> {
        let mut inner = self.write();
        let seen = inner.listing.remove(namespace).unwrap_or_default();
        let in_scope = |key: &&Key| namespace.is_empty() || key.namespace == namespace;
        let gone: Vec<Key> = inner.objects.keys().filter(in_scope).filter(|key| !seen.contains(*key)).cloned().collect();
        gone.into_iter()
            .map(|key| {
                let old = inner.remove(&key);
                Change { key, old, new: None }
            })
            .collect()
    }
}

impl<T: Cached> Inner<T> {
    fn put(&mut self, key: Key, object: Arc<T>) -> Change<T> {
        let old = self.remove(&key);
        for owner in object.meta().owner_references.iter().flatten() {
            self.owned.entry(owner.uid.clone()).or_default().insert(key.clone());
        }
        self.objects.insert(key.clone(), Arc::clone(&object));
        Change { key, old, new: Some(object) }
    }

    fn remove(&mut self, key: &Key) -> Option<Arc<T>> {
        let old = self.objects.remove(key)?;
        for owner in old.meta().owner_references.iter().flatten() {
            if let Some(keys) = self.owned.get_mut(&owner.uid) {
                keys.remove(key);
                if keys.is_empty() {
                    self.owned.remove(&owner.uid);
                }
            }
        }
        Some(old)
    }
}

enum Order {
    Same,
    Older,
    Newer,
}

/// How `new` stands to `there`. What cannot be compared counts as newer: better one pass too many.
fn order(there: &ObjectMeta, new: &ObjectMeta) -> Order {
    if there.resource_version == new.resource_version {
        return Order::Same;
    }
    let number = |meta: &ObjectMeta| meta.resource_version.as_deref().and_then(|text| text.parse::<u64>().ok());
    match (number(there), number(new)) {
        (Some(there), Some(new)) if new < there => Order::Older,
        (Some(_), Some(_)) | (None, _) | (_, None) => Order::Newer,
    }
}
