//! Pauses between attempts: full jitter, or what the registry asks for.

use std::{
    future::Future,
    hash::{BuildHasher as _, RandomState},
    time::{Duration, SystemTime},
};

use reqwest::header::{HeaderMap, RETRY_AFTER};

use super::{Error, Retries};

/// Longest pause that a registry may ask for; more is not believed.
const LONGEST: Duration = Duration::from_secs(3_600);

/// The pauses that one call has left.
pub(super) struct Patience {
    settings: Retries,
    left: Duration,
}

impl Patience {
    pub(super) fn new(settings: Retries) -> Self {
        Self { settings, left: settings.total }
    }

    /// For one attempt.
    pub(super) fn none() -> Self {
        Self::new(Retries { tries: 1, pause: Duration::ZERO, total: Duration::ZERO })
    }

    /// Runs `attempt` until it succeeds, fails for good, or patience ends. The last error is returned.
    pub(super) async fn attempt<T, F: Future<Output = Result<T, Error>>>(&mut self, mut attempt: impl FnMut() -> F) -> Result<T, Error> {
        let mut failed = 0;
        loop {
            let error = match attempt().await {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            failed += 1;
            let pause = self.pause(failed, error.retry_after());
            if !error.transient() || failed >= self.settings.tries || pause > self.left {
                return Err(error);
            }
            tracing::debug!(%error, failed, ?pause, "registry request is tried again");
            self.left = self.left.saturating_sub(pause);
            tokio::time::sleep(pause).await;
        }
    }

    fn pause(&self, failed: u32, asked: Option<Duration>) -> Duration {
        let most = self.settings.pause.saturating_mul(1_u32.checked_shl(failed.saturating_sub(1)).unwrap_or(u32::MAX));
        let jitter = most.mul_f64(fraction());
        // Never sooner than asked for; a tenth more at random, so that not all come back at once.
        asked.map_or(jitter, |asked| asked + jitter.min(asked / 10))
    }
}

/// A number from 0 to 1. Every `RandomState` has new keys, so this needs no generator.
fn fraction() -> f64 {
    let random = RandomState::new().hash_one(SystemTime::now());
    f64::from(u32::try_from(random >> 32).unwrap_or(0)) / f64::from(u32::MAX)
}

/// `Retry-After`, in seconds or as a date.
pub(super) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let asked = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default(),
    };
    Some(asked.min(LONGEST))
}
