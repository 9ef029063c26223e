//! `cargo xtask bench`: cold compile, AOT load, a fresh-instance call, a whole plan, many DataPlanes, peak memory. Prints figures beside
//! the aims; it is no test and fails on nothing but an error.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a benchmark may stop at the first thing that is not as it should be"
)]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use futures::executor::block_on;
use serde_json::{Value, json};
use weir_core::{
    dataplane::{
        self,
        snapshot::{Children, Lookup, Operator, Snapshot},
    },
    decisions::Sealing,
    konnect::Extension,
    policy::{KonnectEnv, Policies, Policy, konnect_env},
};
use weir_host::{
    layer::{Memo, MemoSize},
    wasm::{Config, Limits, Wasm},
};

const CALLS: usize = 20_000;
const PLANS: usize = 5_000;
const FLEET: usize = 1_000;

fn main() {
    if cfg!(debug_assertions) {
        eprintln!("bench: this is not a release build; the figures mean little");
    }
    println!("{:<58} {:>12} {:>12}", "what", "measured", "aim");
    let bytes = fs::read(root().join("target/guests/konnect-env.wasm")).expect("run `cargo xtask guests`");
    compile(&bytes);
    let host = Wasm::new(Config::default()).unwrap();
    let konnect = host.load::<KonnectEnv>(&bytes, "bench".into(), Value::Null, Limits::default()).unwrap();
    calls(konnect.as_ref());
    hostile(&host, konnect.as_ref());
    let defaults = host.defaults().unwrap();
    plans(&defaults);
    fleet(&defaults);
    line("peak resident memory of this process", &format!("{} MiB", peak() >> 20), "");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn line(what: &str, measured: &str, aim: &str) {
    println!("{what:<58} {measured:>12} {aim:>12}");
}

fn micros(duration: Duration) -> String {
    format!("{:.1} µs", duration.as_secs_f64() * 1e6)
}

fn millis(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1e3)
}

/// Minimum over a few hosts: each starts with nothing in memory.
fn compile(bytes: &[u8]) {
    let cache = std::env::temp_dir().join(format!("weir-bench-{}", std::process::id()));
    let load = |config: Config| {
        let host = Wasm::new(config).unwrap();
        let start = Instant::now();
        host.load::<KonnectEnv>(bytes, "bench".into(), Value::Null, Limits::default()).unwrap();
        start.elapsed()
    };
    let cold = (0..5).map(|_| load(Config::default())).min().unwrap();
    let cached = || Config { cache_dir: Some(cache.clone()), ..Config::default() };
    load(cached());
    let warm = (0..5).map(|_| load(cached())).min().unwrap();
    let _ = fs::remove_dir_all(&cache);
    line(&format!("load konnect-env ({} KiB), cold compile", bytes.len() >> 10), &millis(cold), "");
    line("load konnect-env, from the AOT cache", &millis(warm), "");
    line("  ratio cold : cached", &format!("{:.1}", cold.as_secs_f64() / warm.as_secs_f64()), "");
}

fn calls(policy: &dyn Policy<KonnectEnv>) {
    let input = input();
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS / 10 {
        block_on(policy.evaluate(&input)).unwrap();
    }
    for _ in 0..CALLS {
        let start = Instant::now();
        block_on(policy.evaluate(&input)).unwrap();
        times.push(start.elapsed());
    }
    times.sort_unstable();
    line(&format!("konnect-env, fresh instance, {CALLS} calls: p50"), &micros(times[CALLS / 2]), "60 µs");
    line("  p99", &micros(times[CALLS * 99 / 100]), "250 µs");
}

/// Guests that use up whatever they are given, alone and together, and a good policy beside them.
fn hostile(host: &Wasm, good: &dyn Policy<KonnectEnv>) {
    let guests = ["endless-loop", "memory-grower", "deep-recursion", "log-flood"].map(|name| {
        let bytes = fs::read(root().join(format!("target/guests/hostile-{name}.wasm"))).expect("run `cargo xtask guests`");
        host.load::<KonnectEnv>(&bytes, name.into(), Value::Null, Limits::default()).unwrap()
    });
    let input = input();
    let deadline = Limits::default().timeout();
    // How long after its deadline the answer is there, which is an error for all of them.
    let late = |policy: &dyn Policy<KonnectEnv>| {
        let start = Instant::now();
        drop(block_on(policy.evaluate(&input)));
        start.elapsed().saturating_sub(deadline)
    };
    let alone = guests.iter().flat_map(|guest| (0..10).map(|_| late(guest.as_ref()))).max().unwrap();
    line("hostile guests, one at a time: latest after its deadline", &millis(alone), "20 ms");
    let mut good_times = Vec::new();
    let together = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..24)
            .map(|number| {
                let (guest, late) = (&guests[number % guests.len()], &late);
                scope.spawn(move || (0..10).map(|_| late(guest.as_ref())).max().unwrap())
            })
            .collect();
        while threads.iter().any(|thread| !thread.is_finished()) {
            let start = Instant::now();
            block_on(good.evaluate(&input)).unwrap();
            good_times.push(start.elapsed());
        }
        threads.into_iter().map(|thread| thread.join().unwrap()).max().unwrap()
    });
    line("hostile guests, 24 at a time: latest after its deadline", &millis(together), "150 ms");
    good_times.sort_unstable();
    line(
        &format!("  {} calls of a good policy beside them: p99", good_times.len()),
        &millis(good_times[good_times.len() * 99 / 100]),
        "100 ms",
    );
}

fn input() -> konnect_env::Input {
    let text = fs::read_to_string(root().join("tests/cases/konnect-env/control-plane/input/input.yaml")).unwrap();
    serde_json::from_value(serde_saphyr::from_str(&text).unwrap()).unwrap()
}

fn snapshot(number: usize) -> Snapshot {
    let name = format!("gw-{number}");
    let data_plane = serde_json::from_value(json!({
        "apiVersion": "gateway-operator.konghq.com/v1beta1", "kind": "DataPlane", "metadata": {"name": name, "namespace": "bench"},
        "spec": {
            "extensions": [{"group": "gateway-operator.konghq.com", "kind": "KonnectExtension", "name": "hybrid"}],
            "deployment": {"replicas": 2, "podTemplateSpec": {"spec": {"containers": [
                {"name": "proxy", "image": "kong/kong-gateway:3.11", "env": [{"name": "KONG_LOG_LEVEL", "value": "debug"}, {"name": "KONG_VITALS", "value": "on"}]},
                {"name": "shipper", "image": "registry.example.com/shipper:1"},
            ]}}},
        },
    }))
    .unwrap();
    let extension = serde_json::from_value(json!({
        "apiVersion": "gateway-operator.konghq.com/v1alpha1", "kind": "KonnectExtension", "metadata": {"name": "hybrid", "namespace": "bench"},
        "spec": {"controlPlaneRef": {"type": "konnectID", "konnectID": "7d7b1a6e"},
                 "konnectControlPlaneAPIAuthConfiguration": {"clusterCertificateSecretRef": {"name": "tls"}}},
    }))
    .unwrap();
    Snapshot {
        now: "2026-01-01T00:00:00Z".parse().unwrap(),
        operator: Operator::with_ca("sha256:bench".into()),
        data_plane,
        namespace_labels: BTreeMap::new(),
        extension: Lookup::Found(Extension::TokenFree(Box::new(extension))),
        namesake: false,
        secrets: BTreeMap::new(),
        plugins: Vec::new(),
        children: Children::default(),
    }
}

fn plans(policies: &Policies) {
    let policies = memo(policies);
    let snapshot = snapshot(0);
    let once = || {
        let start = Instant::now();
        let plan = block_on(dataplane::reconcile(&snapshot, &policies, &Sealing::Open));
        assert!(plan.holds.is_empty(), "{:?}", plan.holds);
        start.elapsed()
    };
    (0..PLANS / 10).for_each(|_| {
        once();
    });
    let mut times: Vec<Duration> = (0..PLANS).map(|_| once()).collect();
    times.sort_unstable();
    line("plan of one Konnect DataPlane, warm: p50", &micros(times[PLANS / 2]), "300 µs");
    line("  p99", &micros(times[PLANS * 99 / 100]), "");
}

fn memo(policies: &Policies) -> Policies {
    Policies {
        konnect_env: policies.konnect_env.clone().map(|policy| Arc::new(Memo::new(policy, MemoSize::default()))),
        conflict_resolution: policies.conflict_resolution.clone().map(|policy| Arc::new(Memo::new(policy, MemoSize::default()))),
        plugin_packaging: policies.plugin_packaging.clone(),
        object_hooks: policies.object_hooks.clone(),
    }
}

fn fleet(policies: &Policies) {
    let policies = memo(policies);
    let fleet: Vec<Snapshot> = (0..FLEET).map(snapshot).collect();
    let pass = || {
        let start = Instant::now();
        for snapshot in &fleet {
            let plan = block_on(dataplane::reconcile(snapshot, &policies, &Sealing::Open));
            assert!(plan.holds.is_empty());
        }
        start.elapsed()
    };
    let first = pass();
    let mut warm: Vec<Duration> = (0..5).map(|_| pass()).collect();
    warm.sort_unstable();
    line(&format!("{FLEET} DataPlanes through core, first pass"), &millis(first), "");
    line(&format!("{FLEET} DataPlanes through core, memo warm: median of 5"), &millis(warm[2]), "150 ms");
    line("  ratio first : warm", &format!("{:.1}", first.as_secs_f64() / warm[2].as_secs_f64()), "");
}

/// Peak resident memory, bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).and_then(|l| l.split_whitespace().nth(1));
    line.and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) * 1024
}
