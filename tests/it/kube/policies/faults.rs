//! Registries that lie, Secrets and CAs that are wrong, disks that are full, and files of the cache that somebody changed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use libtest_mimic::Trial;
use serde_json::json;
use weir_testkit::{
    liar::{Answer, Liar},
    registry::{Descriptor, Registry, RegistryOptions},
    skipped,
};

use super::{ACTIVE, active, gateways, image, is_active, policy, policy_with, push, variable, variant};
use crate::kube::{
    api::{POLICY, SECRET},
    install::{Running, weir},
    labs::{Lab, lab},
    ns::{Ns, READY},
    plugins::{
        deployment,
        shop::{Shop, pull_secret},
    },
    shape::{condition, holds},
};

pub(super) fn tests() -> Vec<Trial> {
    vec![
        lab("policies-lies", lies),
        lab("policies-secrets", secrets),
        lab("policies-authorities", authorities),
        lab("policies-spoilt", spoilt),
        lab("policies-full", full),
    ]
}

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const WASM: &str = "application/wasm";
const HUGE: u64 = 10 << 30;
const STOPPED: Duration = Duration::from_secs(20);
/// A read without an answer is given up after 30 s.
const GIVEN_UP: Duration = Duration::from_secs(60);

/// A manifest of one component, whose layer may be said to be of any size.
fn manifest(layer: &Descriptor, size: u64) -> Vec<u8> {
    let config = Descriptor::of("application/vnd.wasm.config.v0+json", b"{}");
    let mut told = layer.json();
    told["size"] = size.into();
    json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config.json(), "layers": [told]}).to_string().into_bytes()
}

/// What each repository of the liar gives: the good manifest, and another blob than it names.
fn answer(path: &str, wasm: &[u8]) -> Answer {
    let (layer, size) = (Descriptor::of(WASM, wasm), wasm.len() as u64);
    let mut parts = path.trim_start_matches("/v2/").split('/');
    let (repository, what) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    match (repository, what) {
        ("silent", _) => Answer::Silence,
        ("huge", "manifests") => Answer::Good(MANIFEST, manifest(&layer, HUGE)),
        (_, "manifests") => Answer::Good(MANIFEST, manifest(&layer, size)),
        ("other", "blobs") => {
            let mut other = wasm.to_vec();
            other.reverse();
            Answer::Good(WASM, other)
        }
        ("half", "blobs") => Answer::Half(WASM, wasm.to_vec()),
        ("short", "blobs") => Answer::Good(WASM, wasm[..wasm.len() / 2].to_vec()),
        ("endless" | "huge", "blobs") => Answer::Endless,
        ("metadata", "blobs") => Answer::Redirect("https://169.254.169.254/latest/meta-data/".into()),
        (_, _) => Answer::Missing,
    }
}

async fn lies(lab: Lab) {
    let system = lab.system();
    let Some(shop) = Shop::open(&lab) else { return };
    let wasm = variant("konnect-env", 1);
    let liar = Liar::start(move |path| answer(path, &wasm)).unwrap();
    let good = push(&shop, "konnect", "v1", &variant("konnect-env", 2));
    let operator = shop.operator(&lab, &["--insecure-registry", liar.host()]);
    operator.wait_leading().await;
    system.apply(&policy("kept", &shop.image("konnect", "v1"))).await;
    active(&system, "kept", &good.layer).await;

    let of = |repository: &str| format!("{}/{repository}:v1", liar.host());
    system.apply(&policy("silent", &of("silent"))).await;
    let lies: [(&str, &str, &[&str]); 6] = [
        ("other", "Unusable", &["instead of", "corrupts it"]),
        ("half", "Unreachable", &["cannot be reached"]),
        ("short", "Unusable", &["its manifest declares", "push it again"]),
        ("endless", "Unusable", &["more than", "what its manifest declares"]),
        ("huge", "Unusable", &["10240 MiB", "at most 32 MiB are allowed"]),
        ("metadata", "Unusable", &["169.254.169.254", "not dialled"]),
    ];
    for (repository, reason, words) in lies {
        let before = liar.sent();
        system.edit(POLICY, "kept", image(&of(repository))).await;
        let object = system.says(POLICY, "kept", ["Resolved", "False", reason], words, GIVEN_UP).await;
        assert_eq!(object["status"]["active"]["layerDigest"], good.layer.as_str(), "{repository}: {:#}", object["status"]);
        let sent = liar.sent() - before;
        assert!(sent < 8 << 20, "{repository}: {sent} bytes were read");
    }
    let object = system.says(POLICY, "silent", ["Resolved", "False", "Unreachable"], &["takes longer than", "slow"], GIVEN_UP).await;
    assert!(object["status"]["active"].is_null(), "{:#}", object["status"]);
    system.edit(POLICY, "kept", image(&shop.image("konnect", "v1"))).await;
    active(&system, "kept", &good.layer).await;
}

/// A password that is changed in the registry, then in the Secret: nobody touches the policy.
async fn secrets(lab: Lab) {
    let system = lab.system();
    let Some(mut shop) = Shop::private(&lab) else { return };
    let host = shop.registry.host();
    let (_, first) = signed_in(&shop, 1);
    let operator = shop.operator(&lab, &[]);
    operator.wait_leading().await;
    let wrong = json!({"auths": {&host: {"username": "kong", "password": "pssst"}}});
    system.apply(&pull_secret("pull", &wrong.to_string())).await;
    let with = json!({"spec": {"source": {"oci": {"pullSecretRef": {"name": "pull"}}}}});
    system.apply(&policy_with("konnect", &shop.image("konnect", "v1"), with)).await;
    let object = system.says(POLICY, "konnect", ["Resolved", "False", "Unauthorized"], &["refuses the credentials"], ACTIVE).await;
    assert!(!object["status"].to_string().contains("pssst"), "{:#}", object["status"]);
    system.edit(SECRET, "pull", json!({"stringData": shop.secret("pull")["stringData"]})).await;
    active(&system, "konnect", &first).await;

    shop.registry.set_password("second-password").unwrap();
    let (tag, second) = signed_in(&shop, 2);
    system.edit(POLICY, "konnect", image(&shop.image("konnect", &tag))).await;
    let object = system.says(POLICY, "konnect", ["Resolved", "False", "Unauthorized"], &["refuses the credentials"], ACTIVE).await;
    assert_eq!(object["status"]["active"]["layerDigest"], first.as_str());
    system.edit(SECRET, "pull", json!({"stringData": shop.secret("pull")["stringData"]})).await;
    active(&system, "konnect", &second).await;
    let log = operator.log();
    assert!(!log.contains("pssst") && !log.contains("first-password") && !log.contains("second-password"), "the log tells a password");
}

/// Pushes with the password of the registry, by its own command; the tag and the digest of the component.
fn signed_in(shop: &Shop, number: usize) -> (String, String) {
    let (wasm, tag) = (variant("konnect-env", number), format!("v{number}"));
    let file = shop.scratch().join("policy.wasm");
    fs::write(&file, &wasm).unwrap();
    let config = shop.scratch().join("config.json");
    fs::write(&config, shop.registry.docker_config().unwrap().to_string()).unwrap();
    let done =
        weir(&["policy", "push", &file.display().to_string(), &shop.image("konnect", &tag), "--authfile", &config.display().to_string()]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    (tag, Descriptor::of(WASM, &wasm).digest)
}

/// A registry with a certificate of its own: without its CA, with another one, and with it.
async fn authorities(lab: Lab) {
    let system = lab.system();
    let Some(shop) = Shop::encrypted(&lab) else { return };
    let wasm = variant("konnect-env", 1);
    let file = shop.scratch().join("policy.wasm");
    fs::write(&file, &wasm).unwrap();
    let (host, name) = (shop.registry.host(), shop.image("konnect", "v1"));
    // On loopback a registry has TLS only where a file says so.
    let settings = shop.scratch().join("registries.yaml");
    fs::write(&settings, format!("apiVersion: weir.dev/v1alpha1\nkind: Registries\nregistries:\n- prefix: {host}\n")).unwrap();
    let settings = settings.display().to_string();
    let ca = shop.scratch().join("ca.crt");
    fs::write(&ca, shop.registry.ca_pem().unwrap()).unwrap();
    let (file, ca) = (file.display().to_string(), ca.display().to_string());
    let done = weir(&["policy", "push", &file, &name, "--registries-file", &settings, "--registry-ca", &ca]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let operator = lab.operator("weir", &["--registries-file", &settings, "--allowed-registries", &host]);
    operator.wait_leading().await;
    let bundle =
        |name: &str, pem: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"ca.crt": pem}});
    let other = Registry::start(&RegistryOptions { tls: true, credentials: None }).unwrap();
    system.apply(&bundle("theirs", other.ca_pem().unwrap())).await;
    system.apply(&bundle("none", "not PEM")).await;
    system.apply(&policy("konnect", &name)).await;
    system.says(POLICY, "konnect", ["Resolved", "False", "Unusable"], &["no trusted connection"], ACTIVE).await;
    let trusting = |name: &str| json!({"spec": {"source": {"oci": {"caBundleRef": {"name": name}}}}});
    system.edit(POLICY, "konnect", trusting("none")).await;
    system.says(POLICY, "konnect", ["Resolved", "False", "CaInvalid"], &["spec.source.oci.caBundleRef", "no certificate"], ACTIVE).await;
    system.edit(POLICY, "konnect", trusting("theirs")).await;
    system.says(POLICY, "konnect", ["Resolved", "False", "Unusable"], &["no trusted connection"], ACTIVE).await;
    // Mended in place: the policy says nothing new, and still it is noticed.
    system.apply(&bundle("theirs", shop.registry.ca_pem().unwrap())).await;
    let digest = Descriptor::of(WASM, &wasm).digest;
    let noticed = Duration::from_secs(45);
    system
        .eventually(noticed, "the bundle that was mended is used", async || {
            let found = system.get(POLICY, "konnect").await?;
            holds(found["status"]["active"]["layerDigest"] == digest.as_str(), || found["status"].to_string())
        })
        .await;
}

/// Every file below a directory.
fn files(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, out) } else { out.push(path) }
    }
}

fn of_kind(cache: &Path, extension: &str) -> Vec<PathBuf> {
    let mut all = Vec::new();
    files(cache, &mut all);
    all.retain(|path| path.extension().is_some_and(|found| found == extension));
    assert!(!all.is_empty(), "no .{extension} below {}", cache.display());
    all
}

/// What lies on the disk is believed only as far as its digests go: changed, exchanged, or of another version of the operator.
async fn spoilt(lab: Lab) {
    let (ns, system) = (&lab.ns, lab.system());
    let Some(mut shop) = Shop::open(&lab) else { return };
    let first = push(&shop, "konnect", "v1", &variant("konnect-env-eu-proxy", 71));
    let second = push(&shop, "other", "v1", &variant("konnect-env", 72));
    let cache = shop.scratch();
    fs::set_permissions(&cache, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let folder = cache.display().to_string();
    let mut operator = shop.operator(&lab, &["--cache-dir", &folder]);
    operator.wait_leading().await;
    let still = || json!({"spec": {"rollout": {"resync": "0s"}}});
    system.apply(&policy_with("konnect", &shop.image("konnect", "v1"), still())).await;
    system.apply(&policy_with("other", &shop.image("other", "v1"), json!({"spec": {"rollout": {"resync": "0s"}, "priority": -1}}))).await;
    active(&system, "konnect", &first.layer).await;
    system
        .eventually(ACTIVE, "the other is there too", async || {
            let object = system.get(POLICY, "other").await?;
            holds(object["status"]["active"]["layerDigest"] == second.layer.as_str(), || format!("{:#}", object["status"]))
        })
        .await;
    gateways(ns, &["gw"]).await;
    ns.ready("gw", READY).await;

    let answers = async |operator: &mut Running, gateway: &str| {
        operator.wait_leading().await;
        ns.apply(&super::hybrid(gateway)).await;
        ns.ready(gateway, READY).await;
        assert!(variable(ns, gateway, "KONG_PROXY_SERVER").await.unwrap().is_some(), "{gateway}: the first one answers");
        is_active(&system.get(POLICY, "konnect").await.unwrap(), &first.layer).unwrap();
    };
    // Native code that is spoilt is made again, without the registry.
    shop.registry.stop();
    operator.stop(STOPPED);
    for file in of_kind(&cache, "cwasm") {
        let mut bytes = fs::read(&file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xff;
        fs::write(&file, bytes).unwrap();
    }
    operator.stop_and_restart();
    answers(&mut operator, "native").await;
    // A newer operator had its own way to lay files out, and this one comes after it: what it does not know it leaves alone.
    let newer = cache.join("ffffffffffffffff");
    fs::create_dir(&newer).unwrap();
    fs::write(newer.join("code.cwasm"), "of a newer version").unwrap();
    // Two components that are exchanged: each has another digest than its name.
    operator.stop_and_restart();
    answers(&mut operator, "newer").await;
    operator.stop(STOPPED);
    let components = of_kind(&cache, "wasm");
    assert_eq!(components.len(), 2, "{components:?}");
    let spare = cache.join("spare");
    fs::rename(&components[0], &spare).unwrap();
    fs::rename(&components[1], &components[0]).unwrap();
    fs::rename(&spare, &components[1]).unwrap();
    for file in of_kind(&cache, "cwasm") {
        fs::remove_file(file).unwrap();
    }
    shop.registry.resume().unwrap();
    operator.stop_and_restart();
    answers(&mut operator, "exchanged").await;
    // With the registry away as well nothing of it can run, and the objects say so; what is deployed stays.
    operator.stop(STOPPED);
    for file in of_kind(&cache, "wasm").into_iter().chain(of_kind(&cache, "cwasm")) {
        fs::write(file, "spoilt").unwrap();
    }
    shop.registry.stop();
    let template = deployment(ns, "gw").await["spec"]["template"].clone();
    operator.stop_and_restart();
    operator.wait_leading().await;
    system
        .eventually(READY, "what does not run is told", async || {
            let object = system.get(POLICY, "konnect").await?;
            let ready = condition(&object, "Ready").cloned().unwrap_or_default();
            holds(ready["status"] == "False" && ready["message"].to_string().contains("cannot be reached"), || {
                format!("{:#}", object["status"])
            })
        })
        .await;
    ns.always(Duration::from_secs(2), "the pods keep their environment", async || {
        let now = deployment(ns, "gw").await["spec"]["template"].clone();
        holds(now == template, || format!("{now:#}"))
    })
    .await;
    shop.registry.resume().unwrap();
    active(&system, "konnect", &first.layer).await;
}

/// A disk with no room: policies come, run and are swapped from memory.
async fn full(lab: Lab) {
    let system = lab.system();
    let Some(shop) = Shop::open(&lab) else { return };
    let Some(disk) = Disk::mount(&shop.scratch()) else { return };
    let folder = disk.dir.join("cache");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let first = push(&shop, "konnect", "v1", &variant("konnect-env", 81));
    let second = push(&shop, "konnect", "v2", &variant("konnect-env", 82));
    let folder = folder.display().to_string();
    let mut operator = shop.operator(&lab, &["--cache-dir", &folder]);
    operator.wait_leading().await;
    disk.fill();
    system.apply(&policy("konnect", &shop.image("konnect", "v1"))).await;
    active(&system, "konnect", &first.layer).await;
    system.edit(POLICY, "konnect", image(&shop.image("konnect", "v2"))).await;
    active(&system, "konnect", &second.layer).await;
    assert!(operator.log().contains("No space left"), "the log says what is wrong with the cache");
    // Over a restart it has to be pulled again.
    operator.stop_and_restart();
    operator.wait_leading().await;
    runs(&system, &operator, &second.layer).await;
}

async fn runs(system: &Ns, operator: &Running, layer: &str) {
    let line = format!("policy konnect-env {}/konnect: ok: {layer}", system.name);
    system
        .eventually(ACTIVE, "it runs again", async || {
            let (_, text) = operator.probe("/readyz?verbose").await?;
            holds(text.contains(&line), || text)
        })
        .await;
}

/// A small file system of its own.
struct Disk {
    dir: PathBuf,
}

impl Disk {
    fn mount(dir: &Path) -> Option<Self> {
        let done = Command::new("mount").args(["-t", "tmpfs", "-o", "size=256k", "weir-full"]).arg(dir).output().unwrap();
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
            skipped("kube policies full", &format!("no file system can be mounted here: {said}")).unwrap();
            return None;
        }
        Some(Self { dir: dir.to_owned() })
    }

    /// Until nothing more can be written.
    fn fill(&self) {
        let error = fs::write(self.dir.join("ballast"), vec![0; 1 << 20]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull, "{error}");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // The operator may still have a directory of it open.
        let _ = Command::new("umount").arg("--lazy").arg(&self.dir).status();
    }
}
