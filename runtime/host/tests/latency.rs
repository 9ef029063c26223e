//! What one call costs. Ignored by default: numbers of a busy machine say nothing. `cargo test -p weir-host --test latency -- --ignored --nocapture`

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test's way to fail")]

mod support;

use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Guest, ask, host, load};
use weir_core::policy::{KonnectEnv, Policy};
use weir_host::wasm::{Config, Limits, Wasm};

#[test]
#[ignore = "a measurement"]
fn one_call() {
    let host = host();
    measure("an empty guest", &*load(&host, &Guest::default().build()));
    measure("the default of konnect-env", &*host.builtin::<KonnectEnv>(Value::Null, Limits::default()).unwrap());
}

fn measure(what: &str, policy: &dyn Policy<KonnectEnv>) {
    let mut times: Vec<Duration> = (0..20_000)
        .map(|_| {
            let start = Instant::now();
            assert!(ask(policy).is_ok());
            start.elapsed()
        })
        .collect();
    times.sort();
    let at = |percent: usize| times[times.len() * percent / 100];
    println!("call of {what} with a fresh instance: p50 {:?}, p90 {:?}, p99 {:?}", at(50), at(90), at(99));
}

#[test]
#[ignore = "a measurement"]
fn one_load() {
    let temp = tempfile::tempdir().unwrap();
    let bytes = Guest::default().build();
    for what in ["compiled", "from the cache"] {
        let host = Wasm::new(Config { cache_dir: Some(temp.path().join("c")), ..Config::default() }).unwrap();
        let start = Instant::now();
        let policy = load(&host, &bytes);
        println!("load of {} bytes, {what}: {:?}", bytes.len(), start.elapsed());
        drop(policy);
    }
}
