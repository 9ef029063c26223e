//! What the kubelet does with a pod's volumes before its containers start.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::{ConfigMap, KeyToPath, PodSpec, Volume};
use serde_json::Value;

/// The container that is Kong.
const PROXY: &str = "proxy";
const MODE: i32 = 0o644;

/// Files of a volume by their path in it, with their permissions.
type Files = BTreeMap<PathBuf, (Vec<u8>, i32)>;

/// Writes what the container `proxy` (the first one, if none is called so) mounts from ConfigMaps, directly or projected, below a
/// root directory: items by key and path, sources merged, `subPath` honoured, `optional` too. An empty directory is one; volumes of
/// other kinds are left out. What would keep a pod from starting is an error.
///
/// The template may be a pod template, a pod, or anything with `spec.template`.
pub fn materialise(pod_template: &Value, config_maps: &[Value], root: &Path) -> Result<()> {
    let template = pod_template.pointer("/spec/template").unwrap_or(pod_template);
    let spec = template.get("spec").context("no spec in the pod template")?;
    let spec: PodSpec = serde_json::from_value(spec.clone()).context("the spec is not a pod's")?;
    let namespace = pod_template.pointer("/metadata/namespace").and_then(Value::as_str);
    let maps = config_maps.iter().map(|map| serde_json::from_value(map.clone()).context("not a ConfigMap"));
    let maps = maps.collect::<Result<Vec<ConfigMap>>>()?;
    let maps = Maps { maps: &maps, namespace };

    let container = spec.containers.iter().find(|container| container.name == PROXY).or(spec.containers.first());
    let container = container.context("a pod without containers")?;
    let mut mounts: Vec<_> = container.volume_mounts.iter().flatten().collect();
    // A mount hides what an outer one has put there.
    mounts.sort_by_key(|mount| Path::new(&mount.mount_path).components().count());
    for (index, mount) in mounts.iter().enumerate() {
        if mounts.iter().skip(index + 1).any(|other| Path::new(&other.mount_path) == Path::new(&mount.mount_path)) {
            bail!("{} is mounted twice", mount.mount_path);
        }
        let volume = spec.volumes.iter().flatten().find(|volume| volume.name == mount.name);
        let volume = volume.with_context(|| format!("{} mounts {}, which is not a volume of the pod", mount.mount_path, mount.name))?;
        if mount.sub_path_expr.is_some() {
            bail!("{}: subPathExpr is not supported here", mount.mount_path);
        }
        let Some(files) = maps.volume(volume).with_context(|| format!("volume {}", volume.name))? else { continue };
        let target = root.join(inside(mount.mount_path.trim_start_matches('/'))?);
        let sub_path = mount.sub_path.as_deref().filter(|path| !path.is_empty());
        mount_at(&target, &files, sub_path).with_context(|| format!("{} of volume {}", mount.mount_path, volume.name))?;
    }
    Ok(())
}

struct Maps<'a> {
    maps: &'a [ConfigMap],
    namespace: Option<&'a str>,
}

impl Maps<'_> {
    /// The files of a volume; `None` if it is of a kind that is left out.
    fn volume(&self, volume: &Volume) -> Result<Option<Files>> {
        let mut files = Files::new();
        if let Some(source) = &volume.config_map {
            let mode = source.default_mode.unwrap_or(MODE);
            self.add(&source.name, source.items.as_deref(), source.optional, mode, &mut files)?;
        } else if let Some(projected) = &volume.projected {
            let mode = projected.default_mode.unwrap_or(MODE);
            for source in projected.sources.iter().flatten().filter_map(|source| source.config_map.as_ref()) {
                self.add(&source.name, source.items.as_deref(), source.optional, mode, &mut files)?;
            }
        } else if volume.empty_dir.is_none() {
            return Ok(None);
        }
        Ok(Some(files))
    }

    fn add(&self, name: &str, items: Option<&[KeyToPath]>, optional: Option<bool>, mode: i32, files: &mut Files) -> Result<()> {
        let optional = optional == Some(true);
        let Some(map) = self.maps.iter().find(|map| self.is(map, name)) else {
            if optional {
                return Ok(());
            }
            bail!("there is no ConfigMap {name}");
        };
        let text = map.data.iter().flatten().map(|(key, text)| (key, text.clone().into_bytes()));
        let all: BTreeMap<_, _> = text.chain(map.binary_data.iter().flatten().map(|(key, bytes)| (key, bytes.0.clone()))).collect();
        let Some(items) = items.filter(|items| !items.is_empty()) else {
            files.extend(all.into_iter().map(|(key, bytes)| (PathBuf::from(key), (bytes, mode))));
            return Ok(());
        };
        for item in items {
            match all.get(&item.key) {
                Some(bytes) => {
                    let file = (bytes.clone(), item.mode.unwrap_or(mode));
                    if files.insert(inside(&item.path)?, file).is_some() {
                        bail!("two sources have {}", item.path);
                    }
                }
                None if optional => {}
                None => bail!("ConfigMap {name} has no {}", item.key),
            }
        }
        Ok(())
    }

    /// A pod sees its own namespace only; what was rendered without one is taken for it.
    fn is(&self, map: &ConfigMap, name: &str) -> bool {
        let other = map.metadata.namespace.as_deref().zip(self.namespace).is_some_and(|(map, pod)| map != pod);
        map.metadata.name.as_deref() == Some(name) && !other
    }
}

fn mount_at(target: &Path, files: &Files, sub_path: Option<&str>) -> Result<()> {
    if target.is_dir() {
        fs::remove_dir_all(target)?;
    } else if target.exists() {
        fs::remove_file(target)?;
    }
    let Some(sub_path) = sub_path.map(inside).transpose()? else { return write_all(target, files.iter()) };
    if let Some(file) = files.get(&sub_path) {
        return write(target, file);
    }
    let mut below = files.iter().filter(|(path, _)| path.starts_with(&sub_path)).peekable();
    // The kubelet would make an empty directory, and the pod would miss its file without a word.
    below.peek().with_context(|| format!("subPath {} is not in it", sub_path.display()))?;
    let below: Files = below.filter_map(|(path, file)| Some((path.strip_prefix(&sub_path).ok()?.to_owned(), file.clone()))).collect();
    write_all(target, below.iter())
}

fn write_all<'a>(target: &Path, files: impl Iterator<Item = (&'a PathBuf, &'a (Vec<u8>, i32))>) -> Result<()> {
    fs::create_dir_all(target)?;
    for (path, file) in files {
        write(&target.join(path), file)?;
    }
    Ok(())
}

fn write(path: &Path, (bytes, mode): &(Vec<u8>, i32)) -> Result<()> {
    let context = || format!("cannot write {}", path.display());
    path.parent().map_or(Ok(()), fs::create_dir_all).with_context(context)?;
    fs::write(path, bytes).with_context(context)?;
    fs::set_permissions(path, fs::Permissions::from_mode(u32::try_from(*mode)?)).with_context(context)
}

/// Kubernetes refuses paths that lead out of a volume, and so do we.
fn inside(path: &str) -> Result<PathBuf> {
    let parts: Vec<_> = Path::new(path).components().collect();
    if parts.is_empty() || !parts.iter().all(|part| matches!(part, Component::Normal(_))) {
        bail!("{path:?} does not lead to a place inside");
    }
    Ok(parts.iter().collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(volumes: &Value, mounts: &Value) -> Value {
        let containers = json!([{ "name": "sidecar" }, { "name": "proxy", "volumeMounts": mounts }]);
        json!({ "metadata": { "namespace": "a" }, "spec": { "template": { "spec": { "containers": containers, "volumes": volumes } } } })
    }

    fn maps() -> Vec<Value> {
        vec![
            json!({ "metadata": { "name": "m", "namespace": "b" }, "data": { "x": "of another namespace" } }),
            json!({ "metadata": { "name": "m", "namespace": "a" }, "data": { "x": "X", "y": "Y" }, "binaryData": { "z": "AAH/" } }),
            json!({ "metadata": { "name": "n" }, "data": { "x": "N" } }),
        ]
    }

    fn read(root: &Path, path: &str) -> String {
        String::from_utf8_lossy(&fs::read(root.join(path)).unwrap()).into_owned()
    }

    #[test]
    fn files_are_where_the_kubelet_puts_them() {
        let root = tempfile::tempdir().unwrap();
        let volumes = json!([
            { "name": "all", "configMap": { "name": "m" } },
            { "name": "some", "projected": { "sources": [
                { "configMap": { "name": "m", "items": [{ "key": "x", "path": "deep/x.lua", "mode": 0o600 }] } },
                { "configMap": { "name": "n", "items": [{ "key": "x", "path": "deep/n.lua" }] } },
                { "configMap": { "name": "absent", "optional": true } },
                { "secret": { "name": "s" } },
            ] } },
            { "name": "empty", "emptyDir": {} },
            { "name": "secret", "secret": { "secretName": "s" } },
        ]);
        let mounts = json!([
            { "name": "some", "mountPath": "/opt/all/y" },
            { "name": "all", "mountPath": "/opt/all" },
            { "name": "some", "mountPath": "/opt/dir", "subPath": "deep" },
            { "name": "some", "mountPath": "/opt/file.lua", "subPath": "deep/n.lua" },
            { "name": "empty", "mountPath": "/tmp/empty" },
            { "name": "secret", "mountPath": "/etc/secret" },
        ]);
        materialise(&deployment(&volumes, &mounts), &maps(), root.path()).unwrap();
        assert_eq!(read(root.path(), "opt/all/x"), "X");
        assert_eq!(fs::read(root.path().join("opt/all/z")).unwrap(), [0, 1, 255]);
        assert_eq!(read(root.path(), "opt/all/y/deep/n.lua"), "N");
        assert_eq!(read(root.path(), "opt/dir/x.lua"), "X");
        assert_eq!(read(root.path(), "opt/file.lua"), "N");
        assert_eq!(fs::metadata(root.path().join("opt/dir/x.lua")).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(root.path().join("tmp/empty").is_dir() && !root.path().join("etc").exists());
    }

    #[test]
    fn what_keeps_a_pod_from_starting_is_an_error() {
        let items = |items: Value| json!([{ "name": "v", "configMap": { "name": "m", "items": items } }]);
        let mount = json!([{ "name": "v", "mountPath": "/opt/v" }]);
        let cases = [
            (json!([{ "name": "v", "configMap": { "name": "absent" } }]), mount.clone(), "no ConfigMap absent"),
            (items(json!([{ "key": "absent", "path": "a" }])), mount.clone(), "has no absent"),
            (items(json!([{ "key": "x", "path": "../a" }])), mount.clone(), "inside"),
            (items(json!([{ "key": "x", "path": "a" }, { "key": "y", "path": "a" }])), mount.clone(), "two sources have a"),
            (items(json!([])), json!([{ "name": "w", "mountPath": "/opt/v" }]), "not a volume of the pod"),
            (items(json!([])), json!([{ "name": "v", "mountPath": "/opt/v", "subPath": "absent" }]), "subPath absent"),
            (items(json!([])), json!([{ "name": "v", "mountPath": "/a" }, { "name": "v", "mountPath": "/a/" }]), "mounted twice"),
        ];
        for (volumes, mounts, wanted) in cases {
            let root = tempfile::tempdir().unwrap();
            let error = format!("{:#}", materialise(&deployment(&volumes, &mounts), &maps(), root.path()).unwrap_err());
            assert!(error.contains(wanted), "{error}");
        }
    }
}
