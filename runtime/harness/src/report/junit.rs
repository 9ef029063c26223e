//! JUnit's XML.

use super::line;
use crate::run::{Ran, Status, Totals};

pub(super) fn write(totals: &Totals) -> String {
    let mut suites: Vec<(String, Vec<&Ran>)> = Vec::new();
    for ran in &totals.ran {
        let name = ran.origin.suite.display().to_string();
        match suites.last_mut().filter(|(last, _)| *last == name) {
            Some((_, cases)) => cases.push(ran),
            None => suites.push((name, vec![ran])),
        }
    }
    let counts = |all: &[&Ran]| {
        let of = |status| all.iter().filter(|ran| ran.status == status).count();
        format!("tests=\"{}\" failures=\"{}\" errors=\"{}\"", all.len(), of(Status::Failed), of(Status::Error))
    };
    let all: Vec<&Ran> = totals.ran.iter().collect();
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    xml.push_str(&format!("<testsuites name=\"weir policy test\" {} time=\"{:.3}\">\n", counts(&all), totals.time.as_secs_f64()));
    for (name, cases) in &suites {
        let time: f64 = cases.iter().map(|ran| ran.time.as_secs_f64()).sum();
        xml.push_str(&format!("  <testsuite name=\"{}\" {} skipped=\"0\" time=\"{time:.3}\">\n", escaped(name), counts(cases)));
        cases.iter().for_each(|ran| case(&mut xml, name, ran));
        xml.push_str("  </testsuite>\n");
    }
    xml.push_str("</testsuites>\n");
    xml
}

fn case(xml: &mut String, suite: &str, ran: &Ran) {
    let name = if ran.origin.case.is_empty() { suite } else { &ran.origin.case };
    let head = format!("    <testcase classname=\"{}\" name=\"{}\" time=\"{:.6}\"", escaped(suite), escaped(name), ran.time.as_secs_f64());
    xml.push_str(&head);
    let tag = match ran.status {
        Status::Passed => {
            xml.push_str(" ></testcase>\n");
            return;
        }
        Status::Failed => "failure",
        Status::Error => "error",
    };
    let lines: Vec<String> = ran.misses.iter().map(line).collect();
    let first = lines.first().and_then(|first| first.lines().next()).unwrap_or_default();
    xml.push_str(&format!(">\n      <{tag} message=\"{}\">{}</{tag}>\n    </testcase>\n", escaped(first), escaped(&lines.join("\n"))));
}

/// XML 1.0 has no way to write most control characters.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            '\n' | '\t' => escaped.push(c),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
