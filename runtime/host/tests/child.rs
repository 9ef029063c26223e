//! Compiling in a child process. This binary is its own child, so it has a `main`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's way to fail")]

mod support;

use std::{
    env, fs,
    num::NonZeroUsize,
    process::ExitCode,
    sync::OnceLock,
    time::{Duration, Instant},
};

use rustix::process::{Resource, Rlimit, setrlimit};
use serde_json::Value;
use support::{Guest, ask, limits, load};
use weir_core::policy::{KonnectEnv, PolicyError};
use weir_host::wasm::{Allocation, COMPILE_CHILD_ARG, Config, LoadError, Wasm, compile_child_main};

fn main() -> ExitCode {
    let mut args = env::args_os().skip(1);
    if args.next().is_some_and(|first| first == COMPILE_CHILD_ARG) {
        return compile_child_main(args);
    }
    if env::args().nth(1).as_deref() == Some(LITTLE_SPACE) {
        return little_space();
    }
    let tests: [(&str, fn()); 6] = [
        ("a large component compiles in the child", large),
        ("a child over its memory is the component's fault", memory),
        ("a child that has no time on a busy machine is not the component's fault", time),
        ("a component that does not compile says why", invalid),
        ("a program that is not ours is the host's fault", foreign),
        ("without address space for a pool, instances are made on demand", on_demand),
    ];
    for (name, test) in tests {
        let start = Instant::now();
        test();
        println!("{name} ... ok ({} ms)", start.elapsed().as_millis());
    }
    ExitCode::SUCCESS
}

const LITTLE_SPACE: &str = "__little-address-space";

fn on_demand() {
    let status = std::process::Command::new(env::current_exe().unwrap()).arg(LITTLE_SPACE).status().unwrap();
    assert!(status.success(), "{status}");
}

/// With 24 GiB, two calls have room for their memories, and a pool has not.
fn little_space() -> ExitCode {
    let limit = Some(24 << 30);
    setrlimit(Resource::As, Rlimit { current: limit, maximum: limit }).unwrap();
    let host = Wasm::new(Config { threads: NonZeroUsize::new(2).unwrap(), ..Config::default() }).unwrap();
    assert!(matches!(host.allocation(), Allocation::OnDemand { reason } if !reason.is_empty()), "{:?}", host.allocation());
    println!("  {:?}", host.allocation());
    let ends = |guest: &Guest| ask(&*load(&host, &guest.build()));
    assert!(ends(&Guest::default()).is_ok());
    let endless = ends(&Guest::evaluating("(loop $again (br $again)) (unreachable)"));
    assert!(matches!(endless, Err(PolicyError::Deadline { .. })), "{endless:?}");
    let grower = "(loop $again (drop (call $alloc (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 65536))) (br $again)) (unreachable)";
    let grown = ends(&Guest::evaluating(grower));
    assert!(matches!(grown, Err(PolicyError::Memory(_))), "{grown:?}");
    ExitCode::SUCCESS
}

fn config() -> Config {
    Config { compile_program: Some(env::current_exe().unwrap()), ..Config::default() }
}

/// A component of more than 2 MiB, built once.
fn large_guest() -> &'static [u8] {
    static GUEST: OnceLock<Vec<u8>> = OnceLock::new();
    GUEST.get_or_init(|| {
        let function = |n: usize| {
            let line = |i: usize| format!("(local.set 0 (i32.xor (i32.mul (local.get 0) (i32.const {})) (i32.const {n})))", i + n);
            format!("(func $f{n} (param i32) (result i32) {} (local.get 0))", (0..50).map(line).collect::<String>())
        };
        let more: String = (0..4_000).map(function).collect();
        let bytes = Guest { more, ..Guest::default() }.build();
        assert!(bytes.len() > 2 << 20, "{}", bytes.len());
        bytes
    })
}

fn refused(config: Config, bytes: &[u8]) -> PolicyError {
    let host = Wasm::new(config).unwrap();
    match host.load::<KonnectEnv>(bytes, "test".into(), Value::Null, limits(200, 32)) {
        Err(LoadError::Policy(error)) => error,
        other => panic!("{other:?}"),
    }
}

fn large() {
    let temp = tempfile::tempdir().unwrap();
    let bytes = large_guest();
    let cache_dir = Some(temp.path().join("cache"));
    let host = Wasm::new(Config { cache_dir: cache_dir.clone(), ..config() }).unwrap();
    let start = Instant::now();
    assert!(ask(&*load(&host, bytes)).is_ok());
    println!("  {} KiB of wasm: {} ms", bytes.len() >> 10, start.elapsed().as_millis());
    // What the child wrote is in the cache and loads without a child.
    let version = fs::read_dir(cache_dir.clone().unwrap()).unwrap().next().unwrap().unwrap().path();
    assert_eq!(fs::read_dir(version).unwrap().count(), 1);
    let without = Config { cache_dir, compile_program: Some("/nonexistent".into()), ..Config::default() };
    let start = Instant::now();
    assert!(ask(&*load(&Wasm::new(without).unwrap(), bytes)).is_ok());
    println!("  from the cache: {} ms", start.elapsed().as_millis());
}

fn memory() {
    let tight = Config { compile_address_space: 64 << 20, ..config() };
    let error = refused(tight, large_guest());
    assert!(matches!(&error, PolicyError::Incompatible(m) if m.len() < 500), "{error:?}");
    println!("  {error}");
}

fn time() {
    let short = Config { compile_timeout: Duration::from_millis(25), ..config() };
    let bytes = large_guest();
    let start = Instant::now();
    let error = refused(short, bytes);
    // The clock says nothing about the component: the same one may compile another time.
    assert!(matches!(&error, PolicyError::Unavailable(m) if m.contains("this machine had less than")), "{error:?}");
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

fn invalid() {
    // Passes inspection, since only names are read there, and fails validation.
    let padding = "(core module (func (result i32)))".to_owned() + &"(core module)".repeat(300_000);
    let text = format!(
        r#"(component {padding} (instance $i) (export "weir:policy/settings@0.1.0" (instance $i)) (export "weir:policy/konnect-env@0.1.0" (instance $i)))"#
    );
    let error = refused(config(), &wat::parse_str(text).unwrap());
    assert!(matches!(&error, PolicyError::Incompatible(m) if m.contains("does not compile")), "{error:?}");
    println!("  {error}");
}

fn foreign() {
    for program in ["/nonexistent", "/bin/false", "/bin/true"] {
        let error = refused(Config { compile_program: Some(program.into()), ..Config::default() }, large_guest());
        assert!(matches!(&error, PolicyError::Unavailable(_)), "{program}: {error:?}");
    }
}
