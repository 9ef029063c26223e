//! Rust source as words and punctuation, without comments, strings and test code. Enough to see which paths a file names; a
//! search for text would also find what comments and messages talk about.

/// One token and the line it is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token<'a> {
    /// A word (identifier, keyword, number) or one character.
    pub(super) text: &'a str,
    /// Counted from 1.
    pub(super) line: usize,
}

/// The tokens of a file, without items under `#[cfg(test)]`.
pub(super) fn tokens(source: &str) -> Vec<Token<'_>> {
    without_tests(&Lexer { rest: source, line: 1 }.collect::<Vec<_>>())
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Lexer<'a> {
    /// Consumes `length` bytes, which end at a character's border; a length beyond the end consumes all.
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    /// Up to and including the first `end` after `from` bytes.
    fn take_past(&mut self, from: usize, end: &str) {
        let tail = self.rest.get(from..).unwrap_or_default();
        let length = tail.find(end).map_or(self.rest.len(), |at| from + at + end.len());
        self.take(length);
    }

    fn block_comment(&mut self) {
        let mut depth = 0_usize;
        loop {
            if self.rest.starts_with("/*") {
                depth += 1;
                self.take(2);
            } else if self.rest.starts_with("*/") {
                depth -= 1;
                self.take(2);
            } else {
                let Some(next) = self.rest.chars().next() else { return };
                self.take(next.len_utf8());
            }
            if depth == 0 {
                return;
            }
        }
    }

    /// From the opening quote on.
    fn string(&mut self, quote: char) {
        let mut escaped = false;
        let mut length = quote.len_utf8();
        for next in self.rest.chars().skip(1) {
            length += next.len_utf8();
            if escaped {
                escaped = false;
            } else if next == '\\' {
                escaped = true;
            } else if next == quote {
                break;
            }
        }
        self.take(length);
    }

    /// `r"…"`, `br#"…"#`, `b"…"`, `c"…"`, `b'x'`. Whether there was one.
    fn prefixed_literal(&mut self) -> bool {
        let prefix = ["br", "cr", "r", "b", "c"].into_iter().find(|prefix| {
            let after = self.rest.strip_prefix(prefix).unwrap_or_default();
            let hashes = if prefix.ends_with('r') { after.trim_start_matches('#') } else { after };
            hashes.starts_with('"') || (*prefix == "b" && after.starts_with('\''))
        });
        let Some(prefix) = prefix else { return false };
        self.take(prefix.len());
        if prefix.ends_with('r') {
            let hashes = self.rest.len() - self.rest.trim_start_matches('#').len();
            self.take_past(hashes + 1, &format!("\"{}", "#".repeat(hashes)));
        } else {
            self.string(if self.rest.starts_with('\'') { '\'' } else { '"' });
        }
        true
    }

    /// `'x'` and `'\n'` are characters; `'a` is a lifetime, of which the quote alone is dropped.
    fn quote(&mut self) {
        let mut after = self.rest.chars().skip(1);
        let is_character = after.next() == Some('\\') || after.next() == Some('\'');
        if is_character {
            self.string('\'');
        } else {
            self.take(1);
        }
    }
}

impl<'a> Iterator for Lexer<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let next = self.rest.chars().next()?;
            if next.is_whitespace() {
                self.take(next.len_utf8());
            } else if self.rest.starts_with("//") {
                self.take_past(0, "\n");
            } else if self.rest.starts_with("/*") {
                self.block_comment();
            } else if next == '"' {
                self.string('"');
            } else if next == '\'' {
                self.quote();
            } else if !self.prefixed_literal() {
                let word = self.rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(self.rest.len());
                let line = self.line;
                return Some(Token { text: self.take(word.max(if word == 0 { next.len_utf8() } else { word })), line });
            }
        }
    }
}

/// Drops each item that follows `#[cfg(test)]`: up to its `;` or the end of its braces.
fn without_tests<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::with_capacity(tokens.len());
    let mut rest = tokens;
    while let Some((first, tail)) = rest.split_first() {
        if rest.len() >= MARK.len() && rest.iter().zip(MARK).all(|(token, mark)| token.text == mark) {
            rest = rest.get(MARK.len() + item_length(rest.get(MARK.len()..).unwrap_or_default())..).unwrap_or_default();
        } else {
            kept.push(*first);
            rest = tail;
        }
    }
    kept
}

/// How many tokens the item at the start has.
fn item_length(tokens: &[Token<'_>]) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => {
                depth = depth.saturating_sub(1);
                if depth == 0 && token.text == "}" {
                    return at + 1;
                }
            }
            ";" if depth == 0 => return at + 1,
            _ => {}
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(source: &str) -> Vec<&str> {
        tokens(source).iter().map(|token| token.text).collect()
    }

    #[test]
    fn comments_strings_and_characters_are_no_code() {
        let source = "a // std::fs\n/* x /* std::fs */ y */ b \"std::fs \\\" c\" r#\"std::fs \" d\"# b\"x\" 'q' '\\'' b'\\n' e";
        assert_eq!(words(source), ["a", "b", "e"]);
    }

    #[test]
    fn lifetimes_and_raw_names_are_code() {
        assert_eq!(words("fn f<'a>(x: &'a r#type)"), ["fn", "f", "<", "a", ">", "(", "x", ":", "&", "a", "r", "#", "type", ")"]);
    }

    #[test]
    fn test_code_is_dropped_and_what_follows_is_kept() {
        assert_eq!(
            words("a; #[cfg(test)] mod tests { fn x() { y } } b; #[cfg(test)] mod t; #[cfg(test)] fn z(a: [u8; 2]) -> u8 { 1 } c"),
            ["a", ";", "b", ";", "c"]
        );
    }

    #[test]
    fn lines_are_counted_across_everything() {
        let found = tokens("/* \n */ \"\n\" r\"\n\"\nx // \n y");
        assert_eq!(found.iter().map(|token| (token.text, token.line)).collect::<Vec<_>>(), [("x", 5), ("y", 6)]);
    }

    #[test]
    fn cut_off_source_ends() {
        for source in ["\"", "/*", "r#\"", "'", "b'", "#[cfg(test)]", "#[cfg(test)] mod {"] {
            tokens(source);
        }
    }
}
