//! Plugins that misbehave: each in its own way, with its own class, and never at the cost of anything else.

use std::time::{Duration, Instant};

use weir_host::remote::{Class, Event, Reason, State, Tuning, Verb};
use weir_remote_plugin::{Behavior, Fault};

use crate::support::{LONG, Lab, NAME, tuning, until, until_reason};

async fn call(lab: &Lab, within: Duration) -> Result<(), (Class, String)> {
    let lease = lab.plugin.acquire(LONG).await.unwrap();
    let object = br#"{"kind":"Deployment"}"#.to_vec();
    lease.lifecycle(Verb::Create, b"{}".to_vec(), object, within).await.map(|_| ()).map_err(|error| (error.class, error.message))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_has_its_class() {
    // Long, or a call that is not there would rightly have the connection replaced.
    let lab = Lab::with(Behavior::good(NAME), Tuning { health: LONG, ..tuning() }, |_| {}).await;
    until(&lab.plugin, |status| status.state == State::Ready).await;
    for (fault, class, says) in [
        (Fault::Panic, Class::Failed, "Unknown: panic triggered: runtime error: invalid memory address"),
        (Fault::NotYet, Class::Later, "FailedPrecondition: the backend is not there yet"),
        (Fault::Unimplemented, Class::Unimplemented, "Unimplemented: not here"),
        (Fault::Invalid, Class::Permanent, "InvalidArgument: what is that?"),
        (Fault::Huge, Class::TooLarge, "decoded message length too large"),
    ] {
        lab.server.handle().set(|b| b.fault = fault);
        let (found, message) = call(&lab, LONG).await.unwrap_err();
        assert_eq!(found, class, "{fault:?}: {message}");
        assert!(message.contains(says) && !message.contains("goroutine"), "{fault:?}: {message}");
        assert_eq!(lab.plugin.state(), State::Ready, "{fault:?} is no fault of the connection");
    }
    assert_eq!(lab.server.connections(), 1, "all of that over one connection");
    lab.server.handle().set(|b| b.fault = Fault::Unavailable);
    assert_eq!(call(&lab, LONG).await.unwrap_err().0, Class::Connection);
    lab.server.handle().set(|b| b.fault = Fault::None);
    call(&lab, LONG).await.unwrap();
    assert_eq!(lab.seen.count(|event| *event == Event::Evicted("call")), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_over_the_limit_is_not_sent() {
    let lab = Lab::good().await;
    let lease = lab.plugin.acquire(LONG).await.unwrap();
    let error = lease.set_status(vec![b' '; 5 << 20], LONG).await.unwrap_err();
    assert_eq!(error.class, Class::TooLarge, "{error}");
    assert_eq!(lab.server.handle().calls(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn deadlines_nest_and_hold_against_a_plugin_that_hangs() {
    let lab = Lab::good().await;
    lab.server.handle().set(|b| b.fault = Fault::Hang);
    let began = Instant::now();
    let (class, message) = call(&lab, Duration::from_millis(100)).await.unwrap_err();
    assert_eq!(class, Class::Deadline, "{message}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    lab.server.handle().set(|b| b.fault = Fault::None);
    call(&lab, LONG).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_hangs_in_everything_fails_its_test_and_is_given_up() {
    let mut deadlines = weir_host::remote::Deadlines::default();
    (deadlines.probe, deadlines.metadata) = (Duration::from_millis(100), Duration::from_millis(100));
    let lab = Lab::with(Behavior::good(NAME), tuning(), |spec| spec.deadlines = deadlines).await;
    until(&lab.plugin, |status| status.state == State::Ready).await;
    lab.server.handle().set(|b| b.fault = Fault::HangAll);
    let status = until_reason(&lab.plugin, Reason::ProbeFailed).await;
    assert_eq!(status.state, State::Reachable);
    let began = Instant::now();
    assert_eq!(lab.plugin.acquire(LONG).await.unwrap_err().reason(), "ProbeFailed");
    assert!(began.elapsed() < LONG / 4, "told at once");
    lab.server.handle().set(|b| b.fault = Fault::None);
    until(&lab.plugin, |status| status.state == State::Ready).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_breaker_opens_after_failures_in_a_row_and_a_test_closes_it() {
    let slow = Tuning { breaker: 3, backoff: Duration::from_secs(2), backoff_most: Duration::from_secs(2), ..tuning() };
    let lab = Lab::with(Behavior::good(NAME), slow, |_| {}).await;
    until(&lab.plugin, |status| status.state == State::Ready).await;
    lab.server.handle().set(|b| b.fault = Fault::Hang);
    for _ in 0..3 {
        assert_eq!(call(&lab, Duration::from_millis(20)).await.unwrap_err().0, Class::Deadline);
    }
    assert_eq!(lab.plugin.acquire(LONG).await.unwrap_err().reason(), "CircuitOpen");
    lab.server.handle().set(|b| b.fault = Fault::None);
    while lab.seen.count(|event| *event == Event::Breaker { open: false }) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    until(&lab.plugin, |status| status.state == State::Ready).await;
    call(&lab, LONG).await.unwrap();
    let breaker: Vec<_> = lab.seen.all().into_iter().filter(|event| matches!(event, Event::Breaker { .. })).collect();
    assert_eq!(breaker, [Event::Breaker { open: true }, Event::Breaker { open: false }]);
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_and_unknown_capabilities_are_passed_over() {
    let mut behavior = Behavior::good(NAME);
    behavior.fault = Fault::NilCapability;
    let lab = Lab::with(behavior, tuning(), |_| {}).await;
    until(&lab.plugin, |status| status.state == State::Ready).await;
    assert_eq!(lab.plugin.capabilities().unwrap().services.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_grpc_server_is_told_as_that() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let garbage = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            drop(tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").await);
        }
    });
    let lab = Lab::with(Behavior::good(NAME), tuning(), |spec| spec.endpoints[0].port = port).await;
    until_reason(&lab.plugin, Reason::TlsFailed).await;
    garbage.abort();
}
