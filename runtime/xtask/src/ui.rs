//! What a task says. Progress goes to stderr, so that stdout stays the task's result; colour only on a terminal.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use similar::{ChangeTag, TextDiff};

const BOLD: &str = "1";
const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const CYAN: &str = "36";

/// One progress line: `xtask: guests: building …`.
pub(crate) fn progress(task: &str, text: &str) {
    say(&format!("{} {text}", paint(BOLD, &format!("xtask: {task}:"), stderr_colour())));
}

/// Something this machine lacks and that was therefore left out.
pub(crate) fn skipped(task: &str, text: &str) {
    say(&format!("{} {} {text}", paint(BOLD, &format!("xtask: {task}:"), stderr_colour()), paint(YELLOW, "skipped:", stderr_colour())));
}

/// The end of a task that failed: the whole chain of causes, one per line.
pub(crate) fn failure(error: &anyhow::Error) {
    say(&format!("{} {error}", paint(RED, "xtask: failed:", stderr_colour())));
    for cause in error.chain().skip(1) {
        say(&format!("  because: {cause}"));
    }
}

/// A heading of a narrated task, on stdout among the output it announces.
pub(crate) fn heading(text: &str) {
    print(&format!("\n{}\n", paint(BOLD, &format!("# {text}"), stdout_colour())));
}

/// Text on stdout. A closed pipe (`| head`) is the reader's choice, not an error.
pub(crate) fn print(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// A unified diff, coloured when `colour` is set.
pub(crate) fn diff(old: &str, new: &str, old_name: &str, new_name: &str, colour: bool) -> String {
    let mut out = format!("--- {old_name}\n+++ {new_name}\n");
    for hunk in TextDiff::from_lines(old, new).unified_diff().context_radius(3).iter_hunks() {
        out.push_str(&paint(CYAN, &hunk.header().to_string(), colour));
        out.push('\n');
        for change in hunk.iter_changes() {
            let line = change.to_string_lossy();
            let line = line.trim_end_matches(['\r', '\n']);
            let painted = match change.tag() {
                ChangeTag::Delete => paint(RED, &format!("-{line}"), colour),
                ChangeTag::Insert => paint(GREEN, &format!("+{line}"), colour),
                ChangeTag::Equal => format!(" {line}"),
            };
            out.push_str(&painted);
            out.push('\n');
        }
    }
    out
}

/// Whether stdout shows colour.
pub(crate) fn stdout_colour() -> bool {
    wants_colour() && std::io::stdout().is_terminal()
}

/// Whether stderr shows colour.
pub(crate) fn stderr_colour() -> bool {
    wants_colour() && std::io::stderr().is_terminal()
}

/// A duration as a person reads it.
pub(crate) fn time(took: Duration) -> String {
    if took < Duration::from_secs(1) { format!("{} ms", took.as_millis()) } else { format!("{:.1} s", took.as_secs_f64()) }
}

fn wants_colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn paint(code: &str, text: &str, colour: bool) -> String {
    if colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
}

fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_names_both_sides_and_marks_lines() {
        let text = diff("a\nb\n", "a\nc\n", "old", "new", false);
        assert_eq!(text, "--- old\n+++ new\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
    }

    #[test]
    fn a_missing_final_newline_does_not_glue_lines() {
        assert!(diff("a", "b", "old", "new", false).ends_with("-a\n+b\n"));
    }
}
