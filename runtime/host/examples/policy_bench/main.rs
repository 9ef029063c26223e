//! `cargo xtask bench policy`: one konnect-env decision, made natively, by a component (a fresh instance; from memory) and by a remote plugin, and
//! what the pool costs over a bare call. It is no test and fails on nothing but an error, or two ways that do not decide the same.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a benchmark may stop at the first thing that is not as it should be"
)]

mod bare;
mod figures;
mod native;
mod remote;

use std::{fs, path::Path, sync::Arc};

use futures::executor::block_on;
use serde_json::Value;
use weir_core::policy::{KonnectEnv, Policy, konnect_env::Input};
use weir_host::{
    layer::{Memo, MemoSize},
    wasm::{Config, Limits, Wasm},
};

use self::{
    figures::{Figure, Report, timed},
    native::Native,
    remote::Remote,
};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let json = match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => false,
        ["-o" | "--output", "json"] | ["-o=json" | "--output=json"] => true,
        other => panic!("bench policy takes `-o json` or nothing, and not {other:?}"),
    };
    if cfg!(debug_assertions) {
        eprintln!("bench: this is not a release build; the figures mean little");
    }
    let input = input();
    let report = measure(&input);
    println!("{}", if json { report.json() } else { report.text() });
}

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The question of a case of the contract's.
fn input() -> Input {
    let text = fs::read_to_string(root().join("tests/cases/konnect-env/control-plane/input/input.yaml")).unwrap();
    serde_json::from_value(serde_saphyr::from_str(&text).unwrap()).unwrap()
}

fn measure(input: &Input) -> Report {
    let bytes = fs::read(root().join("target/guests/konnect-env.wasm")).expect("run `cargo xtask guests`");
    let host = Wasm::new(Config::default()).unwrap();
    let component = host.load::<KonnectEnv>(&bytes, "bench".into(), Value::Null, Limits::default()).unwrap();
    let memo = Memo::new(Arc::clone(&component) as Arc<dyn Policy<KonnectEnv>>, MemoSize::default());
    let native = Native::new();
    let remote = Remote::start();
    let policies: [(&str, &dyn Policy<KonnectEnv>, usize); 4] = [
        ("native", &native, 50_000),
        ("component, fresh instance", component.as_ref(), 10_000),
        ("component, from memory", &memo, 50_000),
        ("remote plugin, warm connection", remote.policy(), 5_000),
    ];
    let expected = block_on(component.evaluate(input)).unwrap();
    let mut figures = Vec::new();
    for (what, policy, calls) in policies {
        assert_eq!(block_on(policy.evaluate(input)).unwrap(), expected, "{what} decides the same");
        figures.push(Figure::of(what, timed(calls, || drop(block_on(policy.evaluate(input)).unwrap()))));
    }
    let (bare, pooled) = remote.compare(input, 5_000);
    figures.push(Figure::of("bare call over one connection", bare));
    figures.push(Figure::of("the same call through the pool", pooled));
    Report::new(figures)
}
