//! One live connection of a pool.

use std::{
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use tokio::task::AbortHandle;

use super::{Capabilities, Deadlines, Endpoint, Limits, Metadata, wire::Wire};

/// Moments are kept as milliseconds since the process began to use pools, so that they fit an atomic.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

fn millis() -> u64 {
    // One more, so that 0 is "never".
    u64::try_from(START.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(1)
}

/// Who is at the other end of one connection. Bound to it: after a reconnect it may be another version.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) metadata: Arc<Metadata>,
    pub(super) capabilities: Arc<Capabilities>,
    pub(super) not_after: Option<SystemTime>,
}

/// One live connection.
pub(super) struct Transport {
    pub(super) endpoint: Endpoint,
    /// Generation of the setup it was made with.
    pub(super) generation: u64,
    /// Whether one side showed its former certificate.
    pub(super) former: bool,
    pub(super) limits: Limits,
    pub(super) deadlines: Deadlines,
    pub(super) wire: Wire,
    pub(super) peer: Peer,
    pub(super) opened: Instant,
    /// When it is to be replaced.
    pub(super) retire: Instant,
    /// One test at a time.
    pub(super) testing: tokio::sync::Mutex<()>,
    pub(super) ready: AtomicBool,
    pub(super) connection: AbortHandle,
    retiring: AtomicBool,
    answered: AtomicU64,
    called: AtomicU64,
    in_flight: AtomicUsize,
}

/// What a connection is made of.
pub(super) struct Parts {
    pub(super) endpoint: Endpoint,
    pub(super) generation: u64,
    pub(super) former: bool,
    pub(super) limits: Limits,
    pub(super) deadlines: Deadlines,
    pub(super) wire: Wire,
    pub(super) peer: Peer,
    pub(super) ready: bool,
    pub(super) connection: AbortHandle,
    pub(super) lifetime: Duration,
}

impl Transport {
    /// A connection that has just answered.
    pub(super) fn new(parts: Parts) -> Self {
        let Parts { endpoint, generation, former, limits, deadlines, wire, peer, ready, connection, lifetime } = parts;
        let opened = Instant::now();
        Self {
            endpoint,
            generation,
            former,
            limits,
            deadlines,
            wire,
            peer,
            opened,
            retire: opened.checked_add(lifetime).unwrap_or(opened),
            testing: tokio::sync::Mutex::new(()),
            ready: AtomicBool::new(ready),
            connection,
            retiring: AtomicBool::new(false),
            answered: AtomicU64::new(millis()),
            called: AtomicU64::new(millis()),
            in_flight: AtomicUsize::new(0),
        }
    }

    /// It answered just now.
    pub(super) fn answered(&self) {
        self.answered.store(millis(), Ordering::Relaxed);
    }

    /// It is to be tested before anybody gets it.
    pub(super) fn suspect(&self) {
        self.answered.store(0, Ordering::Relaxed);
    }

    /// It is to be replaced now.
    pub(super) fn replace(&self) {
        self.retiring.store(true, Ordering::Relaxed);
    }

    /// Whether it is to be replaced.
    pub(super) fn is_retiring(&self, now: Instant) -> bool {
        self.retiring.load(Ordering::Relaxed) || now >= self.retire
    }

    /// Whether it answered within `time`.
    pub(super) fn is_fresh(&self, time: Duration) -> bool {
        age(&self.answered) < time
    }

    /// Time since it was last lent.
    pub(super) fn idle(&self) -> Duration {
        age(&self.called)
    }

    /// Whether it can be lent.
    pub(super) fn is_usable(&self) -> bool {
        self.ready.load(Ordering::Relaxed) && !self.wire.is_closed()
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }
}

fn age(moment: &AtomicU64) -> Duration {
    match moment.load(Ordering::Relaxed) {
        0 => Duration::MAX,
        moment => Duration::from_millis(millis().saturating_sub(moment)),
    }
}

/// A connection with a call more on it, until dropped.
pub(super) struct Borrowed(Arc<Transport>);

impl Borrowed {
    pub(super) fn new(transport: Arc<Transport>) -> Self {
        transport.called.store(millis(), Ordering::Relaxed);
        transport.in_flight.fetch_add(1, Ordering::Relaxed);
        Self(transport)
    }

    pub(super) fn transport(&self) -> &Arc<Transport> {
        &self.0
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
