//! Every layout that tools push, and every thing that is no component.

use serde_json::{Value, json};

use super::{
    registry::{IMAGE, INDEX, LAYER, Reply, Server, Shelf, puller, wasm},
    tarball::{Tar, gzip, zstd},
};
use crate::{
    oci::{Component, ComponentError, Credentials, EntryProblem, Error, LayerError, Layout, ManifestError, Secret, digest},
    wasm::{Foreign, sniff::tests::native},
};

const MOST: u64 = 64 << 10;
const CNCF: &str = "application/wasm";
const CNCF_CONFIG: &str = "application/vnd.wasm.config.v0+json";
const KRUSTLET: &str = "application/vnd.wasm.content.layer.v1+wasm";
const OCI_CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const TAR: &str = "application/vnd.oci.image.layer.v1.tar";

/// A layer: type, title (none if empty), bytes.
type Layer<'a> = (&'a str, &'a str, Vec<u8>);

/// Stores an image with these layers and a config of this type.
fn push(shelf: &mut Shelf, tag: &str, config: &str, layers: &[Layer<'_>]) -> Value {
    let layers: Vec<Value> = layers
        .iter()
        .map(|(kind, title, bytes)| {
            let mut layer = shelf.blob(kind, bytes);
            if !title.is_empty() {
                layer["annotations"] = json!({"org.opencontainers.image.title": title});
            }
            layer
        })
        .collect();
    let config = shelf.blob(config, b"{}");
    let manifest =
        json!({"schemaVersion": 2, "mediaType": IMAGE, "config": config, "layers": layers, "annotations": {"a": "b", "tag": tag}});
    shelf.manifest(tag, IMAGE, &manifest)
}

async fn pull(config: &str, layers: &[Layer<'_>]) -> Result<Component, Error> {
    let mut shelf = Shelf::default();
    push(&mut shelf, "1", config, layers);
    let server = Server::start(shelf, |_, _| None).await;
    puller().component(&server.reference(":1"), &Credentials::Anonymous, MOST).await
}

async fn refusal(config: &str, layers: &[Layer<'_>]) -> ComponentError {
    match pull(config, layers).await {
        Err(Error::Component { source, .. }) => *source,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn layouts() {
    let raw = wasm("x");
    let tar = || Tar::default().dir("app/").entry(b"app/policy.wasm", b'0', &wasm("x")).file("LICENSE", "text");
    let docker = "application/vnd.docker.image.rootfs.diff.tar.gzip";
    let table: [(&str, &[Layer<'_>], Layout); 12] = [
        (CNCF_CONFIG, &[(CNCF, "policy.wasm", raw.clone())], Layout::Cncf),
        ("application/vnd.wasm.config.v1+json", &[(KRUSTLET, "", raw.clone())], Layout::Krustlet),
        // Spin's files and Istio's settings beside the component.
        (
            "application/vnd.fermyon.spin.application.v1+config",
            &[("application/vnd.wasm.content.bundle.v1.tar+gzip", "", gzip(b"x")), (KRUSTLET, "", raw.clone())],
            Layout::Krustlet,
        ),
        (
            "application/vnd.module.wasm.config.v1+json",
            &[
                ("application/vnd.module.wasm.content.layer.v1+wasm", "", raw.clone()),
                ("application/vnd.module.wasm.config.v1+json", "", b"{}".to_vec()),
            ],
            Layout::WasmModule,
        ),
        (OCI_CONFIG, &[(LAYER, "", tar().gzip())], Layout::Image),
        (OCI_CONFIG, &[(LAYER, "", Tar::default().file("base.wasm", "").gzip()), (LAYER, "", tar().gzip())], Layout::Image),
        ("application/vnd.docker.container.image.v1+json", &[(docker, "", tar().gzip())], Layout::Image),
        (OCI_CONFIG, &[("application/vnd.oci.image.layer.v1.tar+zstd", "", tar().zstd())], Layout::Image),
        (OCI_CONFIG, &[(TAR, "", tar().end())], Layout::Image),
        // What ORAS makes of a file without and with a type, and beside another file.
        ("application/vnd.oci.empty.v1+json", &[(TAR, "", raw.clone())], Layout::Bare),
        ("application/vnd.unknown.config.v1+json", &[("text/plain", "README", b"x".to_vec()), (TAR, "x.WASM", raw.clone())], Layout::Bare),
        ("application/vnd.oci.empty.v1+json", &[("application/octet-stream", "", raw.clone())], Layout::Bare),
    ];
    for (config, layers, layout) in table {
        let component = pull(config, layers).await.unwrap();
        assert_eq!((component.layout, component.bytes.as_slice()), (layout, raw.as_slice()), "{config}");
        assert_eq!(component.layer_digest, digest::of(&raw));
        let blob = layers.iter().any(|(_, _, bytes)| digest::of(bytes) == component.blob_digest);
        assert!(blob && (component.blob_digest == component.layer_digest) == (layout != Layout::Image), "{config}");
        assert_eq!((component.artifact_type.as_deref(), component.annotations["a"].as_str()), (Some(config), "b"));
        assert_eq!(component.notes.iter().any(|note| note.contains("only layer")), layers.len() > 1, "{:?}", component.notes);
        let mislabelled = component.notes.iter().any(|note| note.contains("is a plain file although its type is"));
        assert_eq!(mislabelled, layout == Layout::Bare && layers.iter().any(|(kind, ..)| *kind == TAR), "{:?}", component.notes);
    }
}

#[tokio::test]
async fn digests_and_references() {
    let mut shelf = Shelf::default();
    let image = push(&mut shelf, "1", CNCF_CONFIG, &[(CNCF, "", wasm("x"))]);
    let server = Server::start(shelf, |_, _| None).await;
    let component = puller().component(&server.reference(":1"), &Credentials::Anonymous, MOST).await.unwrap();
    assert_eq!(component.reference, format!("{}/x/y:1", server.address));
    assert_eq!((component.manifest_digest.as_str(), component.index_digest.as_deref()), (image["digest"].as_str().unwrap(), None));
    assert!(component.notes.is_empty());
    let pinned = server.reference("").with_digest(&component.manifest_digest).unwrap();
    assert_eq!(puller().component(&pinned, &Credentials::Anonymous, MOST).await.unwrap().layer_digest, component.layer_digest);
    let basic = Credentials::Basic { username: "u".into(), password: Secret::new("p") };
    let noted = puller().component(&server.reference(":1"), &basic, MOST).await.unwrap();
    assert_eq!(noted.notes, [format!("{} asked for no credentials, so those given were not used", server.address)]);
}

#[tokio::test]
async fn odd_configs_are_noted() {
    let component = pull("application/vnd.acme+json", &[(CNCF, "", wasm("x"))]).await.unwrap();
    assert_eq!(
        component.notes,
        ["the config has type application/vnd.acme+json, which no tool for components writes; it is not looked at"]
    );
    let component = pull(OCI_CONFIG, &[(LAYER, "", zstd(&Tar::default().entry(b"x.wasm", b'0', &wasm("x")).end()))]).await.unwrap();
    assert!(component.notes[0].contains("is compressed with zstd although its type is"), "{:?}", component.notes);
}

#[tokio::test]
async fn which_layer() {
    let raw = |content: &str| wasm(content);
    let error = refusal(CNCF_CONFIG, &[(CNCF, "a.wasm", raw("a")), (KRUSTLET, "", raw("b"))]).await;
    assert!(matches!(&error, ComponentError::Several(names) if names.starts_with("layer 1 (a.wasm, sha256:") && names.contains(KRUSTLET)));
    let error = refusal("application/vnd.oci.empty.v1+json", &[("x/y", "a.wasm", raw("a")), ("x/y", "b.wasm", raw("b"))]).await;
    assert!(matches!(error, ComponentError::Several(_)), "{error}");
    // Twice the same is no question.
    let twice = pull(CNCF_CONFIG, &[(CNCF, "", raw("a")), (CNCF, "", raw("a"))]).await.unwrap();
    assert_eq!(twice.bytes, raw("a"));
    let error = refusal("application/vnd.oci.empty.v1+json", &[("x/y", "a", raw("a")), ("x/z", "", raw("b"))]).await;
    assert!(matches!(&error, ComponentError::NoneKnown(names) if names.contains("layer 2 (x/z, sha256:")), "{error}");
    assert_eq!(refusal(CNCF_CONFIG, &[]).await, ComponentError::NoLayers);
    let empty = "application/vnd.oci.empty.v1+json";
    assert_eq!(refusal(CNCF_CONFIG, &[(empty, "", b"{}".to_vec())]).await, ComponentError::NoLayers);
}

#[tokio::test]
async fn what_is_no_component() {
    let native = native();
    assert!((native.len() as u64) < MOST);
    for (bytes, expected) in [
        (b"\0asm\x01\0\0\0".to_vec(), Foreign::CoreModule),
        (b"\0asm\x07\0\0\0".to_vec(), Foreign::Version),
        (native, Foreign::Precompiled),
        (b"\x7fELF\x02".to_vec(), Foreign::Elf),
        (b"<!doctype html><p>log in".to_vec(), Foreign::Html),
        (b"(component)".to_vec(), Foreign::WasmText),
        (b"hello".to_vec(), Foreign::Text),
        (Vec::new(), Foreign::Empty),
        // Types of Wasm say that nothing is around it.
        (gzip(&wasm("x")), Foreign::Gzip),
        (zstd(&wasm("x")), Foreign::Zstd),
        (Tar::default().entry(b"x.wasm", b'0', &wasm("x")).end(), Foreign::Tar),
    ] {
        let error = refusal(CNCF_CONFIG, &[(CNCF, "policy.wasm", bytes)]).await;
        assert!(
            matches!(&error, ComponentError::Foreign { place, kind } if *kind == expected && place == "layer 1 (policy.wasm)"),
            "{error}"
        );
    }
    let module = Tar::default().entry(b"a/x.wasm", b'0', b"\0asm\x01\0\0\0").gzip();
    let error = refusal(OCI_CONFIG, &[(LAYER, "", module)]).await;
    assert_eq!(
        error.to_string(),
        format!("a/x.wasm in layer 1 ({LAYER}): it is a core module, not a component; wrap it with `wasm-tools component new`")
    );
}

#[tokio::test]
async fn images_hold_one_wasm_file() {
    let layer = |tar: Tar| (LAYER, "", tar.gzip());
    let two = Tar::default().file("a.wasm", "").file("b.wasm", "");
    let error = refusal(OCI_CONFIG, &[layer(two)]).await;
    assert!(matches!(&error, ComponentError::Files { found, .. } if found == "a.wasm, b.wasm"), "{error}");
    let last = [layer(Tar::default().file("a.wasm", "")), layer(Tar::default().file("README", ""))];
    let error = refusal(OCI_CONFIG, &last).await;
    assert!(matches!(&error, ComponentError::NoFile { found, place } if found == "README" && place.starts_with("layer 2")), "{error}");
    let error = refusal(OCI_CONFIG, &[layer(Tar::default())]).await;
    assert!(matches!(&error, ComponentError::NoFile { found, .. } if found == "it is empty"), "{error}");
    let evil = Tar::default().entry(b"x.wasm", b'2', b"");
    let error = refusal(OCI_CONFIG, &[layer(evil)]).await;
    let link = |source: &LayerError| matches!(source, LayerError::Entry { problem: EntryProblem::Kind("symbolic link"), .. });
    assert!(matches!(&error, ComponentError::Archive { source, .. } if link(source)), "{error}");
    let error = refusal(OCI_CONFIG, &[(LAYER, "", gzip(&wasm("x")))]).await;
    assert!(matches!(&error, ComponentError::Archive { source, .. } if **source == LayerError::NotTar), "{error}");
}

#[tokio::test]
async fn sizes() {
    let most = usize::try_from(MOST).unwrap();
    let exact = wasm(&"x".repeat(most - 8));
    assert_eq!(pull(CNCF_CONFIG, &[(CNCF, "", exact.clone())]).await.unwrap().bytes, exact);
    // The archive around it may be larger than the component may be.
    let tar = Tar::default().entry(b"x.wasm", b'0', &exact);
    assert_eq!(pull(OCI_CONFIG, &[(TAR, "", tar.end())]).await.unwrap().bytes, exact);
    let over = wasm(&"x".repeat(most - 7));
    let error = refusal(CNCF_CONFIG, &[(CNCF, "", over.clone())]).await;
    assert!(error.to_string().starts_with("layer 1 (application/wasm) has 65537 bytes, at most 64 KiB are allowed; strip it"), "{error}");
    let error = refusal("application/vnd.oci.empty.v1+json", &[("x/y", "", over.clone())]).await;
    assert!(matches!(error, ComponentError::Large { found: 65_537, .. }), "{error}");
    let error = refusal(OCI_CONFIG, &[(LAYER, "", Tar::default().entry(b"x.wasm", b'0', &over).gzip())]).await;
    assert!(error.to_string().contains("entry \"x.wasm\" has 65537 bytes, at most 64 KiB are allowed"), "{error}");
    let bomb = Tar::default().entry(b"x", b'0', &vec![0; 8 << 20]).gzip();
    let error = refusal(OCI_CONFIG, &[(LAYER, "", bomb)]).await;
    assert!(matches!(error, ComponentError::Archive { .. }), "{error}");
}

#[tokio::test]
async fn large_blobs_are_not_even_asked_for() {
    let mut shelf = Shelf::default();
    let mut data = shelf.blob("application/vnd.acme.data", b"x");
    data["size"] = json!(1_u64 << 40);
    let good = shelf.blob(CNCF, &wasm("x"));
    let mut large = good.clone();
    large["size"] = json!(1_u64 << 40);
    shelf.manifest("beside", IMAGE, &json!({"schemaVersion": 2, "layers": [data, good]}));
    shelf.manifest("large", IMAGE, &json!({"schemaVersion": 2, "layers": [large]}));
    let server = Server::start(shelf, |_, _| None).await;
    // How large a layer is that is not fetched does not matter.
    let component = puller().component(&server.reference(":beside"), &Credentials::Anonymous, MOST).await.unwrap();
    assert_eq!((component.bytes, server.count("/blobs/")), (wasm("x"), 1));
    let error = puller().component(&server.reference(":large"), &Credentials::Anonymous, MOST).await.unwrap_err();
    assert!(error.to_string().contains("at most 64 KiB are allowed") && !error.transient(), "{error}");
    assert_eq!(server.count("/blobs/"), 1);
}

#[tokio::test]
async fn indexes() {
    let mut shelf = Shelf::default();
    let mut image = |tag: &str, os: &str, architecture: &str, content: &str| {
        let mut entry = push(&mut shelf, tag, CNCF_CONFIG, &[(CNCF, "", wasm(content))]);
        entry["platform"] = json!({"os": os, "architecture": architecture});
        entry
    };
    let linux = image("l", "linux", "amd64", "linux");
    let arm = image("r", "linux", "arm64", "arm");
    let same = image("s", "linux", "s390x", "linux");
    let wasi = image("w", "wasi", "wasm", "wasi");
    let (p1, p2) = (image("p1", "wasip1", "wasm", "p1"), image("p2", "wasip2", "wasm", "p2"));
    let other = image("p3", "wasip2", "wasm", "other");
    let mut attestation = image("at", "unknown", "unknown", "at");
    attestation["annotations"] = json!({"vnd.docker.reference.type": "attestation-manifest"});
    let table: [(&str, &[&Value], Option<&str>); 8] = [
        ("all", &[&linux, &wasi, &p1, &p2, &attestation], Some("p2")),
        ("one", &[&linux, &p1, &wasi], Some("p1")),
        ("old", &[&linux, &wasi], Some("wasi")),
        ("only", &[&attestation, &arm], Some("arm")),
        ("same", &[&linux, &same], Some("linux")),
        ("differ", &[&linux, &arm], None),
        ("two", &[&p2, &other], None),
        ("none", &[&attestation], None),
    ];
    let mut digests = Vec::new();
    for (tag, entries, _) in table {
        digests.push(shelf.manifest(tag, INDEX, &json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries})));
    }
    let server = Server::start(shelf, |_, _| None).await;
    let pull = async |tag: &str| puller().component(&server.reference(&format!(":{tag}")), &Credentials::Anonymous, MOST).await;
    for ((tag, _, expected), index) in table.into_iter().zip(digests) {
        let result = pull(tag).await;
        assert_eq!(result.as_ref().ok().map(|found| found.bytes.clone()), expected.map(wasm), "{tag}: {result:?}");
        if let Ok(found) = result {
            assert_eq!(found.index_digest.as_deref(), index["digest"].as_str());
            assert_ne!(Some(found.manifest_digest), found.index_digest);
        }
    }
    let problem = async |tag: &str| match pull(tag).await {
        Err(Error::Manifest { source, .. }) => *source,
        other => panic!("{other:?}"),
    };
    let names = |entry: &Value, name: &str| format!("{name} ({})", entry["digest"].as_str().unwrap());
    assert_eq!(problem("differ").await, ManifestError::NoWasm(format!("{}, {}", names(&linux, "linux/amd64"), names(&arm, "linux/arm64"))));
    assert_eq!(problem("two").await, ManifestError::Wasm(format!("{}, {}", names(&p2, "wasip2/wasm"), names(&other, "wasip2/wasm"))));
    assert_eq!(problem("none").await, ManifestError::Empty);
}

#[tokio::test]
async fn blobs_are_verified() {
    let mut shelf = Shelf::default();
    push(&mut shelf, "1", CNCF_CONFIG, &[(CNCF, "", wasm("x"))]);
    let server = Server::start(shelf, |asked, _| asked.path.contains("/blobs/").then(|| Reply::Full(200, Vec::new(), wasm("y")))).await;
    let error = puller().component(&server.reference(":1"), &Credentials::Anonymous, MOST).await.unwrap_err();
    assert!(matches!(error, Error::Digest { .. }), "{error}");
}

#[test]
fn names_of_layouts() {
    for layout in [Layout::Cncf, Layout::Krustlet, Layout::WasmModule, Layout::Image, Layout::Bare] {
        assert_eq!(serde_json::to_value(layout).unwrap(), json!(layout.as_str()));
    }
}
