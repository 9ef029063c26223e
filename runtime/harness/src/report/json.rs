//! One JSON document.

use serde_json::{Value, json};

use super::line;
use crate::run::{Ran, Status, Totals};

pub(super) fn write(totals: &Totals) -> String {
    let document = json!({
        "schemaVersion": 1,
        "passed": totals.count(Status::Passed),
        "failed": totals.count(Status::Failed),
        "errors": totals.count(Status::Error),
        "notBegun": totals.left,
        "durationMs": totals.time.as_secs_f64() * 1000.0,
        "cases": totals.ran.iter().map(case).collect::<Vec<_>>(),
    });
    format!("{document:#}\n")
}

fn case(ran: &Ran) -> Value {
    json!({
        "id": ran.origin.to_string(),
        "suite": ran.origin.suite.display().to_string(),
        "case": ran.origin.case,
        "status": match ran.status {
            Status::Passed => "passed",
            Status::Failed => "failed",
            Status::Error => "error",
        },
        "failures": ran.misses.iter().map(line).collect::<Vec<_>>(),
        "durationMs": ran.time.as_secs_f64() * 1000.0,
        "calls": ran.calls,
        "longestCallUs": u64::try_from(ran.longest.as_micros()).unwrap_or(u64::MAX),
        "peakMemoryBytes": ran.memory,
        "except": ran.except.iter().map(|(invariant, why)| json!({"invariant": format!("{invariant:?}"), "reason": why})).collect::<Vec<_>>(),
    })
}
