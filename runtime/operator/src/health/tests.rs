use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
};

use tokio::sync::oneshot;

use super::*;

#[test]
fn readiness_waits_for_every_cache() {
    let (health, now) = (Health::default(), Instant::now());
    assert!(!health.is_ready(now), "nothing has started");
    assert!(health.report(now).contains("not started"));
    health.expect(ObjectKind::DataPlane);
    health.expect(ObjectKind::Secret);
    health.synced(ObjectKind::DataPlane);
    assert!(!health.is_ready(now));
    health.synced(ObjectKind::Secret);
    health.expect(ObjectKind::Secret);
    assert!(health.is_ready(now), "expecting again does not forget");
    health.policy(SlotName::KonnectEnv, "sha256:abc");
    let expected = "role: ok: standby\ncache DataPlane: ok\ncache Secret: ok\npolicy konnect-env: ok: sha256:abc\nready\n";
    assert_eq!(health.report(now), expected);
}

#[test]
fn a_watch_that_is_broken_for_long_is_not_ready_and_named_and_is_no_reason_to_be_killed() {
    let health = Health::default();
    health.leading(true);
    health.synced(ObjectKind::DataPlane);
    health.synced(ObjectKind::Secret);
    let (all, one) = (health.watch(ObjectKind::DataPlane, ""), health.watch(ObjectKind::Secret, "team-a"));
    let later = || Instant::now() + BROKEN;
    assert!(health.is_ready(later()), "nothing is known against them");
    [&all, &one].into_iter().for_each(Sign::asks);
    assert!(health.is_ready(Instant::now()), "a while is allowed");
    all.works();
    let since = Instant::now();
    // Trying again does not begin the time anew.
    one.asks();
    assert!(!health.is_ready(since + BROKEN));
    let report = health.report(since + BROKEN);
    assert!(report.contains("watch Secret in team-a: not ok: it has not worked for 60 s") && report.ends_with("\nnot ready\n"), "{report}");
    assert!(!report.contains("watch DataPlane"), "{report}");
    // Only the worker loop decides whether a restart helps.
    let still_in_time = Instant::now() + SILENCE;
    health.tick();
    assert!(health.is_alive(still_in_time));
    one.works();
    assert!(health.is_ready(later()) && !health.report(later()).contains("watch"));
}

#[test]
fn only_a_leader_has_to_tick() {
    let health = Health::default();
    let later = Instant::now() + SILENCE + Duration::from_secs(5);
    assert!(health.is_alive(later));
    health.leading(true);
    assert!(health.is_alive(Instant::now()));
    assert!(!health.is_alive(later));
    health.leading(false);
    assert!(health.is_alive(later));
}

fn ask(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
    let mut answer = String::new();
    // Ends, because the server closes.
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

async fn get(address: SocketAddr, path: &'static str) -> String {
    tokio::task::spawn_blocking(move || ask(address, path)).await.expect("no panic")
}

#[tokio::test]
async fn probes_and_metrics_answer_and_stop() {
    let health = Health::default();
    let server = Server::bind("--probes", "127.0.0.1:0").await.expect("bound").expect("on");
    let address = server.address().expect("an address");
    let (stop, stopped) = oneshot::channel::<()>();
    let metrics = Arc::new(Metrics::new(Arc::default()));
    let router = probes(health.clone()).merge(exposition(metrics));
    let task = tokio::spawn(server.run(router, async move { _ = stopped.await }));

    assert!(get(address, "/healthz").await.starts_with("HTTP/1.1 200"));
    let not_ready = get(address, "/readyz").await;
    assert!(not_ready.starts_with("HTTP/1.1 503") && not_ready.contains("not started"), "{not_ready}");
    health.synced(ObjectKind::DataPlane);
    let ready = get(address, "/readyz").await;
    assert!(ready.starts_with("HTTP/1.1 200") && !ready.contains("cache") && ready.contains("connection: close"), "{ready}");
    assert!(get(address, "/readyz?verbose").await.contains("cache DataPlane: ok"));
    let text = get(address, "/metrics").await;
    assert!(text.contains("openmetrics-text") && text.contains("weir_leader 0"), "{text}");
    assert!(get(address, "/other").await.starts_with("HTTP/1.1 404"));

    stop.send(()).expect("it runs");
    tokio::time::timeout(Duration::from_secs(5), task).await.expect("it stops").expect("no panic");
}

#[tokio::test]
async fn a_client_that_says_nothing_is_cut_off() {
    let server = Server::bind("--probes", "127.0.0.1:0").await.expect("bound").expect("on").with_lifetime(Duration::from_millis(100));
    let address = server.address().expect("an address");
    let task = tokio::spawn(server.run(probes(Health::default()), std::future::pending()));
    let silent = move || {
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
        stream.write_all(b"GET /healthz HTTP/1.1\r\n").expect("sent");
        stream.read(&mut [0; 1])
    };
    // Closed or reset, but not still open.
    let end = tokio::task::spawn_blocking(silent).await.expect("no panic");
    assert!(end.as_ref().map_or_else(|e| e.kind() != std::io::ErrorKind::WouldBlock, |n| *n == 0), "{end:?}");
    task.abort();
}

#[tokio::test]
async fn an_address_is_checked_and_may_be_off() {
    assert!(Server::bind("--metrics", "0").await.expect("off").is_none());
    assert!(Server::bind("--metrics", "").await.expect("off").is_none());
    for bad in ["8080", "host", "1.2.3.4:", ":99999"] {
        let error = Server::bind("--metrics", bad).await.expect_err("refused").to_string();
        assert!(error.contains("--metrics") && error.contains(":8080"), "{error}");
    }
    let first = Server::bind("--metrics", ":0").await.expect("bound").expect("on");
    let taken = format!("127.0.0.1:{}", first.address().expect("an address").port());
    let second = Server::bind("--metrics", "127.0.0.1:0").await.expect("bound").expect("on");
    let taken_too = SocketAddr::from((Ipv4Addr::LOCALHOST, second.address().expect("an address").port())).to_string();
    for taken in [taken, taken_too] {
        let error = Server::bind("--metrics", &taken).await.expect_err("taken").to_string();
        assert!(error.contains("--metrics") && error.contains(&taken) && error.contains("free the port"), "{error}");
    }
}

#[test]
fn a_broken_file_of_settings_is_named_and_is_no_matter_of_readiness() {
    let health = Health::default();
    let now = Instant::now();
    health.expect(ObjectKind::DataPlane);
    health.synced(ObjectKind::DataPlane);
    let broken = Some("r.yaml: registries[0].prefix: it is none".to_owned());
    health.settings(vec![("--registries-file".into(), broken), ("--verification-file".into(), None)]);
    let report = health.report(now);
    assert!(
        report.contains("settings --registries-file: not ok: r.yaml: registries[0].prefix: it is none; what was read before is in force\n")
    );
    assert!(report.contains("settings --verification-file: ok\n"), "{report}");
    assert!(health.is_ready(now));
}
