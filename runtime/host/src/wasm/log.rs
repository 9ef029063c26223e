//! The import `log`: a policy's lines go to tracing, bounded in number and length.

use std::sync::Arc;

use tracing::Level;

use super::{call::State, slot::log};

/// Lines of one call that are forwarded.
const MAX_LINES: u32 = 256;
/// Bytes of one line that are forwarded.
const MAX_LENGTH: usize = 4 << 10;
/// A constant, as tracing needs one per call site; operators filter by it.
const TARGET: &str = "weir::policy";

/// Whose lines these are.
#[derive(Debug)]
pub(super) struct Author {
    pub(super) source: String,
    pub(super) slot: &'static str,
}

/// The lines of one call.
#[derive(Debug)]
pub(super) struct Lines {
    author: Arc<Author>,
    count: u32,
    dropped: u64,
}

impl Lines {
    pub(super) fn new(author: Arc<Author>) -> Self {
        Self { author, count: 0, dropped: 0 }
    }

    fn line(&mut self, level: Level, message: &str) {
        if self.count == MAX_LINES {
            self.dropped = self.dropped.saturating_add(1);
            return;
        }
        self.count += 1;
        let end = message.floor_char_boundary(MAX_LENGTH);
        emit(level, &self.author, message.get(..end).unwrap_or_default());
    }

    /// Says how much was dropped, once.
    pub(super) fn close(&mut self) {
        if self.dropped > 0 {
            let text = format!("{} more lines of this call were dropped", self.dropped);
            emit(Level::WARN, &self.author, &text);
            self.dropped = 0;
        }
    }
}

/// The message is a field with escapes, so that a policy cannot forge lines.
fn emit(level: Level, author: &Author, line: &str) {
    let (policy, slot) = (author.source.as_str(), author.slot);
    match level {
        Level::ERROR => tracing::error!(target: TARGET, policy, slot, ?line, "policy log"),
        Level::WARN => tracing::warn!(target: TARGET, policy, slot, ?line, "policy log"),
        Level::INFO => tracing::info!(target: TARGET, policy, slot, ?line, "policy log"),
        Level::DEBUG => tracing::debug!(target: TARGET, policy, slot, ?line, "policy log"),
        Level::TRACE => tracing::trace!(target: TARGET, policy, slot, ?line, "policy log"),
    }
}

impl log::Host for State {
    fn log(&mut self, level: log::Level, message: String) {
        let level = match level {
            log::Level::Debug => Level::DEBUG,
            log::Level::Info | log::Level::Other(_) => Level::INFO,
            log::Level::Warn => Level::WARN,
            log::Level::Error => Level::ERROR,
        };
        self.lines.line(level, &message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_and_cut() {
        let mut lines = Lines::new(Arc::new(Author { source: "test".into(), slot: "konnect-env" }));
        for _ in 0..300 {
            lines.line(Level::INFO, &"ä".repeat(MAX_LENGTH));
        }
        assert_eq!((lines.count, lines.dropped), (256, 44));
        lines.close();
        assert_eq!(lines.dropped, 0);
    }
}
