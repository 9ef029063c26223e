//! One plugin: its connections, who may use them, and how it is.

mod keeper;
mod lend;
mod publish;

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, AtomicUsize},
};

use arc_swap::{ArcSwap, ArcSwapOption};
use tokio::sync::{Notify, Semaphore, watch};

use super::{
    Capabilities, Event, Gauges, Metadata, Observer, Spec, State, Status, Tuning, breaker::Breaker, setup::Setup, tls::Failure,
    transport::Transport,
};

/// What plugins of one registry share.
pub(super) struct Shared {
    pub(super) tuning: Tuning,
    pub(super) runtime: tokio::runtime::Handle,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) changes: watch::Sender<u64>,
}

/// One plugin. It outlives changes of its Service: whoever holds one goes on with the new addresses and certificates.
pub struct Plugin {
    name: String,
    shared: Arc<Shared>,
    setup: ArcSwap<Setup>,
    transports: Mutex<Vec<Arc<Transport>>>,
    turn: AtomicUsize,
    permits: ArcSwap<Semaphore>,
    waiting: AtomicUsize,
    breaker: Mutex<Breaker>,
    /// Why there is no connection, after everything was tried.
    failing: ArcSwapOption<Failure>,
    status: ArcSwap<Status>,
    closed: AtomicBool,
    /// Waits between tries are over.
    hurry: AtomicBool,
    /// Wakes the keeper.
    wake: Arc<Notify>,
    /// Counts what callers without a connection wait for.
    moved: watch::Sender<u64>,
}

impl Plugin {
    /// Starts to connect at once: a plugin that is there but cannot be reached is to be seen before somebody needs it.
    pub(super) fn start(spec: Spec, shared: Arc<Shared>) -> Arc<Self> {
        let name = spec.name.clone();
        let setup = Setup::new(spec, None, &shared.tuning);
        let status = publish::connecting(&setup);
        let plugin = Arc::new(Self {
            name,
            permits: ArcSwap::from_pointee(Semaphore::new(setup.limits.in_flight.clamp(1, Semaphore::MAX_PERMITS))),
            setup: ArcSwap::from_pointee(setup),
            transports: Mutex::default(),
            turn: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            breaker: Mutex::default(),
            failing: ArcSwapOption::empty(),
            status: ArcSwap::from_pointee(status),
            closed: AtomicBool::new(false),
            hurry: AtomicBool::new(false),
            wake: Arc::default(),
            moved: watch::Sender::new(0),
            shared,
        });
        plugin.shared.runtime.spawn(keeper::keep(Arc::clone(&plugin)));
        plugin
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How it is.
    #[must_use]
    pub fn status(&self) -> Arc<Status> {
        self.status.load_full()
    }

    /// How far it has come.
    #[must_use]
    pub fn state(&self) -> State {
        self.status.load().state
    }

    /// Who it says it is, from the newest connection there was.
    #[must_use]
    pub fn metadata(&self) -> Option<Arc<Metadata>> {
        self.status.load().metadata.clone()
    }

    /// What it offers, from the newest connection there was.
    #[must_use]
    pub fn capabilities(&self) -> Option<Arc<Capabilities>> {
        self.status.load().capabilities.clone()
    }

    /// Numbers for metrics.
    #[must_use]
    pub fn gauges(&self) -> Gauges {
        let limit = self.setup.load().limits.in_flight;
        Gauges {
            connections: self.lock().iter().filter(|transport| transport.is_usable()).count(),
            in_flight: limit.saturating_sub(self.permits.load().available_permits()),
            waiting: self.waiting.load(std::sync::atomic::Ordering::Relaxed),
            breaker_open: self.breaker().until().is_some(),
        }
    }

    /// Looks at the plugin now: waits of the breaker and between tries are over.
    pub fn probe(&self) {
        self.breaker().close(&self.shared.tuning);
        self.failing.store(None);
        self.hurry.store(true, std::sync::atomic::Ordering::Release);
        self.lock().iter().for_each(|transport| transport.suspect());
        self.wake.notify_one();
    }

    /// The runtime its calls run on.
    pub(super) fn runtime(&self) -> &tokio::runtime::Handle {
        &self.shared.runtime
    }

    pub(super) fn event(&self, event: Event) {
        self.shared.observer.event(&self.name, event);
    }

    /// Nothing panics under the lock.
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Transport>>> {
        self.transports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plugin").field("name", &self.name).field("status", &self.status.load()).finish_non_exhaustive()
    }
}
