//! The pool: who gets a connection, when one is tested, replaced, given up, and how it ends.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use weir_host::remote::{AcquireError, Behavior as Hook, Event, Reason, Stage, State, Verb};
use weir_remote_plugin::{Behavior, Fault};

use crate::support::{LONG, Lab, NAME, registry, serve, spec, tuning, until, until_reason};

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_is_reached_before_anybody_asks_and_says_what_it_offers() {
    let lab = Lab::good().await;
    let capabilities = lab.plugin.capabilities().unwrap();
    assert_eq!(capabilities.services.len(), 3, "the database's is passed over: {capabilities:?}");
    assert_eq!(capabilities.slots.len(), 4);
    assert!(capabilities.wants("apps", "Deployment", Verb::Evaluate) && !capabilities.wants("", "Pod", Verb::Create));
    assert!(lab.plugin.metadata().unwrap().digest().starts_with("sha256:"));
    let lease = lab.registry.acquire(NAME, LONG).await.unwrap();
    let patch = lease.lifecycle(Verb::Create, b"{}".to_vec(), br#"{"kind":"Deployment"}"#.to_vec(), LONG).await.unwrap();
    assert!(String::from_utf8(patch).unwrap().contains("touched-by"));
    assert_eq!(lease.reconcile(Stage::Pre, b"{}".to_vec(), b"{}".to_vec(), LONG).await, Ok(Hook::Continue));
    assert_eq!(lease.reconcile(Stage::Post, b"{}".to_vec(), b"{}".to_vec(), LONG).await, Ok(Hook::Requeue(Some(Duration::from_secs(30)))));
    assert_eq!(lease.set_status(b"{}".to_vec(), LONG).await.unwrap().unwrap()["greeting"], NAME);
    let refused = lease.validate(None, br#"{"metadata":{"annotations":{"refuse":"x"}}}"#.to_vec(), LONG).await.unwrap();
    assert_eq!(refused[0].path, "metadata.annotations.refuse");
    let error = lab.registry.acquire("nobody", LONG).await.unwrap_err();
    assert_eq!(error, AcquireError::Unknown { name: "nobody".into() });
}

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_calls_through_eight_in_flight_are_fair_and_end() {
    let lab = Lab::with(Behavior::good(NAME), tuning(), |spec| spec.limits.in_flight = 8).await;
    until(&lab.plugin, |status| status.state == State::Ready).await;
    lab.server.handle().set(|b| b.fault = Fault::Slow(Duration::from_millis(1)));
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut all = Vec::new();
    for number in 0..2_000_usize {
        let (plugin, order) = (Arc::clone(&lab.plugin), Arc::clone(&order));
        // Polled once here, so that they queue in this order.
        let mut call = Box::pin(async move {
            let lease = plugin.acquire(Duration::from_secs(120)).await.unwrap();
            order.lock().unwrap().push(number);
            lease.reconcile(Stage::Pre, b"{}".to_vec(), b"{}".to_vec(), Duration::from_secs(60)).await.unwrap();
        });
        let _pending = futures::poll!(&mut call);
        all.push(tokio::spawn(call));
    }
    assert!(lab.plugin.gauges().waiting > 1_500, "{:?}", lab.plugin.gauges());
    for call in all {
        call.await.unwrap();
    }
    assert_eq!(lab.server.handle().calls(), 2_000);
    assert!(lab.server.handle().most_at_once() <= 8, "{}", lab.server.handle().most_at_once());
    let order = order.lock().unwrap();
    let jumped = order.iter().enumerate().map(|(at, number)| at.abs_diff(*number)).max().unwrap();
    assert!(jumped < 64, "a caller was served {jumped} places away from its turn");
    assert_eq!((lab.plugin.gauges().waiting, lab.plugin.gauges().in_flight), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_refuses_at_once() {
    let limits = |spec: &mut weir_host::remote::Spec| (spec.limits.in_flight, spec.limits.waiting) = (1, 1);
    let lab = Lab::with(Behavior::good(NAME), tuning(), limits).await;
    let lease = lab.plugin.acquire(LONG).await.unwrap();
    let plugin = Arc::clone(&lab.plugin);
    let second = tokio::spawn(async move { plugin.acquire(LONG).await.map(|_| ()) });
    while lab.plugin.gauges().waiting == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let began = Instant::now();
    let error = lab.plugin.acquire(LONG).await.unwrap_err();
    assert_eq!(error, AcquireError::Busy { name: NAME.into(), in_flight: 1, waiting: 1 });
    assert!(began.elapsed() < LONG / 4);
    drop(lease);
    second.await.unwrap().unwrap();
    let lease = lab.plugin.acquire(LONG).await.unwrap();
    let error = lab.plugin.acquire(Duration::from_millis(50)).await.unwrap_err();
    assert_eq!(error.reason(), "Timeout", "{error}");
    drop(lease);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_says_it_is_not_ready_gets_no_calls_until_it_is() {
    let lab = Lab::good().await;
    lab.server.handle().set(|b| b.ready = false);
    let status = until_reason(&lab.plugin, Reason::NotReady).await;
    assert_eq!(status.state, State::Reachable);
    assert_eq!(lab.plugin.acquire(LONG).await.unwrap_err().reason(), "NotReady");
    lab.server.handle().set(|b| b.ready = true);
    until(&lab.plugin, |status| status.state == State::Ready).await;
    lab.plugin.acquire(LONG).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_and_back_as_another_version_is_noticed_and_told_once() {
    let mut lab = Lab::good().await;
    let address = lab.server.address();
    let files = lab.both.files();
    drop(std::mem::replace(&mut lab.server, serve(files.clone(), Behavior::good(NAME)).await));
    let status = until_reason(&lab.plugin, Reason::Unreachable).await;
    assert!(status.metadata.is_some(), "who it was stays known");
    assert_eq!(lab.plugin.acquire(LONG).await.unwrap_err().reason(), "Unreachable");
    let mut behavior = Behavior::good(NAME);
    behavior.version = "2.0.0".into();
    let server = weir_remote_plugin::start(weir_remote_plugin::Config { listen: address, files, behavior }).await.unwrap();
    let status = until(&lab.plugin, |status| status.state == State::Ready).await;
    assert_eq!(status.metadata.as_ref().unwrap().version, "2.0.0");
    let states = lab.seen.all().into_iter().filter(|event| matches!(event, Event::State(..))).collect::<Vec<_>>();
    let expected =
        [Event::State(State::Ready, None), Event::State(State::Configured, Some(Reason::Unreachable)), Event::State(State::Ready, None)];
    assert_eq!(states, expected, "one line for each change");
    assert_eq!(lab.seen.count(|event| *event == Event::NewMetadata), 2);
    drop(server);
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_come_and_go_without_losing_a_call() {
    let lab = Lab::good().await;
    let second = serve(lab.both.files(), Behavior::good(NAME)).await;
    let client = &lab.both.client;
    let both = spec(&[&lab.server, &second], client, &lab.both.server.cert, None);
    let done = lab.registry.replace(vec![both.clone()]);
    assert!(done.changed.contains(NAME));
    while lab.plugin.gauges().connections < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(lab.server.connections(), 1, "the first pod keeps its connection");
    for _ in 0..20 {
        lab.plugin.acquire(LONG).await.unwrap().set_status(b"{}".to_vec(), LONG).await.unwrap();
    }
    assert!(lab.server.handle().calls() > 5 && second.handle().calls() > 5, "both are used");
    assert!(lab.registry.replace(vec![both]).kept.contains(NAME), "an equal spec changes nothing");
    lab.registry.replace(vec![spec(&[&second], client, &lab.both.server.cert, None)]);
    let before = lab.server.handle().calls();
    while lab.plugin.gauges().connections > 1 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for _ in 0..10 {
        lab.plugin.acquire(LONG).await.unwrap().set_status(b"{}".to_vec(), LONG).await.unwrap();
    }
    assert_eq!(lab.server.handle().calls(), before, "the removed pod is not asked any more");
    lab.registry.replace(vec![spec(&[], client, &lab.both.server.cert, None)]);
    until_reason(&lab.plugin, Reason::NoEndpoints).await;
    lab.registry.replace(vec![lab.spec()]);
    until(&lab.plugin, |status| status.state == State::Ready).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_without_an_address_is_no_endpoint() {
    let lab = Lab::with(Behavior::good(NAME), tuning(), |spec| spec.endpoints[0].host = "no-such-host.invalid".into()).await;
    let status = until_reason(&lab.plugin, Reason::NoEndpoints).await;
    assert!(status.message.contains("no-such-host.invalid"), "{}", status.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_taken_out_ends_without_waiting_and_lets_its_calls_end() {
    let lab = Lab::good().await;
    lab.server.handle().set(|b| b.fault = Fault::Slow(Duration::from_millis(300)));
    let lease = lab.plugin.acquire(LONG).await.unwrap();
    let call = tokio::spawn(async move { lease.set_status(b"{}".to_vec(), LONG).await });
    while lab.server.handle().calls() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let began = Instant::now();
    assert!(lab.registry.replace(Vec::new()).removed.contains(NAME));
    assert!(began.elapsed() < Duration::from_millis(200), "{:?}", began.elapsed());
    assert_eq!(lab.plugin.acquire(LONG).await.unwrap_err(), AcquireError::Closed { name: NAME.into() });
    call.await.unwrap().unwrap();
    assert_eq!(lab.plugin.status().reason, Some(Reason::Closed));
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_replaced_when_they_are_old() {
    let aged = weir_host::remote::Tuning { age: Duration::from_millis(300), ..tuning() };
    let lab = Lab::with(Behavior::good(NAME), aged, |_| {}).await;
    let began = Instant::now();
    // The pool's own word: the server counts a connection before it stands.
    while lab.seen.count(|event| *event == Event::Evicted("age")) < 2 {
        assert!(began.elapsed() < LONG);
        lab.plugin.acquire(LONG).await.unwrap().set_status(b"{}".to_vec(), LONG).await.unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(lab.server.connections() >= 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_of_two_does_not_mix_them() {
    let (registry, _) = registry(tuning());
    let lab = Lab::good().await;
    let mut other = lab.spec();
    other.name = "other.weir.dev".into();
    registry.replace(vec![lab.spec(), other]);
    until(&registry.get(NAME).unwrap(), |status| status.state == State::Ready).await;
    let status = until_reason(&registry.get("other.weir.dev").unwrap(), Reason::NameMismatch).await;
    assert_eq!(status.state, State::Reachable);
    assert!(status.message.contains(NAME), "{}", status.message);
}
