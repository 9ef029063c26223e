//! What umoci, skopeo, oras and crane push.

use std::collections::BTreeMap;

use libtest_mimic::Trial;
use weir_host::oci::{self, Limits};
use weir_testkit::{
    binaries,
    registry::{Format, Image, Layer, Registry, RegistryOptions, archive::Archive},
    skipped,
};

use super::{Client, DOCKER, HANDLER, OCI, SCHEMA, Scratch, files, plugin, plugin_archive, registry, settings};
use crate::support::test;

pub(super) fn tests() -> Vec<Trial> {
    vec![
        test("registry umoci builds, skopeo pushes", umoci_builds),
        test("registry umoci inserts, skopeo pushes", umoci_inserts),
        test("registry oras pushes", oras),
        test("registry crane pushes", crane),
    ]
}

/// As [`registry`], where oras and crane are needed too.
fn registry_and_tools(test: &str) -> Option<Registry> {
    if let Some(reason) = binaries::missing_tools() {
        skipped(test, &reason).unwrap();
        return None;
    }
    registry(test, &RegistryOptions::default())
}

fn umoci_builds() {
    let Some(registry) = registry("registry umoci builds", &RegistryOptions::default()) else { return };
    let dir = Scratch::plugin();
    let newer = dir.write("newer.lua", "return 2");
    let image = Image::build(&[Layer::new(dir.folder(), "/"), Layer::new(newer, "/handler.lua")]).unwrap();
    registry.skopeo_copy(&image.source(), "team/x", "oci", Some(Format::Oci), &[]).unwrap();
    registry.skopeo_copy(&image.source(), "team/x", "docker", Some(Format::V2s2), &[]).unwrap();
    let saved = image.docker_archive(&dir.0.join("saved.tar")).unwrap();
    registry.skopeo_copy(&saved, "team/x", "saved", None, &[]).unwrap();

    let client = Client::new(settings());
    let expected = BTreeMap::from([("handler.lua", "return 2"), ("schema.lua", SCHEMA)]);
    for (tag, media_type) in [("oci", OCI), ("docker", DOCKER), ("saved", DOCKER)] {
        let artifact = client.pull(&registry.reference("team/x", tag)).unwrap();
        assert_eq!(files(&artifact), expected, "{tag}");
        assert_eq!(artifact.media_type, media_type, "{tag}");
        assert_eq!(artifact.digest, registry.raw("team/x").unwrap().pull_manifest(tag).unwrap().digest, "{tag}");
    }
    // The same without a registry.
    for path in [image.layout(), dir.0.join("saved.tar")] {
        assert_eq!(files(&oci::local::read(&path, &Limits::PLUGIN).unwrap()), expected, "{}", path.display());
    }
}

/// Registries are full of such layers: they end after the last byte of their last file, and name the root `/`.
fn umoci_inserts() {
    let Some(registry) = registry("registry umoci inserts", &RegistryOptions::default()) else { return };
    let dir = Scratch::plugin();
    let client = Client::new(settings());
    let folder = Image::insert(&[Layer::new(dir.folder(), "/kong/plugins/x")]).unwrap();
    let single = Image::insert(&[
        Layer::new(dir.folder().join("handler.lua"), "/kong/plugins/x/handler.lua"),
        Layer::new(dir.folder().join("schema.lua"), "/kong/plugins/x/schema.lua"),
    ])
    .unwrap();
    for (tag, image) in [("folder", &folder), ("single", &single)] {
        registry.skopeo_copy(&image.source(), "team/x", tag, Some(Format::Oci), &[]).unwrap();
        let artifact = client.pull(&registry.reference("team/x", tag)).unwrap();
        let expected = BTreeMap::from([("kong/plugins/x/handler.lua", HANDLER), ("kong/plugins/x/schema.lua", SCHEMA)]);
        assert_eq!(files(&artifact), expected, "{tag}");
    }
    let top = Image::insert(&[Layer::new(dir.folder(), "/")]).unwrap();
    registry.skopeo_copy(&top.source(), "team/x", "top", Some(Format::Oci), &[]).unwrap();
    assert_eq!(files(&client.pull(&registry.reference("team/x", "top")).unwrap()), plugin());
}

fn oras() {
    let Some(registry) = registry_and_tools("registry oras pushes") else { return };
    let dir = Scratch::plugin();
    let client = Client::new(settings());
    let kind = "application/vnd.weir.test";
    let typed = ["handler.lua:text/x-lua", "schema.lua:text/x-lua"];
    let digest = registry.oras_push("bare", "v1", Some(kind), &dir.folder(), &typed).unwrap();
    let artifact = client.pull(&registry.reference("bare", "v1")).unwrap();
    assert_eq!(files(&artifact), plugin());
    assert_eq!((artifact.digest.as_str(), artifact.artifact_type.as_deref()), (digest.as_str(), Some(kind)));
    assert!(artifact.notes.is_empty(), "{:?}", artifact.notes);

    registry.oras_push("folder", "v1", None, &dir.0, &["plugin"]).unwrap();
    let artifact = client.pull(&registry.reference("folder", "v1")).unwrap();
    assert_eq!(files(&artifact), BTreeMap::from([("plugin/handler.lua", HANDLER), ("plugin/schema.lua", SCHEMA)]));

    let reference = registry.reference("noted", "v1");
    let push = ["push", "--annotation", "weir.dev/plugin-name=my_plugin", reference.as_str(), "handler.lua", "schema.lua"];
    registry.oras(&dir.folder(), &push).unwrap();
    let artifact = client.pull(&reference).unwrap();
    assert_eq!(files(&artifact), plugin());
    assert_eq!(artifact.annotations.get("weir.dev/plugin-name").map(String::as_str), Some("my_plugin"));
}

fn crane() {
    let Some(registry) = registry_and_tools("registry crane pushes") else { return };
    let dir = Scratch::new();
    let client = Client::new(settings());
    let layer = |name: &str, archive: Archive| dir.write(name, archive.finish());
    let base = layer("base.tar", plugin_archive());
    let upper = layer("upper.tar", Archive::new().file("handler.lua", "return 2").unwrap());
    let one = registry.crane_append("stack", "one", None, &[&base]).unwrap();
    let two = registry.crane_append("stack", "two", Some(&registry.reference("stack", "one")), &[&upper]).unwrap();
    assert_eq!(files(&client.pull(&one).unwrap()), plugin());
    assert_eq!(files(&client.pull(&two).unwrap())["handler.lua"], "return 2");

    // Another manifest with the same layers.
    let noted = registry.reference("stack", "noted");
    registry.crane(&["mutate", "--annotation", "a=b", "-t", &noted, &one]).unwrap();
    registry.crane_index("stack", "equal", &[&one, &noted]).unwrap();
    let artifact = client.pull(&registry.reference("stack", "equal")).unwrap();
    assert_eq!(files(&artifact), plugin());
    assert!(artifact.index_digest.is_some_and(|index| index != artifact.digest));

    registry.crane_index("stack", "different", &[&one, &two]).unwrap();
    let error = client.pull(&registry.reference("stack", "different")).unwrap_err();
    assert!(error.to_string().contains("the index holds different content for") && !error.transient(), "{error}");
}
