//! What wakes a pass over a KonnectExtension. Its Secret and its users are watched by the DataPlane's watches.

use std::sync::Arc;

use kube::core::DeserializeGuard;
use weir_api::konnect_extension::KonnectExtension;

use crate::{
    cache::Key,
    context::Context,
    metrics::ObjectKind,
    watch::{Selection, Watching, namespaced},
    world::slim_served,
};

/// Runs all watches, until it is dropped.
pub async fn run(context: Arc<Context>, watching: Watching) {
    let c = &*context;
    let extensions = namespaced::<DeserializeGuard<KonnectExtension>, _>(
        &watching,
        ObjectKind::KonnectExtension,
        Selection::default(),
        &c.world.extensions,
        |o| Some(slim_served(o)),
        |change| changed(c, &change.key),
    );
    futures::join!(extensions, async { watching.pending.done() });
}

/// The extension or its Secret changed: it is looked at, and so are the DataPlanes it shapes.
pub fn changed(context: &Context, key: &Key) {
    context.extensions.queue.changed(key.clone());
    for user in context.users.of(key) {
        context.data_planes.queue.changed(Key::new(user.namespace, user.name));
    }
}
