//! What came of many cases, for people and for machines.

mod json;
mod junit;
mod tap;
mod text;

use crate::run::{Miss, Totals};

pub use self::text::Verbosity;

/// Formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text(Verbosity),
    /// One JSON document.
    Json,
    /// JUnit's XML, as CI systems read it: a suite per file; what could not be judged is an error, what is wrong a failure.
    Junit,
    /// TAP 14, with YAML diagnostics.
    Tap,
}

/// Writes totals.
#[must_use]
pub fn write(totals: &Totals, format: Format) -> String {
    match format {
        Format::Text(verbosity) => text::write(totals, verbosity),
        Format::Json => json::write(totals),
        Format::Junit => junit::write(totals),
        Format::Tap => tap::write(totals),
    }
}

/// A miss, with its step.
fn line(miss: &Miss) -> String {
    miss.step.map_or_else(|| miss.message.clone(), |step| format!("step {step}: {}", miss.message))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        run::{Ran, Status},
        suite::Origin,
    };

    fn ran(case: &str, status: Status, misses: &[&str]) -> Ran {
        Ran {
            origin: Origin { suite: "s/a.test.yaml".into(), case: case.into() },
            status,
            misses: misses.iter().map(|message| Miss { step: None, message: (*message).into() }).collect(),
            time: Duration::from_millis(12),
            calls: 3,
            longest: Duration::from_micros(40),
            memory: 1 << 20,
            written: Vec::new(),
            except: Vec::new(),
        }
    }

    fn totals() -> Totals {
        let hostile = "it says <\"&'>\nand \u{1b}[2J ]]> \u{1}";
        let all = vec![
            ran("good", Status::Passed, &[]),
            ran("b <a>", Status::Failed, &["x: expected 1, found 2", hostile]),
            ran("c", Status::Error, &["no file"]),
        ];
        Totals { ran: all, left: 2, time: Duration::from_millis(1_500) }
    }

    #[test]
    fn text_says_what_differs_and_counts() {
        let text = write(&totals(), Format::Text(Verbosity::Failures));
        assert!(text.contains("FAIL  s/a.test.yaml: b <a>\n      x: expected 1, found 2\n"), "{text}");
        assert!(text.contains("ERROR s/a.test.yaml: c\n      no file\n"), "{text}");
        assert!(text.contains("1 passed, 1 failed, 1 could not be judged, 2 not begun") && !text.contains("good"), "{text}");
        assert!(!text.contains('\u{1b}'), "a terminal is not driven by a policy");
        assert!(write(&totals(), Format::Text(Verbosity::All)).contains("ok    s/a.test.yaml: good"));
    }

    #[test]
    fn junit_is_well_formed_and_tells_failures_from_errors() {
        let xml = write(&totals(), Format::Junit);
        assert!(xml.contains("tests=\"3\" failures=\"1\" errors=\"1\""), "{xml}");
        assert!(xml.contains("name=\"b &lt;a&gt;\"") && xml.contains("<error message=\"no file\">"), "{xml}");
        assert!(xml.contains("it says &lt;&quot;&amp;&apos;&gt;") && !xml.contains('\u{1b}') && !xml.contains('\u{1}'), "{xml}");
        for tag in ["testsuites", "testsuite", "testcase", "failure", "error"] {
            let (open, close) = (xml.matches(&format!("<{tag} ")).count(), xml.matches(&format!("</{tag}>")).count());
            assert_eq!(open, close, "{tag}: {xml}");
        }
    }

    #[test]
    fn tap_counts_every_case_and_ends_its_diagnostics() {
        let tap = write(&totals(), Format::Tap);
        let lines: Vec<&str> = tap.lines().collect();
        assert_eq!(&lines[..3], ["TAP version 14", "1..3", "ok 1 - s/a.test.yaml: good"]);
        assert_eq!(tap.matches("\n  ---\n").count(), tap.matches("\n  ...\n").count());
        assert!(lines.contains(&"not ok 2 - s/a.test.yaml: b <a>") && tap.lines().all(|line| !line.contains('\u{1b}')), "{tap}");
        let body: Vec<&str> = lines
            .iter()
            .skip_while(|line| **line != "  ---")
            .skip(1)
            .take_while(|line| **line != "  ...")
            .map(|line| line.trim_start_matches("  "))
            .collect();
        let yaml: serde_json::Value = serde_saphyr::from_str(&body.join("\n")).unwrap();
        assert_eq!(yaml["severity"], "fail");
    }

    #[test]
    fn json_fits_its_published_schema() {
        let schema: serde_json::Value = serde_json::from_str(include_str!("../../../../docs/schema/policytest-report-v1.json")).unwrap();
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        let mut report: serde_json::Value = serde_json::from_str(&write(&totals(), Format::Json)).unwrap();
        let wrong: Vec<String> = validator.iter_errors(&report).map(|error| error.to_string()).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
        report["cases"][0]["status"] = "failed".into();
        assert!(!validator.is_valid(&report), "a failure without a word is none");
        report["cases"][0].as_object_mut().unwrap().remove("id");
        assert!(!validator.is_valid(&report));
    }

    #[test]
    fn json_has_a_version_and_stable_names() {
        let value: serde_json::Value = serde_json::from_str(&write(&totals(), Format::Json)).unwrap();
        assert_eq!(
            (&value["schemaVersion"], &value["passed"], &value["failed"], &value["errors"]),
            (&1.into(), &1.into(), &1.into(), &1.into())
        );
        assert_eq!(value["cases"][1]["id"], "s/a.test.yaml: b <a>");
        assert_eq!(value["cases"][0]["peakMemoryBytes"], 1 << 20);
    }
}
