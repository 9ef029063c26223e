//! Which connections leave.

use std::{sync::Arc, time::Instant};

use super::{Keeper, is_busy};
use crate::remote::{setup::Setup, transport::Transport};

impl Keeper {
    /// Takes out what has ended, what leads nowhere, what the certificates no longer allow, and what nobody uses.
    pub(super) fn sweep(&self, setup: &Setup, now: Instant) {
        let all: Vec<Arc<Transport>> = self.plugin.lock().clone();
        let overlap = self.plugin.shared.tuning.overlap;
        let superseded = setup.since.checked_add(overlap).is_some_and(|end| end <= now);
        for transport in &all {
            let why = if transport.wire.is_closed() {
                "closed"
            } else if !setup.endpoints.contains(&transport.endpoint) {
                "endpoint"
            } else if transport.generation != setup.generation && superseded {
                "certificates"
            } else if self.is_idle(&all, transport, setup) {
                "idle"
            } else {
                continue;
            };
            self.plugin.evict(transport, why);
        }
    }

    /// A further connection to an endpoint that made no call for long. The first one stays: it is what tells whether the plugin is there.
    /// One that would be made again at once, because the others are still busy, stays too.
    fn is_idle(&self, all: &[Arc<Transport>], transport: &Arc<Transport>, setup: &Setup) -> bool {
        let same = |other: &&Arc<Transport>| other.endpoint == transport.endpoint && other.generation == transport.generation;
        let first = all.iter().find(same).is_some_and(|first| Arc::ptr_eq(first, transport));
        let calls: usize = all.iter().filter(same).map(|other| other.in_flight()).sum();
        !first && !is_busy(setup, calls) && transport.in_flight() == 0 && transport.idle() > self.plugin.shared.tuning.idle
    }
}
