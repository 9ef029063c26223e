//! Times and sizes as words.

use std::time::Duration;

use weir_api::reconcile_policy::ReconcilePolicy;

use super::{Cost, DEFAULT_RESYNC, MIN_RESYNC};
use crate::policy::{Finding, Severity, limits};

pub(super) fn cost(policy: &ReconcilePolicy) -> Cost {
    let limits = policy.spec.limits.as_ref();
    read_cost(limits.and_then(|l| l.timeout.as_deref()), limits.and_then(|l| l.memory.as_deref()))
}

/// What the schema's pattern lets in. A value that got past it is as if nothing had been said.
pub(super) fn read_cost(timeout: Option<&str>, memory: Option<&str>) -> Cost {
    let default = Cost::default();
    let timeout = timeout.and_then(|text| match text.strip_suffix("ms") {
        Some(number) => number.parse().ok().map(Duration::from_millis),
        None => text.strip_suffix('s').and_then(|number| number.parse().ok()).map(Duration::from_secs),
    });
    let memory = memory.and_then(|text| text.strip_suffix("Mi")?.parse::<usize>().ok()).map(|mi| mi << 20);
    Cost {
        timeout: timeout.filter(|t| (Duration::from_millis(1)..=Duration::from_secs(10)).contains(t)).unwrap_or(default.timeout),
        memory: memory.filter(|bytes| (1 << 20..=64 << 20).contains(bytes)).unwrap_or(default.memory),
    }
}

pub(super) fn resync(policy: &ReconcilePolicy, findings: &mut Vec<Finding>) -> Option<Duration> {
    let oci = policy.spec.source.oci.as_ref()?;
    if oci.image.contains('@') {
        return None;
    }
    let Some(text) = policy.spec.rollout.as_ref().and_then(|rollout| rollout.resync.as_deref()) else { return Some(DEFAULT_RESYNC) };
    let parsed = duration(text);
    let wanted = parsed.unwrap_or(DEFAULT_RESYNC);
    if parsed.is_none() || (!wanted.is_zero() && wanted < MIN_RESYNC) {
        findings.push(Finding {
            severity: Severity::Warning,
            code: "InvalidResync".into(),
            path: "spec.rollout.resync".into(),
            message: format!(
                "{:?} is no duration of at least {} s: the tag is looked up every {} s",
                limits::cut(text),
                MIN_RESYNC.as_secs(),
                wanted.max(MIN_RESYNC).as_secs()
            ),
        });
    }
    (!wanted.is_zero()).then(|| wanted.max(MIN_RESYNC))
}

/// Whole hours, minutes and seconds, in this order.
fn duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let (mut rest, mut total, mut any) = (text, 0_u64, false);
    for (unit, seconds) in [('h', 3_600), ('m', 60), ('s', 1)] {
        if let Some((number, after)) = rest.split_once(unit) {
            let digits = Some(number).filter(|number| number.bytes().all(|b| b.is_ascii_digit()))?;
            total = total.checked_add(digits.parse::<u64>().ok()?.checked_mul(seconds)?)?;
            (rest, any) = (after, true);
        }
    }
    (any && rest.is_empty()).then(|| Duration::from_secs(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_hours_minutes_and_seconds() {
        for (text, seconds) in [("0", 0), ("0s", 0), ("10s", 10), ("90s", 90), ("1h30m", 5_400), ("2m5s", 125), ("1h0m1s", 3_601)] {
            assert_eq!(duration(text), Some(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "10", "s", "5s3m", "-1s", "+1s", "1d", "99999999999999999999s"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }
}
