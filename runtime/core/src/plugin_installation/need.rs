//! What the shell has to ask the registry before a pass. In the steady state: nothing.
//!
//! What runs is the recorded digest: only a look at the tag that somebody asked for, by `weir.dev/resync` or `weir.dev/check-at`, moves
//! it. A restart, a lost ConfigMap or another policy never does (semantics "Publishing is enough").

use super::{
    snapshot::{Fetch, Snapshot},
    validate::{self, Validated},
};
use crate::{decisions::Sealing, plan, policy::Identity};

/// What has to be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// Nothing.
    Nothing,
    /// Where the tag leads to. With the answer as [`Fetch::Resolved`] in the snapshot, ask again what is needed.
    Digest,
    /// The content.
    Content {
        /// Of this manifest, of the repository that `spec.image` names; none: of what `spec.image` leads to.
        digest: Option<String>,
    },
}

/// What has to be asked before a pass over this snapshot. `packaging` is the policy that would be asked about the artifact; `resync_due`
/// says that the last look at the tag is longer ago than [`super::resync()`] allows. Whether it may be asked (the pull Secret) is not looked at.
#[must_use]
pub fn need(snapshot: &Snapshot, packaging: &Identity, sealing: &Sealing, resync_due: bool) -> Need {
    let installation = validate::validate(snapshot, sealing);
    if installation.stop.is_some() || installation.problem.is_some() {
        return Need::Nothing;
    }
    let look = resync_due || plan::checked(&snapshot.installation.metadata).is_some();
    let resolved = match &snapshot.fetch {
        Fetch::Resolved(digest) => Some(digest),
        Fetch::NotAsked | Fetch::Pending | Fetch::Queued | Fetch::Failed { .. } | Fetch::Fetched(_) => None,
    };
    match resolved {
        Some(digest) => after_look(&installation, packaging, digest),
        None => before_look(&installation, packaging, look),
    }
}

fn content(digest: &str) -> Need {
    Need::Content { digest: Some(digest.to_owned()) }
}

fn after_look(installation: &Validated<'_>, packaging: &Identity, resolved: &str) -> Need {
    match installation.current() {
        Some(record) if record.answer.digest == resolved && is_as_asked(installation, packaging) => Need::Nothing,
        Some(_) | None => content(resolved),
    }
}

fn before_look(installation: &Validated<'_>, packaging: &Identity, look: bool) -> Need {
    let Some(record) = installation.current() else {
        // What waits for its owner's word does not move meanwhile; everything else is what the reference leads to now.
        return Need::Content { digest: installation.candidate.clone().filter(|_| !look) };
    };
    let recorded = &record.answer;
    if look && !installation.image.contains('@') {
        return Need::Digest;
    }
    if !installation.is_complete(recorded) {
        return content(&recorded.digest);
    }
    match &installation.candidate {
        Some(candidate) => content(candidate),
        None if installation.is_other_question(record, packaging) => content(&recorded.digest),
        None => Need::Nothing,
    }
}

/// Whether the record in force is stored and answers the question of today, whatever else is known.
fn is_as_asked(installation: &Validated<'_>, packaging: &Identity) -> bool {
    installation
        .current()
        .is_some_and(|record| installation.is_complete(&record.answer) && !installation.is_other_question(record, packaging))
}
