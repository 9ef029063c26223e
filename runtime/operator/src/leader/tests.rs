use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Instant,
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{Method, StatusCode},
    response::{IntoResponse, Response},
};
use k8s_openapi::{api::coordination::v1::LeaseSpec, jiff::Timestamp};
use serde_json::{Value, json};

use super::{
    decide::{Decision, Observed, claim, give_back, holder},
    *,
};

const SECOND: Duration = Duration::from_secs(1);

fn time(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("a time")
}

fn record(identity: &str, second: i64) -> LeaseSpec {
    claim(None, identity, 15 * SECOND, time(second))
}

#[test]
fn a_record_counts_as_dead_only_after_we_have_watched_it_for_its_duration() {
    let start = Instant::now();
    // Its clock says that it has been dead for hours; ours has only just seen it.
    let seen = Observed::look(None, record("other", -9_999), start);
    assert_eq!(seen.decide("me", SECOND, start), Decision::Wait(15 * SECOND));
    let seen = Observed::look(Some(seen), record("other", -9_999), start + 10 * SECOND);
    assert_eq!(seen.decide("me", SECOND, start + 10 * SECOND), Decision::Wait(5 * SECOND));
    let renewed = Observed::look(Some(seen.clone()), record("other", -9_998), start + 10 * SECOND);
    assert_eq!(renewed.decide("me", SECOND, start + 16 * SECOND), Decision::Wait(9 * SECOND), "a sign of life, whatever time it says");
    assert_eq!(seen.decide("me", SECOND, start + 15 * SECOND), Decision::Acquire);
    assert_eq!(seen.decide("other", SECOND, start), Decision::Renew);
}

#[test]
fn a_free_record_is_taken_at_once_and_one_without_duration_after_ours() {
    let now = Instant::now();
    let free = give_back(&record("other", 0), time(1));
    assert_eq!(holder(&free), None);
    assert_eq!(Observed::look(None, free, now).decide("me", SECOND, now), Decision::Acquire);
    assert_eq!(Observed::look(None, LeaseSpec::default(), now).decide("me", SECOND, now), Decision::Acquire);
    for odd in [None, Some(0), Some(-5)] {
        let record = LeaseSpec { lease_duration_seconds: odd, ..record("other", 0) };
        assert_eq!(Observed::look(None, record, now).decide("me", 3 * SECOND, now), Decision::Wait(3 * SECOND));
    }
}

#[test]
fn transitions_count_changes_of_the_holder() {
    let first = record("a", 0);
    assert_eq!(first.lease_transitions, Some(0));
    let renewed = claim(Some(&first), "a", 15 * SECOND, time(2));
    assert_eq!((renewed.lease_transitions, &renewed.acquire_time), (Some(0), &first.acquire_time));
    assert_ne!(renewed.renew_time, first.renew_time);
    let taken = claim(Some(&renewed), "b", 15 * SECOND, time(30));
    assert_eq!((taken.lease_transitions, holder(&taken)), (Some(1), Some("b")));
    assert_ne!(taken.acquire_time, first.acquire_time);
    let after_release = claim(Some(&give_back(&taken, time(31))), "b", Duration::from_millis(1_500), time(32));
    assert_eq!((after_release.lease_transitions, after_release.lease_duration_seconds), (Some(2), Some(2)));
    let kept = claim(Some(&LeaseSpec { strategy: Some("x".into()), ..first }), "a", SECOND, time(1));
    assert_eq!(kept.strategy.as_deref(), Some("x"));
}

#[test]
fn durations_that_let_two_lead_are_refused() {
    let config = Config::new("ns", "weir", "me");
    assert_eq!(config.check(), Ok(()));
    assert!(matches!(Config { renew_deadline: 15 * SECOND, ..config.clone() }.check(), Err(Error::Deadline { .. })));
    assert!(matches!(Config { retry_period: 6 * SECOND, ..config.clone() }.check(), Err(Error::Retry { .. })));
    assert!(matches!(Config { retry_period: Duration::ZERO, ..config.clone() }.check(), Err(Error::Retry { .. })));
    assert!(matches!(Config { identity: String::new(), ..config }.check(), Err(Error::Identity)));
}

/// One Lease of an API server, with its optimistic concurrency.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    lease: Option<Value>,
    version: u64,
    mood: Mood,
    writes: usize,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Mood {
    #[default]
    Well,
    Ill,
    Silent,
}

impl Server {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().expect("no panic")
    }

    fn holder(&self) -> String {
        self.inner().lease.as_ref().map(|l| l["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()).unwrap_or_default()
    }

    /// Somebody else's write.
    fn edit(&self, change: impl FnOnce(&mut Value)) {
        let mut inner = self.inner();
        let mut lease = inner.lease.take().expect("a lease");
        change(&mut lease);
        inner.store(lease);
    }

    async fn start(&self) -> Client {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let router = Router::new().fallback(answer).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Client::try_from(kube::Config::new(url.parse().expect("a URL"))).expect("a client")
    }
}

impl Inner {
    fn store(&mut self, mut lease: Value) -> Value {
        self.version += 1;
        lease["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.lease = Some(lease.clone());
        lease
    }
}

async fn answer(State(server): State<Server>, method: Method, body: Bytes) -> Response {
    let mood = server.inner().mood;
    if mood == Mood::Silent {
        std::future::pending::<()>().await;
    }
    let status = |code: StatusCode| {
        // The client goes by the reason.
        let reason = code.canonical_reason().unwrap_or_default().replace(' ', "");
        (code, json!({"kind": "Status", "status": "Failure", "code": code.as_u16(), "reason": reason}).to_string()).into_response()
    };
    if mood == Mood::Ill {
        return status(StatusCode::SERVICE_UNAVAILABLE);
    }
    let mut inner = server.inner();
    if method == Method::GET {
        return inner.lease.as_ref().map_or_else(|| status(StatusCode::NOT_FOUND), |l| l.to_string().into_response());
    }
    let sent: Value = serde_json::from_slice(&body).expect("JSON");
    let stored = inner.lease.as_ref().map(|l| l["metadata"]["resourceVersion"].clone());
    let fits = match (method == Method::POST, &stored) {
        (true, None) => true,
        (true, Some(_)) => return status(StatusCode::CONFLICT),
        (false, None) => return status(StatusCode::NOT_FOUND),
        (false, Some(version)) => *version == sent["metadata"]["resourceVersion"],
    };
    if !fits {
        return status(StatusCode::CONFLICT);
    }
    inner.writes += 1;
    inner.store(sent).to_string().into_response()
}

fn quick(identity: &str) -> Config {
    Config {
        lease_duration: SECOND,
        renew_deadline: Duration::from_millis(600),
        retry_period: Duration::from_millis(50),
        ..Config::new("weir-system", "weir", identity)
    }
}

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), what).await.expect("within 20 s")
}

#[tokio::test]
async fn one_leads_and_the_other_follows_on_release() {
    let server = Server::default();
    let client = server.start().await;
    let mut first = soon(acquire(client.clone(), quick("a"))).await;
    let mut second = tokio::spawn(acquire(client, quick("b")));
    // Longer than the lease: renewals keep the second out.
    tokio::time::timeout(Duration::from_millis(1_500), &mut second).await.expect_err("the first leads");
    assert_eq!(server.holder(), "a");
    assert!(!first.is_lost());
    tokio::time::timeout(Duration::from_millis(50), first.lost()).await.expect_err("not lost");
    let started = Instant::now();
    soon(first.release()).await;
    let second = soon(second).await.expect("no panic");
    assert!(started.elapsed() < SECOND, "sooner than the lease expires");
    assert_eq!(server.holder(), "b");
    assert_eq!(server.inner().lease.as_ref().expect("a lease")["spec"]["leaseTransitions"], 1);
    soon(second.release()).await;
    assert_eq!(server.holder(), "");
}

#[tokio::test]
async fn a_dead_leader_is_replaced_after_the_lease_duration() {
    let server = Server::default();
    let client = server.start().await;
    let first = soon(acquire(client.clone(), quick("a"))).await;
    drop(first);
    assert_eq!(server.holder(), "a", "dropping does not give it back");
    let started = Instant::now();
    let second = soon(acquire(client, quick("b"))).await;
    assert!(started.elapsed() >= SECOND);
    assert_eq!(server.holder(), "b");
    drop(second);
}

#[tokio::test]
async fn leadership_that_somebody_takes_is_lost() {
    for taker in ["b", ""] {
        let server = Server::default();
        let mut held = soon(acquire(server.start().await, quick("a"))).await;
        server.edit(|lease| lease["spec"]["holderIdentity"] = taker.into());
        soon(held.lost()).await;
        assert!(held.is_lost());
        soon(held.release()).await;
        assert_eq!(server.holder(), taker, "what is lost is not given back");
    }
    let server = Server::default();
    let mut held = soon(acquire(server.start().await, quick("a"))).await;
    server.inner().lease = None;
    soon(held.lost()).await;
}

#[tokio::test]
async fn an_edit_that_leaves_our_name_is_kept_and_costs_nothing() {
    let server = Server::default();
    let mut held = soon(acquire(server.start().await, quick("a"))).await;
    for round in 0..5 {
        server.edit(|lease| lease["metadata"]["labels"] = json!({"round": round.to_string()}));
        tokio::time::sleep(Duration::from_millis(120)).await;
    }
    tokio::time::timeout(Duration::from_millis(700), held.lost()).await.expect_err("still leads");
    assert_eq!(server.inner().lease.as_ref().expect("a lease")["metadata"]["labels"]["round"], "4");
    soon(held.release()).await;
}

#[tokio::test]
async fn a_leader_without_a_server_stops_before_anybody_could_follow() {
    for mood in [Mood::Ill, Mood::Silent] {
        let server = Server::default();
        let mut held = soon(acquire(server.start().await, quick("a"))).await;
        server.inner().mood = mood;
        let started = Instant::now();
        soon(held.lost()).await;
        let took = started.elapsed();
        assert!(took < SECOND, "{took:?}: before the lease duration is over");
        assert!(took > Duration::from_millis(400), "{took:?}: not at the first failure");
    }
}

#[tokio::test]
async fn a_short_outage_loses_nothing_and_a_start_waits_for_the_server() {
    let server = Server::default();
    server.inner().mood = Mood::Ill;
    let starting = tokio::spawn(acquire(server.start().await, quick("a")));
    tokio::time::sleep(Duration::from_millis(200)).await;
    server.inner().mood = Mood::Well;
    let mut held = soon(starting).await.expect("no panic");
    server.inner().mood = Mood::Ill;
    tokio::time::sleep(Duration::from_millis(200)).await;
    server.inner().mood = Mood::Well;
    tokio::time::timeout(SECOND, held.lost()).await.expect_err("still leads");
    assert!(server.inner().writes > 3);
    soon(held.release()).await;
}

#[tokio::test]
async fn a_release_that_nobody_answers_ends() {
    let server = Server::default();
    let held = soon(acquire(server.start().await, Config { lease_duration: 15 * SECOND, renew_deadline: 10 * SECOND, ..quick("a") })).await;
    server.inner().mood = Mood::Silent;
    let started = Instant::now();
    held.release().await;
    assert!(started.elapsed() < 5 * SECOND);
}

#[tokio::test]
async fn of_many_candidates_one_leads() {
    let server = Server::default();
    let client = server.start().await;
    let mut all = tokio::task::JoinSet::new();
    for n in 0..8 {
        all.spawn(acquire(client.clone(), quick(&format!("c{n}"))));
    }
    let held = soon(all.join_next()).await.expect("one").expect("no panic");
    tokio::time::timeout(Duration::from_millis(700), all.join_next()).await.expect_err("only one");
    drop(held);
}
