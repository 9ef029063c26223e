//! What one pass sees. Reads caches, and one Secret at most; writes nothing.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use weir_api::{dataplane::DataPlane, keys};
use weir_core::{
    dataplane::snapshot::{Child, Children, ForeignName, Lookup, Operator, SecretFacts, Snapshot},
    konnect::Extension,
    names,
    plan::ChildKind,
};

use super::plugins;
use crate::{
    cache::{Cache, Cached, Key},
    context::Context,
    konnect_extension,
    memory::Remembered,
    world::World,
};

/// Makes the snapshot.
///
/// # Errors
/// What is not known yet, for a log line.
pub(super) async fn snapshot(context: &Context, data_plane: &DataPlane, remembered: &Remembered) -> Result<Snapshot, String> {
    let key = Key::of(Cached::meta(data_plane));
    let (extension, namesake) = extension(context, data_plane);
    let secrets = secrets(context, &key.namespace, &extension).await?;
    let namespace = context.world.namespaces.get(&Key::new("", key.namespace.clone()));
    let plugins = plugins::uses(context, data_plane);
    let mut children = children(context, &key, data_plane, remembered);
    children.contents = plugins::contents(context, &key.namespace, data_plane.metadata.uid.as_deref().unwrap_or_default(), &plugins);
    Ok(Snapshot {
        now: context.clock.now(),
        operator: operator(context),
        namespace_labels: namespace.and_then(|n| n.metadata.labels.clone()).unwrap_or_default(),
        children,
        plugins,
        data_plane: data_plane.clone(),
        extension,
        namesake,
        secrets,
    })
}

/// What the operator knows about itself and its cluster.
pub(crate) fn operator(context: &Context) -> Operator {
    let settings = &context.settings;
    let facts = context.authority.facts();
    let certificate_problem = facts.is_none().then(|| context.authority.problem());
    let none = Operator::with_ca(String::new());
    Operator {
        ca: facts.unwrap_or_else(|| none.ca.clone()),
        certificate_problem,
        cluster_name: settings.cluster_name.clone(),
        cluster_labels: settings.cluster_labels.clone(),
        validate_images: settings.validate_images,
        secret_label: settings.secret_label.clone(),
        certificate_ttl_seconds: settings.certificate_ttl_seconds,
        certificate_margin_seconds: settings.certificate_margin_seconds,
        kong_operator: crate::kong::live(&context.world.kong_leases, context.clock.now()),
        ..none
    }
}

/// The extension that a DataPlane names, and whether the other group has one of that name.
fn extension(context: &Context, data_plane: &DataPlane) -> (Lookup<Extension>, bool) {
    let Some(named) = konnect_extension::Named::by(data_plane) else { return (Lookup::Missing, false) };
    let namesake = konnect_extension::Named { sort: named.sort.other(), ..named.clone() };
    let namesake = matches!(konnect_extension::find(&context.world, &namesake), Lookup::Found(_));
    (konnect_extension::find(&context.world, &named), namesake)
}

async fn secrets(
    context: &Context,
    namespace: &str,
    extension: &Lookup<Extension>,
) -> Result<BTreeMap<String, Lookup<SecretFacts>>, String> {
    let Lookup::Found(extension) = extension else { return Ok(BTreeMap::new()) };
    let Some(name) = extension.secret_name() else { return Ok(BTreeMap::new()) };
    let facts = context.secrets.facts(&Key::new(namespace, name)).await?;
    Ok(BTreeMap::from([(name.to_owned(), facts)]))
}

/// Live children: those of this UID, and the names that others hold among those a pass may want.
fn children(context: &Context, key: &Key, data_plane: &DataPlane, remembered: &Remembered) -> Children {
    let world = &context.world;
    let uid = data_plane.metadata.uid.as_deref().unwrap_or_default();
    let deployments = world.deployments.owned_by(uid);
    let replica_sets = deployments.iter().filter_map(|d| d.metadata.uid.as_deref()).flat_map(|uid| world.replica_sets.owned_by(uid));
    let replica_sets = replica_sets.map(|r| r.facts.clone()).collect();
    let mut children = Children {
        replica_sets,
        services: owned(&world.services, uid, ChildKind::Service, remembered),
        autoscalers: owned(&world.autoscalers, uid, ChildKind::HorizontalPodAutoscaler, remembered),
        disruption_budgets: owned(&world.disruption_budgets, uid, ChildKind::PodDisruptionBudget, remembered),
        certificates: world.certificates.owned_by(uid).iter().map(|c| foreign_child(c, remembered)).collect(),
        secrets: world
            .secrets
            .owned_by(uid)
            .iter()
            .map(|s| SecretFacts { metadata: s.metadata.clone(), ..SecretFacts::default() })
            .collect(),
        deployments: deployments.iter().map(|d| child(d, ChildKind::Deployment, &d.metadata, remembered)).collect(),
        ..Children::default()
    };
    let owner = Owner { context, key, uid, children: &mut children };
    owner.names(data_plane);
    strayed(world, key, data_plane, remembered, &mut children);
    children
}

/// Children of ours whose owner reference somebody removed: they stand on the planned name, and select by the id of this very DataPlane.
/// Without this a second set would be made beside them; the next apply makes them ours again.
fn strayed(world: &World, key: &Key, data_plane: &DataPlane, remembered: &Remembered, children: &mut Children) {
    let selector = data_plane.status.as_ref().and_then(|s| s.selector.clone()).or_else(|| data_plane.metadata.uid.clone());
    let ours = |meta: &ObjectMeta, selects: Option<&String>| {
        let applied = meta.annotations.as_ref().is_some_and(|a| a.contains_key(keys::APPLIED));
        let orphan = meta.owner_references.as_ref().is_none_or(Vec::is_empty) && meta.deletion_timestamp.is_none();
        applied && orphan && selects.is_some() && selects == selector.as_ref()
    };
    let planned = |prefix: &str| Key::new(&key.namespace, names::child(prefix, &key.name));
    if let Some(found) = world.deployments.get(&planned("dataplane-")) {
        let selects = found.spec.as_ref().and_then(|s| s.selector.match_labels.as_ref()?.get(keys::SELECTOR));
        if ours(&found.metadata, selects) {
            children.foreign.retain(|f| f.kind != ChildKind::Deployment || Some(&f.name) != found.metadata.name.as_ref());
            children.deployments.push(child(&found, ChildKind::Deployment, &found.metadata, remembered));
        }
    }
    for prefix in ["dataplane-admin-", "dataplane-ingress-"] {
        let Some(found) = world.services.get(&planned(prefix)) else { continue };
        let selects = found.spec.as_ref().and_then(|s| s.selector.as_ref()?.get(keys::SELECTOR));
        if ours(&found.metadata, selects) {
            children.foreign.retain(|f| f.kind != ChildKind::Service || Some(&f.name) != found.metadata.name.as_ref());
            children.services.push(child(&found, ChildKind::Service, &found.metadata, remembered));
        }
    }
}

fn name(meta: &ObjectMeta) -> String {
    meta.name.clone().unwrap_or_default()
}

fn child<T: Clone>(object: &Arc<T>, kind: ChildKind, meta: &ObjectMeta, remembered: &Remembered) -> Child<T> {
    Child { object: T::clone(object), answered: remembered.answer(kind, meta.name.as_deref().unwrap_or_default()) }
}

fn owned<T: Cached + Clone>(cache: &Cache<T>, uid: &str, kind: ChildKind, remembered: &Remembered) -> Vec<Child<T>> {
    cache.owned_by(uid).iter().map(|object| child(object, kind, object.meta(), remembered)).collect()
}

fn foreign_child(object: &Arc<crate::world::ForeignMeta>, remembered: &Remembered) -> Child<Value> {
    let name = object.0.metadata.name.as_deref().unwrap_or_default();
    Child { object: serde_json::to_value(&object.0).unwrap_or_default(), answered: remembered.answer(ChildKind::Certificate, name) }
}

/// Collects names that others hold.
struct Owner<'a> {
    context: &'a Context,
    key: &'a Key,
    uid: &'a str,
    children: &'a mut Children,
}

impl Owner<'_> {
    fn names(mut self, data_plane: &DataPlane) {
        let world = Arc::clone(&self.context.world);
        let dp = &self.key.name;
        let options = data_plane.spec.network.as_ref().and_then(|n| n.services.as_ref()).and_then(|s| s.ingress.as_ref());
        let given = options.and_then(|o| o.name.clone());
        for name in [Some(names::child("dataplane-admin-", dp)), Some(names::child("dataplane-ingress-", dp)), given].into_iter().flatten()
        {
            let key = Key::new(&self.key.namespace, &name);
            self.hold(ChildKind::Service, world.services.get(&key).as_deref());
            self.hold(ChildKind::Service, world.other_services.get(&key).as_deref());
        }
        let deployment = Key::new(&self.key.namespace, names::child("dataplane-", dp));
        self.hold(ChildKind::Deployment, world.deployments.get(&deployment).as_deref());
        self.learned(ChildKind::Deployment, &deployment);
        self.hold(ChildKind::HorizontalPodAutoscaler, world.autoscalers.get(self.key).as_deref());
        self.learned(ChildKind::HorizontalPodAutoscaler, self.key);
        self.hold(ChildKind::PodDisruptionBudget, world.disruption_budgets.get(self.key).as_deref());
        self.learned(ChildKind::PodDisruptionBudget, self.key);
        // The rest of a certificate's name is a hash, which is cut to fit.
        let prefix: String = names::child("dataplane-", dp).chars().take(52).collect();
        for secret in world.secrets.beginning(&self.key.namespace, prefix.trim_end_matches('-')) {
            self.hold(ChildKind::Secret, Some(&*secret));
        }
    }

    fn hold<T: Cached>(&mut self, kind: ChildKind, holder: Option<&T>) {
        let Some(meta) = holder.map(Cached::meta) else { return };
        let owners = || meta.owner_references.iter().flatten();
        if owners().any(|o| o.uid == self.uid) {
            return;
        }
        let leaving = meta.deletion_timestamp.is_some() || owners().any(|o| o.kind == "DataPlane" && o.name == self.key.name);
        self.children.foreign.insert(ForeignName { kind, name: name(meta), leaving });
    }

    fn learned(&mut self, kind: ChildKind, key: &Key) {
        if let Some(leaving) = self.context.writer.foreign().holds(kind, key) {
            self.children.foreign.insert(ForeignName { kind, name: key.name.clone(), leaving });
        }
    }
}
