//! Slot conflict-resolution: who wins when two parties claim one thing. Contract: `wit/conflict-resolution.wit`.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Context, Finding, Slot, SlotName, limits};

/// The slot.
#[derive(Debug, Clone, Copy)]
pub struct ConflictResolution;

/// What is claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SubjectKind {
    /// A variable of the proxy container.
    EnvVar,
    /// A plugin's name, by two installations.
    PluginName,
    /// The name of a plugin that Kong bundles.
    BundledPlugin,
    /// An installation, by several gateways.
    PluginInstallation,
    /// A volume of the pod.
    Volume,
    /// A mount path of the proxy container.
    VolumeMount,
}

/// Where a claim comes from, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The owner of the object.
    User,
    /// A policy's answer.
    Policy,
    /// Derived by the operator from the object.
    Generated,
    /// The operator's default.
    Default,
}

/// What a claim says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClaimValue {
    /// A literal value.
    Text(String),
    /// JSON of an EnvVarSource, Volume or VolumeMount.
    Object(String),
}

/// One party's claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// A field path, or `namespace/name`.
    pub who: String,
    /// RFC 3339, where known.
    pub since: Option<String>,
    /// Where it comes from.
    pub origin: Origin,
    /// What it says.
    pub value: ClaimValue,
}

/// Two or more claims on one thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    /// What is claimed.
    pub kind: SubjectKind,
    /// Its name.
    pub subject: String,
    /// At least two, strongest origin first; on an installation one of another namespace is enough.
    pub claims: Vec<Claim>,
}

/// The question: all conflicts of one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// Where and for whom.
    pub context: Context,
    /// The conflicts.
    pub conflicts: Vec<Conflict>,
}

/// How one conflict ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The claim of this index wins.
    Keep(u32),
    /// The claims of these indices stand side by side; only for an installation, which several gateways can use at once.
    KeepSome(Vec<u32>),
    /// A value made from all of them.
    Merge(String),
    /// Nobody wins; the owner has to change something.
    Reject(String),
    /// Wait.
    Hold(String),
}

/// The verdict on one conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolution {
    /// How it ends.
    pub verdict: Verdict,
    /// For people.
    pub findings: Vec<Finding>,
}

/// The answer: one resolution per conflict, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// One per conflict.
    pub resolutions: Vec<Resolution>,
}

impl Slot for ConflictResolution {
    const NAME: SlotName = SlotName::ConflictResolution;
    type Input = Input;
    type Answer = Answer;

    fn context(input: &Self::Input) -> &Context {
        &input.context
    }

    /// A resolution has the name of what it is about.
    fn document(input: &Input, answer: &Answer) -> Value {
        let named = |(conflict, resolution): (&Conflict, &Resolution)| {
            let kind = serde_json::to_value(conflict.kind).unwrap_or_default();
            let name = format!("{}/{}", kind.as_str().unwrap_or_default(), conflict.subject);
            json!({"name": name, "verdict": resolution.verdict, "findings": resolution.findings})
        };
        json!({"conflicts": input.conflicts.iter().zip(&answer.resolutions).map(named).collect::<Vec<_>>()})
    }

    fn check(input: &Input, answer: &Answer) -> Result<(), String> {
        if input.conflicts.len() != answer.resolutions.len() {
            return Err(format!("{} resolutions for {} conflicts", answer.resolutions.len(), input.conflicts.len()));
        }
        for (conflict, resolution) in input.conflicts.iter().zip(&answer.resolutions) {
            limits::findings(&resolution.findings)?;
            check_verdict(conflict, &resolution.verdict).map_err(|e| format!("conflict {:?}: {e}", conflict.subject))?;
        }
        Ok(())
    }
}

/// An illegal verdict for a kind of conflict is `BadOutput` (semantics "Refusal").
fn check_verdict(conflict: &Conflict, verdict: &Verdict) -> Result<(), String> {
    match verdict {
        Verdict::Keep(index) => names_claim("keep", conflict, *index),
        Verdict::KeepSome(indices) => keep_some(conflict, indices),
        Verdict::Merge(value) => {
            let all_text = conflict.claims.iter().all(|c| matches!(c.value, ClaimValue::Text(_)));
            if conflict.kind != SubjectKind::EnvVar || !all_text {
                return Err("merge is only legal for environment variables with literal values".into());
            }
            if value.len() > limits::MAX_VALUE || value.contains('\0') {
                return Err(format!("the merged value is over {} bytes or has a NUL", limits::MAX_VALUE));
            }
            Ok(())
        }
        Verdict::Reject(message) | Verdict::Hold(message) => limits::message("verdict", message),
    }
}

fn keep_some(conflict: &Conflict, indices: &[u32]) -> Result<(), String> {
    if conflict.kind != SubjectKind::PluginInstallation {
        return Err("keep-some is only legal for plugin installations".into());
    }
    if indices.is_empty() {
        return Err("keep-some names no claim at all; a policy that keeps none has to reject or hold".into());
    }
    // Before the loop: a policy decides how long its list is, the question how many claims there are.
    limits::count("indices in keep-some", indices.len(), conflict.claims.len())?;
    let mut seen = BTreeSet::new();
    for index in indices {
        names_claim("keep-some", conflict, *index)?;
        if !seen.insert(*index) {
            return Err(format!("keep-some names claim {index} twice"));
        }
    }
    Ok(())
}

fn names_claim(verdict: &str, conflict: &Conflict, index: u32) -> Result<(), String> {
    match usize::try_from(index) {
        Ok(at) if at < conflict.claims.len() => Ok(()),
        _ => Err(format!("{verdict}({index}) names no claim; there are {}", conflict.claims.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL_KINDS: [SubjectKind; 6] = [
        SubjectKind::EnvVar,
        SubjectKind::PluginName,
        SubjectKind::BundledPlugin,
        SubjectKind::PluginInstallation,
        SubjectKind::Volume,
        SubjectKind::VolumeMount,
    ];

    /// A conflict of three claims with literal values.
    fn conflict(kind: SubjectKind) -> Conflict {
        let claim = |who: &str| Claim { who: who.into(), since: None, origin: Origin::User, value: ClaimValue::Text(String::new()) };
        Conflict { kind, subject: "plugins/oidc".into(), claims: vec![claim("a/edge"), claim("b/edge"), claim("c/edge")] }
    }

    fn refused(kind: SubjectKind, verdict: &Verdict) -> String {
        check_verdict(&conflict(kind), verdict).unwrap_err()
    }

    #[test]
    fn keep_names_one_claim_of_any_kind() {
        for kind in ALL_KINDS {
            assert_eq!(check_verdict(&conflict(kind), &Verdict::Keep(2)), Ok(()), "{kind:?}");
            assert_eq!(refused(kind, &Verdict::Keep(3)), "keep(3) names no claim; there are 3");
        }
    }

    #[test]
    fn some_claims_on_an_installation_stand_side_by_side() {
        for indices in [vec![0], vec![1, 2], vec![0, 1, 2], vec![2, 0, 1]] {
            assert_eq!(check_verdict(&conflict(SubjectKind::PluginInstallation), &Verdict::KeepSome(indices)), Ok(()));
        }
    }

    #[test]
    fn nothing_else_can_be_shared() {
        for kind in ALL_KINDS.into_iter().filter(|kind| *kind != SubjectKind::PluginInstallation) {
            assert_eq!(refused(kind, &Verdict::KeepSome(vec![0, 1])), "keep-some is only legal for plugin installations", "{kind:?}");
        }
    }

    #[test]
    fn keep_some_names_each_claim_at_most_once() {
        let refused = |indices: &[u32]| refused(SubjectKind::PluginInstallation, &Verdict::KeepSome(indices.to_vec()));
        assert_eq!(refused(&[]), "keep-some names no claim at all; a policy that keeps none has to reject or hold");
        assert_eq!(refused(&[1, 1]), "keep-some names claim 1 twice");
        assert_eq!(refused(&[0, 3]), "keep-some(3) names no claim; there are 3");
        assert_eq!(refused(&[u32::MAX]), "keep-some(4294967295) names no claim; there are 3");
        assert_eq!(refused(&[0, 1, 2, 0]), "4 indices in keep-some, at most 3 are allowed");
    }

    #[test]
    fn merge_is_for_variables_with_literal_values() {
        let merge = Verdict::Merge("a,b".into());
        assert_eq!(check_verdict(&conflict(SubjectKind::EnvVar), &merge), Ok(()));
        for kind in ALL_KINDS.into_iter().filter(|kind| *kind != SubjectKind::EnvVar) {
            assert!(refused(kind, &merge).starts_with("merge is only legal"), "{kind:?}");
        }
        let mut reference = conflict(SubjectKind::EnvVar);
        reference.claims[1].value = ClaimValue::Object("{}".into());
        assert!(check_verdict(&reference, &merge).unwrap_err().starts_with("merge is only legal"));
        for value in ["a\0b".to_owned(), "a".repeat(limits::MAX_VALUE + 1)] {
            assert!(refused(SubjectKind::EnvVar, &Verdict::Merge(value)).starts_with("the merged value"));
        }
    }

    #[test]
    fn messages_of_verdicts_are_bounded() {
        let message = |length| "a".repeat(length);
        for verdict in [Verdict::Reject, Verdict::Hold] {
            assert_eq!(check_verdict(&conflict(SubjectKind::Volume), &verdict(message(limits::MAX_MESSAGE))), Ok(()));
            assert!(check_verdict(&conflict(SubjectKind::Volume), &verdict(message(limits::MAX_MESSAGE + 1))).is_err());
        }
    }

    #[test]
    fn verdicts_are_written_as_in_the_contract() {
        for (verdict, json) in [
            (Verdict::Keep(1), r#"{"keep":1}"#),
            (Verdict::KeepSome(vec![0, 2]), r#"{"keep-some":[0,2]}"#),
            (Verdict::Merge("a".into()), r#"{"merge":"a"}"#),
            (Verdict::Reject("a".into()), r#"{"reject":"a"}"#),
            (Verdict::Hold("a".into()), r#"{"hold":"a"}"#),
        ] {
            assert_eq!(serde_json::to_string(&verdict).unwrap(), json);
            assert_eq!(serde_json::from_str::<Verdict>(json).unwrap(), verdict);
        }
    }
}
