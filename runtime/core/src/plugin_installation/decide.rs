//! Asks the policies: how the artifact is packaged, and who may use it. The only step that awaits, and it awaits nothing else.

use weir_api::{condition::reasons, keys};

use super::{
    claims::{self, Settled},
    content::{Content, Files},
    package,
    snapshot::{Fetch, PullSecret},
    validate::{Stop, Validated},
};
use crate::{
    decisions::Sealing,
    plan::PolicyUse,
    policy::{Finding, Policies, Severity},
};

/// Field that names a pull Secret.
const PULL_SECRET: &str = "spec.imagePullSecretRef";

/// How far the artifact that `spec.image` names has come.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// What is in force is what the spec asks for.
    Settled,
    /// It is not here yet.
    Pending,
    /// It was packaged, and is in force from now on.
    Accepted {
        /// What it gives.
        content: Box<Content>,
        /// Its files, one element per ConfigMap.
        files: Vec<Files>,
        /// New text of annotation `weir.dev/decisions`.
        decisions: String,
    },
    /// It was packaged and waits for its owner's word.
    Waiting(Box<Content>),
    /// It cannot be fetched or stored.
    Failed {
        /// Reason of the hold.
        reason: &'static str,
        /// What happened and what to do.
        message: String,
        /// What is in force is of this image all the same, and complete.
        harmless: bool,
    },
    /// The policy refused it.
    Refused {
        /// The policy's words.
        message: String,
    },
    /// The policy gave no answer.
    Unanswered {
        /// Which failure.
        reason: &'static str,
        /// What happened.
        message: String,
    },
    /// Nobody looked: annotation `weir.dev/paused`.
    Paused,
}

/// What the policies say, and what that means.
#[derive(Debug)]
pub struct Decided {
    /// The artifact.
    pub progress: Progress,
    /// Who may use it; none when nothing is written.
    pub(super) claims: Option<Settled>,
    /// Digest of what was seen and is not in force, to be remembered.
    pub candidate: Option<String>,
    /// Of policies and of this step.
    pub findings: Vec<Finding>,
    /// Policies asked.
    pub policies: Vec<PolicyUse>,
    /// That another policy than the chosen one answered.
    pub fell_back: Vec<String>,
}

impl Decided {
    pub(super) fn find(&mut self, severity: Severity, code: &str, path: &str, message: String) {
        self.findings.push(Finding { severity, code: code.into(), path: path.into(), message });
    }

    /// What DataPlanes use when the pass is done.
    pub(super) fn content<'a>(&'a self, installation: &'a Validated<'_>) -> Option<&'a Content> {
        match &self.progress {
            Progress::Accepted { content, .. } => Some(content),
            Progress::Settled
            | Progress::Pending
            | Progress::Waiting(_)
            | Progress::Failed { .. }
            | Progress::Refused { .. }
            | Progress::Unanswered { .. }
            | Progress::Paused => installation.in_force(),
        }
    }
}

/// Asks every policy that this installation needs.
pub async fn decide(installation: &Validated<'_>, policies: &Policies, sealing: &Sealing) -> Decided {
    let mut decided = Decided {
        progress: Progress::Paused,
        claims: None,
        candidate: installation.candidate.clone(),
        findings: installation.findings.clone(),
        policies: Vec::new(),
        fell_back: Vec::new(),
    };
    match installation.stop {
        Some(Stop::Deleting | Stop::KongOperator | Stop::Paused) => return decided,
        None => {}
    }
    decided.progress = progress(installation, policies, sealing, &mut decided).await;
    decided.candidate = candidate(installation, &decided);
    let settled = claims::settle(installation, policies).await;
    decided.findings.extend(settled.findings.iter().cloned());
    decided.policies.extend(settled.asked.iter().cloned());
    decided.fell_back.extend(settled.fell_back.iter().cloned());
    decided.claims = Some(settled);
    decided
}

async fn progress(installation: &Validated<'_>, policies: &Policies, sealing: &Sealing, decided: &mut Decided) -> Progress {
    if let Some(problem) = &installation.problem {
        return Progress::Failed { reason: reasons::FAILED, message: problem.clone(), harmless: false };
    }
    let is_settled = installation.is_settled(policies.plugin_packaging.identity());
    if let PullSecret::Unusable(message) = &installation.snapshot.pull_secret {
        if is_settled {
            decided.find(Severity::Warning, "PullSecretUnusable", PULL_SECRET, message.clone());
        }
        return Progress::Failed { reason: reasons::FAILED, message: format!("{PULL_SECRET}: {message}"), harmless: is_settled };
    }
    match &installation.snapshot.fetch {
        Fetch::NotAsked | Fetch::Pending | Fetch::Queued if is_settled => Progress::Settled,
        Fetch::NotAsked | Fetch::Pending | Fetch::Queued => Progress::Pending,
        Fetch::Failed { message, transient, digest: _ } => failed(installation, decided, message, *transient),
        Fetch::Resolved(digest) => {
            // The tag leads to what is in force: what was seen meanwhile is of no interest any more.
            let moved_back = Validated { candidate: None, ..installation.clone() };
            let is_same = installation.current().is_some_and(|record| record.answer.digest == *digest);
            if is_same && moved_back.is_settled(policies.plugin_packaging.identity()) { Progress::Settled } else { Progress::Pending }
        }
        Fetch::Fetched(artifact) => package::package(installation, policies, sealing, artifact, decided).await,
    }
}

/// A registry that does not answer takes nothing away from what is in force.
fn failed(installation: &Validated<'_>, decided: &mut Decided, message: &str, transient: bool) -> Progress {
    let is_in_force = installation.current().is_some_and(|record| installation.is_complete(&record.answer));
    let harmless = transient && is_in_force;
    if harmless {
        decided.find(Severity::Warning, "FetchFailed", "spec.image", message.to_owned());
        if installation.candidate.is_some() {
            // What the last pass said of the newer artifact is still so.
            return Progress::Pending;
        }
    }
    Progress::Failed { reason: reasons::FAILED, message: message.to_owned(), harmless }
}

/// What has to be remembered of a newer artifact. Of an image of which nothing is in force, only what waits for its owner's word: the rest is
/// looked up again.
fn candidate(installation: &Validated<'_>, decided: &Decided) -> Option<String> {
    let remembered = || installation.candidate.clone();
    let recorded = installation.current().map(|record| record.answer.digest.as_str());
    // A pass that only brings back what was in force says nothing about newer ones.
    let again = || remembered().filter(|_| !is_whole(installation));
    let newer = |digest: &str| match recorded {
        None => None,
        Some(recorded) if recorded == digest => again(),
        Some(_) => Some(digest.to_owned()),
    };
    match &decided.progress {
        Progress::Accepted { content, .. } => again().filter(|_| recorded == Some(content.digest.as_str())),
        Progress::Waiting(content) => (recorded != Some(content.digest.as_str())).then(|| content.digest.clone()),
        Progress::Settled
        | Progress::Pending
        | Progress::Failed { .. }
        | Progress::Refused { .. }
        | Progress::Unanswered { .. }
        | Progress::Paused => match &installation.snapshot.fetch {
            Fetch::Resolved(digest) | Fetch::Failed { digest: Some(digest), .. } => newer(digest),
            Fetch::Fetched(artifact) => newer(&artifact.digest),
            Fetch::NotAsked | Fetch::Pending | Fetch::Queued | Fetch::Failed { digest: None, .. } => remembered(),
        },
    }
}

/// Whether the set in force was there when the pass began; if not, this pass only brought it back.
fn is_whole(installation: &Validated<'_>) -> bool {
    installation.in_force().is_some_and(|content| installation.is_complete(content))
}

/// What the owner of a waiting artifact can do.
pub(super) fn cure(installation: &Validated<'_>, waiting: &Content) -> String {
    let key = keys::APPROVED_DIGEST;
    let from = match installation.in_force() {
        None => "nothing is in force yet".to_owned(),
        Some(old) if old.digest == waiting.digest && old.image == waiting.image => {
            format!("{} stays in force, of the same artifact, as it was packaged before", old.digest)
        }
        Some(old) => format!("{} of {} stays in force", old.digest, old.image),
    };
    let mut text = format!("{} of {} waits for annotation {key}: {}; {from}", waiting.digest, waiting.image, waiting.digest);
    if let Some(approved) = installation.approved {
        text.push_str(&format!("; {key} names {:?}, which does not wait, and changes nothing", crate::policy::limits::cut(approved)));
    }
    text
}
