//! KonnectExtensions. The token-free one is served here: who uses it, can it be used, may it go? The API-driven one is only read.

mod users;
pub mod watches;

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use kube::Resource;
use tracing::Instrument;
use weir_api::konnect_extension::KonnectExtension;
use weir_core::{
    dataplane::snapshot::Lookup,
    konnect::{Extension, Sort, token_free_secret},
    konnect_extension::{Snapshot, reconcile},
};

pub use self::users::{Named, Users};
use crate::{
    apply::Patched,
    cache::Key,
    context::Context,
    metrics::{ErrorReason, Kind, ObjectKind, Outcome},
    queue::Next,
    world::World,
};

/// The extension of either sort; unknown where its kind is not served.
#[must_use]
pub fn find(world: &World, named: &Named) -> Lookup<Extension> {
    match named.sort {
        Sort::TokenFree => {
            let found = world.extensions.get(&named.key);
            found.map_or(Lookup::Missing, |extension| Lookup::Found(Extension::TokenFree(Box::new((*extension).clone()))))
        }
        Sort::ApiDriven => match world.api_extensions.get(&named.key) {
            Some(extension) => Lookup::Found(Extension::ApiDriven(Box::new((*extension).clone()))),
            None if world.api_extensions_served.load(Ordering::Relaxed) => Lookup::Missing,
            None => Lookup::Unknown,
        },
    }
}

/// One pass.
pub async fn pass(context: Arc<Context>, key: Key) -> Next {
    let begun = Instant::now();
    let Some(extension) = context.world.extensions.get(&key) else {
        context.extensions.memory.forget(&key);
        context.extensions.queue.forget(&key);
        return Next::Done;
    };
    let span = tracing::info_span!("reconcile", kind = "KonnectExtension", namespace = key.namespace, name = key.name);
    let (outcome, next) = look(&context, &key, &extension).instrument(span).await;
    context.metrics.reconciled(Kind::KonnectExtension, outcome, begun.elapsed());
    next
}

async fn look(context: &Context, key: &Key, extension: &KonnectExtension) -> (Outcome, Next) {
    let snapshot = match gather(context, key, extension).await {
        Ok(snapshot) => snapshot,
        Err(reason) => {
            tracing::warn!(object = %key, %reason, "a pass waits");
            return (Outcome::Failed, Next::BackOff);
        }
    };
    let plan = reconcile(&snapshot);
    let memory = context.extensions.memory.of(key);
    let news = {
        let mut remembered = memory.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        remembered.begin(extension.metadata.uid.as_deref().unwrap_or_default());
        remembered.news(plan.events)
    };
    context.events.publish(&extension.object_ref(&()), news);
    let cache = &context.world.extensions;
    // The status first: with the finalizer gone there may be no object left to report on.
    if let Some(status) = plan.status.filter(|_| plan.status_changed) {
        match context.writer.status(ObjectKind::KonnectExtension, cache, extension, extension.status.as_ref(), &status).await {
            Patched::Done => {}
            Patched::Gone => return (Outcome::Done, Next::Done),
            Patched::Stale => return (Outcome::Done, Next::BackOff),
            Patched::Failed(error) => return failed(context, &error),
        }
    }
    let current = cache.get(key).unwrap_or_else(|| Arc::new(extension.clone()));
    match context.writer.object(ObjectKind::KonnectExtension, cache, &current, &plan.changes).await {
        Patched::Done | Patched::Gone => (Outcome::Done, Next::Done),
        Patched::Stale => (Outcome::Done, Next::BackOff),
        Patched::Failed(error) => failed(context, &error),
    }
}

fn failed(context: &Context, error: &kube::Error) -> (Outcome, Next) {
    context.metrics.failed(Kind::KonnectExtension, ErrorReason::of(error));
    tracing::warn!(%error, "a write to a KonnectExtension failed");
    (Outcome::Failed, Next::BackOff)
}

/// What one pass sees.
async fn gather(context: &Context, key: &Key, extension: &KonnectExtension) -> Result<Snapshot, String> {
    let secret = match token_free_secret(extension) {
        Some(name) => context.secrets.facts(&Key::new(&key.namespace, name)).await?,
        None => Lookup::Unknown,
    };
    let users: BTreeSet<_> = context.users.of(&Named { sort: Sort::TokenFree, key: key.clone() });
    Ok(Snapshot { now: context.clock.now(), extension: extension.clone(), secret, users })
}
