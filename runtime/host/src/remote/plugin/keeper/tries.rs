//! When an endpoint may be tried again.

use std::{collections::BTreeMap, time::Instant};

use crate::remote::{Endpoint, Tuning, breaker::full_jitter};

#[derive(Debug, Default)]
pub(super) struct Tries(BTreeMap<Endpoint, Try>);

#[derive(Debug, Default)]
struct Try {
    failures: u32,
    next: Option<Instant>,
    running: bool,
}

impl Tries {
    /// Forgets endpoints that are gone.
    pub(super) fn keep(&mut self, endpoints: &[Endpoint]) {
        self.0.retain(|endpoint, of| of.running || endpoints.contains(endpoint));
    }

    /// Whether a try may begin now; then it has.
    pub(super) fn begin(&mut self, endpoint: &Endpoint, now: Instant) -> bool {
        let of = self.0.entry(endpoint.clone()).or_default();
        let begins = !of.running && of.next.is_none_or(|next| next <= now);
        of.running |= begins;
        begins
    }

    /// A try ended without a meaning.
    pub(super) fn ended(&mut self, endpoint: &Endpoint) {
        if let Some(of) = self.0.get_mut(endpoint) {
            of.running = false;
        }
    }

    /// A try succeeded.
    pub(super) fn succeeded(&mut self, endpoint: &Endpoint) {
        self.0.remove(endpoint);
    }

    /// A try failed: the next one waits, with full jitter.
    pub(super) fn failed(&mut self, endpoint: &Endpoint, now: Instant, tuning: &Tuning) {
        let of = self.0.entry(endpoint.clone()).or_default();
        of.running = false;
        of.next = now.checked_add(full_jitter(of.failures, tuning));
        of.failures = of.failures.saturating_add(1);
    }

    /// When tries are due.
    pub(super) fn due(&self) -> impl Iterator<Item = Instant> {
        self.0.values().filter(|of| !of.running).filter_map(|of| of.next)
    }

    /// All may be tried now.
    pub(super) fn hurry(&mut self) {
        self.0.values_mut().for_each(|of| of.next = None);
    }
}
