//! What wakes a pass over a ReconcilePolicy, and what such a policy wakes.

use std::{sync::Arc, time::Duration};

use kube::core::DeserializeGuard;
use weir_api::{keys, reconcile_policy::ReconcilePolicy};

use crate::{
    cache::{Cached, Change, Key},
    context::Context,
    metrics::ObjectKind,
    watch::{Optional, Selection, Watching, optional},
    world::slim_served,
};

/// The CRD may come after an upgrade of the operator: it is noticed within ten seconds.
const NOTICED: Duration = Duration::from_secs(6);

/// Runs all watches, until it is dropped.
pub async fn run(context: Arc<Context>, watching: Watching) {
    let c = &context;
    // Policies of the operator's namespace are for the others.
    let watching = watching.and(&context.settings.namespace);
    let served = |_: bool| {};
    let policies = optional::<DeserializeGuard<ReconcilePolicy>, _>(
        &watching,
        ObjectKind::ReconcilePolicy,
        (Optional { wait: NOTICED, served: &served }, Selection::default()),
        &c.world.policies,
        |o| Some(slim_served(o)),
        |change| itself(c, &change),
    );
    futures::join!(policies, async { watching.pending.done() });
}

/// Every replica runs what the status says; the leader looks at the object.
fn itself(context: &Arc<Context>, change: &Change<ReconcilePolicy>) {
    match &change.new {
        Some(policy) => context.policies.follower.follow(policy),
        None => context.policies.follower.forget(&change.key),
    }
    let queue = &context.policies.queue;
    match (&change.old, &change.new) {
        (Some(old), Some(new)) if is_echo(old, new) => queue.soon(change.key.clone()),
        (_, _) => queue.now(change.key.clone()),
    }
    // Who wins, and what the others are told about it, may be another one.
    if rank(change.old.as_deref()) != rank(change.new.as_deref()) {
        context.world.policies.keys().into_iter().filter(|key| *key != change.key).for_each(|key| queue.changed(key));
    }
}

fn is_echo(old: &ReconcilePolicy, new: &ReconcilePolicy) -> bool {
    let theirs = |object: &ReconcilePolicy| {
        let mut annotations = object.metadata.annotations.clone().unwrap_or_default();
        annotations.remove(keys::CHECKED_AT);
        annotations
    };
    let (a, b) = (&old.metadata, &new.metadata);
    a.uid == b.uid && a.generation == b.generation && a.deletion_timestamp == b.deletion_timestamp && theirs(old) == theirs(new)
}

/// What other policies care about.
fn rank(policy: Option<&ReconcilePolicy>) -> Option<impl PartialEq + use<>> {
    let policy = policy?;
    let active = policy.status.as_ref().is_some_and(|status| status.active.is_some());
    let spec = &policy.spec;
    Some((policy.metadata.uid.clone(), active, spec.priority, spec.targets.clone(), spec.mode, spec.allow_override))
}

/// A Secret changed: the policies that name it are looked at, whatever failed before.
pub fn secret(context: &Context, key: &Key) {
    for policy in context.world.policies.beginning(&key.namespace, "") {
        let Some(oci) = &policy.spec.source.oci else { continue };
        let pull = oci.pull_secret_ref.iter().map(|named| &named.name);
        let verify = oci.verify.iter().flat_map(|verify| verify.any_of.iter().chain(&verify.all_of).flatten());
        let keys = verify.filter_map(|verifier| Some(&verifier.public_key.as_ref()?.secret_ref.name));
        if pull.chain(keys).any(|name| *name == key.name) {
            let policy = Key::of(&policy.metadata);
            context.policies.works.retry(&policy);
            context.policies.queue.now(policy);
        }
    }
}

/// An object came, went or has other labels.
pub fn object<T: Cached>(context: &Context, change: &Change<T>) {
    let labels = |object: &Option<Arc<T>>| object.as_ref().map(|object| object.meta().labels.clone());
    if labels(&change.old) != labels(&change.new) {
        objects(context);
    }
}

/// Objects came, went or have other labels: what policies answer for is counted again, soon and together.
pub fn objects(context: &Context) {
    context.world.policies.keys().into_iter().for_each(|key| context.policies.queue.soon(key));
}
