//! Plugin content as volumes of the pod, and as ConfigMaps behind them.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, ConfigMapProjection, KeyToPath, ProjectedVolumeSource, Volume, VolumeProjection},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use weir_api::keys;

use super::Mounted;
use crate::{
    hash,
    plan::ContentRequest,
    plugin_installation::content::{Content, mounted_name},
    policy::Pairs,
};

/// Folder of all plugins; Lua finds `kong.plugins.NAME.handler` below `/opt` (facts/kong-operator.md 2.5).
pub const FOLDER: &str = "/opt/kong/plugins";

/// The plugin's folder as one tree, however many ConfigMaps hold it.
#[must_use]
pub fn volume(mounted: Mounted<'_>) -> Volume {
    let mut maps: BTreeMap<usize, Vec<KeyToPath>> = BTreeMap::new();
    for file in &mounted.plugin.files {
        maps.entry(file.map).or_default().push(KeyToPath { key: file.key.clone(), path: file.path.clone(), mode: None });
    }
    let source = |(map, items)| VolumeProjection {
        config_map: Some(ConfigMapProjection { name: mounted_name(&mounted.used.content.hash, map), items: Some(items), optional: None }),
        ..VolumeProjection::default()
    };
    Volume {
        name: volume_name(&mounted.plugin.name),
        projected: Some(ProjectedVolumeSource { sources: Some(maps.into_iter().map(source).collect()), default_mode: None }),
        ..Volume::default()
    }
}

/// Where it is mounted.
#[must_use]
pub fn mount_path(plugin: &str) -> String {
    format!("{FOLDER}/{plugin}")
}

/// A plugin's name may have `_` and capitals, and be too long; a volume's may not.
#[must_use]
pub fn volume_name(plugin: &str) -> String {
    let plain = format!("plugin-{plugin}");
    if weir_api::names::is_dns_label(&plain) {
        return plain;
    }
    let readable: String = plugin.to_ascii_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(40).collect();
    format!("plugin-{}-{}", readable.trim_matches('-'), hash::short(plugin.as_bytes(), 8))
}

/// The ConfigMaps of these contents.
pub fn map_names<'a>(contents: impl IntoIterator<Item = &'a Content>) -> impl Iterator<Item = String> {
    contents.into_iter().flat_map(|content| (0..content.maps).map(|index| mounted_name(&content.hash, index)))
}

/// A ConfigMap of a set that DataPlanes mount, with the data of the one it is copied from. Immutable: pods that have it keep it.
#[must_use]
pub fn provided(request: &ContentRequest, index: usize, source: Option<&ConfigMap>) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(mounted_name(&request.hash, index)),
            namespace: Some(request.namespace.clone()),
            labels: Some(Pairs::from([(keys::PLUGIN_CONTENT.into(), request.hash.chars().take(32).collect())])),
            owner_references: Some(vec![request.owner.clone()]),
            ..ObjectMeta::default()
        },
        immutable: Some(true),
        data: source.and_then(|s| s.data.clone()),
        binary_data: source.and_then(|s| s.binary_data.clone()),
    }
}

/// ConfigMaps that the pods of a Deployment mount.
#[must_use]
pub fn mounted_maps(deployment: &Deployment) -> BTreeSet<String> {
    let template = deployment.spec.as_ref().and_then(|s| s.template.spec.as_ref());
    let volumes = template.and_then(|s| s.volumes.as_ref()).into_iter().flatten();
    volumes.flat_map(maps_of).collect()
}

/// ConfigMaps that a volume is made of.
#[must_use]
pub fn maps_of(volume: &Volume) -> Vec<String> {
    let projected = volume.projected.iter().flat_map(|p| p.sources.iter().flatten());
    let projected = projected.filter_map(|s| s.config_map.as_ref().map(|c| c.name.clone()));
    volume.config_map.iter().map(|c| c.name.clone()).chain(projected).collect()
}
