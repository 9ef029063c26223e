//! A unit of work of the pool and the one answer it gives.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Mutex, MutexGuard, PoisonError},
};

use futures::channel::oneshot;
use weir_core::policy::PolicyError;

use super::watchdog::panic_text;

/// What the pool knows of its work. All of it may be called from any thread; the first answer counts.
pub(super) trait Job: Send + Sync + fmt::Debug {
    /// Does the work and answers, unless nobody waits.
    fn run(&self);
    /// Answers without (or before the end of) the work.
    fn fail(&self, error: PolicyError);
    /// Whether nobody waits for an answer.
    fn cancelled(&self) -> bool;
    /// Whether the answer is given.
    fn answered(&self) -> bool;
}

type Reply<T> = oneshot::Sender<Result<T, PolicyError>>;

pub(super) struct Task<T, F> {
    work: Mutex<Option<F>>,
    reply: Mutex<Option<Reply<T>>>,
}

impl<T, F> Task<T, F> {
    pub(super) fn new(work: F) -> (Self, oneshot::Receiver<Result<T, PolicyError>>) {
        let (reply, receiver) = oneshot::channel();
        (Self { work: Mutex::new(Some(work)), reply: Mutex::new(Some(reply)) }, receiver)
    }

    fn answer(&self, result: Result<T, PolicyError>) {
        if let Some(reply) = lock(&self.reply).take() {
            // Nobody waits any more: nothing to do.
            drop(reply.send(result));
        }
    }
}

/// Nothing panics under these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T, F> Job for Task<T, F>
where
    T: Send,
    F: FnOnce() -> Result<T, PolicyError> + Send,
{
    fn run(&self) {
        let work = lock(&self.work).take();
        if self.cancelled() {
            return;
        }
        let Some(work) = work else { return };
        // A panic here is a fault of wasmtime or of this crate; the thread and the process go on.
        let result = catch_unwind(AssertUnwindSafe(work))
            .unwrap_or_else(|panic| Err(PolicyError::Unavailable(format!("the host failed: {}", panic_text(panic.as_ref())))));
        self.answer(result);
    }

    fn fail(&self, error: PolicyError) {
        self.answer(Err(error));
    }

    fn cancelled(&self) -> bool {
        lock(&self.reply).as_ref().is_none_or(oneshot::Sender::is_canceled)
    }

    fn answered(&self) -> bool {
        lock(&self.reply).is_none()
    }
}

impl<T, F> fmt::Debug for Task<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Task")
    }
}
