//! A plugin's own words in our messages: one line, bounded, no stack traces.

/// Longest message of a plugin that is shown, bytes.
pub(super) const MAX_MESSAGE: usize = 300;

/// One line of at most `most` bytes, without control characters.
pub(super) fn line(text: &str, most: usize) -> String {
    let mut line = String::new();
    for letter in text.chars().map(|c| if c.is_control() { ' ' } else { c }) {
        if line.len().saturating_add(letter.len_utf8()) > most {
            break;
        }
        line.push(letter);
    }
    line
}

/// What a plugin says of its failure. Its first line says it; what follows in a recovered panic is a stack trace, with paths and addresses
/// of the author's machine, which helps nobody who reads a condition.
pub(super) fn message(text: &str) -> String {
    const TRACES: [&str; 5] = ["goroutine ", "stack backtrace:", "Traceback (most recent", "runtime/debug.Stack", "\tat "];
    let end = TRACES.iter().filter_map(|mark| text.find(mark)).min().unwrap_or(text.len());
    let said = text.get(..end).unwrap_or_default();
    let first = said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it gives no reason");
    line(first.trim_end_matches([':', ',', ' ']), MAX_MESSAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stack_traces_do_not_pass() {
        let go = "panic triggered: runtime error: invalid memory address\n\ngoroutine 34 [running]:\nruntime/debug.Stack()\n\t/usr/lib/go/debug/stack.go:26";
        assert_eq!(message(go), "panic triggered: runtime error: invalid memory address");
        assert_eq!(message("boom, stack: goroutine 1 [running]"), "boom, stack");
        assert_eq!(message("goroutine 1 [running]"), "it gives no reason");
        assert_eq!(message(""), "it gives no reason");
    }

    #[test]
    fn messages_are_one_bounded_line() {
        assert_eq!(message("one\ntwo"), "one");
        assert_eq!(line("a\tb\u{1b}[31m", 100), "a b [31m");
        assert_eq!(message(&"ä".repeat(1_000)).len(), MAX_MESSAGE);
    }
}
