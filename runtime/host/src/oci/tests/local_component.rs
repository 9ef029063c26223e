use std::{fs, path::Path};

use serde_json::{Value, json};

use super::{
    registry::{IMAGE, INDEX, wasm},
    tarball::{Tar, gzip},
};
use crate::{
    oci::{
        ComponentError, Layout, ManifestError, digest,
        local::{Error, component},
    },
    wasm::Foreign,
};

const MOST: u64 = 64 << 10;

/// Files of an image layout in the making.
struct Files(Vec<(String, Vec<u8>)>);

impl Files {
    fn new() -> Self {
        Self(vec![("oci-layout".to_owned(), br#"{"imageLayoutVersion": "1.0.0"}"#.to_vec())])
    }

    fn blob(&mut self, kind: &str, bytes: Vec<u8>) -> Value {
        let digest = digest::of(&bytes);
        let descriptor = json!({"mediaType": kind, "digest": digest, "size": bytes.len()});
        self.0.push((format!("blobs/{}", digest.replace(':', "/")), bytes));
        descriptor
    }

    /// An image with one component.
    fn image(&mut self, os: &str, architecture: &str, content: &str) -> Value {
        let layer = self.blob("application/wasm", wasm(content));
        let mut image = self.blob(IMAGE, json!({"schemaVersion": 2, "layers": [layer]}).to_string().into_bytes());
        image["platform"] = json!({"os": os, "architecture": architecture});
        image
    }

    fn index(mut self, entries: &[Value]) -> Vec<(String, Vec<u8>)> {
        self.0.push(("index.json".to_owned(), json!({"schemaVersion": 2, "manifests": entries}).to_string().into_bytes()));
        self.0
    }
}

fn write(root: &Path, files: &[(String, Vec<u8>)]) {
    for (name, bytes) in files {
        fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        fs::write(root.join(name), bytes).unwrap();
    }
}

#[test]
fn files() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("policy.wasm");
    fs::write(&file, wasm("x")).unwrap();
    let found = component(&file, MOST).unwrap();
    let digest = digest::of(&wasm("x"));
    assert_eq!((found.layout, found.bytes.as_slice()), (Layout::Bare, wasm("x").as_slice()));
    assert_eq!([found.layer_digest, found.blob_digest, found.manifest_digest], [digest.clone(), digest.clone(), digest]);
    assert_eq!(found.reference, format!("file:{}", file.display()));
    let refusal = |bytes: &[u8]| {
        fs::write(&file, bytes).unwrap();
        component(&file, MOST).unwrap_err()
    };
    let error = refusal(b"\0asm\x01\0\0\0");
    assert!(
        matches!(&error, Error::Component { source, .. } if matches!(**source, ComponentError::Foreign { kind: Foreign::CoreModule, .. })),
        "{error}"
    );
    for bytes in [gzip(&wasm("x")), Tar::default().entry(b"x.wasm", b'0', &wasm("x")).gzip(), Tar::default().file("x", "").end()] {
        assert!(matches!(refusal(&bytes), Error::NoImage { .. }));
    }
    let large = wasm(&"x".repeat(usize::try_from(MOST).unwrap()));
    assert!(matches!(refusal(&large), Error::Component { source, .. } if matches!(*source, ComponentError::Large { .. })));
    assert!(matches!(refusal(&vec![0; 8 << 20]), Error::TooLarge { .. }));
    assert!(matches!(component(root.path(), MOST), Err(Error::NoLayout { .. })));
    assert!(matches!(component(&root.path().join("none"), MOST), Err(Error::Read { .. })));
}

#[test]
fn layouts_as_directory_and_archive() {
    let root = tempfile::tempdir().unwrap();
    let mut files = Files::new();
    let (linux, wasi) = (files.image("linux", "amd64", "linux"), files.image("wasip2", "wasm", "wasi"));
    let index = files.blob(INDEX, json!({"schemaVersion": 2, "manifests": [linux, wasi]}).to_string().into_bytes());
    let files = files.index(std::slice::from_ref(&index));
    write(root.path(), &files);
    let found = component(root.path(), MOST).unwrap();
    assert_eq!((found.bytes.as_slice(), found.layout), (wasm("wasi").as_slice(), Layout::Cncf));
    assert_eq!((Some(found.manifest_digest.as_str()), found.index_digest.as_deref()), (wasi["digest"].as_str(), index["digest"].as_str()));
    let archive = root.path().join("layout.tar");
    let tar = || {
        files.iter().fold(Tar::default(), |tar, (name, bytes)| {
            if name.len() > 99 { tar.long_name(name).entry(b"x", b'0', bytes) } else { tar.entry(name.as_bytes(), b'0', bytes) }
        })
    };
    for bytes in [tar().end(), tar().gzip()] {
        fs::write(&archive, bytes).unwrap();
        let packed = component(&archive, MOST).unwrap();
        assert_eq!((packed.manifest_digest, packed.bytes), (found.manifest_digest.clone(), found.bytes.clone()));
    }
    let blob = root.path().join("blobs").join(found.blob_digest.replace(':', "/"));
    fs::write(&blob, wasm("WASI")).unwrap();
    assert!(component(root.path(), MOST).unwrap_err().to_string().ends_with("does not have the digest it is named after"));
    fs::remove_file(&blob).unwrap();
    assert!(matches!(component(root.path(), MOST), Err(Error::Missing { .. })));
}

#[test]
fn layouts_that_leave_a_question() {
    let root = tempfile::tempdir().unwrap();
    let mut files = Files::new();
    let entries = [files.image("linux", "amd64", "a"), files.image("linux", "arm64", "b")];
    write(root.path(), &files.index(&entries));
    let error = component(root.path(), MOST).unwrap_err();
    assert!(matches!(&error, Error::Manifest { source, .. } if matches!(**source, ManifestError::NoWasm(_))), "{error}");
    let mut files = Files::new();
    let big = files.blob("application/wasm", wasm(&"x".repeat(usize::try_from(MOST).unwrap())));
    let image = files.blob(IMAGE, json!({"schemaVersion": 2, "layers": [big]}).to_string().into_bytes());
    write(root.path(), &files.index(&[image]));
    let error = component(root.path(), MOST).unwrap_err();
    assert!(matches!(&error, Error::Component { source, .. } if matches!(**source, ComponentError::Large { .. })), "{error}");
}

#[test]
fn saved_by_docker() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("saved.tar");
    let save = |last: Tar| {
        Tar::default()
            .entry(b"a/layer.tar", b'0', &Tar::default().file("base.wasm", "").end())
            .entry(b"b/layer.tar", b'0', &last.end())
            .entry(b"manifest.json", b'0', json!([{"Layers": ["a/layer.tar", "b/layer.tar"]}]).to_string().as_bytes())
            .end()
    };
    fs::write(&file, save(Tar::default().entry(b"policy.wasm", b'0', &wasm("x")))).unwrap();
    let found = component(&file, MOST).unwrap();
    assert_eq!((found.layout, found.bytes), (Layout::Image, wasm("x")));
    assert_ne!(found.blob_digest, found.layer_digest);
    fs::write(&file, save(Tar::default().file("README", ""))).unwrap();
    let error = component(&file, MOST).unwrap_err();
    assert!(error.to_string().contains("layer 2 holds no *.wasm file (README)"), "{error}");
}
