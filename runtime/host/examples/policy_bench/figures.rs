//! Times as figures, for people and for machines.

use std::time::{Duration, Instant};

use serde_json::json;

/// What the pool may cost over a bare call, percent of the middle call.
const AIM_PERCENT: f64 = 15.0;

/// One way to decide.
pub(crate) struct Figure {
    what: &'static str,
    calls: usize,
    per_second: f64,
    p50: Duration,
    p99: Duration,
}

/// Each call's time; a tenth as many go before, to warm up.
pub(crate) fn timed(calls: usize, mut once: impl FnMut()) -> Vec<Duration> {
    (0..calls / 10).for_each(|_| once());
    let mut one = || {
        let began = Instant::now();
        once();
        began.elapsed()
    };
    (0..calls).map(|_| one()).collect()
}

impl Figure {
    /// One after the other: calls per second are those of one caller.
    pub(crate) fn of(what: &'static str, mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let total: Duration = times.iter().sum();
        let calls = times.len();
        Self { what, calls, per_second: calls as f64 / total.as_secs_f64(), p50: times[calls / 2], p99: times[calls * 99 / 100] }
    }
}

/// All of one run. The last two figures are the bare call and the pooled one.
pub(crate) struct Report {
    figures: Vec<Figure>,
    overhead: f64,
}

impl Report {
    pub(crate) fn new(figures: Vec<Figure>) -> Self {
        let [.., bare, pooled] = figures.as_slice() else { panic!("two calls to compare") };
        let overhead = (pooled.p50.as_secs_f64() / bare.p50.as_secs_f64() - 1.0) * 100.0;
        Self { figures, overhead }
    }

    pub(crate) fn text(&self) -> String {
        let mut lines = vec![format!("{:<34} {:>12} {:>12} {:>12}", "one konnect-env decision", "calls/s", "p50", "p99")];
        for figure in &self.figures {
            let (p50, p99) = (micros(figure.p50), micros(figure.p99));
            lines.push(format!("{:<34} {:>12.0} {:>9.1} µs {:>9.1} µs", figure.what, figure.per_second, p50, p99));
        }
        lines.push(format!("the pool over the bare call, p50: {:+.1} % (aim: at most {AIM_PERCENT} %)", self.overhead));
        lines.join("\n")
    }

    pub(crate) fn json(&self) -> String {
        let figure = |figure: &Figure| {
            json!({
                "what": figure.what, "calls": figure.calls, "callsPerSecond": figure.per_second,
                "p50Micros": micros(figure.p50), "p99Micros": micros(figure.p99),
            })
        };
        let figures: Vec<_> = self.figures.iter().map(figure).collect();
        let pool = json!({"overheadPercent": self.overhead, "aimPercent": AIM_PERCENT});
        json!({"schemaVersion": 1, "release": !cfg!(debug_assertions), "figures": figures, "pool": pool}).to_string()
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
