//! Untrusted text in our own messages: one line, bounded.

/// At most 80 printable characters of `text`.
pub(super) fn cut(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(80).collect()
}

/// A chain of errors in one line of at most 300 characters, without backtraces. wasmtime's messages quote names that the
/// component's author chose, and its `Debug` form carries a frame per line.
pub(super) fn chain(error: &wasmtime::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    for cause in error.chain() {
        // A wasm backtrace is a context of several lines; its first line says nothing that the causes below do not.
        let text = cause.to_string();
        if text.starts_with("error while executing at") {
            continue;
        }
        let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        if parts.last().is_none_or(|last| *last != line) {
            parts.push(line);
        }
    }
    parts.join(": ").chars().take(300).collect()
}
