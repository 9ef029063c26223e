//! Artifacts in every form that registries hold.

use std::collections::BTreeMap;

use libtest_mimic::Trial;
use serde_json::{Value, json};
use weir_host::oci::Error;
use weir_testkit::{
    binaries,
    registry::{
        Descriptor, Raw, RegistryOptions,
        archive::Archive,
        pack::{gzip, zstd},
    },
    skipped,
};

use super::{Client, DOCKER, HANDLER, OCI, OCI_INDEX, SCHEMA, TAR, TAR_GZIP, TAR_ZSTD, files, plugin, plugin_archive, registry, settings};
use crate::support::test;

pub(super) fn tests() -> Vec<Trial> {
    vec![
        test("registry archives of every form", archives),
        test("registry manifests of every form", manifests),
        test("registry layers lie on top of each other", layers),
        test("registry an index of equal and of different content", indexes),
    ]
}

fn archives() {
    let Some(registry) = registry("registry archives of every form", &RegistryOptions::default()) else { return };
    let raw = registry.raw("team/x").unwrap();
    let whole = plugin_archive().finish();
    let unfinished = plugin_archive().unfinished();
    let padding = 512 - SCHEMA.len() % 512;
    let mut forms = vec![
        ("tar", TAR, whole.clone(), 0),
        ("gzip", TAR_GZIP, gzip(&whole).unwrap(), 0),
        ("gzip-members", TAR_GZIP, [gzip(&whole[..700]).unwrap(), gzip(&whole[700..]).unwrap()].concat(), 0),
        ("custom", "application/vnd.example.plugin", gzip(&whole).unwrap(), 0),
        ("without-its-end", TAR, unfinished.clone(), 0),
        ("without-the-last-padding", TAR, unfinished[..unfinished.len() - padding].to_vec(), 0),
        ("another-type", TAR_GZIP, whole.clone(), 1),
    ];
    match binaries::not_installed(&[binaries::ZSTD]) {
        Some(reason) => skipped("registry archives of every form: zstd", &reason).unwrap(),
        None => forms.push(("zstd", TAR_ZSTD, zstd(&whole).unwrap(), 0)),
    }
    let client = Client::new(settings());
    for (tag, media_type, bytes, notes) in forms {
        let layer = raw.blob(media_type, &bytes).unwrap();
        raw.image(tag, &[layer]).unwrap();
        let artifact = client.pull(&registry.reference("team/x", tag)).unwrap_or_else(|error| panic!("{tag}: {error}"));
        assert_eq!(files(&artifact), plugin(), "{tag}");
        assert_eq!(artifact.notes.len(), notes, "{tag}: {:?}", artifact.notes);
    }
}

/// A manifest with a configuration of a type; `more` overrides its fields. Returns its descriptor.
pub(super) fn manifest(raw: &Raw, reference: &str, media_type: &str, config: &str, layers: &[Value], more: &Value) -> Descriptor {
    let config = raw.blob(config, b"{}").unwrap();
    let mut manifest = json!({ "schemaVersion": 2, "mediaType": media_type, "config": config.json(), "layers": layers });
    for (key, value) in more.as_object().into_iter().flatten() {
        manifest[key] = value.clone();
    }
    let bytes = manifest.to_string();
    raw.manifest(reference, media_type, bytes.as_bytes()).unwrap();
    Descriptor::of(media_type, bytes.as_bytes())
}

fn titled(layer: &Descriptor, title: &str) -> Value {
    let mut layer = layer.json();
    layer["annotations"] = json!({ "org.opencontainers.image.title": title });
    layer
}

fn manifests() {
    let Some(registry) = registry("registry manifests of every form", &RegistryOptions::default()) else { return };
    let raw = registry.raw("team/x").unwrap();
    let archive = gzip(&plugin_archive().finish()).unwrap();
    let docker_layer = raw.blob("application/vnd.docker.image.rootfs.diff.tar.gzip", &archive).unwrap().json();
    let oci_layer = raw.blob(TAR_GZIP, &archive).unwrap().json();
    let (docker, oci) = ("application/vnd.docker.container.image.v1+json", "application/vnd.oci.image.config.v1+json");
    let empty = "application/vnd.oci.empty.v1+json";
    let bare = [
        titled(&raw.blob("text/x-lua", HANDLER.as_bytes()).unwrap(), "handler.lua"),
        titled(&raw.blob("text/x-lua", SCHEMA.as_bytes()).unwrap(), "schema.lua"),
    ];
    let named = json!({ "artifactType": "application/vnd.example.plugin", "annotations": { "a": "b" } });
    manifest(&raw, "docker", DOCKER, docker, &[docker_layer], &Value::Null);
    manifest(&raw, "oci", OCI, oci, std::slice::from_ref(&oci_layer), &Value::Null);
    manifest(&raw, "artifact", OCI, empty, &bare, &named);
    manifest(&raw, "archive-in-artifact", OCI, empty, &[oci_layer], &named);
    let client = Client::new(settings());
    for (tag, media_type, kind) in [
        ("docker", DOCKER, docker),
        ("oci", OCI, oci),
        ("artifact", OCI, "application/vnd.example.plugin"),
        ("archive-in-artifact", OCI, "application/vnd.example.plugin"),
    ] {
        let artifact = client.pull(&registry.reference("team/x", tag)).unwrap_or_else(|error| panic!("{tag}: {error}"));
        assert_eq!(files(&artifact), plugin(), "{tag}");
        assert_eq!((artifact.media_type.as_str(), artifact.artifact_type.as_deref()), (media_type, Some(kind)), "{tag}");
    }
    assert_eq!(client.pull(&registry.reference("team/x", "artifact")).unwrap().annotations["a"], "b");
    let error = client.pull(&registry.reference("team/x", "none")).unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }) && error.to_string().contains("check repository and tag"), "{error}");
}

fn layers() {
    let Some(registry) = registry("registry layers", &RegistryOptions::default()) else { return };
    let raw = registry.raw("team/x").unwrap();
    let base = Archive::new().file("a/kept.lua", "1").unwrap().file("a/changed.lua", "1").unwrap().file("a/removed.lua", "1").unwrap();
    let base = base.file("b/hidden.lua", "1").unwrap().file("c/removed/too.lua", "1").unwrap();
    let upper = Archive::new().file("a/changed.lua", "2").unwrap().file("a/.wh.removed.lua", "").unwrap();
    let upper = upper.file("b/.wh..wh..opq", "").unwrap().file("b/new.lua", "2").unwrap().file("c/.wh.removed", "").unwrap();
    let push = |archive: Archive| raw.blob(TAR_GZIP, &gzip(&archive.finish()).unwrap()).unwrap();
    let layers = [push(base), push(upper), push(Archive::new())];
    raw.image("v1", &layers).unwrap();
    let artifact = Client::new(settings()).pull(&registry.reference("team/x", "v1")).unwrap();
    assert_eq!(files(&artifact), BTreeMap::from([("a/changed.lua", "2"), ("a/kept.lua", "1"), ("b/new.lua", "2")]));
}

fn indexes() {
    let Some(registry) = registry("registry indexes", &RegistryOptions::default()) else { return };
    let raw = registry.raw("team/x").unwrap();
    let config = "application/vnd.oci.image.config.v1+json";
    let push = |reference: &str, handler: &str| {
        let archive = Archive::new().file("handler.lua", handler).unwrap().file("schema.lua", SCHEMA).unwrap();
        let layer = raw.blob(TAR_GZIP, &gzip(&archive.finish()).unwrap()).unwrap().json();
        manifest(&raw, reference, OCI, config, &[layer], &json!({ "annotations": { "for": reference } }))
    };
    let (amd64, arm64, other, provenance) =
        (push("amd64", HANDLER), push("arm64", HANDLER), push("other", "return 2"), push("p", "return 3"));
    assert_ne!(amd64.digest, arm64.digest);
    let on = |image: &Descriptor, architecture: &str| {
        let mut entry = image.json();
        entry["platform"] = json!({ "os": "linux", "architecture": architecture });
        entry
    };
    // What buildx adds beside the images.
    let mut attestation = on(&provenance, "unknown");
    attestation["annotations"] = json!({ "vnd.docker.reference.type": "attestation-manifest" });
    let index = |tag: &str, entries: &[Value]| {
        let index = json!({ "schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": entries });
        raw.manifest(tag, OCI_INDEX, index.to_string().as_bytes()).unwrap()
    };
    let equal = index("equal", &[on(&amd64, "amd64"), on(&arm64, "arm64"), attestation.clone()]);
    index("different", &[on(&amd64, "amd64"), on(&other, "arm64")]);
    index("nothing", &[attestation]);

    let client = Client::new(settings());
    for version in ["equal", equal.as_str()] {
        let artifact = client.pull(&registry.reference("team/x", version)).unwrap();
        assert_eq!(files(&artifact), plugin());
        assert_eq!((&artifact.digest, artifact.index_digest.as_ref()), (&amd64.digest, Some(&equal)));
    }
    let refused = |tag: &str| client.pull(&registry.reference("team/x", tag)).unwrap_err().to_string();
    let said = refused("different");
    for word in ["different content", "linux/amd64", "linux/arm64", amd64.digest.as_str(), other.digest.as_str()] {
        assert!(said.contains(word), "{said}");
    }
    assert!(refused("nothing").ends_with("the index holds no image"));
    // Whoever names one gets it.
    let artifact = client.pull(&registry.reference("team/x", &other.digest)).unwrap();
    assert_eq!(files(&artifact)["handler.lua"], "return 2");
}
