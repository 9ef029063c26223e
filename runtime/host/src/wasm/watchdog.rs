//! Work on untrusted input that has no bound of its own: on a thread, for so long and no longer.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use super::text;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stopped {
    /// The input is at fault: it takes too long.
    #[error("it takes over {} s", .0.as_secs())]
    Time(Duration),
    /// The input is at fault: the work panicked over it.
    #[error("the work on it was given up: {0}")]
    Panic(String),
    /// This process is at fault: no thread.
    #[error("{0}")]
    Host(String),
}

/// Runs work of one kind. A thread cannot be stopped: one that is over its time goes on, but only so many do.
#[derive(Debug)]
pub(crate) struct Watchdog {
    name: &'static str,
    most: usize,
    stack: usize,
    running: Arc<AtomicUsize>,
}

/// Counts a running thread, however it ends.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Watchdog {
    /// At most `most` threads called `name`, each with `stack` bytes of stack.
    pub(super) fn new(name: &'static str, most: usize, stack: usize) -> Self {
        Self { name, most, stack, running: Arc::default() }
    }

    pub(super) fn run<T: Send + 'static>(&self, timeout: Duration, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Stopped> {
        let place = self.place().ok_or_else(|| Stopped::Host("earlier ones of this kind still run".into()))?;
        let (send, receive) = mpsc::sync_channel(1);
        let run = move || {
            let outcome = catch_unwind(AssertUnwindSafe(work));
            // Before the answer goes out, or the next one could still find this thread counted.
            drop(place);
            // Nobody listens when the watchdog was faster.
            drop(send.send(outcome));
        };
        let thread = thread::Builder::new().name(self.name.into()).stack_size(self.stack);
        thread.spawn(run).map_err(|e| Stopped::Host(e.to_string()))?;
        match receive.recv_timeout(timeout) {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(panic)) => Err(Stopped::Panic(panic_text(panic.as_ref()))),
            Err(_) => Err(Stopped::Time(timeout)),
        }
    }

    fn place(&self) -> Option<Place> {
        let place = Place(Arc::clone(&self.running));
        (self.running.fetch_add(1, Ordering::Relaxed) < self.most).then_some(place)
    }
}

/// What a panic said, in one bounded line.
pub(super) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let said = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text::cut(said.unwrap_or("no reason given"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(10);

    #[test]
    fn work_ends_or_is_left() {
        let watchdog = Watchdog::new("test", 1, 1 << 20);
        assert!(matches!(watchdog.run(LONG, || 7), Ok(7)));
        assert!(matches!(watchdog.run(LONG, || panic!("odd")), Err::<(), _>(Stopped::Panic(said)) if said == "odd"));
        let (stop, stopped) = mpsc::channel::<()>();
        let endless = watchdog.run(Duration::from_millis(10), move || stopped.recv().is_ok());
        assert!(matches!(endless, Err(Stopped::Time(_))), "{endless:?}");
        // Its place is taken until it ends.
        assert!(matches!(watchdog.run(LONG, || 7), Err(Stopped::Host(_))));
        drop(stop);
        while watchdog.running.load(Ordering::Relaxed) > 0 {
            thread::yield_now();
        }
        assert!(matches!(watchdog.run(LONG, || 7), Ok(7)));
    }
}
