//! The threads that Wasm runs on. Callers are watches, the Lease and probes: none of them may stand still because a policy does.
//!
//! A call waits in one bounded queue; at most two calls of one policy are ready or running, so that one slow policy cannot take
//! all threads from the others. Time counts from the start of the run: a call that only waited is `Unavailable`, not `Deadline`.

#[cfg(test)]
mod tests;

use std::{
    collections::{HashMap, VecDeque},
    num::NonZeroUsize,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use futures::channel::oneshot;
use weir_core::policy::PolicyError;

use super::task::{Job, Task};

/// Calls of one policy at once.
const PER_POLICY: usize = 2;
/// After the timeout of a running call: the epoch should have ended it. Covers two ticks and one large copy.
const GRACE: Duration = Duration::from_millis(100);
/// Longest wait in the queue.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// `max_wasm_stack` is 512 KiB; the rest is for the host's own frames.
const STACK: usize = 2 << 20;

/// Names one policy to the pool.
pub(super) type Lane = u64;

/// Threads and queue. Dropping it ends both, after the calls that run.
#[derive(Debug)]
pub(super) struct Pool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    capacity: usize,
}

#[derive(Debug, Default)]
struct Queue {
    ready: VecDeque<Entry>,
    lanes: HashMap<Lane, LaneState>,
    running: Vec<Option<Running>>,
    /// Entries that do not run yet.
    queued: usize,
    closed: bool,
}

#[derive(Debug, Default)]
struct LaneState {
    /// Ready or running; at most [`PER_POLICY`].
    active: usize,
    waiting: VecDeque<Entry>,
}

#[derive(Debug)]
struct Entry {
    lane: Lane,
    job: Arc<dyn Job>,
    limit: Duration,
    since: Instant,
}

#[derive(Debug)]
struct Running {
    job: Arc<dyn Job>,
    limit: Duration,
    since: Instant,
}

impl Pool {
    /// Starts `threads` threads with room for `capacity` waiting calls.
    pub(super) fn start(threads: NonZeroUsize, capacity: usize) -> std::io::Result<Self> {
        let queue = Queue { running: (0..threads.get()).map(|_| None).collect(), ..Queue::default() };
        let shared = Arc::new(Shared { queue: Mutex::new(queue), wake: Condvar::new(), capacity });
        let pool = Self { shared };
        for index in 0..threads.get() {
            let shared = Arc::clone(&pool.shared);
            let run = move || shared.work(index);
            thread::Builder::new().name(format!("weir-wasm-{index}")).stack_size(STACK).spawn(run)?;
        }
        Ok(pool)
    }

    /// For the ticker, which must not keep the pool alive.
    pub(super) fn watch(&self) -> std::sync::Weak<Shared> {
        Arc::downgrade(&self.shared)
    }

    /// Queues `work`. The receiver gets its result, or `Deadline` or `Unavailable`; dropping it cancels work that still waits.
    pub(super) fn submit<T, F>(&self, lane: Lane, limit: Duration, work: F) -> oneshot::Receiver<Result<T, PolicyError>>
    where
        T: Send + 'static,
        F: FnOnce() -> Result<T, PolicyError> + Send + 'static,
    {
        let (task, receiver) = Task::new(work);
        let job: Arc<dyn Job> = Arc::new(task);
        if !self.shared.push(Entry { lane, job: Arc::clone(&job), limit, since: Instant::now() }) {
            job.fail(PolicyError::Unavailable("busy: too many calls wait".into()));
        }
        receiver
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut queue = self.shared.lock();
        queue.closed = true;
        // Dropping the entries drops their senders, which is how their callers learn of it.
        queue.ready.clear();
        queue.lanes.clear();
        drop(queue);
        self.shared.wake.notify_all();
    }
}

impl Shared {
    /// No code that could panic runs under the lock.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, entry: Entry) -> bool {
        let mut queue = self.lock();
        if queue.queued >= self.capacity {
            queue.purge(|entry| !entry.job.cancelled());
        }
        if queue.queued >= self.capacity || queue.closed {
            return false;
        }
        queue.queued += 1;
        let lane = queue.lanes.entry(entry.lane).or_default();
        if lane.active < PER_POLICY {
            lane.active += 1;
            queue.ready.push_back(entry);
            drop(queue);
            self.wake.notify_one();
        } else {
            lane.waiting.push_back(entry);
        }
        true
    }

    /// One thread's life.
    fn work(&self, index: usize) {
        let mut queue = self.lock();
        loop {
            if queue.closed {
                return;
            }
            let Some(entry) = queue.ready.pop_front() else {
                queue = self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            queue.queued = queue.queued.saturating_sub(1);
            let Entry { lane, job, limit, .. } = entry;
            if let Some(place) = queue.running.get_mut(index) {
                *place = Some(Running { job: Arc::clone(&job), limit, since: Instant::now() });
            }
            drop(queue);
            job.run();
            drop(job);
            queue = self.lock();
            if let Some(place) = queue.running.get_mut(index) {
                *place = None;
            }
            if queue.leave(lane) {
                self.wake.notify_one();
            }
        }
    }

    /// Answers for calls that are overdue. Called by the ticker.
    pub(super) fn sweep(&self, now: Instant) {
        let mut overdue: Vec<(Arc<dyn Job>, PolicyError)> = Vec::new();
        let mut queue = self.lock();
        for running in queue.running.iter().flatten() {
            if now.saturating_duration_since(running.since) > running.limit + GRACE && !running.job.answered() {
                let limit_ms = u64::try_from(running.limit.as_millis()).unwrap_or(u64::MAX);
                overdue.push((Arc::clone(&running.job), PolicyError::Deadline { limit_ms }));
            }
        }
        if queue.queued > 0 {
            queue.purge(|entry| {
                let waited = now.saturating_duration_since(entry.since);
                if waited > MAX_WAIT {
                    let error = PolicyError::Unavailable(format!("busy: no free thread within {} s", MAX_WAIT.as_secs()));
                    overdue.push((Arc::clone(&entry.job), error));
                }
                waited <= MAX_WAIT && !entry.job.cancelled()
            });
        }
        drop(queue);
        // Outside the lock: an answer wakes its caller.
        for (job, error) in overdue {
            job.fail(error);
        }
    }
}

impl Queue {
    /// Ends a call of `lane` and makes its next one ready; whether there was one.
    fn leave(&mut self, lane: Lane) -> bool {
        let Some(state) = self.lanes.get_mut(&lane) else { return false };
        if let Some(next) = state.waiting.pop_front() {
            self.ready.push_back(next);
            return true;
        }
        state.active = state.active.saturating_sub(1);
        if state.active == 0 {
            self.lanes.remove(&lane);
        }
        false
    }

    /// Takes entries that wait out of the queue, unless `keep` says otherwise.
    fn purge(&mut self, mut keep: impl FnMut(&Entry) -> bool) {
        let mut left: Vec<Lane> = Vec::new();
        self.ready.retain(|entry| {
            let kept = keep(entry);
            if !kept {
                left.push(entry.lane);
            }
            kept
        });
        let before: usize = self.lanes.values().map(|lane| lane.waiting.len()).sum();
        for lane in self.lanes.values_mut() {
            lane.waiting.retain(&mut keep);
        }
        let after: usize = self.lanes.values().map(|lane| lane.waiting.len()).sum();
        self.queued = self.queued.saturating_sub(left.len()).saturating_sub(before.saturating_sub(after));
        for lane in left {
            self.leave(lane);
        }
    }
}
