//! Installations of a plan: their artifacts come from files or a registry, and what they give goes to the DataPlanes of the same plan.

use std::sync::Arc;

use futures::executor::block_on;
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use serde_json::Value;
use weir_api::{
    dataplane::DataPlane,
    keys,
    plugin_installation::{KongPluginInstallation, KongPluginInstallationStatus},
};
use weir_core::{
    dataplane::{
        plugins::mounted_maps,
        snapshot::{Installation, Lookup, PluginUse},
    },
    decisions::Sealing,
    names,
    plan::{Change, Object, Plan},
    plugin_installation::{
        self,
        content::MOUNTED_PREFIX,
        snapshot::{Claimant, PullSecret, Snapshot},
    },
    policy::Policies,
};

use super::{
    artifacts::Artifacts,
    gather::{World, find},
};
use crate::record::facts::Recorded;

/// Group of ReferenceGrants.
const GRANTS: &str = "gateway.networking.k8s.io/";

/// Installations as they are after their own pass.
#[derive(Debug, Default)]
pub(super) struct Planned {
    installations: Vec<KongPluginInstallation>,
    config_maps: Vec<ConfigMap>,
}

impl Planned {
    fn take(&mut self, mut installation: KongPluginInstallation, plan: &Plan<KongPluginInstallationStatus>) {
        for change in &plan.changes {
            match change {
                Change::SetAnnotation { key, value } => {
                    installation.metadata.annotations.get_or_insert_default().insert(key.clone(), value.clone());
                }
                Change::Apply { object: Object::ConfigMap(map), first: _ } => self.config_maps.push(ConfigMap::clone(map)),
                Change::Apply { .. }
                | Change::MintCertificate(_)
                | Change::ProvideContent(_)
                | Change::ReleaseContent { .. }
                | Change::Delete(_)
                | Change::TakeOver(_)
                | Change::Reclaim(_)
                | Change::SetFinalizer { .. }
                | Change::RemoveAnnotation { .. } => {}
            }
        }
        installation.status = plan.status.clone().or(installation.status);
        self.installations.push(installation);
    }

    /// Content of a planned ConfigMap, to be copied.
    #[must_use]
    pub(super) fn config_map(&self, namespace: &str, name: &str) -> Option<&ConfigMap> {
        let same = |map: &&ConfigMap| map.metadata.namespace.as_deref() == Some(namespace) && map.metadata.name.as_deref() == Some(name);
        self.config_maps.iter().find(same)
    }
}

impl World<'_> {
    /// Plans an installation, and remembers what it gives. With the metadata that the pass saw.
    pub(super) fn installation(
        &mut self,
        installation: &KongPluginInstallation,
        artifacts: &Artifacts,
        policies: &Policies,
    ) -> (ObjectMeta, Plan<KongPluginInstallationStatus>) {
        let snapshot = self.installation_snapshot(installation, artifacts);
        let plan = block_on(plugin_installation::reconcile(&snapshot, policies, &Sealing::Open));
        let meta = snapshot.installation.metadata.clone();
        self.installations.take(snapshot.installation, &plan);
        (meta, plan)
    }

    fn installation_snapshot(&self, installation: &KongPluginInstallation, artifacts: &Artifacts) -> Snapshot {
        let mut installation = installation.clone();
        let meta = &mut installation.metadata;
        let namespace = meta.namespace.clone().unwrap_or_default();
        if let Some(live) = find(&self.observed.plugin_installations, meta) {
            meta.uid.clone_from(&live.metadata.uid);
            meta.generation = live.metadata.generation;
            meta.deletion_timestamp.clone_from(&live.metadata.deletion_timestamp);
            let mut annotations = live.metadata.annotations.clone().unwrap_or_default();
            annotations.extend(meta.annotations.take().into_iter().flatten());
            meta.annotations = Some(annotations);
            installation.status.clone_from(&live.status);
        }
        let name = installation.metadata.name.clone().unwrap_or_default();
        let uid = installation.metadata.uid.get_or_insert_with(|| names::offline_uid("KongPluginInstallation", &namespace, &name)).clone();
        Snapshot {
            now: self.options.now,
            operator: self.operator(),
            namespace_labels: self.namespace_labels(&namespace),
            pull_secret: PullSecret::Usable,
            verification: artifacts.wanted(&installation.spec.image),
            fetch: artifacts.of(&installation.spec.image),
            claimants: self.claimants(&installation),
            config_maps: self.owned_maps(&namespace, &uid),
            foreign: Vec::new(),
            installation,
        }
    }

    /// DataPlanes of the manifests that name the installation.
    fn claimants(&self, installation: &KongPluginInstallation) -> Vec<Claimant> {
        let meta = &installation.metadata;
        let (here, name) = (meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default());
        let sets = self.sets(installation);
        let mut claimants: Vec<Claimant> = self
            .desired
            .data_planes
            .iter()
            .map(|sourced| &sourced.object)
            .filter(|data_plane| named(data_plane).any(|named| named == (here, name)))
            .map(|data_plane| {
                let meta = &data_plane.metadata;
                let live = find(&self.observed.data_planes, meta);
                let (namespace, of) = (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default());
                let uid = live.and_then(|live| live.metadata.uid.clone());
                let uid = uid.unwrap_or_else(|| names::offline_uid("DataPlane", &namespace, &of));
                Claimant {
                    permitted: self.is_permitted(&namespace, here, name),
                    mounts: self.mounts(&uid, &sets),
                    created: live.and_then(|live| live.metadata.creation_timestamp.as_ref().map(|time| time.0)),
                    namespace,
                    name: of,
                    uid,
                }
            })
            .collect();
        claimants.sort();
        claimants.dedup_by(|a, b| a.uid == b.uid);
        claimants
    }

    /// How the names of ConfigMaps begin that pods have of this installation.
    fn sets(&self, installation: &KongPluginInstallation) -> Vec<String> {
        let meta = &installation.metadata;
        let owned = self.owned_maps(meta.namespace.as_deref().unwrap_or_default(), meta.uid.as_deref().unwrap_or_default());
        let owned = owned.into_iter().filter_map(|map| map.labels?.remove(keys::PLUGIN_CONTENT));
        let in_force = plugin_installation::in_force(installation, &Sealing::Open).map(|content| content.label());
        owned.chain(in_force).map(|label| format!("{MOUNTED_PREFIX}{label}-")).collect()
    }

    /// Whether the observed pods of a DataPlane have one of these sets.
    fn mounts(&self, uid: &str, sets: &[String]) -> bool {
        let deployments = self.observed.deployments.iter().map(|sourced| &sourced.object);
        let owned = deployments.filter(|d| d.metadata.owner_references.iter().flatten().any(|owner| owner.uid == uid));
        owned.flat_map(mounted_maps).any(|map| sets.iter().any(|set| map.starts_with(set.as_str())))
    }

    /// Whether DataPlanes of a namespace may name an installation.
    fn is_permitted(&self, from: &str, to: &str, name: &str) -> bool {
        from == to || self.options.allow_cross_namespace_plugins || self.is_granted(from, to, name)
    }

    fn owned_maps(&self, namespace: &str, uid: &str) -> Vec<ObjectMeta> {
        let maps = self
            .observed
            .others
            .iter()
            .map(|sourced| &sourced.object)
            .filter(|o| o.get("kind").and_then(Value::as_str) == Some("ConfigMap"));
        maps.filter_map(|map| serde_json::from_value::<ObjectMeta>(map.get("metadata")?.clone()).ok())
            .filter(|meta| meta.namespace.as_deref() == Some(namespace) && meta.owner_references.iter().flatten().any(|o| o.uid == uid))
            .collect()
    }

    /// What `spec.pluginsToInstall` leads to.
    pub(super) fn plugins(&self, data_plane: &DataPlane, uid: &str, recorded: &Recorded) -> Vec<PluginUse> {
        let own = data_plane.metadata.namespace.as_deref().unwrap_or_default();
        named(data_plane)
            .map(|(namespace, name)| {
                let meta = ObjectMeta { namespace: Some(namespace.to_owned()), name: Some(name.to_owned()), ..ObjectMeta::default() };
                let same = |i: &&KongPluginInstallation| i.metadata.namespace == meta.namespace && i.metadata.name == meta.name;
                let planned = self.installations.installations.iter().find(same);
                let found = planned.or_else(|| find(&self.observed.plugin_installations, &meta));
                let permitted = self.is_permitted(own, namespace, name);
                let none = if recorded.unknown.contains(&format!("{namespace}/{name}")) { Lookup::Unknown } else { Lookup::Missing };
                let installation = found.map_or(none, |found| Lookup::Found(seen(found, uid)));
                PluginUse { namespace: namespace.to_owned(), name: name.to_owned(), installation, permitted }
            })
            .collect()
    }

    /// Whether a ReferenceGrant of the manifests lets DataPlanes of a namespace use an installation of another one.
    fn is_granted(&self, from: &str, to: &str, name: &str) -> bool {
        let text = |value: &Value, field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let list = |grant: &Value, field: &str| grant.pointer(field).and_then(Value::as_array).cloned().unwrap_or_default();
        let ours = |value: &Value, kind: &str| text(value, "group") == keys::GATEWAY_OPERATOR_GROUP && text(value, "kind") == kind;
        self.desired.others.iter().chain(&self.observed.others).map(|sourced| &sourced.object).any(|grant| {
            text(grant, "kind") == "ReferenceGrant"
                && text(grant, "apiVersion").starts_with(GRANTS)
                && grant.pointer("/metadata/namespace").and_then(Value::as_str) == Some(to)
                && list(grant, "/spec/from").iter().any(|f| ours(f, "DataPlane") && text(f, "namespace") == from)
                && list(grant, "/spec/to")
                    .iter()
                    .any(|t| ours(t, "KongPluginInstallation") && ["", name].contains(&text(t, "name").as_str()))
        })
    }
}

/// Installations that a DataPlane names, with their namespaces.
fn named(data_plane: &DataPlane) -> impl Iterator<Item = (&str, &str)> {
    let own = data_plane.metadata.namespace.as_deref().unwrap_or_default();
    data_plane.spec.plugins_to_install.iter().flatten().map(move |named| (named.namespace.as_deref().unwrap_or(own), named.name.as_str()))
}

fn seen(installation: &KongPluginInstallation, uid: &str) -> Installation {
    Installation {
        content: plugin_installation::in_force(installation, &Sealing::Open).map(Arc::new),
        // Whatever this plan writes stands before a DataPlane's pass.
        stored: !Recorded::of(&installation.metadata).unstored,
        standing: plugin_installation::standing(installation, uid),
        problem: plugin_installation::problem(installation),
    }
}
