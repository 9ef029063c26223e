//! What wakes a pass over an installation, or over the DataPlanes that name one. Its Secret and its users are watched by the DataPlane's
//! watches.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::{DeserializeGuard, PartialObjectMeta};
use weir_api::{condition::types, dataplane::DataPlane, keys, plugin_installation::KongPluginInstallation};

use weir_core::plugin_installation::{Claim, claims};

use super::users;
use crate::{
    cache::{Change, Key},
    context::Context,
    grants::{Grant, v1, v1beta1},
    metrics::ObjectKind,
    reconcile_policy,
    watch::{Optional, Selection, Watching, namespaced, optional},
    world::{content_meta, slim_served},
};

/// The Gateway API may come after us: it is noticed within twenty seconds, and a cluster without it is asked three times a minute.
const NOTICED: Duration = Duration::from_secs(20);
/// Annotations that a pass writes.
const OURS: [&str; 4] = [keys::DECISIONS, keys::CLAIMS, keys::ARTIFACT, keys::CHECKED_AT];

/// Runs all watches, until it is dropped.
pub async fn run(context: Arc<Context>, watching: Watching) {
    let (c, w) = (&*context, &watching);
    let installations = namespaced::<DeserializeGuard<KongPluginInstallation>, _>(
        w,
        ObjectKind::KongPluginInstallation,
        Selection::default(),
        &c.world.installations,
        |o| Some(slim_served(o)),
        |change| itself(c, &change),
    );
    let contents = namespaced::<PartialObjectMeta<ConfigMap>, _>(
        w,
        ObjectKind::ConfigMap,
        Selection::labels(keys::PLUGIN_CONTENT),
        &c.world.contents,
        |o| Some(content_meta(o.metadata)),
        |change| content(c, &change),
    );
    // Until an installation is taken over, and for those that are never looked at again.
    let kongs = namespaced::<PartialObjectMeta<ConfigMap>, _>(
        w,
        ObjectKind::ConfigMap,
        Selection::labels(format!("{}=kong-plugin-installation,!{}", keys::MANAGED_BY, keys::PLUGIN_CONTENT)),
        &c.world.kong_contents,
        |o| Some(content_meta(o.metadata)),
        |change| owners(c, &change),
    );
    futures::join!(installations, contents, kongs, grants(c, w), async { w.pending.done() });
}

/// Both versions: a cluster serves one of them, both or none.
async fn grants(context: &Context, watching: &Watching) {
    let served = |_: bool| {};
    let wait = Optional { wait: NOTICED, served: &served };
    let (kind, world) = (ObjectKind::ReferenceGrant, &context.world);
    let new = optional::<DeserializeGuard<v1::ReferenceGrant>, _>(
        watching,
        kind,
        (wait, Selection::default()),
        &world.grants,
        |o| Some(Grant::v1(o)),
        |change| grant(context, &change),
    );
    let old = optional::<DeserializeGuard<v1beta1::ReferenceGrant>, _>(
        watching,
        kind,
        (wait, Selection::default()),
        &world.beta_grants,
        |o| Some(Grant::v1beta1(o)),
        |change| grant(context, &change),
    );
    futures::join!(new, old);
}

/// The installation itself. Only what a person may change hurries its pass; our own records and its status are echoes.
fn itself(context: &Context, change: &Change<KongPluginInstallation>) {
    let named =
        |object: &Option<Arc<KongPluginInstallation>>| object.as_deref().and_then(users::secret).into_iter().collect::<BTreeSet<_>>();
    context.plugins.secrets.changed(&change.key, &named(&change.old), &named(&change.new));
    reconcile_policy::watches::object(context, change);
    let queue = &context.installations.queue;
    match (&change.old, &change.new) {
        (Some(old), Some(new)) if is_echo(old, new) => queue.soon(change.key.clone()),
        (_, _) => queue.now(change.key.clone()),
    }
    match (&change.old, &change.new) {
        (Some(old), Some(new)) => wake_concerned(context, &change.key, old, new),
        (_, _) => wake_users(context, &change.key),
    }
}

fn is_echo(old: &KongPluginInstallation, new: &KongPluginInstallation) -> bool {
    let theirs = |object: &KongPluginInstallation| {
        let mut annotations = object.metadata.annotations.clone().unwrap_or_default();
        annotations.retain(|key, _| !OURS.contains(&key.as_str()));
        annotations
    };
    let (a, b) = (&old.metadata, &new.metadata);
    a.uid == b.uid
        && a.generation == b.generation
        && a.labels == b.labels
        && a.deletion_timestamp == b.deletion_timestamp
        && theirs(old) == theirs(new)
}

/// The DataPlanes to which a change of the installation makes a difference: all that name it when it gives something else, or says something
/// else about why it does not; those whose claim changed when only the claims did. A library with hundreds of users gets each new claim.
pub(super) fn wake_concerned(context: &Context, key: &Key, old: &KongPluginInstallation, new: &KongPluginInstallation) {
    if !gives_the_same(old, new) {
        wake_users(context, key);
    } else if annotation(old, keys::CLAIMS) != annotation(new, keys::CLAIMS) {
        let (before, after) = (claims(old), claims(new));
        let differs = |claim: &&Claim, others: &[Claim]| {
            let same = |other: &&Claim| other.uid == claim.uid && other.granted == claim.granted && other.message == claim.message;
            !others.iter().any(|other| same(&other))
        };
        let concerned = after.iter().filter(|c| differs(c, &before)).chain(before.iter().filter(|c| differs(c, &after)));
        concerned.for_each(|claim| context.data_planes.queue.now(Key::new(&claim.namespace, &claim.name)));
    }
}

fn gives_the_same(old: &KongPluginInstallation, new: &KongPluginInstallation) -> bool {
    let accepted = |object: &KongPluginInstallation| {
        let conditions = object.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.into_iter().flatten().find(|c| c.type_ == types::ACCEPTED).map(|c| (c.status.clone(), c.message.clone()))
    };
    let (a, b) = (&old.metadata, &new.metadata);
    a.uid == b.uid
        && a.generation == b.generation
        && annotation(old, keys::DECISIONS) == annotation(new, keys::DECISIONS)
        && accepted(old) == accepted(new)
}

fn annotation<'a>(object: &'a KongPluginInstallation, key: &str) -> Option<&'a String> {
    object.metadata.annotations.as_ref().and_then(|all| all.get(key))
}

/// DataPlanes that name the installation are looked at: it is news to them and never an echo of theirs, so that no wait after a failure
/// holds it back.
pub(super) fn wake_users(context: &Context, installation: &Key) {
    context.plugins.users.of(installation).into_iter().for_each(|user| context.data_planes.queue.now(user));
}

/// A DataPlane changed: the installations that it named and names decide anew who may use them.
pub fn data_plane(context: &Context, change: &Change<DataPlane>) {
    let named = |object: &Option<Arc<DataPlane>>| object.as_deref().map(users::installations).unwrap_or_default();
    let (before, after) = (named(&change.old), named(&change.new));
    let mut touched = context.plugins.users.changed(&change.key, &before, &after);
    let uid = |object: &Option<Arc<DataPlane>>| object.as_ref().and_then(|d| d.metadata.uid.clone());
    // Another object of the name has no claims of the former one.
    if change.new.is_some() && change.old.is_some() && uid(&change.old) != uid(&change.new) {
        touched.extend(after);
    }
    touched.into_iter().for_each(|key| context.installations.queue.changed(key));
}

/// A Secret changed: the installations that name it are looked at, whatever failed before.
pub fn secret(context: &Context, key: &Key) {
    context.plugins.secrets.of(key).into_iter().for_each(|key| context.installations.queue.now(key));
}

/// A ConfigMap with plugin content wakes its owners; when it appears or goes, also those who could use it.
fn content(context: &Context, change: &Change<PartialObjectMeta<ConfigMap>>) {
    owners(context, change);
    let there =
        |object: &Option<Arc<PartialObjectMeta<ConfigMap>>>| object.as_ref().is_some_and(|o| o.metadata.deletion_timestamp.is_none());
    if there(&change.old) == there(&change.new) {
        return;
    }
    // A standby has no key yet, and no queue that is open.
    let Some(sealing) = context.sealing.get() else { return };
    let labels = [&change.old, &change.new].into_iter().flatten().filter_map(|o| o.metadata.labels.as_ref()?.get(keys::PLUGIN_CONTENT));
    let labels: BTreeSet<&String> = labels.collect();
    for installation in context.world.installations.all() {
        if context.plugins.known.content(&installation, sealing).is_some_and(|content| labels.contains(&content.label())) {
            let key = Key::of(&installation.metadata);
            // One without our owner reference wakes nobody by its owners.
            context.installations.queue.soon(key.clone());
            let users = context.plugins.users.of(&key);
            users.into_iter().for_each(|user| context.data_planes.queue.changed(user));
        }
    }
}

fn owners(context: &Context, change: &Change<PartialObjectMeta<ConfigMap>>) {
    let metas = [&change.old, &change.new].into_iter().flatten().map(|object| &object.metadata);
    for owner in metas.flat_map(|meta| meta.owner_references.iter().flatten()) {
        let key = Key::new(&change.key.namespace, &owner.name);
        match owner.kind.as_str() {
            "DataPlane" => context.data_planes.queue.soon(key),
            "KongPluginInstallation" => context.installations.queue.soon(key),
            _ => {}
        }
    }
}

/// A grant comes, changes or goes: those that reach into its namespace, and the installations there, are looked at.
fn grant(context: &Context, change: &Change<Grant>) {
    let namespace = &change.key.namespace;
    context.plugins.users.strangers(namespace).into_iter().for_each(|user| context.data_planes.queue.now(user));
    context.plugins.secrets.strangers(namespace).into_iter().for_each(|key| context.installations.queue.now(key));
    // Who may claim them has changed.
    let inside = context.world.installations.beginning(namespace, "");
    inside.iter().for_each(|installation| context.installations.queue.changed(Key::of(&installation.metadata)));
}
