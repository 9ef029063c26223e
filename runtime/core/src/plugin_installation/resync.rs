//! Annotation `weir.dev/resync`: how often a tag is looked up again. Off unless it is there (semantics "Publishing is enough").

use std::time::Duration;

use weir_api::{keys, plugin_installation::KongPluginInstallation};

use crate::policy::{Finding, Severity, limits};

/// A registry is not asked more often.
pub const MIN: Duration = Duration::from_secs(10);

/// How often the tag is looked up again; none is never. What cannot be read counts as never, and the pass says so.
#[must_use]
pub fn resync(installation: &KongPluginInstallation) -> Option<Duration> {
    super::annotation(installation, keys::RESYNC).and_then(|text| parse(text).unwrap_or_default())
}

/// What is wrong with the annotation.
pub(super) fn finding(installation: &KongPluginInstallation) -> Option<Finding> {
    let text = super::annotation(installation, keys::RESYNC)?;
    parse(text).err().map(|problem| Finding {
        severity: Severity::Warning,
        code: "InvalidResync".into(),
        path: format!("metadata.annotations[{}]", keys::RESYNC),
        message: format!(
            "{:?} {problem}, so the tag is never looked up again: write hours, minutes and seconds, for example 10m or 1h30m, of at least {} s, or 0s for never",
            limits::cut(text),
            MIN.as_secs()
        ),
    })
}

/// Durations as Go writes them, of whole hours, minutes and seconds. Zero is never.
fn parse(text: &str) -> Result<Option<Duration>, &'static str> {
    const BAD: &str = "is no duration";
    if text == "0" {
        return Ok(None);
    }
    let (mut total, mut number) = (0_u64, None::<u64>);
    for c in text.chars() {
        if let Some(digit) = c.to_digit(10) {
            let shifted = number.unwrap_or(0).checked_mul(10).and_then(|n| n.checked_add(u64::from(digit)));
            number = Some(shifted.ok_or("is too long")?);
            continue;
        }
        let unit = match c {
            'h' => 3600,
            'm' => 60,
            's' => 1,
            _ => return Err(BAD),
        };
        let part = number.take().ok_or(BAD)?.checked_mul(unit);
        total = part.and_then(|part| total.checked_add(part)).ok_or("is too long")?;
    }
    let duration = Duration::from_secs(total);
    match (text.is_empty() || number.is_some(), total) {
        (true, _) => Err(BAD),
        (false, 0) => Ok(None),
        (false, _) if duration < MIN => Err("is too short"),
        (false, _) => Ok(Some(duration)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        for (text, seconds) in [("10m", 600), ("1h30m", 5400), ("90s", 90), ("10s", 10), ("1h0m5s", 3605)] {
            assert_eq!(parse(text), Ok(Some(Duration::from_secs(seconds))), "{text}");
        }
        for never in ["0", "0s", "0h0m"] {
            assert_eq!(parse(never), Ok(None), "{never}");
        }
        for bad in ["", "10", "m", "10 m", "1d", "-5m", "5m3", "9s", "1.5h", "99999999999999999999s", "9999999999999999999h"] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
