//! From a fetched artifact to content: the policy says what goes where, the owner whether it may.

use weir_api::condition::reasons;

use super::{
    content::{self, Content},
    decide::{Decided, Progress},
    question,
    snapshot::Artifact,
    validate::{Rollout, Validated},
};
use crate::{
    decisions::{MAX_BYTES, Record, Sealing, Writer},
    policy::{Identity, Policies, Severity, SlotName, Unanswered},
};

/// Asks the policy and packs what it placed.
pub(super) async fn package(
    installation: &Validated<'_>,
    policies: &Policies,
    sealing: &Sealing,
    artifact: &Artifact,
    decided: &mut Decided,
) -> Progress {
    for note in &artifact.notes {
        decided.find(Severity::Info, "ArtifactNote", "spec.image", note.clone());
    }
    if !artifact.signers.is_empty() {
        decided.find(Severity::Info, "ArtifactSigned", "spec.image", format!("signed by {}", artifact.signers.join(", ")));
    }
    let policy = &policies.plugin_packaging;
    let input = question::input(installation, artifact);
    let reply = policy.ask(&input, |_| Ok(())).await;
    decided.policies.extend(reply.uses(SlotName::PluginPackaging, &installation.object()));
    if let Some(finding) = reply.fell_back {
        decided.fell_back.push(finding.message.clone());
        decided.findings.push(finding);
    }
    let answer = match reply.answer {
        Ok(answer) => answer,
        Err(unanswered) => return without(&unanswered),
    };
    decided.findings.extend(answer.findings.iter().cloned());
    let failed = |reason, message| Progress::Failed { reason, message, harmless: false };
    let (content, files) = match content::pack(installation.image, &artifact.digest, &artifact.files, &answer) {
        Ok(packed) => packed,
        Err(unstorable) => return failed(reasons::FAILED, format!("{}: {unstorable}", installation.image)),
    };
    if waits(installation, &content) {
        return Progress::Waiting(Box::new(content));
    }
    if let Some(name) = content::own_names(installation.name, &content).iter().find(|name| installation.snapshot.foreign.contains(name)) {
        let message = format!("ConfigMap {name:?}, which would hold the plugin's files, belongs to somebody else: delete it");
        return failed(reasons::NAME_TAKEN, message);
    }
    match decisions(installation, (reply.by, reply.fallback_for), artifact, &content, sealing) {
        Ok(decisions) => Progress::Accepted { content: Box::new(content), files, decisions },
        Err(bytes) => {
            let what = format!("the record of this artifact has {bytes} bytes, at most {MAX_BYTES} can be kept");
            failed(reasons::FAILED, format!("{}: {what}: leave out what the plugin does not load", installation.image))
        }
    }
}

/// Nothing new is in force without an answer, whatever `onFailure` says: what was packaged before stays, and a new artifact waits.
fn without(unanswered: &Unanswered) -> Progress {
    if unanswered.error.is_failure() {
        let blocks = if unanswered.blocks { "; nothing new is installed, since onFailure is Block" } else { "" };
        Progress::Unanswered { reason: unanswered.reason(), message: format!("{}{blocks}", unanswered.message) }
    } else {
        Progress::Refused { message: unanswered.message.clone() }
    }
}

/// Under `weir.dev/rollout: Manual` everything that differs from what is in force waits until its owner names its digest. So does the first.
fn waits(installation: &Validated<'_>, content: &Content) -> bool {
    match installation.rollout {
        Rollout::Automatic => false,
        Rollout::Manual => installation.in_force() != Some(content) && installation.approved != Some(content.digest.as_str()),
    }
}

/// The record, in the name of who answered, and for whom where that was a stand-in.
fn decisions(
    installation: &Validated<'_>,
    (policy, fallback_for): (&Identity, Option<&Identity>),
    artifact: &Artifact,
    content: &Content,
    sealing: &Sealing,
) -> Result<String, usize> {
    let record = Record {
        policy: policy.clone(),
        // What was looked for when it was fetched: the wishes may be others by now.
        input: question::digest(installation, &content.digest, artifact.verification.as_deref()),
        answer: content.clone(),
        fallback_for: fallback_for.cloned(),
        mac: String::new(),
    };
    let mut writer = Writer::default();
    writer.put(SlotName::PluginPackaging, installation.uid, record, sealing);
    writer.text().map(Option::unwrap_or_default)
}
