//! The task that keeps a plugin's connections: makes them, looks at them, replaces them. The only one that connects, so callers never do.

mod sweep;
mod tries;

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use futures::{StreamExt, future::BoxFuture, stream::FuturesUnordered};

use self::tries::Tries;
use super::Plugin;
use crate::remote::{Endpoint, Event, Reason, connect, setup::Setup, tls::Failure, transport::Transport};

/// Shortest time between two rounds that nothing woke.
const LEAST: Duration = Duration::from_millis(10);

/// Something the keeper began has ended.
enum Done {
    Connected(Endpoint, u64, Result<Box<Transport>, Failure>),
    /// A look at a connection; whether it was to close the breaker, and how it went.
    Checked {
        half_open: bool,
        well: bool,
    },
}

pub(super) struct Keeper {
    plugin: Arc<Plugin>,
    tries: Tries,
    work: FuturesUnordered<BoxFuture<'static, Done>>,
    generation: u64,
    endpoints: Vec<Endpoint>,
    half_open: bool,
    /// The last failure since there was a connection.
    last: Option<Failure>,
}

/// Runs until the plugin is closed.
pub(super) async fn keep(plugin: Arc<Plugin>) {
    let setup = plugin.setup.load_full();
    let (generation, endpoints) = (setup.generation, setup.endpoints.clone());
    let (tries, work) = (Tries::default(), FuturesUnordered::new());
    let mut keeper = Keeper { plugin, tries, work, generation, endpoints, half_open: false, last: None };
    while !keeper.plugin.closed.load(Ordering::Acquire) {
        let next = keeper.round();
        let plugin = Arc::clone(&keeper.plugin);
        tokio::select! {
            Some(done) = keeper.work.next(), if !keeper.work.is_empty() => keeper.done(done),
            () = plugin.wake.notified() => {}
            () = tokio::time::sleep(next) => {}
        }
    }
    let left: Vec<_> = keeper.plugin.lock().clone();
    for transport in left {
        keeper.plugin.evict(&transport, "closed");
    }
}

impl Keeper {
    /// Does what is due and says how long nothing will be.
    fn round(&mut self) -> Duration {
        let setup = self.plugin.setup.load_full();
        let now = Instant::now();
        if self.generation != setup.generation {
            self.generation = setup.generation;
            self.tries = Tries::default();
            self.last = None;
        }
        if self.endpoints != setup.endpoints {
            self.endpoints.clone_from(&setup.endpoints);
            self.last = None;
        }
        if self.plugin.hurry.swap(false, Ordering::AcqRel) {
            self.tries.hurry();
            self.last = None;
        }
        self.tries.keep(&setup.endpoints);
        self.sweep(&setup, now);
        self.try_breaker(now);
        self.connect(&setup, now);
        self.look(now);
        self.plugin.publish(&setup, self.last.as_ref());
        self.next(&setup, now).max(LEAST)
    }

    /// Begins the connections that are wanted and due.
    fn connect(&mut self, setup: &Arc<Setup>, now: Instant) {
        for endpoint in &setup.endpoints {
            if self.is_wanted(setup, endpoint, now) && self.tries.begin(endpoint, now) {
                let (plugin, setup, endpoint) = (Arc::clone(&self.plugin), Arc::clone(setup), endpoint.clone());
                self.work.push(Box::pin(async move {
                    let outcome = connect::connect(&plugin.name, &endpoint, &setup, &plugin.shared.tuning, &plugin.wake).await;
                    Done::Connected(endpoint, setup.generation, outcome.map(Box::new))
                }));
            }
        }
    }

    /// Whether an endpoint needs a connection: it has none of this generation that stays, or all it has are busy and it may have another.
    fn is_wanted(&self, setup: &Setup, endpoint: &Endpoint, now: Instant) -> bool {
        let all = self.plugin.lock();
        let current = |t: &&Arc<Transport>| t.endpoint == *endpoint && t.generation == setup.generation && !t.is_retiring(now);
        let (mut count, mut calls) = (0_usize, 0_usize);
        for transport in all.iter().filter(current) {
            count = count.saturating_add(1);
            calls = calls.saturating_add(transport.in_flight());
        }
        count == 0 || (count < setup.limits.connections.min(2) && is_busy(setup, calls))
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Connected(endpoint, generation, outcome) => self.connected(&endpoint, generation, outcome),
            Done::Checked { half_open: false, well: _ } => {}
            Done::Checked { half_open: true, well } => {
                self.half_open = false;
                if well { self.plugin.close_breaker() } else { self.plugin.breaker().open(Instant::now(), &self.plugin.shared.tuning) }
            }
        }
    }

    fn connected(&mut self, endpoint: &Endpoint, generation: u64, outcome: Result<Box<Transport>, Failure>) {
        let setup = self.plugin.setup.load_full();
        // Made for what is not wanted any more. Of another generation the tries begin anew, so this one is none of theirs.
        if generation != setup.generation {
            return;
        }
        if !setup.endpoints.contains(endpoint) {
            self.tries.ended(endpoint);
            return;
        }
        match outcome {
            Ok(transport) => {
                self.tries.succeeded(endpoint);
                self.last = None;
                self.plugin.event(Event::Connected);
                self.plugin.enter(Arc::new(*transport));
            }
            Err(failure) => {
                self.plugin.event(Event::NotConnected(failure.reason));
                self.tries.failed(endpoint, Instant::now(), &self.plugin.shared.tuning);
                self.last = Some(failure);
            }
        }
    }

    /// The breaker's time is over: one test decides.
    fn try_breaker(&mut self, now: Instant) {
        let due = self.plugin.breaker().until().is_some_and(|until| until <= now);
        if !due || self.half_open {
            return;
        }
        // Without a connection, making one is the test.
        let Some(transport) = self.plugin.lock().iter().find(|transport| transport.is_usable()).cloned() else { return };
        self.half_open = true;
        transport.suspect();
        let plugin = Arc::clone(&self.plugin);
        self.work.push(Box::pin(async move { Done::Checked { half_open: true, well: plugin.check(&transport).await } }));
    }

    /// Looks at connections that were not heard of for long, and at those that said they are not ready.
    fn look(&mut self, now: Instant) {
        let tuning = self.plugin.shared.tuning;
        let due = |transport: &&Arc<Transport>| {
            let every = if transport.is_usable() { tuning.health } else { tuning.not_ready.max(tuning.fresh) };
            !transport.is_fresh(every) && !transport.is_retiring(now) && transport.testing.try_lock().is_ok()
        };
        let due: Vec<_> = self.plugin.lock().iter().filter(due).cloned().collect();
        for transport in due {
            let plugin = Arc::clone(&self.plugin);
            self.work.push(Box::pin(async move { Done::Checked { half_open: false, well: plugin.check(&transport).await } }));
        }
    }

    /// Time until something is due.
    fn next(&self, setup: &Setup, now: Instant) -> Duration {
        let tuning = self.plugin.shared.tuning;
        let transports = self.plugin.lock();
        let mut next = if transports.iter().any(|transport| !transport.is_usable()) { tuning.not_ready } else { tuning.health };
        let moments = transports.iter().map(|transport| transport.retire).chain(self.tries.due()).chain(self.plugin.breaker().until());
        let superseded = setup.since.checked_add(tuning.overlap);
        for moment in moments.chain(superseded).filter(|moment| *moment > now) {
            next = next.min(moment.duration_since(now));
        }
        next
    }
}

/// Whether so many calls to an endpoint are worth a second connection: more than half of what may be in flight.
fn is_busy(setup: &Setup, calls: usize) -> bool {
    calls.saturating_mul(2) > setup.limits.in_flight
}

impl Plugin {
    /// A new connection: it takes the place of those to its endpoint that are to be replaced.
    fn enter(&self, transport: Arc<Transport>) {
        let now = Instant::now();
        let old: Vec<_> = {
            let all = self.lock();
            let replaced =
                |t: &&Arc<Transport>| t.endpoint == transport.endpoint && (t.generation != transport.generation || t.is_retiring(now));
            all.iter().filter(replaced).cloned().collect()
        };
        self.lock().push(Arc::clone(&transport));
        for former in old {
            let why = if former.generation == transport.generation { "age" } else { "certificates" };
            self.evict(&former, why);
        }
        if self.breaker().until().is_some_and(|until| until <= now) {
            self.close_breaker();
        }
        self.introduced(&transport);
        self.moved.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn close_breaker(&self) {
        self.breaker().close(&self.shared.tuning);
        self.event(Event::Breaker { open: false });
        self.moved.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Takes a connection out of the pool; its calls get their time to end. Whether it was still in.
    pub(super) fn evict(&self, transport: &Arc<Transport>, why: &'static str) -> bool {
        let found = {
            let mut all = self.lock();
            let before = all.len();
            all.retain(|known| !Arc::ptr_eq(known, transport));
            all.len() != before
        };
        if found {
            self.event(Event::Evicted(why));
            let (connection, drain) = (transport.connection.clone(), self.shared.tuning.drain);
            self.shared.runtime.spawn(async move {
                tokio::time::sleep(drain).await;
                connection.abort();
            });
            self.wake.notify_one();
        }
        found
    }

    /// Ends it; leases that are out stay good for the time of a drain.
    pub(in crate::remote) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.permits.load().close();
        self.closed_status();
        self.wake.notify_one();
        self.moved.send_modify(|count| *count = count.wrapping_add(1));
    }
}

/// Not an error of the plugin's: nobody gave it a place.
pub(super) fn no_endpoints() -> Failure {
    Failure::new(Reason::NoEndpoints, "no ready endpoint: no pod of its Service is ready")
}
