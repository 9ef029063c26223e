//! Where content stands, by name and label. What is in it is looked at when it is copied.

use std::collections::BTreeSet;

use weir_api::keys;
use weir_core::plugin_installation::content::{Content, MAX_FILES, mounted_name, own_names};

use crate::{cache::Key, world::World};

/// A complete set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// Its namespace.
    pub(super) namespace: String,
    /// Its ConfigMaps, in order.
    pub(super) names: Vec<String>,
    /// It is the installation's own, which nobody mounts.
    pub(super) is_own: bool,
}

/// Names of a set that pods mount, in order.
pub(super) fn mounted(hash: &str, maps: usize) -> Vec<String> {
    (0..maps.min(MAX_FILES)).map(|index| mounted_name(hash, index)).collect()
}

/// Complete sets of a content: the installation's own first, then those that pods of any namespace mount.
pub(super) fn places(world: &World, installation: &Key, content: &Content) -> Vec<Place> {
    let others = namespaces(world, content).into_iter().map(|namespace| Place {
        namespace,
        names: mounted(&content.hash, content.maps),
        is_own: false,
    });
    std::iter::once(own(installation, content)).chain(others).filter(|place| is_complete(world, place, content)).collect()
}

/// Whether a content stands anywhere.
pub(crate) fn stands(world: &World, installation: &Key, content: &Content) -> bool {
    // Nearly always this one; the others cost a look at every name.
    is_complete(world, &own(installation, content), content) || !places(world, installation, content).is_empty()
}

fn own(installation: &Key, content: &Content) -> Place {
    Place { namespace: installation.namespace.clone(), names: own_names(&installation.name, content), is_own: true }
}

fn is_complete(world: &World, place: &Place, content: &Content) -> bool {
    let label = content.label();
    place.names.iter().all(|name| {
        world.contents.get(&Key::new(&place.namespace, name)).is_some_and(|map| {
            let labels = map.metadata.labels.as_ref();
            map.metadata.deletion_timestamp.is_none() && labels.and_then(|labels| labels.get(keys::PLUGIN_CONTENT)) == Some(&label)
        })
    })
}

/// Those with the first ConfigMap of a mounted set.
fn namespaces(world: &World, content: &Content) -> BTreeSet<String> {
    let first = mounted_name(&content.hash, 0);
    world.contents.keys().into_iter().filter(|key| key.name == first).map(|key| key.namespace).collect()
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeMap,
        sync::atomic::{AtomicU32, Ordering},
    };

    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

    use super::*;
    use crate::world::content_meta;

    fn content() -> Content {
        let json = serde_json::json!({"image": "i", "digest": "sha256:d", "hash": "ab".repeat(32), "maps": 2, "plugins": []});
        serde_json::from_value(json).unwrap()
    }

    static VERSION: AtomicU32 = AtomicU32::new(1);

    fn put(world: &World, namespace: &str, name: &str, label: &str, leaving: bool) {
        let meta = ObjectMeta {
            namespace: Some(namespace.into()),
            name: Some(name.into()),
            labels: Some(BTreeMap::from([(keys::PLUGIN_CONTENT.to_owned(), label.to_owned())])),
            // Each is newer than the one before: a cache keeps the newest.
            resource_version: Some(VERSION.fetch_add(1, Ordering::Relaxed).to_string()),
            deletion_timestamp: leaving.then(|| Time("2026-01-01T00:00:00Z".parse().unwrap())),
            ..ObjectMeta::default()
        };
        world.contents.apply(content_meta(meta));
    }

    #[test]
    fn only_whole_sets_of_this_content_count_and_the_installations_own_comes_first() {
        let (world, content, installation) = (World::default(), content(), Key::new("lib", "a.b"));
        let label = content.label();
        let names = mounted(&content.hash, content.maps);
        put(&world, "one", &names[0], &label, false);
        assert!(!stands(&world, &installation, &content));
        put(&world, "one", &names[1], &label, true);
        assert!(!stands(&world, &installation, &content));
        put(&world, "one", &names[1], "other", false);
        assert!(!stands(&world, &installation, &content));
        put(&world, "one", &names[1], &label, false);
        assert!(stands(&world, &installation, &content));
        own_names("a.b", &content).iter().for_each(|name| put(&world, "lib", name, &label, false));
        let found: Vec<String> = places(&world, &installation, &content).into_iter().map(|place| place.namespace).collect();
        assert_eq!(found, ["lib", "one"]);
    }
}
