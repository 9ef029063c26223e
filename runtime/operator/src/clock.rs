//! The wall clock. Everything that compares with ends of certificates asks here, so that a test can let the clock jump.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};

/// The system's clock, plus an offset that only tests set.
#[derive(Debug, Clone, Default)]
pub struct Clock(Arc<AtomicI64>);

impl Clock {
    /// Now.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let now = Timestamp::now();
        now.checked_add(SignedDuration::from_secs(self.0.load(Ordering::Relaxed))).unwrap_or(now)
    }

    /// Follows a file that holds the offset in seconds. For tests; runs until it is dropped.
    pub async fn follow(self, file: PathBuf) {
        loop {
            let offset = std::fs::read_to_string(&file).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
            self.0.store(offset, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}
