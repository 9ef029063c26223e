//! Slot conflict-resolution: who wins when two parties claim one thing.

use crate::{
    Finding, Policy, Refusal, bindings::conflict_resolution::exports::weir::policy::conflict_resolution as wit,
    policy::settings_for_evaluate,
};

pub use wit::{Answer, Claim, ClaimValue, Conflict, Input, Origin, Resolution, SubjectKind, Verdict};

/// Answers the slot.
pub trait ConflictResolution: Policy {
    /// One resolution for each conflict, in the order of the input. Must depend on its arguments only.
    ///
    /// One illegal verdict spoils the whole answer: [`Verdict::Merge`] is for variables whose claims are all text, and
    /// [`Verdict::KeepSome`] for installations.
    ///
    /// # Errors
    /// A refusal is about the whole question; for one conflict answer [`Verdict::Reject`] or [`Verdict::Hold`].
    fn evaluate(input: Input, settings: Self::Settings) -> Result<Answer, Refusal>;
}

impl<P: ConflictResolution> wit::Guest for P {
    fn evaluate(input: Input, settings: String) -> Result<Answer, Refusal> {
        <P as ConflictResolution>::evaluate(input, settings_for_evaluate::<P>(&settings)?)
    }
}

/// A resolution of a verdict and what to say about it.
///
/// ```
/// use weir_policy_sdk::conflict_resolution::{Verdict, resolution};
/// assert!(resolution(Verdict::Keep(0), Vec::new()).findings.is_empty());
/// ```
#[must_use]
pub fn resolution(verdict: Verdict, findings: Vec<Finding>) -> Resolution {
    Resolution { verdict, findings, extensions: Vec::new() }
}
