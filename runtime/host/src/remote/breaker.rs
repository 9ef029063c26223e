//! When to stop asking a plugin, and when to try again.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    time::{Duration, Instant},
};

use super::Tuning;

/// Opens after failures in a row; each further opening waits longer, until a call succeeds.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    row: u32,
    attempt: u32,
    until: Option<Instant>,
}

impl Breaker {
    /// A call ended well.
    pub(super) fn succeeded(&mut self) {
        self.row = 0;
        if self.until.is_none() {
            self.attempt = 0;
        }
    }

    /// A call ended as a failure of the connection. Whether that opened it.
    pub(super) fn failed(&mut self, now: Instant, tuning: &Tuning) -> bool {
        self.row = self.row.saturating_add(1);
        if self.until.is_some() || self.row < tuning.breaker {
            return false;
        }
        self.open(now, tuning);
        true
    }

    /// Opens it, for longer than the last time.
    pub(super) fn open(&mut self, now: Instant, tuning: &Tuning) {
        self.row = 0;
        self.until = now.checked_add(full_jitter(self.attempt, tuning));
        self.attempt = self.attempt.saturating_add(1);
    }

    /// Closes it after a test that went well. One failure opens it again: only a call proves more.
    pub(super) fn close(&mut self, tuning: &Tuning) {
        self.until = None;
        self.row = tuning.breaker.saturating_sub(1);
    }

    /// Until when it is open.
    pub(super) fn until(&self) -> Option<Instant> {
        self.until
    }
}

/// A random time up to `backoff · 2^attempt`, at most `backoff_most`. Never below a twentieth of that: a try costs the plugin a handshake.
pub(super) fn full_jitter(attempt: u32, tuning: &Tuning) -> Duration {
    let most = tuning.backoff.saturating_mul(2_u32.saturating_pow(attempt.min(20))).min(tuning.backoff_most);
    most.mul_f64(fraction().max(0.05))
}

/// A random number from 0 to 1. Nothing depends on its being hard to guess.
pub(super) fn fraction() -> f64 {
    let random = RandomState::new().build_hasher().finish();
    f64::from(u32::try_from(random >> 32).unwrap_or(u32::MAX)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_with_full_jitter_up_to_the_most() {
        let tuning = Tuning { backoff: Duration::from_secs(1), backoff_most: Duration::from_secs(300), ..Tuning::default() };
        for attempt in 0..40 {
            let most = Duration::from_secs(1_u64.checked_shl(attempt).unwrap_or(u64::MAX).min(300));
            let waits: Vec<_> = (0..50).map(|_| full_jitter(attempt, &tuning)).collect();
            assert!(waits.iter().all(|wait| *wait <= most && *wait >= most / 21), "{attempt}: {waits:?}");
            assert!(waits.iter().any(|wait| *wait != waits[0]), "no jitter at {attempt}");
        }
    }

    #[test]
    fn failures_in_a_row_open_it_and_a_test_lets_one_call_try() {
        let (tuning, now) = (Tuning { breaker: 3, ..Tuning::default() }, Instant::now());
        let mut breaker = Breaker::default();
        assert!(!breaker.failed(now, &tuning));
        assert!(!breaker.failed(now, &tuning));
        breaker.succeeded();
        assert_eq!([0; 3].map(|_| breaker.failed(now, &tuning)), [false, false, true]);
        assert!(breaker.until().is_some_and(|until| until > now));
        breaker.close(&tuning);
        assert!(breaker.failed(now, &tuning), "one failure after a test opens it again");
        breaker.close(&tuning);
        breaker.succeeded();
        assert!(!breaker.failed(now, &tuning));
    }
}
