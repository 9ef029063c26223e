//! What the last pass knew of what the spec asks for. A look at a registry takes time, and a restart forgets: until something newer is known,
//! what was known stands, so that no condition comes and goes and nobody is told the same thing twice.

use weir_api::{
    condition::{Condition, types},
    reconcile_policy::Candidate,
};

use super::{
    super::{
        snapshot::{Failure, Found, Step},
        status,
        validate::Validated,
    },
    Pass, ROLLED_BACK, Standing, Wait, candidate,
};

/// What the status says, read once.
pub(super) struct Before {
    /// What the spec asks for, where something else answers.
    pub(super) candidate: Option<Candidate>,
    /// It had failed in use.
    rolled_back: bool,
    /// The step of this very spec that had failed.
    failure: Option<Failure>,
}

impl Before {
    pub(super) fn of(policy: &Validated<'_>) -> Self {
        let status = policy.snapshot.policy.status.as_ref();
        let candidate = status.and_then(|status| status.candidate.as_ref());
        let is_asked_for = |candidate: &&Candidate| {
            candidate.image.as_deref() == policy.image() && candidate.settings_digest.as_ref() == Some(&policy.settings_digest)
        };
        let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        Self {
            candidate: candidate.filter(is_asked_for).cloned(),
            rolled_back: conditions.iter().any(|c| c.type_ == types::STALLED && c.status == "True" && c.reason == ROLLED_BACK),
            failure: failure(conditions, policy.snapshot.policy.metadata.generation),
        }
    }

    /// What is known, where `found` is no other one.
    pub(super) fn known(&self, found: &Found) -> Option<&Candidate> {
        self.candidate.as_ref().filter(|candidate| match (&found.layer_digest, &found.manifest_digest) {
            (Some(_), _) => candidate.layer_digest == found.layer_digest,
            (None, Some(_)) => candidate.manifest_digest == found.manifest_digest,
            (None, None) => true,
        })
    }

    /// Whether it stands as one that failed in use.
    pub(super) fn has_failed(&self, layer: &str) -> bool {
        self.rolled_back && self.candidate.as_ref().is_some_and(|candidate| candidate.layer_digest.as_deref() == Some(layer))
    }

    /// What the spec asks for does not answer any more.
    pub(super) fn taken_out(&mut self, candidate: Candidate) {
        self.candidate.get_or_insert(candidate);
    }
}

impl Pass<'_> {
    /// Whether nothing newer is known than how it stood, and then it stands so.
    pub(super) fn stands(&mut self, next: Step, found: &Found) -> bool {
        let known = self.before.known(found).cloned();
        let Some(standing) = self.stood(next, found, known.as_ref()) else { return false };
        // What answers is no candidate.
        let is_other = found.layer_digest.is_some() && self.is_news(found);
        let seen = known.or_else(|| is_other.then(|| candidate(self.policy, found, None)));
        self.decided.candidate = seen.map(|seen| Candidate { approve: approve(&standing), ..seen });
        self.decided.standing = standing;
        true
    }

    /// What a person has to say about one that has passed every step before.
    pub(super) fn waiting(&self, known: &Candidate) -> Option<Wait> {
        known.approve.as_ref().and(known.layer_digest.as_deref()).and_then(|layer| self.wait(layer))
    }

    fn stood(&self, next: Step, found: &Found, known: Option<&Candidate>) -> Option<Standing> {
        let layer = found.layer_digest.as_ref().or_else(|| known.and_then(|known| known.layer_digest.as_ref()));
        if let Some(layer) = layer.filter(|layer| self.has_failed(layer)) {
            return Some(Standing::RolledBack(layer.clone()));
        }
        if let Some(wait) = known.and_then(|known| self.waiting(known)) {
            return Some(Standing::Waiting(wait));
        }
        let failure = self.before.failure.clone().filter(|failure| next <= failure.step)?;
        let is_look = failure.step == Step::Resolved && self.before.candidate.is_none() && self.is_current() && !self.is_news(found);
        (known.is_some() || is_look).then_some(Standing::Failed { failure, harmless: is_look })
    }
}

fn approve(standing: &Standing) -> Option<String> {
    match standing {
        Standing::Waiting(wait) => Some(wait.approve.clone()),
        Standing::InForce | Standing::Coming(_) | Standing::Failed { .. } | Standing::RolledBack(_) | Standing::Stopped(_) => None,
    }
}

/// The failure that the conditions of this spec tell of.
fn failure(conditions: &[Condition], generation: Option<i64>) -> Option<Failure> {
    let said = |type_: &str, status: &str| {
        conditions.iter().find(|c| c.type_ == type_ && c.status == status && c.observed_generation == generation)
    };
    let transient = said(types::RECONCILING, "True").is_some_and(|c| c.reason == status::RETRYING);
    // Settings and answers share a condition; the later step stands for both.
    [Step::Resolved, Step::Verified, Step::Compatible, Step::Answers].into_iter().find_map(|step| {
        let failed = said(status::condition(step), "False")?;
        Some(Failure { step, reason: failed.reason.clone(), message: failed.message.clone(), transient })
    })
}
