//! Slot conflict-resolution: who wins when two parties claim one thing. Contract: `wit/conflict-resolution.wit`.

use serde::{Deserialize, Serialize};

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
    /// At least two, strongest origin first.
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
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The claim of this index wins.
    Keep(u32),
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
        Verdict::Keep(index) => match usize::try_from(*index) {
            Ok(index) if index < conflict.claims.len() => Ok(()),
            _ => Err(format!("keep({index}) names no claim; there are {}", conflict.claims.len())),
        },
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
