//! Kubernetes resource quantities as exact, comparable numbers.
//!
//! `500m`, `0.5` and `5e-1` are three spellings of one amount; comparing the strings would see three. The value is kept in billionths,
//! the finest step the API server keeps, so nothing is ever rounded through a float.

use std::fmt;

/// Decimal places that are kept: the API server's own resolution.
const PLACES: i32 = 9;

/// An amount, exact to one billionth of a unit. Ordered by amount, not by spelling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity {
    nanos: i128,
}

impl Quantity {
    /// The amount in billionths of a unit.
    pub const fn nanos(self) -> i128 {
        self.nanos
    }

    /// Whether the amount is below zero, which no resource request or limit may be.
    pub const fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// Whether the amount is a whole number of units, which amounts of anything but CPU and memory have to be.
    pub const fn is_whole(self) -> bool {
        self.nanos % 1_000_000_000 == 0
    }
}

impl fmt::Display for Quantity {
    /// Plain decimal notation without a suffix: `0.5`, `1073741824`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let magnitude = self.nanos.unsigned_abs();
        let (units, rest) = (magnitude / 1_000_000_000, magnitude % 1_000_000_000);
        let sign = if self.is_negative() { "-" } else { "" };
        let fraction = format!("{rest:09}");
        match fraction.trim_end_matches('0') {
            "" => write!(f, "{sign}{units}"),
            fraction => write!(f, "{sign}{units}.{fraction}"),
        }
    }
}

/// What the text after the digits multiplies with.
#[derive(Clone, Copy)]
enum Suffix {
    Ten(i32),
    Two(u32),
}

/// Reads a quantity in any of the three notations (`1.5Gi`, `1500M`, `15e8`); `None` when the text is no quantity.
///
/// Amounts finer than one billionth are rounded away from zero, as the API server does. Amounts that do not fit 128 bits of
/// billionths (about 1.7e29 units) are `None` too: no resource comes near them.
pub fn parse(text: &str) -> Option<Quantity> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at_checked(end)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    // Zeros at the end of the fraction carry nothing and would only push the digits out of range.
    let fraction = fraction.trim_end_matches('0');
    let digits = digits(whole, fraction)?;
    let shift = i32::try_from(fraction.len()).ok()?;
    let magnitude = match self::suffix(suffix)? {
        Suffix::Ten(exponent) => scale(digits, exponent.checked_add(PLACES)?.checked_sub(shift)?)?,
        Suffix::Two(bits) => scale(digits.checked_mul(1_i128.checked_shl(bits)?)?, PLACES.checked_sub(shift)?)?,
    };
    Some(Quantity { nanos: if negative { -magnitude } else { magnitude } })
}

/// All digits as one number.
fn digits(whole: &str, fraction: &str) -> Option<i128> {
    whole.chars().chain(fraction.chars()).try_fold(0_i128, |sum, c| sum.checked_mul(10)?.checked_add(i128::from(c.to_digit(10)?)))
}

/// `digits * 10^exponent`, a remainder rounded up. `digits` is not negative.
fn scale(digits: i128, exponent: i32) -> Option<i128> {
    if digits == 0 {
        return Some(0);
    }
    let power = 10_i128.checked_pow(exponent.unsigned_abs());
    if exponent >= 0 {
        return digits.checked_mul(power?);
    }
    // A divisor out of range is larger than any digits: what is left is the smallest amount there is.
    let Some(divisor) = power else { return Some(1) };
    let rounded = i128::from(digits.checked_rem(divisor)? != 0);
    digits.checked_div(divisor)?.checked_add(rounded)
}

fn suffix(text: &str) -> Option<Suffix> {
    Some(match text {
        "n" => Suffix::Ten(-9),
        "u" => Suffix::Ten(-6),
        "m" => Suffix::Ten(-3),
        "" => Suffix::Ten(0),
        "k" => Suffix::Ten(3),
        "M" => Suffix::Ten(6),
        "G" => Suffix::Ten(9),
        "T" => Suffix::Ten(12),
        "P" => Suffix::Ten(15),
        "E" => Suffix::Ten(18),
        "Ki" => Suffix::Two(10),
        "Mi" => Suffix::Two(20),
        "Gi" => Suffix::Two(30),
        "Ti" => Suffix::Two(40),
        "Pi" => Suffix::Two(50),
        "Ei" => Suffix::Two(60),
        other => Suffix::Ten(other.strip_prefix(['e', 'E'])?.parse().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanos(text: &str) -> Option<i128> {
        parse(text).map(Quantity::nanos)
    }

    #[test]
    fn every_suffix() {
        let expected = [
            ("1n", 1),
            ("1u", 1_000),
            ("1m", 1_000_000),
            ("1", 1_000_000_000),
            ("1k", 1_000_000_000_000),
            ("1M", 1_000_000_000_000_000),
            ("1G", 1_000_000_000_000_000_000),
            ("1T", 10_i128.pow(21)),
            ("1P", 10_i128.pow(24)),
            ("1E", 10_i128.pow(27)),
            ("1Ki", 1_024 * 10_i128.pow(9)),
            ("1Mi", (1 << 20) * 10_i128.pow(9)),
            ("1Gi", (1 << 30) * 10_i128.pow(9)),
            ("1Ti", (1 << 40) * 10_i128.pow(9)),
            ("1Pi", (1 << 50) * 10_i128.pow(9)),
            ("1Ei", (1 << 60) * 10_i128.pow(9)),
        ];
        for (text, value) in expected {
            assert_eq!(nanos(text), Some(value), "{text}");
        }
    }

    #[test]
    fn spellings_of_one_amount() {
        for (left, right) in [
            ("500m", "0.5"),
            ("0.5", "5e-1"),
            ("0.5", ".5"),
            ("1", "1."),
            ("1", "+1"),
            ("1", "001.000"),
            ("1e3", "1E3"),
            ("1e3", "1e+3"),
            ("1k", "1000"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("-0", "0"),
            ("1.0000000000000000000000000000000000000000000000", "1"),
            ("0e99", "0"),
        ] {
            assert_eq!(parse(left), parse(right), "{left} {right}");
            assert!(parse(left).is_some(), "{left}");
        }
        assert!(parse("1G") < parse("1Gi") && parse("-1") < parse("0") && parse("100m") < parse("1"));
    }

    #[test]
    fn finer_than_a_billionth_rounds_away_from_zero() {
        assert_eq!(nanos("0.1n"), Some(1));
        assert_eq!(nanos("1.1n"), Some(2));
        assert_eq!(nanos("-0.1n"), Some(-1));
        assert_eq!(nanos("1e-2147483648"), Some(1));
        assert_eq!(nanos("0.0000000000000000000000000000000000000000000000001"), Some(1));
        assert_eq!(nanos("0.0001Ki"), Some(102_400_000));
    }

    #[test]
    fn no_quantity() {
        for text in [
            "",
            " ",
            "+",
            "-",
            ".",
            "m",
            "Mi",
            "1 ",
            " 1",
            "1mi",
            "1K",
            "1Kib",
            "1e",
            "1e1.5",
            "1.2.3",
            "--1",
            "+-1",
            "1MiB",
            "0x10",
            "1_000",
            "Inf",
            "NaN",
            "1ä",
            "١",
            "1e99999999999",
            "1e2147483647",
            "1e40",
            "999999999999999999999999999999999999999999",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn shown_in_plain_decimals() {
        for (text, shown) in [("500m", "0.5"), ("-1n", "-0.000000001"), ("1Ki", "1024"), ("0", "0")] {
            assert_eq!(parse(text).unwrap().to_string(), shown);
        }
        assert!(parse("2").unwrap().is_whole() && !parse("2m").unwrap().is_whole() && parse("-2").unwrap().is_negative());
    }
}
