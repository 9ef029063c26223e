//! A pool under load: second connections, pods that come and go by the number, plugins that are slow, and who else pays for it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use weir_host::remote::{Class, Event, Reason, Spec, State, Tuning};
use weir_remote_plugin::{Behavior, Fault};

use crate::support::{Both, LONG, Lab, NAME, registry, serve, spec, tuning, until, until_reason};

async fn status_call(lab: &Lab) {
    lab.plugin.acquire(LONG).await.unwrap().set_status(b"{}".to_vec(), LONG).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_connection_gets_a_second_one_that_goes_when_nobody_needs_it() {
    let quick = Tuning { idle: Duration::from_millis(300), ..tuning() };
    let limits = |spec: &mut Spec| (spec.limits.in_flight, spec.limits.connections) = (4, 2);
    let lab = Lab::with(Behavior::good(NAME), quick, limits).await;
    until(&lab.plugin, |status| status.state == State::Ready).await;
    lab.server.handle().set(|b| b.fault = Fault::Slow(Duration::from_secs(2)));
    let mut calls = Vec::new();
    for _ in 0..4 {
        let plugin = Arc::clone(&lab.plugin);
        calls.push(tokio::spawn(async move { plugin.acquire(LONG).await.unwrap().set_status(b"{}".to_vec(), LONG).await }));
    }
    until_connections(&lab, 2).await;
    assert_eq!(lab.server.connections(), 2, "two and not more, whatever waits");
    for call in calls {
        call.await.unwrap().unwrap();
    }
    lab.server.handle().set(|b| b.fault = Fault::None);
    until_connections(&lab, 1).await;
    assert_eq!(lab.seen.count(|event| *event == Event::Evicted("idle")), 1);
    // The first one stays however long nobody calls: it is what tells whether the plugin is there.
    tokio::time::sleep(quick.idle * 3).await;
    assert_eq!((lab.plugin.state(), lab.plugin.gauges().connections), (State::Ready, 1));
    status_call(&lab).await;
    assert_eq!(lab.server.connections(), 2, "no third one");
}

async fn until_connections(lab: &Lab, wanted: usize) {
    let began = Instant::now();
    while lab.plugin.gauges().connections != wanted {
        assert!(began.elapsed() < LONG, "{:?}", lab.plugin.gauges());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn from_one_pod_to_three_to_none_to_one() {
    let lab = Lab::good().await;
    let more = [serve(lab.both.files(), Behavior::good(NAME)).await, serve(lab.both.files(), Behavior::good(NAME)).await];
    let with = |servers: &[&weir_remote_plugin::Server]| spec(servers, &lab.both.client, &lab.both.server.cert, None);
    lab.registry.replace(vec![with(&[&lab.server, &more[0], &more[1]])]);
    until_connections(&lab, 3).await;
    for _ in 0..30 {
        status_call(&lab).await;
    }
    let asked = [&lab.server, &more[0], &more[1]].map(|server| server.handle().calls());
    assert!(asked.iter().all(|calls| *calls >= 5), "each has its share: {asked:?}");
    lab.registry.replace(vec![with(&[])]);
    until_reason(&lab.plugin, Reason::NoEndpoints).await;
    let began = Instant::now();
    assert_eq!(lab.plugin.acquire(LONG).await.unwrap_err().reason(), "NoEndpoints");
    assert!(began.elapsed() < LONG / 4, "nobody waits for pods that are not there");
    lab.registry.replace(vec![with(&[&more[1]])]);
    until(&lab.plugin, |status| status.state == State::Ready).await;
    status_call(&lab).await;
    assert_eq!(more[1].handle().calls(), asked[2] + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_answer_is_an_answer_and_the_callers_time_counts() {
    let lab = Lab::good().await;
    lab.server.handle().set(|b| b.fault = Fault::Slow(Duration::from_millis(300)));
    status_call(&lab).await;
    let lease = lab.plugin.acquire(LONG).await.unwrap();
    let error = lease.set_status(b"{}".to_vec(), Duration::from_millis(50)).await.unwrap_err();
    assert_eq!(error.class, Class::Deadline, "{error}");
    drop(lease);
    assert_eq!(lab.plugin.state(), State::Ready, "once is no outage");
    status_call(&lab).await;
}

/// Those who wait in vain for one plugin cost those of another nothing: the middle of their times grows by less than a tenth. Machines have bad
/// moments, so it has to hold in one of several rounds; what really costs does so in all.
#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_hangs_does_not_slow_another() {
    let (both, (registry, _)) = (Both::self_signed(), registry(tuning()));
    let (hung, well) = (serve(both.files(), Behavior::good("hung.weir.dev")).await, serve(both.files(), Behavior::good(NAME)).await);
    let of = |name: &str, server| Spec { name: name.into(), ..spec(&[server], &both.client, &both.server.cert, None) };
    registry.replace(vec![of("hung.weir.dev", &hung), of(NAME, &well)]);
    let (bad, good) = (registry.get("hung.weir.dev").unwrap(), registry.get(NAME).unwrap());
    until(&bad, |status| status.state == State::Ready).await;
    until(&good, |status| status.state == State::Ready).await;
    let middle = async || {
        let mut times = Vec::new();
        for _ in 0..300 {
            let began = Instant::now();
            good.acquire(LONG).await.unwrap().set_status(b"{}".to_vec(), LONG).await.unwrap();
            times.push(began.elapsed());
        }
        times.sort_unstable();
        times[times.len() / 2]
    };
    middle().await;
    let mut rounds = Vec::new();
    for _ in 0..6 {
        let before = middle().await;
        hung.handle().set(|b| b.fault = Fault::Hang);
        let waiting: Vec<_> = (0..200)
            .map(|_| {
                let bad = Arc::clone(&bad);
                tokio::spawn(async move {
                    let lease = bad.acquire(LONG).await?;
                    drop(lease.set_status(b"{}".to_vec(), LONG).await);
                    Ok::<_, weir_host::remote::AcquireError>(())
                })
            })
            .collect();
        while bad.gauges().in_flight < 32 || bad.gauges().waiting < 100 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let during = middle().await;
        waiting.iter().for_each(tokio::task::JoinHandle::abort);
        hung.handle().set(|b| b.fault = Fault::None);
        let began = Instant::now();
        while bad.gauges().in_flight + bad.gauges().waiting > 0 {
            assert!(began.elapsed() < LONG, "{:?}", bad.gauges());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        rounds.push((before, during));
        if during.as_secs_f64() <= before.as_secs_f64() * 1.1 {
            return;
        }
    }
    panic!("each time slower by over a tenth: {rounds:?}");
}
