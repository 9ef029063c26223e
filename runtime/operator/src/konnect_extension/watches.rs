//! What wakes a pass over a KonnectExtension, or over the DataPlanes that name one. Its Secret and its users are watched by the DataPlane's
//! watches.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use kube::core::DeserializeGuard;
use weir_api::{konnect_extension::KonnectExtension, konnect_v2};
use weir_core::{
    konnect::{Sort, api_driven_secret, token_free_secret},
    konnect_extension::UserRef,
};

use super::Named;
use crate::{
    cache::{Change, Key},
    context::Context,
    metrics::ObjectKind,
    watch::{Optional, Selection, Watching, namespaced, optional},
    world::{slim_api_extension, slim_served},
};

/// Kong's CRD may come after us: its extensions shape pods within ten seconds, and a cluster without it is asked ten times a minute.
const NOTICED: Duration = Duration::from_secs(6);

/// Runs all watches, until it is dropped.
pub async fn run(context: Arc<Context>, watching: Watching) {
    let c = &*context;
    let extensions = namespaced::<DeserializeGuard<KonnectExtension>, _>(
        &watching,
        ObjectKind::KonnectExtension,
        Selection::default(),
        &c.world.extensions,
        |o| Some(slim_served(o)),
        |change| token_free(c, &change),
    );
    futures::join!(extensions, api_driven(c, &watching), async { watching.pending.done() });
}

async fn api_driven(context: &Context, watching: &Watching) {
    let served = |served: bool| {
        if context.world.api_extensions_served.swap(served, Ordering::Relaxed) != served {
            wake(context, context.users.of_all(Sort::ApiDriven));
        }
    };
    optional::<DeserializeGuard<konnect_v2::KonnectExtension>, _>(
        watching,
        ObjectKind::KonnectApiExtension,
        (Optional { wait: NOTICED, served: &served }, Selection::default()),
        &context.world.api_extensions,
        |o| Some(slim_api_extension(o)),
        |change| api_driven_changed(context, &change),
    )
    .await;
}

fn token_free(context: &Context, change: &Change<KonnectExtension>) {
    changed(context, &change.key);
    namesakes(context, Sort::ApiDriven, change);
}

/// The extension or its Secret changed: it is looked at, and so are the DataPlanes it shapes.
fn changed(context: &Context, key: &Key) {
    context.extensions.queue.changed(key.clone());
    users(context, Sort::TokenFree, key);
}

/// Kong's operator reports more than a pass reads: only that makes a difference. It is news and never an echo of ours, so that no wait after
/// a failure holds it back.
fn api_driven_changed(context: &Context, change: &Change<konnect_v2::KonnectExtension>) {
    let same = |a: &konnect_v2::KonnectExtension, b: &konnect_v2::KonnectExtension| {
        let (x, y) = (&a.metadata, &b.metadata);
        a.spec == b.spec && a.status == b.status && x.generation == y.generation && x.deletion_timestamp == y.deletion_timestamp
    };
    match (&change.old, &change.new) {
        (Some(old), Some(new)) if same(old, new) => {}
        (_, _) => {
            let users = context.users.of(&Named { sort: Sort::ApiDriven, key: change.key.clone() });
            users.into_iter().for_each(|user| context.data_planes.queue.now(Key::new(user.namespace, user.name)));
        }
    }
    namesakes(context, Sort::TokenFree, change);
}

/// A Secret changed: the extensions that name it and the DataPlanes they shape are looked at.
pub fn secret(context: &Context, key: &Key) {
    for extension in context.world.extensions.beginning(&key.namespace, "") {
        if token_free_secret(&extension) == Some(key.name.as_str()) {
            changed(context, &Key::of(&extension.metadata));
        }
    }
    for extension in context.world.api_extensions.beginning(&key.namespace, "") {
        if api_driven_secret(&extension) == Some(key.name.as_str()) {
            users(context, Sort::ApiDriven, &Key::of(&extension.metadata));
        }
    }
}

/// DataPlanes that look for one of this name in the other group are told that it is there.
fn namesakes<T>(context: &Context, other: Sort, change: &Change<T>) {
    if change.old.is_some() != change.new.is_some() {
        users(context, other, &change.key);
    }
}

fn users(context: &Context, sort: Sort, key: &Key) {
    wake(context, context.users.of(&Named { sort, key: key.clone() }));
}

fn wake(context: &Context, users: impl IntoIterator<Item = UserRef>) {
    users.into_iter().for_each(|user| context.data_planes.queue.changed(Key::new(user.namespace, user.name)));
}
