//! The guests of `guest-plugins`, as `cargo xtask guests` builds them: the defaults do their work, each hostile one does its worst.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's way to fail")]

mod support;

use std::{path::Path, sync::Arc, time::Instant};

use futures::executor::block_on;
use serde_json::{Value, json};
use support::{ask, host, input, limits, rss};
use weir_core::policy::{
    ConflictResolution, Context, KonnectEnv, Policy, PolicyError,
    conflict_resolution::{Claim, ClaimValue, Conflict, Input, Origin, SubjectKind, Verdict},
};
use weir_host::wasm::{Limits, LoadError, Wasm, WasmPolicy};

fn guest(name: &str) -> Vec<u8> {
    let path = Path::new(env!("WEIR_GUESTS")).join(format!("{name}.wasm"));
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}; run `cargo xtask guests`", path.display()))
}

fn load(host: &Wasm, name: &str, settings: Value, limits: Limits) -> Result<Arc<WasmPolicy<KonnectEnv>>, LoadError> {
    host.load(&guest(name), format!("file:{name}"), settings, limits)
}

fn loaded(host: &Wasm, name: &str, settings: Value, limits: Limits) -> Arc<WasmPolicy<KonnectEnv>> {
    load(host, name, settings, limits).unwrap_or_else(|e| panic!("{name}: {e:?}"))
}

fn refused(name: &str) -> PolicyError {
    match load(&host(), name, Value::Null, Limits::default()) {
        Err(LoadError::Policy(error)) => error,
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn the_default_of_konnect_env_answers() {
    let host = host();
    let policy = host.builtin::<KonnectEnv>(Value::Null, Limits::default()).unwrap();
    assert_eq!(policy.identity().source, "builtin");
    let answer = ask(&*policy).unwrap();
    let role = answer.env.iter().find(|e| e.name == "KONG_ROLE").map(|e| e.value.as_str());
    assert_eq!(role, Some("data_plane"));
    assert_eq!(answer, ask(&*policy).unwrap(), "the same question has the same answer");
}

#[test]
fn settings_of_the_default_are_checked() {
    let host = host();
    let load = |settings| host.builtin::<KonnectEnv>(settings, Limits::default());
    assert!(load(json!({"vitals": true, "extraEnv": {"A": "b"}})).is_ok());
    for bad in [json!({"vitals": "yes"}), json!({"colour": 1}), json!({"extraEnv": {"KONG_ROLE": "x"}}), json!([])] {
        let outcome = load(bad);
        assert!(matches!(&outcome, Err(LoadError::Settings(f)) if !f.is_empty()), "{outcome:?}");
    }
}

#[test]
fn the_default_of_conflict_resolution_answers() {
    let policies = host().defaults().unwrap();
    let claim = |who: &str, origin, value: &str| Claim { who: who.into(), since: None, origin, value: ClaimValue::Text(value.into()) };
    let conflict = Conflict {
        kind: SubjectKind::EnvVar,
        subject: "KONG_ROLE".into(),
        claims: vec![claim("spec", Origin::User, "a"), claim("policy", Origin::Policy, "b")],
    };
    let question = Input { context: Context::default(), conflicts: vec![conflict] };
    let answer = block_on(policies.conflict_resolution.policy.evaluate(&question)).unwrap();
    assert_eq!(answer.resolutions[0].verdict, Verdict::Keep(0));
}

#[test]
fn examples_answer() {
    let host = host();
    assert!(ask(&*loaded(&host, "konnect-env-eu-proxy", Value::Null, Limits::default())).is_ok());
    // One component, two slots: compiled once.
    let bytes = guest("two-slots");
    let a: Arc<WasmPolicy<KonnectEnv>> = host.load(&bytes, "file:two".into(), Value::Null, Limits::default()).unwrap();
    let b: Arc<WasmPolicy<ConflictResolution>> = host.load(&bytes, "file:two".into(), Value::Null, Limits::default()).unwrap();
    assert_eq!(Policy::identity(&*a), Policy::identity(&*b));
}

#[test]
fn endless_loop() {
    let policy = loaded(&host(), "hostile-endless-loop", Value::Null, Limits::default());
    let start = Instant::now();
    assert_eq!(ask(&*policy), Err(PolicyError::Deadline { limit_ms: 200 }));
    // Far over the limit and any scheduling delay, far below "for ever".
    assert!(start.elapsed().as_secs() < 3, "{:?}", start.elapsed());
}

#[test]
fn memory_grower() {
    let outcome = ask(&*loaded(&host(), "hostile-memory-grower", Value::Null, limits(2000, 32)));
    assert!(matches!(outcome, Err(PolicyError::Memory(_))), "{outcome:?}");
}

#[test]
fn trap() {
    let outcome = ask(&*loaded(&host(), "hostile-trap", Value::Null, Limits::default()));
    assert!(matches!(&outcome, Err(PolicyError::Trap(t)) if t.contains("unreachable")), "{outcome:?}");
}

#[test]
fn deep_recursion() {
    let outcome = ask(&*loaded(&host(), "hostile-deep-recursion", Value::Null, Limits::default()));
    assert!(matches!(&outcome, Err(PolicyError::Trap(t)) if t.contains("stack exhausted")), "{outcome:?}");
}

#[test]
fn garbage_output() {
    let host = host();
    for kind in ["envName", "envTwice", "foreignSecret", "mountPath", "unknownSource", "findingCode", "refusalCode", "readinessPath"] {
        let outcome = ask(&*loaded(&host, "hostile-garbage-output", json!({"kind": kind}), Limits::default()));
        assert!(matches!(outcome, Err(PolicyError::BadOutput(_))), "{kind}: {outcome:?}");
    }
}

#[test]
fn giant_output() {
    let host = host();
    for shape in ["many", "aliased", "long"] {
        let policy = loaded(&host, "hostile-giant-output", json!({"shape": shape}), limits(5000, 64));
        let before = rss();
        for _ in 0..5 {
            let outcome = ask(&*policy);
            assert!(matches!(outcome, Err(PolicyError::Memory(_))), "{shape}: {outcome:?}");
        }
        assert!(rss() < before + 128 * 1024, "{shape}: {} KiB, before {before} KiB", rss());
    }
}

#[test]
fn log_flood() {
    let outcome = ask(&*loaded(&host(), "hostile-log-flood", Value::Null, limits(2000, 32)));
    assert!(outcome.is_ok(), "{outcome:?}");
}

#[test]
fn who_imports_wasi_sees_an_empty_environment() {
    let answer = ask(&*loaded(&host(), "hostile-wasi-importer", Value::Null, limits(2000, 32))).unwrap();
    assert!(matches!(answer.env.as_slice(), [seen] if seen.name == "SEEN" && seen.value == "0"), "{answer:?}");
}

#[test]
fn those_that_do_not_fit_are_named() {
    let says = |name: &str, words: &[&str]| {
        let error = refused(name);
        let PolicyError::Incompatible(why) = &error else { panic!("{name}: {error:?}") };
        assert!(words.iter().all(|w| why.contains(w)), "{name}: {why}");
    };
    says("hostile-core-module", &["core module"]);
    says("hostile-wrong-world", &["does not export weir:policy/konnect-env@0.1.0", "example:other/thing"]);
    says("hostile-log-provider", &["does not export weir:policy/konnect-env@0.1.0", "weir:policy/log@0.1.0"]);
    says("hostile-schema-garbage", &["settings schema", "no JSON"]);
    assert!(matches!(refused("hostile-settings-loop"), PolicyError::Deadline { .. }));
}

#[test]
fn a_composed_component_with_internal_adapters_answers() {
    let host = host();
    let composed = ask(&*loaded(&host, "hostile-composed", Value::Null, Limits::default()));
    let plain = ask(&*host.builtin::<KonnectEnv>(Value::Null, Limits::default()).unwrap());
    assert_eq!(composed, plain);
}

#[test]
fn after_all_of_them_the_host_serves_on() {
    let host = host();
    let names = ["hostile-endless-loop", "hostile-memory-grower", "hostile-trap", "hostile-deep-recursion", "hostile-log-flood"];
    let policies: Vec<_> = names.iter().map(|name| loaded(&host, name, Value::Null, limits(50, 32))).collect();
    let good = host.builtin::<KonnectEnv>(Value::Null, Limits::default()).unwrap();
    let question = input();
    block_on(async {
        for _ in 0..10 {
            let calls = policies.iter().map(|policy| policy.evaluate(&question));
            drop(futures::future::join_all(calls).await);
            assert!(good.evaluate(&question).await.is_ok());
        }
    });
    assert!(rss() < 1 << 20, "{} KiB", rss());
}
