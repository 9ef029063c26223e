//! What wakes a pass over a DataPlane. One row per kind: what is watched, what is kept of it, whom it wakes.

use std::{sync::Arc, time::Duration};

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, ReplicaSet},
        autoscaling::v2::HorizontalPodAutoscaler,
        coordination::v1::Lease,
        core::v1::{Namespace, Secret, Service},
        policy::v1::PodDisruptionBudget,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api,
    core::{DeserializeGuard, DynamicObject, PartialObjectMeta},
};
use weir_api::{dataplane::DataPlane, keys};

use crate::{
    apply::certificate_resource,
    cache::{Cached, Change, Key},
    context::Context,
    kong, konnect_extension,
    metrics::ObjectKind,
    plugin_installation, reconcile_policy,
    watch::{Once, Optional, Selection, Sink, Watching, namespaced, one},
    world::{ForeignMeta, ReplicaSetMeta, labels_only, name_only, secret_meta, slim, slim_deployment, slim_served},
};

/// Runs all watches, until it is dropped.
pub async fn run(context: Arc<Context>, watching: Watching) {
    let (c, w) = (&*context, &watching);
    let world = &c.world;
    // Pull Secrets and keys of policies for all namespaces, and the operator's own keys.
    let with_own = watching.and(&c.settings.namespace);
    let ours = || Selection::labels(format!("{}={}", keys::MANAGED_BY, keys::MANAGED_BY_DATAPLANE));
    let others = Selection::labels(format!("{}!={}", keys::MANAGED_BY, keys::MANAGED_BY_DATAPLANE));
    let rolled = Selection::labels(keys::SELECTOR);
    futures::join!(
        namespaced::<DeserializeGuard<DataPlane>, _>(
            w,
            ObjectKind::DataPlane,
            Selection::default(),
            &world.data_planes,
            |o| Some(slim_served(o)),
            |change| itself(c, change)
        ),
        namespaced::<DeserializeGuard<Deployment>, _>(
            w,
            ObjectKind::Deployment,
            ours(),
            &world.deployments,
            |o| Some(slim_deployment(o)),
            |change| child(c, &change)
        ),
        namespaced::<DeserializeGuard<ReplicaSet>, _>(
            w,
            ObjectKind::ReplicaSet,
            rolled,
            &world.replica_sets,
            |o| Some(ReplicaSetMeta::of(o)),
            |change| grandchild(c, &change)
        ),
        namespaced::<DeserializeGuard<Service>, _>(
            w,
            ObjectKind::Service,
            ours(),
            &world.services,
            |o| Some(slim(o)),
            |change| child(c, &change)
        ),
        namespaced::<PartialObjectMeta<Service>, _>(
            w,
            ObjectKind::Service,
            others,
            &world.other_services,
            |o| Some(name_only(o)),
            |change| stranger(c, &change)
        ),
        namespaced::<DeserializeGuard<HorizontalPodAutoscaler>, _>(
            w,
            ObjectKind::HorizontalPodAutoscaler,
            ours(),
            &world.autoscalers,
            |o| Some(slim(o)),
            |change| child(c, &change)
        ),
        namespaced::<DeserializeGuard<PodDisruptionBudget>, _>(
            w,
            ObjectKind::PodDisruptionBudget,
            ours(),
            &world.disruption_budgets,
            |o| Some(slim(o)),
            |change| child(c, &change)
        ),
        namespaced::<PartialObjectMeta<Secret>, _>(
            &with_own,
            ObjectKind::Secret,
            Selection::default(),
            &world.secrets,
            |o| Some(secret_meta(o.metadata)),
            |change| secret(c, &change)
        ),
        namespaces(c, w),
        certificates(c, w),
        kong_leases(c, w),
        authority(c, w),
        // Polled last: all of the above wait for their lists by now.
        async { w.pending.done() },
    );
}

/// The DataPlane itself. Only what a person may change hurries a pass; its own status is an echo.
fn itself(context: &Context, change: Change<DataPlane>) {
    context.users.changed(&change, &context.extensions.queue);
    plugin_installation::watches::data_plane(context, &change);
    reconcile_policy::watches::object(context, &change);
    let same = |old: &DataPlane, new: &DataPlane| {
        let (a, b) = (&old.metadata, &new.metadata);
        a.uid == b.uid
            && a.generation == b.generation
            && a.annotations == b.annotations
            && a.labels == b.labels
            && a.deletion_timestamp == b.deletion_timestamp
    };
    match (&change.old, &change.new) {
        (Some(old), Some(new)) if same(old, new) => context.data_planes.queue.soon(change.key),
        (_, _) => context.data_planes.queue.now(change.key),
    }
}

/// DataPlanes among the owners of an object, before and after.
fn owners<'a, T: Cached>(change: &'a Change<T>) -> impl Iterator<Item = Key> + 'a {
    let metas = [&change.old, &change.new].into_iter().flatten().map(|object| object.meta());
    metas.flat_map(|meta| owner(meta, "DataPlane").map(|name| Key::new(meta.namespace.clone().unwrap_or_default(), name)))
}

fn owner(meta: &ObjectMeta, kind: &'static str) -> impl Iterator<Item = String> {
    meta.owner_references.iter().flatten().filter(move |o| o.kind == kind).map(|o| o.name.clone())
}

fn child<T: Cached>(context: &Context, change: &Change<T>) {
    owners(change).for_each(|key| context.data_planes.queue.soon(key));
}

/// A ReplicaSet that goes may free a certificate, or the content of a plugin.
fn grandchild(context: &Context, change: &Change<ReplicaSetMeta>) {
    let metas = [&change.old, &change.new].into_iter().flatten().map(|object| object.meta());
    for meta in metas {
        let namespace = meta.namespace.clone().unwrap_or_default();
        let deployments = owner(meta, "Deployment").filter_map(|name| context.world.deployments.get(&Key::new(&namespace, name)));
        let data_planes = deployments.flat_map(|d| owner(&d.metadata, "DataPlane").collect::<Vec<_>>());
        data_planes.for_each(|name| context.data_planes.queue.soon(Key::new(&namespace, name)));
    }
}

/// A Service that is not ours frees or takes a name: those that wait for it are in its namespace.
fn stranger(context: &Context, change: &Change<PartialObjectMeta<Service>>) {
    let (old, new) = (change.old.is_some(), change.new.as_ref().is_some_and(|s| s.metadata.deletion_timestamp.is_none()));
    if old == new {
        return;
    }
    for data_plane in context.world.data_planes.beginning(&change.key.namespace, "") {
        let options = data_plane.spec.network.as_ref().and_then(|n| n.services.as_ref()).and_then(|s| s.ingress.as_ref());
        let given = options.and_then(|o| o.name.as_deref()) == Some(change.key.name.as_str());
        if given || change.key.name.starts_with("dataplane-") {
            context.data_planes.queue.changed(Key::of(&data_plane.metadata));
        }
    }
}

/// A child's Secret wakes its DataPlane; any other the extensions and installations that name it.
fn secret(context: &Context, change: &Change<PartialObjectMeta<Secret>>) {
    if change.key == context.authority.sealing_name() {
        context.authority_changed.notify_one();
    }
    child(context, change);
    konnect_extension::watches::secret(context, &change.key);
    plugin_installation::watches::secret(context, &change.key);
    reconcile_policy::watches::secret(context, &change.key);
}

async fn namespaces(context: &Context, watching: &Watching) {
    let kind = ObjectKind::Namespace;
    watching.expect(kind);
    let once = Once::new(|| watching.synced(kind));
    let changed = |change: Change<PartialObjectMeta<Namespace>>| {
        let labels = |n: &Option<Arc<PartialObjectMeta<Namespace>>>| n.as_ref().and_then(|n| n.metadata.labels.clone());
        if labels(&change.old) != labels(&change.new) {
            let inside = context.world.data_planes.beginning(&change.key.name, "");
            inside.iter().for_each(|d| context.data_planes.queue.changed(Key::of(&d.metadata)));
            let inside = context.world.installations.beginning(&change.key.name, "");
            inside.iter().for_each(|i| context.installations.queue.changed(Key::of(&i.metadata)));
            reconcile_policy::watches::objects(context);
        }
    };
    let sink = Sink {
        metrics: &watching.metrics,
        kind,
        optional: None,
        place: "",
        cache: &context.world.namespaces,
        keep: &|o| Some(labels_only(o)),
        changed: &changed,
        synced: || once.call(),
    };
    one(Api::<PartialObjectMeta<Namespace>>::all(watching.client_of(kind, "")), &Selection::default(), sink).await;
}

/// For a kind that may be missing for ever.
const CERT_MANAGER_NOTICED: Duration = Duration::from_secs(60);

/// cert-manager is optional: nothing waits for its kind, and it is noticed when it comes.
async fn certificates(context: &Context, watching: &Watching) {
    let resource = certificate_resource();
    let selection = Selection::labels(format!("{}={}", keys::CERT_PURPOSE, keys::CERT_PURPOSE_KONNECT));
    let sink = Sink {
        metrics: &watching.metrics,
        kind: ObjectKind::Certificate,
        optional: Some(Optional { wait: CERT_MANAGER_NOTICED, served: &|_| {} }),
        place: "",
        cache: &context.world.certificates,
        keep: &|o: DynamicObject| Some(ForeignMeta(slim_dynamic(o))),
        changed: &|change| child(context, &change),
        synced: || {},
    };
    one(Api::<DeserializeGuard<DynamicObject>>::all_with(watching.client.clone(), &resource), &selection, sink).await;
}

fn slim_dynamic(mut object: DynamicObject) -> DynamicObject {
    object.metadata.managed_fields = None;
    object
}

async fn kong_leases(context: &Context, watching: &Watching) {
    let selection = Selection { labels: None, fields: Some(format!("metadata.name={}", kong::LEASE)) };
    let kind = ObjectKind::Lease;
    watching.expect(kind);
    let once = Once::new(|| watching.synced(kind));
    let sink = Sink {
        metrics: &watching.metrics,
        kind,
        optional: None,
        place: "",
        cache: &context.world.kong_leases,
        keep: &Some,
        changed: &|_| {},
        synced: || once.call(),
    };
    one(Api::<DeserializeGuard<Lease>>::all(watching.client_of(kind, "")), &selection, sink).await;
}

/// The CA's Secret. A watch of its own: the operator's namespace need not be among those that are watched.
async fn authority(context: &Context, watching: &Watching) {
    let Key { namespace, name } = &context.authority.name;
    let selection = Selection { labels: None, fields: Some(format!("metadata.name={name}")) };
    let sink = Sink {
        metrics: &watching.metrics,
        kind: ObjectKind::Secret,
        optional: None,
        place: namespace,
        cache: &context.world.authority,
        keep: &|o| Some(name_only(o)),
        changed: &|_| context.authority_changed.notify_one(),
        synced: || {},
    };
    let client = watching.client_of(ObjectKind::Secret, namespace);
    one(Api::<PartialObjectMeta<Secret>>::namespaced(client, namespace), &selection, sink).await;
}
