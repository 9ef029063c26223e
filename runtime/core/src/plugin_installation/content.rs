//! The content of an installation: which file of which plugin is under which key of which ConfigMap. Named by a hash of all of it, and never
//! changed in place: pods of an old ReplicaSet keep what they started with.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use weir_api::keys;

use crate::{
    hash, names,
    policy::{EnvVar, plugin_packaging::Answer},
};

/// Most bytes of files in one ConfigMap. The API server takes 1 MiB with keys and metadata.
pub const MAX_CONFIG_MAP: usize = 1_040_000;
/// Most bytes of files of one installation.
pub const MAX_CONTENT: usize = 8 * 1024 * 1024;
/// Most files of one installation.
pub const MAX_FILES: usize = 512;

/// Where one file of a plugin is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// Path below the plugin's folder.
    pub path: String,
    /// Index of the ConfigMap in the set.
    pub map: usize,
    /// Key in it.
    pub key: String,
}

/// One plugin of an installation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Plugin {
    /// Kong's name of it.
    pub name: String,
    /// Version, where the handler says one.
    pub version: Option<String>,
    /// Priority, where the handler says one.
    pub priority: Option<i64>,
    /// Its files, by path.
    pub files: Vec<Placed>,
}

/// A plugin as it is written down. Records stand in annotations, which have little room: a key is left out where it follows from the path.
#[derive(Serialize, Deserialize)]
struct Written {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    priority: Option<i64>,
    files: Vec<WrittenFile>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum WrittenFile {
    /// Path and index of the ConfigMap.
    Usual(String, usize),
    /// And the key.
    Named(String, usize, String),
}

impl From<Written> for Plugin {
    fn from(written: Written) -> Self {
        let Written { name, version, priority, files } = written;
        let placed = |file| match file {
            WrittenFile::Usual(path, map) => Placed { key: key(&name, &path), path, map },
            WrittenFile::Named(path, map, key) => Placed { path, map, key },
        };
        let files = files.into_iter().map(placed).collect();
        Self { name, version, priority, files }
    }
}

impl From<Plugin> for Written {
    fn from(plugin: Plugin) -> Self {
        let Plugin { name, version, priority, files } = plugin;
        let written = |file: Placed| {
            if file.key == key(&name, &file.path) {
                WrittenFile::Usual(file.path, file.map)
            } else {
                WrittenFile::Named(file.path, file.map, file.key)
            }
        };
        let files = files.into_iter().map(written).collect();
        Self { name, version, priority, files }
    }
}

/// What an installation gives to DataPlanes. Its record, and the record of each DataPlane that uses it, hold this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Content {
    /// `spec.image` as it was written when this was fetched.
    pub image: String,
    /// Digest of the manifest.
    pub digest: String,
    /// Hash of the content, 64 hexadecimal digits.
    pub hash: String,
    /// ConfigMaps in the set.
    pub maps: usize,
    /// Plugins, by name.
    pub plugins: Vec<Plugin>,
    /// Template for KONG_LUA_PACKAGE_PATH, where the policy gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lua_package_path: Option<String>,
    /// Further variables of the proxy container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
}

/// Files of one ConfigMap, by key.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Why content cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unstorable {
    /// One file does not fit into a ConfigMap.
    #[error(
        "file {path:?} has {bytes} bytes; a ConfigMap, which pods mount it from, holds at most {MAX_CONFIG_MAP}: make it smaller or leave it out"
    )]
    File {
        /// Its path in the artifact.
        path: String,
        /// Its size.
        bytes: usize,
    },
    /// All files together are too big.
    #[error(
        "the plugin's files have {bytes} bytes together, at most {MAX_CONTENT} can be installed: leave out what the plugin does not load"
    )]
    Total {
        /// Their size.
        bytes: usize,
    },
    /// There are too many files.
    #[error("the plugin has {files} files, at most {MAX_FILES} can be installed: leave out what the plugin does not load")]
    Files {
        /// Their number.
        files: usize,
    },
}

/// Packs what the policy placed into ConfigMaps. The same answer and files give the same content, whatever their order.
///
/// # Errors
/// What does not fit.
pub fn pack(image: &str, digest: &str, files: &BTreeMap<String, Vec<u8>>, answer: &Answer) -> Result<(Content, Vec<Files>), Unstorable> {
    let mut packer = Packer::default();
    let mut plugins: Vec<&crate::policy::plugin_packaging::Plugin> = answer.plugins.iter().collect();
    plugins.sort_by(|a, b| a.name.cmp(&b.name));
    let mut packed = Vec::with_capacity(plugins.len());
    let mut found = Vec::new();
    for plugin in plugins {
        let mut placements: Vec<_> = plugin.placements.iter().collect();
        placements.sort_by(|a, b| a.target.cmp(&b.target));
        let mut placed = Vec::with_capacity(placements.len());
        for placement in placements {
            // The slot's check saw to it that the artifact has it.
            let Some(bytes) = files.get(&placement.source) else { continue };
            let (map, key) = packer.put(&placement.source, &plugin.name, &placement.target, bytes)?;
            found.push((plugin.name.as_str(), placement.target.as_str(), bytes.as_slice()));
            placed.push(Placed { path: placement.target.clone(), map, key });
        }
        packed.push(Plugin { name: plugin.name.clone(), version: plugin.version.clone(), priority: plugin.priority, files: placed });
    }
    let content = Content {
        image: image.to_owned(),
        digest: digest.to_owned(),
        hash: fingerprint(found, packer.maps.len()),
        maps: packer.maps.len(),
        plugins: packed,
        lua_package_path: answer.lua_package_path.clone(),
        env: answer.env.clone(),
    };
    Ok((content, packer.maps))
}

/// The hash that names content: of the files of all plugins, as plugin, path below its folder and bytes, in the order of plugins and paths, and of
/// the number of ConfigMaps they are in. Names of ConfigMaps in clusters are made of it: another way to compute it would roll every gateway.
#[must_use]
pub fn fingerprint<'a>(files: impl IntoIterator<Item = (&'a str, &'a str, &'a [u8])>, maps: usize) -> String {
    let digests: Vec<_> = files.into_iter().map(|(plugin, path, bytes)| (plugin, path, hash::digest(bytes))).collect();
    hash::digest_json(&(digests, maps)).trim_start_matches("sha256:").to_owned()
}

#[derive(Default)]
struct Packer {
    maps: Vec<Files>,
    room: usize,
    bytes: usize,
    files: usize,
}

impl Packer {
    fn put(&mut self, source: &str, plugin: &str, target: &str, bytes: &[u8]) -> Result<(usize, String), Unstorable> {
        if bytes.len() > MAX_CONFIG_MAP {
            return Err(Unstorable::File { path: source.to_owned(), bytes: bytes.len() });
        }
        self.bytes += bytes.len();
        self.files += 1;
        if self.bytes > MAX_CONTENT {
            return Err(Unstorable::Total { bytes: self.bytes });
        }
        if self.files > MAX_FILES {
            return Err(Unstorable::Files { files: self.files });
        }
        if self.maps.is_empty() || bytes.len() > self.room {
            self.maps.push(Files::new());
            self.room = MAX_CONFIG_MAP;
        }
        self.room -= bytes.len();
        let index = self.maps.len() - 1;
        let key = key(plugin, target);
        if let Some(map) = self.maps.last_mut() {
            map.insert(key.clone(), bytes.to_vec());
        }
        Ok((index, key))
    }
}

/// A ConfigMap's key of a file: readable, and different for different files. Keys have letters, digits, `-`, `_` and `.` only.
fn key(plugin: &str, target: &str) -> String {
    let readable: String = target.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect();
    let tail: String = readable.chars().rev().take(120).collect::<Vec<_>>().into_iter().rev().collect();
    format!("{}.{tail}", hash::short(format!("{plugin}/{target}").as_bytes(), 8))
}

/// How the names of all ConfigMaps begin that DataPlanes mount.
pub const MOUNTED_PREFIX: &str = "plugin-";

/// Name of a ConfigMap of a set that DataPlanes of a namespace mount. One set per namespace and content, whoever uses it.
#[must_use]
pub fn mounted_name(hash: &str, index: usize) -> String {
    let short: String = hash.chars().take(32).collect();
    format!("{MOUNTED_PREFIX}{short}-{index}")
}

/// Name of a ConfigMap of the installation's own set, which nobody mounts. The installation's whole name is part of the hash: `a.b` and
/// `a-b` may have the same content, and long names are cut.
#[must_use]
pub fn own_name(installation: &str, hash: &str, index: usize) -> String {
    let short = hash::short(format!("{installation}/{hash}").as_bytes(), 16);
    names::suffixed(&installation.replace('.', "-"), &format!("{short}-{index}"))
}

/// Names of the installation's own set, in order.
#[must_use]
pub fn own_names(installation: &str, content: &Content) -> Vec<String> {
    // Without a key nobody verified the number.
    (0..content.maps.min(MAX_FILES)).map(|index| own_name(installation, &content.hash, index)).collect()
}

/// Whether the installation's own set is there. `config_maps` are those that the installation owns.
#[must_use]
pub fn is_stored(installation: &str, content: &Content, config_maps: &[ObjectMeta]) -> bool {
    own_names(installation, content).iter().all(|name| has(config_maps, name, content))
}

/// Whether a ConfigMap of this name is there to stay and holds a part of this content.
pub(super) fn has(config_maps: &[ObjectMeta], name: &str, content: &Content) -> bool {
    let label = content.label();
    config_maps.iter().any(|meta| {
        meta.name.as_deref() == Some(name)
            && meta.deletion_timestamp.is_none()
            && meta.labels.as_ref().and_then(|labels| labels.get(keys::PLUGIN_CONTENT)) == Some(&label)
    })
}

impl Content {
    /// Value of label `weir.dev/plugin-content` on every ConfigMap with this content: the first 32 digits of its hash.
    #[must_use]
    pub fn label(&self) -> String {
        self.hash.chars().take(32).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::plugin_packaging::{Placement, Plugin as Packaged};

    #[test]
    fn names_of_content_stay_what_they_are_in_clusters() {
        let files: [(&str, &str, &[u8]); 2] = [("rate", "handler.lua", b"return {}"), ("rate", "schema.lua", b"")];
        assert_eq!(fingerprint(files, 1), "68f3d1b56c269cdf67d655c9757c7cb6dcd57903a9f1cc81157fea0a2098e515");
        assert_ne!(fingerprint(files, 1), fingerprint(files, 2));
    }

    #[test]
    fn what_is_packed_is_named_by_its_fingerprint_in_whatever_order_it_was_placed() {
        let placement = |path: &str| Placement { source: path.into(), target: path.into() };
        let plugin = |name: &str, paths: [&str; 2]| Packaged {
            name: name.into(),
            version: None,
            priority: None,
            placements: paths.map(placement).to_vec(),
        };
        let files = BTreeMap::from([("a".to_owned(), b"1".to_vec()), ("b".to_owned(), b"2".to_vec())]);
        let plugins = vec![plugin("y", ["b", "a"]), plugin("x", ["a", "b"])];
        let answer = Answer { plugins, lua_package_path: None, env: vec![], findings: vec![] };
        let (content, _) = pack("i", "sha256:d", &files, &answer).unwrap();
        let expected: [(&str, &str, &[u8]); 4] = [("x", "a", b"1"), ("x", "b", b"2"), ("y", "a", b"1"), ("y", "b", b"2")];
        assert_eq!(content.hash, fingerprint(expected, 1));
    }
}
