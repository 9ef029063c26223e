//! What holds for every case without being asked for.

use std::collections::BTreeSet;

use serde_json::Value;
use weir_api::names;
use weir_core::plan::Outcome;

use crate::{
    exit::Failure,
    judge::label,
    pass::{Cluster, Kinds, Purpose, Report, Write},
    suite::{Ending, Expect},
};

/// Writes that a message names.
const NAMED: usize = 6;

/// Two runs of the same are equal.
pub(crate) fn deterministic(first: &Value, second: &Value) -> Vec<String> {
    if first == second {
        return Vec::new();
    }
    let differing = crate::compare::differences(first, second);
    let fields: Vec<String> = differing.iter().take(NAMED).map(|d| format!("{}: {} or {}", d.path, d.old_text(), d.new_text())).collect();
    vec![format!("deterministic: the same again gives something else: {}", fields.join("; "))]
}

/// Passes until nothing is written: what a pass puts out of use goes in the next one, and may put something else out of use.
const PASSES: usize = 5;

/// Further passes make nothing. They may say what they are the first to see, and take away what was put out of use; soon they write nothing.
pub(crate) fn settles(mut pass: impl FnMut() -> Result<Report, Failure>) -> Result<Vec<String>, Failure> {
    for number in 2..2 + PASSES {
        let report = pass()?;
        let made = written(number, report.writes.iter().filter(|write| write.purpose == Purpose::Makes));
        if report.writes.is_empty() || !made.is_empty() {
            return Ok(made);
        }
        if number == PASSES + 1 {
            return Ok(written(number, report.writes.iter()));
        }
    }
    Ok(Vec::new())
}

fn written<'a>(pass: usize, writes: impl Iterator<Item = &'a Write>) -> Vec<String> {
    let writes: Vec<&str> = writes.map(|write| write.what.as_str()).collect();
    if writes.is_empty() {
        return Vec::new();
    }
    let more = match writes.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named: Vec<&str> = writes.into_iter().take(NAMED).collect();
    vec![format!("settles: pass {pass} over the same writes again: {}{more}", named.join(", "))]
}

/// What is written can be written.
pub(crate) fn valid(report: &Report, cluster: &Cluster, kinds: &Kinds) -> Vec<String> {
    let mut misses = Vec::new();
    let text = |value: &Value, path: &str| value.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let places: BTreeSet<String> = report.statuses.iter().map(|status| text(status, "/metadata/namespace")).collect();
    let mut seen = BTreeSet::new();
    for object in &report.objects {
        let label = label(object);
        if !places.contains(&text(object, "/metadata/namespace")) {
            misses.push(format!("valid: {label} stands in a namespace of nobody's"));
        }
        if !names::is_dns_subdomain(&text(object, "/metadata/name")) {
            misses.push(format!("valid: {label} has no possible name"));
        }
        // Two DataPlanes that mount one content provide the same copies.
        if text(object, "/kind") != "ConfigMap" && !seen.insert(label.clone()) {
            misses.push(format!("valid: {label} is written twice"));
        }
    }
    let seen: BTreeSet<String> = report.statuses.iter().map(label).collect();
    for subject in cluster.subjects().filter(|subject| seen.contains(&label(subject))) {
        let Some(schema) = kinds.schemas().get(&text(subject, "/apiVersion"), &text(subject, "/kind")) else { continue };
        let mut subject = subject.clone();
        schema.default(&mut subject);
        for finding in schema.validate(&subject).into_iter().take(NAMED) {
            misses.push(format!("valid: {}: {}: {}", label(&subject), finding.field, finding.message));
        }
    }
    misses
}

/// No call runs out of anything, unless that is expected.
pub(crate) fn budget(expect: &Expect, outcomes: impl Iterator<Item = Outcome>) -> Vec<String> {
    let expected = matches!(expect.outcome, Some(Ending::Deadline | Ending::Memory)) || expect.exit == Some(4);
    let over = |outcome: &Outcome| matches!(outcome, Outcome::Deadline | Outcome::Memory);
    let first = outcomes.into_iter().find(over).filter(|_| !expected);
    first.map(|outcome| format!("budget: a call ended with {}", outcome.as_str())).into_iter().collect()
}
