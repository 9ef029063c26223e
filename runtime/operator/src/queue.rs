//! Which object is looked at next. One object is never looked at twice at once; what fails waits longer each time.

use std::{
    collections::{HashMap, HashSet},
    future::Future,
    pin::pin,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::{
    FutureExt, StreamExt,
    channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded},
};
use kube::runtime::scheduler::{ScheduleRequest, scheduler};
use tokio::{sync::watch, task::JoinSet, time::Instant};

use crate::cache::Key;

/// How long changes of children are collected before a pass looks at them: a Deployment's status changes many times while it rolls.
pub const COLLECT: Duration = Duration::from_millis(500);
/// How long an object rests whose namespace is on its way out: what is left of it goes by itself, and its own end is told by its watch.
pub const LEAVING: Duration = Duration::from_secs(300);
const FIRST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// How a pass ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing to do until something changes.
    Done,
    /// Look again after a while.
    After(Duration),
    /// It repaired what somebody else keeps changing, or can do nothing: what happens next is seen after this while.
    Rest(Duration),
    /// It failed: try again, after a longer wait each time.
    BackOff,
}

/// Requests to look at objects.
pub struct Queue {
    sender: UnboundedSender<ScheduleRequest<Key>>,
    receiver: Mutex<Option<UnboundedReceiver<ScheduleRequest<Key>>>>,
    waits: Mutex<HashMap<Key, Wait>>,
    depth: AtomicUsize,
    /// Nobody works before: a standby would collect requests for ever.
    open: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
struct Wait {
    times: u32,
    until: Instant,
}

impl Default for Queue {
    fn default() -> Self {
        let (sender, receiver) = unbounded();
        Self {
            sender,
            receiver: Mutex::new(Some(receiver)),
            waits: Mutex::default(),
            depth: AtomicUsize::new(0),
            open: AtomicBool::new(false),
        }
    }
}

impl Queue {
    fn waits(&self) -> MutexGuard<'_, HashMap<Key, Wait>> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests count from now on.
    pub fn open(&self) {
        self.open.store(true, Ordering::SeqCst);
    }

    fn at(&self, key: Key, run_at: Instant) {
        if !self.open.load(Ordering::SeqCst) {
            return;
        }
        // The receiver lives as long as the worker; after it nobody looks at anything.
        let _ = self.sender.unbounded_send(ScheduleRequest { message: key, run_at });
    }

    /// A person changed the object: now, whatever failed before.
    pub fn now(&self, key: Key) {
        self.waits().remove(&key);
        self.at(key, Instant::now());
    }

    /// Something the object depends on changed: now, but not before its wait is over.
    pub fn changed(&self, key: Key) {
        let now = Instant::now();
        let until = self.waits().get(&key).map_or(now, |wait| wait.until.max(now));
        self.at(key, until);
    }

    /// What the object waited for is back: within a time, whatever failed before. Objects that waited together do not come together.
    pub fn spread(&self, key: Key, over: Duration) {
        let part = u32::from_str_radix(&weir_core::hash::short(key.to_string().as_bytes(), 2), 16).unwrap_or(128);
        self.waits().remove(&key);
        self.at(key, Instant::now() + over.saturating_mul(part) / 256);
    }

    /// A child changed: soon, together with what follows, and not before its wait is over.
    pub fn soon(&self, key: Key) {
        let soon = Instant::now() + COLLECT;
        let until = self.waits().get(&key).map_or(soon, |wait| wait.until.max(soon));
        self.at(key, until);
    }

    /// The object is gone: nothing of it is remembered.
    pub fn forget(&self, key: &Key) {
        self.waits().remove(key);
    }

    /// Objects that are being looked at.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depth.load(Ordering::Relaxed)
    }

    fn ended(&self, key: Key, next: Next) {
        match next {
            Next::Done => {
                self.waits().remove(&key);
            }
            Next::After(wait) => {
                self.waits().remove(&key);
                self.at(key, Instant::now() + wait);
            }
            Next::Rest(wait) => {
                self.waits().insert(key, Wait { times: 0, until: Instant::now() + wait });
            }
            Next::BackOff => {
                let until = self.back_off(&key);
                self.at(key, until);
            }
        }
    }

    fn back_off(&self, key: &Key) -> Instant {
        let mut waits = self.waits();
        let times = waits.get(key).map_or(0, |wait| wait.times);
        let until = Instant::now() + wait(key, times);
        waits.insert(key.clone(), Wait { times: times.saturating_add(1), until });
        until
    }

    /// Looks at objects until `stop` says so, then waits for what is running. Only the first call does anything.
    pub async fn work<F>(&self, most: usize, mut stop: watch::Receiver<bool>, look: impl Fn(Key) -> F, idle: impl Fn())
    where
        F: Future<Output = Next> + Send + 'static,
    {
        let receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(receiver) = receiver else { return };
        let mut scheduled = pin!(scheduler(receiver));
        let mut tasks: JoinSet<(Key, Next)> = JoinSet::new();
        let mut running: HashSet<Key> = HashSet::new();
        let mut tick = tokio::time::interval(Duration::from_secs(1));
        loop {
            self.depth.store(running.len(), Ordering::Relaxed);
            let free = running.len() < most;
            let step = tokio::select! {
                _ = stop.wait_for(|stop| *stop) => Step::Stop,
                Some(ended) = tasks.join_next(), if !tasks.is_empty() => Step::Ended(ended.ok()),
                key = async { scheduled.as_mut().hold_unless(|key| free && !running.contains(key)).next().await } => key.map_or(Step::Stop, Step::Begin),
                _ = tick.tick() => Step::Idle,
            };
            match step {
                Step::Stop => break,
                Step::Ended(None) => {}
                Step::Ended(Some((key, next))) => {
                    running.remove(&key);
                    self.ended(key, next);
                }
                Step::Begin(key) => {
                    running.insert(key.clone());
                    let pass = std::panic::AssertUnwindSafe(look(key.clone())).catch_unwind();
                    // A pass that panics is a fault of ours; it must not stop the others, nor this object for ever.
                    tasks.spawn(async move { (key, pass.await.unwrap_or(Next::BackOff)) });
                }
                Step::Idle => idle(),
            }
        }
        while tasks.join_next().await.is_some() {}
    }
}

/// What the worker does next.
enum Step {
    Stop,
    /// None: a task that was cut off with its runtime.
    Ended(Option<(Key, Next)>),
    Begin(Key),
    Idle,
}

/// Doubles up to a minute; objects that fail together do not come back together.
fn wait(key: &Key, times: u32) -> Duration {
    let full = FIRST_WAIT.saturating_mul(1_u32.checked_shl(times.min(16)).unwrap_or(u32::MAX)).min(LONGEST_WAIT);
    let spread = weir_core::hash::short(format!("{key}{times}").as_bytes(), 2);
    let part = u32::from_str_radix(&spread, 16).unwrap_or(128);
    full / 2 + full.saturating_mul(part) / 512
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn waits_grow_to_a_limit_and_differ() {
        let (a, b) = (Key::new("n", "a"), Key::new("n", "b"));
        assert!(wait(&a, 0) < wait(&a, 3) && wait(&a, 3) < wait(&a, 7));
        assert!(wait(&a, 60) <= LONGEST_WAIT);
        assert_ne!(wait(&a, 5), wait(&b, 5));
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_is_looked_at_once_at_a_time_and_failures_wait() {
        let queue = Arc::new(Queue::default());
        queue.open();
        let (stop, stopped) = watch::channel(false);
        let looks: Arc<Mutex<Vec<Instant>>> = Arc::default();
        let key = Key::new("n", "a");
        queue.now(key.clone());
        queue.now(key.clone());
        let work = tokio::spawn({
            let (queue, looks) = (Arc::clone(&queue), Arc::clone(&looks));
            async move {
                let look = move |_| {
                    let looks = Arc::clone(&looks);
                    async move {
                        looks.lock().unwrap().push(Instant::now());
                        Next::BackOff
                    }
                };
                queue.work(4, stopped, look, || {}).await;
            }
        });
        tokio::time::sleep(Duration::from_millis(900)).await;
        // Own changes do not hurry it, a person's edit does.
        let before = looks.lock().unwrap().len();
        assert!((2..=4).contains(&before), "{before}");
        queue.soon(key.clone());
        queue.changed(key.clone());
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(looks.lock().unwrap().len(), before);
        queue.now(key);
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(looks.lock().unwrap().len(), before + 1);
        stop.send(true).unwrap();
        work.await.unwrap();
    }
}
