//! RFC 3339 times, only to order them. Comparing the strings would put `…05.5Z` before `…05Z` and ignore offsets.

/// Seconds since the epoch and nanoseconds; none if `text` is no RFC 3339 time.
pub(crate) fn parse(text: &str) -> Option<(i64, u32)> {
    let (date, rest) = text.split_once(['T', 't', ' '])?;
    let mut date = date.splitn(3, '-').map(digits);
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);

    let zone_at = rest.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = rest.split_at_checked(zone_at)?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut clock = clock.splitn(3, ':').map(digits);
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 || year > 9999 {
        return None;
    }
    let seconds = days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset(zone)?;
    Some((seconds, nanos(fraction)?))
}

fn digits(text: &str) -> Option<i64> {
    let plain = !text.is_empty() && text.len() <= 4 && text.bytes().all(|b| b.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

/// `Z`, `+HH:MM` or `-HH:MM`, in seconds.
fn offset(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let (sign, rest) = match zone.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, zone.strip_prefix('+')?),
    };
    let (hours, minutes) = rest.split_once(':')?;
    Some(sign * (digits(hours)? * 3_600 + digits(minutes)? * 60))
}

/// The first nine digits of a fraction.
fn nanos(fraction: &str) -> Option<u32> {
    if fraction.is_empty() || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    fraction.chars().chain("000000000".chars()).take(9).collect::<String>().parse().ok()
}

/// Days between 1970-01-01 and a date of the proleptic Gregorian calendar. The year starts in March, so that the leap day is last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn times_become_instants() {
        assert_eq!(parse("1970-01-01T00:00:00Z"), Some((0, 0)));
        assert_eq!(parse("2000-02-29T12:00:00Z"), Some((951_825_600, 0)));
        assert_eq!(parse("2026-11-30T06:53:02Z"), Some((1_796_021_582, 0)));
        assert_eq!(parse("1970-01-01T01:30:00+01:30"), Some((0, 0)));
        assert_eq!(parse("1969-12-31T23:00:00-01:00"), Some((0, 0)));
        assert_eq!(parse("1970-01-01T00:00:00.25Z"), Some((0, 250_000_000)));
    }

    #[test]
    fn fractions_and_offsets_order_rightly() {
        assert!(parse("2026-01-01T00:00:00Z") < parse("2026-01-01T00:00:00.5Z"));
        assert!(parse("2026-01-01T01:00:00+02:00") < parse("2026-01-01T00:00:00Z"));
    }

    #[test]
    fn other_text_is_no_time() {
        for text in [
            "",
            "yesterday",
            "2026-01-01",
            "2026-13-01T00:00:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00Z",
            "é-é-éTé:é:éZ",
            "2026-01-01T00:00:00.Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
