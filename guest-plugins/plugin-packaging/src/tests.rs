//! What becomes of artifacts, and which are refused.

use weir_policy_sdk::{parse_settings, plugin_packaging::File, sample};

use super::*;

mod layouts;
mod refusals;
mod settings;

/// Any text that states both constants.
const STATED: &str = "return { VERSION = \"1.2.3\", PRIORITY = 1000 }";

fn files(paths: &[&str]) -> Vec<File> {
    paths.iter().map(|path| sample::file(path, STATED)).collect()
}

fn input(paths: &[&str]) -> Input {
    sample::plugin_packaging(files(paths))
}

fn with(document: &str) -> Settings {
    parse_settings::<DefaultPolicy>(document).unwrap().0
}

fn defaults(input: &Input) -> Answer {
    evaluate(input, &Settings::default()).unwrap()
}

fn refused(input: &Input, document: &str) -> Refusal {
    evaluate(input, &with(document)).unwrap_err()
}

fn named(input: Input, name: &str) -> Input {
    let mut input = input;
    input.context.object.annotations.push((NAME_ANNOTATION.into(), name.into()));
    input
}

/// Name and targets of each plugin.
fn shape(answer: &Answer) -> Vec<(&str, Vec<&str>)> {
    answer.plugins.iter().map(|p| (p.name.as_str(), p.placements.iter().map(|p| p.target.as_str()).collect())).collect()
}

fn codes(answer: &Answer) -> Vec<(Severity, &str)> {
    answer.findings.iter().map(|f| (f.severity.clone(), f.code.as_str())).collect()
}
