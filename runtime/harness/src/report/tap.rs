//! TAP, version 14.

use serde_json::json;

use super::{line, text::shown};
use crate::run::{Ran, Status, Totals};

pub(super) fn write(totals: &Totals) -> String {
    let mut tap = format!("TAP version 14\n1..{}\n", totals.ran.len());
    for (index, ran) in totals.ran.iter().enumerate() {
        let ok = if ran.status == Status::Passed { "ok" } else { "not ok" };
        // `#` begins a directive.
        let name = shown(&ran.origin.to_string()).replace('\\', "\\\\").replace('#', "\\#").replace('\n', " ");
        tap.push_str(&format!("{ok} {} - {name}\n", index + 1));
        if ran.status != Status::Passed {
            diagnostics(&mut tap, ran);
        }
    }
    tap
}

/// A YAML block. JSON is YAML, and no text in it can end the block.
fn diagnostics(tap: &mut String, ran: &Ran) {
    let severity = if ran.status == Status::Failed { "fail" } else { "error" };
    tap.push_str("  ---\n");
    tap.push_str(&format!("  severity: {severity}\n"));
    let messages: Vec<String> = ran.misses.iter().map(|miss| shown(&line(miss))).collect();
    // One text: readers of TAP know scalars, and not every list.
    tap.push_str(&format!("  message: {}\n", json!(messages.join("\n"))));
    tap.push_str(&format!("  duration_ms: {:.3}\n", ran.time.as_secs_f64() * 1000.0));
    tap.push_str("  ...\n");
}
