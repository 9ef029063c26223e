//! `weir explain CODE`: what a word in a status, an event or a report means, and what to do about it.

mod catalogue;
mod operator;
mod remote;

use serde::Serialize;

use crate::exit::{Exit, Failure};

/// Shown after the flags.
pub const HELP: &str = "\
Codes are reasons of conditions and events, ends of policies, codes of findings and refusals of the default policies, and exit codes (`exit-4`).
A policy of somebody else's has codes of its own: its message says what they mean.

Examples:
  weir explain Deadline
  weir explain            prints all of them";

/// `weir explain`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The word. Without it all are printed.
    #[arg(value_name = "CODE")]
    code: Option<String>,
    /// One JSON document.
    #[arg(short, long, value_name = "FORMAT", value_parser = ["text", "json"], default_value = "text")]
    output: String,
}

/// One code.
#[derive(Debug, Clone, Copy, Serialize)]
struct Entry {
    code: &'static str,
    /// Where it is met.
    of: &'static str,
    means: &'static str,
    cure: &'static str,
}

/// All codes.
fn entries() -> impl Iterator<Item = &'static Entry> {
    catalogue::ENTRIES.iter().chain(remote::ENTRIES).chain(operator::ENTRIES)
}

/// Runs the command.
///
/// # Errors
/// A code that nobody knows ([`Exit::Usage`]).
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let found: Vec<&Entry> = match &args.code {
        None => entries().collect(),
        Some(code) => entries().filter(|entry| entry.code.eq_ignore_ascii_case(code)).collect(),
    };
    if let (Some(code), true) = (&args.code, found.is_empty()) {
        return Err(Failure::usage(unknown(code)).into());
    }
    let text = if args.output == "json" {
        serde_json::to_string_pretty(&found)?
    } else {
        found
            .iter()
            .map(|entry| format!("{} ({})\n  {}\n  {}\n", entry.code, entry.of, entry.means, entry.cure))
            .collect::<Vec<_>>()
            .join("\n")
    };
    crate::print(text.as_bytes())
}

fn unknown(code: &str) -> String {
    let lower = code.to_lowercase();
    let near = |entry: &&Entry| {
        let known = entry.code.to_lowercase();
        !lower.is_empty() && (known.contains(&lower) || lower.contains(&known))
    };
    let near: Vec<&str> = entries().filter(near).map(|entry| entry.code).take(5).collect();
    let hint = if near.is_empty() { "`weir explain` prints all".to_owned() } else { format!("near it are {}", near.join(", ")) };
    format!("no code {code:?} of Weir or its default policies; {hint}")
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, path::Path};

    use regex::Regex;
    use weir_core::{plan::Outcome, remote::reason::Reason};

    use super::*;

    fn known() -> BTreeSet<&'static str> {
        entries().map(|entry| entry.code).collect()
    }

    /// First groups of a pattern in the sources below a folder; tests of the sources aside.
    fn words(folder: &str, pattern: &str) -> BTreeSet<String> {
        fn walk(folder: &Path, pattern: &Regex, found: &mut BTreeSet<String>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                if path.is_dir() && !["tests", "target"].contains(&name.as_str()) {
                    walk(&path, pattern, found);
                } else if name.ends_with(".rs") && name != "tests.rs" {
                    let text = std::fs::read_to_string(&path).unwrap();
                    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
                    // Without comments.
                    let text: String = code.lines().map(|line| format!("{}\n", line.split("//").next().unwrap_or_default())).collect();
                    found.extend(pattern.captures_iter(&text).map(|c| c.get(1).unwrap().as_str().to_owned()));
                }
            }
        }
        let mut found = BTreeSet::new();
        walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder), &Regex::new(pattern).unwrap(), &mut found);
        assert!(!found.is_empty(), "{folder} has no {pattern}");
        found
    }

    #[test]
    fn every_end_of_a_policy_and_every_reason_is_explained() {
        let known = known();
        for outcome in Outcome::ALL.into_iter().filter(|outcome| *outcome != Outcome::Answered) {
            assert!(known.contains(outcome.as_str()), "{}", outcome.as_str());
        }
        let text = include_str!("../../../api/src/condition.rs");
        let (_, reasons) = text.split_once("pub mod reasons").unwrap();
        for word in Regex::new("= \"([A-Za-z]+)\"").unwrap().captures_iter(reasons) {
            assert!(known.contains(word.get(1).unwrap().as_str()), "{word:?}");
        }
        for reason in Reason::ALL {
            assert!(known.contains(reason.as_str()), "{reason:?}");
        }
    }

    #[test]
    fn every_code_of_the_core_and_of_the_default_policies_is_explained() {
        let known = known();
        let core = words("runtime/core/src", "code: \"([A-Z][A-Za-z]+)\"");
        let folders = ["konnect-env/src", "conflict-resolution/src", "plugin-packaging/src"];
        let mut all = core;
        for folder in folders {
            all.extend(words(
                &format!("guest-plugins/{folder}"),
                "(?:refuse\\(\\s*|Severity::[A-Za-z]+,\\s*|Some\\(\\()\"([A-Z][A-Za-z]+)\"",
            ));
        }
        let missing: Vec<&String> = all.iter().filter(|code| !known.contains(code.as_str())).collect();
        assert!(missing.is_empty(), "{missing:?} are not in the catalogue");
    }

    /// Words of the core in quotes that nobody meets as a reason or a code: kinds, values of fields, and words of others.
    const NO_REASONS: [&str; 46] = [
        "Always",
        "AlwaysAllow",
        "Answered",
        "Apply",
        "Automatic",
        "Certificate",
        "ClusterFirst",
        "ClusterIP",
        "ClusterIssuer",
        "ConfigMap",
        "ControlPlane",
        "ControlPlaneGroup",
        "DataPlane",
        "Deployment",
        "DoesNotExist",
        "Exists",
        "ExternalName",
        "False",
        "File",
        "HorizontalPodAutoscaler",
        "Hostname",
        "IfHealthyBudget",
        "IfNotPresent",
        "In",
        "Issuer",
        "KongPluginInstallation",
        "KonnectExtension",
        "LoadBalancer",
        "Manual",
        "Mi",
        "Never",
        "None",
        "NotIn",
        "PodDisruptionBudget",
        "PrivateIP",
        "PrivateLoadBalancer",
        "PromotionInProgress",
        "PublicLoadBalancer",
        "ReplicaFailure",
        "RolledOut",
        "RollingUpdate",
        "Secret",
        "Service",
        "True",
        "Update",
        "Written",
    ];

    #[test]
    fn every_word_of_the_core_is_a_reason_that_is_explained_or_none_at_all() {
        let known = known();
        let words = words("runtime/core/src", "\"([A-Z][a-z]+[A-Za-z]*)\"");
        let missing: Vec<&String> =
            words.iter().filter(|word| !known.contains(word.as_str()) && !NO_REASONS.contains(&word.as_str())).collect();
        assert!(missing.is_empty(), "{missing:?}: explain them, or say above that they are no reasons");
        let both: Vec<&&str> = NO_REASONS.iter().filter(|word| known.contains(*word)).collect();
        assert!(both.is_empty(), "{both:?} are explained");
    }

    #[test]
    fn every_reason_that_the_operator_sets_is_explained() {
        let known = known();
        let pattern =
            "(?:Event::(?:normal|warning)\\(\\s*|reason: |failed\\(\\s*|unverified\\(\\s*|PullOutcome::\\w+ => )\"([A-Z][a-z]+[A-Za-z]*)\"";
        let missing: Vec<String> =
            words("runtime/operator/src", pattern).into_iter().filter(|word| !known.contains(word.as_str())).collect();
        assert!(missing.is_empty(), "{missing:?} are not in the catalogue");
        let verified =
            words("runtime/operator/src/metrics", "Self::\\w+ => \"(Signed|[A-Z][a-z]*Sign[a-z]+|Malformed|NoTrustRoot|InvalidKey)\"");
        assert!(verified.iter().all(|word| known.contains(word.as_str())), "{verified:?}");
    }

    #[test]
    fn exit_codes_are_explained_and_no_code_twice() {
        let mut exits = vec![Exit::Done, Exit::Held, Exit::Usage, Exit::Trapped, Exit::Exhausted, Exit::Unavailable];
        exits.extend([Exit::Unverified, Exit::Incompatible, Exit::Internal, Exit::NoTests]);
        for exit in exits {
            assert!(known().contains(format!("exit-{}", exit.number()).as_str()), "{exit:?}");
        }
        let lower: BTreeSet<String> = entries().map(|entry| entry.code.to_lowercase()).collect();
        assert_eq!(lower.len(), entries().count());
        assert!(entries().all(|entry| !entry.means.is_empty() && !entry.cure.is_empty()));
    }

    #[test]
    fn an_unknown_code_leads_to_its_neighbours() {
        assert!(unknown("refuse").contains("Refused"), "{}", unknown("refuse"));
        assert!(unknown("Xyz").contains("prints all"));
    }
}
