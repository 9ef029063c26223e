//! Plugins in the pod: whose content is in force, who brings a plugin of which name, and what that means for the proxy container.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, ConfigMapProjection, KeyToPath, ProjectedVolumeSource, Volume, VolumeProjection},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use serde::Serialize;
use weir_api::{condition::reasons, keys};

use super::{
    conflicts::{Settled, Settlements, key},
    decide::Decided,
    plan::lookup,
    validate::{State, Validated},
};
use crate::{
    hash,
    plan::{ContentRequest, HeldPart},
    plugin_installation::{
        bundled::is_bundled,
        content::{Content, Plugin, mounted_name},
    },
    policy::{
        Pairs,
        conflict_resolution::{Claim, ClaimValue, Conflict, Origin, SubjectKind},
    },
};

/// Folder of all plugins; Lua finds `kong.plugins.NAME.handler` below `/opt` (facts/kong-operator.md 2.5).
pub const FOLDER: &str = "/opt/kong/plugins";
/// What makes Lua look there, before its own folders.
pub const PACKAGE_PATH: &str = "/opt/?.lua;;";
/// The claim of Kong itself on the name of a plugin that it bundles.
const KONG: &str = "bundled";

/// An installation whose content the pods get.
#[derive(Debug, Clone, PartialEq)]
pub struct Used {
    /// `namespace/name`.
    pub reference: String,
    /// The content.
    pub content: Arc<Content>,
    /// It is what the installation gives now, not what the pods had before.
    pub fresh: bool,
}

/// A plugin as it goes into the pod.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mounted<'a> {
    /// The installation.
    pub used: &'a Used,
    /// The plugin.
    pub plugin: &'a Plugin,
}

/// Record of what the pods have, by `namespace/name` of the installation.
pub type Contents = BTreeMap<String, Content>;

/// Names that more than one party brings: two installations, or an installation and Kong.
#[must_use]
pub fn conflicts(used: &[Used]) -> Vec<Conflict> {
    let mut conflicts = Vec::new();
    for (name, parties) in by_name(used) {
        let claim = |who: &str, origin| Claim { who: who.into(), since: None, origin, value: ClaimValue::Text(who.into()) };
        let mut claims: Vec<Claim> = parties.iter().map(|m| claim(&m.used.reference, Origin::Generated)).collect();
        if claims.len() > 1 {
            conflicts.push(Conflict { kind: SubjectKind::PluginName, subject: name.into(), claims: claims.clone() });
        }
        if is_bundled(name) {
            claims.truncate(1);
            claims.push(claim(KONG, Origin::Default));
            conflicts.push(Conflict { kind: SubjectKind::BundledPlugin, subject: name.into(), claims });
        }
    }
    conflicts
}

fn by_name(used: &[Used]) -> BTreeMap<&str, Vec<Mounted<'_>>> {
    let mut names: BTreeMap<&str, Vec<Mounted<'_>>> = BTreeMap::new();
    for used in used {
        for plugin in &used.content.plugins {
            names.entry(&plugin.name).or_default().push(Mounted { used, plugin });
        }
    }
    names
}

/// Plugins that go into the pod, by name. A name that is settled for nobody is in no pod; one that nobody else wants needs no settlement.
#[must_use]
pub fn mounted<'a>(used: &'a [Used], settlements: &Settlements) -> Vec<Mounted<'a>> {
    let winner = |kind, name: &str| settlements.get(&key(kind, name)).map(|s| s.value.clone());
    by_name(used)
        .into_iter()
        .filter_map(|(name, parties)| {
            let chosen = match parties.as_slice() {
                [only] => *only,
                [..] => {
                    let value = winner(SubjectKind::PluginName, name)?;
                    *parties.iter().find(|m| value == ClaimValue::Text(m.used.reference.clone()))?
                }
            };
            let kongs = || winner(SubjectKind::BundledPlugin, name).is_none_or(|value| value == ClaimValue::Text(KONG.into()));
            (!is_bundled(name) || !kongs()).then_some(chosen)
        })
        .collect()
}

/// Installations that bring something: one that lost every name shapes nothing in the pod.
#[must_use]
pub fn bringing(used: &[Used], mounted: &[Mounted<'_>]) -> Vec<Used> {
    used.iter().filter(|used| mounted.iter().any(|m| m.used.reference == used.reference)).cloned().collect()
}

/// Whether the plugin is where Kong looks for it: a volume or a mount of the owner's may have taken its place.
#[must_use]
pub fn is_in_place(mounted: Mounted<'_>, settled: &Settled) -> bool {
    let path = mount_path(&mounted.plugin.name);
    let volume = volume(mounted);
    settled.volumes.contains(&volume)
        && settled.mounts.iter().any(|m| m.mount_path.trim_end_matches('/') == path && m.name == volume.name && m.sub_path.is_none())
}

/// Value of KONG_PLUGINS.
#[must_use]
pub fn enabled(mounted: &[Mounted<'_>]) -> String {
    let names = mounted.iter().map(|m| m.plugin.name.as_str());
    std::iter::once(KONG).chain(names).collect::<Vec<_>>().join(",")
}

/// Value of KONG_LUA_PACKAGE_PATH: what packaging policies want, before the folder of all plugins.
#[must_use]
pub fn package_path(used: &[Used]) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in used.iter().filter_map(|u| u.content.lua_package_path.as_deref()).flat_map(|p| p.split(';')).filter(|p| !p.is_empty()) {
        if !parts.contains(&part) && part != "/opt/?.lua" {
            parts.push(part);
        }
    }
    parts.push(PACKAGE_PATH);
    parts.join(";")
}

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

/// How an installation stands in a DataPlane, for people and machines.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Standing {
    /// `namespace/name`.
    pub installation: String,
    /// The installation gives something.
    pub fetched: bool,
    /// That is in the live Deployment.
    pub configured: bool,
    /// All pods of its newest ReplicaSet have it.
    pub rolled_out: bool,
    /// Digest of what the pods get; none when they get nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Plugins in the pods.
    pub plugins: Vec<Named>,
    /// Why what it gives is not to be in the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// Names of plugins that somebody else got.
    #[serde(skip)]
    pub lost: Vec<String>,
}

/// A plugin by name and version.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Named {
    /// Kong's name of it.
    pub name: String,
    /// Version, where the handler says one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

impl Standing {
    /// For a condition's message.
    #[must_use]
    pub fn line(&self) -> String {
        let named = |p: &Named| p.version.as_ref().map_or_else(|| p.name.clone(), |version| format!("{} {version}", p.name));
        let names: Vec<String> = self.plugins.iter().map(named).collect();
        let state = match (self.configured, self.rolled_out, self.plugins.is_empty()) {
            (_, _, true) => "not in the pods",
            (true, true, false) => "rolled out",
            (true, false, false) => "rolling out",
            (false, _, false) => "waits",
        };
        let names = if names.is_empty() { String::new() } else { format!(" {}", names.join(", ")) };
        let digest: String = self.digest.iter().flat_map(|d| d.chars().take(19)).collect();
        let digest = if digest.is_empty() { digest } else { format!(" ({digest})") };
        let mut line = format!("{}:{names}{digest} {state}", self.installation);
        if !self.lost.is_empty() {
            let cure = "give it another plugin name, or remove what takes its place";
            line.push_str(&format!(", without {}, whose name or place is another's: {cure}", self.lost.join(", ")));
        }
        line
    }
}

/// How each installation stands, in the order of the spec.
#[must_use]
pub fn standing(dp: &Validated<'_>, decided: &Decided) -> Vec<Standing> {
    let live = lookup::live_deployment(dp).map(|child| &child.object);
    let maps = live.map(mounted_maps).unwrap_or_default();
    let settled = live.is_some_and(rolled_out);
    dp.plugins
        .iter()
        .map(|plugin| {
            let installation = plugin.reference();
            let used = decided.plugins.iter().find(|used| used.reference == installation);
            let mine = |name: &str| decided.mounted.iter().any(|(plugin, by)| plugin == name && *by == installation);
            let all = used.iter().flat_map(|u| u.content.plugins.iter().map(|plugin| Mounted { used: u, plugin }));
            let (present, lost): (Vec<Mounted<'_>>, Vec<Mounted<'_>>) = all.partition(|m| mine(&m.plugin.name));
            let configured = !present.is_empty() && present.iter().flat_map(|m| maps_of(&volume(*m))).all(|name| maps.contains(&name));
            let missing = match &plugin.state {
                State::Ready(_) => lost.first().map(|m| why_lost(&m.plugin.name, decided)),
                State::Unavailable { reason, message: _ } => Some((*reason).to_owned()),
            };
            Standing {
                installation,
                fetched: matches!(plugin.state, State::Ready(_)),
                configured,
                rolled_out: configured && settled,
                digest: used.filter(|_| !present.is_empty()).map(|u| u.content.digest.clone()),
                plugins: present.iter().map(|m| Named { name: m.plugin.name.clone(), version: m.plugin.version.clone() }).collect(),
                missing,
                lost: lost.iter().map(|m| m.plugin.name.clone()).collect(),
            }
        })
        .collect()
}

/// Reason why a plugin of this name is not in the pods: the policy's, where it settles nothing.
fn why_lost(name: &str, decided: &Decided) -> String {
    let about = format!("{name}: ");
    let hold = decided.holds.iter().find(|h| h.what == HeldPart::Plugin && h.message.starts_with(&about));
    hold.map_or_else(|| reasons::REJECTED.to_owned(), |h| h.reason.clone())
}

/// Whether all pods are of the newest ReplicaSet and available.
fn rolled_out(deployment: &Deployment) -> bool {
    let wanted = deployment.spec.as_ref().and_then(|s| s.replicas).unwrap_or(1);
    let Some(status) = &deployment.status else { return false };
    let count = |n: Option<i32>| n.unwrap_or(0);
    status.observed_generation >= deployment.metadata.generation
        && count(status.updated_replicas) == wanted
        && count(status.replicas) == wanted
        && count(status.available_replicas) == wanted
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{dataplane::conflicts::Settlement, plugin_installation::content::Placed};

    fn used(reference: &str, names: &[&str]) -> Used {
        let plugin = |name: &&str| Plugin {
            name: (*name).into(),
            version: None,
            priority: None,
            files: vec![
                Placed { path: "handler.lua".into(), map: 0, key: "h".into() },
                Placed { path: "schema.lua".into(), map: 1, key: "s".into() },
            ],
        };
        let content = Content {
            image: "i".into(),
            digest: "sha256:d".into(),
            hash: "ab".repeat(32),
            maps: 2,
            plugins: names.iter().map(plugin).collect(),
            lua_package_path: None,
            env: Vec::new(),
        };
        Used { reference: reference.into(), content: Arc::new(content), fresh: true }
    }

    fn settled(kind: SubjectKind, subject: &str, value: &str) -> Settlements {
        let settlement = Settlement { origin: Some(Origin::Generated), value: ClaimValue::Text(value.into()), kept_from: None };
        Settlements::from([(key(kind, subject), settlement)])
    }

    #[test]
    fn a_name_of_two_installations_is_in_the_pod_once_or_not_at_all() {
        let both = [used("a/one", &["x", "y"]), used("b/two", &["x"])];
        let found = conflicts(&both);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].claims.len(), 2);
        assert_eq!(enabled(&mounted(&both, &Settlements::new())), "bundled,y");
        let won = settled(SubjectKind::PluginName, "x", "b/two");
        let mounted = mounted(&both, &won);
        assert_eq!(enabled(&mounted), "bundled,x,y");
        assert_eq!(mounted[0].used.reference, "b/two");
    }

    #[test]
    fn a_bundled_name_is_the_installations_only_when_a_policy_says_so() {
        let one = [used("a/one", &["cors"])];
        assert_eq!(conflicts(&one)[0].kind, SubjectKind::BundledPlugin);
        assert!(mounted(&one, &settled(SubjectKind::BundledPlugin, "cors", "bundled")).is_empty());
        assert_eq!(mounted(&one, &settled(SubjectKind::BundledPlugin, "cors", "a/one")).len(), 1);
    }

    #[test]
    fn a_plugin_of_several_maps_is_one_tree() {
        let one = [used("a/one", &["my_plugin"])];
        let mounted = mounted(&one, &Settlements::new());
        let volume = volume(mounted[0]);
        assert!(weir_api::names::is_dns_label(&volume.name), "{}", volume.name);
        assert_eq!(volume.projected.unwrap().sources.unwrap().len(), 2);
        assert_eq!(mount_path("my_plugin"), "/opt/kong/plugins/my_plugin");
        assert_ne!(volume_name("my_plugin"), volume_name("my-plugin"));
    }
}
