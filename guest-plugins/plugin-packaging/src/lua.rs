//! Tokens of Lua, as far as reading a constant needs them. Not a parser: what is no Lua gives tokens all the same.

/// One token. Comments and white space are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// A name or a keyword.
    Name(&'a str),
    /// The content of a string without escapes.
    Text(&'a str),
    /// A string with escapes, which nobody needs here.
    Opaque,
    /// A number as written.
    Number(&'a str),
    /// Anything else.
    Symbol(&'a str),
}

/// Symbols of two characters that would mean something else as two: a comparison is no assignment.
const PAIRS: [&str; 2] = ["==", "::"];

/// All tokens of a text.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut scanner = Scanner { rest: text };
    std::iter::from_fn(|| scanner.token()).collect()
}

struct Scanner<'a> {
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    fn token(&mut self) -> Option<Token<'a>> {
        loop {
            self.rest = self.rest.trim_start();
            let Some(comment) = self.rest.strip_prefix("--") else { break };
            self.rest = comment;
            if self.long().is_none() {
                self.take_while(|c| c != '\n');
            }
        }
        let first = self.rest.chars().next()?;
        Some(match first {
            '"' | '\'' => self.quoted(first),
            '[' => self.long().map_or_else(|| self.symbol(first), Token::Text),
            'a'..='z' | 'A'..='Z' | '_' => Token::Name(self.take_while(|c| c.is_ascii_alphanumeric() || c == '_')),
            '0'..='9' => self.number(),
            _ => self.symbol(first),
        })
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    fn take_while(&mut self, take: impl Fn(char) -> bool) -> &'a str {
        self.take(self.rest.find(|c| !take(c)).unwrap_or(self.rest.len()))
    }

    fn symbol(&mut self, first: char) -> Token<'a> {
        let pair = PAIRS.iter().any(|pair| self.rest.starts_with(pair));
        Token::Symbol(self.take(if pair { 2 } else { first.len_utf8() }))
    }

    /// A sign belongs to a number only after its exponent.
    fn number(&mut self) -> Token<'a> {
        let exponent = if self.rest.starts_with("0x") || self.rest.starts_with("0X") { ['p', 'P'] } else { ['e', 'E'] };
        let mut before = ' ';
        let end = self.rest.find(|c: char| {
            let inside = c.is_ascii_alphanumeric() || c == '.' || (matches!(c, '+' | '-') && exponent.contains(&before));
            before = c;
            !inside
        });
        Token::Number(self.take(end.unwrap_or(self.rest.len())))
    }

    /// A string in quotes; it ends with its line if nothing else ends it.
    fn quoted(&mut self, quote: char) -> Token<'a> {
        self.take(quote.len_utf8());
        let mut escaped = false;
        let end = self.rest.find(|c: char| {
            let ends = !escaped && (c == quote || c == '\n');
            escaped = c == '\\' && !escaped;
            ends
        });
        let content = self.take(end.unwrap_or(self.rest.len()));
        self.take(quote.len_utf8());
        if content.contains('\\') { Token::Opaque } else { Token::Text(content) }
    }

    /// `[[…]]`, `[=[…]=]` and so on; none if there is no such bracket here.
    fn long(&mut self) -> Option<&'a str> {
        let inner = self.rest.strip_prefix('[')?;
        let equals = inner.bytes().take_while(|b| *b == b'=').count();
        let content = inner.get(equals..)?.strip_prefix('[')?;
        let close = format!("]{}]", "=".repeat(equals));
        let (content, rest) = content.split_once(close.as_str()).unwrap_or((content, ""));
        self.rest = rest;
        Some(content)
    }
}

#[cfg(test)]
mod tests {
    use super::{Token::*, *};

    #[test]
    fn comments_are_no_tokens() {
        assert_eq!(tokens("a -- b\nc --[[ d\n e ]] f --[==[ ]] ]=] \n]==] g --[ h\n--"), ["a", "c", "f", "g"].map(Name));
    }

    #[test]
    fn strings_have_no_tokens_in_them() {
        let expected = [Text("a -- b"), Text("c"), Opaque, Text("x ]] y"), Text("]=z")];
        assert_eq!(tokens(r#""a -- b" 'c' "d\" e" [=[x ]] y]=] [[]=z]]"#), expected);
        assert_eq!(tokens("\"open\nx"), [Text("open"), Name("x")]);
    }

    #[test]
    fn numbers_and_symbols_are_told_apart() {
        assert_eq!(tokens("1e-3-2"), [Number("1e-3"), Symbol("-"), Number("2")]);
        assert_eq!(tokens("0xEe-1"), [Number("0xEe"), Symbol("-"), Number("1")]);
        assert_eq!(tokens("a==b=c"), [Name("a"), Symbol("=="), Name("b"), Symbol("="), Name("c")]);
        assert_eq!(tokens("t[\"k\"]"), [Name("t"), Symbol("["), Text("k"), Symbol("]")]);
    }

    #[test]
    fn every_text_ends() {
        for text in ["", "[", "[=", "[[", "--[[", "\"", "'\\", "\u{e9}\u{1f600}", "0x", "[==[ ]=]"] {
            assert!(tokens(text).len() < 5, "{text}");
        }
    }
}
