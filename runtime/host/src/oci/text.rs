//! What strangers wrote, made fit for one line of a message.

/// Longest name of a file, host or type in a message, characters.
const NAME: usize = 120;
/// Longest text of a registry in a message, characters.
const SAID: usize = 240;

/// A name from outside: escaped, shortened.
pub(super) fn name(text: &str) -> String {
    cut(&text.escape_debug().to_string(), NAME)
}

/// A sentence from outside: one line, shortened, nothing that moves a cursor.
pub(super) fn said(text: &str) -> String {
    let visible: String = text.chars().map(|c| if hidden(c) { ' ' } else { c }).collect();
    cut(&visible.split_whitespace().collect::<Vec<_>>().join(" "), SAID)
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Control characters, and those that change the order or the width of what follows.
fn hidden(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Whether a file name holds characters that no honest file name has.
pub(super) fn odd(c: char) -> bool {
    hidden(c) || c == '\\'
}

/// Bytes as people read them.
pub(super) fn bytes(count: u64) -> String {
    const MIB: u64 = 1 << 20;
    match count {
        0..1024 => format!("{count} bytes"),
        n if n >= MIB && n % MIB == 0 => format!("{} MiB", n / MIB),
        n if n % 1024 == 0 => format!("{} KiB", n / 1024),
        n => format!("{n} bytes"),
    }
}
