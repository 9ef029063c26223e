//! Version and priority, read from the text of `handler.lua`. They are for people: Kong reads them by running the file.

use crate::lua::{Token, tokens};

/// Longest version that the host takes, bytes.
const MAX_VERSION: usize = 64;

/// What a handler says about itself.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// `VERSION`, where it is a constant.
    pub(crate) version: Option<String>,
    /// `PRIORITY`, where it is a constant.
    pub(crate) priority: Option<i64>,
}

/// Reads `VERSION = "1.2.3"` and `PRIORITY = 1000`: variables, fields and entries of tables. The last assignment counts.
pub(crate) fn read(text: &str) -> Facts {
    let tokens = tokens(text);
    Facts { version: assigned(&tokens, "VERSION").and_then(version), priority: assigned(&tokens, "PRIORITY").and_then(priority) }
}

/// A literal, and whether a minus is before it.
type Literal<'a> = (bool, Token<'a>);

enum Value<'a> {
    /// One literal.
    Literal(Literal<'a>),
    /// The variable of the same name, which was assigned before.
    Itself,
    /// Something that only running the file can tell.
    Computed,
}

fn assigned<'a>(tokens: &[Token<'a>], key: &str) -> Option<Literal<'a>> {
    let mut found = None;
    let mut rest = tokens;
    while let Some((_, next)) = rest.split_first() {
        let after = match rest {
            [Token::Name(name), Token::Symbol("="), after @ ..] if *name == key => Some(after),
            [Token::Symbol("["), Token::Text(name), Token::Symbol("]"), Token::Symbol("="), after @ ..] if *name == key => Some(after),
            _ => None,
        };
        match after.map(|after| value(after, key)) {
            Some(Value::Literal(literal)) => found = Some(literal),
            Some(Value::Computed) => found = None,
            Some(Value::Itself) | None => {}
        }
        rest = next;
    }
    found
}

/// The expression at the beginning of `tokens`.
fn value<'a>(tokens: &[Token<'a>], key: &str) -> Value<'a> {
    let (negative, tokens) = match tokens {
        [Token::Symbol("-"), rest @ ..] => (true, rest),
        all => (false, all),
    };
    let Some((first, after)) = tokens.split_first() else { return Value::Computed };
    if !is_end(after.first()) {
        return Value::Computed;
    }
    match first {
        Token::Text(_) | Token::Number(_) => Value::Literal((negative, *first)),
        Token::Name(name) if *name == key && !negative => Value::Itself,
        Token::Name(_) | Token::Opaque | Token::Symbol(_) => Value::Computed,
    }
}

/// Whether an expression of one literal ends before this token.
fn is_end(next: Option<&Token<'_>>) -> bool {
    match next {
        None => true,
        Some(Token::Name(name)) => !["and", "or"].contains(name),
        Some(Token::Symbol(symbol)) => [",", ";", "}", "(", "::"].contains(symbol),
        Some(Token::Text(_) | Token::Opaque | Token::Number(_)) => false,
    }
}

fn version((negative, token): Literal<'_>) -> Option<String> {
    let Token::Text(text) = token else { return None };
    let good = !negative && !text.is_empty() && text.len() <= MAX_VERSION && !text.chars().any(char::is_control);
    good.then(|| text.to_owned())
}

/// Kong wants an integer, which Lua also writes as `1e3`, `1000.0` or `0x3e8`.
fn priority((negative, token): Literal<'_>) -> Option<i64> {
    let Token::Number(text) = token else { return None };
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let number = match hexadecimal {
        Some(digits) => i64::from(u32::from_str_radix(digits, 16).ok()?),
        None => decimal(text)?,
    };
    // The host takes what fits in 32 bits.
    i32::try_from(if negative { -number } else { number }).ok().map(i64::from)
}

fn decimal(text: &str) -> Option<i64> {
    let number: f64 = text.parse().ok()?;
    // Every integer of 32 bits is exact as a float; `as` saturates what is larger, and that does not fit anyway.
    (number.fract() == 0.0).then_some(number as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(text: &str) -> (Option<String>, Option<i64>) {
        let facts = read(text);
        (facts.version, facts.priority)
    }

    fn both(version: &str, priority: i64) -> (Option<String>, Option<i64>) {
        (Some(version.to_owned()), Some(priority))
    }

    #[test]
    fn constants_are_read_wherever_they_stand() {
        for text in [
            "VERSION = \"1.2.3\"\nPRIORITY = 1000",
            "local H = { PRIORITY = 1000, VERSION = '1.2.3', }\nfunction H:access() end\nreturn H",
            "local H = {}\nH.PRIORITY = 1000\nH.VERSION = [[1.2.3]]\nreturn H",
            "local H = { VERSION = \"1.2.3\"; PRIORITY = 1000 } return H",
            "local H = { [\"VERSION\"] = \"1.2.3\", ['PRIORITY'] = 1e3 }",
            "H[\"PRIORITY\"] = 0x3e8\nH.VERSION='1.2.3'return H",
            "local VERSION = \"1.2.3\"\nlocal PRIORITY = 1000.0\nreturn { VERSION = VERSION, PRIORITY = PRIORITY }",
            "H.VERSION --[[ x ]] = -- y\n \"1.2.3\" -- \"2\"\nH.PRIORITY=1000--1",
            "PRIORITY = 1 PRIORITY = 1000 VERSION = \"1.2.3\"",
        ] {
            assert_eq!(facts(text), both("1.2.3", 1000), "{text}");
        }
        assert_eq!(read("PRIORITY = -7").priority, Some(-7));
    }

    #[test]
    fn what_is_no_assignment_is_not_read() {
        for text in [
            "",
            "-- VERSION = \"1.2.3\"\n--[[ PRIORITY = 1000 ]]",
            "log(\"VERSION = '1' PRIORITY = 2\")",
            "log([[VERSION = '1' PRIORITY = 2]])",
            "if VERSION == \"1\" or PRIORITY == 3 then end",
            "MY_VERSION = '1' PRIORITY_X = 2",
            "VERSION, PRIORITY = f()",
        ] {
            assert_eq!(facts(text), (None, None), "{text}");
        }
    }

    #[test]
    fn what_is_computed_is_not_read() {
        for text in [
            "VERSION = meta.version PRIORITY = base + 1",
            "VERSION = \"1\" .. x; PRIORITY = 1000 + 5",
            "VERSION = \"1\"\nPRIORITY = 3\nVERSION = f()\nPRIORITY = PRIORITY - 1",
            "VERSION = \"1\\n\" PRIORITY = 1.5",
            "VERSION = 1.2 PRIORITY = \"3\"",
            "VERSION = '' PRIORITY = 4294967296",
            "VERSION = x and '1' PRIORITY = 1 or 2",
            "VERSION = PRIORITY = ",
        ] {
            assert_eq!(facts(text), (None, None), "{text}");
        }
        assert_eq!(read(&format!("VERSION = '{}'", "1".repeat(65))).version, None);
    }
}
