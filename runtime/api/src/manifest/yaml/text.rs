//! What happens to a text before it is parsed.

use std::borrow::Cow;

/// A part of a file that can be read, or fail, on its own.
pub(super) struct Chunk<'a> {
    pub(super) text: &'a str,
    /// Lines of the file before it.
    pub(super) lines_before: usize,
}

/// Splits at the lines that start documents, as kubectl does, so that a broken document does not hide the others.
/// `---` in the first column cannot be anything else in YAML: not in texts of any quoting, not in lists or maps.
pub(super) fn chunks(text: &str) -> Vec<Chunk<'_>> {
    let mut chunks = Vec::new();
    let (mut begin, mut begin_line, mut offset, mut line) = (0, 0, 0, 0);
    let mut directives = false;
    for piece in text.split_inclusive('\n') {
        let content = piece.trim_end();
        let marker = content.strip_prefix("---").is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']));
        // Directives belong to the document that starts after them.
        if marker && offset > begin && !directives {
            chunks.extend(text.get(begin..offset).map(|text| Chunk { text, lines_before: begin_line }));
            (begin, begin_line) = (offset, line);
        }
        if !content.is_empty() && !content.starts_with('#') {
            directives = content.starts_with('%');
        }
        offset += piece.len();
        line += breaks(piece);
    }
    chunks.extend(text.get(begin..).map(|text| Chunk { text, lines_before: begin_line }));
    chunks
}

/// Line breaks as the parser counts them: a lone carriage return is one.
fn breaks(piece: &str) -> usize {
    let returns = piece.matches('\r').count();
    let pairs = piece.matches("\r\n").count();
    piece.matches('\n').count() + returns - pairs
}

/// The line and column (from 1) of the first character YAML forbids. The parser takes NUL for the end of the text and
/// would silently drop the rest.
pub(super) fn forbidden(text: &str) -> Option<(usize, usize, char)> {
    let at = text.bytes().position(|byte| byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r'))?;
    let (before, after) = text.split_at_checked(at)?;
    let column = before.rsplit(['\n', '\r']).next().map_or(0, |line| line.chars().count());
    Some((breaks(before) + 1, column + 1, after.chars().next()?))
}

/// Replaces escaped surrogate pairs of JSON (`\ud83d\ude00`) by the character itself: YAML has no such escapes.
pub(super) fn join_surrogates(text: &str) -> Cow<'_, str> {
    let json = text.trim_start().starts_with(['{', '[']);
    if !json || !(text.contains("\\ud") || text.contains("\\uD")) {
        return Cow::Borrowed(text);
    }
    let mut joined = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, escape)) = rest.find('\\').and_then(|at| rest.split_at_checked(at)) {
        joined.push_str(before);
        if let Some(character) = surrogate_pair(escape) {
            joined.push(character);
            rest = escape.get(12..).unwrap_or_default();
        } else {
            // Two characters at once, or the second backslash of `\\` would start an escape.
            let end = escape.char_indices().nth(2).map_or(escape.len(), |(at, _)| at);
            let (pair, after) = escape.split_at_checked(end).unwrap_or((escape, ""));
            joined.push_str(pair);
            rest = after;
        }
    }
    joined.push_str(rest);
    Cow::Owned(joined)
}

fn surrogate_pair(escape: &str) -> Option<char> {
    let unit = |from: usize| {
        let digits = escape.get(from..from + 6)?.strip_prefix("\\u")?;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
    };
    char::decode_utf16([unit(0)?, unit(6)?]).next()?.ok().filter(|character| *character > '\u{ffff}')
}
