//! Metrics that are read when somebody asks for them.

use std::{fmt, fs, sync::Arc};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};
use weir_core::{plan::Outcome, policy::SlotName};
use weir_host::layer::Counters;

/// Calls of policies.
#[derive(Debug)]
pub(super) struct Policies(pub(super) Arc<Counters>);

impl Collector for Policies {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let now = self.0.snapshot();
        let mut calls =
            encoder.encode_descriptor("weir_policy_calls", "Calls of policies, by slot and how they ended", None, MetricType::Counter)?;
        for slot in SlotName::ALL {
            for outcome in Outcome::ALL {
                let count = now.calls.get(&(slot, outcome)).copied().unwrap_or(0);
                ConstCounter::new(count).encode(calls.encode_family(&[("slot", slot.as_str()), ("outcome", outcome.as_str())])?)?;
            }
        }
        let mut seconds =
            encoder.encode_descriptor("weir_policy_call_seconds", "Time spent waiting for policies", None, MetricType::Counter)?;
        for slot in SlotName::ALL {
            let micros = now.micros.get(&slot).copied().unwrap_or(0);
            ConstCounter::new(std::time::Duration::from_micros(micros).as_secs_f64())
                .encode(seconds.encode_family(&[("slot", slot.as_str())])?)?;
        }
        Ok(())
    }
}

/// Memory and CPU time, under the names that every Prometheus client uses. What cannot be read is left out.
#[derive(Debug)]
pub(super) struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        if let Some(bytes) = fs::read_to_string("/proc/self/status").ok().as_deref().and_then(resident_bytes) {
            let metric = encoder.encode_descriptor("process_resident_memory_bytes", "Resident memory", None, MetricType::Gauge)?;
            ConstGauge::new(bytes).encode(metric)?;
        }
        if let Some(seconds) = fs::read_to_string("/proc/self/stat").ok().as_deref().and_then(cpu_seconds) {
            let metric = encoder.encode_descriptor("process_cpu_seconds", "User and system CPU time", None, MetricType::Counter)?;
            ConstCounter::new(seconds).encode(metric)?;
        }
        Ok(())
    }
}

/// From `/proc/self/status`, which counts in KiB: `statm` counts in pages, whose size differs between machines.
pub(super) fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1_024)
}

/// From `/proc/self/stat`. The second field is the program's name, which may contain anything: fields are counted after its end.
pub(super) fn cpu_seconds(stat: &str) -> Option<f64> {
    // The kernel shows times in ticks of a hundredth of a second to every program, whatever its own clock does.
    const TICKS: f64 = 100.0;
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    Some((f64::from(user) + f64::from(system)) / TICKS)
}
