//! Guests that import WASI: what the stubs give, and that nothing waits, grows or differs by them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test's way to fail")]

mod support;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::executor::block_on;
use serde_json::Value;
use support::{Guest, ask, host, input, limits};
use weir_core::policy::{KonnectEnv, PolicyError};
use weir_host::wasm::{
    LoadError, WasmPolicy,
    inspect::{self, Profile},
};

/// What of WASI these guests import.
const WASI: &str = r"
package weir:guest;
package wasi:clocks@0.2.6 {
  interface monotonic-clock {
    use wasi:io/poll@0.2.6.{pollable};
    now: func() -> u64;
    subscribe-duration: func(when: u64) -> pollable;
  }
}
package wasi:io@0.2.6 {
  interface poll { resource pollable { ready: func() -> bool; block: func(); } poll: func(all: list<borrow<pollable>>) -> list<u32>; }
  interface error { resource error; }
  interface streams {
    use error.{error};
    variant stream-error { last-operation-failed(error), closed }
    resource output-stream { blocking-write-and-flush: func(contents: list<u8>) -> result<_, stream-error>; }
    resource input-stream { read: func(len: u64) -> result<list<u8>, stream-error>; }
  }
}
package wasi:cli@0.2.6 {
  interface exit { exit: func(status: result); }
  interface stderr { use wasi:io/streams@0.2.6.{output-stream}; get-stderr: func() -> output-stream; }
  interface stdin { use wasi:io/streams@0.2.6.{input-stream}; get-stdin: func() -> input-stream; }
}
package wasi:random@0.2.6 {
  interface random { get-random-bytes: func(len: u64) -> list<u8>; get-random-u64: func() -> u64; }
}
package wasi:sockets@0.2.6 {
  interface network { enum error-code { unknown, access-denied, not-supported } enum ip-address-family { ipv4, ipv6 } }
  interface tcp { resource tcp-socket { start-listen: func() -> result; } }
  interface tcp-create-socket {
    use network.{error-code, ip-address-family};
    use tcp.{tcp-socket};
    create-tcp-socket: func(family: ip-address-family) -> result<tcp-socket, error-code>;
  }
}
world guest {
  include weir:policy/konnect-env-policy@0.1.0;
  import wasi:clocks/monotonic-clock@0.2.6;
  import wasi:io/poll@0.2.6;
  import wasi:io/streams@0.2.6;
  import wasi:cli/exit@0.2.6;
  import wasi:cli/stderr@0.2.6;
  import wasi:cli/stdin@0.2.6;
  import wasi:random/random@0.2.6;
  import wasi:sockets/tcp-create-socket@0.2.6;
}
";

/// Their names in the core module.
const IMPORTS: &str = r#"
  (import "wasi:clocks/monotonic-clock@0.2.6" "now" (func $now (result i64)))
  (import "wasi:clocks/monotonic-clock@0.2.6" "subscribe-duration" (func $sleep (param i64) (result i32)))
  (import "wasi:io/poll@0.2.6" "[method]pollable.block" (func $block (param i32)))
  (import "wasi:io/poll@0.2.6" "[resource-drop]pollable" (func $drop (param i32)))
  (import "wasi:io/poll@0.2.6" "poll" (func $poll (param i32 i32 i32)))
  (import "wasi:io/streams@0.2.6" "[method]output-stream.blocking-write-and-flush" (func $write (param i32 i32 i32 i32)))
  (import "wasi:io/streams@0.2.6" "[method]input-stream.read" (func $read (param i32 i64 i32)))
  (import "wasi:cli/exit@0.2.6" "exit" (func $exit (param i32)))
  (import "wasi:cli/stderr@0.2.6" "get-stderr" (func $stderr (result i32)))
  (import "wasi:cli/stdin@0.2.6" "get-stdin" (func $stdin (result i32)))
  (import "wasi:random/random@0.2.6" "get-random-u64" (func $random (result i64)))
  (import "wasi:random/random@0.2.6" "get-random-bytes" (func $bytes (param i64 i32)))
  (import "wasi:sockets/tcp-create-socket@0.2.6" "create-tcp-socket" (func $socket (param i32 i32)))"#;

/// What ends a guest that takes all it can get: which of its bounds comes first is a matter of how fast the machine is.
fn is_bound(error: &PolicyError) -> bool {
    matches!(error, PolicyError::Memory(_) | PolicyError::Deadline { .. })
}

fn guest(evaluate: &str) -> Arc<WasmPolicy<KonnectEnv>> {
    let core = Guest::evaluating(evaluate).core().replacen("(module", &format!("(module{IMPORTS}"), 1);
    let bytes = support::component_with(WASI, "guest", &core);
    let interfaces = inspect::interfaces(&bytes, 1 << 20).unwrap();
    assert_eq!((interfaces.check_imports(), interfaces.profile()), (Ok(()), Profile::StubWasi));
    host().load::<KonnectEnv>(&bytes, "test".into(), Value::Null, limits(200, 32)).expect("it loads")
}

/// Asks twice: whatever it does, it does again.
fn twice(evaluate: &str) -> Result<(), PolicyError> {
    let policy = guest(evaluate);
    let first = ask(&*policy);
    assert_eq!(ask(&*policy), first);
    first.map(|_| ())
}

/// A guest that goes on only if `condition` leaves something other than zero.
fn holds(condition: &str) {
    let outcome = twice(&format!("(if (i32.eqz {condition}) (then unreachable)) (i32.const 1024)"));
    assert_eq!(outcome, Ok(()), "{condition}");
}

#[test]
fn whoever_waits_for_a_clock_or_sleeps_runs_into_the_deadline() {
    for body in [
        "(loop $again (br_if $again (i64.lt_u (call $now) (i64.const 1000))))",
        "(loop $again (local.set 0 (call $sleep (i64.const 3600000000000))) (call $block (local.get 0)) (call $drop (local.get 0)) (br $again))",
    ] {
        let policy = guest(&format!("{body} (i32.const 1024)"));
        let start = Instant::now();
        assert_eq!(ask(&*policy), Err(PolicyError::Deadline { limit_ms: 200 }), "{body}");
        assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    }
}

#[test]
fn a_sleep_of_an_hour_is_over_at_once() {
    let start = Instant::now();
    holds("(block (result i32) (local.set 0 (call $sleep (i64.const 3600000000000))) (call $block (local.get 0)) (i64.eqz (call $now)))");
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
}

#[test]
fn what_is_polled_is_ready_and_nothing_cannot_be_polled() {
    // The list's one handle is at 8192; the answer, a list with index 0, goes to 8200.
    holds(
        "(block (result i32) (i32.store (i32.const 8192) (call $sleep (i64.const 1))) (call $poll (i32.const 8192) (i32.const 1) (i32.const 8200))
          (i32.and (i32.eq (i32.load (i32.const 8204)) (i32.const 1)) (i32.eqz (i32.load (i32.load (i32.const 8200))))))",
    );
    let outcome = twice("(call $poll (i32.const 8192) (i32.const 0) (i32.const 8200)) (i32.const 1024)");
    assert!(matches!(&outcome, Err(PolicyError::Trap(why)) if why.contains("poll of nothing")), "{outcome:?}");
}

#[test]
fn handles_are_counted() {
    let outcome = twice("(loop $again (drop (call $sleep (i64.const 1))) (br $again)) (i32.const 1024)");
    assert!(matches!(&outcome, Err(PolicyError::Trap(_) | PolicyError::BadOutput(_))), "{outcome:?}");
}

#[test]
fn random_numbers_are_the_same_in_every_call_and_not_in_one() {
    holds("(i64.ne (call $random) (call $random))");
    // On another day and another machine, too.
    holds("(i64.eq (call $random) (i64.const 0xe8beb709f5cea526))");
}

#[test]
fn random_bytes_are_bounded() {
    holds("(block (result i32) (call $bytes (i64.const 100) (i32.const 8200)) (i32.eq (i32.load (i32.const 8204)) (i32.const 100)))");
    let outcome = twice("(call $bytes (i64.const 1099511627776) (i32.const 8200)) (i32.const 1024)");
    assert!(matches!(&outcome, Err(PolicyError::Trap(why)) if why.contains("random bytes")), "{outcome:?}");
    let flood = "(loop $again (call $bytes (i64.const 65536) (i32.const 8200)) (br $again)) (i32.const 1024)";
    let policy = guest(flood);
    for _ in 0..2 {
        let outcome = ask(&*policy);
        assert!(outcome.as_ref().is_err_and(is_bound), "{outcome:?}");
    }
}

#[test]
fn there_is_nothing_to_read_and_no_socket() {
    // A result's tag, and behind it the case of its error: `closed` and `not-supported`.
    holds(
        "(block (result i32) (call $read (call $stdin) (i64.const 10) (i32.const 8200))
          (i32.and (i32.load8_u (i32.const 8200)) (i32.load8_u (i32.const 8204))))",
    );
    holds(
        "(block (result i32) (call $socket (i32.const 0) (i32.const 8200))
          (i32.and (i32.load8_u (i32.const 8200)) (i32.eq (i32.load8_u (i32.const 8204)) (i32.const 2))))",
    );
}

#[test]
fn to_exit_is_no_answer() {
    let outcome = twice("(call $exit (i32.const 0)) (i32.const 1024)");
    assert_eq!(outcome, Err(PolicyError::Trap("it called exit, which policies do not get".into())));
}

#[test]
fn what_is_written_becomes_log_lines_within_their_bounds() {
    // `oh` and an end of line, then `no` without one.
    let body = r#"(i32.store (i32.const 8192) (i32.const 0x6e0a686f)) (i32.store8 (i32.const 8196) (i32.const 0x6f))
        (local.set 0 (call $stderr)) (call $write (local.get 0) (i32.const 8192) (i32.const 5) (i32.const 8200)) (i32.const 1024)"#;
    let (outcome, usage) = block_on(guest(body).measured(&input()));
    let lines: Vec<&str> = usage.lines.iter().map(|line| line.text.as_str()).collect();
    assert_eq!((outcome.map(|_| ()), lines), (Ok(()), vec!["oh", "no"]));
    let flood = "(local.set 0 (call $stderr)) (loop $again (call $write (local.get 0) (i32.const 8192) (i32.const 4096) (i32.const 8200)) (br $again)) (i32.const 1024)";
    let (outcome, usage) = block_on(guest(flood).measured(&input()));
    assert!(outcome.as_ref().is_err_and(is_bound), "{outcome:?}");
    assert!(usage.lines.len() <= 257, "{}", usage.lines.len());
}

#[test]
fn interfaces_without_a_stub_are_named() {
    for import in ["wasi:http/types@0.2.6", "wasi:cli/environment@0.3.0", "wasi:cli/environment@0.2.0-rc-2023-11-10", "wasi:nn/graph@0.2.0"]
    {
        let bytes = wat::parse_str(format!(r#"(component (import "{import}" (instance)))"#)).unwrap();
        let outcome = host().load::<KonnectEnv>(&bytes, "test".into(), Value::Null, limits(200, 32));
        assert!(matches!(&outcome, Err(LoadError::Policy(PolicyError::Incompatible(why))) if why.contains(import)), "{outcome:?}");
    }
}

#[test]
fn a_function_that_wasi_does_not_have_only_fails_when_it_is_called() {
    // A later 0.2 may have it: what is not used needs no answer.
    let wit = WASI.replace("get-random-u64: func() -> u64;", "get-random-u64: func() -> u64; roll: func(sides: u32) -> u32;");
    let import = r#"(import "wasi:random/random@0.2.6" "roll" (func $roll (param i32) (result i32)))"#;
    let load = |evaluate: &str| {
        let core = Guest::evaluating(evaluate).core().replacen("(module", &format!("(module{import}"), 1);
        let bytes = support::component_with(&wit, "guest", &core);
        host().load::<KonnectEnv>(&bytes, "test".into(), Value::Null, limits(200, 32)).expect("it loads")
    };
    assert!(ask(&*load("(i32.const 1024)")).is_ok());
    let outcome = ask(&*load("(drop (call $roll (i32.const 6))) (i32.const 1024)"));
    assert!(matches!(&outcome, Err(PolicyError::Trap(why)) if why.contains("wasi:random/random#roll")), "{outcome:?}");
}
