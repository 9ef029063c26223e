//! What a policy costs: compiling, loading compiled code, making an instance, a call, memory.

use std::time::{Duration, Instant};

use futures::executor::block_on;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use weir_core::policy::Slot;
use weir_host::wasm::{Config, Limits, Wasm, WasmSlot};

use crate::{
    ask::load_exit,
    exit::{Exit, Failure},
};

/// Calls before the first one that is measured.
const WARM: usize = 20;

/// Figures of one policy on one machine. Times are in microseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Figures {
    /// Size of the component, bytes.
    pub component_bytes: u64,
    /// From bytes to a policy that can be asked, without anything compiled before. Other policies of the process are no part of it.
    pub cold_load_us: u64,
    /// The same with its code compiled by an earlier process.
    pub cached_load_us: u64,
    /// An instance, the middle of all calls.
    pub instantiate_us: u64,
    /// A call with its instance, the middle of all.
    pub call_p50_us: u64,
    /// A call with its instance: 99 of 100 are as fast.
    pub call_p99_us: u64,
    /// Most linear memory of a call, bytes.
    pub memory_bytes: u64,
    /// Calls that were measured.
    pub samples: usize,
}

/// One figure by name, for limits and comparisons.
pub const NAMES: [&str; 7] = ["size", "cold", "cached", "instantiate", "p50", "p99", "memory"];

impl Figures {
    /// The figure of a name in [`NAMES`].
    #[must_use]
    pub fn named(&self, name: &str) -> Option<u64> {
        match name {
            "size" => Some(self.component_bytes),
            "cold" => Some(self.cold_load_us),
            "cached" => Some(self.cached_load_us),
            "instantiate" => Some(self.instantiate_us),
            "p50" => Some(self.call_p50_us),
            "p99" => Some(self.call_p99_us),
            "memory" => Some(self.memory_bytes),
            _ => None,
        }
    }
}

/// A figure that must not be passed: `p99>5ms`, `memory>4Mi`, `cold>50%` (of the baseline: half as much more).
#[derive(Debug, Clone, PartialEq)]
pub struct FailIf {
    name: &'static str,
    limit: Limit,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Limit {
    /// Microseconds or bytes.
    Value(u64),
    /// More than the baseline, in parts of a hundred.
    Percent(f64),
}

impl std::str::FromStr for FailIf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form =
            || format!("write FIGURE>LIMIT, such as p99>5ms, memory>4Mi or p50>20% of the baseline; figures are {}", NAMES.join(", "));
        let (name, limit) = text.split_once('>').ok_or_else(form)?;
        let name = NAMES.into_iter().find(|known| *known == name.trim()).ok_or_else(form)?;
        let limit = limit.trim();
        let bytes = matches!(name, "size" | "memory");
        let number = |suffix: &str| {
            limit.strip_suffix(suffix).and_then(|number| number.trim().parse::<f64>().ok()).filter(|n| *n >= 0.0 && n.is_finite())
        };
        let limit = if let Some(percent) = number("%") {
            Limit::Percent(percent)
        } else {
            let units: &[(&str, f64)] =
                if bytes { &[("Ki", 1024.0), ("Mi", 1_048_576.0)] } else { &[("us", 1.0), ("ms", 1e3), ("s", 1e6)] };
            let value = units.iter().find_map(|(unit, factor)| Some(number(unit)? * factor)).ok_or_else(form)?;
            // Rounded: a limit is no exact science.
            Limit::Value(value as u64)
        };
        Ok(Self { name, limit, text: text.to_owned() })
    }
}

impl FailIf {
    /// Why the figures are too much, if they are.
    ///
    /// # Errors
    /// A limit in percent without a baseline.
    pub fn judge(&self, figures: &Figures, baseline: Option<&Figures>) -> Result<Option<String>, Failure> {
        let found = figures.named(self.name).unwrap_or_default();
        let limit = match (self.limit, baseline.and_then(|baseline| baseline.named(self.name))) {
            (Limit::Value(limit), _) => limit as f64,
            (Limit::Percent(percent), Some(before)) => before as f64 * (1.0 + percent / 100.0),
            (Limit::Percent(_), None) => {
                return Err(Failure::usage(format!("--fail-if {:?}: percent of what? name a --baseline", self.text)));
            }
        };
        Ok((found as f64 > limit).then(|| format!("{} is {found}, over the limit {} of {:?}", self.name, limit as u64, self.text)))
    }
}

/// What is measured.
#[derive(Debug)]
pub struct Subject<'a> {
    /// The component.
    pub bytes: &'a [u8],
    /// Its settings.
    pub settings: &'a Value,
    /// What one call may use.
    pub limits: Limits,
    /// A question, as JSON has it.
    pub input: Value,
    /// How many calls.
    pub samples: usize,
    /// How the host is set up; its cache is a directory of the measurement's own.
    pub config: Config,
}

/// Measures.
///
/// # Errors
/// A policy that does not load, a question that is none, an answer that never comes.
pub fn measure<S>(subject: &Subject<'_>) -> Result<Figures, Failure>
where
    S: WasmSlot,
    S: Slot<Input: DeserializeOwned>,
{
    let input: S::Input = serde_path_to_error::deserialize(&subject.input).map_err(|error| Failure::usage(format!("--input: {error}")))?;
    let load = |host: &Wasm| {
        let since = Instant::now();
        let loaded = host.load::<S>(subject.bytes, "bench".to_owned(), subject.settings.clone(), subject.limits);
        let policy = loaded.map_err(|error| Failure { exit: load_exit(&error), message: error.to_string() })?;
        Ok::<_, Failure>((policy, since.elapsed()))
    };
    let internal = |error: weir_host::wasm::Error| Failure { exit: Exit::Internal, message: error.to_string() };
    let host = Wasm::new(subject.config.clone()).map_err(internal)?;
    let (policy, cold) = load(&host)?;
    // Nothing of the first one is left in the process: the second load finds its code on disk or nowhere.
    drop(policy);
    let (policy, cached) = load(&host)?;
    let (mut times, mut instances, mut memory) = (Vec::new(), Vec::new(), 0);
    for index in 0..subject.samples.saturating_add(WARM) {
        let (answer, usage) = block_on(policy.measured(&input));
        if let Some(error) = answer.err().filter(weir_core::policy::PolicyError::is_failure) {
            return Err(Failure { exit: weir_core::plan::Outcome::from(&error).into(), message: error.to_string() });
        }
        if index >= WARM {
            times.push(usage.time);
            instances.push(usage.instantiate);
            memory = memory.max(usage.memory);
        }
    }
    times.sort_unstable();
    instances.sort_unstable();
    Ok(Figures {
        component_bytes: subject.bytes.len() as u64,
        cold_load_us: micros(cold),
        cached_load_us: micros(cached),
        instantiate_us: micros(quantile(&instances, 50)),
        call_p50_us: micros(quantile(&times, 50)),
        call_p99_us: micros(quantile(&times, 99)),
        memory_bytes: memory as u64,
        samples: times.len(),
    })
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Of sorted times the one that so many of a hundred do not pass.
fn quantile(sorted: &[Duration], percent: usize) -> Duration {
    let place = sorted.len().saturating_mul(percent).div_ceil(100).saturating_sub(1);
    sorted.get(place).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(p99: u64) -> Figures {
        Figures {
            component_bytes: 1,
            cold_load_us: 1,
            cached_load_us: 1,
            instantiate_us: 1,
            call_p50_us: 1,
            call_p99_us: p99,
            memory_bytes: 3 << 20,
            samples: 1,
        }
    }

    #[test]
    fn limits_are_values_or_parts_of_a_baseline() {
        let judge =
            |text: &str, p99, baseline: Option<u64>| text.parse::<FailIf>().unwrap().judge(&figures(p99), baseline.map(figures).as_ref());
        assert!(judge("p99>5ms", 5_000, None).unwrap().is_none());
        assert!(judge("p99>5ms", 5_001, None).unwrap().unwrap().contains("p99 is 5001"));
        assert!(judge("memory>2Mi", 0, None).unwrap().is_some());
        assert!(judge("p99>20%", 120, Some(100)).unwrap().is_none());
        assert!(judge("p99>20%", 121, Some(100)).unwrap().is_some());
        assert_eq!(judge("p99>20%", 121, None).unwrap_err().exit, Exit::Usage);
        for bad in ["p99", "p98>1ms", "p99>fast", "memory>5ms", "p99>1Mi", "p99>-1ms"] {
            assert!(bad.parse::<FailIf>().is_err(), "{bad}");
        }
    }

    #[test]
    fn quantiles_are_of_the_sample() {
        let times: Vec<Duration> = (1..=200).map(Duration::from_micros).collect();
        assert_eq!((micros(quantile(&times, 50)), micros(quantile(&times, 99)), micros(quantile(&[], 50))), (100, 198, 0));
    }
}
