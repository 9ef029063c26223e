//! What to do about a Lease, without a client and without the clock on the wall.
//!
//! Clocks of two machines differ, so nobody compares the holder's `renewTime` with a time of ours: a record counts as abandoned when we
//! have looked at it for a whole lease duration and it has not changed.

use std::time::{Duration, Instant};

use k8s_openapi::{api::coordination::v1::LeaseSpec, apimachinery::pkg::apis::meta::v1::MicroTime, jiff::Timestamp};

/// A record, and when we first saw it as it is.
#[derive(Debug, Clone)]
pub(super) struct Observed {
    record: LeaseSpec,
    since: Instant,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// Nobody leads: write our name.
    Acquire,
    /// The record names us: write a new time.
    Renew,
    /// Another leads, and may do so for this long without a sign of life.
    Wait(Duration),
}

impl Observed {
    /// What is known after another look.
    pub(super) fn look(before: Option<Self>, record: LeaseSpec, now: Instant) -> Self {
        match before {
            Some(same) if same.record == record => same,
            Some(_) | None => Self { record, since: now },
        }
    }

    /// Who leads by the record; none when it was given back.
    pub(super) fn holder(&self) -> Option<&str> {
        holder(&self.record)
    }

    /// Decides for `identity`. `own` stands in for a duration the record does not say.
    pub(super) fn decide(&self, identity: &str, own: Duration, now: Instant) -> Decision {
        match self.holder() {
            None => Decision::Acquire,
            Some(holder) if holder == identity => Decision::Renew,
            Some(_) => {
                let said = self.record.lease_duration_seconds.and_then(|s| u64::try_from(s).ok()).filter(|s| *s > 0);
                let duration = said.map_or(own, Duration::from_secs);
                let left = duration.saturating_sub(now.saturating_duration_since(self.since));
                if left.is_zero() { Decision::Acquire } else { Decision::Wait(left) }
            }
        }
    }
}

/// Who leads by a record.
pub(super) fn holder(record: &LeaseSpec) -> Option<&str> {
    record.holder_identity.as_deref().filter(|h| !h.is_empty())
}

/// The record with our name in it. Fields that others may use (strategy, preferred holder) stay as they are.
pub(super) fn claim(before: Option<&LeaseSpec>, identity: &str, duration: Duration, now: Timestamp) -> LeaseSpec {
    let ours = before.is_some_and(|b| holder(b) == Some(identity));
    let transitions = before.and_then(|b| b.lease_transitions).unwrap_or(0);
    let mut record = before.cloned().unwrap_or_default();
    record.lease_transitions = Some(if ours || before.is_none() { transitions } else { transitions.saturating_add(1) });
    if !ours || record.acquire_time.is_none() {
        record.acquire_time = Some(MicroTime(now));
    }
    record.holder_identity = Some(identity.to_owned());
    record.lease_duration_seconds = Some(seconds(duration));
    record.renew_time = Some(MicroTime(now));
    record
}

/// The record without a holder: the next candidate does not have to wait.
pub(super) fn give_back(before: &LeaseSpec, now: Timestamp) -> LeaseSpec {
    let mut record = before.clone();
    record.holder_identity = Some(String::new());
    // The API server takes no zero.
    record.lease_duration_seconds = Some(1);
    record.renew_time = Some(MicroTime(now));
    record
}

/// Whole seconds, rounded up: the others must never wait for less than we mean.
fn seconds(duration: Duration) -> i32 {
    let whole = duration.as_secs().saturating_add(u64::from(duration.subsec_nanos() > 0)).max(1);
    i32::try_from(whole).unwrap_or(i32::MAX)
}
