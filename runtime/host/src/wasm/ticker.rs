//! The clock of the engine: an epoch every 5 ms, always running, so that a deadline set on a store always comes.

use std::{
    thread,
    time::{Duration, Instant},
};

use wasmtime::EngineWeak;

/// Time between two epochs.
pub(super) const PERIOD: Duration = Duration::from_millis(5);

/// Starts the ticker. It ends by itself when the engine is gone or `each` says so; `each` runs after every tick and must not block.
///
/// # Errors
/// The operating system's, when it grants no thread.
pub(super) fn start(engine: EngineWeak, mut each: impl FnMut(Instant) -> bool + Send + 'static) -> std::io::Result<()> {
    let run = move || {
        let mut next = Instant::now() + PERIOD;
        loop {
            let now = Instant::now();
            let (sleep, then) = schedule(now, next);
            thread::sleep(sleep);
            next = then;
            let Some(engine) = engine.upgrade() else { return };
            engine.increment_epoch();
            drop(engine);
            if !each(Instant::now()) {
                return;
            }
        }
    };
    thread::Builder::new().name("weir-epoch".into()).spawn(run).map(drop)
}

/// How long to sleep until the tick due at `next`, and when the one after it is due. Ticks that were missed (the process was
/// stopped, the machine was busy) are skipped: made up in a burst they would cut the deadlines of calls that just started.
fn schedule(now: Instant, next: Instant) -> (Duration, Instant) {
    match next.checked_duration_since(now) {
        Some(wait) => (wait, next + PERIOD),
        None => (Duration::ZERO, now + PERIOD),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_beat_when_on_time() {
        let now = Instant::now();
        let due = now + Duration::from_millis(3);
        assert_eq!(schedule(now, due), (Duration::from_millis(3), due + PERIOD));
    }

    #[test]
    fn skips_missed_ticks() {
        let due = Instant::now();
        let late = due + Duration::from_secs(2);
        assert_eq!(schedule(late, due), (Duration::ZERO, late + PERIOD));
        // The next one is a full period away, not at once.
        assert_eq!(schedule(late, late + PERIOD).0, PERIOD);
    }
}
