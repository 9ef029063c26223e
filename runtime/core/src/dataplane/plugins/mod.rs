//! Plugins in the pod: whose content is in force, who brings a plugin of which name, and what that means for the proxy container.

mod mounts;
mod standing;

use std::{collections::BTreeMap, sync::Arc};

pub use self::{
    mounts::{FOLDER, map_names, maps_of, mount_path, mounted_maps, provided, volume, volume_name},
    standing::{Named, Standing, standing},
};

use super::conflicts::{Settled, Settlements, key};
use crate::{
    plugin_installation::{
        bundled::is_bundled,
        content::{Content, Plugin},
    },
    policy::conflict_resolution::{Claim, ClaimValue, Conflict, Origin, SubjectKind},
};

/// Where Lua looks for plugins: a module is a file, or a folder with `init.lua`.
const TEMPLATES: [&str; 2] = ["/opt/?.lua", "/opt/?/init.lua"];
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

/// Value of KONG_LUA_PACKAGE_PATH: what packaging policies want, the folder of all plugins, and Lua's own folders.
#[must_use]
pub fn package_path(used: &[Used]) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in used.iter().filter_map(|u| u.content.lua_package_path.as_deref()).flat_map(|p| p.split(';')).filter(|p| !p.is_empty()) {
        if !parts.contains(&part) && !TEMPLATES.contains(&part) {
            parts.push(part);
        }
    }
    parts.extend(TEMPLATES);
    format!("{};;", parts.join(";"))
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
