//! Times as images write them.

use anyhow::{Context, Result};

/// Seconds since 1970 in the form of RFC 3339.
///
/// # Errors
/// A number that is no time.
pub fn rfc3339(seconds: u64) -> Result<String> {
    let days = i64::try_from(seconds / 86_400).context("SOURCE_DATE_EPOCH is no time")?;
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    // Days to a date of the Gregorian calendar, in cycles of 400 years that begin with March.
    let shifted = days + 719_468;
    let (cycle, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let date = of_year - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    let year = year + cycle * 400 + i64::from(month <= 2);
    Ok(format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}Z"))
}
