//! Former revisions: what becomes one, which of them may answer again, and how many are kept.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use weir_api::reconcile_policy::{Candidate, Revision};

use super::{
    super::{
        snapshot::{Failure, Found},
        validate::remote,
    },
    Pass, Standing, Swap, asks_for, is,
};

/// Former revision: another one was asked for.
pub const SUPERSEDED: &str = "Superseded";
/// Former revision: its owner went back to an older one. Nothing ever goes back to it by itself.
pub const REMOVED: &str = "Removed";
/// Former revision: it failed in use.
pub const ROLLED_BACK: &str = "RolledBack";

/// Settings of former revisions that are kept, bytes of all of them: an object has to stay well below what etcd takes.
const MAX_KEPT_SETTINGS: usize = 256 << 10;

impl Pass<'_> {
    /// What the breaker says of the revision in force: the latest former one that was good and is still allowed takes over. Without one the
    /// failing one stays: objects keep their last answers.
    pub(super) fn judge(&mut self) {
        let Some(tripped) = self.decided.failing(self.policy) else { return };
        let Some(place) = self.decided.history.iter().position(|former| self.is_good(former)) else { return };
        let mut target = self.decided.history.remove(place);
        target.reason = None;
        target.since = Some(Time(self.policy.snapshot.now));
        self.decided.swaps.push(Swap::RolledBack(target.layer_digest.clone(), format!("{}: {}", tripped.reason, tripped.message)));
        let Some(failed) = self.decided.active.replace(target) else { return };
        if asks_for(self.policy, &failed) {
            self.before.taken_out(failed_candidate(&failed));
        }
        self.keep(failed, ROLLED_BACK);
    }

    /// Whether it may take over without anybody's word. What ships inside of the operator needs no signature. A remote plugin that was another
    /// one then cannot be that again by itself.
    fn is_good(&self, former: &Revision) -> bool {
        if remote(former).is_some() {
            return false;
        }
        let is_allowed = former.image.is_none() || former.verification.as_deref() == self.policy.verification();
        former.reason.as_deref() == Some(SUPERSEDED) && is_allowed && former.settings.is_some()
    }

    /// Whether this component with the spec's settings failed in use. What stands as rolled back stays so although its revision is not kept
    /// any more.
    pub(super) fn has_failed(&self, layer: &str) -> bool {
        let settings = self.policy.settings_digest.as_str();
        let mut former = self.decided.history.iter();
        former.any(|former| is(former, layer, settings) && former.reason.as_deref() == Some(ROLLED_BACK)) || self.before.has_failed(layer)
    }

    /// Somebody asked for a fresh look at what failed in use, and it passed every step: it waits for a word like any other. Nothing goes back
    /// to it without one.
    pub(super) fn forgive(&mut self, layer: &str) {
        let settings = self.policy.settings_digest.as_str();
        let failed = |former: &&mut Revision| is(former, layer, settings) && former.reason.as_deref() == Some(ROLLED_BACK);
        self.decided.history.iter_mut().filter(failed).for_each(|former| former.reason = Some(REMOVED.into()));
    }

    /// What the spec asks for takes over.
    pub(super) fn activate(&mut self, revision: Revision) {
        let found = self.decided.history.iter().position(|former| is(former, &revision.layer_digest, &revision.settings_digest));
        let was = found.and_then(|place| self.decided.history.get(place)).and_then(|former| former.reason.clone());
        // Its owner goes back to one that others came after: those are not wanted any more. One that its owner had gone back from, or that
        // failed, is a way forward.
        let back = found.filter(|_| was.as_deref() == Some(SUPERSEDED));
        let later = self.decided.history.iter_mut().take(back.unwrap_or_default());
        later.filter(|former| former.reason.as_deref() == Some(SUPERSEDED)).for_each(|former| former.reason = Some(REMOVED.into()));
        self.decided.history.retain(|former| !is(former, &revision.layer_digest, &revision.settings_digest));
        // One that fails and stayed for want of another stays no longer, and nothing goes back to it.
        let failing = self.decided.failing(self.policy).is_some();
        if let Some(former) = self.decided.active.replace(revision) {
            let reason = match (failing, back) {
                (true, _) => ROLLED_BACK,
                (false, Some(_)) => REMOVED,
                (false, None) => SUPERSEDED,
            };
            self.keep(former, reason);
        }
        self.decided.swaps.push(Swap::Activated);
        self.decided.standing = Standing::InForce;
    }

    /// While a registry is away, a spec that is edited back finds what it asked for before.
    pub(super) fn went_back(&mut self, failure: &Failure, found: &Found) -> bool {
        if !failure.transient || self.is_current() || found.layer_digest.is_some() || found.manifest_digest.is_some() {
            return false;
        }
        let Some(former) = self.decided.history.iter().find(|former| asks_for(self.policy, former)) else { return false };
        if former.reason.as_deref() == Some(ROLLED_BACK) || former.settings.is_none() || remote(former).is_some() {
            return false;
        }
        let found = Found {
            image: former.image.clone(),
            manifest_digest: former.manifest_digest.clone(),
            layer_digest: Some(former.layer_digest.clone()),
            signer: former.signer.clone(),
            verification: former.verification.clone(),
            version: former.version.clone(),
        };
        self.ready(&found, None);
        match self.decided.standing {
            Standing::InForce => self.decided.standing = Standing::Failed { failure: failure.clone(), harmless: true },
            Standing::Coming(_) | Standing::Failed { .. } | Standing::Waiting(_) | Standing::RolledBack(_) | Standing::Stopped(_) => {}
        }
        true
    }

    /// Nothing answers any more.
    pub(super) fn retire(&mut self) {
        if let Some(former) = self.decided.active.take() {
            self.keep(former, SUPERSEDED);
        }
    }

    fn keep(&mut self, revision: Revision, reason: &str) {
        self.decided.history.retain(|former| !is(former, &revision.layer_digest, &revision.settings_digest));
        self.decided.history.insert(0, Revision { reason: Some(reason.into()), ..revision });
    }

    /// The latest ones stay, and their settings as far as there is room.
    pub(super) fn trim(&mut self) {
        self.decided.history.truncate(self.policy.history);
        let mut left = MAX_KEPT_SETTINGS;
        for former in &mut self.decided.history {
            let size = former.settings.as_ref().map_or(0, |settings| settings.to_string().len());
            match left.checked_sub(size) {
                Some(rest) => left = rest,
                None => former.settings = None,
            }
        }
    }
}

fn failed_candidate(failed: &Revision) -> Candidate {
    Candidate {
        image: failed.image.clone(),
        manifest_digest: failed.manifest_digest.clone(),
        layer_digest: Some(failed.layer_digest.clone()),
        settings_digest: Some(failed.settings_digest.clone()),
        signer: failed.signer.clone(),
        approve: None,
        impact: None,
    }
}
