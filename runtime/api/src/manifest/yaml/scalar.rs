//! What an unquoted word means.
//!
//! kubectl decides: its YAML library follows the YAML 1.2 core schema, plus some of YAML 1.1. A word must mean the
//! same here, or a plan shows another object than the cluster would get.

use serde_json::{Number, Value};

/// A scalar and whether its text means something else in YAML 1.2 than it does to kubectl.
#[derive(Debug, PartialEq)]
pub(super) struct Scalar {
    pub(super) value: Value,
    pub(super) surprising: bool,
}

impl Scalar {
    fn plain(value: impl Into<Value>) -> Self {
        Self { value: value.into(), surprising: false }
    }
}

/// Reads a scalar without quotes and without a tag.
///
/// # Errors
/// What to do, for words no JSON value can stand for.
pub(super) fn plain(text: &str) -> Result<Scalar, String> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Scalar::plain(Value::Null),
        "true" | "True" | "TRUE" => Scalar::plain(true),
        "false" | "False" | "FALSE" => Scalar::plain(false),
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Scalar { value: Value::Bool(true), surprising: true },
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Scalar { value: Value::Bool(false), surprising: true },
        ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" | "-.inf" | "-.Inf" | "-.INF" => {
            return Err(format!("Kubernetes has no number `{text}`: quote it if a text is meant"));
        }
        _ => number(text).unwrap_or_else(|| Scalar::plain(text)),
    })
}

/// Reads a scalar with a tag of the core schema (`str`, `int`, `float`, `bool`, `null`).
///
/// # Errors
/// What to do, if the text is not of that type or the tag is another.
pub(super) fn tagged(tag: &str, text: &str) -> Result<Scalar, String> {
    if tag == "str" {
        return Ok(Scalar::plain(text));
    }
    if !matches!(tag, "int" | "float" | "bool" | "null") {
        // The tag is not repeated: an unquoted password that begins with `!` is one.
        return Err(
            "this tag is not read: quote the text if it begins with `!`, or use !!str, !!int, !!float, !!bool, !!null or no tag".into()
        );
    }
    let scalar = plain(text)?;
    let value = &scalar.value;
    let fits = match tag {
        "int" => value.is_i64() || value.is_u64(),
        "float" => value.is_number(),
        "bool" => value.is_boolean(),
        _ => value.is_null(),
    };
    if fits { Ok(scalar) } else { Err(format!("this is not a value of tag `!!{tag}`: remove the tag")) }
}

fn number(text: &str) -> Option<Scalar> {
    // Only words that start like numbers are numbers: `_1` is a text.
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return None;
    }
    let digits = text.replace('_', "");
    if let Some((value, octal)) = integer(&digits) {
        // `0644` is 420 to kubectl, as file modes are meant, and 644 in YAML 1.2.
        return Some(Scalar { value, surprising: octal || digits.len() != text.len() });
    }
    let unsigned = digits.strip_prefix(['+', '-']).unwrap_or(&digits);
    let shape = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && unsigned.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'));
    let float: f64 = if shape { digits.parse().ok()? } else { return None };
    // Kubernetes sees JSON, and Go writes a float without a fraction as an integer.
    let value = if float.fract() == 0.0 && float.abs() < 9.0e18 {
        #[allow(clippy::cast_possible_truncation, reason = "bounds and fraction are checked above")]
        Value::from(float as i64)
    } else {
        Value::Number(Number::from_f64(float)?)
    };
    Some(Scalar { value, surprising: digits.len() != text.len() })
}

/// An integer and whether its notation is one YAML 1.2 does not have.
fn integer(digits: &str) -> Option<(Value, bool)> {
    let (negative, unsigned) = match digits.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, digits.strip_prefix('+').unwrap_or(digits)),
    };
    let (radix, body, surprising) = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, unsigned.get(2..)?, false),
        [b'0', b'o' | b'O', ..] => (8, unsigned.get(2..)?, false),
        [b'0', b'b' | b'B', ..] => (2, unsigned.get(2..)?, true),
        [b'0', _, ..] => (8, unsigned.get(1..)?, true),
        _ => (10, unsigned, false),
    };
    if !body.starts_with(|c: char| c.is_ascii_hexdigit()) {
        return None;
    }
    let magnitude = u64::from_str_radix(body, radix).ok()?;
    let value = if negative { Value::from(0_i64.checked_sub_unsigned(magnitude)?) } else { Value::from(magnitude) };
    Some((value, surprising))
}
