//! Who gets the grant: slot conflict-resolution decides between claimants, and about one from another namespace.

use weir_api::condition::reasons;

use super::{Claim, Validated, collect, cut};
use crate::{
    plan::{Outcome, PolicyUse},
    policy::{
        Finding, Policies, PolicyError, SlotName,
        conflict_resolution::{self, ClaimValue, Conflict, Origin, SubjectKind, Verdict},
    },
};

/// Owners that a message names.
const NAMED_OWNERS: usize = 3;

/// The claims after this pass.
#[derive(Debug, Clone, PartialEq, Default)]
pub(in super::super) struct Settled {
    /// Oldest first.
    pub(in super::super) claims: Vec<Claim>,
    /// Reason and message when the policy settled nothing.
    pub(in super::super) trouble: Option<(String, String)>,
    /// Of the policy and of this step.
    pub(in super::super) findings: Vec<Finding>,
    /// The policy, where it was asked.
    pub(in super::super) asked: Option<PolicyUse>,
}

/// Settles all claims.
pub(in super::super) async fn settle(installation: &Validated<'_>, policies: &Policies) -> Settled {
    let mut settled = Settled::default();
    settled.claims = collect(installation, &mut settled.findings);
    match settled.claims.as_mut_slice() {
        [] => {}
        // Nobody else wants it, and it stays where it is: there is nothing to decide.
        [only] if only.namespace == installation.namespace => grant(only),
        [_, ..] => ask(installation, policies, &mut settled).await,
    }
    cut(&mut settled.claims, &mut settled.findings);
    settled
}

async fn ask(installation: &Validated<'_>, policies: &Policies, settled: &mut Settled) {
    cut(&mut settled.claims, &mut settled.findings);
    let policy = &policies.conflict_resolution;
    let input = question(installation, &settled.claims);
    let answer = policy.evaluate(&input).await;
    settled.asked = Some(installation.asked(SlotName::ConflictResolution, policy.identity(), Outcome::of(&answer)));
    // An answer has one resolution per conflict: its slot's check saw to that.
    let verdict = answer.and_then(|answer| {
        let resolution = answer.resolutions.into_iter().next();
        resolution.ok_or_else(|| PolicyError::BadOutput("no resolution for the claims on the installation".into()))
    });
    let verdict = match verdict {
        Ok(resolution) => {
            settled.findings.extend(resolution.findings);
            resolution.verdict
        }
        Err(error) => return hold(settled, error.reason(), &error.to_string()),
    };
    match verdict {
        Verdict::Keep(index) => keep(&mut settled.claims, &[index]),
        Verdict::KeepSome(indices) => keep(&mut settled.claims, &indices),
        Verdict::Reject(message) => {
            settled.claims.iter_mut().for_each(|claim| refuse(claim, &message));
            settled.trouble = Some((reasons::REJECTED.into(), message));
        }
        Verdict::Hold(message) => hold(settled, reasons::HELD, &message),
        Verdict::Merge(_) => hold(settled, "BadOutput", "claims on an installation cannot be merged"),
    }
}

fn question(installation: &Validated<'_>, claims: &[Claim]) -> conflict_resolution::Input {
    let claims = claims.iter().map(|claim| conflict_resolution::Claim {
        who: who(claim),
        since: Some(claim.since.to_string()),
        origin: Origin::Generated,
        value: ClaimValue::Text(claim.uid.clone()),
    });
    let conflict = Conflict {
        kind: SubjectKind::PluginInstallation,
        subject: format!("{}/{}", installation.namespace, installation.name),
        claims: claims.collect(),
    };
    conflict_resolution::Input { context: installation.context(), conflicts: vec![conflict] }
}

fn who(claim: &Claim) -> String {
    format!("{}/{}", claim.namespace, claim.name)
}

fn grant(claim: &mut Claim) {
    claim.granted = true;
    claim.message = None;
}

fn refuse(claim: &mut Claim, message: &str) {
    claim.granted = false;
    claim.message = Some(message.to_owned());
}

/// Nothing is settled: who had the grant keeps it, the others wait.
fn hold(settled: &mut Settled, reason: &str, message: &str) {
    settled.claims.iter_mut().for_each(|claim| if claim.granted { grant(claim) } else { refuse(claim, message) });
    settled.trouble = Some((reason.to_owned(), message.to_owned()));
}

/// Those of these indices have the grant; the others hear who has it.
fn keep(claims: &mut [Claim], indices: &[u32]) {
    let kept = |index: usize| u32::try_from(index).is_ok_and(|index| indices.contains(&index));
    let owners: Vec<String> = claims
        .iter()
        .enumerate()
        .filter(|(index, _)| kept(*index))
        .map(|(_, claim)| format!("DataPlane {} since {}", who(claim), claim.since))
        .collect();
    let more = match owners.len().saturating_sub(NAMED_OWNERS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named: Vec<String> = owners.into_iter().take(NAMED_OWNERS).collect();
    let message = format!("claimed by {}{more}", named.join(", "));
    for (index, claim) in claims.iter_mut().enumerate() {
        if kept(index) { grant(claim) } else { refuse(claim, &message) }
    }
}
