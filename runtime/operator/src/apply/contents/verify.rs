//! Whether ConfigMaps hold what their name says. Their names are public, and whoever may write ConfigMaps in one namespace must not choose
//! what runs in another one: the hash is computed anew from what is in them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use weir_core::plugin_installation::content::{Content, fingerprint};

/// Whether a set holds this content.
pub(super) fn holds(content: &Content, set: &[&ConfigMap]) -> bool {
    let mut found = Vec::new();
    for plugin in &content.plugins {
        for file in &plugin.files {
            let Some(bytes) = set.get(file.map).and_then(|map| bytes(map, &file.key)) else { return false };
            found.push((plugin.name.as_str(), file.path.as_str(), bytes));
        }
    }
    content.maps == set.len() && fingerprint(found, set.len()) == content.hash
}

fn bytes<'a>(map: &'a ConfigMap, key: &str) -> Option<&'a [u8]> {
    let text = map.data.as_ref().and_then(|data| data.get(key)).map(String::as_bytes);
    text.or_else(|| map.binary_data.as_ref().and_then(|data| data.get(key)).map(|bytes| bytes.0.as_slice()))
}

/// Whether two ConfigMaps have the same content.
pub(super) fn same(a: &ConfigMap, b: &ConfigMap) -> bool {
    // An empty map and none are the same.
    fn all<T>(map: &Option<BTreeMap<String, T>>) -> impl Iterator<Item = (&String, &T)> {
        map.iter().flatten()
    }
    all(&a.data).eq(all(&b.data)) && all(&a.binary_data).eq(all(&b.binary_data))
}

/// Whether nobody can change what is in it.
pub(super) fn is_fixed(map: &ConfigMap) -> bool {
    map.immutable == Some(true) && map.metadata.deletion_timestamp.is_none()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;
    use weir_core::{
        plugin_installation::content::{MAX_CONFIG_MAP, pack},
        policy::plugin_packaging::{Answer, Placement, Plugin},
    };

    use super::*;

    fn placement(path: &str) -> Placement {
        Placement { source: path.into(), target: path.into() }
    }

    #[test]
    fn what_was_packed_is_recognised_and_anything_else_is_not() {
        let files = BTreeMap::from([
            ("handler.lua".to_owned(), b"return {}".to_vec()),
            ("schema.lua".to_owned(), vec![b' '; MAX_CONFIG_MAP]),
            ("data.bin".to_owned(), vec![0xff, 0xfe]),
        ]);
        let placements = ["schema.lua", "handler.lua", "data.bin"].map(placement).to_vec();
        let plugin = |name: &str| Plugin { name: name.into(), version: None, priority: None, placements: placements.clone() };
        let answer = Answer { plugins: vec![plugin("b"), plugin("a")], lua_package_path: None, env: vec![], findings: vec![] };
        let (content, packed) = pack("i", "sha256:d", &files, &answer).unwrap();
        assert!(content.maps > 1);
        let map = |files: &BTreeMap<String, Vec<u8>>| {
            let mut map = ConfigMap { immutable: Some(true), ..ConfigMap::default() };
            for (key, bytes) in files {
                match String::from_utf8(bytes.clone()) {
                    Ok(text) => map.data.get_or_insert_default().insert(key.clone(), text).map(drop),
                    Err(_) => map.binary_data.get_or_insert_default().insert(key.clone(), ByteString(bytes.clone())).map(drop),
                };
            }
            map
        };
        let maps: Vec<ConfigMap> = packed.iter().map(map).collect();
        let set: Vec<&ConfigMap> = maps.iter().collect();
        assert!(holds(&content, &set));
        assert!(!holds(&content, set.get(..1).unwrap()));
        let mut forged = maps.clone();
        let first = forged.first_mut().unwrap();
        let key = content.plugins[0].files.iter().find(|f| f.path == "handler.lua").unwrap().key.clone();
        let at = content.plugins[0].files.iter().find(|f| f.path == "handler.lua").unwrap().map;
        assert!(is_fixed(first));
        forged[at].data.as_mut().unwrap().insert(key, "return evil".into());
        assert!(!holds(&content, &forged.iter().collect::<Vec<_>>()));
        assert!(!same(&maps[at], &forged[at]) && same(&maps[at], &maps[at]));
        assert!(same(&ConfigMap::default(), &ConfigMap { data: Some(BTreeMap::new()), ..ConfigMap::default() }));
    }
}
