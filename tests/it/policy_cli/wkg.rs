//! The CNCF's own tool for components in registries. It takes minutes to compile, so what it pushed once is a fixture, byte for byte; where
//! the tool is there (`WEIR_WKG` or `PATH`) it is asked itself, and has to push what the fixture says.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use libtest_mimic::Trial;
use serde_json::Value;
use weir_testkit::registry::Registry;

use super::{anonymous, json_of, path, text};
use crate::{registry::Scratch, support::root, support::test};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.wasm.config.v0+json";
const WASM: &str = "application/wasm";

pub(super) fn tests() -> Vec<Trial> {
    vec![test("policy what wkg has pushed is taken", recorded), test("policy wkg itself pushes and pulls", live)]
}

fn component() -> PathBuf {
    root().join("tests/corpus/0.1.0/konnect-env.wasm")
}

fn fixture(name: &str) -> Vec<u8> {
    fs::read(root().join("tests/fixtures/wkg").join(name)).unwrap()
}

/// wkg 0.16.1: `wkg oci push --insecure HOST HOST/wkg/konnect-env:0.1.0 konnect-env.wasm`.
fn recorded() {
    let Some(registry) = anonymous("policy what wkg has pushed is taken") else { return };
    let raw = registry.raw("team/wkg").unwrap();
    let bytes = fs::read(component()).unwrap();
    raw.blob(WASM, &bytes).unwrap();
    raw.blob(CONFIG, &fixture("config.json")).unwrap();
    let digest = raw.manifest("v1", MANIFEST, &fixture("manifest.json")).unwrap();
    taken(&registry, &digest, &bytes);
}

/// Inspected, accepted and pulled as if we had pushed it.
fn taken(registry: &Registry, digest: &str, bytes: &[u8]) {
    let reference = registry.reference("team/wkg", "v1");
    let seen = json_of(&["inspect", &reference]);
    let layout = seen["layout"].as_str().unwrap_or_default();
    assert!(layout.starts_with("cncf"), "{seen:#}");
    assert_eq!(seen["manifestDigest"], digest, "{seen:#}");
    text(&["check", &reference]);
    let (dir, pinned) = (Scratch::new(), format!("{reference}@{digest}"));
    let target = path(&dir.0.join("pulled.wasm"));
    assert_eq!(text(&["pull", &reference, "-o", &target]), pinned);
    assert!(fs::read(&target).unwrap() == bytes, "other bytes than were pushed");
}

fn live() {
    let tool = std::env::var_os("WEIR_WKG").map_or_else(|| PathBuf::from("wkg"), PathBuf::from);
    let version = Command::new(&tool).arg("--version").stdin(Stdio::null()).output();
    if !version.is_ok_and(|output| output.status.success()) {
        println!("     policy wkg itself pushes and pulls: skipped: there is no wkg (cargo install wkg, then WEIR_WKG=PATH)");
        return;
    }
    let Some(registry) = anonymous("policy wkg itself pushes and pulls") else { return };
    let wkg = |args: &[&str]| {
        let output = Command::new(&tool).args(args).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let (bytes, file) = (fs::read(component()).unwrap(), path(&component()));
    let theirs = registry.reference("team/wkg", "v1");
    let host = theirs.split('/').next().unwrap();
    wkg(&["oci", "push", "--insecure", host, &theirs, &file]);
    let pushed = registry.raw("team/wkg").unwrap().pull_manifest("v1").unwrap();
    taken(&registry, &pushed.digest, &bytes);
    // The fixture is what the tool does; only the time in its configuration is another one.
    let mut kinds = [fixture("manifest.json"), pushed.bytes].map(|bytes| serde_json::from_slice::<Value>(&bytes).unwrap());
    kinds.iter_mut().for_each(|manifest| manifest["config"] = manifest["config"]["mediaType"].take());
    assert_eq!(kinds[0], kinds[1]);

    let ours = registry.reference("team/ours", "v1");
    text(&["push", &file, &ours]);
    let dir = Scratch::new();
    let target = path(&dir.0.join("pulled.wasm"));
    wkg(&["oci", "pull", "--insecure", host, &ours, "-o", &target]);
    assert!(fs::read(&target).unwrap() == bytes, "wkg pulls other bytes than we pushed");
}
