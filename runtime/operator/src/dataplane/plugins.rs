//! What a pass sees of plugins: the installations that the DataPlane names, and the content that stands in its namespace.

use std::{collections::BTreeSet, sync::Arc};

use weir_api::{
    dataplane::{DataPlane, PluginRef},
    keys,
};
use weir_core::{
    dataplane::{
        plugins::{Contents, map_names},
        snapshot::{ContentMap, Installation, Lookup, PluginUse, Snapshot},
    },
    decisions::{Found, Stored},
    plugin_installation::content::Content,
    policy::SlotName,
};

use crate::{
    apply::stands,
    cache::{Cached, Key},
    context::Context,
    plugin_installation::permitted,
};

/// The installations, in the order of the spec.
pub(super) fn uses(context: &Context, data_plane: &DataPlane) -> Vec<PluginUse> {
    let named = data_plane.spec.plugins_to_install.iter().flatten();
    named.map(|reference| follow(context, data_plane, reference)).collect()
}

fn follow(context: &Context, data_plane: &DataPlane, reference: &PluginRef) -> PluginUse {
    let meta = Cached::meta(data_plane);
    let own = meta.namespace.as_deref().unwrap_or_default();
    let key = Key::new(reference.namespace.as_deref().filter(|n| !n.is_empty()).unwrap_or(own), &reference.name);
    PluginUse {
        permitted: permitted(context, own, &key),
        installation: look(context, &key, meta.uid.as_deref().unwrap_or_default()),
        namespace: key.namespace,
        name: key.name,
    }
}

fn look(context: &Context, key: &Key, uid: &str) -> Lookup<Installation> {
    // Without the controller nobody watches the kind, and without the key nothing could be believed.
    let Some(sealing) = context.sealing.get().filter(|_| context.settings.plugin_installations) else { return Lookup::Unknown };
    let Some(installation) = context.world.installations.get(key) else { return Lookup::Missing };
    let (content, standing) = context.plugins.known.for_user(&installation, sealing, uid);
    let stored = content.as_ref().is_some_and(|content| stands(&context.world, key, content));
    Lookup::Found(Installation { stored, content, standing, problem: weir_core::plugin_installation::problem(&installation) })
}

/// ConfigMaps with content that the DataPlane owns, or may want.
pub(super) fn contents(context: &Context, namespace: &str, uid: &str, uses: &[PluginUse]) -> Vec<ContentMap> {
    let world = &context.world;
    let given = uses.iter().filter_map(|used| match &used.installation {
        Lookup::Found(installation) => installation.content.as_deref(),
        Lookup::Missing | Lookup::Unknown => None,
    });
    let owned = world.contents.owned_by(uid).into_iter().filter_map(|map| map.metadata.name.clone());
    let names: BTreeSet<String> = map_names(given).chain(owned).collect();
    let maps = names.into_iter().filter_map(|name| world.contents.get(&Key::new(namespace, name)));
    maps.map(|map| {
        let meta = &map.metadata;
        ContentMap {
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
            owners: meta.owner_references.iter().flatten().map(|owner| owner.uid.clone()).collect(),
            leaving: meta.deletion_timestamp.is_some(),
        }
    })
    .collect()
}

/// Every content that this pass may ask for: what installations give, and what the pods had before.
pub(super) fn known(context: &Context, snapshot: &Snapshot) -> Vec<Arc<Content>> {
    let mut known: Vec<Arc<Content>> = Vec::new();
    for used in &snapshot.plugins {
        match &used.installation {
            Lookup::Found(installation) => known.extend(installation.content.clone()),
            Lookup::Missing | Lookup::Unknown => {}
        }
    }
    let Some(sealing) = context.sealing.get() else { return known };
    let uid = snapshot.data_plane.metadata.uid.as_deref().unwrap_or_default();
    for deployment in &snapshot.children.deployments {
        let record = deployment.object.metadata.annotations.as_ref().and_then(|all| all.get(keys::DECISIONS));
        match Stored::parse(record.map(String::as_str)).get::<Contents>(SlotName::PluginPackaging, uid, sealing) {
            Found::Record(record) => known.extend(record.answer.into_values().map(Arc::new)),
            Found::None | Found::Unverified => {}
        }
    }
    known
}
