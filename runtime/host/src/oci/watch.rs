//! Who is told how far a transfer is.

use super::auth::Session;

/// Told what moves, for people who wait. It is called often and must not block.
pub trait Watch: Send + Sync {
    /// Of `what`, `done` of `of` bytes have come. Of what is sent only beginning and end are told.
    fn moved(&self, what: &str, done: u64, of: u64);
}

impl Session<'_> {
    pub(super) fn moved(&self, what: &str, done: u64, of: u64) {
        if let Some(watch) = self.watch {
            watch.moved(what, done, of);
        }
    }
}
