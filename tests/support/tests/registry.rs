//! A real registry and the tools that push to it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may fail by panicking; helpers outside of a test function too")]

use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use weir_testkit::registry::{Credentials, Descriptor, Format, Image, Layer, Registry, RegistryOptions, archive, pack};
use weir_testkit::{binaries, skipped};

const OCI: &str = "application/vnd.oci.image.manifest.v1+json";
const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
const DOCKER: &str = "application/vnd.docker.distribution.manifest.v2+json";
const GZIP_LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// Starts one, or says that this machine cannot.
fn registry(test: &str, options: &RegistryOptions) -> Option<Registry> {
    if let Some(reason) = Registry::missing() {
        skipped(test, &reason).unwrap();
        return None;
    }
    Some(Registry::start(options).unwrap())
}

/// As [`registry`], where oras and crane are needed too.
fn registry_and_tools(test: &str, options: &RegistryOptions) -> Option<Registry> {
    if let Some(reason) = binaries::missing_tools() {
        skipped(test, &reason).unwrap();
        return None;
    }
    registry(test, options)
}

fn with_user() -> RegistryOptions {
    RegistryOptions { credentials: Some(Credentials::new("kong", "first")), ..RegistryOptions::default() }
}

fn plugin(dir: &Path) {
    std::fs::create_dir_all(dir.join("src")).unwrap();
    std::fs::write(dir.join("src/handler.lua"), "return {}").unwrap();
    std::fs::write(dir.join("src/schema.lua"), "return { name = 'x' }").unwrap();
}

/// What tar finds in a layer.
fn names(registry: &Registry, repository: &str, layer: &Value) -> Vec<String> {
    let bytes = registry.raw(repository).unwrap().pull_blob(layer["digest"].as_str().unwrap()).unwrap();
    assert_eq!(Descriptor::of("", &bytes).digest, layer["digest"]);
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("layer"), bytes).unwrap();
    let output = Command::new("tar").arg("tf").arg(dir.path().join("layer")).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn manifest(registry: &Registry, repository: &str, tag: &str) -> (String, Value) {
    let pulled = registry.raw(repository).unwrap().pull_manifest(tag).unwrap();
    assert_eq!(pulled.digest, Descriptor::of("", &pulled.bytes).digest);
    (pulled.media_type, serde_json::from_slice(&pulled.bytes).unwrap())
}

#[test]
fn umoci_makes_and_skopeo_pushes() {
    let Some(registry) = registry("umoci_makes_and_skopeo_pushes", &RegistryOptions::default()) else { return };
    let dir = tempfile::tempdir().unwrap();
    plugin(dir.path());
    let (all, one) = (dir.path().join("src"), dir.path().join("other.lua"));
    std::fs::write(&one, "return { of = 'the second layer' }").unwrap();
    let layers = [Layer::new(&all, "/"), Layer::new(&one, "/handler.lua")];
    let image = Image::build(&layers).unwrap();
    registry.skopeo_copy(&image.source(), "team/x", "oci", Some(Format::Oci), &[]).unwrap();
    registry.skopeo_copy(&image.source(), "team/x", "docker", Some(Format::V2s2), &[]).unwrap();
    let inserted = Image::insert(&layers).unwrap();
    registry.skopeo_copy(&inserted.source(), "team/x", "inserted", Some(Format::Oci), &[]).unwrap();
    assert_eq!(manifest(&registry, "team/x", "inserted").1["layers"].as_array().unwrap().len(), 2);
    let saved = image.docker_archive(&dir.path().join("x.tar")).unwrap();
    registry.skopeo_copy(&saved, "team/x", "saved", None, &[]).unwrap();

    for (tag, wanted) in [("oci", OCI), ("docker", DOCKER), ("saved", DOCKER)] {
        let (media_type, manifest) = manifest(&registry, "team/x", tag);
        assert_eq!(media_type, wanted, "{tag}");
        let layers = manifest["layers"].as_array().unwrap();
        assert_eq!(layers.len(), 2, "{tag}");
        assert!(names(&registry, "team/x", &layers[0]).iter().any(|name| name.ends_with("schema.lua")));
        assert_eq!(names(&registry, "team/x", &layers[1]), ["handler.lua"]);
    }
    let requests = registry.requests().unwrap();
    assert_eq!(requests.iter().filter(|request| request.gets_manifest()).count(), 4, "{requests:?}");
    assert_eq!(requests.iter().filter(|request| request.gets_blob()).count(), 6, "{requests:?}");
    assert!(requests.iter().any(|request| request.method == "PUT" && request.status == 201 && request.agent.starts_with("skopeo/")));
}

#[test]
fn oras_and_crane_push() {
    let Some(registry) = registry_and_tools("oras_and_crane_push", &with_user()) else { return };
    let dir = tempfile::tempdir().unwrap();
    plugin(dir.path());

    let files = ["src/handler.lua:text/x-lua", "src/schema.lua"];
    let digest = registry.oras_push("bare", "v1", Some("application/vnd.weir.test"), dir.path(), &files).unwrap();
    let pulled = registry.raw("bare").unwrap().pull_manifest("v1").unwrap();
    assert_eq!((pulled.digest, pulled.media_type.as_str()), (digest, OCI));
    let bare: Value = serde_json::from_slice(&pulled.bytes).unwrap();
    assert_eq!(bare["artifactType"], "application/vnd.weir.test");
    assert_eq!(bare["layers"][0]["mediaType"], "text/x-lua");
    assert_eq!(bare["layers"][1]["annotations"]["org.opencontainers.image.title"], "src/schema.lua");

    let layer = dir.path().join("layer.tar");
    std::fs::write(&layer, archive::Archive::new().file("handler.lua", "return 1").unwrap().finish()).unwrap();
    let first = registry.crane_append("stack", "one", None, &[&layer]).unwrap();
    registry.crane_append("stack", "two", Some(&registry.reference("stack", "one")), &[&layer]).unwrap();
    let (media_type, two) = manifest(&registry, "stack", "two");
    assert_eq!((media_type.as_str(), two["layers"].as_array().unwrap().len()), (DOCKER, 2));
    assert_eq!(names(&registry, "stack", &two["layers"][1]), ["handler.lua"]);

    registry.crane_index("stack", "many", &[&first, &registry.reference("stack", "two")]).unwrap();
    let (media_type, index) = manifest(&registry, "stack", "many");
    assert_eq!((media_type.as_str(), index["manifests"].as_array().unwrap().len()), (OCI_INDEX, 2));
    registry.crane(&["mutate", "--annotation", "a=b", "-t", &registry.reference("stack", "noted"), &first]).unwrap();
    assert_eq!(manifest(&registry, "stack", "noted").1["annotations"]["a"], "b");
}

#[test]
fn the_raw_pusher_pushes_anything() {
    let Some(registry) = registry("the_raw_pusher_pushes_anything", &RegistryOptions::default()) else { return };
    let raw = registry.raw("hostile").unwrap();
    let tar = archive::Archive::new().dir("a/").unwrap().symlink("a/out", "/etc").unwrap().device("a/null").unwrap().finish();
    let mut layers = vec![raw.blob(GZIP_LAYER, &pack::gzip(&tar).unwrap()).unwrap(), raw.blob("text/x-lua", b"return {}").unwrap()];
    match binaries::not_installed(&[binaries::ZSTD]) {
        Some(reason) => skipped("zstd layers", &reason).unwrap(),
        None => layers.push(raw.blob("application/vnd.oci.image.layer.v1.tar+zstd", &pack::zstd(&tar).unwrap()).unwrap()),
    }
    let bomb = pack::gzip_zeros(64 << 20).unwrap();
    assert!(bomb.len() < 1 << 20);
    layers.push(raw.blob(GZIP_LAYER, &bomb).unwrap());
    let digest = raw.image("v1", &layers).unwrap();
    let (media_type, pulled) = manifest(&registry, "hostile", &digest);
    assert_eq!((media_type.as_str(), &pulled["layers"][0]), (OCI, &layers[0].json()));
    assert_eq!(names(&registry, "hostile", &pulled["layers"][0]), ["a/", "a/out", "a/null"]);

    // A size that is not the blob's, and a manifest that is no JSON.
    let lie = json!({ "schemaVersion": 2, "mediaType": OCI, "config": layers[1].json(), "layers": [{ "mediaType": GZIP_LAYER, "digest": layers[0].digest, "size": 1u64 << 40 }] });
    raw.manifest("lie", OCI, lie.to_string().as_bytes()).unwrap();
    assert_eq!(manifest(&registry, "hostile", "lie").1["layers"][0]["size"], 1u64 << 40);
    assert!(raw.manifest("broken", OCI, b"{").unwrap_err().to_string().contains("status 400"));

    // Bytes that are not what their digest says.
    std::fs::write(registry.blob_file(&layers[1].digest).unwrap(), "return 1!").unwrap();
    assert_eq!(raw.pull_blob(&layers[1].digest).unwrap(), b"return 1!");
    raw.delete_manifest(&digest).unwrap();
    assert!(raw.pull_manifest("v1").unwrap_err().to_string().contains("status 404"));
}

#[test]
fn only_its_user_gets_in() {
    let Some(mut registry) = registry("only_its_user_gets_in", &with_user()) else { return };
    let old = registry.raw("a").unwrap();
    let layer = old.blob(GZIP_LAYER, b"not even gzip").unwrap();
    let digest = old.image("v1", &[layer]).unwrap();
    let status = || {
        let output = Command::new("skopeo")
            .args(["inspect", "--raw", "--tls-verify=false", "--no-creds"])
            .arg(format!("docker://{}/a:v1", registry.host()))
            .output();
        output.unwrap().status.success()
    };
    assert!(!status());
    assert_eq!(registry.docker_config().unwrap()["auths"][registry.host()]["auth"], "a29uZzpmaXJzdA==");
    assert!(registry.skopeo_manifest("a", "v1").is_ok());

    registry.set_password("second").unwrap();
    assert!(old.pull_manifest("v1").unwrap_err().to_string().contains("status 401"));
    assert_eq!(registry.raw("a").unwrap().pull_manifest("v1").unwrap().digest, digest);
    assert!(registry.skopeo_manifest("a", &digest).is_ok());
    assert!(registry.requests().unwrap().iter().any(|request| request.gets_manifest() && request.status == 401));
}

#[test]
fn tls_is_trusted_by_its_authority_only() {
    let options = RegistryOptions { tls: true, ..with_user() };
    let Some(registry) = registry_and_tools("tls_is_trusted_by_its_authority_only", &options) else { return };
    assert!(registry.ca_pem().unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
    let dir = tempfile::tempdir().unwrap();
    plugin(dir.path());
    let image = Image::build(&[Layer::new(dir.path().join("src"), "/")]).unwrap();
    registry.skopeo_copy(&image.source(), "a", "v1", Some(Format::Oci), &[]).unwrap();
    registry.oras_push("b", "v1", None, dir.path(), &["src/handler.lua"]).unwrap();
    registry.crane(&["copy", &registry.reference("a", "v1"), &registry.reference("a", "v2")]).unwrap();
    assert_eq!(registry.skopeo_manifest("a", "v1").unwrap(), registry.skopeo_manifest("a", "v2").unwrap());
    assert!(registry.raw("a").is_err());
    let stranger =
        Command::new("skopeo").args(["inspect", "--creds=kong:first"]).arg(format!("docker://{}/a:v1", registry.host())).output();
    let stderr = String::from_utf8(stranger.unwrap().stderr).unwrap();
    assert!(stderr.contains("x509: certificate signed by unknown authority"), "{stderr}");
}

#[test]
fn it_goes_and_comes_back() {
    let Some(mut registry) = registry("it_goes_and_comes_back", &RegistryOptions::default()) else { return };
    let raw = registry.raw("a").unwrap();
    let digest = raw.image("v1", &[]).unwrap();
    let host = registry.host();
    registry.stop();
    assert!(TcpStream::connect(&host).is_err() && raw.pull_manifest("v1").is_err());
    registry.stop();
    registry.resume().unwrap();
    assert!(registry.resume().is_err());
    assert_eq!((registry.host(), raw.pull_manifest("v1").unwrap().digest), (host.clone(), digest));
    assert_eq!(registry.requests().unwrap().iter().filter(|request| request.gets_manifest()).count(), 1);
    drop(registry);
    assert!(TcpStream::connect(&host).is_err());
}

/// It comes before the tests that sign, so that it is built while nothing else is measured.
#[test]
fn cosign_signs() {
    if let Some(reason) = binaries::missing_cosign() {
        return skipped("cosign", &reason).unwrap();
    }
    let Some(registry) = registry("cosign", &RegistryOptions::default()) else { return };
    let raw = registry.raw("team/signed").unwrap();
    let digest = raw.image("v1", &[raw.blob(GZIP_LAYER, &pack::gzip(b"content").unwrap()).unwrap()]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let key = registry.cosign_key(dir.path(), "signer").unwrap();
    assert!(std::fs::read_to_string(&key.public).unwrap().starts_with("-----BEGIN PUBLIC KEY-----"));
    let (place, _) = registry.reference("team/signed", "v1").rsplit_once(':').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    registry.cosign_sign_simple(&format!("{place}@{digest}"), &key).unwrap();
    let tag = format!("{}.sig", digest.replacen(':', "-", 1));
    let (_, signature) = manifest(&registry, "team/signed", &tag);
    assert_eq!(signature["layers"][0]["mediaType"], "application/vnd.dev.cosign.simplesigning.v1+json");
}
