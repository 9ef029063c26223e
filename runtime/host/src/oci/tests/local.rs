use std::{fs, path::Path};

use serde_json::{Value, json};

use super::{
    registry::{IMAGE, INDEX, LAYER},
    tarball::{Tar, gzip, plugin},
};
use crate::oci::{
    Artifact, EntryProblem, LayerError, Limits, digest, listing,
    local::{Error, read},
};

fn artifact(path: &Path) -> Result<Artifact, Error> {
    read(path, &Limits::PLUGIN)
}

/// Files of an image layout.
fn layout(layers: &[Vec<u8>]) -> Vec<(String, Vec<u8>)> {
    let mut files = vec![("oci-layout".to_owned(), br#"{"imageLayoutVersion": "1.0.0"}"#.to_vec())];
    let mut blob = |kind: &str, bytes: Vec<u8>| {
        let digest = digest::of(&bytes);
        let descriptor = json!({"mediaType": kind, "digest": digest, "size": bytes.len()});
        files.push((format!("blobs/{}", digest.replace(':', "/")), bytes));
        descriptor
    };
    let layers: Vec<Value> = layers.iter().map(|layer| blob(LAYER, layer.clone())).collect();
    let image = blob(IMAGE, json!({"schemaVersion": 2, "layers": layers}).to_string().into_bytes());
    let index = blob(INDEX, json!({"schemaVersion": 2, "manifests": [image]}).to_string().into_bytes());
    files.push(("index.json".to_owned(), json!({"schemaVersion": 2, "manifests": [index]}).to_string().into_bytes()));
    files
}

fn write(root: &Path, files: &[(String, Vec<u8>)]) {
    for (name, bytes) in files {
        fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        fs::write(root.join(name), bytes).unwrap();
    }
}

fn pack(files: &[(String, Vec<u8>)]) -> Tar {
    files.iter().fold(Tar::default(), |tar, (name, bytes)| {
        if name.len() > 99 { tar.long_name(name).entry(b"x", b'0', bytes) } else { tar.entry(name.as_bytes(), b'0', bytes) }
    })
}

#[test]
fn directories() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), &[("handler.lua".into(), b"1".to_vec()), ("sub/schema.lua".into(), b"2".to_vec())]);
    let found = artifact(root.path()).unwrap();
    assert_eq!(found.files.keys().collect::<Vec<_>>(), ["handler.lua", "sub/schema.lua"]);
    assert_eq!(found.digest, listing(&found.files));
    std::os::unix::fs::symlink("/etc/passwd", root.path().join("sub/link")).unwrap();
    let error = artifact(root.path()).unwrap_err();
    assert!(error.to_string().ends_with("entry \"sub/link\" is a symbolic link; only files and directories are taken"), "{error}");
    let error = read(root.path(), &Limits { files: 1, ..Limits::PLUGIN }).unwrap_err();
    assert!(matches!(error, Error::Content { source, .. } if *source == LayerError::Files { most: 1 }));
}

#[test]
fn layouts_as_directory_and_archive() {
    let root = tempfile::tempdir().unwrap();
    let files = layout(&[plugin().gzip()]);
    write(root.path(), &files);
    let found = artifact(root.path()).unwrap();
    assert_eq!((found.files.len(), found.media_type.as_str(), found.index_digest.is_some()), (2, IMAGE, true));
    let file = root.path().join("layout.tar");
    for bytes in [pack(&files).end(), pack(&files).gzip()] {
        fs::write(&file, bytes).unwrap();
        let packed = artifact(&file).unwrap();
        assert_eq!((packed.digest, packed.files), (found.digest.clone(), found.files.clone()));
    }
    let mut broken = files.clone();
    broken[1].1[20] ^= 1;
    write(root.path(), &broken);
    assert!(artifact(root.path()).unwrap_err().to_string().ends_with("does not have the digest it is named after"));
    fs::remove_file(root.path().join(&files[1].0)).unwrap();
    assert!(matches!(artifact(root.path()), Err(Error::Missing { .. })));
}

#[test]
fn saved_by_docker() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("saved.tar");
    let image = |layers: &[&str]| json!({"Config": "c.json", "RepoTags": ["x:1"], "Layers": layers});
    let save = |images: Value| {
        Tar::default()
            .entry(b"a/layer.tar", b'0', &plugin().end())
            .entry(b"b/layer.tar", b'0', &Tar::default().file(".wh.schema.lua", "").end())
            .entry(b"old/layer.tar", b'2', b"")
            .entry(b"manifest.json", b'0', images.to_string().as_bytes())
            .end()
    };
    fs::write(&file, save(json!([image(&["a/layer.tar", "b/layer.tar"])]))).unwrap();
    assert_eq!(artifact(&file).unwrap().files.into_keys().collect::<Vec<_>>(), ["handler.lua"]);
    fs::write(&file, save(json!([image(&["a/layer.tar"]), image(&["b/layer.tar"])]))).unwrap();
    assert!(matches!(artifact(&file), Err(Error::Images { count: 2, .. })));
    fs::write(&file, save(json!([image(&["old/layer.tar"])]))).unwrap();
    assert!(matches!(artifact(&file), Err(Error::Missing { .. })));
}

#[test]
fn archives_of_files() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("plugin.tar");
    for bytes in [plugin().end(), plugin().gzip(), plugin().zstd()] {
        fs::write(&file, bytes).unwrap();
        let found = artifact(&file).unwrap();
        assert_eq!((found.files.len(), found.digest), (2, listing(&found.files)));
    }
    fs::write(&file, plugin().entry(b"evil", b'2', b"").end()).unwrap();
    assert!(
        matches!(artifact(&file), Err(Error::Content { source, .. }) if matches!(*source, LayerError::Entry { problem: EntryProblem::Kind(_), .. }))
    );
    fs::write(&file, gzip(&vec![0; 64 << 20])).unwrap();
    assert!(matches!(artifact(&file), Err(Error::Content { source, .. }) if matches!(*source, LayerError::Bomb { .. })));
    fs::write(&file, b"return {}").unwrap();
    assert!(matches!(artifact(&file), Err(Error::Unknown { .. })));
    fs::write(&file, vec![b'x'; 21 << 20]).unwrap();
    assert!(matches!(artifact(&file), Err(Error::TooLarge { .. })));
    assert!(matches!(artifact(&root.path().join("none")), Err(Error::Read { .. })));
}
