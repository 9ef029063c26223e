//! Who gets the grant: slot conflict-resolution decides between claimants, and about one from another namespace.

use weir_api::condition::reasons;

use super::{Claim, Validated, collect, cut, outside, refused};
use crate::{
    plan::PolicyUse,
    policy::{
        Finding, Policies, SlotName,
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
    /// Who names the installation and has no claim, because the ReferenceGrant is missing. By namespace and name.
    pub(in super::super) outside: Vec<Claim>,
    /// Reason and message when the policy settled nothing.
    pub(in super::super) trouble: Option<(String, String)>,
    /// Of the policy and of this step.
    pub(in super::super) findings: Vec<Finding>,
    /// The policies that were asked.
    pub(in super::super) asked: Vec<PolicyUse>,
    /// That another policy than the chosen one answered.
    pub(in super::super) fell_back: Option<String>,
}

/// Settles all claims.
pub(in super::super) async fn settle(installation: &Validated<'_>, policies: &Policies) -> Settled {
    let mut settled = Settled::default();
    settled.claims = collect(installation, &mut settled.findings);
    settled.outside = outside(installation);
    match settled.claims.as_mut_slice() {
        // Nobody else wants it, and it stays where it is: there is nothing to decide.
        [only] if only.namespace == installation.namespace => grant(only),
        claims if claims.iter().all(|claim| !claim.permitted) => {}
        // A claim without its ReferenceGrant is asked about as well: it is not lost, and nobody takes its place meanwhile.
        [..] => ask(installation, policies, &mut settled).await,
    }
    for claim in settled.claims.iter_mut().filter(|claim| !claim.permitted) {
        *claim = refused(installation, claim.clone());
    }
    cut(&mut settled.claims, &mut settled.findings);
    settled
}

async fn ask(installation: &Validated<'_>, policies: &Policies, settled: &mut Settled) {
    cut(&mut settled.claims, &mut settled.findings);
    let input = question(installation, &settled.claims);
    let reply = policies.conflict_resolution.ask(&input, one_verdict).await;
    settled.asked = reply.uses(SlotName::ConflictResolution, &installation.object());
    settled.fell_back = reply.fell_back.as_ref().map(|finding| finding.message.clone());
    settled.findings.extend(reply.fell_back);
    let resolution = match reply.answer {
        Ok(answer) => answer.resolutions.into_iter().next(),
        Err(unanswered) => {
            let blocks = if unanswered.blocks { "; no claim changes, since onFailure is Block" } else { "" };
            return hold(settled, unanswered.reason(), &format!("{}{blocks}", unanswered.message));
        }
    };
    // `one_verdict` has seen it.
    let Some(resolution) = resolution else { return };
    settled.findings.extend(resolution.findings);
    match resolution.verdict {
        Verdict::Keep(index) => keep(&mut settled.claims, &[index]),
        Verdict::KeepSome(indices) => keep(&mut settled.claims, &indices),
        Verdict::Reject(message) => {
            settled.claims.iter_mut().for_each(|claim| refuse(claim, &message));
            settled.trouble = Some((reasons::REJECTED.into(), message));
        }
        Verdict::Hold(message) => hold(settled, reasons::HELD, &message),
        // `one_verdict` lets none through.
        Verdict::Merge(_) => {}
    }
}

/// The check of the slot has seen to both; nobody loses a claim should it not have.
fn one_verdict(answer: &conflict_resolution::Answer) -> Result<(), &'static str> {
    match answer.resolutions.first().map(|resolution| &resolution.verdict) {
        None => Err("no resolution for the claims on the installation"),
        Some(Verdict::Merge(_)) => Err("claims on an installation cannot be merged"),
        Some(Verdict::Keep(_) | Verdict::KeepSome(_) | Verdict::Reject(_) | Verdict::Hold(_)) => Ok(()),
    }
}

fn question(installation: &Validated<'_>, claims: &[Claim]) -> conflict_resolution::Input {
    let claims = claims.iter().map(|claim| conflict_resolution::Claim {
        who: claim.who(),
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

fn grant(claim: &mut Claim) {
    claim.granted = true;
    claim.held = false;
    claim.message = None;
}

fn refuse(claim: &mut Claim, message: &str) {
    claim.granted = false;
    claim.held = false;
    claim.message = Some(message.to_owned());
}

/// Nothing is settled: who had the grant keeps it, the others wait.
fn hold(settled: &mut Settled, reason: &str, message: &str) {
    for claim in &mut settled.claims {
        if claim.granted {
            grant(claim);
        } else {
            refuse(claim, message);
            claim.held = true;
        }
    }
    settled.trouble = Some((reason.to_owned(), message.to_owned()));
}

/// Those of these indices have the grant; the others hear who has it.
fn keep(claims: &mut [Claim], indices: &[u32]) {
    let kept = |index: usize| u32::try_from(index).is_ok_and(|index| indices.contains(&index));
    let owners: Vec<String> = claims
        .iter()
        .enumerate()
        .filter(|(index, _)| kept(*index))
        .map(|(_, claim)| format!("DataPlane {} since {}", claim.who(), claim.since))
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
