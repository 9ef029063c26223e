//! How far a transfer is, for a person at a terminal.

use std::{
    io::{IsTerminal, Write},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use weir_host::oci::Watch;

/// Less than this is there before anybody has read the line.
const LEAST: u64 = 1 << 20;
const PAUSE: Duration = Duration::from_millis(100);

/// A line on standard error that is written over.
pub(super) struct Progress(Mutex<Option<Instant>>);

impl Progress {
    /// Nothing where nobody would see it.
    pub(super) fn for_people(quiet: bool) -> Option<Self> {
        (!quiet && std::io::stderr().is_terminal()).then(|| Self(Mutex::new(None)))
    }
}

impl Watch for Progress {
    fn moved(&self, what: &str, done: u64, of: u64) {
        if of < LEAST {
            return;
        }
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if done < of && last.is_some_and(|last| last.elapsed() < PAUSE) {
            return;
        }
        *last = (done < of).then(Instant::now);
        let end = if done < of { "" } else { "\n" };
        let _ = write!(std::io::stderr(), "\r{}{end}", line(what, done, of));
    }
}

impl Drop for Progress {
    /// What comes after a transfer that was broken off begins a line.
    fn drop(&mut self) {
        if self.0.get_mut().unwrap_or_else(PoisonError::into_inner).is_some() {
            let _ = writeln!(std::io::stderr());
        }
    }
}

/// Of one length, so that it covers the one before.
fn line(what: &str, done: u64, of: u64) -> String {
    const MIB: u64 = 1 << 20;
    let tenths = |bytes: u64| bytes.saturating_mul(10) / MIB;
    let mib = |bytes: u64| format!("{}.{}", tenths(bytes) / 10, tenths(bytes) % 10);
    format!("{:>7} of {:>7} MiB  {what}", mib(done), mib(of))
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn lines_cover_each_other() {
        assert_eq!(line("x", 1 << 20, 25 << 19), "    1.0 of    12.5 MiB  x");
        assert_eq!(line("x", 0, 25 << 19).len(), line("x", 25 << 19, 25 << 19).len());
    }
}
