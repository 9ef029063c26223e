//! Lines for people.

use super::line;
use crate::run::{Ran, Status, Totals};

/// Which cases are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbosity {
    /// Those that did not pass.
    Failures,
    /// All of them.
    All,
}

pub(super) fn write(totals: &Totals, verbosity: Verbosity) -> String {
    let mut text = String::new();
    for ran in &totals.ran {
        if ran.status != Status::Passed || verbosity == Verbosity::All {
            case(&mut text, ran, verbosity);
        }
        for path in &ran.written {
            text.push_str(&format!("wrote {}\n", path.display()));
        }
    }
    let mut parts = vec![format!("{} passed", totals.count(Status::Passed))];
    for (count, what) in
        [(totals.count(Status::Failed), "failed"), (totals.count(Status::Error), "could not be judged"), (totals.left, "not begun")]
    {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    text.push_str(&format!("{}, in {:.2} s\n", parts.join(", "), totals.time.as_secs_f64()));
    text
}

fn case(text: &mut String, ran: &Ran, verbosity: Verbosity) {
    let status = match ran.status {
        Status::Passed => "ok   ",
        Status::Failed => "FAIL ",
        Status::Error => "ERROR",
    };
    let cost = match verbosity {
        Verbosity::Failures => String::new(),
        Verbosity::All => format!(" ({} calls, longest {} µs, {} KiB)", ran.calls, ran.longest.as_micros(), ran.memory >> 10),
    };
    text.push_str(&format!("{status} {}{cost}\n", shown(&ran.origin.to_string())));
    for miss in &ran.misses {
        for line in shown(&line(miss)).lines() {
            text.push_str(&format!("      {line}\n"));
        }
    }
    for (invariant, why) in ran.except.iter().filter(|_| verbosity == Verbosity::All) {
        text.push_str(&format!("      {invariant:?} is not looked at: {}\n", shown(why)));
    }
}

/// Policies and manifests are strangers' words: they do not drive a terminal.
pub(super) fn shown(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c }).collect()
}
