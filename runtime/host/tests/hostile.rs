//! Guests that misbehave, one way each. Whatever they do: one `PolicyError`, soon, and the host serves the next call.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's way to fail")]

mod support;

use std::time::{Duration, Instant};

use futures::{executor::block_on, future::join_all};
use serde_json::Value;
use support::{Guest, ask, host, input, le, limits, load, rss, run};
use weir_core::policy::{KonnectEnv, Policy, PolicyError};
use weir_host::wasm::LoadError;

#[test]
fn a_well_behaved_guest_answers() {
    let answer = run(&host(), &Guest::default()).unwrap();
    assert!(answer.env.is_empty() && answer.readiness_path.is_none());
}

#[test]
fn an_endless_loop_is_a_deadline() {
    let host = host();
    let policy = load(&host, &Guest::evaluating("(loop $again (br $again)) (unreachable)").build());
    let start = Instant::now();
    assert_eq!(ask(&*policy), Err(PolicyError::Deadline { limit_ms: 200 }));
    assert!(start.elapsed() >= Duration::from_millis(195), "{:?}", start.elapsed());
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    assert!(run(&host, &Guest::default()).is_ok());
}

#[test]
fn growing_without_end_is_memory() {
    let grower = "(loop $again (drop (call $alloc (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 65536))) (br $again)) (unreachable)";
    let outcome = run(&host(), &Guest::evaluating(grower));
    assert!(matches!(&outcome, Err(PolicyError::Memory(m)) if m.contains("33554432 are allowed")), "{outcome:?}");
}

#[test]
fn a_guest_that_lives_with_a_refused_growth_answers() {
    let body = "(if (i32.ne (memory.grow (i32.const 1000)) (i32.const -1)) (then (unreachable))) (i32.const 1024)";
    assert!(run(&host(), &Guest::evaluating(body)).is_ok());
}

#[test]
fn a_module_that_starts_too_large_is_memory() {
    let guest = Guest { pages: 33 * 16, ..Guest::default() };
    let outcome = host().load::<KonnectEnv>(&guest.build(), "test".into(), Value::Null, limits(200, 32));
    assert!(matches!(&outcome, Err(LoadError::Policy(PolicyError::Memory(_)))), "{outcome:?}");
}

#[test]
fn growing_tables_is_memory() {
    let guest = Guest {
        more: "(table $t 1 funcref)".into(),
        ..Guest::evaluating(
            "(loop $again (br_if $again (i32.ne (table.grow $t (ref.null func) (i32.const 1000)) (i32.const -1)))) (unreachable)",
        )
    };
    let outcome = run(&host(), &guest);
    assert!(matches!(&outcome, Err(PolicyError::Memory(m)) if m.contains("table elements")), "{outcome:?}");
}

#[test]
fn traps_say_their_code() {
    let host = host();
    for (body, says) in [
        ("(unreachable)", "unreachable"),
        ("(i32.div_u (i32.const 1) (i32.const 0))", "divide by zero"),
        ("(i32.load (i32.const -4))", "out of bounds memory access"),
    ] {
        let outcome = run(&host, &Guest::evaluating(body));
        assert!(matches!(&outcome, Err(PolicyError::Trap(t)) if t.contains(says) && t.len() < 200), "{outcome:?}");
    }
}

#[test]
fn deep_recursion_is_a_trap() {
    let guest = Guest {
        more: "(func $down (param i32) (result i32) (i32.add (call $down (local.get 0)) (i32.const 1)))".into(),
        ..Guest::evaluating("(call $down (i32.const 0))")
    };
    let outcome = run(&host(), &guest);
    assert!(matches!(&outcome, Err(PolicyError::Trap(t)) if t.contains("stack exhausted")), "{outcome:?}");
}

/// Result `ok` at 8192 whose readiness path is `some(pointer, length)`.
fn readiness(pointer: u32, length: u32, data: &str) -> Guest {
    let more = format!(r#"(data (i32.const 8220) "\01\00\00\00{}{}") {data}"#, le(pointer), le(length));
    Guest { more, ..Guest::evaluating("(i32.const 8192)") }
}

#[test]
fn unreadable_answers_are_bad_output() {
    let host = host();
    let cases = [
        ("invalid utf-8", readiness(9000, 2, r#"(data (i32.const 9000) "\ff\fe")"#)),
        ("string out of bounds", readiness(0xffff_0000, 64, "")),
        ("bad discriminant", Guest { more: r#"(data (i32.const 8220) "\07")"#.into(), ..Guest::evaluating("(i32.const 8192)") }),
        ("unaligned result", Guest::evaluating("(i32.const 8193)")),
        ("result out of bounds", Guest::evaluating("(i32.const -8)")),
    ];
    for (what, guest) in cases {
        let outcome = run(&host, &guest);
        assert!(matches!(&outcome, Err(PolicyError::BadOutput(m)) if m.len() <= 300), "{what}: {outcome:?}");
    }
}

#[test]
fn an_answer_that_breaks_the_slots_rules_is_bad_output() {
    let outcome = run(&host(), &readiness(9000, 6, r#"(data (i32.const 9000) "status")"#));
    assert!(matches!(&outcome, Err(PolicyError::BadOutput(m)) if m.contains("readiness-path")), "{outcome:?}");
    let answer = run(&host(), &readiness(9000, 7, r#"(data (i32.const 9000) "/status")"#)).unwrap();
    assert_eq!(answer.readiness_path.as_deref(), Some("/status"));
}

#[test]
fn an_unknown_case_is_bad_output_and_named() {
    // One volume at 9000: name "v" at 9100, source case 2 (`other`) with "csi" at 9104.
    let more = format!(
        r#"(data (i32.const 8204) "{}{}") (data (i32.const 9000) "{}{}\02\00\00\00{}{}") (data (i32.const 9100) "v\00\00\00csi")"#,
        le(9000),
        le(1),
        le(9100),
        le(1),
        le(9104),
        le(3)
    );
    let outcome = run(&host(), &Guest { more, ..Guest::evaluating("(i32.const 8192)") });
    assert!(matches!(&outcome, Err(PolicyError::BadOutput(m)) if m.contains("volume-source `other(csi)`")), "{outcome:?}");
}

/// A refusal at 8192 with this code and message.
fn refusing(code: &str, message: &str) -> Guest {
    let more = format!(
        r#"(data (i32.const 8192) "\01\00\00\00{}{}{}{}") (data (i32.const 9000) "{code}") (data (i32.const 9500) "{message}")"#,
        le(9000),
        le(u32::try_from(code.len()).unwrap()),
        le(9500),
        le(u32::try_from(message.len()).unwrap())
    );
    Guest { more, ..Guest::evaluating("(i32.const 8192)") }
}

#[test]
fn refusals_are_answers_if_they_can_be_shown() {
    let host = host();
    match run(&host, &refusing("NoRegion", "set spec.region")) {
        Err(PolicyError::Refused(r)) => assert_eq!((r.code.as_str(), r.message.as_str()), ("NoRegion", "set spec.region")),
        other => panic!("{other:?}"),
    }
    for guest in [refusing("no region", "m"), refusing("", "m"), refusing("Ok", &"x".repeat(1025))] {
        let outcome = run(&host, &guest);
        assert!(matches!(outcome, Err(PolicyError::BadOutput(_))), "{outcome:?}");
    }
}

#[test]
fn a_giant_answer_is_memory_and_the_process_stays_small() {
    let host = host();
    // A million environment variables, and a string over most of the memory: each call would copy more than the guest has.
    let list = Guest {
        more: format!(r#"(data (i32.const 8196) "{}{}")"#, le(0), le(1 << 20)),
        pages: 400,
        ..Guest::evaluating("(i32.const 8192)")
    };
    let string = Guest { pages: 400, ..readiness(9000, 20 << 20, "") };
    for policy in [load(&host, &list.build()), load(&host, &string.build())] {
        let before = rss();
        for _ in 0..20 {
            let outcome = ask(&*policy);
            assert!(matches!(&outcome, Err(PolicyError::Memory(m)) if m.contains("handed to the host")), "{outcome:?}");
        }
        assert!(rss() < before + 64 * 1024, "{} KiB, before {before} KiB", rss());
    }
    assert!(run(&host, &Guest::default()).is_ok());
}

#[test]
fn logging_without_end_is_bounded() {
    let line = "(call $log (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 5000))";
    let body = format!(
        "(local $n i32) (loop $again {line} (local.set $n (i32.add (local.get $n) (i32.const 1)))
        (br_if $again (i32.lt_u (local.get $n) (i32.const 10000)))) (i32.const 1024)"
    );
    let outcome = run(&host(), &Guest::evaluating(&body));
    assert!(outcome.is_ok(), "{outcome:?}");
    let garbage =
        run(&host(), &Guest::evaluating("(call $log (i32.const 9) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)) (unreachable)"));
    assert!(matches!(garbage, Err(PolicyError::BadOutput(_))), "{garbage:?}");
}

#[test]
fn one_slow_policy_does_not_stop_the_others() {
    let host = support::host();
    let slow = load(&host, &Guest::evaluating("(loop $again (br $again)) (unreachable)").build());
    let good = load(&host, &Guest::default().build());
    // Twenty slow calls: two at once, the others wait in their own lane and not in the way of the good policy.
    let slow_calls = std::thread::spawn({
        let slow = slow.clone();
        move || block_on(join_all((0..20).map(|_| async { ask_async(&*slow).await })))
    });
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(1) {
        assert!(ask(&*good).is_ok());
    }
    let outcomes = slow_calls.join().unwrap();
    assert!(outcomes.iter().all(|o| *o == Err(PolicyError::Deadline { limit_ms: 200 })), "{outcomes:?}");
}

async fn ask_async(policy: &dyn Policy<KonnectEnv>) -> Result<weir_core::policy::konnect_env::Answer, PolicyError> {
    policy.evaluate(&input()).await
}

#[test]
fn many_calls_in_parallel() {
    let host = host();
    let policies = [
        load(&host, &Guest::default().build()),
        load(&host, &readiness(9000, 7, r#"(data (i32.const 9000) "/status")"#).build()),
        load(&host, &Guest::evaluating("(unreachable)").build()),
    ];
    let question = input();
    // Within the queue of 1024; each with a store of its own.
    let outcomes = block_on(join_all((0..900).map(|i| policies[i % 3].evaluate(&question))));
    for (i, outcome) in outcomes.iter().enumerate() {
        match (i % 3, outcome) {
            (0, Ok(a)) => assert_eq!(a.readiness_path, None),
            (1, Ok(a)) => assert_eq!(a.readiness_path.as_deref(), Some("/status")),
            (2, Err(PolicyError::Trap(_))) => {}
            other => panic!("{other:?}"),
        }
    }
}
