//! What can be loaded as a policy, and what is said about the rest.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's way to fail")]

mod support;

use serde_json::{Value, json};
use support::{Guest, ask, host, le, limits};
use weir_core::policy::{CONTRACT_VERSION, ConflictResolution, KonnectEnv, Policy, PolicyError, SlotName};
use weir_host::wasm::{Config, LoadError, Step, Verdict, Wasm, inspect};

fn refused(bytes: &[u8]) -> String {
    match host().load::<KonnectEnv>(bytes, "test".into(), Value::Null, limits(200, 32)) {
        Err(LoadError::Policy(PolicyError::Incompatible(why))) => why,
        other => panic!("{other:?}"),
    }
}

fn wat(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap()
}

#[test]
fn what_is_no_component_is_named() {
    assert!(refused(b"").contains("empty"));
    assert!(refused(&wat("(module)")).contains("core module"));
    assert!(refused(b"<html>").contains("HTML"));
    assert!(refused(b"\0asm\x0d\0\x01\0\xff\xff").contains("not a valid component"));
    let native = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    assert!(refused(&native[..1 << 20]).contains("native program"));
}

#[test]
fn native_code_of_wasmtime_is_named() {
    let mut config = wasmtime::Config::new();
    config.concurrency_support(false).gc_support(false);
    let code = wasmtime::Engine::new(&config).unwrap().precompile_component(&wat("(component)")).unwrap();
    assert!(refused(&code).contains("ahead of time"));
}

#[test]
fn a_component_that_is_too_large_is_not_read() {
    let host = Wasm::new(Config { max_component: 1000, ..Config::default() }).unwrap();
    let outcome = host.load::<KonnectEnv>(&Guest::default().build(), "test".into(), Value::Null, limits(200, 32));
    assert!(matches!(&outcome, Err(LoadError::Policy(PolicyError::Incompatible(m))) if m.contains("at most 1000")), "{outcome:?}");
}

#[test]
fn missing_exports_are_listed_together() {
    let why = refused(&wat("(component)"));
    assert!(why.contains("does not export weir:policy/konnect-env@0.1.0; it exports nothing"), "{why}");
    assert!(why.contains("does not export weir:policy/settings@0.1.0"), "{why}");
    let other =
        wat(r#"(component (instance $i) (export "weir:policy/settings@0.1.7" (instance $i)) (export "a:b/c@1.0.0" (instance $i)))"#);
    let why = refused(&other);
    assert_eq!(why, "it does not export weir:policy/konnect-env@0.1.0; it exports weir:policy/settings@0.1.7, a:b/c@1.0.0");
}

#[test]
fn another_version_is_named_with_both_sides() {
    let component = r#"(component
        (import "weir:policy/log@0.2.0" (instance))
        (instance $i)
        (export "weir:policy/settings@0.1.0" (instance $i))
        (export "weir:policy/konnect-env@0.2.0" (instance $i)))"#;
    let why = refused(&wat(component));
    assert!(why.contains("imports weir:policy/log@0.2.0, this host offers weir:policy/log@0.1.0"), "{why}");
    assert!(why.contains("exports weir:policy/konnect-env@0.2.0, this host asks weir:policy/konnect-env@0.1.0"), "{why}");
}

#[test]
fn wasi_without_stubs_and_other_imports_are_named() {
    let component = r#"(component
        (import "wasi:cli/environment@0.2.6" (instance))
        (import "wasi:http/types@0.2.6" (instance))
        (import "wasi:clocks/wall-clock@0.3.0" (instance))
        (import "acme:http/client@1.0.0" (instance))
        (import "weir:policy/konnect-env@0.1.0" (instance))
        (import "print" (func)))"#;
    let why = refused(&wat(component));
    assert!(why.contains("of WASI wasi:http/types@0.2.6, wasi:clocks/wall-clock@0.3.0, which"), "{why}");
    assert!(why.contains("imports acme:http/client@1.0.0, weir:policy/konnect-env@0.1.0, print, a policy may"), "{why}");
}

#[test]
fn only_the_outermost_level_counts() {
    let component = r#"(component
        (component $inner (import "wasi:cli/environment@0.2.6" (instance)) (instance $i) (export "x" (instance $i)))
        (core module (import "env" "f" (func)))
        (instance $i) (export "weir:policy/settings@0.1.0" (instance $i)))"#;
    let found = inspect::interfaces(&wat(component), 1 << 20).unwrap();
    assert_eq!(found.imports, Vec::<String>::new());
    assert_eq!(found.exports, ["weir:policy/settings@0.1.0"]);
}

#[test]
fn a_component_of_one_slot_is_not_one_of_another() {
    let host = host();
    let outcome = host.load::<ConflictResolution>(&Guest::default().build(), "t".into(), Value::Null, limits(200, 32));
    assert!(
        matches!(&outcome, Err(LoadError::Policy(PolicyError::Incompatible(m))) if m.contains("weir:policy/conflict-resolution@0.1.0")),
        "{outcome:?}"
    );
}

#[test]
fn an_interface_of_the_right_name_and_other_types_is_refused() {
    let component = r#"(component
        (core module $m (func (export "f") (result i32) i32.const 0))
        (core instance $i (instantiate $m))
        (func $f (result u32) (canon lift (core func $i "f")))
        (instance $e (export "evaluate" (func $f)) (export "schema" (func $f)) (export "validate" (func $f)))
        (export "weir:policy/settings@0.1.0" (instance $e))
        (export "weir:policy/konnect-env@0.1.0" (instance $e)))"#;
    let why = refused(&wat(component));
    assert!(why.contains("cannot be instantiated") && why.contains("expected `string` found `u32`"), "{why}");
}

#[test]
fn a_bomb_of_instances_is_refused() {
    let instances: String = (0..17).map(|_| "(core instance (instantiate $m))").collect();
    let component = format!(
        r#"(component (core module $m) {instances} (instance $i)
            (export "weir:policy/settings@0.1.0" (instance $i)) (export "weir:policy/konnect-env@0.1.0" (instance $i)))"#
    );
    let why = refused(&wat(&component));
    assert!(why.contains("17"), "{why}");
}

#[test]
fn identity_names_source_component_and_settings() {
    let host = host();
    let bytes = Guest::default().build();
    let load = |settings| host.load::<KonnectEnv>(&bytes, "file:p.wasm".into(), settings, limits(200, 32)).unwrap();
    let (a, b, c) = (load(Value::Null), load(json!({})), load(json!({"x": 1})));
    assert_eq!(a.identity(), b.identity());
    assert_eq!(a.identity().digest, c.identity().digest);
    assert_ne!(a.identity().settings_digest, c.identity().settings_digest);
    assert!(a.identity().digest.starts_with("sha256:") && a.identity().source == "file:p.wasm");
    assert!(ask(&*c).is_ok());
}

#[test]
fn settings_are_checked_by_schema_then_by_the_guest() {
    let host = host();
    let schema = r#"{"type":"object","properties":{"mode":{"enum":["a","b"]}},"additionalProperties":false}"#;
    let guest = Guest { schema: schema.into(), ..Guest::default() };
    let load = |guest: &Guest, settings| host.load::<KonnectEnv>(&guest.build(), "t".into(), settings, limits(200, 32));
    assert!(load(&guest, json!({"mode": "a"})).is_ok());
    match load(&guest, json!({"mode": "c", "more": 1})) {
        Err(LoadError::Settings(findings)) => {
            let paths: Vec<&str> = findings.iter().map(|f| f.path.as_str()).collect();
            assert!(paths.contains(&"settings.mode") && paths.contains(&"settings"), "{findings:?}");
        }
        other => panic!("{other:?}"),
    }
    // One finding at 9000 with severity `error` (2) and code "Bad" at 9100; the list's address and length at 8192.
    let finding = |severity: u32| Guest {
        validate: "(i32.const 8192)".into(),
        more: format!(
            r#"(data (i32.const 8192) "{}{}") (data (i32.const 9000) "{}{}{}{}{}") (data (i32.const 9100) "Bad")"#,
            le(9000),
            le(1),
            le(severity),
            le(0),
            le(0),
            le(9100),
            le(3)
        ),
        ..Guest::default()
    };
    match load(&finding(2), Value::Null) {
        Err(LoadError::Settings(findings)) => assert_eq!(findings[0].code, "Bad"),
        other => panic!("{other:?}"),
    }
    assert_eq!(load(&finding(1), Value::Null).unwrap().settings_findings()[0].code, "Bad");
}

#[test]
fn a_guest_whose_settings_never_answer_is_a_deadline() {
    let guest = Guest { validate: "(loop $again (br $again)) (unreachable)".into(), ..Guest::default() };
    let outcome = host().load::<KonnectEnv>(&guest.build(), "t".into(), Value::Null, limits(200, 32));
    assert!(matches!(outcome, Err(LoadError::Policy(PolicyError::Deadline { .. }))), "{outcome:?}");
}

#[test]
fn a_bad_schema_is_the_components_fault() {
    let guest = Guest { schema: "{\"type\": 3}".into(), ..Guest::default() };
    let outcome = host().load::<KonnectEnv>(&guest.build(), "t".into(), Value::Null, limits(200, 32));
    assert!(matches!(&outcome, Err(LoadError::Policy(PolicyError::Incompatible(m))) if m.contains("settings schema")), "{outcome:?}");
}

#[test]
fn the_host_outlives_its_handle_as_long_as_a_policy_does() {
    let host = host();
    let policy = support::load(&host, &Guest::default().build());
    drop(host);
    assert!(ask(&*policy).is_ok());
}

#[test]
fn slots_have_the_names_of_the_contract() {
    for slot in SlotName::ALL {
        // What a later version added stands in a folder of that version.
        let folder = if slot.contract() == CONTRACT_VERSION { "" } else { slot.contract() };
        assert!(support::wit().join(folder).join(format!("{slot}.wit")).exists(), "{slot}");
    }
}

/// The steps of a check that were reached, and how the last of them ended; each of them says what a load says.
fn checked(bytes: &[u8], settings: &Value) -> (Vec<Step>, Verdict) {
    let host = host();
    let interfaces = inspect::interfaces(bytes, 1 << 20).unwrap();
    let checks = host.check::<KonnectEnv>(bytes, &interfaces, settings.clone(), limits(200, 32));
    let loaded = host.load::<KonnectEnv>(bytes, "t".into(), settings.clone(), limits(200, 32));
    assert_eq!(loaded.is_ok(), checks.iter().all(|check| check.verdict.passed()), "{checks:?} {loaded:?}");
    let last = checks.iter().rfind(|check| !check.verdict.passed()).or(checks.last()).unwrap().verdict.clone();
    (checks.iter().map(|check| check.step).collect(), last)
}

#[test]
fn a_check_ends_where_a_load_does() {
    let guest = |schema: &str, validate: &str| Guest { schema: schema.into(), validate: validate.into(), ..Guest::default() }.build();
    let taken = Guest::default().build();
    assert_eq!(checked(&taken, &Value::Null), (Step::ALL.to_vec(), Verdict::Passed(Vec::new())));
    let (steps, last) = checked(&wat(r#"(component (import "wasi:http/types@0.2.6" (instance)))"#), &Value::Null);
    assert!(steps == Step::ALL[..2] && matches!(&last, Verdict::Failed(PolicyError::Incompatible(m)) if m.contains("WASI")), "{last:?}");
    let (steps, last) = checked(&guest("{\"type\": 3}", "(i32.const 1024)"), &Value::Null);
    assert!(steps == Step::ALL[..4] && matches!(last, Verdict::Failed(PolicyError::Incompatible(_))));
    let strict = guest(r#"{"additionalProperties": false}"#, "(i32.const 1024)");
    let (steps, last) = checked(&strict, &json!({"x": 1}));
    assert!(steps == Step::ALL[..5] && matches!(&last, Verdict::Refused(f) if f[0].code == "SettingsSchema"), "{last:?}");
    let (steps, last) = checked(&guest("{}", "(loop $again (br $again)) (unreachable)"), &Value::Null);
    assert!(steps == Step::ALL && matches!(last, Verdict::Failed(PolicyError::Deadline { .. })));
    let (steps, last) = checked(&taken, &json!({"x": "x".repeat(64 << 10)}));
    assert!(steps == [Step::Exports, Step::Imports, Step::Settings] && matches!(last, Verdict::Refused(_)));
}

#[test]
fn slots_and_contracts_are_read_from_names() {
    let component = r#"(component
        (import "weir:policy/log@0.1.3" (instance))
        (instance $i)
        (export "weir:policy/plugin-packaging@0.1.0" (instance $i))
        (export "weir:policy/konnect-env@0.2.0" (instance $i))
        (export "acme:other/konnect-env@0.1.0" (instance $i)))"#;
    let found = inspect::interfaces(&wat(component), 1 << 20).unwrap();
    assert_eq!(found.slots(), [SlotName::PluginPackaging]);
    assert_eq!(found.contracts(), ["0.1.0", "0.1.3", "0.2.0"]);
}
