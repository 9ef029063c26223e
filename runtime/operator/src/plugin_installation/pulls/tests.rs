use std::{collections::BTreeMap, sync::atomic::AtomicUsize, sync::atomic::Ordering};

use futures::future::BoxFuture;
use tokio::sync::Semaphore;
use weir_core::plugin_installation::snapshot::Artifact;
use weir_host::layer::Counters;

use super::*;

/// A registry that counts, and answers when it is allowed to; the one at `hangs.example.com` never does.
struct Fake {
    resolves: AtomicUsize,
    pulls: AtomicUsize,
    running: AtomicUsize,
    most: AtomicUsize,
    gate: Semaphore,
    /// What it says first.
    problems: Mutex<Vec<Problem>>,
}

impl Fake {
    async fn turn(&self, reference: &Reference) -> Result<(), Problem> {
        self.most.fetch_max(self.running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        if reference.registry() == "hangs.example.com" {
            std::future::pending::<()>().await;
        }
        self.gate.acquire().await.unwrap().forget();
        self.running.fetch_sub(1, Ordering::SeqCst);
        self.problems.lock().unwrap().pop().map_or(Ok(()), Err)
    }
}

impl Registry for Fake {
    fn resolve<'a>(&'a self, reference: &'a Reference, _: &'a Credentials) -> BoxFuture<'a, Result<String, Problem>> {
        async move {
            self.resolves.fetch_add(1, Ordering::SeqCst);
            self.turn(reference).await?;
            let tag = weir_core::hash::digest(reference.tag().unwrap_or_default().as_bytes());
            Ok(reference.digest().map_or(tag, String::from))
        }
        .boxed()
    }

    fn pull<'a>(&'a self, reference: &'a Reference, _: &'a Credentials) -> BoxFuture<'a, Result<Artifact, Problem>> {
        async move {
            self.pulls.fetch_add(1, Ordering::SeqCst);
            self.turn(reference).await?;
            let digest = reference.digest().unwrap_or_default().to_owned();
            Ok(Artifact { digest, files: BTreeMap::from([("a".to_owned(), b"b".to_vec())]), ..Artifact::default() })
        }
        .boxed()
    }
}

struct Bench {
    fake: Arc<Fake>,
    pulls: Arc<Pulls>,
    woken: Arc<Mutex<Vec<Key>>>,
    _stop: watch::Sender<bool>,
}

fn bench(permits: usize) -> Bench {
    let fake = Arc::new(Fake {
        resolves: AtomicUsize::new(0),
        pulls: AtomicUsize::new(0),
        running: AtomicUsize::new(0),
        most: AtomicUsize::new(0),
        gate: Semaphore::new(permits),
        problems: Mutex::default(),
    });
    let metrics = Arc::new(Metrics::new(Arc::new(Counters::default())));
    let pulls = Arc::new(Pulls::new(Arc::clone(&fake) as Arc<dyn Registry>, metrics));
    let woken: Arc<Mutex<Vec<Key>>> = Arc::default();
    let (stop, stopped) = watch::channel(false);
    tokio::spawn({
        let (pulls, woken) = (Arc::clone(&pulls), Arc::clone(&woken));
        async move { pulls.work(stopped, |key| woken.lock().unwrap().push(key)).await }
    });
    Bench { fake, pulls, woken, _stop: stop }
}

fn key(n: usize) -> Key {
    Key::new("n", format!("i{n:02}"))
}

fn question(image: &str) -> Question {
    Question { reference: Reference::parse(image).unwrap(), credentials: Credentials::Anonymous, version: String::new() }
}

/// What a pass does that needs the content.
fn look(bench: &Bench, key: &Key, image: &str, anew: Anew) -> Step {
    let question = question(image);
    let reference = question.reference.clone();
    bench.pulls.begin(key, question, anew);
    match bench.pulls.digest(key, &reference) {
        Ok(digest) => bench.pulls.content(key, &reference.with_digest(&digest).unwrap()),
        Err(step) => step,
    }
}

async fn until_fetched(bench: &Bench, key: &Key, image: &str) {
    for _ in 0..100 {
        let step = look(bench, key, image, Anew::No);
        if matches!(step.fetch, Fetch::Fetched(_)) {
            return;
        }
        tokio::time::sleep(step.after.unwrap_or(Duration::from_millis(1))).await;
    }
    panic!("never fetched");
}

fn problem(transient: bool, retry_after: Option<u64>) -> Problem {
    Problem {
        message: "no".into(),
        transient,
        retry_after: retry_after.map(Duration::from_secs),
        outcome: if transient { PullOutcome::Transient } else { PullOutcome::NotFound },
    }
}

#[tokio::test(start_paused = true)]
async fn one_artifact_is_fetched_once_however_many_want_it() {
    let bench = bench(1_000);
    for n in 0..50 {
        assert_eq!(look(&bench, &key(n), "r.example.com/a:1", Anew::No).fetch, Fetch::Pending, "it is on its way for all of them");
    }
    for n in 0..50 {
        until_fetched(&bench, &key(n), "r.example.com/a:1").await;
    }
    assert_eq!(bench.fake.resolves.load(Ordering::SeqCst), 1);
    assert_eq!(bench.fake.pulls.load(Ordering::SeqCst), 1);
    assert_eq!(bench.woken.lock().unwrap().iter().collect::<BTreeSet<_>>().len(), 50);
    // One that comes later shows that it may read it, and fetches nothing.
    until_fetched(&bench, &key(60), "r.example.com/a:1").await;
    assert_eq!((bench.fake.resolves.load(Ordering::SeqCst), bench.fake.pulls.load(Ordering::SeqCst)), (2, 1));
    // Another repository is another place, whatever its digest.
    until_fetched(&bench, &key(61), "r.example.com/b:1").await;
    assert_eq!(bench.fake.pulls.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn no_more_than_a_few_run_at_once_and_what_nobody_wants_is_not_asked() {
    let bench = bench(0);
    let most = super::AT_ONCE;
    for n in 0..most + 6 {
        let step = look(&bench, &key(n), &format!("r{n}.example.com/a:1"), Anew::No);
        assert_eq!(step.fetch, if n < most { Fetch::Pending } else { Fetch::Queued });
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(bench.fake.most.load(Ordering::SeqCst), super::AT_ONCE);
    (most..most + 6).for_each(|n| bench.pulls.forget(&key(n)));
    bench.fake.gate.add_permits(100);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(bench.fake.resolves.load(Ordering::SeqCst), super::AT_ONCE);
}

#[tokio::test(start_paused = true)]
async fn a_registry_that_hangs_and_a_namespace_with_hundreds_starve_nobody() {
    let bench = bench(1_000);
    for n in 0..50 {
        look(&bench, &key(n), &format!("hangs.example.com/a:{n}"), Anew::No);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(bench.fake.resolves.load(Ordering::SeqCst), super::AT_ONCE_OF_HOST);
    // Another registry, of the very same namespace too.
    until_fetched(&bench, &key(60), "r.example.com/a:1").await;
    until_fetched(&bench, &Key::new("other", "i"), "r.example.com/b:1").await;
    let waiting = look(&bench, &key(49), "hangs.example.com/a:49", Anew::No);
    assert_eq!((waiting.fetch, waiting.after), (Fetch::Queued, None), "it says that it waits, and is woken when it ends");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_waits_for_one_turn_of_another() {
    let bench = bench(0);
    for n in 0..99 {
        look(&bench, &key(n), &format!("r.example.com/a:{n}"), Anew::No);
    }
    let other = Key::new("other", "i");
    // The same as one that stands far behind in the line of the first namespace.
    assert_eq!(look(&bench, &other, "r.example.com/a:80", Anew::No).fetch, Fetch::Queued);
    bench.fake.gate.add_permits(2);
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(bench.fake.resolves.load(Ordering::SeqCst), super::AT_ONCE_OF_HOST + 2);
    assert_eq!(look(&bench, &other, "r.example.com/a:80", Anew::No).fetch, Fetch::Pending, "it is on its way after one of the others");
    assert_eq!(look(&bench, &key(79), "r.example.com/a:79", Anew::No).fetch, Fetch::Queued);
}

#[tokio::test(start_paused = true)]
async fn what_may_pass_is_tried_again_and_a_registry_is_given_the_time_it_asks_for() {
    let bench = bench(1_000);
    *bench.fake.problems.lock().unwrap() = vec![problem(true, Some(40)), problem(true, None)];
    let image = "r.example.com/a:1";
    let failed = |step: &Step| matches!(step.fetch, Fetch::Failed { transient: true, .. });
    look(&bench, &key(1), image, Anew::No);
    tokio::time::sleep(Duration::from_millis(10)).await;
    let first = look(&bench, &key(1), image, Anew::No);
    assert!(failed(&first) && first.after.unwrap() <= Duration::from_secs(1), "{first:?}");
    tokio::time::sleep(first.after.unwrap()).await;
    // While it is tried again, what failed still stands.
    assert!(failed(&look(&bench, &key(1), image, Anew::No)));
    tokio::time::sleep(Duration::from_millis(10)).await;
    let second = look(&bench, &key(1), image, Anew::Due);
    assert!(failed(&second) && second.after.unwrap() > Duration::from_secs(39), "{second:?}");
    until_fetched(&bench, &key(1), image).await;
    assert_eq!(bench.fake.resolves.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn what_needs_somebody_waits_until_he_changes_something_or_asks() {
    let bench = bench(1_000);
    let image = "r.example.com/a:1";
    let fail = || *bench.fake.problems.lock().unwrap() = vec![problem(false, None)];
    fail();
    look(&bench, &key(1), image, Anew::No);
    tokio::time::sleep(Duration::from_millis(10)).await;
    let step = look(&bench, &key(1), image, Anew::No);
    assert!(step.after.unwrap() > Duration::from_secs(590), "{step:?}");
    // Another installation is told by the registry itself.
    until_fetched(&bench, &key(2), image).await;
    assert!(matches!(look(&bench, &key(1), image, Anew::No).fetch, Fetch::Failed { .. }));
    look(&bench, &key(1), image, Anew::Asked);
    tokio::time::sleep(Duration::from_millis(10)).await;
    until_fetched(&bench, &key(1), image).await;
    fail();
    look(&bench, &key(1), "r.example.com/a:2", Anew::No);
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert!(matches!(look(&bench, &key(1), "r.example.com/a:2", Anew::No).fetch, Fetch::Failed { .. }));
    assert_eq!(look(&bench, &key(1), "r.example.com/a:3", Anew::No).fetch, Fetch::Pending);
}

#[tokio::test(start_paused = true)]
async fn what_one_may_not_read_says_nothing_about_another() {
    let bench = bench(0);
    let image = "r.example.com/a@sha256:0123456789012345678901234567890123456789012345678901234567890123";
    let reference = Reference::parse(image).unwrap();
    let with = |version: &str, credentials| Question { reference: reference.clone(), credentials, version: version.into() };
    let secret = Credentials::RegistryToken { token: weir_host::oci::Secret::new("t") };
    bench.pulls.begin(&key(1), with("1", Credentials::Anonymous), Anew::No);
    bench.pulls.begin(&key(2), with("2", secret), Anew::No);
    *bench.fake.problems.lock().unwrap() = vec![problem(false, None)];
    // Both want the content, and the first one's request fails.
    assert_eq!(bench.pulls.content(&key(1), &reference).fetch, Fetch::Pending);
    assert_eq!(bench.pulls.content(&key(2), &reference).fetch, Fetch::Pending);
    bench.fake.gate.add_permits(1);
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(bench.woken.lock().unwrap().len(), 2);
    assert!(matches!(bench.pulls.content(&key(1), &reference).fetch, Fetch::Failed { .. }));
    assert_eq!(bench.pulls.content(&key(2), &reference).fetch, Fetch::Pending);
    bench.fake.gate.add_permits(1);
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert!(matches!(bench.pulls.content(&key(2), &reference).fetch, Fetch::Fetched(_)));
    assert_eq!(bench.fake.pulls.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn other_settings_leave_nothing_of_what_was_known() {
    let bench = bench(2);
    until_fetched(&bench, &key(1), "r.example.com/a:1").await;
    assert_eq!(bench.fake.pulls.load(Ordering::SeqCst), 1);
    bench.fake.gate.add_permits(1);
    // Another one has shown that it may read the same, which needs no pull.
    until_fetched(&bench, &key(2), "r.example.com/a:1").await;
    assert_eq!(bench.fake.pulls.load(Ordering::SeqCst), 1);

    bench.pulls.anew();
    assert_eq!(look(&bench, &key(1), "r.example.com/a:1", Anew::No).fetch, Fetch::Pending, "what was fetched does not count any more");
    bench.fake.gate.add_permits(100);
    until_fetched(&bench, &key(1), "r.example.com/a:1").await;
    assert_eq!(bench.fake.pulls.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn what_was_on_its_way_under_other_settings_is_not_taken() {
    let bench = bench(1);
    // The tag is resolved, and the pull waits at the gate.
    while !matches!(look(&bench, &key(1), "r.example.com/a:1", Anew::No).fetch, Fetch::Pending)
        || bench.fake.pulls.load(Ordering::SeqCst) == 0
    {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    bench.pulls.anew();
    bench.fake.gate.add_permits(100);
    until_fetched(&bench, &key(1), "r.example.com/a:1").await;
    assert_eq!(bench.fake.pulls.load(Ordering::SeqCst), 2, "the first one is thrown away");
}

#[tokio::test(start_paused = true)]
async fn a_failure_under_other_settings_does_not_have_to_be_waited_out() {
    let bench = bench(1_000);
    bench.fake.problems.lock().unwrap().push(problem(false, None));
    let mut step = look(&bench, &key(1), "r.example.com/a:1", Anew::No);
    while !matches!(step.fetch, Fetch::Failed { .. }) {
        tokio::time::sleep(Duration::from_millis(1)).await;
        step = look(&bench, &key(1), "r.example.com/a:1", Anew::No);
    }
    assert!(step.after.is_some_and(|after| after > Duration::from_secs(500)));
    bench.pulls.anew();
    let asked = Instant::now();
    until_fetched(&bench, &key(1), "r.example.com/a:1").await;
    assert!(asked.elapsed() < Duration::from_secs(1));
}
