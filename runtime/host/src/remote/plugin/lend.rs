//! Who gets a connection, and what the pool learns from a call.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::OwnedSemaphorePermit;

use super::Plugin;
use crate::remote::{
    AcquireError, CallError, Class, Event, Lease, Reason, calls,
    transport::{Borrowed, Transport},
};

/// Connections that one caller tests before it gives up.
const ATTEMPTS: usize = 4;

impl Plugin {
    /// Borrows a tested connection, waiting at most `within` for a free one. Callers are served in the order they came.
    ///
    /// # Errors
    /// [`AcquireError`]; at once when the plugin is known to be unusable or as many wait as may.
    pub async fn acquire(self: &Arc<Self>, within: Duration) -> Result<Lease, AcquireError> {
        let since = Instant::now();
        let outcome = match tokio::time::timeout(within, self.lend()).await {
            Ok(outcome) => outcome,
            Err(_) => Err(AcquireError::Timeout { name: self.name.clone(), waited: within }),
        };
        self.event(match &outcome {
            Ok(_) => Event::Acquired(since.elapsed()),
            Err(error) => Event::NotAcquired(error.reason()),
        });
        outcome
    }

    async fn lend(self: &Arc<Self>) -> Result<Lease, AcquireError> {
        self.gate()?;
        let permit = self.permit().await?;
        let mut moved = self.moved.subscribe();
        let mut tested = 0;
        loop {
            moved.borrow_and_update();
            self.gate()?;
            let Some(borrowed) = self.pick() else {
                // The keeper is at it; it moves on with a connection or with a reason.
                self.wake.notify_one();
                if moved.changed().await.is_err() {
                    return Err(AcquireError::Closed { name: self.name.clone() });
                }
                continue;
            };
            if self.test(borrowed.transport()).await {
                return Ok(Lease { plugin: Arc::clone(self), borrowed, _permit: permit });
            }
            tested += 1;
            if tested >= ATTEMPTS {
                return Err(self.not_ready(Reason::ProbeFailed, "no connection answers its test".into()));
            }
        }
    }

    /// Refuses at once what cannot succeed.
    fn gate(&self) -> Result<(), AcquireError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(AcquireError::Closed { name: self.name.clone() });
        }
        if self.breaker().until().is_some() {
            return Err(self.not_ready(Reason::CircuitOpen, "calls in a row failed; the next try comes by itself".into()));
        }
        if let Some(failure) = self.failing.load_full() {
            return Err(self.not_ready(failure.reason, failure.message.clone()));
        }
        Ok(())
    }

    fn not_ready(&self, reason: Reason, message: String) -> AcquireError {
        AcquireError::NotReady { name: self.name.clone(), reason, message }
    }

    /// One of the calls in flight. The semaphore is fair.
    async fn permit(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        let permits = self.permits.load_full();
        if let Ok(permit) = Arc::clone(&permits).try_acquire_owned() {
            return Ok(permit);
        }
        let limits = self.setup.load().limits;
        let _waiter = Waiter::enter(&self.waiting, limits.waiting).ok_or_else(|| AcquireError::Busy {
            name: self.name.clone(),
            in_flight: limits.in_flight,
            waiting: limits.waiting,
        })?;
        permits.acquire_owned().await.map_err(|_| AcquireError::Closed { name: self.name.clone() })
    }

    /// The connection with the fewest calls; of equals, the next in turn.
    fn pick(&self) -> Option<Borrowed> {
        let transports = self.lock();
        let usable: Vec<&Arc<Transport>> = transports.iter().filter(|transport| transport.is_usable()).collect();
        let first = self.turn.fetch_add(1, Ordering::Relaxed).checked_rem(usable.len())?;
        let in_turn = usable.iter().cycle().skip(first).take(usable.len());
        in_turn.min_by_key(|transport| transport.in_flight()).map(|transport| Borrowed::new(Arc::clone(transport)))
    }

    /// Whether the connection answers. The test goes on when the caller stops waiting, so that a plugin that hangs is found by callers of
    /// little patience too.
    async fn test(self: &Arc<Self>, transport: &Arc<Transport>) -> bool {
        if transport.is_fresh(self.shared.tuning.fresh) {
            return true;
        }
        let (plugin, transport) = (Arc::clone(self), Arc::clone(transport));
        self.shared.runtime.spawn(async move { plugin.check(&transport).await }).await.unwrap_or(false)
    }

    /// Asks whether it is ready, unless somebody just did.
    pub(super) async fn check(&self, transport: &Arc<Transport>) -> bool {
        let _one = transport.testing.lock().await;
        if transport.is_fresh(self.shared.tuning.fresh) {
            return transport.is_usable();
        }
        if transport.wire.is_closed() {
            self.evict(transport, "closed");
            return false;
        }
        match calls::probe(&transport.wire, transport.deadlines.probe).await {
            Ok(ready) => {
                transport.answered();
                if transport.ready.swap(ready, Ordering::Relaxed) != ready {
                    self.wake.notify_one();
                }
                ready
            }
            Err(_) => {
                if self.evict(transport, "probe") {
                    self.failed();
                }
                false
            }
        }
    }

    /// What the end of a call says about its connection.
    pub(in crate::remote) fn ended(&self, transport: &Arc<Transport>, error: Option<&CallError>) {
        match error.map(|error| error.class) {
            Some(Class::Connection) => {
                // All calls on it fail with it; that is one failure of the plugin.
                if self.evict(transport, "call") {
                    self.failed();
                }
            }
            // Other calls on it may be fine: the next caller tests it.
            Some(Class::Deadline) => {
                self.failed();
                transport.suspect();
            }
            Some(Class::Unimplemented) => {
                // It may have been upgraded behind an address that did not change.
                if transport.opened.elapsed() > self.shared.tuning.health {
                    transport.replace();
                    self.wake.notify_one();
                }
                self.succeeded(transport);
            }
            None | Some(Class::Later | Class::TooLarge | Class::Garbage | Class::Permanent | Class::Failed) => self.succeeded(transport),
        }
    }

    fn succeeded(&self, transport: &Transport) {
        transport.answered();
        self.breaker().succeeded();
    }

    fn failed(&self) {
        let opened = self.breaker().failed(Instant::now(), &self.shared.tuning);
        if opened {
            self.event(Event::Breaker { open: true });
            self.wake.notify_one();
        }
    }
}

/// One of the bounded number of callers that wait.
struct Waiter<'a>(&'a AtomicUsize);

impl<'a> Waiter<'a> {
    fn enter(waiting: &'a AtomicUsize, most: usize) -> Option<Self> {
        let enter = |now: usize| (now < most).then(|| now.saturating_add(1));
        waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, enter).ok().map(|_| Self(waiting))
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
