//! Every hostile guest ends in its own named error within its limit; the process stays up and its memory bounded.

use std::{
    fs,
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

use futures::executor::block_on;
use libtest_mimic::Trial;
use serde_json::Value;
use weir_core::policy::{KonnectEnv, Policy, PolicyError, konnect_env};
use weir_host::wasm::{Limits, LoadError};

use crate::support::{defaults, guest, host, root, test, without_stub};

/// Guest, the error it ends in, and a word its message has.
pub(crate) const GUESTS: [(&str, &str, &str); 10] = [
    ("endless-loop", "Deadline", "200 ms"),
    ("memory-grower", "Memory", ""),
    ("trap", "Trap", ""),
    ("garbage-output", "BadOutput", ""),
    ("giant-output", "Memory", ""),
    ("deep-recursion", "Trap", "stack"),
    ("core-module", "Incompatible", "core module"),
    ("wrong-world", "Incompatible", "weir:policy/konnect-env"),
    ("settings-loop", "Deadline", "1000 ms"),
    ("schema-garbage", "Incompatible", "schema"),
];

pub(crate) fn tests() -> Vec<Trial> {
    let mut tests: Vec<Trial> = GUESTS
        .iter()
        .map(|(name, reason, word)| test(format!("hostile {name} ends in {reason}"), move || ends_in(name, reason, word)))
        .collect();
    tests.push(test("hostile wasi-importer sees an empty environment", wasi_importer));
    tests.push(test("hostile imports of WASI without a stub are named", wasi_without_stub));
    tests.push(test("hostile log-flood is cut and answers", log_flood));
    tests.push(test("hostile composed component works", composed));
    tests.push(test("hostile guests leave memory bounded", memory_bounded));
    tests
}

fn input() -> konnect_env::Input {
    let text = fs::read_to_string(root().join("tests/cases/konnect-env/control-plane/input/input.yaml")).unwrap();
    serde_json::from_value(serde_saphyr::from_str(&text).unwrap()).unwrap()
}

fn ask(name: &str) -> Result<konnect_env::Answer, PolicyError> {
    let bytes = fs::read(guest(name)).unwrap();
    // Only the guests that never end are about time; a busy machine decides nothing about the others.
    let timeout = if name.ends_with("-loop") { 200 } else { 2_000 };
    let limits = Limits::new(Duration::from_millis(timeout), Limits::default().memory()).unwrap();
    match host().load::<KonnectEnv>(&bytes, name.into(), Value::Null, limits) {
        Ok(policy) => block_on(policy.evaluate(&input())),
        Err(LoadError::Policy(error)) => Err(error),
        Err(LoadError::Settings(findings)) => panic!("{name}: settings refused: {findings:?}"),
    }
}

fn ends_in(name: &str, reason: &str, word: &str) {
    let start = Instant::now();
    let error = ask(name).expect_err(name);
    let took = start.elapsed();
    assert_eq!(error.reason(), reason, "{name}: {error}");
    assert!(error.to_string().contains(word), "{name}: {error:?} does not say {word:?}");
    assert!(error.to_string().len() < 2_048, "{name}: the message is unbounded");
    // The limit is 200 ms; compiling and a busy machine come on top.
    assert!(took < Duration::from_secs(10), "{name} took {took:?}");
    good_policy_answers();
}

/// The engine serves others afterwards.
fn good_policy_answers() {
    let answer = block_on(defaults().konnect_env.policy.evaluate(&input())).unwrap();
    assert!(answer.env.iter().any(|e| e.name == "KONG_ROLE" && e.value == "data_plane"));
}

fn wasi_importer() {
    let answer = ask("wasi-importer").unwrap();
    assert!(matches!(answer.env.as_slice(), [seen] if seen.name == "SEEN" && seen.value == "0"), "{answer:?}");
}

fn wasi_without_stub() {
    let outcome = host().load::<KonnectEnv>(&without_stub(), "wasi".into(), Value::Null, Limits::default());
    let error = outcome.map(drop).expect_err("there is no stub of it");
    assert!(matches!(&error, LoadError::Policy(PolicyError::Incompatible(why)) if why.contains("wasi:cli/environment@0.3.0")), "{error:?}");
}

fn log_flood() {
    let answer = ask("log-flood").unwrap();
    assert!(!answer.env.is_empty());
}

fn composed() {
    let answer = ask("composed").unwrap();
    assert!(answer.env.iter().any(|e| e.name == "KONG_ROLE"), "{answer:?}");
}

/// Set for a child process: it makes hostile calls and says what they left behind. Tests that run side by side allocate as they like, so
/// a process of its own has to be looked at.
const AS_HOST: &str = "WEIR_IT_AS_HOST";

fn memory_bounded() {
    let output = Command::new(std::env::current_exe().unwrap()).env(AS_HOST, "1").output().unwrap();
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{errors}");
    let grown: u64 = said.trim().strip_prefix("grown ").unwrap_or_else(|| panic!("{said:?}: {errors}")).parse().unwrap();
    assert!(grown < 64 << 20, "30 more hostile calls left {} MiB behind", grown >> 20);
}

/// Makes hostile calls and says by how much memory has grown, if this process was started for that.
pub(crate) fn as_host() -> Option<ExitCode> {
    std::env::var_os(AS_HOST)?;
    for _ in 0..3 {
        for name in ["memory-grower", "giant-output", "deep-recursion"] {
            assert!(ask(name).is_err(), "{name}");
        }
    }
    let before = resident();
    for _ in 0..10 {
        for name in ["memory-grower", "giant-output", "deep-recursion"] {
            assert!(ask(name).is_err(), "{name}");
        }
    }
    println!("grown {}", resident().saturating_sub(before));
    Some(ExitCode::SUCCESS)
}

/// Resident memory of this process, bytes.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}
