//! The import `log`: a policy's lines go to tracing, bounded in number and length.

use std::sync::Arc;

use serde::Serialize;

use super::{call::State, slot::log};

/// Lines of one call that are forwarded.
const MAX_LINES: u32 = 256;
/// Bytes of one line that are forwarded.
pub(super) const MAX_LENGTH: usize = 4 << 10;
/// A constant, as tracing needs one per call site; operators filter by it.
const TARGET: &str = "weir::policy";

/// Whose lines these are.
#[derive(Debug)]
pub(super) struct Author {
    pub(super) source: String,
    pub(super) slot: &'static str,
}

/// How serious a log line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LineLevel {
    /// For whoever looks for a fault.
    Debug,
    /// Good to know.
    Info,
    /// Worth a look.
    Warn,
    /// Something does not work.
    Error,
}

/// A log line of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// How serious it is.
    pub level: LineLevel,
    /// What the policy said, cut to what is forwarded.
    pub text: String,
}

/// Whether somebody wants the lines beside the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    Nothing,
    Lines,
}

/// The lines of one call.
#[derive(Debug)]
pub(super) struct Lines {
    author: Arc<Author>,
    keep: Keep,
    kept: Vec<Line>,
    count: u32,
    dropped: u64,
}

impl Lines {
    pub(super) fn new(author: Arc<Author>, keep: Keep) -> Self {
        Self { author, keep, kept: Vec::new(), count: 0, dropped: 0 }
    }

    /// What was kept.
    pub(super) fn take(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.kept)
    }

    pub(super) fn line(&mut self, level: LineLevel, message: &str) {
        if self.count == MAX_LINES {
            self.dropped = self.dropped.saturating_add(1);
            return;
        }
        self.count += 1;
        let end = message.floor_char_boundary(MAX_LENGTH);
        self.say(level, message.get(..end).unwrap_or_default());
    }

    fn say(&mut self, level: LineLevel, text: &str) {
        emit(level, &self.author, text);
        if self.keep == Keep::Lines {
            self.kept.push(Line { level, text: text.to_owned() });
        }
    }

    /// Says how much was dropped, once.
    pub(super) fn close(&mut self) {
        if self.dropped > 0 {
            let text = format!("{} more lines of this call were dropped", self.dropped);
            self.say(LineLevel::Warn, &text);
            self.dropped = 0;
        }
    }
}

/// The message is a field with escapes, so that a policy cannot forge lines.
fn emit(level: LineLevel, author: &Author, line: &str) {
    let (policy, slot) = (author.source.as_str(), author.slot);
    match level {
        LineLevel::Error => tracing::error!(target: TARGET, policy, slot, ?line, "policy log"),
        LineLevel::Warn => tracing::warn!(target: TARGET, policy, slot, ?line, "policy log"),
        LineLevel::Info => tracing::info!(target: TARGET, policy, slot, ?line, "policy log"),
        LineLevel::Debug => tracing::debug!(target: TARGET, policy, slot, ?line, "policy log"),
    }
}

impl log::Host for State {
    fn log(&mut self, level: log::Level, message: String) {
        let level = match level {
            log::Level::Debug => LineLevel::Debug,
            log::Level::Info | log::Level::Other(_) => LineLevel::Info,
            log::Level::Warn => LineLevel::Warn,
            log::Level::Error => LineLevel::Error,
        };
        self.lines.line(level, &message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_and_cut() {
        let mut lines = Lines::new(Arc::new(Author { source: "test".into(), slot: "konnect-env" }), Keep::Lines);
        for _ in 0..300 {
            lines.line(LineLevel::Info, &"ä".repeat(MAX_LENGTH));
        }
        assert_eq!((lines.count, lines.dropped), (256, 44));
        lines.close();
        assert_eq!(lines.dropped, 0);
        let kept = lines.take();
        assert_eq!(kept.len(), 257);
        assert!(kept.iter().all(|line| line.text.len() <= MAX_LENGTH));
        assert_eq!(kept.last().map(|line| line.text.as_str()), Some("44 more lines of this call were dropped"));
    }
}
