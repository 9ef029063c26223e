//! `weir policy` against a real registry.

mod wkg;

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

use libtest_mimic::Trial;
use serde_json::{Value, json};
use weir_testkit::registry::{Credentials as User, Registry, RegistryOptions};

use crate::{
    registry::{Scratch, registry},
    support::{guest, root, test, without_stub},
};

const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// Guest, exit code, and the step that fails. Those that only misbehave when they are asked are taken.
const HOSTILE: [(&str, i32, &str); 13] = [
    ("core-module", 7, "component"),
    ("wrong-world", 7, "slot"),
    ("log-provider", 7, "slot"),
    ("wasi-importer", 0, ""),
    ("schema-garbage", 7, "schema"),
    ("settings-loop", 4, "validate"),
    ("endless-loop", 0, ""),
    ("memory-grower", 0, ""),
    ("trap", 0, ""),
    ("garbage-output", 0, ""),
    ("giant-output", 0, ""),
    ("deep-recursion", 0, ""),
    ("composed", 0, ""),
];

pub(crate) fn tests() -> Vec<Trial> {
    let mut tests = vec![
        test("policy what is pushed is pulled", round_trip),
        test("policy equal content has an equal digest", reproducible),
        test("policy inspect reads the bytes", inspected),
        test("policy the legacy layout", legacy),
        test("policy check takes the defaults", defaults_are_taken),
        test("policy check says what is wrong with settings", settings),
        test("policy check of a reference", check_of_a_reference),
        test("policy cp keeps digests", copied),
        test("policy cp of an index", index_copied),
        test("policy save and load", saved),
        test("policy cp, save and load carry signatures", signatures),
        test("policy credentials of docker login and of helpers", credentials),
        test("policy a registry with an authority of its own", tls),
        test("policy exit codes", exit_codes),
        test("policy spoilt content is exit code 6", spoilt),
    ];
    tests.extend(wkg::tests());
    tests.extend(HOSTILE.map(|(name, code, step)| test(format!("policy check of {name}"), move || hostile(name, code, step))));
    tests
}

/// How `weir policy` ended, without the docker config of whoever runs the tests.
pub(crate) fn policy_in(env: &[(&str, &str)], args: &[&str]) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(crate::kube::AS_WEIR, "1").env("DOCKER_CONFIG", "/nowhere").env_remove("SOURCE_DATE_EPOCH").envs(env.iter().copied());
    command.current_dir(root()).arg("policy").args(args).stdin(Stdio::null()).output().unwrap()
}

fn policy(args: &[&str]) -> Output {
    policy_in(&[], args)
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("no signal")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What a command that succeeds prints.
fn text(args: &[&str]) -> String {
    let output = policy(args);
    assert_eq!(code(&output), 0, "{args:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

fn json_of(args: &[&str]) -> Value {
    serde_json::from_str(&text(&[args, &["-o", "json"]].concat())).unwrap()
}

fn path(path: &Path) -> String {
    path.display().to_string()
}

fn wasm(name: &str) -> String {
    path(&guest(name))
}

fn anonymous(test: &str) -> Option<Registry> {
    registry(test, &RegistryOptions::default())
}

fn round_trip() {
    let Some(registry) = anonymous("policy what is pushed is pulled") else { return };
    let (dir, file, reference) = (Scratch::new(), wasm("konnect-env"), registry.reference("team/policy", "1.0"));
    let pinned = text(&["push", &file, &reference]);
    let digest = registry.raw("team/policy").unwrap().pull_manifest("1.0").unwrap().digest;
    assert_eq!(pinned, format!("{reference}@{digest}"));
    assert_eq!(text(&["digest", &reference]), pinned);
    for (number, from) in [&reference, &pinned].into_iter().enumerate() {
        let target = path(&dir.0.join(format!("{number}.wasm")));
        assert_eq!(text(&["pull", from, "-o", &target]), pinned);
        assert_eq!(fs::read(&target).unwrap(), fs::read(&file).unwrap());
    }
    assert_eq!(policy(&["pull", &reference, "-o", "-"]).stdout, fs::read(&file).unwrap());
    // What the registry has is not sent again.
    let again = json_of(&["push", &file, &reference]);
    assert_eq!((&again["blobsSent"], &again["blobsPresent"], again["digest"].as_str()), (&json!(0), &json!(2), Some(digest.as_str())));
    let quiet = policy(&["push", &file, &reference, "--quiet"]);
    assert!(quiet.stderr.is_empty() && code(&quiet) == 0, "{}", stderr(&quiet));
}

fn reproducible() {
    let Some(registry) = anonymous("policy equal content has an equal digest") else { return };
    let file = wasm("konnect-env");
    let push = |env: &[(&str, &str)], repository: &str, more: &[&str]| {
        let reference = registry.reference(repository, "1");
        let output = policy_in(env, &[&["push", &file, &reference, "-o", "json"], more].concat());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["digest"].as_str().unwrap().to_owned()
    };
    let plain = push(&[], "a", &[]);
    assert_eq!(push(&[], "b", &[]), plain);
    assert_eq!(push(&[("SOURCE_DATE_EPOCH", "0")], "c", &[]), plain);
    let dated = push(&[("SOURCE_DATE_EPOCH", "1767225600")], "d", &[]);
    assert_ne!(dated, plain);
    assert_eq!(push(&[], "e", &["--created", "2026-01-01T00:00:00Z"]), dated);
    let noted = push(&[], "f", &["--annotation", "b=2", "--annotation", "a=1"]);
    assert_eq!(push(&[], "g", &["--annotation", "a=1", "--annotation", "b=2"]), noted);
    assert_ne!(noted, plain);
}

fn inspected() {
    let Some(registry) = anonymous("policy inspect reads the bytes") else { return };
    let (file, reference) = (wasm("two-slots"), registry.reference("team/policy", "1"));
    text(&["push", &file, &reference, "--annotation", "org.opencontainers.image.source=https://git.example"]);
    let report = json_of(&["inspect", &reference]);
    let manifest = registry.raw("team/policy").unwrap().pull_manifest("1").unwrap();
    assert_eq!(report["manifestDigest"], manifest.digest);
    assert_eq!(report["componentDigest"], text(&["digest", &file]));
    assert_eq!((&report["layout"], &report["artifactType"]), (&json!("cncf"), &json!("application/vnd.wasm.config.v0+json")));
    assert_eq!(report["slots"], json!(["konnect-env", "conflict-resolution"]));
    assert_eq!(report["contracts"], json!(["0.1.0"]));
    let has = |field: &str, name: &str| report[field].as_array().unwrap().iter().any(|found| found == name);
    assert!(has("imports", "weir:policy/log@0.1.0") && has("exports", "weir:policy/settings@0.1.0"), "{report}");
    assert!(report["producers"]["processed-by"].to_string().contains("wit-component"), "{report}");
    assert_eq!(report["annotations"], json!({"org.opencontainers.image.source": "https://git.example"}));
    assert_eq!(report["size"], fs::metadata(&file).unwrap().len());
    // The config says the same as the bytes.
    let manifest: Value = serde_json::from_slice(&manifest.bytes).unwrap();
    let config = registry.raw("team/policy").unwrap().pull_blob(manifest["config"]["digest"].as_str().unwrap()).unwrap();
    let config: Value = serde_json::from_slice(&config).unwrap();
    assert_eq!((&config["component"]["imports"], &config["component"]["exports"]), (&report["imports"], &report["exports"]));
    assert_eq!((&config["os"], &config["created"]), (&json!("wasip2"), &json!("1970-01-01T00:00:00Z")));
    assert_eq!(manifest["layers"][0]["annotations"]["org.opencontainers.image.title"], "two-slots.wasm");
    // People get the same without braces; a file has no manifest.
    let shown = text(&["inspect", &reference]);
    assert!(shown.contains("slots       konnect-env, conflict-resolution\n"), "{shown}");
    let of_file = json_of(&["inspect", &file]);
    assert!(of_file.get("manifestDigest").is_none() && of_file["layout"] == "bare", "{of_file}");
    assert_eq!(of_file["componentDigest"], report["componentDigest"]);
    assert!(text(&["inspect", &file, "-o", "yaml"]).contains("layout: bare"));
}

fn legacy() {
    let Some(registry) = anonymous("policy the legacy layout") else { return };
    let (file, reference) = (wasm("konnect-env"), registry.reference("team/policy", "1"));
    text(&["push", &file, &reference, "--layout", "legacy"]);
    let report = json_of(&["inspect", &reference]);
    assert_eq!((&report["layout"], &report["artifactType"]), (&json!("krustlet"), &json!("application/vnd.wasm.config.v1+json")));
    assert_eq!(report["componentDigest"], text(&["digest", &file]));
    assert_eq!(policy(&["pull", &reference, "-o", "-"]).stdout, fs::read(&file).unwrap());
}

/// The steps of a check, failed ones marked.
fn steps(output: &Output) -> Vec<(String, String)> {
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(output)));
    let word = |line: &Value, field: &str| line[field].as_str().unwrap_or_default().to_owned();
    report["steps"].as_array().unwrap().iter().map(|line| (word(line, "step"), word(line, "result"))).collect()
}

fn hostile(name: &str, expected: i32, failed: &str) {
    let output = policy(&["check", &wasm(name), "-o", "json"]);
    assert_eq!(code(&output), expected, "{name}: {} {}", String::from_utf8_lossy(&output.stdout), stderr(&output));
    let steps = steps(&output);
    let broken: Vec<&str> = steps.iter().filter(|(_, result)| result == "failed").map(|(step, _)| step.as_str()).collect();
    assert_eq!(broken, if failed.is_empty() { vec![] } else { vec![failed] }, "{name}: {steps:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["accepted"], expected == 0, "{name}");
    // Whatever slot is asked for, it is the same or worse.
    if failed == "slot" {
        let output = policy(&["check", &wasm(name), "--slot", "konnect-env"]);
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(code(&output) == 7 && shown.contains("failed      konnect-env exports: it does not export"), "{shown}");
    }
}

fn defaults_are_taken() {
    for name in [
        "konnect-env",
        "conflict-resolution",
        "plugin-packaging",
        "konnect-env-eu-proxy",
        "two-slots",
        "company-env",
        "plugin-allow-list",
        "first-owner",
    ] {
        let output = policy(&["check", &wasm(name), "-o", "json"]);
        assert_eq!(code(&output), 0, "{name}: {}", stderr(&output));
        let steps = steps(&output);
        assert!(steps.iter().all(|(_, result)| result == "ok"), "{name}: {steps:?}");
        let slots = steps.iter().filter(|(step, _)| step == "validate").count();
        assert_eq!(slots, if ["two-slots", "company-env"].contains(&name) { 2 } else { 1 }, "{name}");
    }
    let output = policy(&["check", &wasm("konnect-env"), "--slot", "plugin-packaging"]);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(code(&output) == 7 && shown.contains("weir:policy/plugin-packaging@0.1.0"), "{shown}");
}

fn settings() {
    let dir = Scratch::new();
    let file = wasm("konnect-env");
    let check = |content: &str| {
        let settings = path(&dir.write("settings.yaml", content));
        let output = policy(&["check", &file, "--settings", &settings]);
        (code(&output), String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output))
    };
    assert_eq!(check("vitals: true\n").0, 0);
    let (code, shown) = check("vitals: loud\n");
    assert!(code == 1 && shown.contains("failed      konnect-env settings: settings.vitals"), "{shown}");
    assert!(shown.contains("skipped     konnect-env validate"), "{shown}");
    let (code, shown) = check("extraEnv: {KONG_ROLE: x}\n");
    assert!(code == 1 && shown.contains("failed      konnect-env validate: extraEnv.KONG_ROLE"), "{shown}");
    let (code, shown) = check("a: [1");
    assert!(code == 2 && shown.contains("settings.yaml"), "{shown}");
}

fn check_of_a_reference() {
    let Some(registry) = anonymous("policy check of a reference") else { return };
    let reference = registry.reference("team/policy", "1");
    text(&["push", &wasm("wasi-importer"), &reference]);
    let output = policy(&["check", &reference]);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(code(&output), 0, "{shown}");
    assert!(shown.starts_with("ok          artifact: cncf sha256:"), "{shown}");
    assert!(shown.contains("ok          konnect-env imports: wasi: stubbed"), "{shown}");
    assert!(text(&["inspect", &reference]).contains("wasi        stubbed\n"));
    let dir = Scratch::new();
    let output = policy(&["check", &path(&dir.write("later.wasm", without_stub()))]);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        code(&output) == 7 && shown.contains("failed      konnect-env imports: it imports of WASI wasi:cli/environment@0.3.0"),
        "{shown}"
    );
    // What no tool of ours pushes: a core module.
    let raw = registry.raw("team/policy").unwrap();
    let layer = raw.blob("application/wasm", &fs::read(guest("core-module")).unwrap()).unwrap();
    raw.image("module", &[layer]).unwrap();
    let output = policy(&["check", &registry.reference("team/policy", "module"), "-o", "json"]);
    assert_eq!(code(&output), 7);
    assert_eq!(steps(&output).iter().filter(|(_, result)| result == "failed").count(), 1);
    assert!(String::from_utf8_lossy(&output.stdout).contains("core module"));
    let output = policy(&["pull", &registry.reference("team/policy", "module"), "-o", "/dev/null"]);
    assert!(code(&output) == 7 && stderr(&output).contains("core module"), "{}", stderr(&output));
}

fn copied() {
    let Some(registry) = anonymous("policy cp keeps digests") else { return };
    let other = Registry::start(&RegistryOptions::default()).unwrap();
    let from = registry.reference("team/policy", "1");
    let pinned = text(&["push", &wasm("konnect-env"), &from]);
    let to = other.reference("mirror/policy", "one");
    let report = json_of(&["cp", &from, &to]);
    assert_eq!(report["digest"].as_str(), pinned.split_once('@').map(|(_, digest)| digest));
    let manifest = |registry: &Registry, repository: &str, tag: &str| registry.raw(repository).unwrap().pull_manifest(tag).unwrap();
    assert_eq!(manifest(&registry, "team/policy", "1"), manifest(&other, "mirror/policy", "one"));
    assert_eq!(policy(&["pull", &to, "-o", "-"]).stdout, fs::read(guest("konnect-env")).unwrap());
    // By digest, and where it is already.
    let report = json_of(&["cp", &pinned, &other.reference("mirror/policy", "two")]);
    assert_eq!((&report["blobsSent"], &report["blobsPresent"]), (&json!(0), &json!(2)));
}

/// An index of two images, as buildx makes them.
fn push_index(registry: &Registry, repository: &str, tag: &str) -> String {
    let raw = registry.raw(repository).unwrap();
    let image = |name: &str, os: &str| {
        let layer = raw.blob("application/wasm", &fs::read(guest(name)).unwrap()).unwrap();
        let digest = raw.image(os, &[layer]).unwrap();
        let size = raw.pull_manifest(os).unwrap().bytes.len();
        let media_type = "application/vnd.oci.image.manifest.v1+json";
        json!({"mediaType": media_type, "digest": digest, "size": size, "platform": {"os": os, "architecture": "wasm"}})
    };
    let entries = [image("konnect-env", "wasip2"), image("konnect-env-eu-proxy", "wasip1")];
    let index = json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": entries});
    raw.manifest(tag, OCI_INDEX, index.to_string().as_bytes()).unwrap()
}

fn index_copied() {
    let Some(registry) = anonymous("policy cp of an index") else { return };
    let digest = push_index(&registry, "team/policy", "index");
    let (from, to) = (registry.reference("team/policy", "index"), registry.reference("mirror/policy", "index"));
    assert_eq!(json_of(&["cp", &from, &to])["digest"], digest);
    let report = json_of(&["inspect", &to]);
    assert_eq!(report["indexDigest"], digest);
    assert_eq!(report["componentDigest"], text(&["digest", &wasm("konnect-env")]));
    let raw = registry.raw("mirror/policy").unwrap();
    assert_eq!(raw.pull_manifest("index").unwrap().media_type, OCI_INDEX);
    // All of it is there, not only what this host would run.
    let index: Value = serde_json::from_slice(&raw.pull_manifest("index").unwrap().bytes).unwrap();
    for entry in index["manifests"].as_array().unwrap() {
        assert!(raw.pull_manifest(entry["digest"].as_str().unwrap()).is_ok(), "{entry}");
    }
}

fn saved() {
    let Some(registry) = anonymous("policy save and load") else { return };
    let dir = Scratch::new();
    text(&["push", &wasm("konnect-env"), &registry.reference("team/policy", "image")]);
    push_index(&registry, "team/policy", "index");
    for tag in ["image", "index"] {
        let from = registry.reference("team/policy", tag);
        let files = ["1", "2"].map(|number| path(&dir.0.join(format!("{tag}-{number}.tar"))));
        let pinned = files.each_ref().map(|file| text(&["save", &from, file]));
        assert!(pinned[0] == pinned[1] && pinned[0].starts_with(&format!("{from}@sha256:")), "{pinned:?}");
        assert_eq!(fs::read(&files[0]).unwrap(), fs::read(&files[1]).unwrap(), "{tag}");
        let to = registry.reference("loaded/policy", tag);
        let loaded = text(&["load", &files[0], &to]);
        assert_eq!(loaded.split_once('@').map(|(_, digest)| digest), pinned[0].split_once('@').map(|(_, digest)| digest));
        assert_eq!(policy(&["pull", &to, "-o", "-"]).stdout, fs::read(guest("konnect-env")).unwrap());
        // The file can be looked at before it is loaded.
        assert_eq!(json_of(&["inspect", &files[0]])["componentDigest"], json_of(&["inspect", &to])["componentDigest"]);
        assert_eq!(code(&policy(&["check", &files[0]])), 0, "{tag}");
    }
    let mut bytes = fs::read(dir.0.join("image-1.tar")).unwrap();
    let magic = b"\0asm\x0d\0\x01\0";
    let at = bytes.windows(magic.len()).position(|window| window == magic).unwrap();
    bytes[at + 100] ^= 1;
    let output = policy(&["load", &path(&dir.write("spoilt.tar", bytes)), &registry.reference("loaded/policy", "spoilt")]);
    assert!(code(&output) == 6 && stderr(&output).contains("does not have the digest"), "{}", stderr(&output));
    let output = policy(&["load", &wasm("konnect-env"), &registry.reference("loaded/policy", "x")]);
    assert_eq!(code(&output), 2, "{}", stderr(&output));
}

/// Signs what a digest names, in both forms of cosign and in the way of a registry without the API of referrers. The key of each form.
fn signed(registry: &Registry, repository: &str, digest: &str) -> [rcgen::KeyPair; 2] {
    const SIMPLE: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
    const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
    const IMAGE: &str = "application/vnd.oci.image.manifest.v1+json";
    let raw = registry.raw(repository).unwrap();
    let (simple, bundle) = (weir_sigstore::key().unwrap(), weir_sigstore::key().unwrap());
    let empty = raw.blob("application/vnd.oci.empty.v1+json", b"{}").unwrap().json();
    let tag = digest.replace(':', "-");

    let payload = weir_sigstore::payload(digest);
    let (annotations, _) = weir_sigstore::signature_annotations(&simple, &payload, None).unwrap();
    let mut layer = raw.blob(SIMPLE, &payload).unwrap().json();
    layer["annotations"] = annotations;
    let manifest = json!({"schemaVersion": 2, "mediaType": IMAGE, "config": empty.clone(), "layers": [layer]});
    raw.manifest(&format!("{tag}.sig"), IMAGE, manifest.to_string().as_bytes()).unwrap();

    let content = weir_sigstore::Signed::new(&bundle, digest, None).unwrap().bundle(&[], &[]);
    let layer = raw.blob(BUNDLE, content.to_string().as_bytes()).unwrap().json();
    let subject = json!({"mediaType": IMAGE, "digest": digest, "size": raw.pull_manifest(digest).unwrap().bytes.len()});
    let manifest =
        json!({"schemaVersion": 2, "mediaType": IMAGE, "artifactType": BUNDLE, "config": empty, "layers": [layer], "subject": subject})
            .to_string();
    let listed = raw.manifest("bundle", IMAGE, manifest.as_bytes()).unwrap();
    let entry = json!({"mediaType": IMAGE, "digest": listed, "size": manifest.len(), "artifactType": BUNDLE});
    let index = json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [entry]});
    raw.manifest(&tag, OCI_INDEX, index.to_string().as_bytes()).unwrap();
    [simple, bundle]
}

fn signatures() {
    let Some(registry) = anonymous("policy cp, save and load carry signatures") else { return };
    let other = Registry::start(&RegistryOptions::default()).unwrap();
    let (dir, from) = (Scratch::new(), registry.reference("team/policy", "1"));
    let pinned = text(&["push", &wasm("konnect-env"), &from]);
    let digest = pinned.split_once('@').unwrap().1;
    let [simple, bundle] = signed(&registry, "team/policy", digest).map(|key| key.public_key_pem());
    let (simple, bundle) = (path(&dir.write("simple.pub", simple)), path(&dir.write("bundle.pub", bundle)));
    let verified = |reference: &str| code(&policy(&["verify", reference, "--all", "--key", &simple, "--key", &bundle]));
    assert_eq!(verified(&from), 0);
    let forms = |report: &Value| -> Vec<String> {
        let all = report["signatures"].as_array().unwrap_or_else(|| panic!("{report}"));
        assert!(all.iter().all(|s| s["of"] == digest && s["digest"].as_str().unwrap().starts_with("sha256:")), "{report}");
        all.iter().map(|s| s["form"].as_str().unwrap().to_owned()).collect()
    };

    let to = other.reference("mirror/policy", "1");
    assert_eq!(forms(&json_of(&["cp", &from, &to])), ["simple", "bundle"]);
    assert_eq!(verified(&to), 0);
    let said = stderr(&policy(&["cp", &from, &other.reference("mirror/policy", "again")]));
    assert_eq!(said.matches("signature carried: ").count(), 2, "{said}");
    let bare = other.reference("bare/policy", "1");
    assert_eq!(forms(&json_of(&["cp", &from, &bare, "--no-signatures"])), [] as [&str; 0]);
    assert_eq!(verified(&bare), 6);

    let (file, without) = (path(&dir.0.join("signed.tar")), path(&dir.0.join("bare.tar")));
    assert_eq!(forms(&json_of(&["save", &from, &file])), ["simple", "bundle"]);
    assert_eq!(forms(&json_of(&["save", &from, &without, "--no-signatures"])), [] as [&str; 0]);
    // Beside signatures it is still the one component.
    assert_eq!(json_of(&["inspect", &file])["componentDigest"], json_of(&["inspect", &from])["componentDigest"]);
    for (file, flags, expected) in [(&file, vec![], 0), (&file, vec!["--no-signatures"], 6), (&without, vec![], 6)] {
        let to =
            other.reference(&format!("loaded/{}-{}", expected, flags.len()), if expected == 6 && flags.is_empty() { "bare" } else { "1" });
        let loaded = json_of(&[&["load", file, &to], flags.as_slice()].concat());
        assert_eq!(forms(&loaded).len(), if expected == 0 { 2 } else { 0 });
        assert_eq!((loaded["digest"].as_str(), verified(&to)), (Some(digest), expected), "{file}");
    }
}

fn credentials() {
    let options = RegistryOptions { credentials: Some(User::new("kong", "top-secret")), ..RegistryOptions::default() };
    let Some(registry) = registry("policy credentials of docker login and of helpers", &options) else { return };
    let (dir, file, reference) = (Scratch::new(), wasm("konnect-env"), registry.reference("team/policy", "1"));
    let output = policy(&["push", &file, &reference]);
    assert!(code(&output) == 5 && stderr(&output).contains("docker login"), "{}", stderr(&output));
    // As `docker login` leaves it.
    dir.write("docker/config.json", registry.docker_config().unwrap().to_string());
    let docker = path(&dir.0.join("docker"));
    let output = policy_in(&[("DOCKER_CONFIG", &docker)], &["push", &file, &reference]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let config = path(&dir.0.join("docker/config.json"));
    assert_eq!(code(&policy(&["digest", &reference, "--authfile", &config])), 0);
    // With a helper, for one registry and for all.
    let helper = "#!/bin/sh\nread -r server\n[ \"$server\" = \"$WEIR_TEST_SERVER\" ] || { echo 'credentials not found in native keychain'; exit 1; }\nprintf '{\"ServerURL\":\"%s\",\"Username\":\"kong\",\"Secret\":\"top-secret\"}' \"$server\"\n";
    let program = dir.write("bin/docker-credential-weir-test", helper);
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let search = format!("{}:{}", path(program.parent().unwrap()), std::env::var("PATH").unwrap_or_default());
    let host = registry.host();
    for config in [json!({"credHelpers": {host.as_str(): "weir-test"}}), json!({"auths": {host.as_str(): {}}, "credsStore": "weir-test"})] {
        let config = path(&dir.write("helped.json", config.to_string()));
        let env = [("PATH", search.as_str()), ("WEIR_TEST_SERVER", host.as_str())];
        let output = policy_in(&env, &["digest", &reference, "--authfile", &config]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        // One that knows nothing leaves nobody.
        let output =
            policy_in(&[("PATH", search.as_str()), ("WEIR_TEST_SERVER", "another")], &["digest", &reference, "--authfile", &config]);
        assert!(code(&output) == 5 && stderr(&output).contains("wants credentials"), "{}", stderr(&output));
    }
    let config = path(&dir.write("helped.json", json!({"credsStore": "there-is-none"}).to_string()));
    let output = policy(&["digest", &reference, "--authfile", &config]);
    assert!(code(&output) == 2 && stderr(&output).contains("docker-credential-there-is-none cannot be run"), "{}", stderr(&output));
    // A wrong password is told as such and not shown.
    let wrong = json!({"auths": {host.as_str(): {"username": "kong", "password": "wrong-secret"}}});
    let config = path(&dir.write("wrong.json", wrong.to_string()));
    let output = policy(&["push", &file, &reference, "--authfile", &config]);
    let said = stderr(&output);
    assert!(code(&output) == 5 && said.contains("refuses the credentials") && !said.contains("wrong-secret"), "{said}");
}

fn tls() {
    let options = RegistryOptions { tls: true, ..RegistryOptions::default() };
    let Some(registry) = registry("policy a registry with an authority of its own", &options) else { return };
    let (dir, file, reference) = (Scratch::new(), wasm("konnect-env"), registry.reference("team/policy", "1"));
    dir.write("ca.pem", registry.ca_pem().unwrap());
    // Loopback is spoken to in plain HTTP unless the file names it.
    let write = |more: &str| {
        let file = format!("apiVersion: weir.dev/v1alpha1\nkind: Registries\nregistries:\n- prefix: {}\n{more}", registry.host());
        path(&dir.write("registries.yaml", file))
    };
    let output = policy(&["push", &file, &reference, "--registries-file", &write("")]);
    assert!(code(&output) == 5 && stderr(&output).contains("--registry-ca"), "{}", stderr(&output));
    let with_ca = write("  caFile: ca.pem\n");
    let pinned = text(&["push", &file, &reference, "--registries-file", &with_ca]);
    let output = policy(&["digest", &reference, "--registries-file", &write(""), "--registry-ca", &path(&dir.0.join("ca.pem"))]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim_end(), pinned, "{}", stderr(&output));
}

fn exit_codes() {
    let file = wasm("konnect-env");
    for (args, word) in [
        (
            vec!["push", &file, "registry.example/x@sha256:1111111111111111111111111111111111111111111111111111111111111111"],
            "names a digest",
        ),
        (vec!["push", "missing.wasm", "localhost:1/x:1"], "missing.wasm"),
        (vec!["push", &file, "localhost:1/x:1", "--annotation", "=x"], "annotation"),
        (vec!["push", &file, "localhost:1/x:1", "--annotation", "a=1", "--annotation", "a=2"], "twice"),
        (vec!["push", &file, "localhost:1/x:1", "--created", "yesterday"], "yesterday"),
        (vec!["pull", "localhost:1/X:1", "-o", "x"], "lower case"),
        (vec!["inspect", "policy.wsam"], "no such file"),
        (vec!["inspect", "missing.wasm"], "missing.wasm"),
        (vec!["check", &file, "--slot", "konnect"], "konnect-env, conflict-resolution"),
        (vec!["digest", "localhost:1/x:1", "--authfile", "missing.json"], "missing.json"),
        (vec![], "Commands:"),
    ] {
        let output = policy(&args);
        assert_eq!(code(&output), 2, "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(word), "{args:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{args:?}");
    }
    let output = policy(&["push", &wasm("core-module"), "localhost:1/x:1"]);
    assert!(code(&output) == 7 && stderr(&output).contains("wasm-tools component new"), "{}", stderr(&output));
    let Some(mut registry) = anonymous("policy exit codes") else { return };
    let reference = registry.reference("team/policy", "none");
    for args in
        [vec!["inspect", &reference], vec!["digest", &reference], vec!["check", &reference], vec!["pull", &reference, "-o", "/dev/null"]]
    {
        let output = policy(&args);
        assert!(code(&output) == 5 && stderr(&output).contains("check repository and tag"), "{args:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{args:?}");
    }
    registry.stop();
    let output = policy(&["digest", &reference]);
    assert!(code(&output) == 5 && stderr(&output).contains("cannot be reached"), "{}", stderr(&output));
}

fn spoilt() {
    let Some(registry) = anonymous("policy spoilt content is exit code 6") else { return };
    let (dir, reference) = (Scratch::new(), registry.reference("team/policy", "1"));
    let report = json_of(&["push", &wasm("konnect-env"), &reference]);
    let blob = registry.blob_file(report["componentDigest"].as_str().unwrap()).unwrap();
    let mut bytes = fs::read(&blob).unwrap();
    bytes[100] ^= 1;
    fs::write(&blob, bytes).unwrap();
    let target = dir.0.join("policy.wasm");
    let output = policy(&["pull", &reference, "-o", &path(&target)]);
    assert!(code(&output) == 6 && stderr(&output).contains("instead of sha256:"), "{}", stderr(&output));
    assert!(!target.exists(), "nothing is written of what is wrong");
    assert_eq!(code(&policy(&["check", &reference])), 6);
    assert_eq!(code(&policy(&["cp", &reference, &registry.reference("mirror/policy", "1")])), 6);
}
