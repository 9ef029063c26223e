use std::sync::{
    atomic::{AtomicUsize, Ordering},
    mpsc,
};

use futures::executor::block_on;

use super::*;

const LONG: Duration = Duration::from_secs(60);

fn pool(threads: usize, capacity: usize) -> Pool {
    let threads = NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN);
    Pool::start(threads, capacity).unwrap_or_else(|e| unreachable!("{e}"))
}

type Answer<T> = oneshot::Receiver<Result<T, PolicyError>>;

/// Takes a thread until the sender is dropped.
fn block(pool: &Pool, lane: Lane, limit: Duration) -> (mpsc::Sender<()>, Answer<()>) {
    let (stop, stopped) = mpsc::channel::<()>();
    let (started, start) = mpsc::channel::<()>();
    let answer = pool.submit(lane, limit, move || {
        drop(started);
        let _ended = stopped.recv();
        Ok(())
    });
    let _running = start.recv();
    (stop, answer)
}

fn unavailable<T: std::fmt::Debug>(answer: Answer<T>, word: &str) {
    let outcome = block_on(answer);
    assert!(matches!(&outcome, Ok(Err(PolicyError::Unavailable(m))) if m.contains(word)), "{outcome:?}");
}

#[test]
fn a_full_queue_is_busy_until_somebody_leaves() {
    let pool = pool(1, 2);
    let (stop, blocked) = block(&pool, 0, LONG);
    let first = pool.submit(1, LONG, || Ok(1));
    let second = pool.submit(2, LONG, || Ok(2));
    unavailable(pool.submit(3, LONG, || Ok(3)), "busy");
    drop(first);
    let third = pool.submit(3, LONG, || Ok(3));
    drop(stop);
    assert!(matches!(block_on(blocked), Ok(Ok(()))));
    assert!(matches!((block_on(second), block_on(third)), (Ok(Ok(2)), Ok(Ok(3)))));
}

#[test]
fn a_dropped_receiver_cancels_what_waits() {
    let pool = pool(1, 10);
    let (stop, _blocked) = block(&pool, 0, LONG);
    let ran = Arc::new(AtomicUsize::new(0));
    let count = |ran: &Arc<AtomicUsize>| {
        let ran = Arc::clone(ran);
        move || Ok(ran.fetch_add(1, Ordering::SeqCst))
    };
    drop(pool.submit(1, LONG, count(&ran)));
    let kept = pool.submit(1, LONG, count(&ran));
    drop(stop);
    assert!(matches!(block_on(kept), Ok(Ok(0))));
}

#[test]
fn at_most_two_calls_of_one_policy_run() {
    let pool = pool(4, 10);
    let (stop_a, a) = block(&pool, 7, LONG);
    let (stop_b, b) = block(&pool, 7, LONG);
    let third = pool.submit(7, LONG, || Ok(()));
    // Two threads are free, but not for this policy.
    assert!(matches!(block_on(pool.submit(8, LONG, || Ok(8))), Ok(Ok(8))));
    assert_eq!(pool.shared.lock().queued, 1);
    drop(stop_a);
    assert!(matches!((block_on(a), block_on(third)), (Ok(Ok(())), Ok(Ok(())))));
    drop(stop_b);
    assert!(matches!(block_on(b), Ok(Ok(()))));
    while !pool.shared.lock().lanes.is_empty() {
        thread::yield_now();
    }
}

#[test]
fn a_call_that_the_epoch_does_not_end_is_a_deadline() {
    let pool = pool(1, 10);
    let (stop, answer) = block(&pool, 0, Duration::from_millis(20));
    let waiting = pool.submit(1, LONG, || Ok(()));
    pool.shared.sweep(Instant::now());
    pool.shared.sweep(Instant::now() + Duration::from_millis(20) + GRACE * 2);
    assert!(matches!(block_on(answer), Ok(Err(PolicyError::Deadline { limit_ms: 20 }))));
    // What waits for the thread is not over its own time.
    pool.shared.sweep(Instant::now() + MAX_WAIT * 2);
    unavailable(waiting, "no free thread");
    assert_eq!(pool.shared.lock().queued, 0);
    drop(stop);
    assert!(matches!(block_on(pool.submit(1, LONG, || Ok(5))), Ok(Ok(5))));
}

#[test]
fn a_panic_of_the_host_costs_one_call() {
    let pool = pool(1, 10);
    unavailable(pool.submit(0, LONG, || -> Result<(), _> { panic!("odd") }), "odd");
    assert!(matches!(block_on(pool.submit(0, LONG, || Ok(1))), Ok(Ok(1))));
}

#[test]
fn a_pool_that_ends_says_so() {
    let pool = pool(1, 10);
    let (stop, _blocked) = block(&pool, 0, LONG);
    let waiting = pool.submit(1, LONG, || Ok(()));
    drop(pool);
    assert!(block_on(waiting).is_err());
    drop(stop);
}
