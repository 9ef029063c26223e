//! How a plugin is, said once for each change: in its status, in one log line, to the observer.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use super::{Plugin, keeper::no_endpoints};
use crate::remote::{Event, Reason, Spec, State, Status, setup::Setup, tls::Failure, transport::Transport};

/// Before anything was tried.
pub(super) fn connecting(setup: &Setup) -> Status {
    Status {
        state: State::Configured,
        reason: Some(Reason::Connecting),
        message: "no connection was tried yet".into(),
        metadata: None,
        capabilities: None,
        server_not_after: None,
        overlap: false,
        spec: setup.digest,
    }
}

impl Plugin {
    /// Takes a new spec; whether it changed anything. Connections stay unless certificates, names or limits are others.
    pub(in crate::remote) fn update(&self, spec: Spec) -> bool {
        let former = self.setup.load_full();
        let setup = Setup::new(spec, Some(&former), &self.shared.tuning);
        if setup.generation == former.generation && setup.endpoints == former.endpoints {
            return false;
        }
        if setup.limits.in_flight != former.limits.in_flight {
            // Leases that are out belong to the former number, and end with it.
            let permits = tokio::sync::Semaphore::new(setup.limits.in_flight.clamp(1, tokio::sync::Semaphore::MAX_PERMITS));
            self.permits.store(Arc::new(permits));
        }
        self.setup.store(Arc::new(setup));
        // What failed may work now: callers wait for the keeper's word instead of being refused.
        self.failing.store(None);
        self.wake.notify_one();
        true
    }

    /// Says how it is after a round.
    pub(super) fn publish(&self, setup: &Setup, last: Option<&Failure>) {
        let all: Vec<Arc<Transport>> = self.lock().clone();
        let usable = all.iter().filter(|transport| transport.is_usable()).max_by_key(|transport| transport.generation);
        let failing = match usable {
            Some(_) => None,
            None if all.iter().any(|transport| !transport.wire.is_closed()) => {
                Some(Failure::new(Reason::NotReady, "the plugin says that it is not ready"))
            }
            None if setup.endpoints.is_empty() => Some(no_endpoints()),
            None => last.cloned(),
        };
        if self.failing.load().as_deref() != failing.as_ref() {
            self.failing.store(failing.clone().map(Arc::new));
            self.moved.send_modify(|count| *count = count.wrapping_add(1));
        }
        let former = self.status.load_full();
        let mut status = Status::clone(&former);
        match (usable, &failing) {
            (Some(transport), _) => self.usable(&mut status, transport, setup, last),
            (None, Some(failure)) => {
                status.state = reached(failure.reason);
                status.reason = Some(failure.reason);
                status.message = failure.message.clone();
            }
            // It broke just now and is being made again: not yet a state.
            (None, None) => {}
        }
        self.announce(&former, status);
    }

    fn usable(&self, status: &mut Status, transport: &Transport, setup: &Setup, last: Option<&Failure>) {
        let stale = transport.generation != setup.generation;
        status.overlap = stale || transport.former;
        if !stale {
            status.spec = setup.digest;
        }
        status.server_not_after = transport.peer.not_after;
        if let Some(until) = self.breaker().until() {
            let left = until.saturating_duration_since(Instant::now());
            status.state = State::Reachable;
            status.reason = Some(Reason::CircuitOpen);
            // Without the time left, which would be another message with every look.
            status.message = format!("{} calls in a row failed; the next try is due", self.shared.tuning.breaker);
            tracing::debug!(target: "weir::remote", plugin = %self.name, ?left, "the breaker is open");
            return;
        }
        status.state = State::Ready;
        status.reason = None;
        status.message = match last.filter(|_| stale) {
            Some(failure) => format!("the former connection is in use, the new certificates do not work yet: {}", failure.message),
            None if status.overlap => "one side shows its former certificate".into(),
            None => String::new(),
        };
    }

    /// A connection said who is at its other end.
    pub(super) fn introduced(&self, transport: &Transport) {
        let former = self.status.load_full();
        let (metadata, capabilities) = (&transport.peer.metadata, &transport.peer.capabilities);
        if former.metadata.as_ref() == Some(metadata) && former.capabilities.as_ref() == Some(capabilities) {
            return;
        }
        let mut status = Status::clone(&former);
        status.metadata = Some(Arc::clone(metadata));
        status.capabilities = Some(Arc::clone(capabilities));
        self.status.store(Arc::new(status));
        self.event(Event::NewMetadata);
        self.shared.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// It is taken out.
    pub(super) fn closed_status(&self) {
        let former = self.status.load_full();
        let mut status = Status::clone(&former);
        status.state = State::Configured;
        status.reason = Some(Reason::Closed);
        status.message = "the plugin was taken out".into();
        self.announce(&former, status);
    }

    fn announce(&self, former: &Status, status: Status) {
        if *former == status || (self.closed.load(Ordering::Acquire) && status.reason != Some(Reason::Closed)) {
            return;
        }
        let (state, reason) = (status.state, status.reason);
        if (former.state, former.reason) != (state, reason) {
            match reason {
                None => tracing::info!(target: "weir::remote", plugin = %self.name, "the remote plugin is ready"),
                Some(reason) => {
                    let (state, message) = (state.as_str(), &status.message);
                    tracing::warn!(target: "weir::remote", plugin = %self.name, state, %reason, %message, "the remote plugin is not ready");
                }
            }
            self.event(Event::State(state, reason));
        }
        self.status.store(Arc::new(status));
        self.shared.changes.send_modify(|count| *count = count.wrapping_add(1));
    }
}

/// How far a plugin came that fails so: these say something over a connection that stands.
fn reached(reason: Reason) -> State {
    match reason {
        Reason::NameMismatch | Reason::BadMetadata | Reason::ProbeFailed | Reason::NotReady | Reason::CircuitOpen => State::Reachable,
        Reason::Connecting
        | Reason::NoEndpoints
        | Reason::Unreachable
        | Reason::TlsFailed
        | Reason::ServerNotTrusted
        | Reason::ServerNameInvalid
        | Reason::ServerCertExpired
        | Reason::ServerCertUnusable
        | Reason::ClientCertRejected
        | Reason::Closed => State::Configured,
    }
}
